"""Random indexes in memory, partly damaged, and their expected contents, block by block in plain Python.

They have zone maps, pages and filters of every kind, and some segments lack some of them. What the filters hold is
in random_filters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from secateur.index.container.index_file import SEGMENT
from secateur.index.filters.bloom_fragment import BloomFragment
from secateur.index.filters.bloom_matrix import BloomMatrices
from secateur.index.filters.ordered import ordered_of
from secateur.index.filters.postings_build import postings_of
from secateur.index.identity import FileIdentity
from secateur.index.model import OF_ROWS, ORDERED, POSTINGS, BlockTable, BuildOptions, Filter, IndexedColumn
from secateur.index.read.blocks import LooseBlocks
from secateur.index.read.coverage import NamesOnly
from secateur.index.segments.file_table import LEAST_BLOCK
from secateur.index.segments.segment_file import SegmentData, encode_segment
from secateur.index.segments.segment_table import Segments, SegmentSummary, joined, summarised
from secateur.index.segments.snapshot_files import snapshot_name
from secateur.index.segments.snapshot_writer import encode_snapshot
from secateur.index.zones import zonemap
from secateur.index.zones.page_statistics import PageTable, Places
from secateur.index.zones.zonemap import ZoneMap
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.predicate.bound import Field
from secateur.values.kinds import kind_of
from tests.support.checks.units import measured
from tests.support.drawn.random_filters import FILTERS, KINDS, LATER_FILTERS, Held, Written, number_of, written
from tests.support.stores.filter_files import (
    FRAGMENT_BYTES,
    JOINED_BYTES,
    MATRIX_BLOCKS,
    PART_BYTES,
    Cuts,
    bloom_matrices_in,
    without_bands,
)
from tests.support.stores.index_files import Memory, keys_list

COLUMNS = [IndexedColumn((name,), kind.type) for name, kind in KINDS.items()]
NUMBER = {name: c for c, name in enumerate(KINDS)}  # of a column in every segment, whatever its snapshot says
RATES = (0.3, 0.01, 1e-6)
Zone = tuple[Any, Any, int, int]  # lower, upper, value, null
ANYTHING = (1 | 2, 4)  # the value and null of an unknown zone


@dataclass(frozen=True)
class Block:
    """A row group: the values of every column."""

    rows: int
    size: int
    values: Mapping[str, Sequence[Any]]


IDENTITY = ("size", "stamp", "witness")  # of a file, with its path


@dataclass(frozen=True)
class File:
    """A file of the table at one time."""

    path: str
    size: int
    stamp: int
    witness: int
    blocks: tuple[Block, ...]

    @property
    def identity(self) -> FileIdentity:
        """What tells it from other files."""
        return FileIdentity(self.path, self.size, self.stamp, self.witness)

    @cached_property
    def zone_maps(self) -> dict[str, ZoneMap]:
        """Those of its blocks, as far as they were asked for."""
        return {}


@dataclass(frozen=True)
class Part:
    """A segment: what was written, the chunks that it lacks, and those that are harmed (``rows/f`` is a matrix).

    Without ``bloom matrix/f`` it has no columns in the bloom matrices of a filter.
    """

    name: str
    files: tuple[File, ...]
    data: SegmentData
    filters: Sequence[Written]
    missing: frozenset[str]
    harmed: frozenset[str]

    @cached_property
    def blocks(self) -> list[tuple[int, Block]]:
        """All blocks, with the positions of their files."""
        return [(i, block) for i, file in enumerate(self.files) for block in file.blocks]

    def has(self, chunk: str) -> bool:
        """Whether a chunk can be read."""
        return chunk not in self.missing | self.harmed and chunk in self.chunks

    @cached_property
    def chunks(self) -> set[str]:
        """The chunks that were written."""
        data = self.data
        return {
            "blocks",
            *(f"zone/{c}" for c in range(len(data.columns))),
            *(f"page/{c}" for c in data.pages),
            *(f"size-class/{f}" for f in data.size_classes),
            *(f"posting/{f}" for f in data.postings),
            *(f"ordered/{f}" for f in data.ordered),
        }

    @property
    def fragments(self) -> dict[int, Sequence[BloomFragment]]:
        """Those that are laid side by side."""
        return {f: self.filters[f].fragments for f in self.data.size_classes if f"bloom matrix/{f}" not in self.missing}

    def held(self, f: int, within: int) -> Held | None:
        """What the filter of a block holds; None where the segment has none."""
        is_there = f in self.fragments or {f"posting/{f}", f"ordered/{f}"} & (self.chunks - self.missing)
        return self.filters[f].held[within] if is_there else None


# ---- making one ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Maker:
    """Draws all parts of an index from one seed."""

    random: np.random.Generator
    store: Memory
    rates: Sequence[float]  # of filters

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def file(self, path: str, width: int) -> File:
        n = int(self.random.choice([0, 1, 2, 3, 4, 8]))
        counts = self.random.choice([0, 1, 2, 5], n, p=[0.1, 0.3, 0.3, 0.3]).tolist()
        low, span = int(self.random.integers(0, 50)), int(self.random.choice([1, 20], p=[0.2, 0.8]))
        blocks = [Block(n, int(self.random.integers(1, 99)), self.values(n, low, span, width)) for n in counts]
        size, stamp, witness = self.random.integers(1, 9, 3).tolist()
        size += LEAST_BLOCK * len(blocks)  # of which every row group takes some bytes
        return File(path, size, stamp, witness, tuple(blocks))

    def values(self, n: int, low: int, span: int, width: int) -> dict[str, list[Any]]:
        """Rows of a block: numbers from a range of their own, as text with a prefix of some width, some NULL."""
        numbers = self.random.integers(low, low + span, n).tolist()
        columns = {
            "i": numbers,
            "s": ["x" * width + f"{number:02}" for number in numbers],
            "huge": [number * 10**20 for number in numbers],
            "day": [19_000 + number for number in numbers],
        }
        nulls = {name: self.random.choice([0.0, 0.0, 0.3, 1.0]) for name in columns}
        return {
            name: [None if self.chance(nulls[name]) else value for value in values] for name, values in columns.items()
        }

    def part(self, name: str, harm: float, *shared: File) -> Part:
        """A segment of files of its own, behind those that another segment serves too."""
        width = int(self.random.choice([0, 1, 7, 20, 70]))
        files = (*shared, *(self.file(f"{name}-{i}", width) for i in range(self.random.integers(1, 4))))
        data, filters = self.data(name, files)
        part = Part(name, files, data, filters, frozenset(), frozenset())
        bloom_matrices = {f"bloom matrix/{f}" for f in data.size_classes}
        missing = frozenset(chunk for chunk in part.chunks | bloom_matrices if chunk != "blocks" and self.chance(0.15))
        missing |= {
            f"bloom matrix/{f}" for f in data.size_classes if f"size-class/{f}" in missing
        }  # in whose columns nobody would find it
        rows = {f"rows/{f}" for f in (*data.postings, *data.ordered)}
        harmed = frozenset(chunk for chunk in (part.chunks | rows) - missing if self.chance(harm))
        return Part(name, files, data, filters, missing, harmed)

    def data(self, name: str, files: Sequence[File]) -> tuple[SegmentData, list[Written]]:
        """What is to be written of some files; fragments of their filters are in the store already."""
        placed = [(f, g, block) for f, file in enumerate(files) for g, block in enumerate(file.blocks)]
        arrays = zip(*((f, g, block.rows, block.size) for f, g, block in placed), strict=True) if placed else [()] * 4
        dtypes = (np.int32, np.int32, np.int64, np.int64)
        table = BlockTable(*(np.array(filter_, dtype) for filter_, dtype in zip(arrays, dtypes, strict=True)))
        blocks = [block for _, _, block in placed]
        maps = [self.partly_known(zone_map_of(blocks, name)) for name in KINDS]
        pages = {c: self.pages(blocks, name) for c, name in enumerate(KINDS) if self.chance(0.5)}
        filters = [
            written(
                filter_,
                [b.values[filter_.path[0]] for b in blocks],
                self.store,
                f"fragments/{name}-{f}",
                rate,
                self.random,
            )
            for f, (filter_, rate) in enumerate(zip(FILTERS, self.rates, strict=True))
        ]
        there = [f for f in range(len(FILTERS)) if self.chance(0.8)]
        size_classes = {f: filters[f].size_classes for f in there if FILTERS[f].kind not in OF_ROWS}
        postings = {f: postings_of(filters[f].hashes) for f in there if FILTERS[f].kind == POSTINGS}
        ordered = {f: ordered_of(filters[f].entries) for f in there if FILTERS[f].kind == ORDERED}
        identities = [f.identity for f in files]
        data = SegmentData(identities, table, COLUMNS, maps, pages, size_classes, postings, ordered=ordered)
        return data, filters

    def partly_known(self, zone_map: ZoneMap) -> ZoneMap:
        counted = self.random.random(len(zone_map)) < 0.8
        known = np.where(counted, zone_map.null_count, -1)
        return ZoneMap(zone_map.lower, zone_map.upper, known, zone_map.nan_count)

    def pages(self, blocks: Sequence[Block], name: str) -> PageTable:
        """Every row a page, or every block."""
        by_row = [self.chance(0.7) for _ in blocks]
        cut = [
            [block.values[name][i : i + 1] for i in range(block.rows)] if rows and block.rows else [block.values[name]]
            for block, rows in zip(blocks, by_row, strict=True)
        ]
        pages = [Block(len(values), 0, {name: values}) for block in cut for values in block]
        counts = [len(block) for block in cut]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        first_row = np.concatenate([np.zeros(0, np.int64), *(np.arange(n) for n in counts)])
        nowhere = np.full(len(pages), -1, np.int64)
        return PageTable(offsets, first_row, zone_map_of(pages, name), Places(nowhere, nowhere))


def zone_map_of(blocks: Sequence[Block], name: str) -> ZoneMap:
    """The zone maps of blocks."""
    if not blocks:
        return measured(KINDS[name], [[]])[0].take(np.zeros(0, np.int64))
    return measured(KINDS[name], [block.values[name] for block in blocks])[0]


def stored(part: Part) -> tuple[bytes, SegmentSummary]:
    """The file of a segment, harmed as it is to be, and what a snapshot says of it."""
    encoded = encode_segment(part.data)
    blocks = part.data.blocks
    places = {chunk: place for chunk, place in encoded.places.items() if chunk not in part.missing}
    data = bytearray(encoded.data)
    for chunk in part.harmed & set(places):
        data[places[chunk].at + places[chunk].size // 2] ^= 1
    matrices = {f"rows/{f}": f"posting/{f}" for f in part.data.postings}
    matrices |= {f"rows/{f}": f"ordered/{f}" for f in part.data.ordered}
    for matrix in (matrix for rows, matrix in matrices.items() if rows in part.harmed):
        data = bytearray(without_bands(part.name, bytes(data), SEGMENT, matrix))
    counts = np.stack(
        [np.bincount(blocks.file, w, len(part.files)) for w in (None, blocks.row_count, blocks.byte_count)]
    )
    merged = [merged_of(zone_map, blocks.row_count) for zone_map in part.data.zone_maps]
    rows = int(blocks.row_count.sum())
    identities = [f.identity for f in part.files]
    summary = SegmentSummary(
        part.name, len(data), rows, len(blocks), identities, counts.T.astype(np.int64), merged, places, part.fragments
    )
    return bytes(data), summary


def merged_of(zone_map: ZoneMap, row_count: np.ndarray) -> ZoneMap:
    if not len(row_count):
        return zonemap.unknown(zone_map.lower.kind, 1)
    return zonemap.merge(zone_map, row_count, np.zeros(1, np.int64))


# ---- snapshots, and the live files of the table ----------------------------------------------------------------------

SCHEMA = pa.schema([(name, kind.type) for name, kind in KINDS.items()])
# As a later snapshot has them: renumbered, widened, and with one that segments do not have.
LATER = [IndexedColumn((n,), t) for n, t in (("new", pa.int8()), *((c.path[0], c.type) for c in COLUMNS[::-1]))]
LATER[-1] = IndexedColumn(("i",), pa.int64())


@dataclass(frozen=True)
class Live(NamesOnly):
    """The live files; some columns have their values in file names."""

    files: tuple[File, ...]
    named: Mapping[Field, Sequence[int | None]]
    id: str

    @property
    def paths(self) -> pa.Array:
        return pa.array([file.path for file in self.files], pa.string())

    @property
    def size(self) -> np.ndarray:
        return np.array([file.size for file in self.files], np.int64)

    @property
    def stamp(self) -> np.ndarray:
        return np.array([file.stamp for file in self.files], np.int64)

    @property
    def known_as(self) -> np.ndarray:
        return np.array([file.witness for file in self.files], np.int64)

    def zones(self, column: Field) -> Zones | None:
        if column not in self.named:
            return None
        kind = next(k for k in KINDS.values() if k.type == column.type)
        zones, rows = measured(kind, [[value] for value in [*self.named[column], None]])
        return zones.zones(rows).take(slice(0, len(self.files)))

    def open(self, files: np.ndarray) -> LooseBlocks:
        """The blocks of some files, by their footers."""
        chosen = [self.files[i] for i in files.tolist()]
        blocks = [
            (i, g, block) for i, file in zip(files.tolist(), chosen, strict=True) for g, block in enumerate(file.blocks)
        ]
        table = BlockTable(
            np.array([i for i, _, _ in blocks], np.int64),
            np.array([g for _, g, _ in blocks], np.int32),
            np.array([block.rows for _, _, block in blocks], np.int64),
            np.array([block.size for _, _, block in blocks], np.int64),
        )
        return LooseBlocks(table, [Footer(file) for file in chosen])


@dataclass(frozen=True)
class Footer:
    """What a file tells of itself."""

    file: File

    def zone_map(self, path: tuple[str, ...], type_: pa.DataType) -> ZoneMap:
        maps, blocks = self.file.zone_maps, self.file.blocks
        if path[0] not in maps and path[0] in KINDS:
            maps[path[0]] = zone_map_of(blocks, path[0])
        if path[0] in maps:
            return maps[path[0]]
        kind = kind_of(type_)
        assert kind is not None
        return zonemap.all_null(kind, np.array([block.rows for block in blocks], np.int64))


@dataclass(frozen=True)
class Index:
    """A snapshot of an index in a store, the live files of its table, and what that means."""

    store: Memory
    number: int
    columns: Sequence[IndexedColumn]
    filters: Sequence[Filter]
    parts: Sequence[Part]
    segments: Segments
    live: Live
    broken: frozenset[str]  # files of filters of which nothing can be read

    @property
    def fields(self) -> list[Field]:
        return [Field(c.path, c.type) for c in self.columns]

    @cached_property
    def begin(self) -> list[int]:
        """The number of the first block of every segment, and behind the last."""
        return np.cumsum([0, *(len(part.blocks) for part in self.parts)]).tolist()  # type: ignore[no-any-return]

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """Of every block of segments its segment, and its position there."""
        return [(s, i) for s, part in enumerate(self.parts) for i in range(len(part.blocks))]

    @cached_property
    def live_of(self) -> dict[tuple[int, int], int]:
        """Of every file of every segment the live file, -1 where there is none; a live file is served once."""
        identities = {f.identity: i for i, f in enumerate(self.live.files)}
        live = {}
        for s, part in enumerate(self.parts):
            for i, file in enumerate(part.files):
                live[s, i] = identities.pop(file.identity, -1)
        return live

    def file_of(self, number: int) -> int:
        """The live file of a block of a segment; -1 where there is none."""
        segment, within = self.places[number]
        return self.live_of[segment, self.parts[segment].blocks[within][0]]

    def uncovered(self) -> list[int]:
        """The live files that no segment serves."""
        return sorted({*range(len(self.live.files))} - {*self.live_of.values()})

    def row_group(self, number: int) -> int:
        segment, within = self.places[number]
        blocks = self.parts[segment].blocks
        return within - next(i for i in range(len(blocks)) if blocks[i][0] == blocks[within][0])

    def block(self, number: int) -> Block:
        segment, within = self.places[number]
        return self.parts[segment].blocks[within][1]

    def held(self, f: int, number: int) -> Held | None:
        """What a filter of the snapshot holds of a block; None where its segment has none."""
        segment, within = self.places[number]
        filter_number = number_of(self.filters[f])
        return None if filter_number is None else self.parts[segment].held(filter_number, within)

    def is_sound(self, f: int, segment: int) -> bool:
        """Whether all can be read that a filter has of a segment, and tells all that is asked of it."""
        part, number = self.parts[segment], number_of(self.filters[f])
        bloom_matrices = self.segments.bloom_matrices.get(f)
        if number is not None and FILTERS[number].kind == ORDERED:
            ordered = part.data.ordered.get(number)
            is_exact = ordered is None or ordered.table.is_exact
            return is_exact and not part.harmed & {f"ordered/{number}", f"rows/{number}"}
        if number is None or bloom_matrices is None or FILTERS[number].kind == POSTINGS:
            return not part.harmed & {f"posting/{number}", f"rows/{number}"}
        matrices = bloom_matrices.run_matrix[bloom_matrices.segment == segment]
        files = {
            bloom_matrices.file_name[i]
            for i in bloom_matrices.file[np.isin(bloom_matrices.part_matrix, matrices)].tolist()
        }
        return part.has(f"size-class/{number}") and not files & self.broken

    def zone(self, column: Field, number: int) -> Zone:
        """The zone map of a block of a segment, as far as it can be read."""
        segment, within = self.places[number]
        if column not in self.live.named:
            return self.zones_of(column, segment)[within]
        file = self.file_of(number)
        known = self.parts[segment].has("blocks") and file >= 0
        return self.named_zone(column, file) if known else UNKNOWN

    def named_zone(self, column: Field, file: int) -> Zone:
        """What the name of a live file tells of a column."""
        return self._once((column, "names"), lambda: zone_list(self.live.zones(column)))[file]  # type: ignore[arg-type]

    def footer_zone(self, column: Field, file: int, row_group: int) -> Zone:
        """What the footer of a live file tells of a column."""
        entry = self.live.files[file]
        rows = np.array([block.rows for block in entry.blocks], np.int64)
        zones = self._once(
            (column, file, "footer"), lambda: zone_list(Footer(entry).zone_map(column.path, column.type).zones(rows))
        )
        return zones[row_group]

    def zones_of(self, column: Field, segment: int) -> list[Zone]:
        """What the chunk of a column tells of the blocks of a segment, as far as it can be read."""
        return self._once((column, segment), lambda: self._zones_of(column, self.parts[segment]))

    def _zones_of(self, column: Field, part: Part) -> list[Zone]:
        c = NUMBER.get(column.path[0])
        if c is None or not part.has(f"zone/{c}"):
            return [UNKNOWN] * len(part.blocks)
        zone_map = part.data.zone_maps[c]
        holds_nulls = bool((zone_map.null_count > 0).any())
        if holds_nulls and not part.has("blocks"):
            return [UNKNOWN] * len(part.blocks)
        # Where no block holds a NULL, rows are not counted: even of a block without any they might be values.
        rows = part.data.blocks.row_count if holds_nulls else np.ones(len(part.blocks), np.int64)
        return zone_list(zone_map.zones(rows))

    def _once(self, key: tuple[Any, ...], find: Callable[[], list[Zone]]) -> list[Zone]:
        if key not in self._found:
            self._found[key] = find()
        return self._found[key]

    @cached_property
    def _found(self) -> dict[tuple[Any, ...], list[Zone]]:
        return {}


UNKNOWN: Zone = ("least", "greatest", *ANYTHING)


def zone_list(zones: Zones) -> list[Zone]:
    """Zone maps as plain values; what is not known is said in words, for it has no value."""
    kind = zones.lower.kind
    least, greatest = (keys_list(side)[0] for side in (zonemap.unknown(kind, 1).lower, zonemap.unknown(kind, 1).upper))
    lower = ["least" if key == least else key for key in keys_list(zones.lower)]
    upper = ["greatest" if key == greatest else key for key in keys_list(zones.upper)]
    return list(zip(lower, upper, zones.value.tolist(), zones.null.tolist(), strict=True))


def make_index(seed: int, segments: int, harm: float, rates: Sequence[float] = RATES) -> Index:
    """An index of so many segments, of whose chunks a share is harmed, over files of which some are dead or changed."""
    make = maker(seed, Memory(), rates)
    with cuts_of(make).prevailing():
        parts: list[Part] = []
        for i in range(segments):
            shared = parts[0].files[:1] if i and make.chance(0.1) else ()
            parts.append(make.part(f"segments/{build_name(seed)}-{i:06d}.segment", harm, *shared))
        bloom_matrices = laid(make, parts, build_name(seed))
    known = summarised(COLUMNS, FILTERS, [put(make.store, part) for part in parts], bloom_matrices)
    return publish(1, known, parts, make, broken_files(make, bloom_matrices, harm))


def refreshed(index: Index, seed: int, harm: float, rates: Sequence[float] = RATES) -> Index:
    """The next snapshot: without some segments, with new ones, under columns of other numbers and types."""
    make = maker(seed, index.store, rates)
    kept = [i for i in range(len(index.parts)) if make.chance(0.7)]
    with cuts_of(make).prevailing():
        build = build_name(seed, "new")
        new = [make.part(f"segments/{build}-{i:06d}.segment", harm) for i in range(make.random.integers(0, 4))]
        bloom_matrices = laid(make, new, build)
    added = summarised(COLUMNS, FILTERS, [put(index.store, part) for part in new], bloom_matrices).under(
        LATER, LATER_FILTERS
    )
    segments = joined(index.segments.take(np.array(kept, np.int64)).under(LATER, LATER_FILTERS), added)
    broken = index.broken | broken_files(make, bloom_matrices, harm)
    return publish(index.number + 1, segments, [*(index.parts[i] for i in kept), *new], make, broken)


def build_name(*about: object) -> str:
    """The name of a build, twelve hexadecimal digits."""
    return hashlib.blake2b(repr(about).encode(), digest_size=6).hexdigest()


def maker(seed: int, store: Memory, rates: Sequence[float]) -> Maker:
    random = np.random.default_rng(seed)
    return Maker(random, store, random.choice(rates, len(FILTERS)).tolist())


def cuts_of(make: Maker) -> Cuts:
    """Bloom matrices, parts and fragments of any size."""
    sizes = (MATRIX_BLOCKS, PART_BYTES, FRAGMENT_BYTES, JOINED_BYTES)
    return Cuts(*(int(make.random.choice(choices)) for choices in sizes))


def laid(make: Maker, parts: Sequence[Part], name: str) -> dict[int, BloomMatrices]:
    """The fragments of every filter side by side; fragments are gone then."""
    layout = {
        f: bloom_matrices_in(make.store, build_name(name, f), [part.fragments.get(f, ()) for part in parts])
        for f in range(len(make.rates))
    }
    for file in make.store.files("fragments"):
        make.store.delete(file.name)
    return {f: bloom_matrices for f, bloom_matrices in layout.items() if bloom_matrices is not None}


def put(store: Memory, part: Part) -> SegmentSummary:
    data, summary = stored(part)
    store.put(part.name, data)
    return summary


def broken_files(make: Maker, bloom_matrices: Mapping[int, BloomMatrices], harm: float) -> frozenset[str]:
    """Files of filters that are harmed: fewer than chunks, for there are more of them."""
    names = [name for matrix in bloom_matrices.values() for name in matrix.file_name]
    broken = frozenset(name for name in names if make.chance(harm / 4))
    for name in broken:
        make.store.put(name, without_bands(name, make.store.data[name]))
    return broken


def publish(number: int, segments: Segments, parts: Sequence[Part], make: Maker, broken: frozenset[str]) -> Index:
    data = encode_snapshot(number, float(number), segments, BuildOptions(fan_out=2), SCHEMA)
    make.store.put(snapshot_name(number), data)
    live = live_files([file for part in parts for file in part.files], segments.columns, make)
    return Index(make.store, number, segments.columns, segments.filters, parts, segments, live, broken)


def live_files(files: Sequence[File], columns: Sequence[IndexedColumn], make: Maker) -> Live:
    """Most of the files that the index knows, some gone, some changed, and some that it does not know."""
    alive, changed = make.random.choice([0.5, 1.0]), make.random.choice([0.0, 0.2])
    live = {file.path: file for file in files if make.chance(alive)}
    for path, file in live.items():
        if make.chance(changed):
            apart = {str(name): getattr(file, str(name)) + 1 for name in make.random.permutation(IDENTITY)[:1]}
            same = {name: getattr(file, name) for name in IDENTITY if name not in apart}
            live[path] = replace(make.file(path, 3), **same, **apart)
    live |= {f"new-{i}": make.file(f"new-{i}", 9) for i in range(make.random.integers(0, 3))}
    listed = [list(live.values())[i] for i in make.random.permutation(len(live))]
    named: dict[Field, list[int | None]] = {}
    types = {column.path[0]: column.type for column in columns}
    for column in (
        Field(("p_int",), pa.int32()),
        Field(("day",), types["day"]),
    ):  # one that no file has, and one that all have
        if make.chance(0.3):
            low = 19_000 if column.path == ("day",) else 0
            named[column] = [None if make.chance(0.1) else low + int(make.random.integers(0, 70)) for _ in listed]
    return Live(tuple(listed), named, f"{make.random.integers(0, 2**62)}")
