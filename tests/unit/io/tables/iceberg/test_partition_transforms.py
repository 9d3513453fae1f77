"""Partition values bound the values that they were made of, and buckets hold them: PyIceberg's transforms say so."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyiceberg.conversions import to_bytes
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from secateur.io.tables.field_ids import with_id
from secateur.io.tables.iceberg.bounds import decoded
from secateur.io.tables.iceberg.listing import IcebergListing
from secateur.io.tables.iceberg.manifest_arrays import FILES, ByField, Entries, Manifest
from secateur.io.tables.iceberg.manifests import _PARTITION_TYPES
from secateur.io.tables.iceberg.partition_transforms import in_buckets, partition_field, source_bounds, typed
from secateur.io.tables.iceberg.schema import arrow_type
from secateur.io.tables.partitions import Partitions
from secateur.io.tables.projection import IS_UUID
from secateur.values.conversion import keys_of
from tests.support.profiles import examples

DAYS = st.integers(-700_000, 2_900_000)
MICROS = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
DECIMALS = st.decimals(Decimal("-999999.99"), Decimal("999999.99"), places=2)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    IntegerType(): st.integers(-(2**31), 2**31 - 1),
    LongType(): st.integers(-(2**63), 2**63 - 1),
    StringType(): st.text(max_size=6),
    BinaryType(): st.binary(max_size=6),
    DateType(): DAYS,
    TimestampType(): MICROS,
    TimestamptzType(): MICROS,
    DecimalType(9, 2): DECIMALS,
    UUIDType(): st.uuids(),
}
TIMES = (DateType(), TimestampType(), TimestamptzType())
TRANSFORMS = [
    *((IdentityTransform(), type_) for type_ in VALUES),
    *((BucketTransform(7), type_) for type_ in VALUES),
    *((TruncateTransform(3), type_) for type_ in (IntegerType(), LongType(), StringType(), BinaryType())),
    *((TruncateTransform(50), DecimalType(9, 2)),),
    *((t(), type_) for t in (YearTransform, MonthTransform, DayTransform) for type_ in TIMES),
    *((HourTransform(), type_) for type_ in TIMES[1:]),
]


def array_of(value: Any, type_: Any) -> pa.Array:
    """One value of the table's type."""
    arrow = arrow_type(type_)
    if isinstance(type_, DateType):
        return pa.array([value], pa.int32()).cast(arrow)
    if isinstance(type_, (TimestampType, TimestamptzType)):
        return pa.array([value], pa.int64()).cast(arrow)
    return pa.array([str(value) if isinstance(type_, UUIDType) else value], arrow)


def partition_array(value: Any, type_: Any) -> pa.Array:
    """One partition value as a manifest gives it."""
    if isinstance(type_, DecimalType):
        return pa.array([value], pa.decimal128(type_.precision, type_.scale))
    return pa.array([value.bytes if isinstance(value, uuid.UUID) else value], _PARTITION_TYPES[type(type_)])


@pytest.mark.parametrize(("transform", "type_"), TRANSFORMS, ids=lambda parameter: str(parameter))
def test_a_value_lies_within_the_bounds_of_its_partition(transform: Any, type_: Any) -> None:
    field = partition_field(1000, 1, str(transform))

    @given(VALUES[type_])
    @examples(200)
    def check(value: Any) -> None:
        cut = transform.transform(type_)(value)
        result = IntegerType() if isinstance(transform, DayTransform) else transform.result_type(type_)
        if isinstance(result, IntegerType) and not -(2**31) <= cut < 2**31:
            return  # PyIceberg cuts the least integers to less than a manifest can hold
        if isinstance(result, LongType) and not -(2**63) <= cut < 2**63:
            return
        values, array = partition_array(cut, result), array_of(value, type_)
        bounds = source_bounds(field, values, arrow_type(type_))
        key = keys_of(array).at(0)
        if bounds is not None:
            for side, bound in ((1, bounds.lower), (-1, bounds.upper)):
                if bound.is_valid()[0].as_py():
                    limit = keys_of(bound).at(0)
                    assert (limit <= key) if side == 1 else (limit >= key)
        held = in_buckets(field, values, [key], arrow_type(type_), is_uuid=isinstance(type_, UUIDType))
        assert held is None or held.all()
        assert (held is not None) == isinstance(transform, BucketTransform)

    check()


