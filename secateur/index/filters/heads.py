"""Heads: one int64 per value that orders as the values do, or is equal where they differ late.

docs/format.md, "Ordered postings". The head of a number is its key. The head of a text or binary is the 8
bytes after the prefix that all values share; that of a wide decimal is the nearest int64.

Sound: heads never order two values the other way round. A threshold therefore cuts ascending heads at one place, or
somewhere among the values whose head equals its own; :func:`spans_of` then takes all of these in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.pruning.rangeset import RangeSet
from secateur.values import INT64_MAX, INT64_MIN, Key, Kind, keys_of, ordered_kind

WIDTH = 8  # bytes of a head
MOST_PREFIX = 1024  # bytes of a common prefix
_SIGN = np.uint64(1 << 63)


@dataclass(frozen=True)
class Heads:
    """The heads of some values."""

    heads: np.ndarray  # int64
    prefix: bytes = b""  # that the values, if they are bytes, have in common
    is_exact: bool = True  # whether a value is known by its head

    def __len__(self) -> int:
        return len(self.heads)

    def under(self, prefix: bytes) -> Heads:
        """Return the heads after another prefix, which the present one begins with."""
        rest = self.prefix[len(prefix) :]
        if not rest or not len(self):
            return Heads(self.heads, prefix, self.is_exact)
        words, cut = self.heads.view(np.uint64) ^ _SIGN, 8 * min(len(rest), WIDTH)
        low = words >> np.uint64(cut) if cut < 64 else np.zeros_like(words)
        dropped = words << np.uint64(64 - cut) if cut < 64 else words
        head = np.uint64(int.from_bytes(rest[:WIDTH].ljust(WIDTH, b"\0"), "big"))
        ends_in_zero = rest.endswith(b"\0") and not words.all()
        is_exact = self.is_exact and len(rest) <= WIDTH and not dropped.any() and not ends_in_zero
        return Heads(((head | low) ^ _SIGN).view(np.int64), prefix, is_exact)


def heads_of(values: pa.Array) -> Heads:
    """Return the heads of values of an ordered type, without NULL."""
    match ordered_kind(values.type):
        case Kind.WORD:
            return Heads(keys_of(values).words[0])
        case Kind.WIDE:
            high, low = keys_of(values).words
            fits = high == low.view(np.int64) >> 63
            nearest = np.where(high < 0, INT64_MIN, INT64_MAX)
            return Heads(np.where(fits, low.view(np.int64), nearest), is_exact=bool(fits.all()))
        case Kind.BYTES:
            return _heads_of_bytes(values.cast(pa.large_binary()))


def _heads_of_bytes(values: pa.Array) -> Heads:
    if not len(values):
        return Heads(np.zeros(0, np.int64))
    least, greatest = (pc.take(values, pc.array_sort_indices(values, order)[:1])[0].as_py() for order in _ORDERS)
    prefix = shared([least, greatest])
    rest = pc.binary_slice(values, len(prefix), len(prefix) + WIDTH)
    is_short = pc.all(pc.less_equal(pc.binary_length(values), len(prefix) + WIDTH)).as_py()
    is_exact = is_short and not pc.any(pc.ends_with(rest, b"\0")).as_py()
    return Heads((keys_of(rest.cast(pa.binary())).words[0] ^ _SIGN).view(np.int64), prefix, is_exact)


_ORDERS = ("ascending", "descending")


def shared(texts: Sequence[bytes]) -> bytes:
    """Return what some texts, at least one, begin with in common, up to MOST_PREFIX bytes."""
    least, greatest = min(texts), max(texts)
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(least[:MOST_PREFIX], greatest, strict=False))
    return bytes(byte for byte, _ in pairs)


def joined(parts: Sequence[Heads]) -> Heads:
    """Concatenate the heads of all parts, under the prefix that their values share."""
    prefixes = [part.prefix for part in parts if len(part)]
    prefix = shared(prefixes) if prefixes else b""
    moved = [part.under(prefix) for part in parts]
    heads = np.concatenate([np.zeros(0, np.int64), *(part.heads for part in moved)])
    return Heads(heads, prefix, all(part.is_exact for part in moved))


# ---- ranges ----------------------------------------------------------------------------------------------------------


class Cuts(NamedTuple):
    """Places in ascending heads: before the heads that equal `head`, or `after` them."""

    head: np.ndarray  # int64
    after: np.ndarray  # bool

    def among(self, heads: np.ndarray) -> np.ndarray:
        """Return the position of every cut in ascending heads."""
        before, after = (np.searchsorted(heads, self.head, side) for side in ("left", "right"))
        return np.where(self.after, after, before)


def spans_of(ranges: RangeSet, prefix: bytes, *, is_exact: bool) -> tuple[Cuts, Cuts]:
    """Return for every range where the values begin that may lie in it, and where they end.

    No value outside these spans is in `ranges`; if heads are exact, every value inside them is.
    """
    head, after_first, after_last = _thresholds(ranges, prefix, is_exact=is_exact)
    starts, stops = Cuts(head[::2], after_first[::2]), Cuts(head[1::2], after_last[1::2])
    if len(head) % 2:
        stops = Cuts(np.append(stops.head, INT64_MAX), np.append(stops.after, True))
    return starts, stops


def _thresholds(ranges: RangeSet, prefix: bytes, *, is_exact: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the head of every threshold, whether all values with that head are below it, and whether any may be."""
    if ranges.kind is Kind.WORD:
        nowhere = np.zeros(len(ranges.thresholds), bool)
        return ranges.thresholds, nowhere, nowhere
    described = [_threshold(key, prefix, is_exact) for key in ranges.thresholds.tolist()]
    head, first, last = zip(*described, strict=True) if described else ((), (), ())
    return np.array(head, np.int64), np.array(first, bool), np.array(last, bool)


def _threshold(key: Key, prefix: bytes, is_exact: bool) -> tuple[int, bool, bool]:
    match key:
        case int():
            head = min(max(key, INT64_MIN), INT64_MAX)
            if is_exact:
                return head, head < key, head < key
            return head, False, head < key or head == INT64_MIN
        case bytes() if key <= prefix:
            return INT64_MIN, False, False  # no value is below it
        case bytes() if not key.startswith(prefix):
            return INT64_MAX, True, True  # all values are
    rest = key[len(prefix) :]
    begun = rest[:WIDTH].ljust(WIDTH, b"\0")
    if is_exact:
        is_below = begun.rstrip(b"\0") < rest  # the only value with this head
        return _signed(begun), is_below, is_below
    return _signed(begun), False, len(rest) > WIDTH or rest.endswith(b"\0")


def _signed(head: bytes) -> int:
    return int.from_bytes(head, "big") - (1 << 63)
