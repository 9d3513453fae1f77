"""Chosen rows of a row group of a million, 20 columns, read by their pages: beside the whole row group, and DataFusion.

The footer and the page locations are known, as they are where an index is read; the file is in the system's cache.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.planning.scale_tables import changing
from benchmarks.results import Ratio, Result, timed
from benchmarks.setting import Setting
from benchmarks.timing import race
from secateur.io.parquet.chunk_locations import ChunkLocations, selected_bytes
from secateur.io.parquet.file_locations import read_locations
from secateur.io.parquet.footer import Footer, read_footer
from secateur.io.parquet.page_reader import PageReader
from secateur.io.parquet.row_selection import RowSelection, all_rows, chosen_rows

ROWS = 1_000_000
ONE_ROW, TEN_THOUSAND, BYTES, EVERYTHING = 0.066, 0.066, 0.033, 1.1  # goals: of what the plain read takes
CONTIGUOUS = 10_000
SCATTERED = (1, 3, 10, 20, 30, 50, 100, 300, 1000)
PLAIN = "pyarrow's read_row_group"


@dataclass(frozen=True)
class PageTable:
    """A file of one row group, and what is known of it beforehand."""

    path: Path
    rows: int

    @cached_property
    def file(self) -> pa.NativeFile:
        """The open file."""
        return pa.OSFile(str(self.path))

    @cached_property
    def footer(self) -> Footer:
        """Its footer."""
        return read_footer(self.file)

    @cached_property
    def locations(self) -> ChunkLocations:
        """The pages of all columns."""
        leaves = range(len(self.footer.head.columns))
        locations = read_locations(self.file, self.footer, 0, leaves)
        if locations.of(leaves) is None or not locations.has_pages:
            raise AssertionError("the file has no page index")
        return locations

    @property
    def names(self) -> list[str]:
        """All columns."""
        return list(self.footer.head.schema.names)

    def by_pages(self, rows: RowSelection, file: pa.NativeFile | None = None) -> pa.Table:
        """Some rows of all columns."""
        reader = PageReader(str(self.path), file or self.file, self.footer.head, lambda group, leaves: self.locations)
        return pa.concat_tables(reader.read(0, self.names, rows))

    def whole(self, file: pa.NativeFile | None = None) -> pa.Table:
        """All rows."""
        return pq.ParquetFile(file or self.file, metadata=self._metadata).read_row_group(0, use_threads=False)

    @cached_property
    def _metadata(self) -> pq.FileMetaData:
        return pq.read_metadata(self.path)

    def row(self, call: int) -> int:
        """Another row for every call."""
        return call * 7919 * 31 % self.rows


def page_table(setting: Setting) -> PageTable:
    """The table, written where it is missing."""
    rows = setting.scaled(ROWS, least=2000)
    directory = setting.prepared(f"page-reads-{rows}", lambda path: _write(path, rows))
    return PageTable(directory / "data.parquet", rows)


def read_one_row(setting: Setting) -> Result:
    """One row, another in every call."""
    table = page_table(setting)
    ask = _datafusion(table)
    contenders: list[Callable[[int], object]] = [
        lambda call: table.by_pages(_one(table.row(call))),
        lambda call: table.whole().filter(pc.field("id") == table.row(call)),
    ]
    for call in range(3):
        answers = [contender(call) for contender in [*contenders, *([ask] if ask else [])]]
        if any(answer != answers[0] for answer in answers):
            raise AssertionError(f"row {table.row(call)} is read in several ways")
    ours, plain, *others = race(list(map(changing, [*contenders, *([ask] if ask else [])])), setting.repetitions)
    ratios = [timed("one row of 20 columns by its pages", ours, f"{PLAIN}, then a filter", plain, ONE_ROW)]
    ratios += [
        timed("one row of 20 columns by its pages", ours, "DataFusion, by the page index", timing, 1)
        for timing in others
    ]
    return Result(_sizes(table), (*ratios, *_bytes(table, _one(table.row(1)), BYTES)))


def read_10k_contiguous(setting: Setting) -> Result:
    """Rows that follow one another."""
    table, n = page_table(setting), setting.scaled(CONTIGUOUS)

    def some(call: int) -> RowSelection:
        start = min(table.row(call), table.rows - n)
        return RowSelection(np.array([start]), np.array([start + n]))

    _require_equal(table, some(1))
    ours, plain = race([changing(lambda call: table.by_pages(some(call))), table.whole], setting.repetitions)
    ratio = timed(f"{n:,} rows in a row by their pages", ours, PLAIN, plain, TEN_THOUSAND)
    return Result({**_sizes(table), "read": n}, (ratio, *_bytes(table, some(1))))


def read_everything(setting: Setting) -> Result:
    """The whole row group by its pages, though a plain read is the better choice; and k scattered rows, to compare."""
    table = page_table(setting)
    rows = all_rows(table.rows)
    _require_equal(table, rows)
    chosen = [chosen_rows(np.unique(np.random.default_rng(k).integers(0, table.rows, k))) for k in SCATTERED]
    of = sum(chunk.size for chunk in table.locations.chunks.values())
    ours, plain, *scattered = race(
        [lambda: table.by_pages(rows), table.whole, *(partial(table.by_pages, selection) for selection in chosen)],
        setting.repetitions,
    )
    ratios = [timed("all rows by their pages", ours, PLAIN, plain, EVERYTHING)]
    for selection, timing in zip(chosen, scattered, strict=True):
        share = selected_bytes(table.locations, selection) / of
        ratios.append(timed(f"{len(selection):,} scattered rows, {share:.0%} of the bytes", timing, PLAIN, plain))
    return Result(_sizes(table), tuple(ratios))


def _one(row: int) -> RowSelection:
    return RowSelection(np.array([row]), np.array([row + 1]))


def _require_equal(table: PageTable, rows: RowSelection) -> None:
    if table.by_pages(rows) != table.whole().take(pa.array(rows.positions)):
        raise AssertionError("rows read by pages are not those of the row group")


def _sizes(table: PageTable) -> dict[str, int | float]:
    pages = sum(len(chunk.pages.rows) for chunk in table.locations.chunks.values() if chunk.pages is not None)
    return {"rows": table.rows, "columns": len(table.names), "pages": pages, "bytes": table.path.stat().st_size}


def _bytes(table: PageTable, rows: RowSelection, goal: float | None = None) -> tuple[Ratio, Ratio]:
    """Bytes and requests of a read, beside those of the whole row group."""
    (ours, requests), (plain, plain_requests) = (
        _counted(table, read) for read in (lambda file: table.by_pages(rows, file), table.whole)
    )
    return (
        Ratio("bytes read", ours, "B", PLAIN, plain, goal=goal),
        Ratio("reads of the file", requests, "reads", PLAIN, plain_requests),
    )


def _counted(table: PageTable, read: Callable[[pa.NativeFile], pa.Table]) -> tuple[int, int]:
    """The bytes that a read takes of the file, and its number of requests."""
    counted = _Counted(table.path.read_bytes())
    read(pa.PythonFile(counted, mode="r"))
    return sum(counted.sizes), len(counted.sizes)


class _Counted(io.BytesIO):
    """A file that records the size of every read."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.sizes: list[int] = []

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.sizes.append(len(data))
        return data


