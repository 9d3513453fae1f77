"""A table, its live files and its index, combined for one query."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from secateur.arrays import from_numpy
from secateur.errors import TableNotFound
from secateur.index.model import BlockTable
from secateur.index.read.blocks import LooseBlocks
from secateur.index.read.index_view import IndexView
from secateur.index.read.open_index import Caches, current_snapshot, open_catalog
from secateur.index.segments.snapshot import Snapshot
from secateur.io.footer_progress import with_progress
from secateur.io.parquet.arrow_types import merge_schemas
from secateur.io.storage.object_file import FOOTER_THREADS
from secateur.io.tables.directory.recognition import recognised
from secateur.io.tables.field_ids import require_named_as
from secateur.io.tables.file_source import OpenedFile
from secateur.io.tables.listing import KNOWN_METADATA_FIELD, METADATA, METADATA_FIELD, Listing
from secateur.io.tables.metadata_tables import ManifestCounts
from secateur.io.tables.partitions import overlapping
from secateur.io.tables.table import Table, TableSnapshot
from secateur.pruning.report import Faults, Since

FindIndex = Callable[[], Snapshot | None]  # raises IndexFault


@dataclass(frozen=True, eq=False)
class TableState:
    """What the store of a table is asked for first; equal states are the same objects."""

    listing: Listing  # all live files
    index: Snapshot | None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableState) and self.listing is other.listing and self.index is other.index

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class OpenedTable:
    """One snapshot of a table: live files, schema, and the index where it covers them."""

    table: TableSnapshot
    listing: Listing
    schema: pa.Schema
    catalog: IndexView
    manifests_read: ManifestCounts  # to list the current files
    since: Since | None = None  # None: all live files are asked for
    others: Listing | None = None  # all live files, if the query asks for some only
    state: TableState | None = None  # as the store was asked for it; None: it was not

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without the index: a plan sent to another process opens its files by their footers."""
        return _without_index, (self.table, self.listing, self.schema, self.manifests_read, self.since, self.others)

    @property
    def whole(self) -> Listing:
        """All live files, asked for or not."""
        return self.listing if self.others is None else self.others

    @cached_property
    def binding_schema(self) -> pa.Schema:
        """The schema with Spark's hidden `_metadata`, unless the table has a column of that name."""
        return self.schema if self.listing.has_metadata_column else self.schema.append(METADATA_FIELD)

    @cached_property
    def readable_schema(self) -> pa.Schema:
        """The `binding_schema`, with those fields of `_metadata` that are known here."""
        return self.schema if self.listing.has_metadata_column else self.schema.append(KNOWN_METADATA_FIELD)


def no_file(table: TableSnapshot) -> TableNotFound:
    """Return the error of a table without files, which tells no columns."""
    glob = getattr(table, "glob", None)
    named = "" if glob is None else f" whose name matches {glob!r}"
    return TableNotFound(f"{table.location} holds no Parquet file{named}")


def _without_index(
    table: TableSnapshot,
    listing: Listing,
    schema: pa.Schema,
    manifests_read: ManifestCounts,
    since: Since | None,
    others: Listing | None,
) -> OpenedTable:
    footers, caches = FooterBlocks(table, listing), Caches(table.store, table.cache, table.disk)
    catalog = open_catalog(listing, caches, None, footers.open, Faults(strict=False), table.naming)
    return OpenedTable(table, listing, schema, catalog, manifests_read, since, others)


