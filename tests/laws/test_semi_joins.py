"""A plan with join keys has the rows of a left semi join, on every read path that needs no Spark."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import IncomparableLiteral, InvalidPredicate, UnknownColumn
from secateur.index.model import BuildOptions, FilterOption
from secateur.pruning.bounds import rangeset
from secateur.values.key import INT64_MAX, INT64_MIN
from tests.support.profiles import examples
from tests.support.small_tables import POOLS, TYPES, WHERE, Row, Where, files, rows_of, written
from tests.support.stores.local_build import index_here
from tests.support.tables import WriteTable

COLUMNS = [*TYPES, "p"]
OTHER_TYPES = {  # of keys, which Spark casts without loss
    "i": pa.decimal128(20, 0),
    "small": pa.int64(),
    "s": pa.large_string(),
    "raw": pa.large_binary(),
    "f": pa.float64(),
    "g": pa.float64(),
    "ts": pa.timestamp("us", "Europe/Zurich"),
    "day": pa.date64(),
    "b": pa.bool_(),
    "d": pa.decimal128(20, 5),
    "wide": pa.decimal128(28, 3),
    "p": pa.dictionary(pa.int32(), pa.string()),
}


def plain(value: Any) -> Any:
    """A value as a join compares it: NaN is one value, and so is zero."""
    return "NaN" if value != value else value


@st.composite
def keys(draw: st.DrawFn, rows: list[Row]) -> pa.Table:
    """Keys of one to three columns: those of rows, single values changed, NULLs among them."""
    names = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=3, unique=True))
    chosen = [dict(draw(st.sampled_from(rows))) for _ in range(draw(st.integers(0, 8)))]
    for row in chosen:
        name = draw(st.sampled_from(names))
        if draw(st.booleans()):
            row[name] = draw(st.none() | POOLS.get(name, st.sampled_from(["one", "three"])))
    types = {name: draw(st.sampled_from([TYPES.get(name, pa.string()), OTHER_TYPES[name]])) for name in names}
    return pa.table({name: pa.array([row[name] for row in chosen], type_) for name, type_ in types.items()})


@examples(240, shrink=False)
@given(files(), WHERE, st.booleans(), st.data())
def test_the_rows_are_those_of_a_semi_join(
    chosen: list[tuple[str, pa.Table, int]], where: Where, null_safe: bool, data: st.DataObject
) -> None:
    rows = rows_of(chosen)
    source = data.draw(keys(rows))
    names = source.column_names
    wanted = {tuple(map(plain, key.values())) for key in source.to_pylist() if null_safe or None not in key.values()}
    matching = [row for row in rows if where.holds(row) and tuple(plain(row[name]) for name in names) in wanted]
    expected = Counter(repr([plain(row[name]) for name in COLUMNS]) for row in matching)
    with written(chosen, data.draw(st.integers(0, len(chosen)))) as table:
        plan = sec.prune(table, where.sql or "true", keys=source, on=names, null_safe=null_safe, strict=True, audit=1.0)
        batches = pa.Table.from_batches(pickle.loads(pickle.dumps(plan)).to_batches(), plan.opened.schema)
        for read in (plan.to_arrow(), batches):
            assert Counter(repr([plain(row[name]) for name in COLUMNS]) for row in read.to_pylist()) == expected
        assert plan.count() == len(matching)
        assert plan.to_arrow(["p"]).num_rows == len(matching)
        whole_blocks = [row["row_count"] for row in plan.blocks.to_pylist() if row["fully_matching"]]
        assert sum(whole_blocks) <= len(matching)
        some = sec.prune(table, where.sql or "true", keys=source, on=names, null_safe=null_safe, limit=2)
        assert some.count() == some.to_arrow().num_rows == min(2, len(matching))


FRAMES = [
    pa.table({"k": [3, 3, None, 71]}),
    pa.record_batch({"k": [3, 71]}),
    pd.DataFrame({"k": [3, 71], "more": ["a", "b"]}),
    pl.DataFrame({"k": [3, 71]}),
]
LISTS = [
    [3, 71, None],
    (3, 71),
    {3, 71},
    np.array([3, 71]),
    np.ma.masked_array([3, 4, 71], [False, True, False]),
    pa.array([3, 71]),
    pa.chunked_array([[3], [71]]),
    pl.Series([3, 71]),
    pd.Series([3, 71]),
]


@pytest.fixture
def table(write_table: WriteTable) -> Any:
    """Ten blocks of ten rows: x ascends, a is constant in a block, b is scattered."""
    x = np.arange(100)
    columns = {"x": x, "a": x // 20, "b": x * 37 % 100, "s": [f"s{n}" for n in range(100)], "d": x * 1.5}
    return sec.open_table(str(write_table({"t.parquet": pa.table(columns)}, row_group_size=10)))


@pytest.mark.parametrize("source", [*FRAMES, *LISTS], ids=lambda source: type(source).__module__)
def test_keys_come_from_frames_and_lists(table: Any, source: Any) -> None:
    is_frame = any(source is frame for frame in FRAMES)
    plan = sec.prune(table, "TRUE", keys=source, on={"x": "k"} if is_frame else "x")
    assert plan.to_arrow(["x"])["x"].to_pylist() == [3, 71]
    assert plan.blocks["row_group"].to_pylist() == [0, 7]
    assert "keys)" in plan.explain() and "keys)" in str(plan.residual)
    assert plan.affected().rewritten == ["t.parquet"]


def test_several_columns_prune_together(table: Any) -> None:
    pairs = pa.table({"a": [0, 3], "b": [37, 20]})
    plan = sec.prune(table, "TRUE", keys=pairs, on=["a", "b"])
    assert plan.to_arrow(["x"])["x"].to_pylist() == [1, 60]
    alone = [sec.prune(table, "TRUE", keys=pairs[name], on=name) for name in ("a", "b")]
    assert len(plan.blocks) <= min(len(plan_alone.blocks) for plan_alone in alone) == 4
    assert "Spark" not in str(plan.why("t.parquet", 0))
    assert "(`a`, `b`) IN (2 keys)" in plan.explain(verbose=True)
    swapped = sec.prune(table, "x < 50", keys=pairs, on={"b": "a", "a": "b"})
    assert swapped.count() == 0


def test_a_block_of_one_tuple_matches_with_all_its_rows(write_table: WriteTable) -> None:
    rows = pa.table({"a": [1] * 4 + [2] * 4, "b": ["x"] * 8})
    table = sec.open_table(str(write_table({"t.parquet": rows}, row_group_size=4)))
    plan = sec.prune(table, "TRUE", keys=pa.table({"a": [1, 3], "b": ["x", "y"]}), on=["a", "b"])
    assert plan.blocks["fully_matching"].to_pylist() == [True] and plan.residual is None
    index_here(table, BuildOptions(filters=(FilterOption("postings", "a"),)))
    assert sec.prune(table, "TRUE", keys=[2, 9], on="a", strict=True).count() == 4


@pytest.mark.parametrize(
    ("source", "on", "error", "words"),
    [
        ([1], None, InvalidPredicate, "on="),
        ([1], [], InvalidPredicate, "on is empty"),
        ([1], ["x", "a"], InvalidPredicate, "pass a table"),
        ("12", "x", InvalidPredicate, "not str"),
        ([1, "a"], "x", InvalidPredicate, "one type"),
        (pa.table({"k": [1]}), "x", UnknownColumn, "no column x"),
        (pa.table({"k": [1]}), {"y": "k"}, UnknownColumn, "y"),
        (["1"], "x", IncomparableLiteral, "column x of type int64 with keys of type string"),
        ([1], "s", IncomparableLiteral, "cast the keys"),
        ([2.0**60], "x", IncomparableLiteral, "rounds"),
    ],
)
def test_what_keys_cannot_be_is_told(table: Any, source: Any, on: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        sec.prune(table, "TRUE", keys=source, on=on)
    with pytest.raises(ValueError, match="keys="):
        sec.prune(table, "TRUE", on=on, null_safe=True)


WORDS = st.lists(st.integers(-20, 20) | st.sampled_from([INT64_MIN, INT64_MAX, INT64_MIN + 1, INT64_MAX - 1]))


@examples(300)
@given(WORDS, st.integers(1, 9))
def test_a_cover_holds_all_keys_in_few_intervals(words: list[int], most: int) -> None:
    points = rangeset.integer_points(np.array(words, np.int64))
    first, last = rangeset.covering(points, most)
    assert len(first) <= most and (first <= last).all() and (first[1:] > last[:-1]).all()
    cover = rangeset.integer_spans(first[::-1], last[::-1])
    assert rangeset.intersection(cover, points) == points
    if len(points.thresholds) <= 2 * most:
        assert cover == points
