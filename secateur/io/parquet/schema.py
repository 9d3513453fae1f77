"""The leaf columns of a Parquet schema, with the Arrow type of their values.

The type follows the Parquet annotation; an embedded Arrow schema is ignored. A type that is not in these tables is
``pa.null()``: its order is unknown, so no statistic is offered for it. Source: parquet.thrift, SchemaElement,
LogicalType, ConvertedType; "Apache Parquet format, LogicalTypes".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from secateur.errors import InvalidParquet
from secateur.io.parquet import thrift_fields as spec
from secateur.io.parquet.thrift import MalformedThrift, Struct, optional, required

BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY = range(8)

_REQUIRED, _OPTIONAL = 0, 1  # any other repetition (REPEATED, VECTOR) has no row per value
_MAX_LEVELS = 100  # of groups; paths take memory proportional to levels x leaves
_LOGICAL_DECIMAL, _LOGICAL_TIMESTAMP, _LOGICAL_INTEGER = 5, 8, 10
_CONVERTED_DECIMAL = 5

_PLAIN = {
    BOOLEAN: pa.bool_(),
    INT32: pa.int32(),
    INT64: pa.int64(),
    INT96: pa.timestamp("us", "UTC"),  # Spark's and Hive's instant of a day and nanoseconds
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    BYTE_ARRAY: pa.binary(),
    FIXED_LEN_BYTE_ARRAY: pa.binary(),
}
_LOGICAL = {  # by physical type and LogicalType field id
    (BYTE_ARRAY, 1): pa.string(),
    (BYTE_ARRAY, 4): pa.string(),  # ENUM
    (INT32, 6): pa.date32(),
    (BYTE_ARRAY, 12): pa.string(),  # JSON
    (BYTE_ARRAY, 13): pa.binary(),  # BSON
}
_CONVERTED = {  # by physical type and ConvertedType
    (BYTE_ARRAY, 0): pa.string(),
    (BYTE_ARRAY, 4): pa.string(),  # ENUM
    (INT32, 6): pa.date32(),
    (INT64, 9): pa.timestamp("ms", "UTC"),
    (INT64, 10): pa.timestamp("us", "UTC"),
    (INT32, 11): pa.uint8(),
    (INT32, 12): pa.uint16(),
    (INT32, 13): pa.uint32(),
    (INT64, 14): pa.uint64(),
    (INT32, 15): pa.int8(),
    (INT32, 16): pa.int16(),
    (INT32, 17): pa.int32(),
    (INT64, 18): pa.int64(),
    (BYTE_ARRAY, 19): pa.string(),  # JSON
    (BYTE_ARRAY, 20): pa.binary(),  # BSON
}
_INTEGER = {  # by physical type, IntType.bitWidth and IntType.isSigned
    (INT32, 8, True): pa.int8(),
    (INT32, 16, True): pa.int16(),
    (INT32, 32, True): pa.int32(),
    (INT64, 64, True): pa.int64(),
    (INT32, 8, False): pa.uint8(),
    (INT32, 16, False): pa.uint16(),
    (INT32, 32, False): pa.uint32(),
    (INT64, 64, False): pa.uint64(),
}
_TIME_UNIT = {1: "ms", 2: "us", 3: "ns"}  # by TimeUnit field id


@dataclass(frozen=True)
class Leaf:
    """A leaf column with one value per row: not under a repeated node."""

    path: tuple[str, ...]  # names from the root, such as ("address", "zip")
    ordinal: int  # position among all leaves of the file: the index of its column chunks
    type: pa.DataType  # of its values; pa.null() if no statistic is offered
    int96: bool  # stored as INT96, which has no statistics that can be trusted


@dataclass(frozen=True)
class SchemaColumn:
    """A leaf column of the schema, repeated or not, in its stored form."""

    names: tuple[bytes, ...]  # as in ColumnMetaData.path_in_schema
    physical: int  # BOOLEAN ... FIXED_LEN_BYTE_ARRAY
    width: int  # bytes of a FIXED_LEN_BYTE_ARRAY value, else 0
    leaf: Leaf | None  # None under a repeated node
    definition: int  # maximum definition level: 0 if no node on the path is optional or repeated
    repetition: int  # maximum repetition level: the number of repeated nodes on the path


@dataclass
class _Group:
    """A node of the depth-first walk whose children are still being read."""

    names: tuple[bytes, ...]
    definition: int
    repetition: int
    children_left: int


def read_columns(elements: Sequence[Struct]) -> tuple[SchemaColumn, ...]:
    """Return the leaf columns in file order, from FileMetaData.schema.

    Raises InvalidParquet for an inconsistent tree, MalformedThrift for a field of the wrong type.
    """
    if not elements:
        raise InvalidParquet("the schema is empty")
    columns: list[SchemaColumn] = []
    groups = [_Group((), 0, 0, _children(elements[0]))]
    for element in elements[1:]:
        while groups and groups[-1].children_left == 0:
            groups.pop()
        if not groups:
            raise InvalidParquet("the schema goes on after the last child of its root")
        parent = groups[-1]
        parent.children_left -= 1
        node = _node(parent, element)
        if node.children_left:
            groups.append(node)
        elif spec.SchemaElement.type.id in element:
            columns.append(_column(node, element, len(columns)))
        if len(groups) > _MAX_LEVELS:
            raise InvalidParquet(f"the schema has more than {_MAX_LEVELS} levels of groups")
    missing = sum(group.children_left for group in groups)
    if missing:
        raise InvalidParquet(f"the schema ends {missing} nodes too early")
    return _without_ambiguous(columns)


def _children(element: Struct) -> int:
    children, physical = optional(element, spec.SchemaElement.num_children) or 0, spec.SchemaElement.type.id
    if children < 0 or (children and physical in element):
        raise InvalidParquet(f"a schema element has {children} children and type {element.get(physical)}")
    return children


def _node(parent: _Group, element: Struct) -> _Group:
    """Return the element as a child of its parent, with Dremel levels."""
    name = required(element, spec.SchemaElement.name)
    repetition = required(element, spec.SchemaElement.repetition_type)
    return _Group(
        (*parent.names, name),
        parent.definition + (repetition != _REQUIRED),
        parent.repetition + (repetition not in (_REQUIRED, _OPTIONAL)),
        _children(element),
    )


def _column(node: _Group, element: Struct, ordinal: int) -> SchemaColumn:
    physical = required(element, spec.SchemaElement.type)
    if physical not in _PLAIN:
        raise InvalidParquet(f"column {display(node.names)} has the unknown physical type {physical}")
    width = 0
    if physical == FIXED_LEN_BYTE_ARRAY:
        width = required(element, spec.SchemaElement.type_length)
        if width <= 0:
            raise InvalidParquet(f"column {display(node.names)} has values of {width} bytes")
    if node.repetition:
        return SchemaColumn(node.names, physical, width, None, node.definition, node.repetition)
    kind = _arrow_type(element, physical)
    leaf = Leaf(_decoded(node.names), ordinal, kind, kind == _PLAIN[INT96] and physical == INT96)
    return SchemaColumn(node.names, physical, width, leaf, node.definition, 0)


def _without_ambiguous(columns: list[SchemaColumn]) -> tuple[SchemaColumn, ...]:
    """Return the columns; leaves that share one path lose their type, because the path is ambiguous."""
    count = Counter(column.names for column in columns)
    return tuple(
        replace(column, leaf=replace(column.leaf, type=pa.null(), int96=False))
        if column.leaf is not None and count[column.names] > 1
        else column
        for column in columns
    )


def _arrow_type(element: Struct, physical: int) -> pa.DataType:
    """Return the type by LogicalType, else by ConvertedType, else by the physical type."""
    logical = optional(element, spec.SchemaElement.logicalType)
    if logical is not None:
        return _logical_type(logical, physical)
    converted = optional(element, spec.SchemaElement.converted_type)
    if converted is None:
        return _PLAIN[physical]
    if converted == _CONVERTED_DECIMAL:
        scale = optional(element, spec.SchemaElement.scale) or 0
        return _decimal(required(element, spec.SchemaElement.precision), scale, physical)
    return _CONVERTED.get((physical, converted), pa.null())


def _logical_type(logical: Struct, physical: int) -> pa.DataType:
    if len(logical) != 1:
        return pa.null()
    ((field, parameters),) = logical.items()
    if not isinstance(parameters, dict):
        raise MalformedThrift(f"{spec.SchemaElement.logicalType.name} holds a {type(parameters).__name__}")
    if field == _LOGICAL_DECIMAL:
        scale = required(parameters, spec.DecimalType.scale)
        return _decimal(required(parameters, spec.DecimalType.precision), scale, physical)
    if field == _LOGICAL_TIMESTAMP:
        return _timestamp(parameters, physical)
    if field == _LOGICAL_INTEGER:
        width = required(parameters, spec.IntType.bitWidth)
        signed = required(parameters, spec.IntType.isSigned)
        return _INTEGER.get((physical, width, signed), pa.null())
    return _LOGICAL.get((physical, field), pa.null())


def _decimal(precision: int, scale: int, physical: int) -> pa.DataType:
    stored = physical in (INT32, INT64, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY)
    if stored and 1 <= precision <= 38 and 0 <= scale <= precision:
        return pa.decimal128(precision, scale)
    return pa.null()


def _timestamp(parameters: Struct, physical: int) -> pa.DataType:
    utc = required(parameters, spec.TimestampType.isAdjustedToUTC)
    unit = required(parameters, spec.TimestampType.unit)
    name = _TIME_UNIT.get(next(iter(unit), 0))
    if physical != INT64 or len(unit) != 1 or name is None:
        return pa.null()
    return pa.timestamp(name, "UTC" if utc else None)


def _decoded(names: tuple[bytes, ...]) -> tuple[str, ...]:
    try:
        return tuple(name.decode() for name in names)
    except UnicodeDecodeError:
        raise InvalidParquet(f"the column name {display(names)} is not UTF-8") from None


def display(names: Sequence[bytes]) -> str:
    """Return the dotted path for messages, at most 200 characters, with bytes that are not UTF-8 escaped."""
    return ".".join(name.decode(errors="backslashreplace") for name in names)[:200]
