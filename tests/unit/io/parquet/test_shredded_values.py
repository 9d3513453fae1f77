"""Zone maps of values at a path into VARIANT: known only where nothing else can be there."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from secateur.index.zones.zonemap import ZoneMap
from secateur.io.parquet.parquet_file import open_parquet
from secateur.pruning.predicate.variant_paths import variant_path

BYTES = b"\x0c\x07"  # 7, as VARIANT has it
JAVA, ARROW = b"parquet-mr version 1.16.0", b"parquet-cpp-arrow version 26.0.1"
SPARK = {b"org.apache.spark.version": b"4.3.0"}


def shredded(value: Any, unshredded: bytes | None = None) -> dict[str, Any]:
    return {"value": unshredded, "typed_value": value}


def row(user: dict[str, Any] | None, unshredded: bytes | None = None) -> dict[str, Any] | None:
    return {"metadata": b"", "value": unshredded, "typed_value": None if user is None else {"user": user}}


def schema(type_: pa.DataType) -> pa.DataType:
    user = pa.field("user", pa.struct([("value", pa.binary()), ("typed_value", type_)]), nullable=False)
    return pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.struct([user]))])


def zone_map(
    folder: Path,
    rows: list[Any],
    *,
    type_: pa.DataType | None = None,
    asked: tuple[pa.DataType, str] = (pa.int32(), "INT"),
    metadata: dict[bytes, bytes] | None = None,
    path: tuple[str, ...] = ("user",),
    writer: bytes = JAVA,
) -> ZoneMap:
    """The zone map of a path over row groups of two rows, in a file that names a writer whose counts are right."""
    array = pa.array(rows, schema(type_ or pa.int64()))
    table = pa.table({"Payload": array}).replace_schema_metadata(metadata)
    pq.write_table(table, folder / "arrow.parquet", row_group_size=2, use_dictionary=False)

    created_by = pq.read_metadata(folder / "arrow.parquet").created_by.encode()
    signed = (folder / "arrow.parquet").read_bytes().replace(created_by, writer.ljust(len(created_by)))
    (folder / "a.parquet").write_bytes(signed)
    file = open_parquet(pafs.LocalFileSystem(), str(folder / "a.parquet"), "a.parquet")
    return file.zone_map(variant_path(("payload",), path, asked[1]), asked[0])


def ends(known: ZoneMap) -> list[tuple[Any, Any, int]]:
    n = range(len(known))
    return [(known.lower.at(i), known.upper.at(i), int(known.null_count[i])) for i in n]


LEAST, GREATEST = -(2**63), 2**63 - 1
UNKNOWN = LEAST, GREATEST, -1


def test_values_and_missing_ones(tmp_path: Path) -> None:
    """A row without the path, without an object, or without a VARIANT has NULL."""
    rows = [row(shredded(7)), row(shredded(9)), row(shredded(5)), row(shredded(None)), row(None), None]
    assert ends(zone_map(tmp_path, rows)) == [(7, 9, 0), (5, 5, 1), (-(2**31), 2**31 - 1, 2)]


def test_c56_a_value_that_is_not_shredded_makes_all_unknown(tmp_path: Path) -> None:
    rows = [row(shredded(7)), row(shredded(None, BYTES)), row(shredded(5)), row(shredded(6))]
    assert ends(zone_map(tmp_path, rows)) == [UNKNOWN, (5, 6, 0)]
    assert ends(zone_map(tmp_path, rows, metadata=SPARK)) == [UNKNOWN, (5, 6, 0)]


def test_c56_what_is_not_shredded_further_up_counts_where_a_value_is_missing(tmp_path: Path) -> None:
    """It may be an object with the path, if its writer did not keep to the specification."""
    rows = [row(shredded(7)), row(None, BYTES), row(shredded(5), BYTES), row(shredded(6))]
    assert ends(zone_map(tmp_path, rows)) == [UNKNOWN, (5, 6, 0)]


def test_spark_leaves_no_object_with_the_path_further_up(tmp_path: Path) -> None:
    rows = [row(shredded(7)), row(None, BYTES)]
    assert ends(zone_map(tmp_path, rows, metadata=SPARK)) == [(7, 7, 1)]


def test_c56_counts_that_arrow_gets_wrong_are_not_used(tmp_path: Path) -> None:
    """Arrow may leave out NULLs of bytes in structs. Its files may keep the marks of those that it read."""
    rows = [row(shredded(7)), row(shredded(9))]
    assert ends(zone_map(tmp_path, rows, metadata=SPARK, writer=ARROW)) == [UNKNOWN]


@pytest.mark.parametrize(
    ("stored", "values", "asked", "expected"),
    [
        (pa.int64(), [7, 9], (pa.int8(), "TINYINT"), (7, 9, 0)),
        (pa.int64(), [7, 300], (pa.int8(), "TINYINT"), UNKNOWN),  # a cast fails
        (pa.int8(), [7, 9], (pa.int64(), "BIGINT"), (7, 9, 0)),
        (pa.decimal128(9, 2), [Decimal("-7.99"), Decimal("9.99")], (pa.int32(), "INT"), (-7, 9, 0)),
        (pa.int64(), [7, 9], (pa.decimal128(4, 2), "DECIMAL(4, 2)"), (700, 900, 0)),
        (pa.int64(), [7, 100], (pa.decimal128(4, 2), "DECIMAL(4, 2)"), UNKNOWN),
        (pa.string(), ["7", "9"], (pa.int32(), "INT"), UNKNOWN),  # texts are cast, in an order of their own
        (pa.bool_(), [True, False], (pa.int32(), "INT"), UNKNOWN),
        (pa.int64(), [7, 9], (pa.float32(), "FLOAT"), UNKNOWN),
        (pa.timestamp("ns"), [7, 9], (pa.timestamp("us"), "TIMESTAMP_NTZ"), UNKNOWN),
        (pa.float64(), [7.0, 9.0], (pa.int32(), "INT"), UNKNOWN),  # footers do not tell whether there is NaN
    ],
)
def test_casts(
    tmp_path: Path, stored: pa.DataType, values: list[Any], asked: tuple[pa.DataType, str], expected: Any
) -> None:
    known = zone_map(tmp_path, [row(shredded(value)) for value in values], type_=stored, asked=asked)
    assert ends(known) == [expected]


def test_names_in_a_path_are_matched_by_case(tmp_path: Path) -> None:
    """The column's are not. What a file does not shred is unknown."""
    rows = [row(shredded(7)), row(shredded(9))]
    for path in (("User",), ("gone",), ("user", "id"), ()):
        assert ends(zone_map(tmp_path, rows, path=path)) == [UNKNOWN]


def test_a_file_without_the_column_has_null(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "b.parquet")
    file = open_parquet(pafs.LocalFileSystem(), str(tmp_path / "b.parquet"), "b.parquet")
    known = file.zone_map(variant_path(("payload",), ("user",), "INT"), pa.int32())
    assert known.null_count.tolist() == [2]


def test_a_struct_that_is_no_variant_is_unknown(tmp_path: Path) -> None:
    pq.write_table(pa.table({"payload": [{"x": 1}]}), tmp_path / "c.parquet")
    file = open_parquet(pafs.LocalFileSystem(), str(tmp_path / "c.parquet"), "c.parquet")
    assert ends(file.zone_map(variant_path(("payload",), ("user",), "INT"), pa.int32())) == [UNKNOWN]
