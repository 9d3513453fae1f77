"""What an index keeps of a file for reads of single pages: its head, and the layouts of its row groups."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pyarrow as pa

from secateur.errors import InvalidParquet
from secateur.index.layouts import UNKNOWN, FileLayouts
from secateur.io.column_chunk import Chunk
from secateur.io.encoded_layout import encode_layout
from secateur.io.footer import Footer
from secateur.io.layout import ChunkLayout, Layout, chunk_layout
from secateur.io.page_index import Pages, read_pages
from secateur.io.page_walk import walked
from secateur.io.parquet_schema import Column
from secateur.io.ranges import LOCAL_GAP, READ_THREADS, Range, read_ranges
from secateur.io.thrift import MalformedThrift, decode_struct


def file_layouts(file: pa.NativeFile, footer: Footer, gap: int = LOCAL_GAP) -> FileLayouts:
    """The head and the layouts of an open file, encoded; see :func:`layouts_of_file`. Raises OSError."""
    placed = np.where((footer.placed < 0).any(axis=0), UNKNOWN, footer.placed)
    return FileLayouts(footer.head.data, placed, [*map(encode_layout, layouts_of_file(file, footer, gap))])


def layouts_of_file(file: pa.NativeFile, footer: Footer, gap: int = LOCAL_GAP) -> list[Layout]:
    """The layout of every row group, of all leaves whose pages pyarrow need not find itself.

    All OffsetIndexes of the file are read at once; where a chunk has no usable one, the headers of its pages tell, as
    far as they add up. On an object store, where `gap` is greater than that of a local disk, such chunks are read
    whole, many at once. Raises OSError.
    """
    indexes = _offset_indexes(file, footer, gap)
    return [_layout(file, footer, row_group, indexes, gap) for row_group in range(len(footer.row_count))]


def _layout(file: pa.NativeFile, footer: Footer, row_group: int, indexes: dict[Range, bytes], gap: int) -> Layout:
    rows, columns = int(footer.row_count[row_group]), footer.head.columns
    found: dict[int, ChunkLayout] = {}
    unknown = []
    for leaf, chunk in enumerate(footer.chunks(row_group)):
        pages = _pages(chunk, indexes, rows, file.size())
        layout = None if chunk.stored is None else chunk_layout(chunk.stored, pages, file.size())
        if layout is not None:
            found[leaf] = layout
            if layout.pages is None:
                unknown.append(leaf)
    walk = partial(_walked, file, footer, row_group, columns, gap)
    if gap > LOCAL_GAP and len(unknown) > 1:
        with ThreadPoolExecutor(min(READ_THREADS, len(unknown))) as threads:
            layouts = list(threads.map(walk, unknown))
    else:
        layouts = list(map(walk, unknown))
    found |= {leaf: layout for leaf, layout in zip(unknown, layouts, strict=True) if layout is not None}
    return Layout(rows, found)


def _walked(
    file: pa.NativeFile, footer: Footer, row_group: int, columns: tuple[Column, ...], gap: int, leaf: int
) -> ChunkLayout | None:
    """The layout of a chunk by the headers of its pages; None where they do not tell."""
    stored = footer.chunks(row_group)[leaf].stored
    assert stored is not None  # of the leaves that have a layout
    found = walked(file, stored, columns[leaf], int(footer.row_count[row_group]), gap)
    return None if found is None else chunk_layout(*found, file.size())


def _offset_indexes(file: pa.NativeFile, footer: Footer, gap: int) -> dict[Range, bytes]:
    """The bytes of all OffsetIndexes that lie in the file; none where they are together longer than it."""
    size = file.size()
    chunks = (chunk for row_group in range(len(footer.row_count)) for chunk in footer.chunks(row_group))
    places = [each for chunk in chunks if (each := chunk.offset_index) is not None and sum(each) <= size]
    if sum(length for _, length in places) > size:
        return {}
    return dict(zip(places, map(bytes, read_ranges(file, places, gap)), strict=True))


def _pages(chunk: Chunk, indexes: dict[Range, bytes], rows: int, file_size: int) -> Pages | None:
    """The pages by the OffsetIndex of a chunk; None where it has no usable one."""
    data = None if chunk.offset_index is None else indexes.get(chunk.offset_index)
    if data is None:
        return None
    try:
        return read_pages(decode_struct(data), rows, file_size)
    except (MalformedThrift, InvalidParquet):
        return None
