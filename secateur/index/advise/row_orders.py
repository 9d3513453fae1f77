"""Orders in which rows can be written: sorted by columns, or along a curve through the space that they span."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

_WORD = 64  # bits
_HILBERT_BITS = 16  # of each column: more than blocks can tell apart


class Curve(StrEnum):
    """How several columns make one order."""

    SORT = "sort"  # by the first column, then by the next
    ZORDER = "zorder"  # by the interleaved bits of all
    HILBERT = "hilbert"  # along Hilbert's curve: neighbours on it are neighbours in every column


@dataclass(frozen=True)
class RowOrder:
    """An order of the rows of a table."""

    curve: Curve
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.curve}({', '.join(self.columns)})"


def orders_by(columns: Sequence[str]) -> list[RowOrder]:
    """Return the orders by some columns: sorted with each of them first, and the curves if there are several."""
    sorted_ = [(first, *(name for name in columns if name != first)) for first in columns]
    curves = [RowOrder(curve, tuple(columns)) for curve in (Curve.ZORDER, Curve.HILBERT) if len(columns) > 1]
    return [*(RowOrder(Curve.SORT, names) for names in sorted_), *curves]


def positions(curve: Curve, values: Sequence[np.ndarray], bits: int = _WORD) -> np.ndarray:
    """Return where the rows lie in an order: int64 of shape (n,).

    Parameters
    ----------
    values
        One array of uint64 per column, of shape (n,), that orders as the column does, each less than 2^bits.
    """
    match curve:
        case Curve.SORT:
            words = list(values)
        case Curve.ZORDER:
            words = interleaved(values, bits)
        case Curve.HILBERT:
            shift = np.uint64(max(bits - _HILBERT_BITS, 0))
            kept = min(bits, _HILBERT_BITS)
            words = interleaved(_hilbert([axis >> shift for axis in values], kept), kept)
    return np.lexsort(words[::-1]).astype(np.int64)


def spread_ranks(ranks: np.ndarray, bits: int = 32) -> np.ndarray:
    """Return ranks spread over [0, 2^bits), so that columns of few and of many values weigh the same: uint64."""
    most = max(int(ranks.max(initial=0)), 1)
    return (ranks.astype(np.float64) * ((2**bits - 1) / most)).astype(np.uint64)


def interleaved(values: Sequence[np.ndarray], bits: int) -> list[np.ndarray]:
    """Return the bits of all columns in turn, the highest first, as words of uint64, the first the most significant."""
    count = len(values) * bits
    words = [np.zeros(len(values[0]), np.uint64) for _ in range(-(-count // _WORD))]
    for place in range(count):
        level, column = divmod(place, len(values))
        bit = (values[column] >> np.uint64(bits - 1 - level)) & np.uint64(1)
        words[place // _WORD] |= bit << np.uint64(_WORD - 1 - place % _WORD)
    return words


def _hilbert(axes: Sequence[np.ndarray], bits: int) -> list[np.ndarray]:
    """Return places on Hilbert's curve, each as one number per axis whose bits are to be interleaved.

    Source: Skilling, "Programming the Hilbert curve", 2004: AxestoTranspose.
    """
    x = [axis.copy() for axis in axes]
    for level in range(bits - 1, 0, -1):
        bit, lower = np.uint64(1 << level), np.uint64((1 << level) - 1)
        for axis in range(len(x)):
            is_set = (x[axis] & bit) != 0
            exchanged = np.where(is_set, np.uint64(0), (x[0] ^ x[axis]) & lower)
            x[0] = np.where(is_set, x[0] ^ lower, x[0] ^ exchanged)
            if axis:
                x[axis] = x[axis] ^ exchanged
    for axis in range(1, len(x)):
        x[axis] = x[axis] ^ x[axis - 1]
    turned = np.zeros(len(x[0]), np.uint64)
    for level in range(bits - 1, 0, -1):
        is_set = (x[-1] & np.uint64(1 << level)) != 0
        turned = np.where(is_set, turned ^ np.uint64((1 << level) - 1), turned)
    return [axis ^ turned for axis in x]
