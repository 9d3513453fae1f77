"""List the values that blocks hold of a column, by ordered postings: what counts different values without their rows.

Sound: every value of a block that is not unknown has an entry, and every entry is a value of its block. Where heads are
exact, values are known by them. So the different heads of some blocks are their different values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from secateur.index.container.checked_matrix import Range, read_rows
from secateur.index.filters.heads import WIDTH
from secateur.index.filters.ordered import OrderedTable, block_heads
from secateur.index.model import ORDERED
from secateur.index.read.loader import IndexMemory
from secateur.index.segments.segment_file import StoredOrdered
from secateur.pruning.predicate.bound import Field
from secateur.pruning.row_values import values_of
from secateur.ragged import offsets_of
from secateur.values import Keys, Kind, ordered_kind, same_keys

LEAST_SHARE = 1 / 16  # of a segment's blocks must be asked for: entries are in the order of values, so all are read
MOST_ENTRIES = 1 << 23  # of all segments, which are read in one process

_SIGN = np.uint64(1 << 63)


@dataclass(frozen=True)
class SegmentHeads:
    """The different heads of some blocks of a segment."""

    table: OrderedTable
    heads: np.ndarray  # int64, ascending; the last of a page may be the first of the next
    counts: np.ndarray  # entries of every head
    positions: np.ndarray  # int32: of every entry, the position of its block; -1 where it is not asked for

    def of(self, blocks: np.ndarray) -> np.ndarray:
        """Return the heads in some blocks: bool of shape (n + 1,), the last of them False."""
        if not len(self.heads):
            return self.heads
        return self.heads[np.logical_or.reduceat(blocks[self.positions], offsets_of(self.counts)[:-1])]


@dataclass(frozen=True)
class BlockValues:
    """The values that n blocks hold of a column; see :class:`secateur.pruning.statistics.ListedValues`."""

    type: pa.DataType
    is_known: np.ndarray  # bool of shape (n,)
    parts: tuple[SegmentHeads, ...]

    def over(self, blocks: np.ndarray) -> list[pa.Array]:
        """Return the values of some known blocks, bool of shape (n,), in parts; some of them repeatedly."""
        chosen = np.append(blocks & self.is_known, False)
        return [_values(part.table, heads, self.type) for part in self.parts if len(heads := part.of(chosen))]

    def among(self, n: int) -> BlockValues:
        """Return the same of n blocks, of which these are the first."""
        known = np.zeros(n, bool)
        known[: len(self.is_known)] = self.is_known
        return replace(self, is_known=known)


def listed_values(memory: IndexMemory, column: Field, numbers: np.ndarray, asked: np.ndarray) -> BlockValues | None:
    """Return the values of the blocks that are asked for, of ascending blocks of segments; None if nothing is known.

    `column` has its name in the index, `asked` marks some of the n blocks. Left out are segments of which few blocks
    are asked for, segments whose heads are not exact, and those whose entries would be too many.
    """
    f = _number(memory, column)
    if f is None or not asked.any():
        return None
    begin = memory.groups.block_begin
    wanted = np.flatnonzero(asked)
    segment = np.searchsorted(begin, numbers[wanted], "right") - 1
    segments, first, sizes = np.unique(segment, return_index=True, return_counts=True)
    is_known, parts, left = np.zeros(len(numbers), bool), [], MOST_ENTRIES
    for at, stored in enumerate(memory.ordered(f, segments)):
        number, of_segment = int(segments[at]), wanted[first[at] : first[at] + sizes[at]]
        if stored is None or not stored.table.is_exact or sizes[at] < LEAST_SHARE * stored.table.blocks:
            continue
        left -= stored.table.entries
        if left < 0:
            break
        position = np.full(stored.table.blocks, -1, np.int32)
        position[numbers[of_segment] - int(begin[number])] = of_segment
        position[stored.table.unknown] = -1
        with memory.faults.tolerated():
            parts.append(_read(memory, memory.groups.names[number], stored, position))
            is_known[position[position >= 0]] = True
    return BlockValues(column.type, is_known, tuple(parts)) if is_known.any() else None


def _number(memory: IndexMemory, column: Field) -> int | None:
    """Return the number of the ordered postings of a column."""
    serving = (
        f
        for f, filter_ in enumerate(memory.snapshot.filters)
        if filter_.kind == ORDERED and filter_.path == column.path and same_keys(filter_.type, column.type)
    )
    return next(serving, None)


def _read(memory: IndexMemory, name: str, stored: StoredOrdered, position: np.ndarray) -> SegmentHeads:
    """Read the heads of a segment; `position` is that of every block. Raises IndexFault."""
    where = f"{name}: ordered postings"

    def read(ranges: Sequence[Range]) -> list[bytes]:
        return memory.chunks.read_ranges(name, ranges)

    heads, counts, blocks = block_heads(stored.table, lambda rows: read_rows(stored.bands, rows, read, where), where)
    return SegmentHeads(stored.table, heads, counts, position[blocks])


def _values(table: OrderedTable, heads: np.ndarray, type_: pa.DataType) -> pa.Array:
    """Return the values of exact heads."""
    present = np.ones(len(heads), bool)
    match ordered_kind(type_):
        case Kind.BYTES:
            return _bytes(table.prefix, heads)
        case Kind.WIDE:
            return values_of(Keys(Kind.WIDE, (heads >> 63, heads.view(np.uint64))), type_, present)
        case _:
            return values_of(Keys(Kind.WORD, (heads,)), type_, present)


def _bytes(prefix: bytes, heads: np.ndarray) -> pa.Array:
    """Return the byte strings of exact heads: the prefix, then the bytes of the head without the zeros at its end."""
    words = (heads.view(np.uint64) ^ _SIGN).astype(">u8").view(np.uint8).reshape(-1, WIDTH)
    sizes = WIDTH - np.argmax(words[:, ::-1] != 0, axis=1)
    sizes[~words.any(axis=1)] = 0
    width = len(prefix)
    texts = np.empty((len(heads), width + WIDTH), np.uint8)
    texts[:, :width] = np.frombuffer(prefix, np.uint8)
    texts[:, width:] = words
    kept = texts[np.arange(width + WIDTH) < (width + sizes)[:, None]]
    offsets = pa.py_buffer(np.ascontiguousarray(offsets_of(width + sizes)))
    return pa.Array.from_buffers(pa.large_binary(), len(heads), [None, offsets, pa.py_buffer(kept)])
