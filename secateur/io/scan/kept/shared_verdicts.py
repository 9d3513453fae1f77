"""Verdicts that processes share: what is on disk taken into memory for a plan, and written there after a read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from secateur.io.scan.kept.conditions import KeptCondition, types_of, written
from secateur.io.scan.kept.verdict_files import VerdictFiles, verdict_files
from secateur.io.scan.kept.verdict_memory import MEMORY, FoundBlocks, KnownCondition, most_bytes
from secateur.pruning.predicate.bound_walks import columns
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.verdicts import implies, leaves_implying


def take_over(
    table: str,
    schema: pa.Schema,
    predicate: Predicate,
    known_as: Callable[[Predicate], KnownCondition | None],
    applies: Callable[[KnownCondition], bool],
) -> None:
    """Take into memory the blocks of those conditions on disk that tell something about a predicate.

    `known_as` says what a condition depends on in the table as it is now. Where nothing was written since the plan
    before, and what it wrote is in memory, this costs one look-up.
    """
    files = verdict_files()
    listed = files.conditions(table)
    if not listed.marks and not listed.forgotten:
        return
    MEMORY.heed(table, listed.forgotten)
    names = frozenset(columns(predicate))
    for kept, mark in listed.marks:
        if names.isdisjoint(kept.columns) or MEMORY.has_taken_over(table, kept.digest, mark):
            continue
        known = _known(kept, schema, known_as)
        if known is not None and applies(known) and _tells(known.condition, predicate):
            _take_over(files, table, known, kept, mark)


def _known(
    kept: KeptCondition, schema: pa.Schema, known_as: Callable[[Predicate], KnownCondition | None]
) -> KnownCondition | None:
    """Return a condition on disk as it is known in memory; None where it means something else in this table now."""
    condition = kept.read(schema)
    known = None if condition is None else known_as(condition)
    if known is None or types_of(known.stored) != kept.stored:
        return None
    there = replace(known, session_time_zone=kept.session_time_zone, ansi=kept.ansi)
    return replace(known, rests_on=kept.rests_on) if there == known else None


def _tells(condition: Predicate, predicate: Predicate) -> bool:
    return implies(predicate, condition) or bool(leaves_implying(condition, predicate))


def _take_over(files: VerdictFiles, table: str, known: KnownCondition, kept: KeptCondition, mark: str) -> None:
    """Take the blocks of a condition into memory; none where the file is gone or damaged."""
    blocks = files.blocks(table, kept) or FoundBlocks((), np.zeros(0, np.int64))
    MEMORY.take_over(table, known, blocks, digest=kept.digest, mark=mark, most=most_bytes())


def write_verdicts(table: str, schema: pa.Schema) -> None:
    """Write what the reads of a table have found since the last time, together with what others wrote meanwhile."""
    if not MEMORY.has_unkept(table):
        return
    files = verdict_files()
    listed = files.conditions(table)
    MEMORY.heed(table, listed.forgotten)
    marks = dict(listed.marks)
    for known in MEMORY.unkept(table):
        kept = written(known, schema)
        if kept is None:
            continue
        if kept in marks and not MEMORY.has_taken_over(table, kept.digest, marks[kept]):
            _take_over(files, table, known, kept, marks[kept])
        blocks = MEMORY.found_blocks(table, known)
        if blocks is not None:
            MEMORY.mark(table, kept.digest, files.keep(table, kept, blocks))


def forget(table: str) -> None:
    """Forget what is on disk about a table."""
    verdict_files().forget(table)
