"""A Hudi table that follows its timeline as it grows."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from secateur.errors import TableNotFound
from secateur.index.read.memory_cache import ByteCache
from secateur.io.storage.cache_directory import memory_cache
from secateur.io.storage.index_store import FileStore
from secateur.io.tables.hudi.instants import instant_at, number_of
from secateur.io.tables.hudi.properties import TableProperties, read_properties
from secateur.io.tables.hudi.snapshot import HudiSnapshot
from secateur.io.tables.hudi.state import StateReader
from secateur.io.tables.hudi.timeline import Timeline
from secateur.io.tables.latest import Latest
from secateur.io.tables.places import TablePlaces

if TYPE_CHECKING:
    from secateur.io.storage.disk_cache import DiskCache

ATTEMPTS = 4  # at reading files while commits end and old files are cleaned


@dataclass(frozen=True)
class InstantSelection:
    """The instant to read: the latest, a commit's own, or the last one up to a time."""

    version: int | None = None
    as_of: dt.datetime | str | None = None  # a text is an instant

    def __post_init__(self) -> None:
        if self.version is not None and self.as_of is not None:
            raise ValueError("version and as_of each name an instant: give one of them")

    def of(self, timeline: Timeline, *, is_utc: bool) -> int:
        """Return the selected instant; 0 for a table without commits. Raises UnknownSnapshot."""
        match self.as_of:
            case dt.datetime():
                return timeline.at(instant_at(self.as_of, is_utc=is_utc))
            case str():
                return timeline.at(number_of(self.as_of))
        return timeline.last if self.version is None else timeline.require(number_of(self.version))


@dataclass(frozen=True)
class HudiTable:
    """A Hudi table; see :class:`secateur.io.tables.table.Table`."""

    location: str
    store: FileStore
    places: TablePlaces = field(repr=False)
    selection: InstantSelection
    read_optimized: bool = False  # base files alone, whatever log files there are
    freshness: float = 0.0  # maximum age of the last look at the timeline, in seconds
    disk: DiskCache | None = field(default=None, repr=False, compare=False)
    cache: ByteCache = field(default_factory=memory_cache, repr=False, compare=False)
    _latest: Latest[HudiSnapshot] = field(default_factory=Latest, init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "cache": None, "_latest": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, cache=memory_cache(), _latest=Latest())

    def snapshot(self, *, fresh: bool = False) -> HudiSnapshot:
        """Return the selected instant, from a look at the timeline no older than `freshness`.

        Raises TableNotFound if something is missing or broken, UnknownSnapshot, UnsupportedTable.
        """
        return self._latest.get(self._renewed, 0.0 if fresh else self.freshness)

    def expire(self) -> None:
        """Discard the last look at the timeline: the next query looks again, whatever `freshness` is."""
        self._latest.expire()

    def _repr_html_(self) -> str:
        """Return where it lies, its files and columns, for a notebook. Lists the files."""
        from secateur.io.tables.facts import html_of

        return html_of(self)

    def _renewed(self, before: HudiSnapshot | None) -> HudiSnapshot:
        """Look at the timeline; return `before` if it is the same."""
        filesystem, root = self.places.filesystem, self.places.root
        properties = read_properties(filesystem, root, self.location)
        reader = StateReader(filesystem, root, self.location, properties, self.read_optimized)
        timeline = reader.timeline()
        if before is not None and _is_same(before, timeline, properties):
            return before
        known = before.state.commits if before is not None else {}
        for attempt in range(ATTEMPTS):
            instant = self.selection.of(timeline, is_utc=properties.is_utc)
            trouble, state = None, None
            try:
                state = reader.state(timeline, instant, known)
            except TableNotFound as error:
                trouble = error
            now = reader.timeline()
            if state is not None and now.commits == timeline.commits:
                disk, expire = self.disk, self._latest.expire
                return HudiSnapshot(self.location, self.store, self.places, state, self.cache, disk, expire)
            if trouble is not None and (now == timeline or attempt == ATTEMPTS - 1):
                raise trouble
            timeline = now
        raise TableNotFound(f"{self.location} is written to so often that no listing of its files holds: try again")


def _is_same(snapshot: HudiSnapshot, timeline: Timeline, properties: TableProperties) -> bool:
    """Return whether no commit has ended since a snapshot: those under way change none of its rows."""
    state = snapshot.state
    return state.timeline.commits == timeline.commits and state.properties == properties
