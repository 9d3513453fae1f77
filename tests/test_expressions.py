"""Predicates over expressions, proven in two steps: rows against Spark, and everything else against rows.

Rows are evaluated as Spark does (the reference). Then, for zone maps of random groups of these rows, what pruning
says is possible must contain what the reference says is so; and forgetting, merging and negating must keep that.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import expressions
import numpy as np
import pyarrow as pa
from conftest import examples
from hypothesis import event, given
from hypothesis import strategies as st
from oracle import ask
from strategies import ZONES

from secateur.errors import IncomparableLiteral
from secateur.index import zonemap
from secateur.io.spark_plan import spark_schema
from secateur.pruning import outcomes as sets
from secateur.pruning.evaluate import evaluate
from secateur.pruning.outcomes import FALSE, NULL, TRUE
from secateur.pruning.predicate.bind import bind
from secateur.pruning.predicate.bound import Field, fields, is_supported
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.predicate.parse import parse
from secateur.pruning.predicate.rewrite import rewrite
from secateur.pruning.rows import column, truth
from secateur.pruning.zones import Zones
from secateur.values import concatenate, kind_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUTCOME = {True: TRUE, False: FALSE, None: NULL}
SINGLE = (TRUE, FALSE, NULL)


def bound(text: str, schema: pa.Schema, zone: str) -> Predicate | None:
    """The predicate as bound, or None for one that Spark refuses too."""
    try:
        return bind(parse(text), schema, session_time_zone=zone)
    except IncomparableLiteral:
        return None


seeds = st.integers(0, 2**40)
ROWS = 40


@examples(ci=16, shrink=False)
@given(seed=seeds, zone=st.sampled_from(ZONES))
def test_rows_and_groups_of_rows_are_as_spark_answers(spark: SparkSession, seed: int, zone: str) -> None:
    chance = random.Random(seed)
    table = expressions.table(ROWS, chance)
    texts = list(dict.fromkeys(expressions.predicate(chance) for _ in range(100)))
    spark.conf.set("spark.sql.session.timeZone", zone)
    frame = spark.createDataFrame(table, spark_schema(table.schema))
    (batch,) = table.combine_chunks().to_batches()
    asked: dict[str, tuple[str, Predicate]] = {}
    for text in texts:
        predicate = bound(text, table.schema, zone)
        if predicate is not None:
            asked[within_rows(text, defined_rows(predicate, batch))] = text, predicate
    answers = ask(frame, list(asked))
    event(f"{len(answers.truth) * 20 // len(texts) * 5} % of the predicates have an answer")
    for masked, expected in answers.truth.items():
        text, predicate = asked[masked]
        check_rows(text, predicate, batch, expected)
        check_groups(text, predicate, batch, [OUTCOME[expected[i]] for i in range(batch.num_rows)], masked != text)


def defined_rows(predicate: Predicate, batch: pa.RecordBatch) -> list[int] | None:
    """The rows on which the predicate has a value; None where only Spark can evaluate it."""
    if not is_supported(predicate):
        return None
    return np.flatnonzero(np.isin(truth(predicate, batch), SINGLE)).tolist()


def within_rows(text: str, ids: list[int] | None) -> str:
    """The predicate on some rows only; on the others, Spark may raise an error."""
    if ids is None or len(ids) == ROWS:
        return text
    return f"IF(rid IN ({', '.join(map(str, ids)) or 'NULL'}), ({text}), NULL)"


def check_rows(text: str, predicate: Predicate, batch: pa.RecordBatch, expected: dict[int, bool | None]) -> None:
    """The reference: what rows are here, they are in Spark."""
    for each in (predicate, rewrite(predicate)):
        if not is_supported(each):
            continue
        for i, found in enumerate(truth(each, batch).tolist()):
            row = {str(field): column(batch, field)[i] for field in fields(predicate)}
            assert found not in SINGLE or found == OUTCOME[expected[i]], f"{text} on {row}: {found}, {expected[i]}"


def check_groups(
    text: str, predicate: Predicate, batch: pa.RecordBatch, expected: Sequence[int], partial: bool
) -> None:
    """What is possible in a group of rows contains what its rows are, except on rows without a value."""
    known = set(defined_rows(predicate, batch) or ()) if partial else None
    for each in (predicate, rewrite(predicate)):
        groups = Groups(batch, cut(batch.num_rows))
        said = evaluate(each, groups)
        for (start, stop), possible in zip(groups.spans, said.tolist(), strict=True):
            ids = [i for i in range(start, stop) if known is None or i in known]
            really = int(np.bitwise_or.reduce(np.array([expected[i] for i in ids], np.uint8)))
            assert possible & really == really, f"{text} on rows {start} to {stop}: {possible} lacks {really}"


def cut(n: int) -> list[tuple[int, int]]:
    """Groups of one, two, three, ... rows."""
    spans, start = [], 0
    for size in range(1, n):
        spans.append((start, min(start + size, n)))
        start += size
        if start >= n:
            break
    return spans


@dataclass(frozen=True)
class Groups:
    """Zone maps of runs of rows; statistics of forgotten fields are unknown."""

    batch: pa.RecordBatch
    spans: list[tuple[int, int]]
    forgotten: frozenset[str] = frozenset()

    @property
    def row_count(self) -> np.ndarray:
        return np.array([stop - start for start, stop in self.spans])

    def zones(self, field: Field) -> Zones | None:
        if kind_of(field.type) is None or field.path[0] in self.forgotten:
            return None
        parts = []
        for start, stop in self.spans:
            values = column(self.batch, field).slice(start, stop - start)
            lower, upper, nulls, nans = zonemap.of_values(values, field.type)
            counts = np.array([nulls]), np.array([nans]), np.array([stop - start])
            bounds = (pa.array([bound.as_py()], bound.type) for bound in (lower, upper))
            parts.append(zonemap.from_bounds(field.type, *bounds, *counts))
        merged = zonemap.concat(parts)
        assert len(concatenate([merged.lower])) == len(self.spans)
        return merged.zones(self.row_count)


# ---- laws that need no oracle ----------------------------------------------------------------------------------------


@examples(ci=150, shrink=False)
@given(
    seed=seeds,
    zone=st.sampled_from(ZONES),
    forgotten=st.frozensets(st.sampled_from(sorted(expressions.COLUMNS))),
)
def test_soundness_monotonicity_merging_and_negation(seed: int, zone: str, forgotten: frozenset[str]) -> None:
    chance = random.Random(seed)
    table = expressions.table(24, chance)
    (batch,) = table.combine_chunks().to_batches()
    texts = [expressions.predicate(chance) for _ in range(20)]
    for text in texts:
        predicate = bound(text, table.schema, zone)
        if predicate is None:
            continue
        spans = cut(batch.num_rows)
        said = evaluate(predicate, Groups(batch, spans))
        if is_supported(predicate):
            rows = truth(predicate, batch)
            for (start, stop), possible in zip(spans, said.tolist(), strict=True):
                really = int(np.bitwise_or.reduce([row for row in rows[start:stop].tolist() if row in SINGLE] or [0]))
                assert possible & really == really, f"soundness: {text} on rows {start} to {stop}"
        unknown = evaluate(predicate, Groups(batch, spans, forgotten))
        assert ((unknown & said) == said).all(), f"monotonicity: {text} without {sorted(forgotten)}"
        (parent,) = evaluate(predicate, Groups(batch, [(0, batch.num_rows)])).tolist()
        assert all(parent & child == child for child in said.tolist()), f"merging: {text}"
        negated = bound(f"NOT ({text})", table.schema, zone)
        assert negated is not None
        assert evaluate(negated, Groups(batch, spans)).tolist() == sets.negation(said).tolist(), f"negation: {text}"
