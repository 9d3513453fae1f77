"""Verdicts of reads: what a plan learns from earlier ones, and what its own reading leaves for later ones.

A plan leaves a verdict about a row group only if each of its rows was looked at, or was left out by pages or row lists
that rule out the same predicate. So a plan with a limit or with join keys leaves none, nor does any plan about a file
with deleted rows: these were not looked at, and a rollback or an older snapshot brings them back. Earlier verdicts
about such a file still hold.

A verdict about rows that the index left out, or that were read where it says that they lie, rests on the index, and
holds until that is built anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

from secateur.errors import IndexFault
from secateur.io.scan.kept.verdict_memory import MEMORY, Identity, KnownCondition, is_sharing, most_bytes, ordinals_in
from secateur.io.scan.opened_table import OpenedTable
from secateur.io.tables.file_rows import FileBlocks
from secateur.io.tables.listing import METADATA
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.residual import Residuals
from secateur.pruning.verdicts import Verdict, can_be_remembered, fields_read


def verdicts_on(
    predicate: Predicate, opened: OpenedTable, session_time_zone: str, *, ansi: bool
) -> tuple[Verdict, ...]:
    """Return what earlier reads tell about a bound predicate in the live files."""
    most = most_bytes()
    if not most:
        return ()

    def applies(asked: KnownCondition) -> bool:
        return (
            (asked.session_time_zone, asked.ansi) == (session_time_zone, ansi)
            and (asked.rests_on is None or asked.rests_on in _builds(opened))
            and _asked(asked.condition, opened, session_time_zone, ansi=ansi) == replace(asked, rests_on=None)
        )

    if is_sharing():
        from secateur.io.scan.kept.shared_verdicts import take_over  # seldom needed

        def known(condition: Predicate) -> KnownCondition | None:
            return _asked(condition, opened, session_time_zone, ansi=ansi)

        take_over(opened.table.location, opened.binding_schema, predicate, known, applies)
    return MEMORY.verdicts(opened.table.location, opened.listing, predicate, applies)


class WithoutTrue(NamedTuple):
    """Some row groups of a file in which a residual of a plan is TRUE on no row, as a task may send it."""

    residual: int
    file: Identity
    row_groups: tuple[int, ...]
    by_index: frozenset[int]  # row groups of which the index left out rows, or said where they lie


def without_true(file: FileBlocks, residual: int, row_groups: Sequence[int]) -> WithoutTrue:
    """Return what a reader has noticed of a file."""
    by_index = {at for at, rows in zip(file.row_groups, file.rows, strict=True) if rows is not None}
    if file.stored is not None:
        by_index.update(row_groups)
    identity = (file.path, file.size, file.stamp, file.witness)
    return WithoutTrue(residual, identity, tuple(row_groups), frozenset(by_index))


@dataclass(frozen=True)
class VerdictNotes:
    """Notes the row groups in which a residual of a plan is TRUE on no row."""

    opened: OpenedTable
    asked: Sequence[KnownCondition | None]  # every residual; None: it may be TRUE on other rows next time
    build: str | None  # that wrote most of the index
    most: int  # bytes of all that is remembered

    def __call__(self, file: FileBlocks, residual: int, row_groups: Sequence[int]) -> None:
        self.note(without_true(file, residual, row_groups))

    def note(self, noticed: WithoutTrue) -> None:
        """Remember it, unless rows of the file are deleted: these were not looked at."""
        condition, listing = self.asked[noticed.residual], self.opened.listing
        if condition is None:
            return
        if listing.touched is not None and listing.touched[ordinals_in(listing, [noticed.file])].any():
            return
        table, row_groups, by_index = self.opened.table.location, set(noticed.row_groups), noticed.by_index
        for rests_on, some in ((None, row_groups - by_index), (self.build, row_groups & by_index)):
            if some:
                MEMORY.leave(table, replace(condition, rests_on=rests_on), noticed.file, sorted(some), self.most)


def leaving_verdicts(
    residuals: Residuals, opened: OpenedTable, session_time_zone: str, *, ansi: bool
) -> VerdictNotes | None:
    """Return what notes the row groups in which a residual is TRUE on no row; None if that is off."""
    most = most_bytes()
    if not most:
        return None
    asked = [
        None if residual is None else _asked(residual, opened, session_time_zone, ansi=ansi)
        for residual in residuals.distinct
    ]
    if not any(asked):
        return None
    return VerdictNotes(opened, asked, next(iter(_builds(opened)), None), most)


@contextmanager
def keeping_verdicts(opened: OpenedTable) -> Iterator[None]:
    """Share what a read finds with other processes once it has ended, in whatever way; see :func:`is_sharing`."""
    try:
        yield
    finally:
        if is_sharing():
            from secateur.io.scan.kept.shared_verdicts import write_verdicts  # seldom needed

            write_verdicts(opened.table.location, opened.binding_schema)


def forget_verdicts(opened: OpenedTable) -> None:
    """Forget what reads of a table found."""
    MEMORY.forget(opened.table.location)
    if is_sharing():
        from secateur.io.scan.kept.shared_verdicts import forget  # seldom needed

        forget(opened.table.location)


def _builds(opened: OpenedTable) -> Mapping[str, int]:
    """Return the builds that wrote the segments of the table's index, the greatest first."""
    snapshot = opened.catalog.snapshot
    try:
        return {} if snapshot is None else snapshot.builds
    except IndexFault:  # the plan says so
        return {}


def _asked(condition: Predicate, opened: OpenedTable, session_time_zone: str, *, ansi: bool) -> KnownCondition | None:
    """Return a condition with its meaning; None if it may be TRUE on other rows when it is asked again.

    Values that are not in the files are left out: partition values come from the table's metadata or its catalog.
    """
    if not can_be_remembered(condition):
        return None
    named, naming, outside = fields_read(condition), opened.table.naming, {*opened.listing.columns}
    if not opened.listing.has_metadata_column:
        outside.add(METADATA)
    stored = [naming.field(field) for field in named]
    if not named or any(field is None for field in stored) or any(field.path[0] in outside for field in named):
        return None
    return KnownCondition(condition, tuple(field for field in stored if field is not None), session_time_zone, ansi)
