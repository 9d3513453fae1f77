"""Read damaged files page by page, and print what went wrong; nothing is printed if all is well.

It is a script because pyarrow might crash.

``python harmed_pages.py flips FIRST EACH`` changes every EACH-th byte from FIRST on, and truncates files.
``python harmed_pages.py lies SEED COUNT`` writes false values into page headers and page indexes.
"""

from __future__ import annotations

import io
import resource
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from secateur.errors import InvalidParquet
from secateur.io.parquet import thrift_encoding as thrift
from secateur.io.parquet.chunk_locations import ChunkLocations
from secateur.io.parquet.file_locations import read_locations
from secateur.io.parquet.footer import read_footer
from secateur.io.parquet.page_index import PageLocations
from secateur.io.parquet.page_reader import PageReader
from secateur.io.parquet.row_selection import RowSelection, chosen_rows
from secateur.io.parquet.thrift import I32, STRUCT, decode_leading

MOST_ADDRESSES = 1 << 30  # bytes that may be claimed beyond what the process has
ROWS = 120
WANTED = chosen_rows(np.array([3, 4, 5, 40, 41, 90]))
FLIPS = (0x01, 0x80, 0xFF)


@dataclass(frozen=True)
class Whole:
    """A small file, what its wanted rows are, and what is known of it before it is harmed."""

    name: str
    data: bytes
    checksums: bool
    reader: PageReader
    rows: pa.Table
    bodies: np.ndarray  # bool per byte: that of a page which is read, behind the header

    def harmed(self, data: bytes) -> Iterator[tuple[str, PageReader]]:
        """Readers of other bytes: one that knows the footer and the pages already, and one that reads them too."""
        file = pa.BufferReader(data)
        yield "known", PageReader("it", file, self.reader.head, self.reader.locations)
        footer = read_footer(file)
        yield "read", PageReader("it", file, footer.head, lambda group, leaves: _locations(file, footer, leaves))


def _locations(file: pa.NativeFile, footer: Any, leaves: Sequence[int]) -> ChunkLocations:
    locations = read_locations(file, footer, 0, leaves).of(leaves)
    if locations is None or not locations.has_pages:
        raise InvalidParquet("the pages are not known, and the row group is read whole")
    return locations


def files() -> list[Whole]:
    """Files of both page versions, with and without checksums, of all encodings."""
    rng = np.random.default_rng(3)
    no = rng.random(ROWS) < 0.2
    table = pa.table(
        {
            "number": pa.array(rng.integers(0, 10**9, ROWS), mask=no),
            "word": pa.array([f"word {i % 7}" for i in range(ROWS)], mask=no),
            "text": pa.array([f"{i} " * (i % 9) for i in range(ROWS)]),
            "real": pa.array(rng.random(ROWS)),
            "flag": pa.array(rng.random(ROWS) < 0.5, mask=no),
            "money": pa.array([Decimal(i) for i in range(ROWS)], pa.decimal128(20, 2)),
            "pairs": pa.array([[{"a": i, "b": str(i)}] * (i % 3) for i in range(ROWS)]),
        }
    )
    leaves = ["number", "text", "real", "flag", "money", "pairs.list.element.a", "pairs.list.element.b"]
    delta = ["DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT", "RLE", "DELTA_BYTE_ARRAY"]
    delta += ["DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY"]
    encoded = {"use_dictionary": ["word"], "column_encoding": dict(zip(leaves, delta, strict=True))}
    small: dict[str, Any] = {"write_page_index": True, "max_rows_per_page": 25, "write_batch_size": 5}
    written = []
    for checksums in (False, True):
        for version, codec, options in (("1.0", "snappy", {}), ("2.0", "none", encoded), ("2.0", "zstd", encoded)):
            options = {**small, **options, "write_page_checksum": checksums}
            sink = io.BytesIO()
            pq.write_table(table, sink, data_page_version=version, compression=codec, **options)
            written.append(_whole(f"{version} {codec} {checksums}", sink.getvalue(), checksums))
    return written


