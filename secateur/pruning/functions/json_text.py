"""Values at a path into JSON text: ``get_json_object(text, '$.user.id')``.

The value of a row is Spark's wherever Spark could not read the text in another way; elsewhere it is unknown: text that
is not UTF-8, numbers with a fraction, which Java prints in its own way, objects and lists, which Spark writes anew, and
what only Spark's parser accepts. Sources: Spark's ``GetJsonObject`` and ``JsonPathParser``; RFC 8259; Jackson's
``StreamReadConstraints``.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from secateur.pruning.bounds.outcomes import NULL
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.functions.text import anything
from secateur.pruning.functions.text_kernels import only
from secateur.pruning.interval import Argument, Function, Interval, OnRows, RowValues
from secateur.pruning.predicate.patterns.substrings import MOST_ALTERNATIVES, Alternatives, Substring
from secateur.pruning.rows.arrow_texts import is_utf8

Step: TypeAlias = str | int  # the name of an object's member, or the index of a list's item

# The paths that are known here have plain names: Spark's parser skips spaces, and `*` asks for several values.
_PATH = re.compile(r"\$(?:\.[A-Za-z_][\w-]*|\['[A-Za-z_](?:[\w -]*\w)?'\]|\[\d{1,6}\])+", re.ASCII)
_STEP = re.compile(r"\.(?P<name>[\w-]+)|\['(?P<quoted>[^']+)'\]|\[(?P<index>\d+)\]", re.ASCII)

SPACES = " \t\n\r"

# Jackson refuses longer numbers and names, and deeper nesting, than these; Python does not, or at other sizes.
_LONG_NUMBER = re.compile(r"[0-9.eE+-]{1000}")
MOST_DEPTH, MOST_NAME = 900, 50_000


class OnlySparkKnows(Exception):
    """Only Spark knows the value."""


class _Malformed(ValueError):
    """Python's parser accepts what no other does."""


def path_of(text: str) -> tuple[Step, ...] | None:
    """Return the steps of a path; None if its meaning is not known here."""
    if not _PATH.fullmatch(text):
        return None
    return tuple(
        int(match["index"]) if match["index"] is not None else match["name"] or match["quoted"]
        for match in _STEP.finditer(text)
    )


