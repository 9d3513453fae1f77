"""A digest of a bound predicate: of everything that its value on a row depends on, unlike its text.

Texts of literals are read in a session's time zone, by rules that change with the zone's; keys are what came of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.predicate.bound import (
    Apply,
    Compared,
    Constant,
    Field,
    Holds,
    Operand,
    TextMatch,
    Varying,
    Within,
)
from secateur.pruning.predicate.bound_walks import children, everything_in
from secateur.pruning.predicate.nodes import Is, Predicate, Truth


def fingerprint(predicate: Predicate) -> str:
    """Return a digest of a bound predicate: its nodes from left to right, types, functions, constants, sets of keys."""
    digest = hashlib.sha256()
    for part in everything_in(predicate):
        for said in _said(part):
            digest.update(len(said).to_bytes(8, "little"))
            digest.update(said)
    return digest.hexdigest()


def _said(part: Predicate | Operand) -> Iterator[bytes]:
    yield type(part).__name__.encode()
    match part:
        case Field(path, type_):
            yield repr((path, str(type_))).encode("utf-8", "surrogatepass")
        case Constant(type_, key):
            yield repr((str(type_), key)).encode("utf-8", "surrogatepass")
        case Apply(function):
            yield f"{function.name} {function.type}".encode("utf-8", "surrogatepass")
        case Within(ranges=ranges, fails=fails):
            yield from _keys(ranges)
            yield from () if fails is None else _keys(fails)
        case Holds(column, ranges):
            yield repr((column.path, str(column.type))).encode("utf-8", "surrogatepass")
            yield from _keys(ranges)
        case TextMatch(prefix=prefix):
            yield from _keys(prefix)
        case Compared(op):
            yield op.encode()
        case Truth(value) | Is(value=value):
            yield repr(value).encode()
        case Varying(type_, lower, upper):
            yield repr((str(type_), lower, upper)).encode("utf-8", "surrogatepass")
        case _:
            yield str(len(tuple(children(part)))).encode()


def _keys(ranges: RangeSet) -> Iterator[bytes]:
    thresholds = ranges.thresholds
    yield ranges.kind.name.encode()
    yield repr(thresholds.tolist()).encode() if thresholds.dtype == object else thresholds.tobytes()
