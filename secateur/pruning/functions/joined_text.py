"""Text made of a column and constants: ``concat``, ``lpad``, ``rpad``, and the digits of a whole number.

The results preserve no order that bounds could use (except after a constant prefix), but for a given text it is known
which values produce it. Sources: Spark's ``Concat``, ``StringLPad``, ``StringRPad``; ``UTF8String``, which counts
characters by their first bytes; Java's ``Long.toString``.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Sequence
from functools import reduce

import pyarrow as pa

from secateur.pruning.bounds import rangeset
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.functions import text_kernels
from secateur.pruning.functions.text import anything
from secateur.pruning.functions.types import is_integer
from secateur.pruning.interval import Argument, Function, OnRows, Rule, key_range
from secateur.values.key import INT64_MAX, INT64_MIN, Key, prefix_successor
from secateur.values.kinds import Kind

_JOINED = OnRows(text_kernels.joining)
MOST_PADDED = 1 << 12  # characters
_NUMBER = re.compile(rb"0|-?[1-9][0-9]{0,18}")


def _concat(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Concatenate texts; the value is bounded if one of them is not constant."""
    moving = [i for i, argument in enumerate(arguments) if argument.key is None]
    if not arguments or any(argument.type != pa.string() for argument in arguments):
        return None
    if len(moving) != 1:
        return Function("concat", pa.string(), anything, (0,) * len(arguments), exact=False, on_rows=_JOINED)
    (at,) = moving
    before = b"".join(a.key for a in arguments[:at] if isinstance(a.key, bytes))
    after = b"".join(a.key for a in arguments[at + 1 :] if isinstance(a.key, bytes))
    name = f"concat[{before!r}, {after!r}]"
    if after:  # it may reverse the order of two texts if one is a prefix of the other
        return Function(
            name,
            pa.string(),
            anything,
            (0,) * len(arguments),
            exact=False,
            preimage=_of_points(Kind.BYTES, lambda text: _between(text, before, after)),
            on_rows=_JOINED,
        )
    directions = tuple(int(i == at) for i in range(len(arguments)))
    return Function(
        name,
        pa.string(),
        anything,
        directions,
        exact=False,
        inverse=lambda key: _without_prefix(key, before),
        on_rows=_JOINED,
    )


def _between(text: bytes, before: bytes, after: bytes) -> Iterator[RangeSet]:
    if text.startswith(before) and text.endswith(after) and len(text) >= len(before) + len(after):
        yield rangeset.points(Kind.BYTES, [text[len(before) : len(text) - len(after)]])


def _without_prefix(key: Key, prefix: bytes) -> Key | None:
    """Return the first text that is at least a key once the prefix is prepended."""
    assert isinstance(key, bytes), "keys of strings are bytes"
    if key.startswith(prefix):
        return key[len(prefix) :]
    return b"" if key < prefix else None


def _of_points(kind: Kind, values: Callable[[bytes], Iterator[RangeSet]]) -> Callable[[RangeSet], RangeSet | None]:
    """Return the preimage of a set of single texts, from that of each; for other sets it is unknown."""

    def preimage(ranges: RangeSet) -> RangeSet | None:
        if ranges.is_everything:
            return rangeset.everything(kind)
        points: Sequence[bytes] | None = [] if ranges.is_empty else ranges.points  # type: ignore[assignment]
        if points is None or not all(map(_is_text, points)):
            return None
        return _united(kind, [value for text in points for value in values(text)])

    return preimage


