"""Small row groups of several files that are read as one piece of work give the rows of files read one by one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from conformance.delta_log import inline_vector
from secateur.errors import SecateurError
from secateur.io.parquet import row_group_reader
from secateur.io.parquet.row_group_reader import RowGroupReader
from secateur.io.scan.block_list import BlockList
from secateur.io.scan.reading import block_reader, small_row_groups
from secateur.io.scan.reading.block_reader import BlockReader
from secateur.io.scan.reading.filtered_read import RowCondition
from secateur.io.tables.file_rows import FileBlocks
from secateur.scan import Scan
from tests.support.checks.oracle import rows
from tests.support.drawn.strategies import TableSpec, tables_and_predicates
from tests.support.formats.delta_tables import LoggedTable, numbered
from tests.support.profiles import examples
from tests.support.small_tables import WHERE, Where, files, rows_of, written


@contextmanager
def in_portions(files_of_one: int, *, late: bool = False) -> Iterator[None]:
    """Read so many files at once; with `late`, other columns always after those of the condition."""

    def portions(self: BlockReader, blocks: BlockList) -> Iterator[list[FileBlocks]]:
        listed = list(blocks.by_file())
        return (listed[i : i + files_of_one] for i in range(0, len(listed), files_of_one))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BlockReader, "portions", portions)
        if late:
            patch.setattr(RowGroupReader, "is_light", lambda *_: False)
        yield


def told(plan: Scan, columns: list[str] | None = None) -> list[str]:
    """The rows in order, as text, in which NaN is NaN."""
    return [repr(row) for row in plan.to_arrow(columns).to_pylist()]


@examples(40, shrink=False)
@given(tables_and_predicates(4), st.booleans(), st.booleans())
def test_files_read_at_once_give_the_rows_of_single_ones(
    query: tuple[TableSpec, list[str]], indexed: bool, late: bool
) -> None:
    spec, asked = query
    with tempfile.TemporaryDirectory() as root:
        table = sec.open_table(str(spec.write(Path(root))))
        if indexed:
            sec.build_index(table)
        for predicate in asked:
            try:
                plan = sec.prune(table, predicate, strict=True)
                with in_portions(1):
                    expected = plan.to_arrow()
            except SecateurError:
                continue  # a row on which Spark raises an error, or what only Spark evaluates
            with in_portions(99, late=late):
                read = plan.to_arrow()
                assert rows(read) == rows(expected), predicate
                assert read["rid"].to_pylist() == expected["rid"].to_pylist(), "in the order of the files"
                assert plan.count() == len(expected), predicate


@examples(60, shrink=False)
@given(files(), WHERE, st.booleans(), st.integers(1, 2), st.data())
def test_places_partitions_and_columns_that_files_lack(
    chosen: list[tuple[str, pa.Table, int]], where: Where, late: bool, rows_held: int, data: st.DataObject
) -> None:
    names = data.draw(st.permutations(["_pos", "_file", *"isfp"]))
    matching = sorted(repr(row["i"]) for row in rows_of(chosen) if where.holds(row))
    with written(chosen, data.draw(st.integers(0, len(chosen)))) as table, pytest.MonkeyPatch.context() as patch:
        plan = sec.prune(table, where.sql or "true", strict=True)
        with in_portions(1):
            expected = told(plan, list(names))
        patch.setattr(small_row_groups, "MOST_TOGETHER", rows_held * 200)  # so that portions are split
        patch.setattr(small_row_groups, "COPIED", 0)
        with in_portions(99, late=late):
            assert told(plan, list(names)) == expected
            assert sorted(repr(value) for value in plan.to_arrow(["i"])["i"].to_pylist()) == matching


@pytest.mark.parametrize("late", [False, True])
def test_deleted_rows_stay_deleted(tmp_path: Path, late: bool) -> None:
    table = LoggedTable(tmp_path, numbered(0, 1).schema)
    added = table.append(*(numbered(start, start + 10) for start in range(0, 60, 10)))
    table.delete(added[1], inline_vector([0, 5, 9]))
    table.delete(added[4], inline_vector(list(range(10))))
    gone = {10, 15, 19, *range(40, 50)}
    plan = sec.prune(sec.open_table(str(tmp_path)), "rid % 3 = 1", strict=True)
    expected = [i for i in range(60) if i % 3 == 1 and i not in gone]
    with in_portions(99, late=late):
        read = plan.to_arrow(["_pos", "s", "rid", "_file"])
        assert read["rid"].to_pylist() == expected
        assert read["_pos"].to_pylist() == [i % 10 for i in expected]
        assert read["s"].to_pylist() == [f"text {i % 7}" for i in expected]
        assert read["_file"].to_pylist() == [f"part-{i // 10:05}.parquet" for i in expected]


def test_each_row_group_meets_its_own_condition(tmp_path: Path) -> None:
    """Bounds leave another half of the range to check in each file, and nothing in one."""
    begins = [0, 40, 90, 45, 70, 0, 85]
    for i, begin in enumerate(begins):
        values = np.arange(begin, begin + 20) if i else np.arange(100)
        pq.write_table(pa.table({"x": values, "y": values * 2}), tmp_path / f"{i}.parquet", row_group_size=100)
    plan = sec.prune(sec.open_table(str(tmp_path)), "x between 50 and 91", strict=True)
    every = [*range(100), *(begin + i for begin in begins[1:] for i in range(20))]
    with in_portions(99):
        assert plan.to_arrow()["x"].to_pylist() == [x for x in every if 50 <= x <= 91]
        assert plan.to_arrow()["y"].to_pylist() == [2 * x for x in every if 50 <= x <= 91]


def test_a_condition_is_evaluated_once_and_others_are_read_where_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_rows, n_files = 8_000, 40
    key = np.random.default_rng(3).permutation(n_rows)
    data = pa.table({"key": key, **{f"x{i}": np.random.default_rng(i).random(n_rows) for i in range(40)}})
    of_file = n_rows // n_files
    for i in range(n_files):
        part = data.slice(i * of_file, of_file)
        pq.write_table(part, tmp_path / f"{i:02}.parquet", row_group_size=of_file // 2, use_dictionary=False)
    evaluated: list[int] = []
    read: list[tuple[int, int]] = []
    evaluate, read_batches = RowCondition.__call__, RowGroupReader._all_batches

    def noted(self: RowCondition, batch: pa.RecordBatch) -> np.ndarray:
        evaluated.append(batch.num_rows)
        return evaluate(self, batch)

    def noted_read(self: RowGroupReader, row_groups: list[int], names: list[str], *others: object) -> object:
        read.append((len(row_groups), len(names)))
        return read_batches(self, row_groups, names, *others)

    monkeypatch.setattr(RowCondition, "__call__", noted)
    monkeypatch.setattr(row_group_reader.RowGroupReader, "_all_batches", noted_read)
    plan = sec.prune(sec.open_table(str(tmp_path)), "key in (7, 77, 777)")
    with in_portions(n_files, late=True):
        assert plan.to_arrow().equals(data.filter(pa.array(np.isin(key, [7, 77, 777]))))
    held = np.unique(np.flatnonzero(np.isin(key, [7, 77, 777])) // (of_file // 2))
    assert evaluated == [n_rows], "once, for the rows of all files"
    assert read[:n_files] == [(2, 1)] * n_files, "the key of both row groups of every file"
    assert read[n_files:] == [(int(n), 40) for n in np.unique(held // 2, return_counts=True)[1]]


def test_files_of_few_bytes_are_one_piece_of_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(12):
        pq.write_table(pa.table({"x": [i, 5, 100 - i], "y": [i, i, i]}), tmp_path / f"{i:02}.parquet")
    at_once: list[int] = []
    read = BlockReader.read

    def noted(self: BlockReader, *blocks: FileBlocks) -> Iterator[pa.RecordBatch]:
        at_once.append(len(blocks))
        return read(self, *blocks)

    monkeypatch.setattr(BlockReader, "read", noted)
    table = sec.open_table(str(tmp_path))
    assert sec.prune(table, "x = 5", strict=True).to_arrow(["y"])["y"].to_pylist() == sorted([*range(12), 5])
    assert at_once == [12]
    at_once.clear()
    first = sec.prune(table, "x % 5 = 0", strict=True, order_by="x desc, y", limit=14).to_arrow(["x", "y"])
    every = [(x, i) for i in range(12) for x in (i, 5, 100 - i) if x % 5 == 0]
    ordered = sorted(every, key=lambda row: (-row[0], row[1]))
    assert list(zip(*first.to_pydict().values(), strict=True)) == ordered[:14]
    assert sum(at_once) == 12
    assert max(at_once) > 1, "the files of a wave"
    at_once.clear()
    monkeypatch.setattr(block_reader, "LEAST_PORTION", 1)
    assert len(sec.prune(table, "x = 5", strict=True).to_arrow()) == 13
    assert len(at_once) > 1
