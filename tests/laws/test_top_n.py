"""The first n rows of an order are those that sorting all matching rows gives, but for the choice among equal ones."""

from __future__ import annotations

import functools
import pickle
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from conformance.files import write_file
from conformance.footers import NULL_COUNT, without
from secateur.index.model import BuildOptions
from secateur.io.scan.first_rows import PARTS, FirstRows
from secateur.scan import Scan
from tests.support.drawn.low_limits import LOWERED, low_limits
from tests.support.profiles import examples
from tests.support.small_tables import TYPES, WHERE, Row, Where, files, rows_of, written
from tests.support.stores.local_build import index_here
from tests.support.tables import WriteTable

SPELLED = {
    (False, True): ("", " ASC", " ASC NULLS FIRST", " nulls first"),
    (False, False): (" NULLS LAST", " asc nulls last"),
    (True, False): (" DESC", " desc NULLS LAST"),
    (True, True): (" DESC NULLS FIRST",),
}
Item = tuple[str, bool, bool]  # column, descending, NULL first


@st.composite
def orders(draw: st.DrawFn) -> tuple[list[Item], list[str]]:
    """Some columns to order by, and how they may be written."""
    names = draw(st.lists(st.sampled_from([*TYPES, "p"]), min_size=1, max_size=3, unique=True))
    items = [(name, draw(st.booleans()), draw(st.booleans())) for name in names]
    return items, [name + draw(st.sampled_from(SPELLED[direction, nulls])) for name, direction, nulls in items]


def value(row: Row, name: str) -> Any:
    """A value as ORDER BY sees it: NaN is one value, and so is zero."""
    cell = row[name]
    return ("NaN",) if cell != cell else 0.0 if cell == 0 and isinstance(cell, float) else cell


def compare(items: Sequence[Item], a: Row, b: Row) -> int:
    """Whether a row comes before (-1) or after (1) another one."""
    for name, descending, nulls_first in items:
        x, y = value(a, name), value(b, name)
        if x == y:
            continue
        if x is None or y is None:
            return -1 if (x is None) == nulls_first else 1
        first = y == ("NaN",) or (x != ("NaN",) and order_of(x) < order_of(y))
        return -1 if first != descending else 1
    return 0


def order_of(cell: Any) -> Any:
    """What text sorts by: its bytes."""
    return cell.encode() if isinstance(cell, str) else cell


def check(items: Sequence[Item], rows: Sequence[Row], limit: int, answer: Sequence[Row]) -> None:
    """The sort columns are those of the first rows, in order, and every row is one of the table."""
    wanted = sorted(rows, key=functools.cmp_to_key(functools.partial(compare, items)))[:limit]
    assert [[value(row, i[0]) for i in items] for row in answer] == [
        [value(row, i[0]) for i in items] for row in wanted
    ]
    names = list(answer[0]) if answer else []
    left = Counter(repr([row[name] for name in names]) for row in rows)
    assert Counter(repr([row[name] for name in names]) for row in answer) <= left


@examples(400, shrink=False)
@given(files(), WHERE, orders(), st.integers(0, 12), LOWERED, st.data())
def test_the_first_rows_are_those_of_the_whole_order(
    chosen: list[tuple[str, pa.Table, int]],
    where: Where,
    order: tuple[list[Item], list[str]],
    limit: int,
    lowered: tuple[int, float],
    data: st.DataObject,
) -> None:
    items, texts = order
    rows = [row for row in rows_of(chosen) if where.holds(row)]
    indexed = data.draw(st.integers(0, len(chosen)))
    with low_limits(*lowered), written(chosen, indexed) as table:
        plan = sec.prune(table, where.sql or "true", order_by=texts, limit=limit, strict=True)
        check(items, rows, limit, plan.to_arrow().to_pylist())
        assert plan.count() == min(limit, len(rows))
        copy: Scan = pickle.loads(pickle.dumps(plan))
        names = [*TYPES, "p"][: data.draw(st.integers(1, len(TYPES)))]
        batches = pa.Table.from_batches(copy.to_batches(names), pa.schema(copy.fields(names)))
        assert batches.column_names == names
        if set(names) >= {name for name, _, _ in items}:
            check(items, rows, limit, batches.to_pylist())


KEYS = [["g"], ["g", "i"], ["g DESC", "i NULLS LAST"], ["s", "g DESC", "i"]]


