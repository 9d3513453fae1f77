"""Rows that are read by pages, and column after column, are those that are read whole."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import SecateurError
from secateur.io.parquet import row_group_reader
from secateur.io.parquet.row_selection import (
    RowSelection,
    all_rows,
    chosen_rows,
    cut_out,
    end_to_end,
    intersection,
    without_gaps,
)
from secateur.io.scan.reading import late_materialization, opened_rows
from secateur.io.scan.reading.filtered_read import RowCondition
from secateur.io.tables.file_rows import positions_in_file
from secateur.io.tables.page_filter import PagePruner
from secateur.pruning.predicate.nodes import Truth
from secateur.scan import Scan
from tests.support.always_encoded import always_encoded
from tests.support.checks.oracle import rows
from tests.support.drawn.strategies import TableSpec, tables_and_predicates
from tests.support.profiles import examples


def read_whole(plan: Scan) -> Counter[str]:
    """The rows of a plan, of which every row group is read by itself, whole, and filtered."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_group_reader.RowGroupReader, "_reads_pages", lambda *_: False)
        patch.setattr(row_group_reader.RowGroupReader, "is_light", lambda *_: True)
        patch.setattr(row_group_reader.RowGroupReader, "is_read_whole", lambda *_: False)
        patch.setattr(PagePruner, "may_match", lambda self, row_group, predicate, rows: rows)
        return rows(plan.to_arrow())


