"""A directory of Parquet files as a table: nested directories, Hive partitions, any filesystem of pyarrow."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from secateur.arrays import from_numpy
from secateur.concurrency import at_once
from secateur.errors import InvalidParquet, StalePlan, TableNotFound
from secateur.index.naming import BY_NAME, ByName
from secateur.index.read.memory_cache import ByteCache
from secateur.io.footer_progress import with_progress
from secateur.io.storage.byte_ranges import files_at_once, is_local
from secateur.io.storage.cache_directory import disk_cache_for, memory_cache
from secateur.io.storage.file_version import ListedFile
from secateur.io.storage.index_location import directory_index_store
from secateur.io.storage.index_store import FileStore
from secateur.io.storage.list_files import FileSystem
from secateur.io.storage.locations import FileSystems, resolve_location
from secateur.io.storage.object_file import FOOTER_THREADS
from secateur.io.storage.redaction import trouble
from secateur.io.storage.transfer import received, sent
from secateur.io.tables.directory.chosen import FileChoice, chosen_store
from secateur.io.tables.directory.glob import Globbed, require_glob
from secateur.io.tables.directory.layout import FoundFiles, Layout, in_directories, listed_where_opened
from secateur.io.tables.directory.listing_cache import LatestListing
from secateur.io.tables.directory.registered import RegisteredPartitions
from secateur.io.tables.file_rows import Delivery
from secateur.io.tables.freshness import seconds_of
from secateur.io.tables.listing import FileConstants, Listing
from secateur.io.tables.look import TableLook, look_at
from secateur.io.tables.metadata_tables import DirectoryTables
from secateur.io.tables.places import TablePlaces

if TYPE_CHECKING:
    from secateur.io.parquet.known_footer import GivenFooter
    from secateur.io.parquet.parquet_file import ParquetFile
    from secateur.io.storage.disk_cache import DiskCache
    from secateur.io.tables.file_rows import FileBlocks
    from secateur.io.tables.plain_rows import PlainRows


@dataclass(frozen=True)
class ParquetDirectory:
    """A directory of Parquet files; see :class:`secateur.io.tables.table.Table`."""

    location: str  # as the user gave it, absolute, without credentials
    filesystem: FileSystem
    root: str  # the same path within the filesystem
    store: FileStore
    declared_schema: pa.Schema | None = None
    freshness: float = 0.0  # maximum age of a listing in seconds; 0: every query lists
    found_by_location: bool = True  # other engines can find it by location: no extra setting or filesystem was given
    disk: DiskCache | None = field(default=None, compare=False, repr=False)
    layout: Layout = field(default=in_directories, compare=False, repr=False)
    others: FileSystems = field(default_factory=FileSystems, compare=False, repr=False)  # of files elsewhere
    cache: ByteCache = field(default_factory=memory_cache, compare=False, repr=False)
    _latest: LatestListing = field(default_factory=LatestListing, init=False, compare=False, repr=False)

    def __getstate__(self) -> dict[str, object]:
        replaced = {"filesystem": sent(self.filesystem), "cache": None, "_latest": None}
        return {**self.__dict__, **replaced, "layout": self.layout if self.is_by_directories else listed_where_opened}

    def __setstate__(self, state: dict[str, object]) -> None:
        opened = received(state["filesystem"])
        self.__dict__.update(state, filesystem=opened, cache=memory_cache(), _latest=LatestListing())

    def snapshot(self, *, fresh: bool = False) -> ParquetDirectory:
        """Return the directory itself: it has no snapshots, and a query only holds on to a listing."""
        return self

    @property
    def is_whole(self) -> bool:
        """Whether all files below the root are the table, with partition values in the names of directories."""
        return self.layout is in_directories

    @property
    def is_by_directories(self) -> bool:
        """Whether partition values are in the names of directories, if perhaps a glob leaves out some files."""
        return (self.layout.layout if isinstance(self.layout, Globbed) else self.layout) is in_directories

    @property
    def glob(self) -> str | None:
        """The glob that its files' names match, if one was given."""
        return self.layout.glob if isinstance(self.layout, Globbed) else None

    @property
    def places(self) -> TablePlaces:
        """Where its files are."""
        return TablePlaces(self.filesystem, self.root, self.location, self.others)

    def expire(self) -> None:
        """Discard the cached listing: the next query lists again, whatever `freshness` is."""
        self._latest.expire()

    def _repr_html_(self) -> str:
        """Return where it lies, its files and columns, for a notebook. Lists the files."""
        from secateur.io.tables.facts import html_of

        return html_of(self)

    @property
    def id(self) -> None:
        """None: a directory has no snapshots to tell apart."""
        return None

    @property
    def stored_schema(self) -> pa.Schema | None:
        """The declared schema. Which of its columns the files hold is known only from the files."""
        return self.declared_schema

    @property
    def metadata_tables(self) -> DirectoryTables:
        """Metadata tables of a directory, which has no metadata besides its listing."""
        return DirectoryTables()

    @property
    def naming(self) -> ByName:
        """The index refers to columns by name."""
        return BY_NAME

    def listing(self, zone: dt.tzinfo) -> Listing:
        """Return the live files by path; names that begin with ``_`` or ``.`` are not part of the table.

        Lists again unless this handle has a listing younger than `freshness`. Raises TableNotFound if the directory
        cannot be listed (for example because a name is not UTF-8), IncompatibleSchemas.
        """
        return self._latest.get(self._files, zone, self.freshness)

    def fresh_listing(self, zone: dt.tzinfo) -> Listing:
        """List the live files now; later calls of :meth:`listing` may reuse the result. Raises as :meth:`listing`."""
        return self._latest.get(self._files, zone, 0.0)

    def _files(self) -> FoundFiles:
        try:
            return self.layout(self.filesystem, self.root)
        except (OSError, UnicodeError) as error:
            raise trouble(f"cannot list {self.location}", error, TableNotFound) from None

    def schemas(self, listing: Listing, ordinals: np.ndarray) -> Iterator[tuple[str, pa.Schema]]:
        """Yield the path and schema of the given files. Footers are read in parallel, once per file identity."""

        def schema_of(ordinal: int) -> tuple[str, pa.Schema]:
            path = listing.paths[ordinal].as_py()
            key = ("schema", path, *listing.identity(ordinal))
            return path, self.cache.get(key, lambda: self.open_file(path).schema)

        with ThreadPoolExecutor(FOOTER_THREADS) as threads:
            yield from with_progress(threads.map(schema_of, ordinals.tolist()), len(ordinals), self.location)

    def open_file(self, path: str, given: GivenFooter | None = None) -> ParquetFile:
        """Open one file by its path in the listing. If it has vanished, the next query lists again."""
        from secateur.io.parquet.parquet_file import open_parquet  # a query answered by the index does not need it

        try:
            return open_parquet(*self.places.of(path), self.full_path(path), given=given)
        except StalePlan:
            self.expire()
            raise
        except InvalidParquet as error:
            if path.endswith(".parquet"):
                raise type(error)(
                    f"{error}; restore it, or, if it is no part of the table, move it away or give it a name that "
                    "begins with _"
                ) from None
            raise InvalidParquet(
                f"{error}; Spark cannot read it either: move it away, give it a name that begins with _, which is no "
                "part of the table, or open the table with glob='*.parquet', on the command line --glob '*.parquet'"
            ) from None

    def listed(self, listing: Listing, ordinal: int) -> ListedFile:
        """Return a file as it was listed."""
        path = listing.paths[ordinal].as_py()
        return ListedFile(*self.places.of(path), self.full_path(path), *listing.identity(ordinal))

    def require_listed(self, listing: Listing, ordinals: np.ndarray) -> None:
        """Raise StalePlan unless the files are still the listed ones, for readers that do not check themselves.

        Every file is looked up individually, in parallel unless the filesystem is a local disk.
        """

        try:
            at_once(lambda ordinal: self.listed(listing, ordinal).require(), ordinals.tolist(), FOOTER_THREADS)
        except StalePlan:
            self.expire()
            raise

    open_for_index = open_file

    def kept_manifests(self, before: Sequence[tuple[str, int]]) -> None:
        """None: a directory has no metadata of its own."""
        return

    def delivery(self, listing: Listing, ordinals: np.ndarray) -> Delivery:
        """Return how the files are read; the reader options are the values of partition columns."""
        chosen, partitions = from_numpy(ordinals), listing.partitions
        options = pa.nulls(len(ordinals), pa.struct([]))
        if partitions.fields:
            values = [values.take(chosen) for values in partitions.values]
            options = pa.StructArray.from_arrays(values, fields=list(partitions.fields))
        return Delivery(options, self.open_rows, files_at_once(self.filesystem), is_local(self.filesystem))

    delivery_of_all = delivery

    def open_rows(self, file: FileBlocks) -> PlainRows:
        """Open a file for reading and check that it is the listed one. Raises as :meth:`open_file`; StalePlan if it is
        not.
        """
        place = *self.places.of(file.path), self.full_path(file.path)
        listed = ListedFile(*place, file.size, file.stamp, file.witness)
        from secateur.io.parquet.parquet_file import open_rows
        from secateur.io.tables.plain_rows import PlainRows

        try:
            source = open_rows(*place, listed, file.stored)
        except StalePlan:
            self.expire()
            raise
        return PlainRows(source, FileConstants(file.path, file.size, file.options), listed)

    def full_path(self, path: str) -> str:
        """Return the path of a file as Spark and other engines take it."""
        return self.places.full_path(path)


