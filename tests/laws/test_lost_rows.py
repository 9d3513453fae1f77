"""No row is lost by whatever happens to an index, and no block is kept that its statistics rule out.

The whole pipeline over random indexes in memory, under the circumstances of test_catalog.
"""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from support.catalog_checks import Query
from support.profiles import examples
from support.random_filters import KINDS
from support.random_index import Block, Index, make_index, refreshed
from support.statistics_of import bound
from support.strategies import TableSpec, array_of, predicates
from test_catalog import Circumstances, Kept, circumstances, query, seeds

from secateur.errors import UnsupportedPredicate
from secateur.index.read.memory_cache import ByteCache
from secateur.pruning import pipeline
from secateur.pruning.evaluate import evaluate
from secateur.pruning.outcomes import TRUE, survives
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.rows import truth
from secateur.pruning.stages.survivors import Query as Asked
from secateur.pruning.stages.survivors import Survivors
from secateur.pruning.statistics import Blocks, Run

POOLS = {
    "i": [*range(0, 70, 3)],
    "s": [f"{width * 'x'}{i:02}" for width in (0, 1, 7, 20) for i in range(0, 70, 9)],
    "huge": [i * 10**20 for i in range(0, 70, 3)],
    "day": [19_000 + i for i in range(0, 70, 3)],
}


@st.composite
def questions(draw: st.DrawFn, index: Index) -> Predicate:
    """A predicate over the columns of an index, and over those that files have in their names."""
    named = tuple(f.path[0] for f in index.live.named if f.path[0] not in KINDS)
    spec = TableSpec((), tuple(KINDS.values()), (), POOLS, named)
    schema = pa.schema([*((c.path[0], c.type) for c in index.columns), *((name, pa.int32()) for name in named)])
    texts = predicates(spec).filter(lambda text: bound(text, schema) is not None)
    predicate = bound(draw(texts), schema)
    assert predicate is not None
    return predicate


def rows_of(index: Index, file: int, block: Block) -> pa.RecordBatch:
    """The rows of a block of a live file, with what its name tells."""
    columns = {c.path[0]: (block.values.get(c.path[0], [None] * block.rows), c.type) for c in index.columns}
    for field, values in index.live.named.items():
        columns[field.path[0]] = ([values[file]] * block.rows, field.type)
    return pa.record_batch({name: array_of(values, type_) for name, (values, type_) in columns.items()})


def check_rows(index: Index, survivors: Survivors) -> None:
    """Every row that may match is in a block that survives, in its ranges of rows; blocks that surely match do."""
    assert survivors.blocks is not None
    ranges, kept = survivors.row_ranges, {}
    for i, place in enumerate(zip(survivors.blocks.file.tolist(), survivors.blocks.row_group.tolist(), strict=True)):
        rows = np.ones(int(survivors.blocks.row_count[i]), bool)
        if ranges is not None:
            mine = range(int(ranges.offsets[i]), int(ranges.offsets[i + 1]))
            chosen = [np.arange(ranges.start[j], ranges.stop[j]) for j in mine]
            rows = np.isin(np.arange(len(rows)), np.concatenate([np.zeros(0, np.int64), *chosen]))
        assert place not in kept
        kept[place] = (rows, bool(survivors.fully_matching[i]))
    for file, each in enumerate(index.live.files):
        for group, block in enumerate(each.blocks):
            try:
                outcomes = truth(survivors.predicate, rows_of(index, file, block))
            except UnsupportedPredicate:  # only Spark knows which rows match
                return
            matching = survives(outcomes)
            rows, sure = kept.get((file, group), (np.zeros(block.rows, bool), False))
            assert not (matching & ~rows).any(), (survivors.predicate, file, group)
            assert not sure or (outcomes == TRUE).all(), (survivors.predicate, file, group)


ALL_STAGES = tuple(stage.name for stage in pipeline.STAGES)


def run(asked: Query, predicate: Predicate, names: Sequence[str] = ALL_STAGES) -> Survivors:
    """The survivors of some stages."""
    with patch.object(pipeline, "STAGES", [stage for stage in pipeline.STAGES if stage.name in names]):
        survivors, _ = pipeline.run(Asked(predicate, asked.catalog), asked.faults, predicate=str(predicate), index="")
    return survivors


@examples(90, shrink=False)
@given(circumstances, seeds, st.integers(0, 6), st.sampled_from([0.0, 0.1, 0.4]), st.data())
def test_no_row_is_lost(around: Circumstances, seed: int, segments: int, harm: float, data: st.DataObject) -> None:
    """By an index that is harmed, stale and partial, before and after a refresh."""
    index = make_index(seed, segments, harm)
    later = refreshed(index, seed + 1, harm)
    with around.prevailing() as kept:
        for i, each in enumerate((index, later)):
            check_rows(each, run(query(each, kept, seed + i, strict=harm == 0.0), data.draw(questions(each))))


@examples(90, shrink=False)
@given(circumstances, seeds, st.integers(1, 6), st.sampled_from([0.1, 0.5, 0.9]), st.data())
def test_no_row_is_lost_where_reads_fail(
    around: Circumstances, seed: int, segments: int, failing: float, data: st.DataObject
) -> None:
    """Now and then, and all of them once the plan is made."""
    index = make_index(seed, segments, 0.0)
    with around.prevailing() as kept:
        for i in range(2):
            survivors = run(query(index, kept, seed + i, failing=failing), data.draw(questions(index)))
            index.store.fails = lambda: True
            check_rows(index, survivors)


@examples(90, shrink=False)
@given(circumstances, seeds, st.integers(0, 6), st.data())
def test_zone_maps_keep_what_a_flat_evaluation_keeps(
    around: Circumstances, seed: int, segments: int, data: st.DataObject
) -> None:
    """Whatever the tree and the runs: the blocks with rows of which their own statistics allow TRUE.

    Of segments that lack a chunk only the tree knows bounds, by which more of their blocks are left out.
    """
    index = make_index(seed, segments, 0.0)
    predicate = data.draw(questions(index))
    with around.prevailing() as kept:
        survivors = run(query(index, kept, seed, strict=True), predicate, ("files", "segments", "zone maps"))
        flat = query(index, Kept(ByteCache(1 << 30)), seed, strict=True).catalog
        runs = [*flat.runs(None, flat.everywhere(None)), *flat.loose_runs(None)]
        everything = [run.begin + each_of(run) for run in runs]
        blocks = flat.open(np.concatenate([np.zeros(0, np.int64), *everything]), None)
        alive = np.flatnonzero(survives(evaluate(predicate, blocks)))
    assert survivors.blocks is not None
    left, allowed = places(survivors.blocks), places(blocks.take(alive))
    partial = [s for s, part in enumerate(index.parts) if any(chunk.startswith("zone/") for chunk in part.missing)]
    assert set(left) <= set(allowed), predicate
    assert all(allowed[place] in partial for place in set(allowed) - set(left)), predicate


def each_of(run: Run) -> np.ndarray:
    """The positions of the candidates of a run."""
    return np.arange(len(run)) if run.candidates is None else np.flatnonzero(run.candidates)


def places(blocks: Blocks) -> dict[tuple[int, int], int]:
    """File and row group of every block, and its segment."""
    pairs = zip(blocks.file.tolist(), blocks.row_group.tolist(), strict=True)
    return dict(zip(pairs, blocks.segment.tolist(), strict=True))
