"""The protocol of a table's history: which files came after a snapshot, and which were only appended."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from secateur.io.tables.listing import Listing
from secateur.io.tables.table import TableSnapshot


@dataclass(frozen=True)
class NewFiles:
    """The live files that came after a snapshot."""

    ordinals: np.ndarray  # in the listing, ascending
    other_schema: pa.Schema | None = None  # of the other live files, where the table declares none


@dataclass(frozen=True)
class AppendedFiles:
    """The files that appends have added, and the table to read them with, which has the current columns."""

    table: TableSnapshot
    listing: Listing
    other_schema: pa.Schema | None = None  # of other files, where the table declares none

    def take(self, part: slice) -> AppendedFiles:
        """Return some of the files, by their numbers."""
        return replace(self, listing=self.listing.take(np.arange(len(self.listing.size))[part]))


ALL = slice(None)


class History(Protocol):
    """The snapshots of one table up to the one that is read; for a directory, the snapshots of its index."""

    def identity_at(self, snapshot: int | None) -> str:
        """Return what distinguishes the table from one that took its place and has a snapshot of that number."""

    def newest(self) -> int | None:
        """Return the number of the snapshot that is read, or of a directory's current index; None if there is none."""

    def snapshot_of(self, listing: Listing) -> int | None:
        """Return the snapshot that has exactly the files of a listing; None for a table without any.

        Raises UnknownSnapshot if the index of a directory has others; IndexFault.
        """

    def new_files(self, since: int, listing: Listing) -> NewFiles:
        """Return the files of the listing that came after a snapshot.

        Raises UnknownSnapshot if there is no such snapshot, or if not all later ones are known; MixedRewrite if a live
        file holds both older and newer rows.
        """

    def appended(
        self, after: int | None, upto: int | None, zone: dt.tzinfo, *, skip_changes: bool, part: slice = ALL
    ) -> AppendedFiles:
        """Return the files that were appended after one snapshot up to another; without a first one, all of the table.

        They are numbered by their paths, for as long as the two snapshots are known; `part` are those to return.
        Files that only rewrite rows are left out. With `skip_changes`, snapshots that remove or change rows are
        skipped, with the files that they add; without it, they raise TableChanged. Raises UnknownSnapshot.
        """

    def appended_sizes(self, after: int | None, upto: int | None, zone: dt.tzinfo, *, skip_changes: bool) -> np.ndarray:
        """Return the bytes of the files that :meth:`appended` numbers, in order: int64. Raises as that does."""
