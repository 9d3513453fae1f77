"""Verify a plan against the data, without Spark: evaluate the predicate on rows of blocks that it prunes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from secateur.errors import AuditFailed, InvalidParquet, StalePlan, UnsupportedTable
from secateur.io.scan.explain import why
from secateur.io.scan.kept.answers import forget_answers
from secateur.io.scan.kept.verdicts import forget_verdicts
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.scan.pruned_blocks import PrunedBlocks, PrunedReading, excluded_by, reading_of, sampled
from secateur.io.scan.reading.read_ahead import read_ahead
from secateur.io.tables.file_rows import FileBlocks
from secateur.pruning.bounds.outcomes import TRUE, undecided
from secateur.pruning.predicate.abbreviation import brief
from secateur.pruning.predicate.bound_walks import columns, is_supported, left_to_spark
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.report import AuditReport
from secateur.pruning.rows.truth import truth

MOST_SHOWN = 80  # bytes of a value


@dataclass(frozen=True)
class _Match:
    """A matching row that the plan leaves out."""

    row_group: int
    position: int
    row: Mapping[str, str]


@dataclass(frozen=True)
class _Seen:
    """The findings in some blocks of one file."""

    blocks: int
    rows: int
    open_rows: int  # that only Spark can decide
    skipped: str | None
    match: _Match | None


def audited(plan: PlannedScan, predicate: Predicate, share: float, seed: int | None = None) -> PlannedScan:
    """Return the plan after reading a share of the blocks that it leaves out, at least one; its report has their
    number.

    `predicate` is the plan's bound predicate, rewritten or not. The plan has no limit. Blocks that only Spark can
    decide or that cannot be read are skipped, with a note in the report.

    Raises AuditFailed if a row that is left out matches.
    """
    asked = predicate if is_supported(predicate) else plan.predicate
    excluded = excluded_by(plan)
    reasons = list(left_to_spark(asked))
    if reasons:
        why = f"all skipped: only Spark can evaluate {'; '.join(reasons)}"
        return _reported(plan, AuditReport(0, len(excluded), 0, (why,)))
    most = math.ceil(share * len(excluded))
    chosen = excluded.take(sampled(len(excluded), most, np.random.default_rng(seed)))
    try:
        reading = reading_of(plan.opened, chosen.file, chosen.row_group, columns(asked))
    except (UnsupportedTable, StalePlan, InvalidParquet) as error:  # raised by delete files
        return _reported(plan, AuditReport(0, len(excluded), 0, (f"all skipped: {error}",)))
    files = np.unique(chosen.file)
    ordinals = dict(zip(plan.paths.take(pa.array(files)).to_pylist(), files.tolist(), strict=True))

    def look(file: FileBlocks) -> _Seen:
        return _seen(file, reading, chosen, ordinals[file.path], asked)

    looks = list(read_ahead(look, reading.blocks.by_file(), reading.reader.at_once)) if len(chosen) else []
    for seen, path in zip(looks, ordinals, strict=True):
        if seen.match is not None:
            forget_verdicts(plan.opened)  # they may rest on the same statistics
            forget_answers()
            raise AuditFailed(_failure(plan, path, seen.match))
    return _reported(plan, _report(looks, len(excluded)))


def _seen(file: FileBlocks, reading: PrunedReading, chosen: PrunedBlocks, ordinal: int, predicate: Predicate) -> _Seen:
    """Check the selected blocks of one file."""
    rows = open_rows = 0
    opened: set[int] = set()
    known = {int(chosen.row_group[i]): i for i in np.flatnonzero(chosen.file == ordinal).tolist()}
    try:
        for row_group, positions, batch in reading.reader.positioned(file):
            opened.add(row_group)
            out = chosen.left_out(known[row_group], positions)
            outcomes = truth(predicate, batch)
            matching = np.flatnonzero(out & (outcomes == TRUE))
            rows += int(np.count_nonzero(out))
            open_rows += int(np.count_nonzero(out & undecided(outcomes)))
            if len(matching):
                at = int(matching[0])
                match = _Match(row_group, int(positions[at]), row_texts(batch, at))
                return _Seen(len(opened), rows, open_rows, None, match)
    except (StalePlan, InvalidParquet) as error:
        return _Seen(len(opened), rows, open_rows, str(error), None)
    return _Seen(len(file.row_groups), rows, open_rows, None, None)


def row_texts(batch: pa.RecordBatch, row: int) -> dict[str, str]:
    """Return one row as texts."""
    return {name: _text(batch.column(name)[row]) for name in batch.schema.names}


def _text(value: pa.Scalar) -> str:
    """Format a value for a message, cut if long; text need not be UTF-8."""
    if pa.types.is_string(value.type) and value.is_valid:
        return repr(value.as_buffer().to_pybytes()[:MOST_SHOWN].decode("utf-8", "backslashreplace"))
    return str(value)[:MOST_SHOWN] if value.is_valid else "NULL"


def _failure(plan: PlannedScan, path: str, match: _Match) -> str:
    values = ", ".join(f"{name} = {value}" for name, value in match.row.items())
    indexed = plan.opened.catalog.snapshot is not None
    advice = (
        "Drop the index and build it again; until then query with use_index=False, or SECATEUR_DISABLE=1. "
        "verify_index(table, spark=spark) shows what else is wrong"
        if indexed
        else "No index was used: the statistics in the file's footer are wrong, and the file must be written again"
    )
    return (
        f"row {match.position} of row group {match.row_group} of {path} matches {brief(plan.written)}, and the plan "
        f"leaves it out: {values}. {why(plan, path, match.row_group)}\n{advice}"
    )


def _report(looks: Sequence[_Seen], excluded: int) -> AuditReport:
    skipped = [seen.skipped for seen in looks if seen.skipped is not None]
    open_rows = sum(seen.open_rows for seen in looks)
    if open_rows:
        skipped.append(f"{open_rows:,} rows skipped, on which Spark raises an error, or only Spark knows")
    return AuditReport(sum(seen.blocks for seen in looks), excluded, sum(seen.rows for seen in looks), tuple(skipped))


def _reported(plan: PlannedScan, report: AuditReport) -> PlannedScan:
    return replace(plan, report=replace(plan.report, audit=report))
