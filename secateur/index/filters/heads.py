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

from secateur.arrays import truths
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.values.conversion import keys_of
from secateur.values.key import INT64_MAX, INT64_MIN, prefix_successor
from secateur.values.keys import Keys
from secateur.values.kinds import Kind, ordered_kind

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
            keys = keys_of(values)
            return Heads(_nearest(keys), is_exact=bool(_fits(keys).all()))
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
    return Heads(_leading(rest), prefix, is_exact)


def _leading(texts: pa.Array) -> np.ndarray:
    """Return the heads of byte strings of at most WIDTH bytes, of large binary."""
    return (keys_of(texts.cast(pa.binary())).words[0] ^ _SIGN).view(np.int64)


def _fits(keys: Keys) -> np.ndarray:
    """Return which WIDE keys are in the range of int64: bool of shape (n,)."""
    high, low = keys.words
    return high == low.view(np.int64) >> 63


def _nearest(keys: Keys) -> np.ndarray:
    """Return the nearest int64 of WIDE keys."""
    high, low = keys.words
    return np.where(_fits(keys), low.view(np.int64), np.where(high < 0, INT64_MIN, INT64_MAX))


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


def keys_of_heads(heads: np.ndarray, prefix: bytes, kind: Kind) -> Keys:
    """Return the keys that exact heads stand for."""
    match kind:
        case Kind.WORD:
            return Keys(kind, (heads,))
        case Kind.WIDE:
            return Keys(kind, (heads >> 63, heads.view(np.uint64)))
        case Kind.BYTES:
            begun = (heads.view(np.uint64) ^ _SIGN).astype(">u8").view(np.uint8).reshape(-1, WIDTH)
            length = len(prefix) + ((begun != 0) * np.arange(1, WIDTH + 1)).max(axis=1, initial=0)
            width = -(-(len(prefix) + WIDTH) // 8)
            texts = np.zeros((len(heads), 8 * width), np.uint8)
            texts[:, : len(prefix)] = np.frombuffer(prefix, np.uint8)
            texts[:, len(prefix) : len(prefix) + WIDTH] = begun
            return Keys(kind, (*texts.view(">u8").astype(np.uint64).T, length.astype(np.uint64)))


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
    match ranges.kind:
        case Kind.WORD:
            nowhere = np.zeros(len(ranges.thresholds), bool)
            return ranges.thresholds, nowhere, nowhere
        case Kind.WIDE:
            return _wide_thresholds(ranges, is_exact)
        case Kind.BYTES:
            return _byte_thresholds(ranges, prefix, is_exact)


def _wide_thresholds(ranges: RangeSet, is_exact: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    keys = ranges.table(0)
    head = _nearest(keys)
    is_above = (keys.words[0] >= 0) & ~_fits(keys)  # the threshold is greater than its head
    if is_exact:
        return head, is_above, is_above
    return head, np.zeros(len(head), bool), is_above | (head == INT64_MIN)


def _byte_thresholds(ranges: RangeSet, prefix: bytes, is_exact: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thresholds up to the prefix have no value below them; those that are greater and do not begin with it, all."""
    behind = prefix_successor(prefix)
    first = int(np.searchsorted(ranges.thresholds, _boxed(prefix), "right")[0])
    end = len(ranges.thresholds) if behind is None else int(np.searchsorted(ranges.thresholds, _boxed(behind))[0])
    texts, known = ranges.texts.slice(first, end - first), len(prefix) + WIDTH
    is_below = pc.or_(pc.greater(pc.binary_length(texts), known), pc.ends_with(texts, b"\0"))  # the head says less
    head = np.full(len(ranges.thresholds), INT64_MIN)
    below_first, below_last = np.zeros(len(head), bool), np.zeros(len(head), bool)
    head[end:], below_first[end:], below_last[end:] = INT64_MAX, True, True
    if end > first:
        head[first:end] = _leading(pc.binary_slice(texts, len(prefix), known))
        below_last[first:end] = truths(is_below)
        below_first[first:end] = below_last[first:end] & is_exact  # the only value with this head
    return head, below_first, below_last


def _boxed(text: bytes) -> np.ndarray:
    """Return an array of one byte string, as a Python object: numpy's own have no zeros at their end."""
    array = np.empty(1, object)
    array[0] = text
    return array
