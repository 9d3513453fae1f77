"""Run one query on a random index, check its rows, and list where the surviving blocks are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from secateur.errors import UnsupportedPredicate
from secateur.pruning import pipeline
from secateur.pruning.bounds.outcomes import TRUE, survives
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.rows.truth import truth
from secateur.pruning.stages.survivors import Query as Asked
from secateur.pruning.stages.survivors import Survivors
from secateur.pruning.statistics import Blocks, Run
from tests.support.checks.catalog_checks import Query
from tests.support.checks.chosen_stages import ALL_STAGES, only_stages
from tests.support.drawn.random_index import Block, Index
from tests.support.drawn.strategies import array_of


def rows_of(index: Index, file: int, block: Block) -> pa.RecordBatch:
    """The rows of a block of a live file, with what its name tells."""
    columns = {c.path[0]: (block.values.get(c.path[0], [None] * block.rows), c.type) for c in index.columns}
    for field, values in index.live.named.items():
        columns[field.path[0]] = ([values[file]] * block.rows, field.type)
    return pa.record_batch({name: array_of(values, type_) for name, (values, type_) in columns.items()})


def check_rows(index: Index, survivors: Survivors) -> None:
    """Every row that may match is in a block that survives, in its ranges of rows; blocks that surely match do."""
    ranges, kept = survivors.row_ranges, {}
    for i, place in enumerate(zip(survivors.blocks.file.tolist(), survivors.blocks.row_group.tolist(), strict=True)):
        rows = np.ones(int(survivors.blocks.row_count[i]), bool)
        if ranges is not None:
            within = range(int(ranges.offsets[i]), int(ranges.offsets[i + 1]))
            chosen = [np.arange(ranges.start[j], ranges.stop[j]) for j in within]
            rows = np.isin(np.arange(len(rows)), np.concatenate([np.zeros(0, np.int64), *chosen]))
        assert place not in kept
        kept[place] = (rows, bool(survivors.fully_matching[i]))
    for file, live_file in enumerate(index.live.files):
        for group, block in enumerate(live_file.blocks):
            try:
                outcomes = truth(survivors.predicate, rows_of(index, file, block))
            except UnsupportedPredicate:  # only Spark knows which rows match
                return
            matching = survives(outcomes)
            rows, exact = kept.get((file, group), (np.zeros(block.rows, bool), False))
            assert not (matching & ~rows).any(), (survivors.predicate, file, group)
            assert not exact or (outcomes == TRUE).all(), (survivors.predicate, file, group)


def run(asked: Query, predicate: Predicate, names: Sequence[str] = ALL_STAGES) -> Survivors:
    """The survivors of some stages."""
    with only_stages(names):
        survivors = pipeline.run(Asked(predicate, asked.catalog), asked.faults, predicate=str(predicate), index="")
    return survivors.survivors


def each_of(run: Run) -> np.ndarray:
    """The positions of the candidates of a run."""
    return np.arange(len(run)) if run.candidates is None else np.flatnonzero(run.candidates)


def places(blocks: Blocks) -> dict[tuple[int, int], int]:
    """File and row group of every block, and its segment."""
    pairs = zip(blocks.file.tolist(), blocks.row_group.tolist(), strict=True)
    return dict(zip(pairs, blocks.segment.tolist(), strict=True))