def _datafusion(table: PageTable) -> Callable[[int], pa.Table] | None:
    """The same by DataFusion, on one core; None where it is not installed."""
    if find_spec("datafusion") is None:
        return None
    datafusion: Any = import_module("datafusion")
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    context.register_parquet("t", str(table.path))

    def ask(call: int) -> pa.Table:
        answer = context.sql(f"SELECT * FROM t WHERE id = {table.row(call)}").to_arrow_table()
        return answer.cast(table.footer.head.schema.remove_metadata())

    return ask


def _write(directory: Path, rows: int) -> None:
    rng = np.random.default_rng(17)
    columns: dict[str, pa.Array] = {"id": pa.array(np.arange(rows))}
    for i in range(3):
        columns[f"number_{i}"] = pa.array(rng.integers(0, 1 << 40, rows))
        columns[f"measure_{i}"] = pa.array(rng.normal(size=rows), mask=rng.random(rows) < 0.05)
        columns[f"word_{i}"] = _texts("word", rng.integers(0, 300, rows))
        columns[f"text_{i}"] = _texts("a text that says", rng.integers(0, 1 << 30, rows))
        columns[f"money_{i}"] = pa.array(rng.integers(0, 10**9, rows)).cast(pa.decimal128(21, 2))
    columns["count"] = pa.array(rng.integers(0, 1000, rows).astype(np.int32), mask=rng.random(rows) < 0.1)
    columns["flag"] = pa.array(rng.random(rows) < 0.5)
    for name, step in (("moment", 1), ("seen", int(rng.integers(2, 1000)))):
        columns[name] = pa.array(np.cumsum(rng.integers(0, 1000 * step, rows)), pa.timestamp("us", "UTC"))
    pq.write_table(pa.table(columns), directory / "data.parquet", row_group_size=rows, write_page_index=True)


def _texts(before: str, numbers: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise(before, pa.array(numbers).cast(pa.string()), " ")