def _whole(name: str, data: bytes, checksums: bool) -> Whole:
    file = pa.BufferReader(data)
    footer = read_footer(file)
    reader = PageReader("it", file, footer.head, lambda group, leaves: _locations(file, footer, leaves))
    rows = pq.ParquetFile(io.BytesIO(data)).read().take(pa.array(WANTED.positions))
    names = footer.head.schema.names
    bodies = np.zeros(len(data), bool)
    for pages in reader._pages(reader._chosen(0, reader.locations(0, footer.head.leaves(names)), WANTED)).values():
        offsets = pages.chosen.pages.offset[pages.chosen.number].tolist()
        for at, (page, header) in zip(offsets, pages.pages, strict=True):
            bodies[at + header.size : at + len(page)] = True
    return Whole(name, data, checksums, reader, rows, bodies)


def outcome(whole: Whole, data: bytes, is_body: bool) -> Iterator[tuple[str, str | None]]:
    """What every reader of a harmed file makes of it, and what is wrong about that, if anything is."""
    readers = whole.harmed(data)
    while True:
        try:
            how, reader = next(readers)
        except StopIteration:
            return
        except InvalidParquet:
            yield "refused footer", None
            return
        yield judged(whole, how, reader, WANTED, is_body)


def judged(whole: Whole, how: str, reader: PageReader, wanted: RowSelection, is_body: bool) -> tuple[str, str | None]:
    """The outcome of one read."""
    try:
        rows = pa.concat_tables(reader.read(0, whole.rows.schema.names, wanted))
        rows.validate(full=True)
    except InvalidParquet as error:
        said = str(error)
        named = "it: row group 0, column " in said and "page" in said
        memory = "alloc" in said or "memory" in said
        right = not memory and (named or how == "read" or "do not lie in the file" in said)
        return f"{how} refused", None if right else f"refused by: {said}"
    except (
        pa.ArrowInvalid
    ) as error:  # of validate(): values that their type does not allow, such as text that is not UTF-8
        return f"{how} other values", f"noticed late: {error}" if whole.checksums and is_body else None
    if len(rows) != len(wanted):
        return how, f"{len(rows)} rows"
    if rows.equals(whole.rows):
        return f"{how} right", None
    return f"{how} other values", "not noticed, in spite of checksums" if whole.checksums and is_body else None


# ---- flips -----------------------------------------------------------------------------------------------------------

Trouble = tuple[str, str, str | None]  # what was done, what became of it, what is wrong about that


def flips(first: int, step: int) -> Iterator[Trouble]:
    """Every byte in turn."""
    for whole in files():
        for at in range(first, len(whole.data), step):
            changed = bytearray(whole.data)
            changed[at] ^= FLIPS[at % len(FLIPS)]
            harms = [(bytes(changed), bool(whole.bodies[at]))]
            harms += [(whole.data[:at], False)] if at % 50 == first % 50 else []
            for data, is_body in harms:
                done = f"{whole.name}, byte {at}, {len(data)} bytes"
                yield from ((done, *trouble) for trouble in outcome(whole, data, is_body))


# ---- lies ------------------------------------------------------------------------------------------------------------

NUMBERS = (-(2**31), -1, 0, 1, 2, 3, 8, 9, 24, 26, 2**16, 2**31 - 1)


def lies(seed: int, count: int) -> Iterator[Trouble]:
    """Random lies, of headers and of page indexes in turn."""
    rng, known = np.random.default_rng(seed), files()
    for i in range(count):
        whole = known[int(rng.integers(len(known)))]
        done, locations = (with_lying_header if i % 2 else with_lying_index)(whole, rng)
        data = whole.data + locations.more
        reader = PageReader("it", pa.BufferReader(data), whole.reader.head, lambda group, leaves, to=locations.to: to)
        yield (f"{whole.name}, {done}", *judged(whole, "lies", reader, WANTED, False))


@dataclass(frozen=True)
class Lie:
    """Page locations, and the bytes that they want behind those of the file."""

    to: ChunkLocations
    more: bytes


