"""Print bound predicates in a short form, for golden tables: each leaf with its column and its set of values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa

from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.interval import numbers
from secateur.pruning.predicate.bound import (
    Apply,
    Compared,
    Conditional,
    Constant,
    Field,
    Holds,
    Leaf,
    Missing,
    Operand,
    Tested,
    TextMatch,
    Unsupported,
    Varying,
    Within,
)
from secateur.pruning.predicate.nodes import And, Is, Not, Or, Predicate, Truth
from secateur.pruning.predicate.patterns.text_tests import OnlySpark
from secateur.values.key import Key, least_key
from secateur.values.keys import Keys
from secateur.values.kinds import Kind, is_float

EPOCH = dt.datetime(1970, 1, 1)
WORDS = {True: "TRUE", False: "FALSE", None: "NULL"}


def bound_form(predicate: Predicate) -> str:
    """A bound predicate in one line."""
    match predicate:
        case And(children):
            return " and ".join(map(_inner, children))
        case Or(children):
            return " or ".join(map(_inner, children))
        case Not(child):
            return f"not {_inner(child)}"
        case Is(child, truth):
            return f"{_inner(child)} is {WORDS[truth]}"
        case _:
            return _leaf(predicate)  # type: ignore[arg-type]


def _inner(predicate: Predicate) -> str:
    form = bound_form(predicate)
    return f"({form})" if isinstance(predicate, And | Or | Not | Is) else form


def _leaf(leaf: Leaf) -> str:
    match leaf:
        case Truth(truth):
            return WORDS[truth]
        case Within(operand, ranges, _, fails):
            beyond = "" if fails is None else f", fails in {set_form(fails, operand.type)}"
            return f"{operand_form(operand)} in {set_form(ranges, operand.type)}{beyond}"
        case Missing(operand):
            return f"{operand_form(operand)} is null"
        case TextMatch(operand, test, prefix):
            who = "Spark matches" if isinstance(test, OnlySpark) else "matches"
            return f"{who} {operand_form(operand)} in {set_form(prefix, operand.type)}"
        case Compared(op, left, right):
            return f"{operand_form(left)} {op} {operand_form(right)}"
        case Holds(column, ranges):
            return f"some of {operand_form(column)} in {set_form(ranges, leaf.type)}"
        case Unsupported(reason=reason):
            return f"left to Spark: {reason}"


# ---- sets of keys ----------------------------------------------------------------------------------------------------


def set_form(ranges: RangeSet, type_: pa.DataType) -> str:
    """A set of keys as intervals of values: ``{5}``, ``[6, )``, ``(, 3)``, ``{}``."""
    thresholds: list[Key | None] = list(ranges.thresholds.tolist())
    pairs = zip(thresholds[::2], [*thresholds[1::2], *([None] if len(thresholds) % 2 else [])], strict=True)
    return " + ".join(_interval(start, stop, type_, ranges.kind) for start, stop in pairs) or "{}"


def _interval(start: Key | None, stop: Key | None, type_: pa.DataType, kind: Kind) -> str:
    assert start is not None
    if isinstance(start, int) and stop == start + 1:
        return f"{{{value_form(start, type_)}}}"
    if isinstance(start, bytes) and stop == start + b"\0":
        return f"{{{value_form(start, type_)}}}"
    first = "(" if start == least_key(kind) else _end(start, type_, "[", "(")
    last = ")" if stop is None else _end(stop, type_, ")", "]", after=True)
    return f"{first}, {last}"


def _end(key: Key, type_: pa.DataType, at: str, beyond: str, *, after: bool = False) -> str:
    """A threshold: the key itself, or that it follows, whichever is shorter to write."""
    text, bracket = value_form(key, type_), at
    if isinstance(key, bytes) and key.endswith(b"\0"):
        text, bracket = value_form(key[:-1], type_), beyond
    elif isinstance(key, int) and not _is_whole(type_) and len(value_form(key - 1, type_)) < len(text):
        text, bracket = value_form(key - 1, type_), beyond
    return text + bracket if after else bracket + text


def _is_whole(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_date(type_) or pa.types.is_boolean(type_))


def value_form(key: Key, type_: pa.DataType) -> str:
    """A value in short; keys that are no values of the type as keys."""
    match key:
        case bytes():
            text = key.decode("utf-8", "backslashreplace") if pa.types.is_string(type_) else key.hex().upper()
            return f"'{text}'" if len(text) < 40 else f"'{text[:8]}...'({len(key)} bytes)"
        case _ if is_float(type_):
            value = float(numbers(Keys(Kind.WORD, (np.array([key]),)), type_)[0])
            return "NaN" if value != value else f"{value:g}" if float(f"{value:g}") == value else repr(value)
        case _ if pa.types.is_decimal(type_):
            return f"{Decimal(key).scaleb(-type_.scale):f}"
        case _ if pa.types.is_boolean(type_) and key in (0, 1):
            return WORDS[bool(key)].lower()
        case _:
            return _moment_form(key, type_)


def _moment_form(key: int, type_: pa.DataType) -> str:
    try:
        if pa.types.is_date(type_):
            return (EPOCH + dt.timedelta(days=key)).date().isoformat()
        if pa.types.is_timestamp(type_):
            moment = EPOCH + dt.timedelta(microseconds=key)
            return moment.isoformat() + ("Z" if type_.tz else "")
    except OverflowError:
        return f"#{key}"
    return str(key)


# ---- operands --------------------------------------------------------------------------------------------------------


def operand_form(operand: Operand) -> str:
    """An operand as the expression that it is."""
    match operand:
        case Field():
            return str(operand)
        case Constant(type_, key):
            return "NULL" if key is None else value_form(key, type_)
        case Varying():
            return "now"
        case Apply(function, arguments):
            inner = [operand_form(argument) for argument in arguments]
            name = base_name(function.name)
            if name in ("+", "-", "*", "/", "%"):
                return f"({f' {name} '.join(inner)})"
            return f"{function.name}({', '.join(inner)})" if "cast" in name else f"{name}({', '.join(inner)})"
        case Conditional(branches, otherwise):
            cases = "; ".join(f"{bound_form(condition)}: {operand_form(value)}" for condition, value in branches)
            return f"case({cases}; else {operand_form(otherwise)})"
        case Tested(predicate):
            return f"({bound_form(predicate)})"


def base_name(name: str) -> str:
    """The name of a function without its parameters."""
    return name.partition("[")[0]