def test_bounds_are_as_tight_as_the_transform() -> None:
    """What a bound excludes is what pruning gains."""

    def ends(transform: str, value: Any, type_: pa.DataType, stored: pa.DataType) -> tuple[Any, Any]:
        bounds = source_bounds(partition_field(1, 1, transform), pa.array([value], stored), type_)
        assert bounds is not None
        return bounds.lower[0].as_py(), bounds.upper[0].as_py()

    assert ends("truncate[10]", 20, pa.int64(), pa.int64()) == (20, 29)
    assert ends("truncate[10]", -20, pa.int64(), pa.int64()) == (-20, -11)
    assert ends("truncate[2]", "ab", pa.string(), pa.string()) == (b"ab", b"ac")
    assert ends("truncate[3]", "ab", pa.string(), pa.string()) == (b"ab", b"ab")
    assert ends("year", 54, pa.date32(), pa.int32()) == (dt.date(2024, 1, 1), dt.date(2024, 12, 31))
    assert ends("month", 649, pa.date32(), pa.int32()) == (dt.date(2024, 2, 1), dt.date(2024, 2, 29))
    hour = ends("hour", 1, pa.timestamp("us"), pa.int32())
    assert hour == (dt.datetime(1970, 1, 1, 1), dt.datetime(1970, 1, 1, 1, 59, 59, 999_999))
    assert ends("identity", 5, pa.int64(), pa.int32()) == (5, 5)


def test_c20_old_writers_cut_moments_before_1970_towards_it() -> None:
    """An hour before 1970 may lie in the partition of the first hour after."""
    values = pa.array([0, -1], pa.int32())
    bounds = source_bounds(partition_field(1, 1, "hour"), values, pa.timestamp("us"))
    assert bounds is not None
    assert bounds.lower.to_pylist() == [dt.datetime(1969, 12, 31, 23), dt.datetime(1969, 12, 31, 22)]


def test_c21_a_cut_value_next_to_the_greatest_may_stand_for_the_least() -> None:
    """Iceberg cuts integers without regard to overflow: -2^31 cut to fives is 2^31 - 2."""
    values = pa.array([2**31 - 2, 2**31 - 5, -(2**31) + 3], pa.int32())
    bounds = source_bounds(partition_field(1, 1, "truncate[5]"), values, pa.int32())
    assert bounds is not None
    assert bounds.lower.to_pylist() == [None, 2**31 - 5, -(2**31) + 3]


@pytest.mark.parametrize("transform", ["void", "zorder[3]", "unknown", "bucket", "truncate[0]", "", "truncate[-1]"])
def test_what_is_not_known_tells_nothing(transform: str) -> None:
    field = partition_field(1, 1, transform)
    values = pa.array([1], pa.int32())
    assert source_bounds(field, values, pa.int32()) is None
    assert in_buckets(field, values, [1], pa.int32(), is_uuid=False) is None


def test_null_partitions_have_no_bounds() -> None:
    for transform in ("identity", "truncate[5]", "day", "hour"):
        bounds = source_bounds(partition_field(1, 1, transform), pa.nulls(2, pa.int64()), pa.timestamp("us"))
        assert bounds is None or bounds.lower.null_count == bounds.upper.null_count == 2


# ---- single values ---------------------------------------------------------------------------------------------------


SINGLE = {**VALUES, BooleanType(): st.booleans(), FloatType(): st.floats(width=32), DoubleType(): st.floats()}