def read_late(plan: Scan) -> Counter[str]:
    """The rows of a plan, of which the predicate's columns are always read first, and always by pages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_group_reader, "PAGE_COST", 0)
        patch.setattr(late_materialization, "FEW_ROWS", 0)
        patch.setattr(row_group_reader.RowGroupReader, "is_light", lambda *_: False)
        patch.setattr(row_group_reader.RowGroupReader, "is_read_whole", lambda *_: False)
        return rows(plan.to_arrow())


def read_encoded(plan: Scan) -> Counter[str]:
    """The rows of a plan, of which all texts that dictionaries encode are read so."""
    with always_encoded():
        return rows(plan.to_arrow())


@examples(40)
@given(tables_and_predicates(4), st.booleans())
def test_late_reads_give_the_rows_of_whole_ones(query: tuple[TableSpec, list[str]], indexed: bool) -> None:
    spec, asked = query
    with tempfile.TemporaryDirectory() as root:
        table = sec.open_table(str(spec.write(Path(root))))
        if indexed:
            sec.build_index(table)
        for predicate in asked:
            try:
                plan = sec.prune(table, predicate, strict=True)
                wanted = read_whole(plan)
            except SecateurError:
                continue  # a row on which Spark raises an error, or what only Spark evaluates
            assert read_late(plan) == wanted, predicate
            assert read_encoded(plan) == wanted, predicate
            assert rows(plan.to_arrow()) == wanted, predicate
            assert plan.count() == wanted.total(), predicate


ranges = st.lists(st.booleans(), min_size=1, max_size=60).map(np.array)
cuts = st.lists(st.integers(0, 60), max_size=4)


@given(ranges, ranges, st.integers(1, 9), st.data())
def test_chosen_rows_are_sets_of_rows(a: np.ndarray, b: np.ndarray, n: int, data: st.DataObject) -> None:
    first, second = (chosen_rows(np.flatnonzero(flags)) for flags in (a, b))
    both = np.intersect1d(first.positions, second.positions)
    assert intersection(first, second).positions.tolist() == both.tolist()
    assert [row for part in first.split(n) for row in part.positions.tolist()] == np.flatnonzero(a).tolist()
    begin, stop = sorted(data.draw(st.tuples(st.integers(0, 70), st.integers(0, 70))))
    assert first.between(begin, stop).positions.tolist() == [i for i in np.flatnonzero(a).tolist() if begin <= i < stop]
    cover = chosen_rows(np.flatnonzero(np.concatenate([a, np.zeros(60, bool)])[:60] | (np.arange(60) % 7 == 0)))
    held = pa.table({"row": cover.positions})
    inside = RowSelection(first.start[first.start < 60], first.stop[first.start < 60])
    assert inside.within(cover, held)["row"].to_pylist() == inside.positions.tolist()
    assert all_rows(n).positions.tolist() == list(range(n))


@given(ranges | st.sets(st.integers(0, 59), max_size=4).map(lambda held: np.isin(np.arange(60), list(held))), cuts)
@example(np.isin(np.arange(60), [3, 40]), [30])  # few rows of a second batch
def test_rows_are_cut_out_of_batches(flags: np.ndarray, ends: list[int]) -> None:
    chosen, n = chosen_rows(np.flatnonzero(flags)), len(flags)
    data = pa.RecordBatch.from_arrays([pa.array(range(n)), pa.array(map(str, range(n)))], ["row", "text"])
    places = pairwise([0, *sorted(min(end, n) for end in ends), n])
    batches = (data.slice(start, stop - start) for start, stop in places)
    parts = list(cut_out(batches, chosen))
    assert [row for part in parts for row in part["row"].to_pylist()] == np.flatnonzero(flags).tolist()
    assert all(part["text"].to_pylist() == [*map(str, part["row"].to_pylist())] for part in parts)


groups = st.lists(st.lists(st.booleans(), max_size=6).map(np.array), min_size=1, max_size=6)


@given(groups, st.data())
def test_rows_are_numbered_through_row_groups(flags: list[np.ndarray], data: st.DataObject) -> None:
    counts = np.array([len(flags_of_group) for flags_of_group in flags])
    rows = [None if flags_of_group.all() else chosen_rows(np.flatnonzero(flags_of_group)) for flags_of_group in flags]
    through = end_to_end(rows, counts)
    assert through.positions.tolist() == np.flatnonzero(np.concatenate(flags)).tolist()
    held, left = without_gaps(through, counts.tolist())
    assert held == [i for i, flags_of_group in enumerate(flags) if flags_of_group.any()]
    assert left.positions.tolist() == [
        i for i, is_selected in enumerate(hit for h in held for hit in flags[h]) if is_selected
    ]
    of_group = np.split(np.arange(counts.sum()), np.cumsum(counts)[:-1])
    chosen = sorted(data.draw(st.sets(st.integers(0, len(flags) - 1), min_size=1)))
    wanted = np.concatenate([of_group[group] for group in chosen])
    assert positions_in_file(counts, chosen, np.arange(len(wanted))).tolist() == wanted.tolist()


def test_small_row_groups_of_a_file_are_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 50_000
    key = np.arange(rows) * 7919 % rows
    data = pa.table({"key": key, **{f"x{i}": np.random.default_rng(i).random(rows) for i in range(8)}})
    pq.write_table(data, tmp_path / "a.parquet", row_group_size=1_000, write_page_index=True)
    asked: list[tuple[int, list[str]]] = []
    real = row_group_reader.RowGroupReader._all_batches

    def noted(
        self: row_group_reader.RowGroupReader, row_groups: list[int], names: list[str], *others: object
    ) -> object:
        asked.append((len(row_groups), list(names)))
        return real(self, row_groups, names, *others)

    monkeypatch.setattr(row_group_reader.RowGroupReader, "_all_batches", noted)
    rows = sec.prune(sec.open_table(str(tmp_path)), "key in (7, 7777)").to_arrow()
    assert rows.equals(data.filter(pa.array((key == 7) | (key == 7777))))
    held = len(set((np.flatnonzero((key == 7) | (key == 7777)) // 1_000).tolist()))
    assert asked == [(50, ["key"]), (held, [f"x{i}" for i in range(8)])], "the key of all, then the row groups of rows"


def test_of_other_columns_only_pages_with_a_match_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 200_000
    noise = np.random.default_rng(0)
    key = noise.permutation(n)
    data = pa.table({"key": key, **{f"x{i}": noise.random(n) for i in range(8)}})
    pq.write_table(data, tmp_path / "a.parquet", write_page_index=True, max_rows_per_page=2_000, use_dictionary=False)
    asked: list[int] = []
    real = row_group_reader.PageReader.read

    def noted(self: row_group_reader.PageReader, row_group: int, names: list[str], chosen: RowSelection) -> object:
        asked.append(len(chosen))
        return real(self, row_group, names, chosen)

    monkeypatch.setattr(row_group_reader.PageReader, "read", noted)
    rows = sec.prune(sec.open_table(str(tmp_path)), "key = 777").to_arrow()
    assert rows.equals(data.filter(pa.array(key == 777)))
    assert asked == [1], "one read by pages, of one row; the key was read whole"


def test_nested_columns_are_read_one_row_group_after_the_other(tmp_path: Path) -> None:
    """pyarrow cannot read them of several at once."""
    data = pa.table({"id": range(400), "st": [{"s": f"text {i}" * 3} for i in range(400)], "l": [["a"]] * 400})
    pq.write_table(data, tmp_path / "a.parquet", row_group_size=100)
    assert sec.prune(sec.open_table(str(tmp_path)), "id % 3 = 1").to_arrow() == data.filter(
        pa.array([i % 3 == 1 for i in range(400)])
    )


def patterns(n: int) -> dict[str, np.ndarray]:
    """Which of n rows match: in ranges and here and there, few and most."""
    at, chance = np.arange(n), np.random.default_rng(5).random(n)
    return {
        "one": at == n // 2 + 3,
        "a few ranges": (at % 997) < 20,
        "here and there": chance < 0.1,
        "half": chance < 0.5,
        "half of the first row group": (chance < 0.5) & (at < n // 3),
        "most of the last row groups": (chance < 0.8) & (at >= n // 3),
        "all but one": at != 17,
        "all": at >= 0,
    }


@pytest.mark.parametrize("way", ["together", "whole", "pages"])
def test_rows_are_taken_from_whole_row_groups_as_from_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    n = 6_000
    noise = np.random.default_rng(1)
    hits = {name.replace(" ", "_"): hit for name, hit in patterns(n).items()}
    outside = np.where(np.arange(n) % 2, -1.0, 2.0)  # so that bounds leave out no row group
    data = pa.table(
        {
            **{name: np.where(hit, noise.random(n), outside) for name, hit in hits.items()},
            "number": pa.array(noise.random(n), mask=noise.random(n) < 0.2),
            "text": [None if i % 11 == 0 else f"text {i % (50 if i < 3_000 else n)}" for i in range(n)],
            **({} if way == "together" else {"elements": [None if i % 7 == 0 else [i] * (i % 4) for i in range(n)]}),
        }
    )
    pq.write_table(
        data, tmp_path / "a.parquet", row_group_size=n // 3, write_page_index=True, max_rows_per_page=100,
        dictionary_pagesize_limit=2_000,
    )  # fmt: skip
    monkeypatch.setattr(row_group_reader.RowGroupReader, "is_light", lambda *_: False)
    monkeypatch.setattr(row_group_reader, "BATCH_ROWS", 700)
    if way != "together":
        monkeypatch.setattr(row_group_reader, "CHUNK_COST", 0)  # so that no row group is small
    if way == "pages":
        monkeypatch.setattr(row_group_reader, "PAGE_COST", 0)
        monkeypatch.setattr(row_group_reader, "BYTE_COST", 0)
        monkeypatch.setattr(opened_rows, "CELL", 16)
    table = sec.open_table(str(tmp_path))
    others = [name for name in data.column_names if name not in hits]
    for name, hit in hits.items():
        expected = data.filter(pa.array(hit))
        plan = sec.prune(table, f"{name} between 0 and 1.5", strict=True)
        assert plan.to_arrow() == expected, name
        assert plan.to_arrow(others) == expected.select(others), f"{name}: the condition's column is not returned"
        assert plan.to_arrow(["text", name]) == expected.select(["text", name]), name
        assert plan.to_arrow([name]) == expected.select([name]), name
        assert plan.to_arrow(["_pos"])["_pos"].to_pylist() == np.flatnonzero(hit).tolist(), name
        assert plan.count() == len(expected), name


def test_columns_of_a_condition_alone_are_read_only_where_it_is_in_doubt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pa.table({"key": range(2_000), "x": np.random.default_rng(0).random(2_000)})
    pq.write_table(data, tmp_path / "a.parquet", row_group_size=1_000)
    asked = asked_of_pyarrow(monkeypatch)
    plan = sec.prune(sec.open_table(str(tmp_path)), "key < 1500", strict=True)
    assert plan.to_arrow(["x"]) == data.slice(0, 1_500).select(["x"])
    assert asked == [([0], ["x"]), ([1], ["key", "x"])]


def test_each_row_group_is_read_with_the_columns_of_its_own_condition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds leave `a` in doubt in one row group, and `b` in the other."""
    at, x = np.arange(1_000), np.random.default_rng(0).random(2_000)
    of_both = {"a": np.concatenate([at, at % 10]), "b": np.concatenate([at % 10, at])}
    data = pa.table({**of_both, "x": x})
    pq.write_table(data, tmp_path / "a.parquet", row_group_size=1_000)
    asked = asked_of_pyarrow(monkeypatch)
    plan = sec.prune(sec.open_table(str(tmp_path)), "a < 500 and b < 500", strict=True)
    assert plan.to_arrow(["x"]) == data.filter(pa.array((of_both["a"] < 500) & (of_both["b"] < 500))).select(["x"])
    assert [(row_groups, set(names)) for row_groups, names in asked] == [([0], {"a", "x"}), ([1], {"b", "x"})]


