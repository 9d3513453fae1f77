"""Advice on what to index: the public function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from secateur.api import prune
from secateur.errors import StalePlan
from secateur.io.scan.advise.advice import advice
from secateur.io.tables.open import as_table
from secateur.io.tables.table import Table
from secateur.pruning.explain.advice import Advice
from secateur.pruning.predicate.nodes import Predicate, Truth

if TYPE_CHECKING:
    from secateur.io.spark.column.sql import Column
    from secateur.io.tables.iceberg.expressions import BooleanExpression
    from secateur.io.tables.open import Source

SAMPLE_BLOCKS = 64


def advise(
    table: Table | Source,
    predicates: Sequence[str | Predicate | Column | BooleanExpression],
    *,
    sample_blocks: int = SAMPLE_BLOCKS,
    session_time_zone: str | None = None,
    ansi: bool | None = None,
    case_sensitive: bool = False,
) -> Advice:
    """Estimate what predicates read of a table, their minimum, and what indexes or a clustering would save.

    It simulates the filters and gap lists that the index lacks for the predicates' columns, and sorting the table by
    each of these columns within its partitions. For that it reads the predicates' columns, without Spark, in at most
    `sample_blocks` blocks of the table and as many of the blocks that each predicate reads now. The choice of blocks is
    deterministic.

    The results are estimates, exact if all blocks that a predicate reads are sampled. A value found in no sampled
    block, or in as few as a typical value of its column, is assumed to be in as many blocks as a typical value;
    anything else that no sampled block holds, in one block.

    Parameters
    ----------
    predicates
        One or more predicates; they and the other arguments are as in :func:`secateur.prune`.
    sample_blocks
        The most blocks sampled of the table, and again for each predicate.

    Returns
    -------
    Advice
        The cost of each predicate in blocks, rows and bytes, and the proposals, best first.

    Raises
    ------
    StalePlan, InvalidParquet
        If data files are gone, were changed meanwhile, or cannot be read.
    ValueError
        Without a predicate, or if `sample_blocks` is less than one.
    Also
        What :func:`secateur.prune` raises.

    Notes
    -----
    Reporters receive the plans that this function makes, including one of the whole table.
    """
    table = as_table(table)
    if isinstance(predicates, str):
        raise ValueError(f"predicates is one text; write a list of predicates: [{predicates!r}]")
    if not predicates:
        raise ValueError("predicates is empty; advice is for one predicate at least")
    if sample_blocks < 1:
        raise ValueError(f"sample_blocks is {sample_blocks}; it must be 1 or more")
    every, *plans = (
        prune(
            table,
            predicate,
            use_verdicts=False,  # advice is for any process
            session_time_zone=session_time_zone,
            ansi=ansi,
            case_sensitive=case_sensitive,
        )
        for predicate in (Truth(True), *predicates)
    )
    if any(plan.opened.listing.id != every.opened.listing.id for plan in plans):
        raise StalePlan(f"files of {table.location} came, went or changed while advice was made of them: ask again")
    return advice(every, plans, sample_blocks)
