"""Asking what to index: the public function that advises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from secateur.api import prune
from secateur.errors import StalePlan
from secateur.io.scan.advice import advice
from secateur.io.tables.table import Table
from secateur.pruning.explain.advice import Advice
from secateur.pruning.predicate.nodes import Predicate, Truth

if TYPE_CHECKING:
    from secateur.io.spark.column.sql import Column
    from secateur.io.tables.iceberg.expressions import BooleanExpression

SAMPLE_BLOCKS = 64


def advise(
    table: Table,
    predicates: Sequence[str | Predicate | Column | BooleanExpression],
    *,
    sample_blocks: int = SAMPLE_BLOCKS,
    session_time_zone: str | None = None,
    ansi: bool | None = None,
    case_sensitive: bool = False,
) -> Advice:
    """What some predicates read of a table, the least that they could, and what indexes or a clustering would save.

    Tried are filters and gaps of the predicates' columns that the index does not have, and sorting the table by each of
    them, within its partitions. For that the predicates' columns are read of at most `sample_blocks` blocks of the
    table, and of as many of those that each predicate reads now, without Spark. The same blocks are chosen every time.

    What each proposal leaves is an estimate. It is exact where all blocks that a predicate reads are sampled. Where a
    value is in no sampled block, or in so few as a typical value of its column, it is taken to be in as many blocks as
    that; any other thing that none of them holds, to be in one.

    Predicates and the arguments beside them are those of :func:`secateur.prune`, and so is what it raises; besides,
    StalePlan and InvalidParquet for data files that are gone, were changed meanwhile or cannot be read, ValueError
    without a predicate, and for a sample of no block. Reporters are told of its plans, one of the whole table included.
    """
    if isinstance(predicates, str):
        raise ValueError(f"predicates is one text; write a list of predicates: [{predicates!r}]")
    if not predicates:
        raise ValueError("predicates is empty; advice is for one predicate at least")
    if sample_blocks < 1:
        raise ValueError(f"sample_blocks is {sample_blocks}; it must be 1 or more")
    every, *plans = (
        prune(table, predicate, session_time_zone=session_time_zone, ansi=ansi, case_sensitive=case_sensitive)
        for predicate in (Truth(True), *predicates)
    )
    if any(plan.opened.listing.id != every.opened.listing.id for plan in plans):
        raise StalePlan(f"files of {table.location} came, went or changed while advice was made of them: ask again")
    return advice(every, plans, sample_blocks)
