"""Read selected rows of a row group by reading only their pages.

The pages that hold a selected row are copied unchanged into a small Parquet file in memory (``page_file.py``), which
pyarrow decodes; then the other rows are cut away. So every type, encoding and codec is read as pyarrow reads it. Page
headers are checked against the page locations before decoding, and the number of rows afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from secateur.errors import InvalidParquet
from secateur.io.parquet.chunk_locations import ChunkLocations
from secateur.io.parquet.file_metadata import FileMetadata
from secateur.io.parquet.page_file import ReadPages, decoded, require_readable
from secateur.io.parquet.page_selection import PageSelection, chosen_pages
from secateur.io.parquet.row_selection import RowSelection
from secateur.io.parquet.schema import display
from secateur.io.storage.byte_ranges import LOCAL_GAP, Range, View, read_ranges
from secateur.io.storage.redaction import trouble

WINDOW_BYTES = 64 << 20  # of compressed pages that are held at once


@dataclass(frozen=True, eq=False)
class PageReader:
    """Reads rows of one file by its pages; errors name the file as `redacted`."""

    redacted: str
    file: pa.NativeFile
    head: FileMetadata
    locations: Callable[[int, Sequence[int]], ChunkLocations]  # of some leaves of a row group; has their pages
    gap: int = LOCAL_GAP  # bytes; ranges at most this far apart are read together

    def read(self, row_group: int, names: Sequence[str], rows: RowSelection) -> Iterator[pa.Table]:
        """Yield the selected rows of some top-level columns of the file, in order, some megabytes of pages at a time.

        Equal to reading the whole row group and slicing it. Reads only the pages that hold a selected row, and the
        dictionaries that they need. Raises InvalidParquet, naming the file, the column and the page.
        """
        leaves = self._leaves(names)
        if not len(rows) or not leaves:
            yield pa.Table.from_batches([], self.head.schema_of(names))
            return
        locations = self.locations(row_group, leaves)
        if rows.stop[-1] > locations.row_count:
            raise InvalidParquet(
                f"row {rows.stop[-1] - 1} of row group {row_group} of {self.redacted} is asked for, "
                f"which has {locations.row_count} rows"
            )
        chosen = self._chosen(row_group, locations, rows)
        windows = -(-sum(selection.byte_count for selection in chosen.values()) // WINDOW_BYTES)
        if windows <= 1:
            yield self._table(row_group, chosen, rows)
            return
        for part in rows.split(windows):
            yield self._table(row_group, self._chosen(row_group, locations, part), part)

    def _leaves(self, names: Sequence[str]) -> Sequence[int]:
        try:
            return self.head.leaves(names)
        except InvalidParquet as error:
            raise InvalidParquet(f"{self.redacted}: {error}") from None

    def _chosen(self, row_group: int, locations: ChunkLocations, rows: RowSelection) -> dict[int, PageSelection]:
        """Return the pages of every leaf that hold some of the rows."""
        return {
            leaf: chosen_pages(self._named(row_group, leaf), self.head.columns[leaf], chunk, rows)
            for leaf, chunk in locations.chunks.items()
        }

    def _table(self, row_group: int, chosen: Mapping[int, PageSelection], rows: RowSelection) -> pa.Table:
        read = self._pages(chosen)
        try:
            return decoded(self.head, read, rows)
        except (pa.ArrowException, OSError, InvalidParquet) as error:
            self._blame(read)
            raise InvalidParquet(f"cannot read row group {row_group} of {self.redacted}: {error}") from None

    def _pages(self, chosen: Mapping[int, PageSelection]) -> dict[int, ReadPages]:
        """Read the selected pages of every leaf with the likely dictionaries, then the dictionaries found to be
        needed.
        """
        wanted = [leaf for leaf, selection in chosen.items() if selection.is_dictionary_likely]
        ranges = [range_ for selection in chosen.values() for range_ in selection.ranges]
        data = iter(self._bytes([*ranges, *(chosen[leaf].dictionary for leaf in wanted)]))
        pages = {leaf: selection.checked(data) for leaf, selection in chosen.items()}
        dictionaries = dict(zip(wanted, data, strict=True))
        missed = [
            leaf
            for leaf, pages_of_leaf in pages.items()
            if leaf not in dictionaries and any(header.needs_dictionary for _, header in pages_of_leaf)
        ]
        late = self._bytes([chosen[leaf].dictionary for leaf in missed])
        dictionaries |= dict(zip(missed, late, strict=True))
        for leaf, dictionary in dictionaries.items():
            chosen[leaf].require_dictionary(memoryview(dictionary))
        return {
            leaf: ReadPages(chosen[leaf], pages_of_leaf, dictionaries.get(leaf, b""))
            for leaf, pages_of_leaf in pages.items()
        }

    def _bytes(self, ranges: Sequence[Range]) -> Sequence[View]:
        try:
            return read_ranges(self.file, ranges, self.gap) if ranges else ()
        except InvalidParquet as error:
            raise InvalidParquet(f"{self.redacted}: {error}") from None
        except OSError as error:
            raise trouble(f"cannot read {self.redacted}", error, InvalidParquet) from None

    def _blame(self, read: Mapping[int, ReadPages]) -> None:
        """Raise InvalidParquet for the first page that cannot be decoded separately."""
        for leaf, pages in read.items():
            for i in range(len(pages.pages)):
                try:
                    require_readable(self.head, leaf, pages.only(i))
                except (pa.ArrowException, OSError, InvalidParquet) as error:
                    raise pages.chosen.trouble(i, error) from None

    def _named(self, row_group: int, leaf: int) -> str:
        return f"{self.redacted}: row group {row_group}, column {display(self.head.columns[leaf].names)}"
