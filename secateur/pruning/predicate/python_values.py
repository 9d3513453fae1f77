"""Python values as literals of Spark SQL."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np

from secateur.errors import InvalidPredicate
from secateur.pruning.predicate.calls import NULL
from secateur.pruning.predicate.constructors import integer
from secateur.pruning.predicate.nodes import Literal


def literal(value: object) -> Literal:
    """Convert a Python value to a literal: datetimes with a zone are instants, others are in the session's zone.

    numpy's datetime64 are dates if their unit is a day or more, else times without zone; NaT is NULL. Raises TypeError
    for types without literals, InvalidPredicate for times finer than a microsecond or beyond the years 1 to 9999.
    """
    match value:
        case Literal():
            return value
        case np.datetime64():
            return _moment(value)
        case _ if isinstance(value, np.timedelta64 | np.longdouble):  # their items are numbers of units, or themselves
            raise _refused(value)
        case _ if hasattr(value, "item"):  # a numpy scalar; some are also Python floats or strings
            return literal(value.item())
        case None:
            return NULL
        case bool():
            return Literal(value, "boolean")
        case int():
            return integer(value)
        case float():
            return Literal(value, "double")
        case Decimal() if value.is_finite():
            return Literal(value, "decimal")
        case str():
            return Literal(value, "string")
        case bytes() | bytearray():
            return Literal(bytes(value), "binary")
        case dt.datetime() if value != value:  # pandas' NaT
            return NULL
        case dt.datetime():
            if getattr(value, "nanosecond", 0):  # of pandas' Timestamp
                raise _finer(value)
            return Literal(value, "timestamp_ntz" if value.tzinfo is None else "timestamp")
        case dt.date():
            return Literal(value, "date")
        case _:
            raise _refused(value)


def _refused(value: object) -> TypeError:
    return TypeError(f"{value!r} of type {type(value).__name__} is not a literal of Spark SQL")


def _finer(value: object) -> InvalidPredicate:
    return InvalidPredicate(f"{value} is a time finer than a microsecond")


def _moment(value: np.datetime64) -> Literal:
    if np.isnat(value):
        return NULL
    is_date = np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D")
    known = value.astype("datetime64[D]" if is_date else "datetime64[us]")
    item = known.item()
    if not isinstance(item, dt.date):
        raise InvalidPredicate(f"{value} is beyond the years 1 to 9999")
    if known.astype(value.dtype) != value:
        raise _finer(value)
    return literal(item)