def _get_json_object(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    match arguments:
        case [Argument(type=type_), Argument(key=bytes(text))] if type_ == pa.string():
            path = path_of(text.decode())
        case _:
            return None
    if path is None:
        return None

    def compute(values: Sequence[pa.Array | pa.Scalar], locale: str) -> RowValues:
        return values_at(values[0], path)

    def substrings(ranges: RangeSet) -> Alternatives:
        return substrings_of(path, ranges)

    name = f"get_json_object[{text!r}]"
    return Function(name, pa.string(), _or_null, (0, 0), exact=False, on_rows=OnRows(compute), substrings=substrings)


def _or_null(arguments: Sequence[Interval]) -> Interval:
    """Return any text or NULL, unless the JSON text is NULL."""
    interval = anything(arguments)
    return replace(interval, null=np.where(interval.value != 0, np.uint8(NULL), interval.null))


RULES = {"get_json_object": _get_json_object}


# ---- on rows ---------------------------------------------------------------------------------------------------------


def values_at(texts: pa.Array, path: Sequence[Step]) -> RowValues:
    """Return the value at a path into every JSON text."""
    return known_values(texts, lambda text: _value_in(text, path), pa.string())


def known_values(texts: pa.Array, value_in: Callable[[str], Any], type_: pa.DataType) -> RowValues:
    """Return what is in every JSON text; unknown where `value_in` raises OnlySparkKnows."""
    known = is_utf8(texts)
    values: list[Any] = []
    for row, text in enumerate(only(known, texts).to_pylist()):
        try:
            values.append(None if text is None else value_in(text))
        except OnlySparkKnows:
            values.append(None)
            known[row] = False
    return RowValues(pa.array(values, type_), ~known)


def _value_in(text: str, path: Sequence[Step]) -> str | None:
    """Return the value at a path into one JSON text, None for NULL. Raises OnlySparkKnows."""
    if is_beyond_limits(text):
        raise OnlySparkKnows
    try:
        root, _ = _DECODER.raw_decode(text.lstrip(SPACES))  # Spark, too, reads the first value only
    except (json.JSONDecodeError, _Malformed):
        if "'" in text or text.startswith("\ufeff"):  # Spark reads single quotes, and may skip the mark
            raise OnlySparkKnows from None
        return None
    except (RecursionError, ValueError):
        raise OnlySparkKnows from None
    return _at(root, path)


def is_beyond_limits(text: str) -> bool:
    """Return whether Jackson may refuse a text for its size; it reads some of these all the same."""
    if len(text) <= MOST_DEPTH:
        return False
    if text.count("{") + text.count("[") > MOST_DEPTH or _LONG_NUMBER.search(text):
        return True
    return len(text) > MOST_NAME and max(map(len, text.split('"'))) >= MOST_NAME


def _at(value: Any, path: Sequence[Step]) -> str | None:
    """Return the text of a value at a path, None for NULL. If a name occurs twice, the first with a value counts."""
    if not path:
        return _text_of(value)
    step, *rest = path
    if isinstance(value, Members):
        for name, member in value.members:
            if name == step and member is not None and (text := _at(member, rest)) is not None:
                return text
    elif isinstance(value, list) and isinstance(step, int) and step < len(value):
        if value[step] is None:
            raise OnlySparkKnows  # NULL for a name, the text "null" for an item
        return _at(value[step], rest)
    return None


def _text_of(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str() if not has_surrogates(value):
            return value
        case _:
            raise OnlySparkKnows


def has_surrogates(text: str) -> bool:
    """Return whether a text has half a character, which has no UTF-8."""
    return not text.isprintable() and _SURROGATE.search(text) is not None


_SURROGATE = re.compile("[\ud800-\udfff]")


class Members:
    """The members of an object in order, with those of one name."""

    __slots__ = ("members",)

    def __init__(self, members: list[tuple[str, Any]]) -> None:
        self.members = members


def _refuse(constant: str) -> float:
    raise _Malformed(constant)


# Spark's parser accepts control characters within texts.
_DECODER = json.JSONDecoder(object_pairs_hook=Members, parse_constant=_refuse, strict=False)


# ---- in the text -----------------------------------------------------------------------------------------------------

_PLAIN = re.compile(rb"[ !#-&(-.0-\[\]-~]+")  # ASCII but quotes, slashes and control characters, which may be escaped
_PLAIN_ENCODED = re.compile(rb"[ !#-&(-.0->@-\[\]-~]+")
_ESCAPED = tuple((Substring(rb"\u00%d" % digit),) for digit in range(2, 8))  # of any plain character, by its code
_WRITTEN_ANEW = re.compile(rb'[{\[].*|"?-?(\d+\.\d+(E-?\d+)?|\d+E-?\d+|NaN|Infinity)"?', re.DOTALL)


def substrings_of(path: Sequence[Step], ranges: RangeSet, *, is_encoded: bool = False) -> Alternatives:
    """Return what a JSON text contains if its value at a path is in a set of keys.

    It contains the names, and the value, as they are, or a character of them is escaped by its code. Nothing is known
    of values that Spark writes anew: objects, lists, and numbers with a fraction. Where Java has encoded the value
    (`is_encoded`), a question mark in it may be half of a character.
    """
    plain = _PLAIN_ENCODED if is_encoded else _PLAIN
    points = ranges.points
    values = [b""] if points is None else points.tolist()
    if len(values) + len(_ESCAPED) > MOST_ALTERNATIVES or any(map(_WRITTEN_ANEW.fullmatch, values)):
        return ()
    names = [step.encode() for step in path if isinstance(step, str)]
    as_they_are = [tuple(Substring(run) for part in (*names, value) for run in plain.findall(part)) for value in values]
    return (*as_they_are, *_ESCAPED) if all(as_they_are) else ()
