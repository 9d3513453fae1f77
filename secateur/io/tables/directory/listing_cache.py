"""The latest listing of a table, cached for at most `freshness` seconds and shared by threads."""

from __future__ import annotations

import datetime as dt
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pyarrow as pa

from secateur.forks import lock_for
from secateur.io.tables.directory.layout import FoundFiles
from secateur.io.tables.listing import Listing


@dataclass(eq=False)
class _Dated:
    """The files of a table, the time their listing began, and the listings derived from them by time zone."""

    begun: float  # by time.monotonic
    listed: FoundFiles
    by_zone: dict[dt.tzinfo | None, Listing] = field(default_factory=dict)

    def listing(self, zone: dt.tzinfo) -> Listing:
        """Return the files with their partition values, parsed once per zone; the key is None if no zone matters."""
        for known in (None, zone):
            if (listing := self.by_zone.get(known)) is not None:
                return listing
        partitions, files = self.listed.partitions(zone), self.listed.files
        zoned = any(pa.types.is_timestamp(field.type) for field in partitions.fields)
        listing = Listing(files.paths, files.size, files.modified, files.witness, partitions)
        return self.by_zone.setdefault(zone if zoned else None, listing)


class LatestListing:
    """Caches the latest listing. If a new listing finds the same files, the old objects are returned again.

    When several threads want a new listing at once, one lists and the others wait; those that asked before it began
    share it. A thread that accepts the cached listing never waits.
    """

    def __init__(self) -> None:
        self._dated: _Dated | None = None
        self._one_lists = lock_for(self, "_one_lists")

    def get(self, list_now: Callable[[], FoundFiles], zone: dt.tzinfo, most_seconds: float) -> Listing:
        """Return a listing begun less than `most_seconds` before this call, or after it. Errors of `list_now` pass
        through.
        """
        called = time.monotonic()
        dated = self._dated
        if dated is None or called - dated.begun >= most_seconds:
            with self._one_lists:
                dated = self._dated
                if dated is None or called - dated.begun >= most_seconds:
                    dated = self._renewed(time.monotonic(), list_now())
                    dated.listing(zone)  # errors in partitions leave the cached listing in place
                    self._dated = dated
        return dated.listing(zone)

    def expire(self) -> None:
        """Expire the cached listing, because it turned out wrong. A newer one that arrives meanwhile may expire too."""
        dated = self._dated
        if dated is not None:
            self._dated = replace(dated, begun=-math.inf)

    def _renewed(self, begun: float, listed: FoundFiles) -> _Dated:
        before = self._dated
        if before is not None and before.listed.equals(listed):
            return replace(before, begun=begun)
        return _Dated(begun, listed)