def test_of_dense_matches_only_row_groups_with_one_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds leave all three in doubt, and all matches lie in the second: a third of the rows, too many for ranges."""
    n = 6_000
    at = np.arange(n)
    hit = (at // 2_000 == 1) & (at // 2 != 1_500)  # its bounds are those of the others
    data = pa.table({"key": np.where(hit, 0.5, np.where(at % 2, -1.0, 2.0)), "x": np.random.default_rng(0).random(n)})
    pq.write_table(data, tmp_path / "a.parquet", row_group_size=n // 3)
    asked = asked_of_pyarrow(monkeypatch)
    monkeypatch.setattr(row_group_reader.RowGroupReader, "is_light", lambda *_: False)
    plan = sec.prune(sec.open_table(str(tmp_path)), "key * key < 0.9D", strict=True)
    assert plan.to_arrow() == data.filter(pa.array(hit))
    assert asked == [([0, 1, 2], ["key"]), ([1], ["x"])]


def large_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no row group be small, and no column so short that it is read at once."""
    monkeypatch.setattr(row_group_reader, "CHUNK_COST", 0)
    monkeypatch.setattr(row_group_reader.RowGroupReader, "is_light", lambda *_: False)


@pytest.mark.parametrize(
    ("predicate", "reads"),
    [
        # Of values that lie evenly between -1 and 0.5, a third would match.
        ("key > 0", [([0, 1, 2, 3, 4, 5], ["key", "x"])]),
        # Bounds tell nothing. The second row group is the last that is asked by itself.
        ("key * key < 0.9D", [([0], ["key"]), ([0], ["x"]), ([1, 2, 3, 4, 5], ["key", "x"])]),
    ],
)
def test_where_matches_are_expected_all_columns_are_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, predicate: str, reads: list[tuple[list[int], list[str]]]
) -> None:
    """By bounds, or after row groups with matches."""
    hit = np.arange(6_000) % 2 == 0
    data = pa.table({"key": np.where(hit, 0.5, -1.0), "x": np.random.default_rng(0).random(6_000)})
    pq.write_table(data, tmp_path / "a.parquet", row_group_size=1_000)
    large_row_groups(monkeypatch)
    asked = asked_of_pyarrow(monkeypatch)
    plan = sec.prune(sec.open_table(str(tmp_path)), predicate, strict=True)
    assert plan.to_arrow() == data.filter(pa.array(hit))
    assert asked == reads


