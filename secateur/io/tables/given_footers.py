"""Footers that the program which wrote new files hands over, so that the files need not be opened for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from secateur.errors import InvalidOption, InvalidParquet
from secateur.io.parquet.known_footer import GivenFooter, end_of_file
from secateur.io.tables.file_source import OpenedFile, OpenForIndex
from secateur.io.tables.listing import Listing
from secateur.io.tables.table import TableSnapshot

ByPath: TypeAlias = Mapping[str, pq.FileMetaData]
Footers: TypeAlias = ByPath | Iterable[pq.FileMetaData]


@dataclass(frozen=True)
class OpenWithFooters:
    """Opens files of a table, with the footers that were handed over for them."""

    open: OpenForIndex
    given: Mapping[str, GivenFooter]

    def __call__(self, path: str) -> OpenedFile:
        """Open one file by its path, with columns named as in the index."""
        given = self.given.get(path)
        return self.open(path) if given is None else self.open(path, given)


def by_path(footers: Footers) -> dict[str, pq.FileMetaData]:
    """Return footers by the path that was given, or that the metadata has. Raises InvalidOption."""
    if not isinstance(footers, Mapping):
        return {_path_within(_checked(metadata)): metadata for metadata in footers}
    return {path: _checked(metadata) for path, metadata in footers.items()}


def _checked(metadata: object) -> pq.FileMetaData:
    if not isinstance(metadata, pq.FileMetaData):
        raise InvalidOption(f"footers has a {type(metadata).__name__} instead of a pyarrow.parquet.FileMetaData")
    return metadata


def _path_within(metadata: pq.FileMetaData) -> str:
    has_columns = metadata.num_row_groups and metadata.num_columns
    path = metadata.row_group(0).column(0).file_path if has_columns else ""
    if not path:
        raise InvalidOption(
            "footers has metadata that does not name its file: give a dictionary by path, or call set_file_path() on it"
        )
    return str(path)


def opens_with(table: TableSnapshot, listing: Listing, footers: ByPath) -> OpenWithFooters:
    """Return what opens the files of a listing, with the footers that were handed over for them.

    Soundness: each is compared with the end of its file when that is opened.
    """
    given: dict[str, GivenFooter] = {}
    sizes = dict(zip(listing.paths.to_pylist(), listing.size.tolist(), strict=True)) if footers else {}
    prefix = table.location.rstrip("/") + "/"
    for name, metadata in footers.items():
        path = name if name in sizes else name.removeprefix(prefix)
        end = _end(metadata) if path in sizes else None
        if end is not None:
            given[path] = GivenFooter(sizes[path], end)
    return OpenWithFooters(table.open_for_index, given)


def _end(metadata: pq.FileMetaData) -> bytes | None:
    """Return the bytes with which a file of this metadata ends; None if they cannot be told."""
    try:
        return end_of_file(metadata)
    except (InvalidParquet, pa.ArrowException):
        return None
