"""Fields of JSON text that is read by a schema: ``from_json(text, 'user STRING, size INT').user``.

The value of a row is Spark's wherever text, schema and value leave no choice: a text that is one JSON object, in which
a field has the type of the schema or is null. Elsewhere it is unknown: Spark may give NULL, or convert the value, as
its settings say. Sources: Spark's ``JsonToStructs`` and ``JacksonParser``.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from secateur.pruning.bounds.outcomes import NULL
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.functions.json_schema import Schema, Type, schema_of
from secateur.pruning.functions.json_text import (
    SPACES,
    Members,
    OnlySparkKnows,
    has_surrogates,
    is_beyond_limits,
    known_values,
    substrings_of,
)
from secateur.pruning.functions.types import INTEGERS
from secateur.pruning.interval import Argument, Function, Interval, OnRows, RowValues, of_zones
from secateur.pruning.predicate.patterns.substrings import Alternatives


def _from_json_field(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    match arguments:
        case [Argument(type=type_), Argument(key=bytes(text)), *steps] if type_ == pa.string():
            names = tuple(step.key.decode() for step in steps if isinstance(step.key, bytes))
        case _:
            return None
    if len(names) < len(steps):
        return None
    try:
        schema = schema_of(text.decode())
    except ValueError:
        return None
    leaf: Type = schema
    for name in names:
        leaf = leaf.get(name) if isinstance(leaf, Mapping) else None
    if not isinstance(leaf, pa.DataType):
        return None
    of_type = leaf

    def bounds(intervals: Sequence[Interval]) -> Interval:
        whole, of_text = of_zones(None, of_type, len(intervals[0])), intervals[0]
        value = np.where(of_text.value != 0, whole.value, np.uint8(0))
        return replace(whole, value=value, null=np.full(len(value), NULL, np.uint8), fails=of_text.fails)

    def compute(values: Sequence[pa.Array | pa.Scalar], locale: str) -> RowValues:
        return fields_of(values[0], schema, names, of_type)

    def substrings(ranges: RangeSet) -> Alternatives:
        return substrings_of(names, ranges, is_encoded=True) if of_type == pa.string() else ()

    return Function(
        f"from_json[{text!r}, {names!r}]",
        of_type,
        bounds,
        (0,) * len(arguments),
        exact=False,
        on_rows=OnRows(compute),
        substrings=substrings,
    )


RULES = {"from_json_field": _from_json_field}


def fields_of(texts: pa.Array, schema: Schema, names: Sequence[str], type_: pa.DataType) -> RowValues:
    """Return the values of a field of every JSON text."""
    return known_values(texts, lambda text: _value_in(text, schema, names), type_)


def _value_in(text: str, schema: Schema, names: Sequence[str]) -> Any:
    """Return the value of a field of one JSON text, None for NULL. Raises OnlySparkKnows."""
    if is_beyond_limits(text):
        raise OnlySparkKnows
    try:
        value = _DECODER.decode(text.strip(SPACES))
    except (RecursionError, ValueError):
        raise OnlySparkKnows from None
    level: Type = schema
    for depth, name in enumerate(names):
        if not isinstance(value, Members) or not isinstance(level, Mapping):
            raise OnlySparkKnows
        fields = _fields(value, level)
        # a neighbour that Spark cannot read makes a struct NULL, or not, but never the whole
        for neighbour, type_ in level.items() if depth else ():
            _converted(fields.get(neighbour), type_)
        value, level = fields.get(name), level[name]
        if value is None:
            return None
    return _converted(value, level)


def _fields(value: Members, schema: Schema) -> dict[str, Any]:
    """Return the fields that a schema has. Raises OnlySparkKnows if one occurs twice."""
    members = [(name, member) for name, member in value.members if name in schema]
    fields = dict(members)
    if len(fields) < len(members):
        raise OnlySparkKnows
    return fields


def _converted(value: Any, type_: Type) -> Any:
    """Return a value as one of a type. Raises OnlySparkKnows if that takes more than its JSON."""
    match value:
        case None:
            return None
        case Members() if isinstance(type_, Mapping):
            fields = _fields(value, type_)
            for name, below in type_.items():
                _converted(fields.get(name), below)
            return value
        case bool() if type_ == pa.bool_():
            return value
        case bool() if type_ == pa.string():
            return "true" if value else "false"
        case bool():
            raise OnlySparkKnows
        case int() if type_ in INTEGERS and _fits(value, type_):
            return value
        case int() if type_ == pa.string():
            return str(value)
        case int() | float() if type_ == pa.float64() and math.isfinite(number := _double(value)):
            return number
        case str() if type_ == pa.string() and not has_surrogates(value):
            return value
        case _:
            raise OnlySparkKnows


def _fits(value: int, type_: Any) -> bool:
    return -(1 << type_.bit_width - 1) <= value < 1 << type_.bit_width - 1


def _double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _refuse(constant: str) -> float:
    raise ValueError(constant)


def _integer(text: str) -> float:
    """Return a whole number; -0 as a fraction, whose text is known as little."""
    return -0.0 if text == "-0" else int(text)


_DECODER = json.JSONDecoder(object_pairs_hook=Members, parse_int=_integer, parse_constant=_refuse)
