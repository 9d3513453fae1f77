"""Tuples of sort keys: their bytes order as ORDER BY does, and what a predicate asks of them loses no row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cmp_to_key
from itertools import pairwise, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from secateur.errors import EvaluationError, IncomparableLiteral, UnsupportedPredicate
from secateur.index.zones import zonemap
from secateur.index.zones.sort_key import SortColumn, parse_sort_column, tuple_bounds
from secateur.index.zones.zonemap import ZoneMap
from secateur.pruning.bounds.key_bytes import encode_rows
from secateur.pruning.bounds.outcomes import FALSE, NULL, TRUE
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.column_keys import keys_where
from secateur.pruning.predicate.key_ranges import MOST_ALTERNATIVES, MOST_INTERVALS, KeyColumn, key_ranges
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.predicate.rewrite import rewrite
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.rows.truth import matching_rows, truth
from secateur.values.conversion import keys_of
from tests.support.drawn.strategies import BY_NAME, KINDS, ColumnKind, array_of, conditions, connected
from tests.support.profiles import examples

Row = tuple[Any, ...]

# ---- ORDER BY, as Spark has it ---------------------------------------------------------------------------------------


def compare_values(a: Any, b: Any) -> int:
    """NaN equals itself and is the greatest; strings compare by UTF-8, all else as Python does."""
    if isinstance(a, str):
        a, b = a.encode("utf-8", "surrogatepass"), b.encode("utf-8", "surrogatepass")
    if a != a or b != b:
        return int(a != a) - int(b != b)
    return int(a > b) - int(a < b)


def compare_rows(a: Row, b: Row, order: Sequence[SortColumn]) -> int:
    for x, y, column in zip(a, b, order, strict=True):
        if x is None or y is None:
            sign = (int(x is None) - int(y is None)) * (-1 if column.nulls_first else 1)
        else:
            sign = compare_values(x, y) * (-1 if column.descending else 1)
        if sign:
            return sign
    return 0


# ---- random keys and blocks ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeyedBlocks:
    """Blocks of rows of the columns of a sort key; column i is named ``c<i>``."""

    kinds: tuple[ColumnKind, ...]
    order: tuple[SortColumn, ...]
    blocks: tuple[tuple[Row, ...], ...]
    pools: tuple[tuple[Any, ...], ...]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(f"c{i}", kind.type) for i, kind in enumerate(self.kinds)])

    def columns(self, rows: Sequence[Row]) -> list[pa.Array]:
        return [array_of([row[i] for row in rows], kind.type) for i, kind in enumerate(self.kinds)]

    def key(self) -> list[KeyColumn]:
        fields = [Field((f"c{i}",), kind.type) for i, kind in enumerate(self.kinds)]
        return [KeyColumn(f, s.descending, s.nulls_first) for f, s in zip(fields, self.order, strict=True)]


@st.composite
def keyed_blocks(draw: st.DrawFn, least_columns: int = 1) -> KeyedBlocks:
    kinds = tuple(draw(st.lists(st.sampled_from(KINDS), min_size=least_columns, max_size=4)))
    order = tuple(SortColumn((f"c{i}",), draw(st.booleans()), draw(st.booleans())) for i in range(len(kinds)))
    pools = tuple(tuple(draw(st.lists(kind.values, min_size=1, max_size=4))) for kind in kinds)
    row = st.tuples(*(st.sampled_from(pool) | st.none() | st.sampled_from(pool) for pool in pools))
    rows = draw(st.lists(row, min_size=1, max_size=16))
    if draw(st.booleans()):
        rows.sort(key=cmp_to_key(lambda a, b: compare_rows(a, b, order)))
    size = draw(st.integers(1, 4))
    blocks = [tuple(rows[i : i + size]) for i in range(0, len(rows), size)]
    return KeyedBlocks(kinds, order, tuple(blocks), pools)


def encoded(table: KeyedBlocks, rows: Sequence[Row]) -> list[bytes]:
    columns = table.columns(rows)
    components = [s.component(values.type) for s, values in zip(table.order, columns, strict=True)]
    return encode_rows(columns, components).to_pylist()


def zone_map(bounds: Sequence[tuple[bytes, bytes] | None]) -> ZoneMap:
    """The zone map of the hidden column, as a build makes it."""
    lower, upper = zip(*((None, None) if b is None else b for b in bounds), strict=True)
    zeros = np.zeros(len(bounds), np.int64)
    arrays = (pa.array(list(side), pa.binary()) for side in (lower, upper))
    return zonemap.from_bounds(pa.binary(), *arrays, zeros, zeros, zeros + 1)


def bound(text: str, schema: pa.Schema, zone: str = "UTC") -> Any:
    return rewrite(bind(parse(text), schema, session_time_zone=zone))


# ---- bytes -----------------------------------------------------------------------------------------------------------


@given(keyed_blocks())
def test_bytes_order_as_order_by_does(table: KeyedBlocks) -> None:
    rows = [row for block in table.blocks for row in block]
    tuples = encoded(table, rows)
    for a, x in zip(rows, tuples, strict=True):
        for b, y in zip(rows, tuples, strict=True):
            assert (x > y) - (x < y) == compare_rows(a, b, table.order), (a, b)


@given(keyed_blocks())
def test_no_component_is_a_prefix_of_another(table: KeyedBlocks) -> None:
    """So tuples with the same leading components are those with the same prefix."""
    for i, (column, kind) in enumerate(zip(table.order, table.kinds, strict=True)):
        values = [*table.pools[i], None]
        components = set(column.component(kind.type).encode_all(array_of(values, kind.type)).to_pylist())
        assert not any(a != b and b.startswith(a) for a in components for b in components)


@given(keyed_blocks())
def test_one_key_is_written_as_many_are(table: KeyedBlocks) -> None:
    for i, (column, kind) in enumerate(zip(table.order, table.kinds, strict=True)):
        component = column.component(kind.type)
        for array in (
            array_of([*table.pools[i], *table.pools[i]], kind.type),
            array_of([*table.pools[i], None], kind.type),
        ):
            array = array.slice(1)
            keys = keys_of(array)
            one_by_one = [component.encode(keys.at(j) if array[j].is_valid else None) for j in range(len(array))]
            assert component.encode_all(array).to_pylist() == one_by_one


def test_the_bytes_are_those_of_the_format() -> None:
    ascending, descending = SortColumn(("a",)), SortColumn(("a",), descending=True, nulls_first=False)
    for type_, value, body in (
        (pa.int32(), 1, "8000000000000001"),
        (pa.int64(), -1, "7fffffffffffffff"),
        (pa.float64(), -0.0, "8000000000000000"),
        (pa.float32(), float("nan"), "fff8000000000000"),
        (pa.decimal128(38, 0), 1, "80000000000000000000000000000001"),
        (pa.string(), "a\0b", "6100ff620001"),
        (pa.binary(), b"", "0001"),
    ):
        values = pa.array([value, None], type_)
        inverted = bytes(255 - b for b in bytes.fromhex(body)).hex()
        for column, expected in ((ascending, ["01" + body, "00"]), (descending, ["01" + inverted, "02"])):
            assert [v.hex() for v in column.component(type_).encode_all(values).to_pylist()] == expected


# ---- bounds of a block -----------------------------------------------------------------------------------------------


@given(keyed_blocks())
def test_bounds_are_the_least_and_the_greatest_tuple(table: KeyedBlocks) -> None:
    for rows in table.blocks:
        tuples = encoded(table, rows)
        assert tuple_bounds(table.columns(rows), table.order) == (min(tuples), max(tuples))


@given(keyed_blocks())
def test_bounds_that_are_cut_still_hold(table: KeyedBlocks) -> None:
    bounds = [tuple_bounds(table.columns(rows), table.order) for rows in table.blocks]
    cut = zone_map(bounds)
    for i, block in enumerate(bounds):
        assert block is not None
        lower, upper = cut.lower.at(i), cut.upper.at(i)
        assert isinstance(lower, bytes)
        assert isinstance(upper, bytes)
        assert lower == block[0][: zonemap.BOUND_BYTES]
        assert upper >= block[1]
        assert len(upper) <= zonemap.BOUND_BYTES


def test_a_block_without_rows_has_no_bounds() -> None:
    assert tuple_bounds([pa.array([], pa.int64())], [SortColumn(("a",))]) is None
    assert zone_map([None]).upper.words[-1][0] == 2**64 - 1


def test_a_type_without_order_is_refused() -> None:
    with pytest.raises(ValueError, match="no order"):
        tuple_bounds([pa.array([[1]])], [SortColumn(("a",))])


# ---- what a predicate asks of the tuples -----------------------------------------------------------------------------


def leaf(table: KeyedBlocks, i: int) -> st.SearchStrategy[str]:
    kind = table.kinds[i]
    values = st.sampled_from(table.pools[i]) | st.sampled_from(table.pools[i]) | kind.values
    literals = values.flatmap(kind.literal)
    equal = literals.map(lambda literal: f"c{i} = {literal}")
    return conditions(f"c{i}", literals, kind) | equal | equal | st.just(f"c{i} IS NULL")


def predicates(table: KeyedBlocks) -> st.SearchStrategy[str]:
    """Mostly conjunctions of a condition on every one of the first columns, which are what fixes a prefix."""
    box = st.integers(2, len(table.kinds)).flatmap(
        lambda n: st.tuples(*(leaf(table, i) for i in range(n))).map(" AND ".join)
    )
    boxes = st.lists(box, min_size=1, max_size=3)
    return (
        box
        | boxes.map(lambda several: " OR ".join(f"({one})" for one in several))
        | st.tuples(box, box, box).map(lambda t: f"({t[0]}) AND (({t[1]}) OR ({t[2]}))")
        | box.map(lambda one: f"NOT ({one})")
        | st.tuples(box, box).map(lambda t: f"(({t[0]}) IS NOT TRUE) OR (({t[1]}) IS TRUE)")
    )


def asked_of(table: KeyedBlocks, data: st.DataObject) -> tuple[str, Predicate, RangeSet | None]:
    """A predicate as text and bound, and the tuples that it asks for, in so many ranges."""
    text = data.draw(predicates(table))
    try:
        predicate = bound(text, table.schema)
    except IncomparableLiteral:
        assume(False)
    return text, predicate, key_ranges(predicate, table.key(), data.draw(st.sampled_from([1, 2, 3, 5, 64])))


@examples(150)
@given(keyed_blocks(least_columns=2), st.data())
def test_no_block_with_a_match_is_ruled_out(table: KeyedBlocks, data: st.DataObject) -> None:
    text, predicate, ranges = asked_of(table, data)
    if ranges is None:
        return
    bounds = zone_map([tuple_bounds(table.columns(rows), table.order) for rows in table.blocks])
    survives, _ = ranges.overlap(bounds.lower, bounds.upper)
    for rows, kept in zip(table.blocks, survives, strict=True):
        if not kept:
            assert not matches(predicate, table, rows).any(), text


@examples(150)
@given(keyed_blocks(least_columns=2), st.data())
def test_every_matching_tuple_lies_inside(table: KeyedBlocks, data: st.DataObject) -> None:
    """The same without cutting, which hides what is just outside."""
    text, predicate, ranges = asked_of(table, data)
    if ranges is not None:
        rows = [row for block in table.blocks for row in block]
        for row, kept in zip(rows, inside(ranges, encoded(table, rows)), strict=True):
            assert kept or not matches(predicate, table, [row]).any(), (text, row)


def inside(ranges: RangeSet, keys: Sequence[bytes]) -> np.ndarray:
    return np.array([sum(key >= threshold for threshold in ranges.thresholds) % 2 == 1 for key in keys])


def matches(predicate: Any, table: KeyedBlocks, rows: Sequence[Row]) -> np.ndarray:
    """Which rows match; none where only Spark can tell, or Spark raises an error."""
    batch = pa.RecordBatch.from_arrays(table.columns(rows), schema=table.schema)
    try:
        return matching_rows(predicate, batch)
    except (UnsupportedPredicate, EvaluationError):
        return np.zeros(len(rows), bool)


# Few values in every column, and all tuples of them: so that literals meet values, and ranges end beside them.

DENSE = [
    (pa.int64(), (-1, 0, 1, 2), ("-1", "0", "1", "2")),
    (pa.int64(), (-(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1), ("-9223372036854775808", "9223372036854775807", "0")),
    (pa.float64(), (float("-inf"), -0.0, 1.0, float("nan")), ("0D", "1D", "CAST('NaN' AS DOUBLE)")),
    (pa.decimal128(38, 0), (Decimal(-1), Decimal(0), Decimal(1), Decimal(2)), ("-1", "0", "1", "2")),
    (pa.string(), ("", "a", "a\0\0", "b"), ("''", "'a'", "'a\0\0'", "'aa'")),
]
FORMS = ["{c} = {x}", "{c} IN ({x}, {y})", "{c} < {x}", "{c} <= {x}", "{c} > {x}", "{c} >= {x}", "{c} <> {x}"]
FORMS += ["{c} BETWEEN {x} AND {y}", "{c} IS NULL", "{c} IS NOT NULL", "({c} > {x}) IS NOT TRUE"]
POINTS = ["{c} = {x}", "{c} IN ({x}, {y})", "{c} IS NULL", "({c} = {x} OR {c} IS NULL)", "({c} <> {x}) IS NOT TRUE"]


@st.composite
def dense_tables(draw: st.DrawFn) -> tuple[KeyedBlocks, list[tuple[str, ...]]]:
    """All tuples of two or three columns of few values, each a block, and the literals for every column."""
    chosen = draw(st.lists(st.sampled_from(DENSE), min_size=2, max_size=3))
    order = tuple(SortColumn((f"c{i}",), draw(st.booleans()), draw(st.booleans())) for i in range(len(chosen)))
    kinds = tuple(ColumnKind(f"c{i}", type_, st.nothing(), st.just) for i, (type_, _, _) in enumerate(chosen))
    pools = tuple((*values, None) for _, values, _ in chosen)
    return KeyedBlocks(kinds, order, tuple((row,) for row in product(*pools)), pools), [x for _, _, x in chosen]


def condition(column: int, literals: Sequence[str], forms: Sequence[str]) -> st.SearchStrategy[str]:
    ordered = st.lists(st.sampled_from(literals), min_size=2, max_size=2).map(
        lambda pair: sorted(pair, key=literals.index)
    )
    return st.builds(lambda form, xy: form.format(c=f"c{column}", x=xy[0], y=xy[1]), st.sampled_from(forms), ordered)


def conjunctions(literals: Sequence[Sequence[str]], *forms: Sequence[str]) -> st.SearchStrategy[str]:
    """A condition on every column, in one of the forms for its place; the last forms are for all further columns."""
    of_column = [*forms, *[forms[-1]] * len(literals)]
    return st.tuples(*(condition(i, x, of_column[i]) for i, x in enumerate(literals))).map(" AND ".join)


@examples(500)
@given(dense_tables(), st.sampled_from([1, 1, 2, 3, 64]), st.data())
def test_every_matching_tuple_of_all_lies_inside(
    case: tuple[KeyedBlocks, list[tuple[str, ...]]], most: int, data: st.DataObject
) -> None:
    table, literals = case
    one = conjunctions(literals, [*POINTS, *POINTS, *FORMS], FORMS)
    text = data.draw(one | st.lists(one, min_size=2, max_size=3).map(lambda all_: " OR ".join(f"({p})" for p in all_)))
    predicate = bound(text, table.schema)
    ranges = key_ranges(predicate, table.key(), most)
    if ranges is not None:
        assert all(a < b for a, b in pairwise(ranges.thresholds))
        rows = [row for (row,) in table.blocks]
        wrong = matches(predicate, table, rows) & ~inside(ranges, encoded(table, rows))
        assert not wrong.any(), [row for row, bad in zip(rows, wrong, strict=True) if bad]


@examples(200)
@given(dense_tables(), st.data())
def test_points_and_then_a_range_are_told_exactly(
    case: tuple[KeyedBlocks, list[tuple[str, ...]]], data: st.DataObject
) -> None:
    """Nothing else lies inside where all columns but the last are asked for single values."""
    table, literals = case
    last = len(literals) - 1
    predicate = bound(data.draw(conjunctions(literals, *[POINTS] * last, FORMS)), table.schema)
    ranges = key_ranges(predicate, table.key())
    rows = [row for (row,) in table.blocks]
    if ranges is None:  # `(b > greatest) IS NOT TRUE` asks for nothing
        return
    assert inside(ranges, encoded(table, rows)).tolist() == matches(predicate, table, rows).tolist()


def trees(table: KeyedBlocks, literals: Sequence[Sequence[str]]) -> st.SearchStrategy[str]:
    """Conditions on any columns under AND, OR, NOT and IS; some fail where a bigint overflows."""
    forms = {True: [*FORMS, "{c} + 1 > {x}", "{c} - 1 <= {x}"], False: FORMS}
    leaves = [condition(i, x, forms[table.kinds[i].type == pa.int64()]) for i, x in enumerate(literals)]
    return connected(st.one_of(leaves), ["TRUE", "NOT FALSE", "NOT TRUE", "NULL"], max_leaves=5)


@examples(400)
@given(dense_tables(), st.booleans(), st.data())
def test_values_of_a_column_where_a_predicate_is_true_false_or_null(
    case: tuple[KeyedBlocks, list[tuple[str, ...]]], rewritten: bool, data: st.DataObject
) -> None:
    table, literals = case
    predicate = bind(parse(data.draw(trees(table, literals))), table.schema)
    predicate = rewrite(predicate) if rewritten else predicate
    columns = table.columns([row for (row,) in table.blocks])
    outcomes = truth(predicate, pa.RecordBatch.from_arrays(columns, schema=table.schema))
    for column, values in zip(table.key(), columns, strict=True):
        null = np.asarray(values.is_null())
        for value, bit in ((True, TRUE), (False, FALSE), (None, NULL)):
            said = keys_where(predicate, value, column.field)
            kept = np.where(null, said.null, said.values.contains(keys_of(values)))
            assert kept[(outcomes & bit) != 0].all(), (predicate, column.field, value)


LONG = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("c", pa.string())])


def asked(text: str, *order: str) -> RangeSet | None:
    sort_columns = [parse_sort_column(column) for column in order]
    key = [KeyColumn(Field(s.path, LONG.field(s.path[0]).type), s.descending, s.nulls_first) for s in sort_columns]
    return key_ranges(bound(text, LONG), key)


def alive(text: str, order: Sequence[str], *blocks: Sequence[Row]) -> list[bool]:
    """Which blocks of rows of the columns of a key survive what a predicate asks of their tuples."""
    ranges = asked(text, *order)
    assert ranges is not None
    sort_columns = [parse_sort_column(column) for column in order]
    types = [LONG.field(s.path[0]).type for s in sort_columns]
    columns = [[pa.array(values, t) for values, t in zip(zip(*b, strict=True), types, strict=True)] for b in blocks]
    bounds = zone_map([tuple_bounds(block, sort_columns) for block in columns])
    return ranges.overlap(bounds.lower, bounds.upper)[0].tolist()


EDGE = [(5, 90), (6, 10)]  # a block that ends one value of the first column and begins the next


@pytest.mark.parametrize(
    ("text", "survives"),
    [
        ("a = 5 AND b = 50", False),
        ("a = 5 AND b = 90", True),
        ("a = 5 AND b = 95", True),
        ("a = 6 AND b > 10", False),
        ("a = 6 AND b <= 10", True),
        ("a IN (5, 6) AND b BETWEEN 20 AND 80", False),
        ("a IN (5, 7) AND b <= 80", False),
        ("a BETWEEN 4 AND 7 AND b = 50", False),  # few values, one range each
        ("(a = 5 AND b < 90) OR (a = 6 AND b > 10)", False),
        ("a > 6 OR (a = 6 AND b > 10)", False),  # the next page of a listing
        ("a = 5 AND b IS NULL", False),
        ("a IS NULL AND b = 50", False),
    ],
)
def test_a_block_at_the_edge_of_a_value_is_ruled_out(text: str, survives: bool) -> None:
    assert alive(text, ["a", "b"], EDGE) == [survives]


def test_columns_that_descend_and_nulls() -> None:
    order = ["a DESC", "b DESC NULLS LAST", "c NULLS LAST"]
    first, second = [(6, 10, "x"), (5, 90, "m")], [(5, 90, "n"), (5, None, "a")]
    assert alive("a = 6 AND b = 20", order, first, second) == [False, False]
    assert alive("a = 5 AND b = 90 AND c < 'n'", order, first, second) == [True, False]
    assert alive("a = 5 AND b = 90 AND c >= 'n'", order, first, second) == [False, True]
    assert alive("a = 5 AND b IS NULL", order, first, second) == [False, True]
    assert alive("a = 5 AND b IS NULL AND c > 'a'", order, first, second) == [False, False]


def test_the_ends_of_a_range_are_drawn_in_by_the_next_column() -> None:
    order = ["a", "b", "c"]
    first, last = [[(5, 10, c)] for c in "ady"], [[(5, 99999, c)] for c in "axy"]
    text = "a = 5 AND b BETWEEN 10 AND 99999 AND c IN ('d', 'x')"
    assert alive(text, order, *first) == [False, True, True]
    assert alive(text, order, *last) == [True, True, False]
    descending = ["a", "b DESC", "c"]
    assert alive(text, descending, *first) == [True, True, False]
    assert alive(text, descending, *last) == [False, True, True]


@pytest.mark.parametrize(
    "text",
    [
        "TRUE",
        "a = 5",
        "b = 5",
        "a > 5 AND b = 50",
        "a BETWEEN 5 AND 100000 AND b = 50",
        "a IS NOT NULL AND b = 50",
        "a = 5 OR b = 50",
        "a = 5 AND c = 'x'",
        "abs(a) = 5 AND b = 50",
    ],
)
def test_nothing_follows_that_the_first_column_does_not_tell(text: str) -> None:
    assert asked(text, "a", "b", "c") is None


def test_many_values_give_few_ranges() -> None:
    """The ranges of the last columns are joined first; then the first column has no points left."""
    listed = ", ".join(map(str, range(0, 2 * MOST_INTERVALS, 2)))
    full = asked(f"a IN ({listed}) AND b IN (1, 3)", "a", "b")
    assert full is not None
    assert len(full.thresholds) == 2 * MOST_INTERVALS
    assert asked(f"a IN ({listed}, -2) AND b = 1", "a", "b") is None


def test_of_many_alternatives_each_column_is_read_by_itself() -> None:
    either = " OR ".join(f"(a = {i} AND b = {i})" for i in range(MOST_ALTERNATIVES))
    another = f"{either} OR (a = {MOST_ALTERNATIVES} AND b = 0)"
    blocks = [[(3, 3)], [(3, 60)], [(3, 70)]]
    assert alive(either, ["a", "b"], *blocks) == [True, False, False]
    assert alive(another, ["a", "b"], *blocks) == [True, True, False]


# ---- sort columns as text --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path", "descending", "nulls_first"),
    [
        ("ts", ("ts",), False, True),
        ("ts DESC", ("ts",), True, False),
        (" ts  desc  Nulls First ", ("ts",), True, True),
        ("ts asc nulls last", ("ts",), False, False),
        ("ts NULLS LAST", ("ts",), False, False),
        ("desc", ("desc",), False, True),
        ("desc desc", ("desc",), True, False),
        ("nulls nulls last", ("nulls",), False, False),
        ("`desc nulls last`", ("desc nulls last",), False, True),
        ("`a.b`.`c``d` DESC", ("a.b", "c`d"), True, False),
        ("address.zip", ("address", "zip"), False, True),
        ("größe ASC", ("größe",), False, True),
    ],
)
def test_a_sort_column_is_read_as_spark_does(text: str, path: Row, descending: bool, nulls_first: bool) -> None:
    assert parse_sort_column(text) == SortColumn(path, descending, nulls_first)


names = st.sampled_from(["a", "desc", "nulls", "a b", "a.b", "`", "1", "ASC", "größe"]) | st.text(min_size=1)


@given(st.lists(names, min_size=1, max_size=3).map(tuple), st.booleans(), st.booleans())
def test_a_sort_column_is_read_back(path: tuple[str, ...], descending: bool, nulls_first: bool) -> None:
    column = SortColumn(path, descending, nulls_first)
    assert parse_sort_column(str(column)) == column


@pytest.mark.parametrize("text", ["", " ", "ts down", "ts NULLS", "ts NULLS LAST DESC", "a, b", "year(ts)", "`a", "a."])
def test_other_text_is_not_a_sort_column(text: str) -> None:
    with pytest.raises(ValueError, match="not a sort column"):
        parse_sort_column(text)


def test_a_widened_column_keeps_its_bytes() -> None:
    column = BY_NAME["i"]
    narrow, wide = (SortColumn(("a",)).component(t).encode_all(pa.array([7], t)) for t in (column.type, pa.int64()))
    assert narrow.equals(wide)
