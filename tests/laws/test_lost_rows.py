"""No row is lost by whatever happens to an index, and no block is kept that its statistics rule out.

The whole pipeline over random indexes in memory, under the circumstances of test_catalog.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.read.memory_cache import ByteCache
from secateur.pruning.bounds.outcomes import survives
from secateur.pruning.evaluate import evaluate
from secateur.pruning.predicate.nodes import Predicate
from tests.support.checks.indexed_places import check_rows, each_of, places, run
from tests.support.checks.statistics_of import bound
from tests.support.drawn.circumstances import Circumstances, Kept, circumstances, query, seeds
from tests.support.drawn.random_filters import KINDS
from tests.support.drawn.random_index import Index, make_index, refreshed
from tests.support.drawn.strategies import TableSpec, predicates
from tests.support.profiles import examples

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


@examples(90, shrink=False)
@given(circumstances, seeds, st.integers(0, 6), st.sampled_from([0.0, 0.1, 0.4]), st.data())
def test_no_row_is_lost(around: Circumstances, seed: int, segments: int, harm: float, data: st.DataObject) -> None:
    """By an index that is harmed, stale and partial, before and after a refresh."""
    index = make_index(seed, segments, harm)
    later = refreshed(index, seed + 1, harm)
    with around.prevailing() as kept:
        for i, state in enumerate((index, later)):
            check_rows(state, run(query(state, kept, seed + i, strict=harm == 0.0), data.draw(questions(state))))


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
    left, allowed = places(survivors.blocks), places(blocks.take(alive))
    partial = [s for s, part in enumerate(index.parts) if any(chunk.startswith("zone/") for chunk in part.missing)]
    assert set(left) <= set(allowed), predicate
    assert all(allowed[place] in partial for place in set(allowed) - set(left)), predicate
