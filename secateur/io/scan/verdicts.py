"""Verdicts of reads: what a plan learns from earlier ones, and what its own reading leaves for later ones.

A verdict is left only of a row group whose rows were all looked at, or left out by pages or row lists that rule out the
same predicate; so not by a plan with a limit or with join keys. Of a file with deleted rows none is left: those rows
were not looked at, and a rollback or an older snapshot brings them back. What was found before still holds in such a
file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from secateur.io.scan.opened_table import OpenedTable
from secateur.io.scan.verdict_memory import MEMORY, KnownCondition, most_bytes, ordinals_in
from secateur.io.tables.file_rows import FileBlocks
from secateur.io.tables.listing import METADATA
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.residual import Residuals
from secateur.pruning.verdicts import Verdict, can_be_remembered, fields_read

if TYPE_CHECKING:
    from secateur.io.scan.block_reader import WithoutMatch


def verdicts_on(
    predicate: Predicate, opened: OpenedTable, session_time_zone: str, *, ansi: bool
) -> tuple[Verdict, ...]:
    """Return what earlier reads tell about a bound predicate in the live files."""
    if not most_bytes():
        return ()

    def applies(asked: KnownCondition) -> bool:
        return (asked.session_time_zone, asked.ansi) == (session_time_zone, ansi) and (
            _asked(asked.condition, opened, session_time_zone, ansi=ansi) == asked
        )

    return MEMORY.verdicts(opened.table.location, opened.listing, predicate, applies)


def leaving_verdicts(
    residuals: Residuals, opened: OpenedTable, session_time_zone: str, *, ansi: bool
) -> WithoutMatch | None:
    """Return a function that notes the row groups in which a residual is TRUE on no row; None if that is off."""
    most = most_bytes()
    if not most:
        return None
    asked = [
        None if residual is None else _asked(residual, opened, session_time_zone, ansi=ansi)
        for residual in residuals.distinct
    ]
    if not any(asked):
        return None
    table, listing = opened.table.location, opened.listing

    def note(file: FileBlocks, residual: int, row_groups: Sequence[int]) -> None:
        condition, identity = asked[residual], (file.path, file.size, file.stamp, file.witness)
        if condition is None:
            return
        touched = listing.touched
        if touched is not None and touched[ordinals_in(listing, [identity])].any():
            return
        MEMORY.leave(table, condition, identity, row_groups, most)

    return note


def forget_verdicts(opened: OpenedTable) -> None:
    """Forget what reads of a table found."""
    MEMORY.forget(opened.table.location)


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
