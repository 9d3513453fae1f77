"""Python values as literals of Spark SQL."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from secateur.pruning.predicate.calls import NULL
from secateur.pruning.predicate.nodes import Literal, integer


def literal(value: object) -> Literal:
    """Convert a Python value to a literal: datetimes with a zone are instants, others are in the session's zone."""
    match value:
        case Literal():
            return value
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
        case Decimal():
            return Literal(value, "decimal")
        case str():
            return Literal(value, "string")
        case bytes() | bytearray():
            return Literal(bytes(value), "binary")
        case dt.datetime():
            return Literal(value, "timestamp_ntz" if value.tzinfo is None else "timestamp")
        case dt.date():
            return Literal(value, "date")
        case _:
            raise TypeError(f"{value!r} of type {type(value).__name__} is not a literal of Spark SQL")