def with_lying_header(whole: Whole, rng: np.random.Generator) -> tuple[str, Lie]:
    """A page, or the dictionary page, whose header has another number somewhere; the locations have the page's size."""
    locations, leaf = _any_leaf(whole, rng)
    chunk = locations.chunks[leaf]
    pages = chunk.pages
    data = whole.data[chunk.start : chunk.stop]
    page = int(rng.integers(-1 if chunk.dictionary else 0, len(pages.rows)))
    at, size = (0, chunk.dictionary) if page < 0 else (int(pages.offset[page]) - chunk.start, int(pages.size[page]))
    fields, length = decode_leading(memoryview(data)[at : at + size])
    struct = next(value for value in fields.values() if isinstance(value, dict))
    struct.pop(5 if 5 in fields else 8 if 8 in fields else None, None)  # statistics
    changed = struct if rng.random() < 0.7 else fields
    numbers = [key for key, value in changed.items() if type(value) is int]
    key = numbers[int(rng.integers(len(numbers)))]
    near = [changed[key] + by for by in (-1, 1)]
    value = [*NUMBERS, *near][int(rng.integers(len(NUMBERS) + 2))]
    said = (
        f"leaf {leaf}, page {page}: field {key} is {value}, not {changed[key]}{' of the header' * (changed is fields)}"
    )
    changed[key] = max(-(2**31), min(2**31 - 1, value))
    header = encoded(fields)
    grown = len(header) - length
    moved = np.where(np.arange(len(pages.rows)) > page, grown, 0) + len(whole.data) - chunk.start
    sizes = pages.size + np.where(np.arange(len(pages.rows)) == page, grown, 0)
    lying = replace(
        chunk,
        start=len(whole.data),
        size=chunk.size + grown,
        dictionary=chunk.dictionary + (grown if page < 0 else 0),
        uncompressed=chunk.uncompressed + grown if rng.random() < 0.5 else 2**40,
        pages=PageLocations(pages.offset + moved, sizes, pages.first_row, pages.rows),
    )
    more = data[:at] + header + data[at + length :]
    return said, Lie(ChunkLocations(locations.row_count, {**locations.chunks, leaf: lying}), more)


def with_lying_index(whole: Whole, rng: np.random.Generator) -> tuple[str, Lie]:
    """Pages that lie elsewhere, or have other rows; in order and without overlap all the same."""
    locations, leaf = _any_leaf(whole, rng)
    chunk = locations.chunks[leaf]
    pages = chunk.pages
    n, by = len(pages.rows), int(rng.choice([-30, -3, -1, 1, 2, 40]))
    page = int(rng.integers(n))
    offset, size, first_row = pages.offset.copy(), pages.size.copy(), pages.first_row.copy()
    match kind := str(rng.choice(["offset", "offsets", "size", "row", "rows", "swapped", "another"])):
        case "offset":
            offset[page] += by
        case "offsets":
            offset += by
        case "size":
            size[page] += by
        case "row" if page:
            first_row[page] += by
        case "rows":
            first_row[1:] += by
        case "swapped":
            size = size[::-1].copy()
            offset = np.cumsum(np.append(offset[0], size[:-1]))
        case "another":
            other = locations.chunks[int(rng.choice(list(locations.chunks)))].pages
            offset, size, first_row = other.offset, other.size, other.first_row
    rows = np.diff(first_row, append=locations.row_count)
    said = f"leaf {leaf}, page {page}: {kind} by {by}"
    sound = (np.diff(first_row) > 0).all() and (offset[1:] >= (offset + size)[:-1]).all() and rows[-1] > 0
    if not sound or min(size) <= 0 or first_row[0]:
        return f"{said}, refused at once", Lie(locations, b"")
    lying = replace(chunk, pages=PageLocations(offset, size, first_row, rows))
    return said, Lie(ChunkLocations(locations.row_count, {**locations.chunks, leaf: lying}), b"")


def _any_leaf(whole: Whole, rng: np.random.Generator) -> tuple[ChunkLocations, int]:
    head = whole.reader.head
    locations = whole.reader.locations(0, head.leaves(head.schema.names))
    return locations, int(rng.choice(list(locations.chunks)))


def encoded(fields: Mapping[int, Any]) -> bytes:
    """A page header, of which all numbers are of 32 bits."""
    encodings = []
    for number, value in fields.items():
        match value:
            case bool():
                encodings.append((number, 1 if value else 2, b""))
            case int():
                encodings.append((number, I32, thrift.integer(value)))
            case _:
                encodings.append((number, STRUCT, encoded(value)))
    return thrift.structure(encodings)


def main(kind: str, *numbers: int) -> int:
    """Harm the files; the exit code is 1 where something went wrong."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MOST_ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    counts: Counter[str] = Counter()
    wrong = 0
    for done, became, trouble in {"flips": flips, "lies": lies}[kind](*numbers):
        counts[became] += 1
        if trouble:
            wrong += 1
            print(f"{done}: {became}: {trouble}", flush=True)
    print(dict(counts))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])))