def _is_text(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True


def _united(kind: Kind, sets: list[RangeSet]) -> RangeSet:
    """Unite many sets pairwise, so that each is copied a logarithmic number of times."""
    while len(sets) > 1:
        sets = [reduce(rangeset.union, sets[i : i + 2]) for i in range(0, len(sets), 2)]
    return sets[0] if sets else rangeset.empty(kind)


# ---- padding ---------------------------------------------------------------------------------------------------------


def _pad(name: str) -> Rule:
    """Make a text of an exact number of characters: longer ones are cut, shorter ones padded on one side."""

    def rule(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
        match arguments:
            case [Argument(type=type_), Argument(key=int(length))]:
                pad = b" "
            case [Argument(type=type_), Argument(key=int(length)), Argument(key=bytes(pad))]:
                pass
            case _:
                return None
        if type_ != pa.string() or not 0 < length <= MOST_PADDED or not pad.isascii():
            return None
        values = _of_points(Kind.BYTES, lambda text: _unpadded(name, text, length, pad))
        return Function(
            f"{name}[{length}, {pad!r}]",
            pa.string(),
            anything,
            (0,) * len(arguments),
            exact=False,
            preimage=values,
        )

    return rule


def _unpadded(name: str, text: bytes, length: int, pad: bytes) -> Iterator[RangeSet]:
    """Yield the texts that are padded or cut to this one."""
    characters = text.decode()
    count = len(characters)
    if count == length:  # cut there, or of that length
        yield rangeset.starting_with(text)
    elif count < length and not pad:
        yield rangeset.points(Kind.BYTES, [text])
    if count != length or not pad:
        return
    filling = pad.decode() * (length // len(pad) + 1)
    for missing in range(1, length + 1):
        part = characters[:missing] if name == "lpad" else characters[length - missing :]
        if part == filling[:missing]:
            rest = characters[missing:] if name == "lpad" else characters[: length - missing]
            yield rangeset.points(Kind.BYTES, [rest.encode()])


# ---- digits ----------------------------------------------------------------------------------------------------------


def digits(source: pa.DataType) -> Function | None:
    """Cast a whole number to text; the numbers that give a single text or a prefix are known."""
    if not is_integer(source):
        return None
    within = rangeset.between(Kind.WORD, *_both_ends(source))

    def preimage(ranges: RangeSet) -> RangeSet | None:
        if ranges.is_everything:
            return rangeset.everything(Kind.WORD)
        starts, stops = ranges.thresholds[::2].tolist(), ranges.thresholds[1::2].tolist()
        if len(starts) != len(stops):
            return None
        spans = []
        for start, stop in zip(starts, stops, strict=True):
            if stop == start + b"\0":
                spans += [(int(start), int(start) + 1)] if _NUMBER.fullmatch(start) else []
            elif stop == prefix_successor(start):
                spans += _beginning_with(start)
            else:
                return None
        return rangeset.intersection(_united(Kind.WORD, [_span(*ends) for ends in spans]), within)

    return Function(
        "cast[string]", pa.string(), anything, (0,), exact=False, preimage=preimage, on_rows=text_kernels.DIGITS
    )


def _both_ends(type_: pa.DataType) -> tuple[int, int | None]:
    least, greatest = key_range(type_)
    return least, None if greatest == INT64_MAX else greatest + 1


def _span(first: int, after: int) -> RangeSet:
    """Return the bigints of [first, after)."""
    if first > INT64_MAX or after <= INT64_MIN:
        return rangeset.empty(Kind.WORD)
    return rangeset.between(Kind.WORD, max(first, INT64_MIN), None if after > INT64_MAX else after)


def _beginning_with(prefix: bytes) -> list[tuple[int, int]]:
    """Return the spans of the numbers that begin with these digits: 15, 150 to 159, 1500 to 1599, and so on."""
    if prefix == b"-":
        return [(INT64_MIN, 0)]
    if prefix == b"0":
        return [(0, 1)]
    if not _NUMBER.fullmatch(prefix):
        return []
    number = int(prefix)
    spans = [(number * 10**power, (number + (1 if number > 0 else -1)) * 10**power) for power in range(20)]
    return spans if number > 0 else [(after + 1, first + 1) for first, after in spans]


RULES: dict[str, Rule] = {
    "concat": _concat,
    "lpad": _pad("lpad"),
    "rpad": _pad("rpad"),
}
