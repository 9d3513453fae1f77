"""Aggregates, counts and affected files of Iceberg tables with deleted rows, without Spark."""

from __future__ import annotations

import datetime as dt
import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, LongType, NestedField, StringType
from support.iceberg_row_deletes import committed, equality_deletes, position_deletes
from support.iceberg_tables import catalog_in
from support.profiles import examples

import secateur as sc
from benchmarks.indexing import index_here
from secateur.errors import StalePlan
from secateur.index.model import BuildOptions
from secateur.io.tables.iceberg import row_deletes

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
        deletes = [position_deletes(table, [(paths[f], row) for f, row in each]) for each in positions if each]
        deletes += [equality_deletes(table, "k", keys)] if keys else []
        opened = sc.open_table(committed(table, deletes) if deletes else table)
        if indexed:
            index_here(opened, BuildOptions())
        gone = {place for each in positions for place in each}
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


def least_and_greatest(values: list[Any]) -> list[Any]:
    def key(value: Any) -> Any:
        return (value != value, 0 if value != value else value)

    present = [value for value in values if value is not None]
    return [None, None] if not present else [min(present, key=key), max(present, key=key)]


@examples(60)
@given(histories(), st.sampled_from([None, -2, 0, 3]), st.booleans())
def test_what_is_told_is_told_of_the_rows_that_live(
    history: tuple[list[list[Row]], list[list[Place]], list[int]], least: int | None, indexed: bool
) -> None:
    calls = ["count(*)", "count(k)", *(f"{function}({name})" for name in "ksf" for function in ("min", "max"))]
    where = "true" if least is None else f"k >= {least}"

    def holds(row: Row) -> bool:
        return least is None or (row[0] is not None and row[0] >= least)

    with made(*history, indexed=indexed) as made_:
        for some in (calls, calls[2:4], calls[4:6]):
            result = sc.aggregate(made_.table, ", ".join(some), where, strict=True).to_pylist()[0]
            rows = [row for row in made_.rows if holds(row)]
            expected = [len(rows), sum(row[0] is not None for row in rows)]
            expected += [value for i in range(3) for value in least_and_greatest([row[i] for row in rows])]
            assert repr(list(result.values())) == repr([v for c, v in zip(calls, expected, strict=True) if c in some])
        plan = sc.prune(made_.table, where, strict=True)
        assert plan.count() == plan.to_arrow().num_rows == len(rows)
        assert sc.prune(made_.table, where, limit=3).to_arrow().num_rows == min(3, len(rows))
        affected = plan.affected()
        for path, live in zip(made_.paths, made_.live, strict=True):
            truth = [holds(row) for row in live]
            assert not (path in affected.untouched and any(truth))
            assert not (path in affected.whole and not all(truth))


def blocks_of(plan: Any) -> list[tuple[str, int]]:
    return [(row["file"], row["row_group"]) for row in plan.blocks.to_pylist()]


def reads_of(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The delete files that are opened from now on."""
    opened: list[str] = []
    real = row_deletes.read_positions

    def noted(open_input: Any, path: str, wanted: Any) -> Any:
        opened.append(path)
        return real(open_input, path, wanted)

    monkeypatch.setattr(row_deletes, "read_positions", noted)
    return opened


@pytest.mark.parametrize("indexed", [False, True])
def test_blocks_without_a_row_are_left_out(indexed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two delete files, which overlap, take the second block of the first file; another takes most of the second's."""
    files = [[(at, "a", 1.5) for at in range(11)], [(at, "b", 1.5) for at in range(6)]]
    positions = [[(0, 4), (0, 5), (0, 6)], [(0, 6), (0, 7), (0, 10)], [(1, 0), (1, 1), (1, 2), (1, 4)]]
    with made(files, positions, [], indexed=indexed) as made_:
        read = reads_of(monkeypatch)
        plan = sc.prune(made_.table, "s >= ''", strict=True)
        first, second = made_.paths
        assert sorted(blocks_of(plan)) == sorted([(first, 0), (first, 2), (second, 0), (second, 1)])
        assert plan.count() == plan.to_arrow().num_rows == 11 - 5 + 6 - 4
        assert len(read) == len(set(read)) == 3
        assert plan.affected().whole == sorted(made_.paths)
        assert plan.why(first, 1).stage == "deletes"
        assert sc.prune(made_.table, "k >= 0", limit=3, strict=True).to_arrow().num_rows == 3
        (stage,) = [each for each in plan.report.stages if each.name == "deletes"]
        assert (stage.before.blocks, stage.after.blocks) == (5, 4)
        assert stage.notes == ("deleted positions of 2 files looked at",)


@pytest.mark.parametrize("indexed", [False, True])
def test_delete_files_that_cannot_cover_a_block_are_not_read(indexed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [[(at, "a", 1.5) for at in range(8)]]
    with made(files, [[(0, 0), (0, 1), (0, 2)]], [7], indexed=indexed) as made_:
        read = reads_of(monkeypatch)
        assert len(sc.prune(made_.table, "k >= 0", strict=True).blocks) == 2
        assert not read


def test_a_delete_file_that_cannot_be_read_is_trouble_of_readers() -> None:
    files = [[(at, "a", 1.5) for at in range(4)]]
    with made(files, [[(0, at) for at in range(4)]], [], indexed=False) as made_:
        (path,) = made_.table.snapshot().listing(dt.UTC).deletes.files.column("path").to_pylist()
        Path(path.removeprefix("file://")).unlink()
        plan = sc.prune(made_.table, "k >= 0", strict=True)
        assert len(plan.blocks) == 1
        with pytest.raises(StalePlan):
            plan.count()


@pytest.mark.parametrize("indexed", [False, True])
def test_deleted_rows_are_no_answers(indexed: bool) -> None:
    """The bounds of a file with deletes hold and are no values; files without any need not be read."""
    files = [[(at, "a", 1.5) for at in range(8)], [(at, "a", 1.5) for at in range(10, 18)]]
    with made(files, [[(0, 0), (0, 7)]], [], indexed=indexed) as made_:
        result = sc.aggregate(made_.table, "min(k), max(k)", strict=True)
        assert result.to_pylist() == [{"min(k)": 1, "max(k)": 17}]
        assert result.schema.metadata[b"blocks_read"] == b"1"
        assert sc.prune(made_.table, "k >= 10").affected().whole == [made_.paths[1]]
        assert sc.prune(made_.table, "k >= 0").affected().whole == sorted(made_.paths)


@pytest.mark.parametrize("indexed", [False, True])
def test_equality_deletes_are_read_once(indexed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the plan, its count, its rows, aggregates that read in several goes, and the next plan."""
    files = [[(at + 20 * part, "a", float(at)) for at in range(20)] for part in range(2)]
    with made(files, [], [3, 25], indexed=indexed) as made_:
        opened: list[str] = []
        real = row_deletes.open_parquet

        def noted(filesystem: Any, path: str, shown: str, *listed: Any) -> Any:
            opened.append(shown)
            return real(filesystem, path, shown, *listed)

        monkeypatch.setattr(row_deletes, "open_parquet", noted)
        plan = sc.prune(made_.table, "k >= 0", strict=True)
        assert plan.count() == plan.to_arrow().num_rows == 38
        found = sc.aggregate(made_.table, "count(*) AS n, min(s) AS s, max(f) AS f", "k >= 0")
        assert found.to_pylist() == [{"n": 38, "s": "a", "f": 19.0}]
        assert sc.prune(made_.table, "k = 3 OR k = 25 OR k = 4", strict=True).count() == 1
        deletes = [path for path in opened if path.endswith("-deletes.parquet")]
        assert len(deletes) == 1