def test_after_row_groups_without_a_match_the_condition_is_asked_first_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 20
    first = np.arange(n) < n // 2  # row groups in which every other row matches; in the others none does
    hit = np.repeat(first, 1_000) & (np.arange(n * 1_000) % 2 == 0)
    key = np.where(hit, 0.5, np.where(np.arange(n * 1_000) % 4 == 1, -1.0, 2.0))  # within equal bounds
    data = pa.table({"key": key, "x": np.random.default_rng(0).random(n * 1_000)})
    pq.write_table(data, tmp_path / "a.parquet", row_group_size=1_000)
    large_row_groups(monkeypatch)
    monkeypatch.setattr(row_group_reader, "MOST_TOGETHER", 1)  # so that each is read by itself
    asked = asked_of_pyarrow(monkeypatch)
    plan = sec.prune(sec.open_table(str(tmp_path)), "key between 0 and 1", strict=True)
    assert plan.to_arrow() == data.filter(pa.array(hit))
    with_other = {row_group for row_groups, names in asked if "x" in names for row_group in row_groups}
    assert set(range(n // 2)) <= with_other
    assert n - 1 not in with_other, "of the last, the key alone was read"


def test_row_groups_read_by_pages_are_not_read_with_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All match but one row group, of which its page index leaves a page."""
    n = 5_000
    at = np.arange(n)
    hit = (at // 1_000 != 3) | (at == 3_500)
    data = pa.table({"key": np.where(hit & (at % 1_000 != 0), 0.5, -1.0), "x": np.random.default_rng(0).random(n)})
    pq.write_table(
        data, tmp_path / "a.parquet", row_group_size=1_000, write_page_index=True, max_rows_per_page=10,
        use_dictionary=False,
    )  # fmt: skip
    table = sec.open_table(str(tmp_path))
    sec.build_index(table)
    large_row_groups(monkeypatch)
    for constant in ("PAGE_COST", "BYTE_COST"):
        monkeypatch.setattr(row_group_reader, constant, 0.5)
    monkeypatch.setattr(late_materialization, "MOST_HIT", 2.0)
    asked = asked_of_pyarrow(monkeypatch)
    plan = sec.prune(table, "key > 0", strict=True)
    assert plan.to_arrow() == data.filter(pa.array(data["key"].to_numpy() > 0))
    assert all(3 not in row_groups for row_groups, _ in asked)


@given(ranges, st.data())
def test_a_condition_is_evaluated_on_selected_rows_alone(selected: np.ndarray, data: st.DataObject) -> None:
    n = len(selected)
    live = np.array(sorted(data.draw(st.sets(st.integers(0, n - 1)))), np.int64)  # deleted rows are not among them
    among = chosen_rows(np.flatnonzero(selected)).among(live)
    assert among.tolist() == selected[live].tolist()
    asked: list[int] = []

    def even(_: object, batch: pa.RecordBatch) -> np.ndarray:
        asked.extend(batch["row"].to_pylist())
        return batch["row"].to_numpy() % 2 == 0

    condition = RowCondition(Truth(True), even)
    vars(condition)["columns"] = frozenset({"row"})
    batch = pa.RecordBatch.from_arrays([pa.array(live), pa.nulls(len(live))], ["row", "other"])
    passing = condition.among(batch, among)
    assert asked == live[among].tolist()
    assert passing.tolist() == [bool(selected[row]) and row % 2 == 0 for row in live.tolist()]


@given(st.integers(0, 60), cuts, cuts)
def test_columns_are_aligned_however_they_are_cut(n: int, ends: list[int], other_ends: list[int]) -> None:
    def cut(ends: list[int]) -> list[slice]:
        return [slice(*pair) for pair in pairwise([0, *sorted(min(end, n) for end in ends), n])]

    def batch(rows: slice) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.array(range(n)[rows], pa.int64())], ["row"])

    ended: list[bool] = []

    def others() -> Iterator[pa.RecordBatch]:
        yield from map(batch, cut(other_ends))
        ended.append(True)

    at = np.arange(n)
    tested = ((at[rows], batch(rows), at[rows] % 3 == 0) for rows in cut(ends))
    parts = list(late_materialization._aligned(tested, others()))
    assert [row for *_, rest in parts for row in rest["row"].to_pylist()] == at.tolist()
    for positions, first, passing, rest in parts:
        assert positions.tolist() == first["row"].to_pylist() == rest["row"].to_pylist()
        assert passing.tolist() == [row % 3 == 0 for row in positions.tolist()]
    assert ended, "a read checks the file at its end"


def test_rows_whose_texts_exceed_one_chunk_keep_their_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 3_000
    at = np.arange(n)
    hit = at % 900 == 7
    data = pa.table({"key": np.where(hit, 0.5, np.where(at % 2, -1.0, 2.0)), "x": np.random.default_rng(0).random(n)})
    pq.write_table(data, tmp_path / "a.parquet", write_page_index=True, max_rows_per_page=100, use_dictionary=False)
    large_row_groups(monkeypatch)
    monkeypatch.setattr(row_group_reader, "BATCH_ROWS", 700)
    monkeypatch.setattr(late_materialization, "MOST_HIT", 2.0)
    monkeypatch.setattr(late_materialization, "_combined", lambda rows: rows)  # chunks of a match or two
    read = sec.prune(sec.open_table(str(tmp_path)), "key between 0 and 1", strict=True).to_arrow(["_pos", "key", "x"])
    assert read.drop_columns("_pos") == data.filter(pa.array(hit))
    assert read["_pos"].to_pylist() == np.flatnonzero(hit).tolist()


def asked_of_pyarrow(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[int], list[str]]]:
    """Return a list that grows by the row groups and columns of every read by pyarrow."""
    asked: list[tuple[list[int], list[str]]] = []
    real = row_group_reader.RowGroupReader._all_batches

    def noted(
        self: row_group_reader.RowGroupReader, row_groups: list[int], names: list[str], *others: object
    ) -> object:
        asked.append((list(row_groups), list(names)))
        return real(self, row_groups, names, *others)

    monkeypatch.setattr(row_group_reader.RowGroupReader, "_all_batches", noted)
    return asked
