"""Literals as typed constants, and back."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa

from secateur.pruning.functions import types
from secateur.pruning.functions.types import INSTANT
from secateur.pruning.interval import numbers
from secateur.pruning.predicate.binding.literals import Subject, positions
from secateur.pruning.predicate.binding.temporal import date_of, moment_of
from secateur.pruning.predicate.bound import Constant
from secateur.pruning.predicate.nodes import Literal
from secateur.values.keys import Keys
from secateur.values.kinds import Kind

_TYPES = {**{name.lower(): type_ for name, type_ in types.NAMED.items()}, "null": pa.null()}  # types of literals


class NoRule(Exception):
    """An expression that pruning cannot bound, with the reason. Never leaves binding."""


def constant_of(literal: Literal, zone: dt.tzinfo) -> Constant:
    """Convert a literal to a typed constant. Raises NoRule for text that is not a date here."""
    if literal.value is None:
        return Constant(_TYPES[literal.type], None)
    type_ = _decimal_type(literal.value) if isinstance(literal.value, Decimal) else _TYPES[literal.type]
    places = positions(Subject(str(literal), type_), [literal], zone)
    if places is None or places[0].at is None:
        raise NoRule(f"{literal} is left to Spark")
    suffixed = types.is_integer(type_) and literal.type != "int"
    return Constant(type_, places[0].at, written=None if suffixed else True)


def _decimal_type(value: Decimal) -> pa.DataType:
    precision, scale = types.size_of(value)
    if precision > types.MOST_DIGITS:
        raise NoRule(f"{value} has more digits than a decimal")
    return pa.decimal128(precision, scale)


def literal_of(operand: Constant) -> Literal | None:
    """Convert a constant to a literal, or None if Python has no value for it."""
    key, type_ = operand.key, operand.type
    name = next((name for name, known in _TYPES.items() if known == type_), "decimal")
    match key:
        case None:
            return Literal(None, "null")
        case bytes():
            return Literal(key, name) if name == "binary" else _text_literal(key)
        case _ if types.is_decimal(type_):
            return Literal(Decimal(key).scaleb(-type_.scale), "decimal") if abs(key) < 10**28 else None
        case _ if types.is_integer(type_):
            return Literal(key, name)
        case _ if pa.types.is_boolean(type_):
            return Literal(bool(key), name)
        case _ if types.is_temporal(type_):
            return _moment_literal(key, type_, name)
        case _:
            keys = Keys(Kind.WORD, (pa.array([key], pa.int64()).to_numpy(),))
            return Literal(float(numbers(keys, type_)[0]), name)


def _text_literal(key: bytes) -> Literal | None:
    try:
        return Literal(key.decode(), "string")
    except UnicodeDecodeError:
        return None


def _moment_literal(key: int, type_: pa.DataType, name: str) -> Literal | None:
    try:
        if pa.types.is_date32(type_):
            return Literal(date_of(key), name)
        moment = moment_of(key)
        return Literal(moment.replace(tzinfo=dt.UTC) if type_ == INSTANT else moment, name)
    except (ValueError, OverflowError):
        return None