@st.composite
def groups(draw: st.DrawFn) -> list[tuple[str, pa.Table, int]]:
    """Files of few different values, so that many rows are equal in the first column."""
    grouped = []
    for number in range(draw(st.integers(1, 3))):
        n = draw(st.integers(1, 20))
        few = st.none() | st.integers(0, 2)
        columns = {name: draw(st.lists(few, min_size=n, max_size=n)) for name in "gi"}
        table = pa.table({**columns, "s": [None if v is None else "x" * 70 + str(v) for v in columns["g"]]})
        schema = pa.schema([("g", pa.int64()), ("i", pa.int64()), ("s", pa.string())])
        grouped.append((f"{number}.parquet", table.cast(schema), draw(st.integers(1, 4))))
    return grouped


@examples(300, shrink=False)
@given(groups(), st.sampled_from(KEYS), st.integers(1, 3), st.booleans(), st.integers(1, 9), st.data())
def test_the_tuples_of_the_sort_key_prune_as_the_order_does(
    chosen: list[tuple[str, pa.Table, int]], key: list[str], used: int, reverse: bool, limit: int, data: st.DataObject
) -> None:
    items = []
    for text in key[:used]:
        name, *words = text.split(" ", 1)
        descending = "DESC" in words
        nulls_first = "LAST" not in "".join(words) and not descending
        items.append((name, descending != reverse, nulls_first != reverse))
    texts = [name + SPELLED[descending, nulls][-1] for name, descending, nulls in items]
    rows = [{name: row[name] for name in "gis"} for _, table, _ in chosen for row in table.to_pylist()]
    with written([(path, table, size) for path, table, size in chosen], 0) as table:
        covered = data.draw(st.booleans())
        if covered:
            index_here(table, BuildOptions(sort_key=tuple(key), segment_blocks=2))
        plan = sec.prune(table, "true", order_by=texts, limit=limit, strict=True)
        assert (plan.order_by is not None and plan.order_by.tuples is not None) == (covered and len(items) > 1)
        check(items, rows, limit, plan.to_arrow().to_pylist())


