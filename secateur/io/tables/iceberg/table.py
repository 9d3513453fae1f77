"""An Iceberg table that follows its metadata as it changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from pyiceberg.table import Table as PyIcebergTable

from secateur.index.read.memory_cache import ByteCache
from secateur.io.storage.index_store import FileStore
from secateur.io.storage.locations import FileSystems
from secateur.io.tables.iceberg.registration import register
from secateur.io.tables.latest import Latest

if TYPE_CHECKING:
    from secateur.io.storage.disk_cache import DiskCache

from secateur.io.tables.iceberg.snapshot import IcebergSnapshot
from secateur.io.tables.iceberg.snapshot_selection import Selection, selected

__all__ = ["IcebergTable", "PyIcebergTable"]


@dataclass(frozen=True)
class IcebergTable:
    """An Iceberg table that follows its metadata as it changes; see :class:`secateur.io.tables.table.Table`."""

    location: str
    store: FileStore
    load: Callable[[], PyIcebergTable] = field(repr=False, compare=False)
    selection: Selection
    freshness: float  # maximum age of metadata in seconds
    index_location: str
    identifier: tuple[str, ...] | None = None  # in its catalog, with the catalog's name first
    files: FileSystems = field(default_factory=FileSystems, repr=False, compare=False)
    cache: ByteCache = field(default_factory=partial(ByteCache, 0), repr=False, compare=False)
    disk: DiskCache | None = field(default=None, repr=False, compare=False)
    _latest: Latest[IcebergSnapshot] = field(default_factory=Latest, init=False, repr=False, compare=False)

    def snapshot(self, *, fresh: bool = False) -> IcebergSnapshot:
        """Return the selected snapshot, from metadata no older than `freshness`.

        Raises TableNotFound, UnknownSnapshot.
        """
        return self._latest.get(self._renewed, 0.0 if fresh else self.freshness)

    def expire(self) -> None:
        """Discard the cached metadata: the next query looks it up again, whatever `freshness` is."""
        self._latest.expire()

    def _repr_html_(self) -> str:
        """Return where it lies, its files and columns, for a notebook. Lists the files."""
        from secateur.io.tables.facts import html_of

        return html_of(self)

    def register_index(self) -> str:
        """Name the location of the index in the table's properties; see :func:`secateur.register_index`."""
        register(self.load(), self.index_location)
        return self.index_location

    def _renewed(self, before: IcebergSnapshot | None) -> IcebergSnapshot:
        """Look up the current snapshot; return `before` if it is the same."""
        table = self.load()
        chosen, schema = selected(table, self.selection)
        if before is not None and before.is_of(table):
            return before
        state = (table.metadata_location, table.metadata, chosen, schema, table.io)
        kept = (self.files, self.cache, self.disk, self._latest.expire)
        return IcebergSnapshot(self.location, self.identifier, self.store, *state, *kept)
