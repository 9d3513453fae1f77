"""Chosen rows of a row group, read by their pages alone.

The pages that hold a chosen row are copied, as they lie, into a small Parquet file in memory (``page_file.py``), which
pyarrow decodes; then all rows but the chosen ones are cut away. So every type, encoding and codec that pyarrow reads is
read as pyarrow reads it. Before that, every page's header is held against the layout, afterwards the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from secateur.errors import InvalidParquet
from secateur.io.chosen_rows import ChosenRows, merged
from secateur.io.head import Head
from secateur.io.layout import Layout, selected_bytes, selected_pages
from secateur.io.page_file import ChunkBytes, decoded, filling, small_file
from secateur.io.page_header import DICTIONARY_PAGE, PageHeader, page_header
from secateur.io.page_index import Pages
from secateur.io.parquet_schema import Column, display
from secateur.io.ranges import LOCAL_GAP, Range, View, read_ranges
from secateur.io.shown import trouble

WINDOW_BYTES = 64 << 20  # of pages that are held at once, compressed


@dataclass(frozen=True, eq=False)
class PageReader:
    """Reads rows of one file by its pages; errors name the file as `shown`."""

    shown: str
    file: pa.NativeFile
    head: Head
    layout: Callable[[int, Sequence[int]], Layout]  # of some leaves of a row group; it has their pages
    gap: int = LOCAL_GAP  # bytes; ranges no farther apart are read together

    def read(self, row_group: int, names: Sequence[str], rows: ChosenRows) -> Iterator[pa.Table]:
        """The chosen rows of some top-level columns of the file, in order, some megabytes of pages at a time.

        Equal to reading the whole row group and slicing it. Only the pages that hold a chosen row are read, and the
        dictionaries that they need. Raises InvalidParquet, naming the file, the column and the page.
        """
        leaves = self.head.leaves(names)
        layout = self.layout(row_group, leaves)
        windows = -(-selected_bytes(layout, rows) // WINDOW_BYTES)
        for piece in rows.pieces(windows) if windows > 1 else [rows]:
            yield _Selection(self, row_group, layout, piece).table()


@dataclass(frozen=True, eq=False)
class _Selection:
    """One read: the pages of a row group that hold the chosen rows."""

    reader: PageReader
    row_group: int
    layout: Layout
    rows: ChosenRows

    def table(self) -> pa.Table:
        chosen = {leaf: np.flatnonzero(selected_pages(self._pages(leaf), *self._ends)) for leaf in self.layout.chunks}
        cover = self._cover()
        chunks = self._chunks(chosen, cover)
        data = small_file(self.reader.head, len(cover) + 1, chunks)  # one row more, which no column may have
        try:
            return decoded(self.reader.head, data, list(chunks), len(cover), partial(self.rows.within, cover))
        except (pa.ArrowException, OSError, InvalidParquet) as error:
            raise self._blamed(chosen, error) from None

    @property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        return self.rows.start, self.rows.stop

    def _pages(self, leaf: int) -> Pages:
        pages = self.layout.chunks[leaf].pages
        assert pages is not None
        return pages

    def _cover(self) -> ChosenRows:
        """The rows of the small file: from the first to the last row of the pages that any range needs."""
        start, stop = self._ends
        for leaf in self.layout.chunks:
            pages = self._pages(leaf)
            first = np.searchsorted(pages.first_row, self.rows.start, "right") - 1
            last = np.searchsorted(pages.first_row, self.rows.stop, "left") - 1
            start = np.minimum(start, pages.first_row[first])
            stop = np.maximum(stop, pages.first_row[last] + pages.rows[last])
        return merged(start, stop)

    def _chunks(self, chosen: dict[int, np.ndarray], cover: ChosenRows) -> dict[int, ChunkBytes]:
        """The bytes of every leaf's chunk in the small file."""
        wanted = {leaf: self._dictionary(leaf) for leaf, pages in chosen.items() if self._is_likely_needed(leaf, pages)}
        ranges = [range_ for leaf, pages in chosen.items() for range_ in _runs(self._pages(leaf), pages)]
        data = iter(self._read([*ranges, *wanted.values()]))
        bodies = {leaf: self._checked(leaf, pages, data) for leaf, pages in chosen.items()}
        dictionaries = {leaf: memoryview(next(data)) for leaf in wanted}
        missed = [leaf for leaf, (_, headers) in bodies.items() if self._is_missed(leaf, headers, dictionaries)]
        late = self._read([self._dictionary(leaf) for leaf in missed])
        dictionaries |= {leaf: memoryview(each) for leaf, each in zip(missed, late, strict=True)}
        for leaf, dictionary in dictionaries.items():
            self._require_dictionary(leaf, dictionary)
        return {
            leaf: self._chunk(leaf, chosen[leaf], *body, dictionaries.get(leaf), cover) for leaf, body in bodies.items()
        }

    def _read(self, ranges: Sequence[Range]) -> Sequence[View]:
        try:
            return read_ranges(self.reader.file, ranges, self.reader.gap) if ranges else ()
        except InvalidParquet as error:
            raise InvalidParquet(f"{self.reader.shown}: {error}") from None
        except OSError as error:
            raise trouble(f"cannot read {self.reader.shown}", error, InvalidParquet) from None

    def _is_likely_needed(self, leaf: int, pages: np.ndarray) -> bool:
        chunk = self.layout.chunks[leaf]
        return bool(chunk.dictionary and len(pages) and pages[0] < chunk.dictionary_pages)

    def _is_missed(self, leaf: int, headers: Sequence[PageHeader], read: dict[int, memoryview]) -> bool:
        return leaf not in read and any(header.needs_dictionary for header in headers)

    def _dictionary(self, leaf: int) -> Range:
        chunk = self.layout.chunks[leaf]
        return chunk.start, chunk.dictionary

    def _checked(self, leaf: int, pages: np.ndarray, data: Iterator[View]) -> tuple[list[memoryview], list[PageHeader]]:
        """The chosen pages of a leaf out of the ranges that were read, and their headers. Raises InvalidParquet."""
        known, column = self._pages(leaf), self.reader.head.columns[leaf]
        found: list[memoryview] = []
        headers = []
        for begin, _ in _runs(known, pages):
            run = memoryview(next(data))
            at = 0
            while at < len(run):
                page = int(pages[len(found)])
                assert int(known.offset[page]) == begin + at
                body = run[at : at + int(known.size[page])]
                headers.append(self._header(leaf, column, page, body))
                found.append(body)
                at += len(body)
        return found, headers

    def _header(self, leaf: int, column: Column, page: int, data: memoryview) -> PageHeader:
        chunk, rows = self.layout.chunks[leaf], int(self._pages(leaf).rows[page])
        try:
            header = page_header(data)
            if header.type == DICTIONARY_PAGE:
                raise InvalidParquet("a dictionary page where a data page should be")
            if header.size + header.compressed != len(data):
                raise InvalidParquet(
                    f"it says that it has {header.size + header.compressed} bytes instead of {len(data)}"
                )
            if header.uncompressed > chunk.uncompressed or header.value_count > chunk.value_count:
                raise InvalidParquet(
                    f"it says that it has {header.uncompressed} bytes uncompressed and {header.value_count} values, "
                    f"its whole column chunk {chunk.uncompressed} and {chunk.value_count}"
                )
            told = header.row_count if column.repetition else header.value_count
            if told is not None and told != rows:
                raise InvalidParquet(f"it says that it has {told} rows instead of {rows}")
        except InvalidParquet as error:
            raise self._trouble(leaf, page, error) from None
        return header

    def _require_dictionary(self, leaf: int, data: memoryview) -> None:
        """Raises InvalidParquet where the bytes are not one dictionary page."""
        chunk = self.layout.chunks[leaf]
        try:
            header = page_header(data)
            if header.type != DICTIONARY_PAGE or header.size + header.compressed != len(data):
                raise InvalidParquet(f"the {len(data)} bytes before its first data page are no dictionary page")
            if header.uncompressed > chunk.uncompressed:
                raise InvalidParquet(
                    f"the dictionary page says that it has {header.uncompressed} bytes uncompressed, its whole column "
                    f"chunk {chunk.uncompressed}"
                )
        except InvalidParquet as error:
            raise InvalidParquet(f"{self._named(leaf)}: {error}") from None

    def _chunk(
        self,
        leaf: int,
        pages: np.ndarray,
        bodies: Sequence[memoryview],
        headers: Sequence[PageHeader],
        dictionary: memoryview | None,
        cover: ChosenRows,
    ) -> ChunkBytes:
        """A leaf's chunk of the small file: its chosen pages, and filling ones where the cover goes beyond them."""
        column, known = self.reader.head.columns[leaf], self._pages(leaf)
        parts: list[bytes | memoryview] = [] if dictionary is None else [dictionary]
        values = sum(header.value_count for header in headers)
        starts, rows = known.first_row[pages].tolist(), known.rows[pages].tolist()
        page = 0
        for begin, end in zip(cover.start.tolist(), cover.stop.tolist(), strict=True):
            at = begin
            while at < end:
                chosen = page < len(starts) and starts[page] < end
                until = starts[page] if chosen else end
                if until > at:
                    parts.append(filling(column, until - at))
                    values += until - at
                at = until
                if chosen:
                    parts.append(bodies[page])
                    at += rows[page]
                    page += 1
        chunk = self.layout.chunks[leaf]
        return ChunkBytes(chunk.codec, parts, 0 if dictionary is None else len(dictionary), values)

    def _blamed(self, chosen: dict[int, np.ndarray], error: Exception) -> InvalidParquet:
        """The error of the first page that cannot be decoded by itself, or what was raised where each of them can."""
        for leaf, pages in chosen.items():
            for page in pages.tolist():
                known = self._pages(leaf)
                alone = ChosenRows(
                    known.first_row[page : page + 1], known.first_row[page : page + 1] + known.rows[page]
                )
                chunks = _Selection(self.reader, self.row_group, self.layout.only(leaf), alone)._chunks(
                    {leaf: np.array([page])}, alone
                )
                data = small_file(self.reader.head, len(alone) + 1, chunks)
                try:
                    decoded(self.reader.head, data, [leaf], len(alone), lambda whole: whole)
                except (pa.ArrowException, OSError, InvalidParquet) as own:
                    return self._trouble(leaf, page, own)
        return InvalidParquet(f"cannot read row group {self.row_group} of {self.reader.shown}: {error}")

    def _trouble(self, leaf: int, page: int, error: Exception) -> InvalidParquet:
        known = self._pages(leaf)
        first = int(known.first_row[page])
        rows = f"rows {first:,} to {first + int(known.rows[page]) - 1:,}"
        return InvalidParquet(f"{self._named(leaf)}, page {page} ({rows}): {error}")

    def _named(self, leaf: int) -> str:
        return (
            f"{self.reader.shown}: row group {self.row_group}, column {display(self.reader.head.columns[leaf].names)}"
        )


def _runs(pages: Pages, chosen: np.ndarray) -> list[Range]:
    """The byte ranges of chosen pages, those that follow one another without a gap as one."""
    offset, stop = pages.offset[chosen], pages.offset[chosen] + pages.size[chosen]
    cut = np.flatnonzero((np.diff(chosen) > 1) | (offset[1:] != stop[:-1]))
    first, last = np.append(0, cut + 1)[: len(chosen)], np.append(cut, len(chosen) - 1)[: len(chosen)]
    return list(zip(offset[first].tolist(), (stop[last] - offset[first]).tolist(), strict=True))