def open_directory(
    location: str,
    *,
    index_location: str | None = None,
    filesystem: FileSystem | None = None,
    schema: pa.Schema | None = None,
    freshness: float | dt.timedelta | None = None,
    disk_cache: DiskCache | None = None,
    look: TableLook | None = None,
    glob: str | None = None,
) -> ParquetDirectory:
    """Open the table in a directory; see :func:`secateur.open_table`. `look`: what is there, if that is known.

    Raises TableNotFound if there is none, UnsupportedTable for other formats, ValueError for a negative freshness,
    InvalidOption.
    """
    seconds = seconds_of(freshness)
    redacted, resolved, root = resolve_location(location, filesystem)
    (look or look_at(resolved, root, redacted)).require_directory(redacted)
    store = directory_index_store(resolved, root, index_location, glob)
    disk = disk_cache or disk_cache_for(store.filesystem)
    found_by_location = "://" not in redacted or (filesystem is None and location.rstrip("/") == redacted)
    return ParquetDirectory(
        redacted,
        resolved,
        root,
        store,
        schema,
        seconds,
        found_by_location,
        disk,
        layout=_globbed(in_directories, glob),
    )


def open_chosen(
    choice: FileChoice,
    *,
    index_location: str | None = None,
    schema: pa.Schema | None = None,
    freshness: float | dt.timedelta | None = None,
    disk_cache: DiskCache | None = None,
    glob: str | None = None,
) -> ParquetDirectory:
    """Open some files as a table; see :func:`secateur.open_table`. Raises TableNotFound, ValueError, InvalidOption."""
    redacted, resolved, root = resolve_location(choice.location, choice.filesystem)
    store = chosen_store(resolved, root, index_location)
    return ParquetDirectory(
        redacted,
        resolved,
        root,
        store,
        schema or choice.schema,
        seconds_of(freshness),
        found_by_location="://" not in redacted or choice.filesystem is None,
        disk=disk_cache or disk_cache_for(store.filesystem),
        layout=_globbed(choice.layout, glob),
    )


def _globbed(layout: Layout, glob: str | None) -> Layout:
    """Return a layout of the files whose names match. Raises InvalidOption."""
    if glob is None:
        return layout
    require_glob(glob)
    return Globbed(layout, glob)


def open_registered(
    location: str,
    schema: pa.Schema,
    layout: RegisteredPartitions | None,
    *,
    index_location: str | None = None,
    freshness: float | dt.timedelta | None = None,
    disk_cache: DiskCache | None = None,
    glob: str | None = None,
) -> ParquetDirectory:
    """Open a table with the schema, and the partitions if any, that a catalog has for it.

    Raises ValueError, InvalidOption.
    """
    redacted, resolved, root = resolve_location(location, None)
    store = directory_index_store(resolved, root, index_location, glob)
    disk = disk_cache or disk_cache_for(store.filesystem)
    table = ParquetDirectory(
        redacted, resolved, root, store, schema, seconds_of(freshness), "://" not in redacted, disk
    )
    if layout is not None:
        table = replace(table, layout=layout, others=layout.others)
    return table if glob is None else replace(table, layout=_globbed(table.layout, glob))