@pytest.mark.parametrize(
    "type_", [iceberg_type for iceberg_type in SINGLE if not isinstance(iceberg_type, UUIDType)], ids=str
)
def test_single_values_are_read_as_pyiceberg_writes_them(type_: Any) -> None:
    arrow = arrow_type(type_)

    @given(st.lists(SINGLE[type_], max_size=4))
    @examples(100)
    def check(values: list[Any]) -> None:
        read = decoded(pa.array([None, *(to_bytes(type_, value) for value in values)], pa.binary()), arrow)
        assert not read[0].is_valid
        for single, value in zip(read[1:], values, strict=True):
            if isinstance(value, float) and np.isnan(value):
                assert not single.is_valid
            else:
                one = array_of(value, type_)
                assert single.cast(one.type).as_py() == one[0].as_py()

    check()


@pytest.mark.parametrize(
    ("stored", "type_", "value"),
    [
        (IntegerType(), pa.int64(), -5),
        (FloatType(), pa.float64(), 1.5),
        (DecimalType(5, 2), pa.decimal128(20, 2), Decimal("-1.25")),
    ],
    ids=str,
)
def test_c13_bounds_of_before_a_promotion(stored: Any, type_: pa.DataType, value: Any) -> None:
    assert decoded(pa.array([to_bytes(stored, value)], pa.binary()), type_)[0].as_py() == value


@given(st.binary(max_size=20), st.sampled_from([*map(arrow_type, SINGLE)]))
@example(b"\x01", pa.int64())
@example(b"", pa.decimal128(9, 2))
@example(b"\x01" * 17, pa.decimal128(9, 2))
@examples(300)
def test_bytes_that_are_no_value_are_unknown(data: bytes, type_: pa.DataType) -> None:
    """Nothing is raised, and lengths are looked at."""
    read = decoded(pa.array([data], pa.binary()), type_)
    assert len(read) == 1


@pytest.mark.parametrize(
    ("stored", "type_", "value", "expected"),
    [
        (pa.int32(), pa.int64(), 5, 5),
        (pa.int32(), pa.date32(), 1, dt.date(1970, 1, 2)),
        (pa.int32(), pa.timestamp("us"), 1, dt.datetime(1970, 1, 2)),
        (pa.int64(), pa.timestamp("us"), 1, dt.datetime(1970, 1, 1, 0, 0, 0, 1)),
        (pa.int64(), pa.time64("us"), 1, dt.time(0, 0, 0, 1)),
        (pa.float32(), pa.float64(), 1.5, 1.5),
        (pa.string(), pa.string(), "a", "a"),
        (pa.int32(), pa.timestamp("us", "UTC"), 1, None),
        (pa.string(), pa.int64(), "5", None),
        (pa.binary(), pa.string(), b"a", None),
    ],
    ids=str,
)
def test_partition_values_are_values_of_the_column(
    stored: pa.DataType, type_: pa.DataType, value: Any, expected: Any
) -> None:
    """As they are now: a day may have been promoted to a timestamp."""
    values = typed(pa.array([value], stored), type_)
    assert (None if values is None else values[0].as_py()) == expected


def test_a_column_that_files_lack_has_the_value_of_its_partition() -> None:
    """A UUID is text to the table and bytes to the manifest."""
    code = with_id(pa.field("code", pa.string(), metadata=IS_UUID), 1)
    row = {**dict.fromkeys(FILES.names), "content": 0, "path": "a", "spec": 0, "record_count": 1, "size": 1}
    nothing = ByField(np.zeros(0, np.int32), np.zeros(0, np.int32), pa.nulls(0))
    files, values = pa.RecordBatch.from_pylist([row], FILES), {1000: pa.array([bytes(15) + b"\x05"])}
    listing = IcebergListing(
        pa.array(["a"]),
        *np.ones((3, 1), np.int64),
        Partitions((), ()),
        schema=pa.schema([code]),
        entries=Entries([Manifest(files, values, nothing, nothing, nothing, nothing)]),
        order=np.zeros(1, np.int64),
        specs={0: [partition_field(1000, 1, "identity")]},
    )
    assert listing.constants(np.zeros(1, np.int64)).to_pylist() == [
        {"1": {"value": "00000000-0000-0000-0000-000000000005"}}
    ]
