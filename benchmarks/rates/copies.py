"""The tables of a workload on disk: each layout as a directory, as Iceberg over the same files, and as Delta."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import WriterProperties, write_deltalake
from pyiceberg.table import StaticTable

import secateur as sec
from benchmarks.rates.questions import Layout, Workload
from benchmarks.setting import Setting, index_code
from secateur.io.tables.table import Table
from tests.support.formats.iceberg_tables import catalog_in

PAGES = 8  # per column of a row group


@dataclass(frozen=True)
class Copy:
    """A table of one workload in one layout and format, with its index."""

    workload: Workload
    layout: Layout
    format: str
    table: Table
    bounds: Table  # the same with an index that has no filters
    home: Path  # of the files
    reference: Any  # the table as its format's own library opens it; None for a directory

    @property
    def name(self) -> str:
        """How the table is called in results."""
        return f"{self.workload.name}, {self.layout.name}, {self.format}"

    @cached_property
    def blocks(self) -> pa.Table:
        """All blocks, by file and row group: path, row group, rows, bytes."""
        blocks = sec.prune(self.table, "TRUE", strict=True, session_time_zone="UTC").blocks
        paths = pa.array([self.path(file) for file in blocks["file"].cast(pa.string()).to_pylist()])
        held = pa.table([paths, blocks["row_group"], blocks["row_count"], blocks["bytes"]], [*BLOCK])
        return held.sort_by([("path", "ascending"), ("row_group", "ascending")])

    @cached_property
    def numbers(self) -> dict[tuple[str, int], int]:
        """The number of a block by its path and row group."""
        places = zip(self.blocks["path"].to_pylist(), self.blocks["row_group"].to_pylist(), strict=True)
        return {place: number for number, place in enumerate(places)}

    def path(self, file: str) -> str:
        """The absolute path of a file of a plan."""
        return str(self.home / file.removeprefix("file://"))


BLOCK = ("path", "row_group", "rows", "bytes")


def copies(setting: Setting, workload: Workload) -> Iterator[Copy]:
    """All copies of a workload's table, written and indexed where they are missing."""
    files = setting.scaled(workload.files, least=2)
    home = setting.prepared(f"rates-{workload.name}-{files}", partial(_write, workload=workload, files=files))
    for layout in workload.layouts:
        for format_, open_format in FORMATS.items():
            opened = open_format(home, layout, workload)
            options = {"sort_key": layout.sort_key, "gaps": workload.gaps}
            table = indexed(home, f"index-{layout.name}-{format_}", opened.source, {**options, **workload.filters})
            bounds = indexed(home, f"bounds-{layout.name}-{format_}", opened.source, options)
            yield Copy(workload, layout, format_, table, bounds, opened.data, opened.reference)


def indexed(home: Path, name: str, source: str, options: Mapping[str, Any]) -> Table:
    """A table with an index of the present code, which replaces one of other code."""
    index = home / f"{name}-{index_code()}"
    table = sec.open_table(source, index_location=str(index))
    if not index.exists():
        for old in home.glob(f"{name}-*"):
            shutil.rmtree(old)
        sec.build_index(table, **options)
    return table


def generated(copy: Copy) -> pa.Table:
    """The rows as they were generated."""
    return pq.read_table(copy.home.parent / "generated")


def _write(directory: Path, workload: Workload, files: int) -> None:
    rows_per_file = workload.groups * workload.rows
    data = workload.data(files * rows_per_file)
    for layout in workload.layouts:
        (directory / layout.name).mkdir()
        ordered = data.sort_by([(name, "ascending") for name in layout.order_by]) if layout.order_by else data
        for i in range(files):
            pq.write_table(
                ordered.slice(i * rows_per_file, rows_per_file),
                directory / layout.name / f"part-{i:04d}.parquet",
                row_group_size=workload.rows,
                compression="zstd",
                write_page_index=True,
                write_batch_size=-(-workload.rows // PAGES),  # with the least page size, every batch ends a page
                data_page_size=1,
            )


@dataclass(frozen=True)
class _Opened:
    """Where a table is opened, where its files lie, and the table as its format's own library opens it."""

    source: str
    data: Path
    reference: Any = None


def _directory(home: Path, layout: Layout, workload: Workload) -> _Opened:
    return _Opened(str(home / layout.name), home / layout.name)


def _iceberg(home: Path, layout: Layout, workload: Workload) -> _Opened:
    """The same files, added to a table of PyIceberg's."""
    place, pointer = home / f"iceberg-{layout.name}", home / f"iceberg-{layout.name}" / "table"
    if not pointer.exists() or not Path(pointer.read_text().removeprefix("file://")).exists():  # or it was moved
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        files = sorted((home / layout.name).glob("*.parquet"))
        table = catalog_in(place).create_table(f"db.{workload.name}", pq.read_schema(files[0]))
        table.add_files([str(file) for file in files])
        pointer.write_text(table.metadata_location)
    metadata = pointer.read_text()
    return _Opened(metadata, home / layout.name, StaticTable.from_metadata(metadata))


def _delta(home: Path, layout: Layout, workload: Workload) -> _Opened:
    """The same rows, appended file by file by Delta's library."""
    place, done = home / f"delta-{layout.name}", home / f"delta-{layout.name}.done"
    if not done.exists():
        shutil.rmtree(place, ignore_errors=True)
        properties = WriterProperties(
            compression="ZSTD", max_row_group_size=workload.rows, data_page_row_count_limit=workload.rows // PAGES
        )
        for file in sorted((home / layout.name).glob("*.parquet")):
            write_deltalake(place, pq.read_table(file), mode="append", writer_properties=properties)
        done.touch()
    return _Opened(str(place), place, deltalake.DeltaTable(place))


FORMATS: Mapping[str, Callable[[Path, Layout, Workload], _Opened]] = {
    "directory": _directory,
    "Iceberg": _iceberg,
    "Delta": _delta,
}


def sums(copy: Copy, chosen: np.ndarray) -> tuple[int, int]:
    """The rows and bytes of chosen blocks."""
    rows, size = (copy.blocks[name].to_numpy() for name in ("rows", "bytes"))
    return int(rows[chosen].sum()), int(size[chosen].sum())
