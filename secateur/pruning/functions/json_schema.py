"""The schema that ``from_json(text, schema)`` takes, as far as the values of one field are known here.

It is a text: columns and their types, or as JSON. Of the whole only what leads to a field matters. A field at the first
level that Spark cannot read is NULL, and its neighbours are not. Further down the struct may be NULL then, depending on
a setting: so the neighbours there are kept. Schemas with dates and times are not known: they can raise errors.

Source: Spark's ``JsonToStructs``, ``JacksonParser``, ``FailureSafeParser``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa

Type: TypeAlias = "Schema | pa.DataType | None"  # None: of a field whose values are not known here
Schema: TypeAlias = Mapping[str, Type]

_CORRUPT = "_corrupt_record"  # the column that Spark gives the texts which it cannot read
_NAMES: dict[str, pa.DataType] = {
    **{"string": pa.string(), "boolean": pa.bool_(), "double": pa.float64()},
    **{"byte": pa.int8(), "short": pa.int16(), "integer": pa.int32(), "long": pa.int64()},
}
_SQL = {"string": "STRING", "bool": "BOOLEAN", "double": "DOUBLE"}
_SQL |= {"int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT"}
_PARSED = {  # as sqlglot names types
    **{"TEXT": pa.string(), "BOOLEAN": pa.bool_(), "DOUBLE": pa.float64()},
    **{"TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64()},
}
_OTHERS = ("FLOAT", "DECIMAL")  # types that are not known, and raise no error


class _OnlySpark(ValueError):
    """A schema, or a part of one, that is not known here."""


@lru_cache(maxsize=256)
def field_in(text: str, names: tuple[str, ...]) -> tuple[str, tuple[str, ...]] | None:
    """Return the part of a schema that the values of a field depend on, and its names as spelled there.

    None if they are not known here.
    """
    try:
        schema = _pruned(schema_of(text), names)
    except _OnlySpark:
        return None
    spelled: list[str] = []
    below: Type = schema
    for name in names:
        assert isinstance(below, Mapping), "it has the field"
        spelled.append(_spelled(below, name))
        below = below[spelled[-1]]
    return (_written(schema), tuple(spelled)) if isinstance(below, pa.DataType) else None


def schema_of(text: str) -> Schema:
    """Return a schema. Raises ValueError if it is not known here."""
    if text.lstrip().startswith("{"):
        type_ = _of_json(_loaded(text))
        if isinstance(type_, Mapping):
            return type_
        raise _OnlySpark
    return _of_columns(_parsed(text))


def _pruned(schema: Schema, names: Sequence[str]) -> Schema:
    """Return a schema with one field at its first level. Raises _OnlySpark if that is not there, or not known."""
    name = _spelled(schema, names[0])
    below = schema[name]
    for inner in names[1:]:
        if not isinstance(below, Mapping):
            raise _OnlySpark
        below = below[_spelled(below, inner)]
    if name == _CORRUPT or not _is_known(schema[name]):
        raise _OnlySpark
    return {name: schema[name]}


def _is_known(type_: Type) -> bool:
    return all(map(_is_known, type_.values())) if isinstance(type_, Mapping) else type_ is not None


def _spelled(schema: Schema, name: str) -> str:
    """Return a field's name, which differs from another's not by case alone. Raises _OnlySpark."""
    same = [known for known in schema if known.lower() == name.lower()]
    if len(same) != 1:
        raise _OnlySpark
    return same[0]


def _written(schema: Schema) -> str:
    """Return the text of a schema whose types are known."""
    return ", ".join(f"`{name.replace('`', '``')}` {_sql(type_)}" for name, type_ in schema.items())


def _sql(type_: Type) -> str:
    return f"STRUCT<{_written(type_)}>" if isinstance(type_, Mapping) else _SQL[str(type_)]


# ---- as JSON ---------------------------------------------------------------------------------------------------------


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise _OnlySpark from None


def _of_json(type_: Any) -> Type:
    match type_:
        case {"type": "struct", "fields": [*fields]}:
            return _distinct([(str(field.get("name")), _of_json(field.get("type"))) for field in fields])
        case {"type": "array", "elementType": below}:
            _of_json(below)
            return None
        case {"type": "map", "keyType": "string", "valueType": below}:
            _of_json(below)
            return None
        case str(name) if name in _NAMES:
            return _NAMES[name]
        case str(name) if name.partition("(")[0].upper() in _OTHERS:
            return None
        case _:
            raise _OnlySpark


def _distinct(fields: list[tuple[str, Type]]) -> Schema:
    schema = dict(fields)
    if len(schema) < len(fields):
        raise _OnlySpark
    return schema


# ---- as columns ------------------------------------------------------------------------------------------------------


def _parsed(text: str) -> Any:
    """Return sqlglot's type of a struct with these columns. Raises _OnlySpark."""
    import sqlglot  # importing it takes longer than planning
    from sqlglot.errors import SqlglotError

    is_whole = text.strip().lower().startswith("struct<")
    try:
        tree = sqlglot.parse_one(f"CAST(x AS {text if is_whole else f'STRUCT<{text}>'})", dialect="spark")
    except (SqlglotError, RecursionError):
        raise _OnlySpark from None
    return tree.args.get("to")


def _of_columns(type_: Any) -> Schema:
    from sqlglot import exp

    if not isinstance(type_, exp.DataType) or type_.this.name != "STRUCT":
        raise _OnlySpark
    fields = []
    for column in type_.expressions:
        if not isinstance(column, exp.ColumnDef) or column.args.get("constraints") or "kind" not in column.args:
            raise _OnlySpark
        fields.append((str(column.this.name), _of_column(column.args["kind"])))
    return _distinct(fields)


def _of_column(type_: Any) -> Type:
    name, below = type_.this.name, type_.expressions
    if name == "STRUCT":
        return _of_columns(type_)
    if name in _PARSED and not below:
        return _PARSED[name]
    if name in ("ARRAY", "LIST", "MAP"):
        for part in below:
            _of_column(part)
        return None
    if name in _OTHERS:
        return None
    raise _OnlySpark
