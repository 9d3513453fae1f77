"""A Delta table that follows its log as it grows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from secateur.errors import TableNotFound, UnknownSnapshot
from secateur.index.read.memory_cache import ByteCache
from secateur.io.storage.cache_directory import memory_cache
from secateur.io.storage.index_store import FileStore
from secateur.io.tables.delta.actions import LogReader
from secateur.io.tables.delta.log_files import LogListing, Replay, commit_name, file_now, list_log
from secateur.io.tables.delta.log_state import LogState, advanced, state_of
from secateur.io.tables.delta.snapshot import DeltaSnapshot
from secateur.io.tables.delta.time_travel import version_at
from secateur.io.tables.latest import Latest
from secateur.io.tables.places import TablePlaces

if TYPE_CHECKING:
    from secateur.io.storage.disk_cache import DiskCache


@dataclass(frozen=True)
class VersionSelection:
    """The version to read: the latest, a past one by number or time, or the one that another handle has loaded."""

    version: int | None = None
    as_of: dt.datetime | None = None
    loaded: Callable[[], int] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if sum(choice is not None for choice in (self.version, self.as_of, self.loaded)) > 1:
            raise ValueError("version and as_of each name a version, as an open DeltaTable does: give one of them")

    @property
    def is_latest(self) -> bool:
        """Whether the newest version is read."""
        return self == VersionSelection()


@dataclass(frozen=True)
class DeltaTable:
    """A Delta table; see :class:`secateur.io.tables.table.Table`."""

    location: str
    store: FileStore
    places: TablePlaces = field(repr=False)
    selection: VersionSelection
    freshness: float = 0.0  # maximum age of the last look at the log, in seconds
    disk: DiskCache | None = field(default=None, repr=False, compare=False)
    cache: ByteCache = field(default_factory=memory_cache, repr=False, compare=False)
    _latest: Latest[DeltaSnapshot] = field(default_factory=Latest, init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, object]:
        selection = self.selection
        pinned = (
            replace(selection, loaded=None, version=selection.loaded()) if selection.loaded is not None else selection
        )
        return {**self.__dict__, "selection": pinned, "cache": None, "_latest": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, cache=memory_cache(), _latest=Latest())

    def snapshot(self, *, fresh: bool = False) -> DeltaSnapshot:
        """Return the selected version, from a look at the log no older than `freshness`.

        Raises TableNotFound if a file of the log is missing or malformed, UnknownSnapshot, UnsupportedTable.
        """
        return self._latest.get(self._renewed, 0.0 if fresh else self.freshness)

    def expire(self) -> None:
        """Discard the last look at the log: the next query looks again, whatever `freshness` is."""
        self._latest.expire()

    def _repr_html_(self) -> str:
        """Return where it lies, its files and columns, for a notebook. Lists the files."""
        from secateur.io.tables.facts import html_of

        return html_of(self)

    @property
    def _reader(self) -> LogReader:
        return LogReader(self.places.filesystem, self.places.root, self.location)

    def _renewed(self, before: DeltaSnapshot | None) -> DeltaSnapshot:
        """Look up the selected version; return `before` if it is the same."""
        if before is not None and self.selection.is_latest and self._is_newest(before.state):
            return before
        listing = list_log(self.places.filesystem, self.places.root, self.location)
        version = self._version(listing)
        known = None if before is None else _still_there(before.state, listing)
        if before is not None and known is not None and known.version == version:
            return before
        state = self._state(listing, version, known)
        return DeltaSnapshot(self.location, self.store, self.places, state, self.cache, self.disk, self._latest.expire)

    def _is_newest(self, state: LogState) -> bool:
        """Return whether the log ends with a version, by two look-ups."""
        if state.mark is None:
            return False
        names = [commit_name(state.version), commit_name(state.version + 1)]
        mark, following = file_now(self.places.filesystem, self.places.root, names, self.location)
        return mark == state.mark and following is None

    def _version(self, listing: LogListing) -> int:
        selection = self.selection
        if selection.as_of is not None:
            return version_at(self._reader, listing, selection.as_of)
        if selection.loaded is not None:
            return selection.loaded()
        return listing.latest if selection.version is None else selection.version

    def _state(self, listing: LogListing, version: int, known: LogState | None) -> LogState:
        """Return the state of a version: the known state plus the commits since, or read from the log alone."""
        if known is not None and known.version < version:
            with suppress(TableNotFound, UnknownSnapshot):  # a checkpoint has replaced some of these commits
                commits = listing.between(known.version + 1, version)
                replay = Replay(version, None, tuple(commits), listing.commits.get(version))
                state = advanced(self._reader, known, commits, replay)
                if state is not None:
                    return state
        return state_of(self._reader, listing.replay(version))


def _still_there(state: LogState, listing: LogListing) -> LogState | None:
    """Return a state if its commit is still in the log: a table that was recreated has another one."""
    return state if state.mark is not None and listing.commits.get(state.version) == state.mark else None
