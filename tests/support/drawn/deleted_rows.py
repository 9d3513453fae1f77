"""Random histories of Iceberg tables with deleted rows, with the expected rows computed in plain Python."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, LongType, NestedField, StringType

import secateur as sec
from secateur.index.build.options import filter_options
from secateur.index.model import BuildOptions
from tests.support.formats.iceberg_row_deletes import committed, equality_deletes, position_deletes
from tests.support.formats.iceberg_tables import catalog_in
from tests.support.stores.local_build import index_here

SCHEMA = Schema(NestedField(1, "k", LongType()), NestedField(2, "s", StringType()), NestedField(3, "f", DoubleType()))


GROUP = 4  # rows of a row group


Row = tuple[int | None, str, float]


Place = tuple[int, int]  # a file and a row of it


@dataclass(frozen=True)
class Made:
    """A table, and the rows of each of its files that live."""

    table: Any
    paths: list[str]
    live: list[list[Row]]

    @property
    def rows(self) -> list[Row]:
        return [row for rows in self.live for row in rows]


@contextmanager
def made(
    files: Sequence[Sequence[Row]],
    positions: Sequence[Sequence[tuple[int, int]]],
    keys: Sequence[int],
    *,
    indexed: bool,
) -> Iterator[Made]:
    """A table of some files; each list of positions is one delete file, and keys are another."""
    with tempfile.TemporaryDirectory() as root:
        properties = {"write.parquet.row-group-limit": str(GROUP)}
        table = catalog_in(Path(root)).create_table("db.t", SCHEMA, properties=properties)
        paths = []
        for rows in files:
            columns = [pa.array(column, type_) for column, type_ in zip(zip(*rows, strict=True), TYPES, strict=True)]
            table.append(pa.table(columns, schema=table.schema().as_arrow()))
            (new,) = {task.file.file_path for task in table.scan().plan_files()} - set(paths)
            paths.append(new)
        deletes = [position_deletes(table, [(paths[f], row) for f, row in places]) for places in positions if places]
        deletes += [equality_deletes(table, "k", keys)] if keys else []
        opened = sec.open_table(committed(table, deletes) if deletes else table)
        if indexed:
            in_order = filter_options(postings={"k": "ordered", "s": "ordered"})
            index_here(opened, BuildOptions(sums=("k",), filters=in_order))
        gone = {place for places in positions for place in places}
        live = [
            [row for at, row in enumerate(rows) if (f, at) not in gone and row[0] not in keys]
            for f, rows in enumerate(files)
        ]
        yield Made(opened, paths, live)


TYPES = (pa.int64(), pa.large_string(), pa.float64())


ROWS = st.tuples(
    st.none() | st.integers(-5, 5),
    st.sampled_from(["", "a", "x" * 64, "x" * 70]),
    st.sampled_from([1.5, -1.0, math.nan]),
)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[list[Row]], list[list[Place]], list[int]]:
    """Files, position delete files that like whole row groups, and keys that are deleted."""
    files = draw(st.lists(st.lists(ROWS, min_size=1, max_size=3 * GROUP), min_size=1, max_size=3))
    positions = []
    for _ in range(draw(st.integers(0, 2))):
        deleted: list[Place] = []
        for _ in range(draw(st.integers(1, 3))):
            file = draw(st.integers(0, len(files) - 1))
            begin = GROUP * draw(st.integers(0, 2))
            count = draw(st.sampled_from([1, GROUP, GROUP, 3 * GROUP]))
            deleted += [(file, at) for at in range(begin, min(begin + count, len(files[file])))]
        positions.append(deleted)
    return files, positions, draw(st.lists(st.integers(-5, 5), max_size=2))