def open_snapshot_of(
    handle: Table,
    zone: dt.tzinfo,
    faults: Faults,
    *,
    use_index: bool = True,
    listing: Listing | None = None,
    other_schema: pa.Schema | None = None,
    since: int | None = None,
    known: TableState | None = None,
) -> OpenedTable:
    """List the table, unless a listing is given, and match its index; a `known` state is taken as it is.

    A listing may be of some of the table's files: `other_schema` is that of others, if the table declares none. With
    `since`, only the files are opened that came after this snapshot. Raises TableNotFound if the table has no
    Parquet file; UnknownSnapshot, MixedRewrite.
    """
    table = handle.snapshot()
    before = table.metadata_tables.manifests_read
    find_index = _index_of(table) if use_index else lambda: None
    if known is not None:
        listing, find_index = known.listing, lambda: known.index
    if listing is None:
        listing, find_index = _listed(table, zone, find_index)
    read = table.metadata_tables.manifests_read.since(before)
    if not len(listing.size) and table.declared_schema is None:
        raise no_file(table)
    newer, others, asked = None, None, listing
    if since is not None:
        from secateur.io.tables.formats import history_of  # seldom needed

        new = history_of(table).new_files(since, listing)
        newer = Since(since, len(new.ordinals), len(listing.size))
        listing, others = listing.take(new.ordinals), listing
        other_schema = new.other_schema
    snapshot: Snapshot | None = None
    with faults.tolerated():
        index = find_index()
        if index is not None:
            require_named_as(table, index.schema)
        snapshot = index
        listing = recognised(table, listing, snapshot)
    footers = FooterBlocks(table, listing)
    caches = Caches(table.store, table.cache, table.disk)
    catalog = open_catalog(listing, caches, snapshot, footers.open, faults, table.naming)
    schema = _schema(table, listing, catalog, other_schema)
    if METADATA in schema.names:
        listing = replace(listing, has_metadata_column=True)
        catalog = open_catalog(listing, caches, snapshot, footers.open, faults, table.naming)
    return OpenedTable(table, listing, schema, catalog, read, newer, others, TableState(asked, snapshot))


def _listed(table: TableSnapshot, zone: dt.tzinfo, find_index: FindIndex) -> tuple[Listing, FindIndex]:
    """Return the live files and a function that returns the index; an object store is asked for both at once.

    A format with snapshots loads its index itself, to know its files.
    """
    if table.store.is_local or table.id is not None:
        return table.listing(zone), find_index
    with ThreadPoolExecutor(1) as thread:
        found_index = thread.submit(find_index)
        return table.listing(zone), found_index.result


def _index_of(table: TableSnapshot) -> FindIndex:
    return lambda: current_snapshot(table.store, table.cache)


def opened_strictly(table: Table, listing: Listing | None = None) -> OpenedTable:
    """Open the table as queries see it, or with the given files. Raises IndexFault if the index cannot be read."""
    return open_snapshot_of(table, dt.UTC, Faults(strict=True), listing=listing)


def _schema(table: TableSnapshot, listing: Listing, catalog: IndexView, other_schema: pa.Schema | None) -> pa.Schema:
    """Return the declared schema, or that of the files: from the index if covered, else from footers.

    `other_schema` is that of files which are not listed.
    """
    partitions = listing.partitions.fields
    if table.declared_schema is not None:
        return overlapping(table.declared_schema, partitions)
    uncovered = catalog.coverage.uncovered
    if catalog.snapshot is not None and not len(uncovered):
        return overlapping(catalog.snapshot.schema, partitions)
    known = other_schema if catalog.snapshot is None else catalog.snapshot.schema
    indexed = [] if known is None else [("the index", known)]
    return overlapping(merge_schemas(_chain(indexed, table.schemas(listing, uncovered))), partitions)


def _chain(
    first: list[tuple[str, pa.Schema]], rest: Iterator[tuple[str, pa.Schema]]
) -> Iterator[tuple[str, pa.Schema]]:
    yield from first
    yield from rest


@dataclass(frozen=True)
class FooterBlocks:
    """Blocks of files that no segment serves, with statistics from their footers."""

    table: TableSnapshot
    listing: Listing

    def open(self, files: np.ndarray) -> LooseBlocks:
        """Return the blocks of the given live files. Raises InvalidParquet, StalePlan: this is data, not index."""
        paths = self.listing.paths.take(from_numpy(files)).to_pylist()
        with ThreadPoolExecutor(FOOTER_THREADS) as threads:
            read = list(with_progress(threads.map(self._read, paths), len(paths), self.table.location))
        sources, row_counts, byte_counts = zip(*read, strict=True)
        counts = list(map(len, row_counts))
        blocks = BlockTable(
            np.repeat(files, counts),
            np.concatenate([np.arange(n, dtype=np.int32) for n in counts]),
            np.concatenate(row_counts),
            np.concatenate(byte_counts),
        )
        return LooseBlocks(blocks, sources)

    def _read(self, path: str) -> tuple[OpenedFile, np.ndarray, np.ndarray]:
        """Open a file and decode its footer: return it, and the rows and bytes of its blocks."""
        source = self.table.open_file(path)
        return source, source.row_count, source.byte_count
