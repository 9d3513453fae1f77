"""Explain why blocks of a plan are read or left out, and which other structures could prune them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow.compute as pc

from secateur.errors import UnknownBlock
from secateur.index.advise.candidates import gap_columns, gaps_argument, offers
from secateur.io.scan.index_coverage import columns_with_gaps, not_covered, sort_key_names
from secateur.io.scan.index_options import implied_by
from secateur.io.scan.planned_scan import PlannedScan
from secateur.pruning.explain.causes import Pruned, answers_of, evidence_in
from secateur.pruning.explain.explanation import MISSING, REFRESH, Explanation, Structure
from secateur.pruning.explain.serving import Index, explained, name_of
from secateur.pruning.explain.why import FileWhy, Why, conditions_of
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.variant_paths import is_variant_path
from secateur.pruning.statistics import Blocks


def why(plan: PlannedScan, block: str | Mapping[str, object], row_group: int | None) -> FileWhy | Why:
    """Explain a file or one block. Raises UnknownBlock."""
    if isinstance(block, Mapping):
        block, row_group = _place(block)
    file = pc.index(plan.paths, block).as_py()
    if file < 0:
        raise UnknownBlock(f"the table has no file {block!r}: names are paths below the table, as in plan.files")
    only = np.zeros(len(plan.paths), bool)
    only[file] = True
    blocks = plan.opened.catalog.blocks_of(only)
    if row_group is None:
        return FileWhy(block, tuple(sorted(_why(plan, block, file, blocks), key=lambda reason: reason.row_group)))
    positions = np.flatnonzero(blocks.row_group == row_group)
    if not len(positions):
        raise UnknownBlock(f"{block} has {len(blocks)} row groups with rows, numbered from 0, and no {row_group}")
    return _why(plan, block, file, blocks.take(positions))[0]


def explanation(plan: PlannedScan) -> Explanation:
    """Return the structures that serve every conjunct of a plan's predicate, and those that could."""
    opened = plan.opened
    parts, files_not_known = opened.catalog.known()
    snapshot = opened.catalog.snapshot
    kept = not_covered(opened)
    index = Index(
        catalog=opened.catalog,
        parts=parts,
        implied=lambda predicate: implied_by(predicate, opened),
        sort_key=tuple(sort_key_names(opened, snapshot)) if snapshot is not None else (),
        outside=frozenset(opened.listing.columns),
        kept={key: "" if why is None else _to_do(why, snapshot is None) for key, why in kept.items()},
        gaps_kept=columns_with_gaps(opened),
        offers=lambda leaf: [_missing(offer.structure, offer.column, offer.argument) for offer in offers(leaf)],
        gap_offers=lambda leaf: [_missing("gaps", offer, gaps_argument(offer)) for offer in gap_columns(leaf)],
        bounds_offers=lambda field: [] if snapshot is None else _bounds_at_path(field, kept),
    )
    return explained(plan.survivors.predicate, index, files_not_known)


def _bounds_at_path(field: Field, kept: Collection[tuple[str, str]]) -> list[Structure]:
    """Return the zone maps of a path into VARIANT that an index lacks: it has those that are named."""
    name = name_of(field)
    if not is_variant_path(field.path) or (name, "zone map") in kept:
        return []
    return [_missing("zone map", field, f"zone_map={[name]}")]


def _missing(structure: str, column: Field, argument: str) -> Structure:
    return Structure(structure, (name_of(column),), MISSING, argument=argument)


def _to_do(why: str, has_no_index: bool) -> str:
    """Describe what is not covered, and the call that covers it."""
    return f"{why}: {'build_index(table, spark=spark)' if has_no_index else REFRESH}"


def _place(row: Mapping[str, object]) -> tuple[str, int]:
    """Return file and row group of a row of ``plan.blocks``."""
    match row:
        case {"file": str(file), "row_group": int(row_group)}:
            return file, row_group
    raise UnknownBlock(f"{row!r} is not a block: give a mapping with its file and row_group, as plan.blocks has them")


def _why(plan: PlannedScan, path: str, file: int, blocks: Blocks) -> list[Why]:
    """Explain some blocks of one file."""
    catalog = plan.opened.catalog
    segment = catalog.segment_of_file(file)
    segments = np.unique(blocks.segment[blocks.segment >= 0])
    answers = answers_of(plan.survivors.predicate, catalog, segments)
    evidence, implied = evidence_in(answers), implied_by(plan.predicate, plan.opened)
    stages = _stages(plan, file, segment, blocks.row_group)
    conditions_by_block = conditions_of(plan.survivors.predicate, blocks, evidence)
    reasons = []
    for i, (row_group, stage) in enumerate(zip(blocks.row_group.tolist(), stages, strict=True)):
        block = blocks.take(np.array([i]))
        conditions = conditions_by_block[i]
        if stage is None:
            reasons.append(Why(path, row_group, True, None, None, _residual(plan, file, row_group), conditions))
            continue
        pruned = Pruned(
            plan.survivors.predicate,
            implied,
            _sort_key(plan),
            catalog,
            plan.limit,
            plan.order_by,
            segment,
            block,
            answers,
        )
        reasons.append(Why(path, row_group, False, stage, pruned.cause(stage), None, conditions))
    return reasons


def _stages(plan: PlannedScan, file: int, segment: int, row_groups: np.ndarray) -> list[str | None]:
    """Return for each row group of a file the stage that finally pruned it; None for those that survive."""
    stages: list[str | None] = [None] * len(row_groups)
    gone = np.ones(len(row_groups), bool)
    for left in reversed(plan.trail):
        gone &= ~left.holds(file, segment, row_groups)
        for i in np.flatnonzero(gone).tolist():
            stages[i] = left.stage
    return stages


def _residual(plan: PlannedScan, file: int, row_group: int) -> str | None:
    kept = plan.survivors.blocks
    at = np.flatnonzero((kept.file == file) & (kept.row_group == row_group))
    text: str | None = plan.residual_by_block[int(at[0])].as_py()
    return text


def _sort_key(plan: PlannedScan) -> str:
    snapshot = plan.opened.catalog.snapshot
    return "" if snapshot is None else ", ".join(sort_key_names(plan.opened, snapshot))
