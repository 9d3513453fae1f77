"""Values at paths into VARIANT on rows, beside a decoder of one value: however they are encoded and shredded."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.pruning.variants.variant_values import values_at
from tests.support.profiles import examples
from tests.support.variants import MISSING, column_of

NAMES = ["user", "name", "nest", "k", "ç'"]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-200, 200),
    st.integers(-200, 200),
    st.floats(width=64),
    st.text(max_size=4),
    st.text("ab", min_size=60, max_size=70),
    st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**16), max_value=10**16),
    st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)),
    st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),
    st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1), timezones=st.just(dt.UTC)),
    st.binary(max_size=4),
)
VALUES = st.recursive(
    SCALARS,
    lambda below: st.one_of(st.dictionaries(st.sampled_from(NAMES), below, max_size=4), st.lists(below, max_size=2)),
    max_leaves=8,
)
NEST = st.fixed_dictionaries({}, optional={"k": SCALARS, "user": SCALARS})
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        **{"user": SCALARS, "name": SCALARS, "nest": st.one_of(NEST, VALUES), "ç'": SCALARS},
        "list": st.one_of(st.lists(st.one_of(NEST, SCALARS, st.lists(SCALARS, max_size=2)), max_size=3), SCALARS),
    },
)
PATHS = [(), ("user",), ("user",), ("name",), ("nest", "k"), ("nest", "k"), ("nest", "user"), ("ç'",), ("user",) * 3]
PATHS += [("?0",), ("list", "?0"), ("list", "?1"), ("list", "?1", "k"), ("list", "?0", "k"), ("list", "?0", "?0")]
SCHEMAS: list[Any] = [
    *(None, pa.int64(), {"user": pa.int64()}, {"user": pa.string(), "nest": {"k": pa.int8(), "user": pa.float64()}}),
    *({"name": pa.bool_(), "nest": pa.int32()}, {"user": {"user": {"user": pa.int16()}}}),
    *({"list": [pa.int64()]}, {"list": [{"k": pa.int64()}], "user": pa.string()}, {"list": [[pa.int32()]]}),
    *([pa.int8()], {"list": {"k": pa.int64()}, "?0": pa.int64()}),
]
TYPES = {
    **{pa.int8(): 8, pa.int32(): 32, pa.int64(): 64},
    **dict.fromkeys([pa.float64(), pa.string(), pa.bool_(), pa.date32(), pa.binary(), pa.decimal128(12, 2)]),
    **dict.fromkeys([pa.timestamp("us", "UTC"), pa.timestamp("us")]),
}
UNKNOWN = object()


def expected(value: Any, names: tuple[str, ...], type_: pa.DataType) -> Any:
    """The value, None where it is NULL, UNKNOWN where only Spark knows it, or a type where it may be either."""
    for step in names:
        if step.startswith("?"):
            value = value[int(step[1:])] if isinstance(value, list) and int(step[1:]) < len(value) else MISSING
        else:
            value = value.get(step, MISSING) if isinstance(value, dict) else MISSING
    match value:
        case None:
            return None
        case _ if value is MISSING:
            return None
        case bool():
            return value if type_ == pa.bool_() else str(value).lower() if type_ == pa.string() else UNKNOWN
        case int() if pa.types.is_integer(type_):
            return value if -(1 << type_.bit_width - 1) <= value < 1 << type_.bit_width - 1 else UNKNOWN
        case int() if type_ == pa.string():
            return str(value)
        case int() if type_ == pa.decimal128(12, 2):
            return Decimal(value) if abs(value) < 10**10 else UNKNOWN
        case int() if type_ == pa.float64():
            return float(value)
        case float() if type_ == pa.float64():
            return value
        case Decimal() if type_ == pa.decimal128(12, 2):
            return value if abs(value) < 10**10 else UNKNOWN
        case str() if type_ == pa.string():
            return value
        case bytes() if type_ == pa.binary():
            return value
        case dt.datetime() if pa.types.is_timestamp(type_):
            return value if (value.tzinfo is None) == (type_.tz is None) else UNKNOWN
        case dt.date() if type_ == pa.date32() and not isinstance(value, dt.datetime):
            return value
        case float() | Decimal() if pa.types.is_integer(type_) or type_ in (pa.float64(), pa.decimal128(12, 2)):
            return type_  # numbers are cast, as tests of casts show
        case _:
            return UNKNOWN


@examples(300)
@given(
    values=st.lists(st.one_of(OBJECTS, OBJECTS, OBJECTS, VALUES, st.just(MISSING)), max_size=8),
    schema=st.sampled_from(SCHEMAS),
    names=st.sampled_from(PATHS),
    type_=st.sampled_from(list(TYPES)),
    width=st.integers(1, 4),
    is_large=st.booleans(),
)
def test_values_are_those_of_the_encoding(
    values: list[Any], schema: Any, names: tuple[str, ...], type_: pa.DataType, width: int, is_large: bool
) -> None:
    require_right(column_of(values, schema, width=width, is_large=is_large), values, names, type_)


ARRAYS: list[Any] = [
    *(
        {"list": [1, 2, 3]},
        {"list": [4]},
        {"list": ["x", 5, None]},
        {"list": []},
        {"list": 7},
        {},
        MISSING,
        None,
        [8, 9],
    ),
    [8, 9],
    *({"list": [{"k": 1}, {"k": 2, "user": "y"}]}, {"list": [[1, 2], [3, 4]]}, {"list": {"k": 1, "name": 2}, "?0": 7}),
]


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("names", [*PATHS[9:], ("list", "?2"), ("list", "?1", "?1"), ("list", "k"), ("?1",)])
def test_items_of_arrays_are_known_however_they_are_shredded(schema: Any, names: tuple[str, ...]) -> None:
    require_right(column_of(ARRAYS, schema), ARRAYS, names, pa.int64())
    require_right(column_of(ARRAYS, schema, width=3, is_large=True), ARRAYS, names, pa.string())


def require_right(column: pa.Array, values: list[Any], names: tuple[str, ...], type_: pa.DataType) -> None:
    """What is said of a column, and of a part of it, is what its values are."""
    for array, some in ((column, values), (column.slice(1), values[1:])):
        result = values_at(array, names, type_)
        assert (result.values.type, len(result.values), len(result.unknown)) == (type_, len(some), len(some))
        for value, known, is_unknown in zip(some, result.values.to_pylist(), result.unknown.tolist(), strict=True):
            right = expected(value, names, type_)
            if right is UNKNOWN:
                assert is_unknown
            elif not isinstance(right, pa.DataType):
                assert not is_unknown
                assert known == right or (known != known and right != right)


@examples(300)
@given(
    values=st.lists(OBJECTS, min_size=1, max_size=4),
    at=st.lists(
        st.tuples(st.sampled_from(["metadata", "value"]), st.integers(0, 200), st.integers(0, 255)), max_size=4
    ),
    cut=st.integers(0, 200),
    names=st.sampled_from(PATHS),
    type_=st.sampled_from(list(TYPES)),
)
def test_damaged_bytes_are_no_error(
    values: list[Any], at: list[tuple[str, int, int]], cut: int, names: tuple[str, ...], type_: pa.DataType
) -> None:
    rows = column_of(values).to_pylist()
    for part, place, byte in at:
        row = rows[place % len(rows)]
        data = bytearray(row[part])
        if data:
            data[place % len(data)] = byte
        row[part] = bytes(data)
    rows[0]["value"] = rows[0]["value"][:cut]
    result = values_at(pa.array(rows, column_of([1]).type), names, type_)
    assert len(result.values) == len(rows)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_field_that_is_in_a_column_and_in_bytes_is_unknown(is_there: bool) -> None:
    """The specification forbids it; which of the two a reader takes is not known."""
    column = column_of([{"user": 7, "name": "x"}], {"user": pa.int64()})
    (row,) = column.to_pylist()
    if is_there:
        row["value"] = column_of([{"user": 8, "name": "x"}])[0].as_py()["value"]
        row["metadata"] = column_of([{"user": 8, "name": "x"}])[0].as_py()["metadata"]
    result = values_at(pa.array([row], column.type), ("user",), pa.int64())
    assert (result.unknown[0], result.values[0].as_py()) == (is_there, 7)


def test_a_name_twice_in_a_dictionary_is_unknown() -> None:
    column = column_of([{"aa": 7, "ab": 8}])
    (row,) = column.to_pylist()
    row["metadata"] = row["metadata"].replace(b"ab", b"aa")
    result = values_at(pa.array([row], column.type), ("aa",), pa.int64())
    assert result.unknown.tolist() == [True]
