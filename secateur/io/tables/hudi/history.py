"""The history of a Hudi table. Its files do not tell new rows from old ones: its column `_hoodie_commit_time` does.

A commit that adds rows writes them, with the old ones, into the next base file of a file group.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from secateur.errors import UnsupportedTable
from secateur.io.tables.history import ALL, NewFiles
from secateur.io.tables.hudi.snapshot import HudiSnapshot
from secateur.io.tables.listing import Listing


@dataclass(frozen=True)
class HudiHistory:
    """The instants up to one of them; see :class:`secateur.io.tables.history.History`."""

    table: HudiSnapshot

    def identity_at(self, snapshot: int | None) -> str:
        """Return nothing: instants are times, so no table in place of another has one of its instants."""
        return ""

    def newest(self) -> int:
        """Return the instant that is read."""
        return self.table.id

    def snapshot_of(self, listing: Listing) -> int:
        """Return the instant itself: every listing belongs to one."""
        return self.table.id

    def new_files(self, since: int, listing: Listing) -> NewFiles:
        """Return no file for the instant that is read. Raises UnsupportedTable for others."""
        if since == self.table.id:
            return NewFiles(np.zeros(0, np.int64))
        raise self._mixed(f"_hoodie_commit_time > '{since}'")

    def appended(
        self, after: int | None, upto: int | None, zone: dt.tzinfo, *, skip_changes: bool, part: slice = ALL
    ) -> NoReturn:
        """Raises UnsupportedTable."""
        raise self._mixed("_hoodie_commit_time > '...'")

    def appended_sizes(self, after: int | None, upto: int | None, zone: dt.tzinfo, *, skip_changes: bool) -> NoReturn:
        """Raises UnsupportedTable."""
        raise self._mixed("_hoodie_commit_time > '...'")

    def _mixed(self, condition: str) -> UnsupportedTable:
        return UnsupportedTable(
            f"the files of {self.table.location}, a Hudi table, hold new rows beside old ones: ask for its new and "
            f"changed rows by the condition {condition}"
        )
