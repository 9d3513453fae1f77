"""Keys order as Spark orders the values, whatever the type, and every operation on many keys is that on each."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.errors import IndexFault
from secateur.values import (
    INT64_MAX,
    INT64_MIN,
    INT128_MAX,
    INT128_MIN,
    NAN_KEY,
    Key,
    Keys,
    Kind,
    canonical_bytes,
    choose,
    concatenate,
    constant_keys,
    distinct_and_places,
    float_key,
    float_keys,
    greatest_keys,
    greatest_per_group,
    key_of,
    keys_from,
    keys_of,
    kind_of,
    least_key,
    least_per_group,
    prefix_successor,
    same_keys,
    same_width,
    successor,
    words_of,
)
from tests.support.drawn.strategies import KINDS, ColumnKind, array_of, binaries, floats

columns = st.sampled_from(KINDS).flatmap(
    lambda kind: st.tuples(st.just(kind), st.lists(kind.values, min_size=1, max_size=12))
)
words = st.sampled_from([INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX]) | st.integers(-5, 5)
wides = words | st.sampled_from([INT128_MIN, INT128_MAX, 2**64, -(2**64), 2**64 - 1, -(2**64) - 1])
KEYS = {Kind.WORD: words, Kind.WIDE: wides, Kind.BYTES: binaries | st.binary(max_size=20)}
any_keys = st.sampled_from(Kind).flatmap(
    lambda kind: st.tuples(st.just(kind), st.lists(KEYS[kind], min_size=1, max_size=20))
)


def keys(kind: Kind, values: Sequence[Key]) -> Keys:
    """The array of some keys of any kind."""
    match kind:
        case Kind.BYTES:
            return keys_of(pa.array(values, pa.binary()))
        case Kind.WORD:
            return keys_of(pa.array(values, pa.int64()))
        case Kind.WIDE:
            return concatenate([constant_keys(value, kind, 1) for value in values])


def values_of(keys: Keys) -> list[Key]:
    """The single keys of an array."""
    columns = [word.tolist() for word in keys.words]
    match keys.kind:
        case Kind.WORD:
            return columns[0]
        case Kind.WIDE:
            return [(high << 64) | low for high, low in zip(*columns, strict=True)]
        case Kind.BYTES:
            packed = [b"".join(word.to_bytes(8, "big") for word in row) for row in zip(*columns[:-1], strict=True)]
            return [data[:length] for data, length in zip(packed, columns[-1], strict=True)]


def spark_order(value: Any) -> Any:
    """A Python value such that comparing it is comparing in Spark: NaN is the greatest, -0.0 is 0.0."""
    match value:
        case float():
            return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
        case str():
            return value.encode()
        case _:
            return value


# ---- the order of values ---------------------------------------------------------------------------------------------


@given(columns)
def test_keys_order_as_the_values(column: tuple[ColumnKind, list[Any]]) -> None:
    """For every type: key(a) < key(b) iff a < b, and key(a) = key(b) iff a = b."""
    kind, values = column
    as_keys = values_of(keys_of(array_of(values, kind.type)))
    for a, key_a in zip(values, as_keys, strict=True):
        for b, key_b in zip(values, as_keys, strict=True):
            assert (key_a < key_b) == (spark_order(a) < spark_order(b)), (a, b)
            assert (key_a == key_b) == (spark_order(a) == spark_order(b)), (a, b)


@given(columns)
def test_one_key_is_that_of_the_array(column: tuple[ColumnKind, list[Any]]) -> None:
    kind, values = column
    array = array_of(values, kind.type)
    if kind.name.startswith(("far", "ts", "local", "day")):  # integers here; key_of takes what as_py gives
        return
    assert [key_of(value, kind.type) for value in values] == values_of(keys_of(array))


@given(columns, st.data())
def test_slices_and_nulls_leave_the_other_keys_alone(column: tuple[ColumnKind, list[Any]], data: st.DataObject) -> None:
    kind, values = column
    whole = values_of(keys_of(array_of(values, kind.type)))
    start = data.draw(st.integers(0, len(values)))
    assert values_of(keys_of(array_of(values, kind.type)[start:])) == whole[start:]
    with_nulls = [v for value in values for v in (None, value)]
    assert values_of(keys_of(array_of(with_nulls, kind.type)))[1::2] == whole


ORDERED_FLOATS = [-math.inf, -1e308, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1e308, math.inf, math.nan]


def test_c16_nan_is_the_greatest_float_and_equals_itself() -> None:
    keys = [float_key(value) for value in ORDERED_FLOATS]
    assert keys == sorted(set(keys))
    (negative_nan,) = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))
    assert float_key(negative_nan) == float_key(math.nan) == NAN_KEY


def test_c17_negative_zero_is_zero() -> None:
    assert float_key(-0.0) == float_key(0.0) == 0


@given(st.lists(floats(64), max_size=20))
def test_float_keys_of_arrays(values: list[float]) -> None:
    assert float_keys(np.array(values, np.float64)).tolist() == [float_key(value) for value in values]


@given(st.lists(floats(32), min_size=1, max_size=20))
def test_c13_a_float_has_the_key_of_its_double(values: list[float]) -> None:
    narrow, wide = pa.array(values, pa.float32()), pa.array(values, pa.float64())
    assert values_of(keys_of(narrow)) == values_of(keys_of(wide))


def test_types_without_order_have_no_keys() -> None:
    for type_ in (
        pa.list_(pa.int32()),
        pa.struct([]),
        pa.null(),
        pa.timestamp("ns"),
        pa.decimal256(50, 2),
        pa.uint64(),
    ):
        assert kind_of(type_) is None
        with pytest.raises(IndexFault, match="no order"):
            keys_of(pa.nulls(1, type_))


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (pa.int8(), pa.int64(), True),
        (pa.float32(), pa.float64(), True),
        (pa.decimal128(9, 2), pa.decimal128(18, 2), True),
        (pa.decimal128(20, 2), pa.decimal128(38, 2), True),
        (pa.decimal128(18, 2), pa.decimal128(19, 2), False),  # another kind
        (pa.decimal128(9, 2), pa.decimal128(9, 3), False),
        (pa.int32(), pa.float64(), False),
        (pa.int32(), pa.date32(), False),
        (pa.int64(), pa.timestamp("us"), False),
        (pa.string(), pa.binary(), False),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), False),
        (pa.bool_(), pa.int8(), False),
    ],
)
def test_c13_types_that_share_keys(a: pa.DataType, b: pa.DataType, same: bool) -> None:
    assert same_keys(a, b) is same
    assert same_keys(b, a) is same


# ---- single keys -----------------------------------------------------------------------------------------------------


@given(any_keys)
def test_successor_is_the_next_key(pair: tuple[Kind, list[Key]]) -> None:
    kind, values = pair
    for key in values:
        after = successor(key, kind)
        assert after is None or after > key  # type: ignore[operator]
        for other in values:
            assert (other > key) == (after is not None and other >= after)  # type: ignore[operator]
        assert key >= least_key(kind)  # type: ignore[operator]


@given(binaries | st.binary(max_size=20), st.binary(max_size=10), st.binary(max_size=20))
def test_c18_prefix_successor_is_above_all_extensions(prefix: bytes, suffix: bytes, other: bytes) -> None:
    """It is the least string above them: what is not an extension and above the prefix is at or above it."""
    after = prefix_successor(prefix)
    assert after is None or prefix + suffix < after
    if other > prefix and not other.startswith(prefix):
        assert after is not None
        assert other >= after


@pytest.mark.parametrize(
    ("prefix", "after"),
    [
        (b"", None),
        (b"\xff" * 64, None),
        (b"a\xff\xff", b"b"),
        (b"a\xfe", b"a\xff"),
        ("\U0010ffff".encode() * 2, b"\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xc0"),
        (b"\x7f", b"\x80"),
    ],
)
def test_c18_prefix_successors(prefix: bytes, after: bytes | None) -> None:
    assert prefix_successor(prefix) == after


@given(any_keys)
def test_canonical_bytes_tell_keys_apart(pair: tuple[Kind, list[Key]]) -> None:
    kind, values = pair
    assert len({canonical_bytes(key, kind) for key in values}) == len(set(values))


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (1, pa.int8(), b"\x01" + bytes(7)),
        (1, pa.int64(), b"\x01" + bytes(7)),
        (-1, pa.int32(), b"\xff" * 8),
        (True, pa.bool_(), b"\x01" + bytes(7)),
        (-0.0, pa.float64(), bytes(8)),
        (1.0, pa.float32(), (0x3FF0 << 48).to_bytes(8, "little")),
        (-1.0, pa.float64(), 0xC00F_FFFF_FFFF_FFFF.to_bytes(8, "little")),
        (Decimal("1.20"), pa.decimal128(9, 2), b"\x78" + bytes(7)),
        (Decimal("-0.01"), pa.decimal128(38, 2), b"\xff" * 16),
        ("é", pa.string(), b"\xc3\xa9"),
        (b"\xff", pa.binary(), b"\xff"),
        (dt.date(1970, 1, 2), pa.date32(), b"\x01" + bytes(7)),
        (dt.datetime(1970, 1, 1, 0, 0, 1), pa.timestamp("us"), (10**6).to_bytes(8, "little")),
    ],
)
def test_canonical_bytes_golden(value: object, type_: pa.DataType, expected: bytes) -> None:
    """What is hashed is part of the format: docs/format.md."""
    kind = kind_of(type_)
    assert kind is not None
    assert canonical_bytes(key_of(value, type_), kind) == expected


# ---- many keys -------------------------------------------------------------------------------------------------------


@given(any_keys)
def test_arrays_give_their_keys_back(pair: tuple[Kind, list[Key]]) -> None:
    kind, values = pair
    assert values_of(keys(kind, values)) == values


@given(any_keys, st.data())
def test_at_least(pair: tuple[Kind, list[Key]], data: st.DataObject) -> None:
    """Exact for literals longer than the words, and for bytes that differ in trailing zeros only."""
    kind, values = pair
    key = data.draw(KEYS[kind] | st.sampled_from(values))
    if kind is Kind.BYTES:
        key = data.draw(st.sampled_from([key, key + b"\0", key + b"\0" * 9, key[:-1], key + b"x" * 20]))
    assert keys(kind, values).at_least(key).tolist() == [value >= key for value in values]


@given(any_keys, st.data())
def test_rank(pair: tuple[Kind, list[Key]], data: st.DataObject) -> None:
    """One by one for few thresholds, by binary search for many: the same number either way."""
    kind, values = pair
    drawn = data.draw(st.lists(KEYS[kind] | st.sampled_from(values), max_size=40, unique=True))
    array = keys(kind, values)
    ranks = array.rank(keys_from(kind, sorted(drawn), array.width))
    assert ranks.tolist() == [sum(value >= threshold for threshold in drawn) for value in values]


def test_rank_counts_beyond_a_byte() -> None:
    thresholds = keys_from(Kind.WORD, range(1000), 0)
    assert keys(Kind.WORD, [-1, 0, 499, 999, 5000]).rank(thresholds).tolist() == [0, 1, 500, 1000, 1000]


@given(any_keys, st.integers(1, 4))
def test_keys_from_lays_out_each_key_as_alone(pair: tuple[Kind, list[Key]], width: int) -> None:
    kind, values = pair
    words = zip(*keys_from(kind, values, width).words, strict=True)
    assert list(words) == [words_of(key, kind, width) for key in values]


def test_keys_from_none() -> None:
    for kind in Kind:
        assert len(keys_from(kind, [], 2)) == 0


def test_common_words_are_those_that_all_keys_share() -> None:
    assert values_of(keys(Kind.BYTES, [b"customer-1", b"customer-2"])) == [b"customer-1", b"customer-2"]
    shared = int.from_bytes(b"customer", "big")
    assert keys(Kind.BYTES, [b"customer-1", b"customer-2"]).common == [shared]
    assert keys(Kind.BYTES, [b"customer-1", b"Customer-2", b"customer-1"]).common == []
    assert keys(Kind.BYTES, [b"customer"] * 2).common == [shared]  # but never the length
    assert keys(Kind.WORD, [1, 1]).common == []
    assert keys_from(Kind.BYTES, [], 2).common == []


@given(
    st.sampled_from(Kind).flatmap(
        lambda k: st.tuples(st.just(k), st.lists(st.lists(KEYS[k], min_size=1), min_size=1, max_size=4))
    )
)
def test_concatenate(pair: tuple[Kind, list[list[Key]]]) -> None:
    """Strings of different widths are widened; every key stays itself, and comparing stays exact."""
    kind, parts = pair
    joined = concatenate([keys(kind, part) for part in parts])
    flat = [key for part in parts for key in part]
    assert values_of(joined) == flat
    assert joined.at_least(flat[0]).tolist() == [key >= flat[0] for key in flat]


@given(any_keys, st.data())
def test_choose(pair: tuple[Kind, list[Key]], data: st.DataObject) -> None:
    kind, yes = pair
    no = data.draw(st.lists(KEYS[kind], min_size=len(yes), max_size=len(yes)))
    condition = data.draw(st.lists(st.booleans(), min_size=len(yes), max_size=len(yes)))
    chosen = choose(np.array(condition), keys(kind, yes), keys(kind, no))
    assert values_of(chosen) == [a if c else b for c, a, b in zip(condition, yes, no, strict=True)]


@given(any_keys, st.data())
def test_least_and_greatest_per_group(pair: tuple[Kind, list[Key]], data: st.DataObject) -> None:
    kind, values = pair
    cuts = data.draw(st.sets(st.integers(1, len(values) - 1)) if len(values) > 1 else st.just(set()))
    starts = [0, *sorted(cuts)]
    groups = [values[a:b] for a, b in zip(starts, [*starts[1:], len(values)], strict=True)]
    array = keys(kind, values)
    assert values_of(least_per_group(array, np.array(starts))) == [min(group) for group in groups]
    assert values_of(greatest_per_group(array, np.array(starts))) == [max(group) for group in groups]


@given(any_keys)
def test_the_greatest_key_stays_the_greatest(pair: tuple[Kind, list[Key]]) -> None:
    """An unknown upper bound is above every value, also when it is widened beside longer strings or merged."""
    kind, values = pair
    array = keys(kind, values)
    greatest = greatest_keys(kind, len(values))
    for key in values:
        assert greatest.at_least(key).all()
    widened, _ = same_width([greatest, array])
    for key in values:
        assert widened.at_least(key).all()
    if kind is Kind.BYTES:
        merged = greatest_per_group(concatenate([array, greatest]), np.array([0]))
        assert merged.at_least(b"\xff" * 200).all()
        assert not array.at_least(b"\xff" * 200).any()


@given(any_keys, st.data())
def test_take(pair: tuple[Kind, list[Key]], data: st.DataObject) -> None:
    kind, values = pair
    indices = data.draw(st.lists(st.integers(0, len(values) - 1)))
    assert values_of(keys(kind, values).take(np.array(indices, np.int64))) == [values[i] for i in indices]


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-(2**62), 2**62) | st.integers(0, 2))))
def test_distinct_values_and_where_each_is_among_them(pairs: list[tuple[int, int]]) -> None:
    matrix = np.array(pairs, np.int64).reshape(-1, 2)
    for values in (matrix[:, 0], matrix):
        distinct, places = distinct_and_places(values)
        assert np.array_equal(distinct, np.unique(values, axis=0))
        assert np.array_equal(distinct[places], values)