def clustered(root: WriteTable, n: int = 40, rows: int = 100) -> Any:
    """A table of n row groups, each with a range of its own of the column x; y is NULL in every third row."""
    x = np.arange(n * rows)
    columns = {"x": x, "y": pa.array(x, mask=x % 3 == 0), "z": x % 7}
    path = root(
        {f"{i}.parquet": pa.table(columns).slice(i * 10 * rows, 10 * rows) for i in range(n // 10)}, row_group_size=rows
    )
    return sec.open_table(str(path))


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(
    ("order", "limit", "blocks"),
    [
        ("x", 10, 1),
        ("x DESC", 10, 1),
        ("x DESC", 100, 1),
        ("x DESC", 101, 2),
        ("x DESC NULLS FIRST, z", 250, 3),
        ("y DESC", 10, 1),
        ("y NULLS LAST", 67, 2),
        ("y", 10, 40),  # NULLs come first, and every block has some
        ("z", 10, 40),
    ],
)
def test_a_clustered_table_is_read_where_the_order_begins(
    write_table: WriteTable, indexed: bool, order: str, limit: int, blocks: int
) -> None:
    table = clustered(write_table)
    if indexed:
        index_here(table, BuildOptions(segment_blocks=4))
    plan = sec.prune(table, "true", order_by=order, limit=limit)
    assert len(plan.blocks) == blocks
    if indexed and blocks < 40:
        (stage,) = [stage for stage in plan.report.stages if stage.name == "top-n segments"]
        assert stage.after.segments == -(-blocks // 4)  # of 4 blocks each, most of them never looked at
    assert "order: " + str(plan.order_by) in plan.explain()
    assert plan.report.stages[-1].name == "pages"
    assert [stage.name for stage in plan.report.stages].count("top-n") == 1
    assert plan.to_arrow().num_rows == limit


def test_c50_blocks_are_read_once_best_first_until_the_answer_is_sure(
    write_table: WriteTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The boundary moves with every wave, and rules out: no block is read for a second time."""
    from secateur.io.scan import first_rows

    table = clustered(write_table)
    read: list[tuple[str, int]] = []
    original = first_rows.wave

    def noted(plan: Any, positions: np.ndarray, *others: Any) -> Any:
        read.extend((str(position), 0) for position in positions)
        return original(plan, positions, *others)

    monkeypatch.setattr(first_rows, "wave", noted)
    plan = sec.prune(table, "z = 3 AND x % 2 = 0", order_by="x DESC", limit=20)
    assert len(plan.blocks) == 40
    values = plan.to_arrow()["x"].to_pylist()
    assert values == [x for x in range(3999, -1, -1) if x % 7 == 3 and x % 2 == 0][:20]
    assert len(set(read)) == len(read) == 3  # 20 matching rows lie in 3 blocks of 100


NUMBERS = st.integers(-50, 50)


@given(
    values=st.lists(st.lists(NUMBERS, min_size=1, max_size=6), min_size=1, max_size=12)
    | st.lists(st.lists(st.none() | NUMBERS, min_size=1, max_size=6), min_size=1, max_size=12),
    n=st.integers(1, 8),
    descending=st.booleans(),
    nulls_first=st.booleans(),
)
def test_of_blocks_that_overlap_those_with_the_best_bounds_are_left(
    values: list[list[int | None]],
    n: int,
    descending: bool,
    nulls_first: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A bound of numbers is a value of its block: n blocks with the best ones hold n rows that are as good."""
    root = tmp_path_factory.mktemp("overlap")
    with pq.ParquetWriter(root / "a.parquet", pa.schema([("x", pa.int64())])) as writer:
        for block in values:
            writer.write_table(pa.table({"x": pa.array(block, pa.int64())}))
    order = "x" + SPELLED[descending, nulls_first][0]
    plan = sec.prune(sec.open_table(str(root)), "true", order_by=order, limit=n, strict=True)
    rows = [{"x": x} for block in values for x in block]
    check([("x", descending, nulls_first)], rows, n, plan.to_arrow().to_pylist())
    known = [[x for x in block if x is not None] for block in values]
    sign = -1 if descending else 1
    fronts = sorted(min(sign * x for x in block) for block in known if block)
    if len(fronts) >= n and not (nulls_first and any(None in block for block in values)):
        reach = sum(front <= fronts[n - 1] for front in fronts)
        assert len(plan.blocks) <= reach


BLOCKS, OF_BLOCK = 40, 10  # of a table whose blocks may have any number of matches


@given(
    matches=st.one_of(
        st.lists(st.integers(0, OF_BLOCK), min_size=BLOCKS, max_size=BLOCKS),
        st.lists(st.sampled_from([0, 0, 0, 1]), min_size=BLOCKS, max_size=BLOCKS),
    ),
    n=st.integers(1, 30),
    descending=st.booleans(),
    overlap=st.booleans(),
)
def test_waves_read_no_more_than_doubled_ones(
    matches: list[int], n: int, descending: bool, overlap: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What the rows found let expect ends the last wave earlier; it costs a few waves more, and never a row."""
    root = tmp_path_factory.mktemp("waves")
    x = np.arange(BLOCKS * OF_BLOCK)
    if overlap:  # neighbours share their bounds
        x = x.reshape(-1, OF_BLOCK, 2).swapaxes(1, 2).ravel()
    hit = np.concatenate([np.arange(OF_BLOCK) < count for count in matches])
    pq.write_table(pa.table({"x": x, "hit": hit.astype(int)}), root / "a.parquet", row_group_size=OF_BLOCK)
    plan = sec.prune(sec.open_table(str(root)), "hit = 1", order_by="x DESC" if descending else "x", limit=n)
    ours, doubled = (_read_by(search(plan, plan.fields())) for search in (FirstRows, Doubled))
    expected = np.sort(x[hit])[:: -1 if descending else 1][:n].tolist()
    assert ours[0] == doubled[0] == expected
    assert ours[1] <= doubled[1]
    assert ours[2] <= doubled[2] + PARTS


class Doubled(FirstRows):
    """Waves of doubled sizes alone."""

    @property
    def _expected(self) -> int:
        return len(self.unread)


def _read_by(search: FirstRows) -> tuple[list[int], set[int], int]:
    """The values found, the blocks read, and in how many waves."""
    waves = []
    for blocks in search._waves():
        waves.append(blocks)
        search._read(blocks)
    read = np.concatenate([np.zeros(0, np.int64), *waves]).tolist()
    assert len(set(read)) == len(read)
    return search.ranked.rows["x"].to_pylist(), set(read), len(waves)


@pytest.mark.parametrize(("per_block", "read"), [(1, 10), (3, 4)])
def test_few_matches_in_every_block_are_read_block_for_block(tmp_path: Path, per_block: int, read: int) -> None:
    """Ten rows of blocks with one match each lie in ten blocks; doubled waves would read fifteen."""
    x = np.arange(BLOCKS * OF_BLOCK)
    pq.write_table(
        pa.table({"x": x, "hit": (x % OF_BLOCK < per_block).astype(int)}), tmp_path / "a", row_group_size=OF_BLOCK
    )
    plan = sec.prune(sec.open_table([str(tmp_path / "a")]), "hit = 1", order_by="x", limit=10)
    search = FirstRows(plan, plan.fields())
    assert search.run()
    assert np.count_nonzero(~search.unread) == read


def test_a_plan_says_why_a_block_holds_none_of_the_first_rows(write_table: WriteTable) -> None:
    table = clustered(write_table)
    index_here(table, BuildOptions(segment_blocks=4))
    plan = sec.prune(table, "true", order_by="x DESC", limit=3)
    far, near = plan.why("0.parquet", 0), plan.why("3.parquet", 8)
    assert [far.stage, near.stage] == ["top-n segments", "top-n"]
    assert "at least 3 matching rows stand before all of its rows in the order x DESC NULLS LAST" in str(near)
    assert "(x from 3800 to 3899, no NULL)" in str(near)
    notes = [note for stage in plan.report.stages for note in stage.notes]
    assert "3 rows are sure to stand at or before x = 3900" in notes
    assert plan.why("3.parquet", 9).survives


def test_an_audit_looks_at_all_matching_rows(write_table: WriteTable) -> None:
    plan = sec.prune(clustered(write_table), "x >= 1000", order_by="x", limit=3, audit=1.0)
    assert plan.report.audit is not None
    assert plan.report.audit.excluded == 10  # not the blocks that only the order rules out
    assert plan.to_arrow()["x"].to_pylist() == [1000, 1001, 1002]


def test_when_the_time_is_spent_everything_is_read(write_table: WriteTable) -> None:
    plan = sec.prune(clustered(write_table), "z = 2", order_by="x DESC", limit=3, budget_ms=0)
    assert len(plan.blocks) == 40
    assert plan.to_arrow()["x"].to_pylist() == [3999, 3992, 3985]
    assert sec.prune(clustered(write_table), "z = 2", order_by="x", limit=0, budget_ms=0).to_arrow().num_rows == 0


@pytest.mark.parametrize("indexed", [False, True])
def test_c48_files_without_statistics_hold_the_first_rows(tmp_path: Path, indexed: bool) -> None:
    """Their bounds are unknown, those of their segment too: they are kept whatever the others have."""
    for name, values, statistics in (("0", range(10, 30), True), ("1", [-5, 99, 20, 21], False), ("2", [40, 41], True)):
        written_table = pa.table({"x": pa.array(values, pa.int64())})
        pq.write_table(written_table, tmp_path / f"{name}.parquet", row_group_size=2, write_statistics=statistics)
    table = sec.open_table(str(tmp_path))
    if indexed:
        index_here(table, BuildOptions(segment_blocks=4))
    for order, wanted in (("x", [-5, 10, 11]), ("x DESC", [99, 41, 40])):
        plan = sec.prune(table, "true", order_by=order, limit=3, strict=True)
        assert plan.to_arrow()["x"].to_pylist() == wanted
        assert indexed or "1.parquet" in plan.blocks["file"].to_pylist()


@pytest.mark.parametrize("indexed", [False, True])
def test_c49_absent_null_counts(tmp_path: Path, indexed: bool) -> None:
    """Where NULLs come first such a block may begin with one; where they come last, its rows may all be NULL."""
    write_file(tmp_path / "0.parquet", pa.table({"x": [1, 2, 3, 4]}), row_group_size=2)
    unknown = pa.table({"x": pa.array([50, None, 0, None, None, None], pa.int64())})
    write_file(tmp_path / "1.parquet", unknown, row_group_size=2, footer=without(NULL_COUNT))
    table = sec.open_table(str(tmp_path))
    if indexed:
        index_here(table, BuildOptions(sort_key=("x",), segment_blocks=2))
    nulls: list[int | None] = [None] * 4
    for order, wanted in (
        ("x", [*nulls, 0]),
        ("x DESC NULLS FIRST", [*nulls, 50]),
        ("x NULLS LAST", [0, 1, 2, 3, 4]),
        ("x DESC", [50, 4, 3, 2, 1]),
    ):
        for limit in (1, 2, 5):
            plan = sec.prune(table, "true", order_by=order, limit=limit, strict=True)
            assert plan.to_arrow()["x"].to_pylist() == wanted[:limit], (order, limit)


def test_metadata_of_files_that_changed_does_not_lower_the_boundary(write_table: WriteTable) -> None:
    """The segment's rows are those of live files alone: the best block of it is gone."""
    table = clustered(write_table)
    index_here(table, BuildOptions(segment_blocks=40))
    pq.write_table(pa.table({"x": [1], "y": [1], "z": [1]}), f"{table.location}/3.parquet")
    plan = sec.prune(sec.open_table(table.location), "true", order_by="x DESC", limit=5)
    assert plan.to_arrow()["x"].to_pylist() == [2999, 2998, 2997, 2996, 2995]
