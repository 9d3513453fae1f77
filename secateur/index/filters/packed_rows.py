"""Rows of bits as files have them: as many as fill whole bytes lie in one packed row.

docs/format.md, "Bloom matrices". A matrix over a few blocks has rows of a few bits, which bytes of their own would
enlarge up to eightfold. In memory every row has bytes of its own.
"""

from __future__ import annotations

from math import gcd

import numpy as np

ALIGNED = 512  # columns from which a build fills up bytes: at most a 64th is lost, and rows are read as they lie
AT_ONCE = 1 << 14  # rows whose bits are held, one per byte


def rows_packed(columns: int) -> int:
    """Return how many rows of bits lie in one packed row."""
    return 8 // gcd(8, columns)


def row_bytes(columns: int) -> int:
    """Return the bytes of a row of its own."""
    return -(-columns // 8)


def packed_bytes(columns: int) -> int:
    """Return the bytes of a packed row."""
    return columns * rows_packed(columns) // 8


def columns_for(blocks: int) -> int:
    """Return the columns of a matrix over so many blocks."""
    return -(-blocks // 8) * 8 if blocks >= ALIGNED else blocks


def pack(rows: np.ndarray, columns: int) -> np.ndarray:
    """Pack rows of their own, uint8 of shape (n, row_bytes); the last packed row is filled up with zeros."""
    together = rows_packed(columns)
    if together == 1:
        return rows
    packed = np.empty((-(-len(rows) // together), packed_bytes(columns)), np.uint8)
    for start in range(0, len(rows), AT_ONCE):
        bits = np.unpackbits(rows[start : start + AT_ONCE], axis=1, count=columns, bitorder="little").reshape(-1)
        whole = np.packbits(bits, bitorder="little")
        first = start // together * packed.shape[1]
        packed.reshape(-1)[first : first + len(whole)] = whole
        packed.reshape(-1)[first + len(whole) :] = 0
    return packed


def unpack(packed: np.ndarray, place: np.ndarray, columns: int) -> np.ndarray:
    """Return the row in `place`, int64 of shape (n,), of each of n packed rows: uint8 of shape (n, row_bytes)."""
    byte, shift = np.divmod(place * columns, 8)
    at = np.minimum(byte[:, None] + np.arange(row_bytes(columns) + 1), packed.shape[1] - 1)
    source, shift = np.take_along_axis(packed, at, axis=1), shift.astype(np.uint8)[:, None]
    rows: np.ndarray = source[:, :-1] >> shift
    rows |= source[:, 1:] << (8 - shift)  # numpy shifts by 8 to 0
    rows[:, -1] &= 0xFF >> -columns % 8
    return rows


def lay_at(rows: np.ndarray, bits: np.ndarray, column: int) -> None:
    """Set the bits of other rows, uint8 of shape (n, bytes), in the columns from the given one on."""
    at, shift = divmod(column, 8)
    rows[:, at : at + bits.shape[1]] |= bits << shift
    if shift:
        above = rows[:, at + 1 : at + 1 + bits.shape[1]]
        above |= bits[:, : above.shape[1]] >> (8 - shift)
