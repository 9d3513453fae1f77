"""Casts of times compared with one literal, as Spark's optimizer rewrites them: it casts the literal instead.

Source: Spark's ``UnwrapCastInBinaryComparison``. Where a clock goes back the two readings differ: a literal that occurs
twice is cast to the earlier of its instants, and only that one equals it. Spark rewrites comparisons, but no lists, no
``<=>`` of dates, and no times that the clock skips.
"""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa

from secateur.pruning.functions.calendar import DAY, SECOND
from secateur.pruning.functions.clocks import Shifting, clock
from secateur.pruning.functions.spans import DATE
from secateur.pruning.functions.types import INSTANT, LOCAL
from secateur.pruning.predicate.binding.literals import Position
from secateur.pruning.predicate.bound import Apply, Operand


def unwrapped(op: str, operand: Operand, literal: Position, zone: dt.tzinfo) -> tuple[Operand, Position]:
    """Return the operand that is compared in the end, and the literal's position among its keys."""
    if op == "<=>" and operand.type == DATE:
        return operand, literal
    while isinstance(operand, Apply) and is_cast(operand):
        (moment,) = operand.arguments
        position = _position(moment.type, operand.type, literal, zone)
        if position is None:
            break
        operand, literal = moment, position
    return operand, literal


def is_cast(operand: Operand) -> bool:
    """Return whether an operand is a cast of another."""
    return isinstance(operand, Apply) and operand.function.name.startswith(("cast[", "try_cast["))


def _position(source: pa.DataType, target: pa.DataType, literal: Position, zone: dt.tzinfo) -> Position | None:
    """Return the position of a literal among keys before a cast; None if Spark compares after the cast."""
    if not isinstance(literal.at, int) or not isinstance(literal.after, int):
        return None
    there, back = clock(zone, SECOND).local, clock(zone, SECOND).instants
    if target == DATE and source == LOCAL:
        return Position(literal.at * DAY, literal.after * DAY)
    if target == DATE and source == INSTANT:
        return _position_of(*(_shifted(day * DAY, back) for day in (literal.at, literal.after)))
    if (source, target) == (INSTANT, LOCAL):
        return _moved(literal.at, literal.after, back, there)
    return _moved(literal.at, literal.after, there, back) if (source, target) == (LOCAL, INSTANT) else None


def _moved(at: int, after: int, way: Shifting, back: Shifting) -> Position | None:
    first = _exchanged(at, way, back)
    if first is None or after == at + 1:
        return None if first is None else Position(first, first + 1)
    return _position_of(first, _exchanged(after, way, back))


def _position_of(at: int | None, after: int | None) -> Position | None:
    return None if at is None or after is None else Position(at, after)


def _exchanged(key: int, way: Shifting, back: Shifting) -> int | None:
    """Convert a time by a clock, if converting it back gives the same time."""
    shifted = _shifted(key, way)
    return shifted if shifted is not None and _shifted(shifted, back) == key else None


_MOST = 2**62  # microseconds


def _shifted(micros: int, way: Shifting) -> int | None:
    """Convert a time by a clock, if the result is unique and known."""
    if abs(micros) > _MOST:
        return None
    keys = np.array([micros])
    (lower,), (upper,) = way.hull(keys, keys)
    return int(lower) if lower == upper else None
