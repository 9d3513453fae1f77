"""Short ways to the answers of the algebra: may_match asks for TRUE alone, a descent asks inner nodes first."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from secateur.index.zones import segment_tree
from secateur.pruning.bounds.outcomes import TRUE
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.evaluate import evaluate, may_match
from secateur.pruning.predicate.bound import Field
from tests.support.checks.statistics_of import Case, Units, bound, cases
from tests.support.checks.units import measured
from tests.support.drawn.strategies import BY_NAME
from tests.support.profiles import examples


@examples(500)
@given(cases(), st.data())
def test_may_match_is_the_bit_of_evaluate(case: Case, data: st.DataObject) -> None:
    """On units with rows, of all or of those chosen."""
    possible = (evaluate(case.predicate, case.units) & TRUE) != 0
    filled = case.units.row_count > 0
    survives = may_match(case.predicate, case.units)
    assert survives.dtype == bool
    assert survives[filled].tolist() == possible[filled].tolist(), case.sql
    chosen = np.array(data.draw(st.lists(st.sampled_from(range(len(case.units))), max_size=9)), np.int64)
    assert may_match(case.predicate, case.units, chosen).tolist() == survives[chosen].tolist(), case.sql


@examples(400)
@given(cases(most=30), st.sampled_from([2, 2, 3, 4, 7, 40]))
def test_a_descent_is_a_flat_evaluation(case: Case, fan_out: int) -> None:
    """It leaves the segments alive: whole those which surely match, by their own zone maps or by those above them."""
    tree = segment_tree.tree_over(case.units.row_count, fan_out)
    nodes = {column: segment_tree.merge_up(zone_map, tree) for column, zone_map in case.units.columns.items()}
    flat = evaluate(case.predicate, Units(tree.row_count, nodes))

    def column(field: Field) -> Zones | None:
        return nodes[field].zones(tree.row_count) if field in nodes else None

    descent = segment_tree.descend(case.predicate, tree, column)
    outcomes = evaluate(case.predicate, case.units)
    whole = [i for i in range(len(case.units)) if any(flat[node] == TRUE for node in way_up(i, tree))]
    alive = np.flatnonzero((outcomes & TRUE) != 0).tolist()
    assert descent.whole.tolist() == whole, case.sql
    assert descent.segments.tolist() == sorted({*alive} - {*whole}), case.sql
    assert set(outcomes[whole].tolist()) <= {TRUE, 0}, case.sql  # an empty segment below a node that surely matches
    assert len(tree.row_count[tree.begin[-2] :]) <= descent.visited <= len(tree.row_count)


def way_up(segment: int, tree: segment_tree.Tree) -> list[int]:
    """The nodes over a segment, itself first."""
    return [first + segment // tree.fan_out**level for level, first in enumerate(tree.begin[:-1])]


def test_dead_and_sure_nodes_are_not_descended_into() -> None:
    """A thousand segments with a number each: of a range, only the nodes at its two ends are looked into."""

    rows = [[i] for i in range(1000)]
    zone_map, counts = measured(BY_NAME["i"], rows)
    tree = segment_tree.tree_over(counts, 10)
    nodes = segment_tree.merge_up(zone_map, tree)
    predicate = bound("i BETWEEN 123 AND 876", pa.schema([("i", pa.int32())]))
    assert predicate is not None
    descent = segment_tree.descend(predicate, tree, lambda field: nodes.zones(tree.row_count))
    assert (descent.segments.tolist(), descent.whole.tolist()) == ([], list(range(123, 877)))
    assert descent.visited == 10 + 2 * 10 + 2 * 10
