"""Page locations as bytes, as stored in an index for every block, and as sent to executors for the blocks they read.

Format: docs/format.md, "Page locations". Decoding trusts nothing: the result satisfies every check made on those
from the file's own footer, or IndexFault is raised.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from secateur.errors import IndexFault
from secateur.index.container.index_file import decode_chunk, encode_chunk
from secateur.io.parquet.chunk_locations import MAGIC_BYTES, ChunkLocations, ColumnLocations
from secateur.io.parquet.page_index import PageLocations
from secateur.ragged import offsets_of

MOST_LEAVES, MOST_PAGES = 1 << 16, 1 << 20
_NO_PAGES = -1  # of a chunk whose pages are unknown
_MOST_BYTES = 1 << 62  # limit of any sum
_LEAF_ARRAYS, _PAGE_ARRAYS = 9, 3
_NOTHING = np.zeros(0, np.int64)
_KINDS = (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32)
_RANGES = [(int(np.iinfo(kind).min), int(np.iinfo(kind).max), kind) for kind in _KINDS]


def encode_locations(locations: ChunkLocations) -> bytes:
    """Encode page locations; empty if there are more columns or pages than the format allows."""
    leaves = sorted(locations.chunks)
    chunks = [locations.chunks[leaf] for leaf in leaves]
    pages = [chunk.pages for chunk in chunks if chunk.pages is not None]
    if len(leaves) > MOST_LEAVES or sum(len(chunk_pages.rows) for chunk_pages in pages) > MOST_PAGES:
        return b""
    start, stop = (np.array([getattr(chunk, name) for chunk in chunks], np.int64) for name in ("start", "stop"))
    base = int(start[0]) if chunks else 0
    of_leaves = [
        np.diff(leaves, prepend=-1) - 1,
        start - np.append(base, stop[:-1])[: len(start)],
        np.array([_tail(chunk) for chunk in chunks], np.int64),
        np.array([chunk.codec for chunk in chunks], np.int64),
        np.array([chunk.value_count - locations.row_count for chunk in chunks], np.int64),
        np.array([chunk.uncompressed for chunk in chunks], np.int64),
        np.array([chunk.dictionary for chunk in chunks], np.int64),
        np.array([chunk.dictionary_pages for chunk in chunks], np.int64),
        np.array([_NO_PAGES if chunk.pages is None else len(chunk.pages.rows) for chunk in chunks], np.int64),
    ]
    of_pages = [
        [np.diff(chunk_pages.offset) - chunk_pages.size[:-1] for chunk_pages in pages],
        [chunk_pages.size for chunk_pages in pages],
        [chunk_pages.rows for chunk_pages in pages],
    ]
    of_pages[0] = [_with_first(chunk, gaps) for chunk, gaps in zip(_paged(chunks), of_pages[0], strict=True)]
    joined = [np.concatenate([_NOTHING, *parts]) for parts in of_pages]
    block = np.array([locations.row_count, base], np.int64)
    return encode_chunk([_narrowest(array) for array in (block, *of_leaves, *joined)])


def _paged(chunks: Sequence[ColumnLocations]) -> list[ColumnLocations]:
    return [chunk for chunk in chunks if chunk.pages is not None]


def _with_first(chunk: ColumnLocations, gaps: np.ndarray) -> np.ndarray:
    """Return the gaps before all pages of a chunk, from those between them."""
    assert chunk.pages is not None, "called for `_paged` chunks"
    first = chunk.pages.offset[:1] - (chunk.start + chunk.dictionary)
    return np.append(first, gaps)[: len(chunk.pages.rows)]


def _tail(chunk: ColumnLocations) -> int:
    """Return the bytes of a chunk after its last known part."""
    end = chunk.start + chunk.dictionary
    if chunk.pages is not None and len(chunk.pages.rows):
        end = int(chunk.pages.offset[-1] + chunk.pages.size[-1])
    return chunk.stop - end


def _narrowest(array: np.ndarray) -> np.ndarray:
    low, high = (int(array.min()), int(array.max())) if len(array) else (0, 0)
    for least, most, kind in _RANGES:
        if least <= low and high <= most:
            return array.astype(kind)
    return array


def decode_locations(data: bytes, file_size: int, where: str, leaves: Collection[int] | None = None) -> ChunkLocations:
    """Decode the page locations of some leaves of a block (None: all that it has) in a file of `file_size` bytes.

    Raises IndexFault, naming `where`, if the bytes are not page locations of such a file.
    """
    block, of_leaves, of_pages = _arrays(data, where)
    rows, base = block.tolist()
    step, gap, tail, codec, values, uncompressed, dictionary, dictionary_pages, count = of_leaves
    page_gap, page_size, page_rows = of_pages
    first = offsets_of(np.maximum(count, 0))
    sound = (
        _is_sum_of(_MOST_BYTES, step, gap, tail, dictionary, page_gap, page_size, page_rows)
        and 0 <= rows <= _MOST_BYTES
        and 0 <= base <= file_size
        and first[-1] == len(page_size)
        and _is_at_least(0, step, tail, codec, uncompressed, dictionary, dictionary_pages, page_gap)
        and _is_at_least(1, page_size, page_rows)
        and _is_at_least(_NO_PAGES, count)
        and _is_at_least(-rows, values)
        and bool((dictionary_pages <= np.maximum(count, 0)).all())
    )
    if not sound:
        raise IndexFault(f"{where}: these numbers are not page locations")
    rows_before, bytes_before = offsets_of(page_rows), offsets_of(page_gap + page_size)
    size = dictionary + np.diff(bytes_before[first]) + tail
    ends = base + np.cumsum(gap + size)  # a chunk begins where the previous one ends, plus a gap
    start = ends - size
    if min(start.min(initial=MAGIC_BYTES) - MAGIC_BYTES, file_size - ends.max(initial=0)) < 0:
        raise IndexFault(f"{where}: a column chunk lies outside of its file")
    if (np.diff(rows_before[first])[count >= 0] != rows).any():
        raise IndexFault(f"{where}: the pages of a column do not have the {rows} rows of the block")
    chunks: dict[int, ColumnLocations] = {}
    ordinals = np.cumsum(step + 1) - 1
    for i, leaf in enumerate(ordinals.tolist()):
        if leaves is not None and leaf not in leaves:
            continue
        of_chunk = slice(int(first[i]), int(first[i + 1]))
        behind = int(start[i] + dictionary[i] - bytes_before[of_chunk.start])
        pages = PageLocations(
            behind + bytes_before[1:][of_chunk] - page_size[of_chunk],
            page_size[of_chunk],
            rows_before[:-1][of_chunk] - rows_before[of_chunk.start],
            page_rows[of_chunk],
        )
        chunks[leaf] = ColumnLocations(
            start=int(start[i]),
            size=int(size[i]),
            codec=int(codec[i]),
            value_count=int(values[i]) + rows,
            uncompressed=int(uncompressed[i]),
            dictionary=int(dictionary[i]),
            dictionary_pages=int(dictionary_pages[i]),
            pages=pages if count[i] >= 0 else None,
        )
    return ChunkLocations(rows, chunks)


def _arrays(data: bytes, where: str) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """Return the numbers of the block, of its leaves and of their pages, with their lengths checked."""
    arrays = decode_chunk(data, where)
    if len(arrays) != 1 + _LEAF_ARRAYS + _PAGE_ARRAYS:
        raise IndexFault(f"{where}: {len(arrays)} arrays are not page locations")
    block, of_leaves, of_pages = arrays[0], arrays[1 : 1 + _LEAF_ARRAYS], arrays[1 + _LEAF_ARRAYS :]
    m, p = len(of_leaves[0]), len(of_pages[0])
    lengths = [2, *[m] * _LEAF_ARRAYS, *[p] * _PAGE_ARRAYS]
    if [len(array) for array in arrays] != lengths or m > MOST_LEAVES or p > MOST_PAGES:
        raise IndexFault(f"{where}: the arrays are not page locations of {m} columns and {p} pages")
    return _wide(block), list(map(_wide, of_leaves)), list(map(_wide, of_pages))


def _wide(array: np.ndarray) -> np.ndarray:
    """Convert to int64; greater values become negative."""
    return array.astype(np.int64)


def _is_sum_of(most: int, *arrays: np.ndarray) -> bool:
    """Return whether all possible sums of the arrays' values stay below a limit."""
    return sum(float(np.abs(array.astype(np.float64)).sum()) for array in arrays) < most


def _is_at_least(least: int, *arrays: np.ndarray) -> bool:
    return all(int(array.min(initial=least)) >= least for array in arrays)
