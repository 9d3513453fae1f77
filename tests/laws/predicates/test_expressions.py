"""Predicates over expressions, proven in two steps: rows against Spark, and everything else against rows.

Rows are evaluated as Spark does (the reference). Then, for zone maps of random groups of these rows, what pruning
says is possible must contain what the reference says is so; and forgetting, merging and negating must keep that.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from secateur.io.spark.file_reader import spark_schema
from secateur.pruning.bounds import outcomes as sets
from secateur.pruning.bounds.outcomes import EVERYTHING, FALSE, NULL, TRUE
from secateur.pruning.evaluate import evaluate
from secateur.pruning.predicate.binding.bind import bind, operand_of
from secateur.pruning.predicate.binding.resolve import Binder
from secateur.pruning.predicate.binding.typed_constants import NoRule
from secateur.pruning.predicate.bound import Conditional
from secateur.pruning.predicate.bound import Tested as Condition
from secateur.pruning.predicate.bound_walks import all_leaves, is_supported, parts
from secateur.pruning.predicate.nodes import Comparison, Not, Predicate
from secateur.pruning.predicate.rewrite import rewrite
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.rows.truth import truth
from tests.support.checks.expression_checks import (
    ROWS,
    SINGLE,
    Asked,
    Groups,
    bound,
    check_groups,
    check_rows,
    defined_rows,
    windows,
    within_rows,
)
from tests.support.checks.oracle import ask
from tests.support.drawn import expressions
from tests.support.drawn.strategies import ZONES
from tests.support.profiles import examples, some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREDICATES = some(120)  # on a table
OUTCOME = {True: TRUE, False: FALSE, None: NULL}
ZONES_OF_REGIONS = [zone for zone in ZONES if "/" in zone]
CHANGING = ["Europe/Paris", "America/New_York", "Australia/Lord_Howe"]  # whose clocks change by an hour, or by half

seeds = st.integers(0, 2**40)


@examples(6, shrink=False)
@given(seed=seeds, zone=st.sampled_from(ZONES), ansi=st.booleans())
def test_rows_and_groups_of_rows_are_as_spark_answers(spark: SparkSession, seed: int, zone: str, ansi: bool) -> None:
    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    check_random(spark, seed, zone, ansi)


def check_random(spark: SparkSession, seed: int, zone: str, ansi: bool) -> None:
    """Random predicates on random rows, in a session of this mode."""
    chance = random.Random(seed)
    table = expressions.table(ROWS, chance)
    answered = check_texts(spark, table, [expressions.predicate(chance) for _ in range(PREDICATES)], zone, ansi=ansi)
    event(f"{answered * 20 // PREDICATES * 5} % of the predicates have an answer")


@examples(12, shrink=False)
@given(seed=seeds, zone=st.sampled_from(CHANGING))
def test_times_near_a_change_of_the_clock_are_as_spark_has_them(spark: SparkSession, seed: int, zone: str) -> None:
    """Intervals of hours and of days, beside literals of the same days."""
    chance = random.Random(seed)
    words = expressions.near_changes(zone, chance)
    table = expressions.table(ROWS, chance, words)
    check_texts(spark, table, [expressions.predicate(chance, 1, words) for _ in range(PREDICATES // 2)], zone)


@pytest.mark.parametrize("ansi", [True, False])
def test_columns_beside_other_types_are_as_spark_compares_them(spark: SparkSession, ansi: bool) -> None:
    @examples(9, shrink=False)
    @given(seed=seeds, zone=st.sampled_from(ZONES))
    def check(seed: int, zone: str) -> None:
        chance = random.Random(seed)
        table = expressions.table(ROWS, chance)
        check_texts(
            spark, table, [expressions.beside_another_type(chance) for _ in range(PREDICATES // 2)], zone, ansi=ansi
        )

    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    try:
        check()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_the_first_day_of_1970_is_known_in_every_zone(spark: SparkSession) -> None:
    """An instant of 0 stands for none in many tables: its hour, its day and its date are as in Spark."""
    instants = [dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(minutes=30 * n) for n in range(ROWS)]
    table = pa.table({"rid": range(ROWS), "ts": pa.array(instants, expressions.INSTANT)})
    texts = [f"{part}(ts) {op} {n}" for part in ("hour", "day") for op in ("=", "<") for n in (0, 1, 10, 19, 31)]
    texts += [f"CAST(ts AS DATE) {op} DATE '1970-01-01'" for op in ("=", ">=", "!=")]
    (batch,) = table.combine_chunks().to_batches()
    for zone in ZONES_OF_REGIONS:
        for text in texts:
            predicate = bound(text, table.schema, zone)
            assert predicate is not None
            assert np.isin(truth(predicate, batch), SINGLE).all(), (text, zone)
        check_texts(spark, table, texts, zone)


@examples(6, shrink=False)
@given(seed=seeds)
def test_conditions_are_values_like_others(spark: SparkSession, seed: int) -> None:
    """Every row has its value here, not only in Spark."""
    chance = random.Random(seed)
    table = expressions.table(ROWS, chance)
    (batch,) = table.combine_chunks().to_batches()
    texts = [expressions.condition_as_value(chance) for _ in range(PREDICATES // 2)]
    for text in texts:
        predicate = bound(text, table.schema, "UTC")
        assert predicate is not None
        assert is_supported(predicate), text
        assert np.isin(truth(predicate, batch), SINGLE).all(), text
    check_texts(spark, table, texts, "UTC")


def check_texts(spark: SparkSession, table: pa.Table, texts: Sequence[str], zone: str, *, ansi: bool = True) -> int:
    """Rows of a table and groups of them are as Spark answers, and what is refused here, Spark refuses.

    Gives how many predicates have an answer.
    """
    spark.conf.set("spark.sql.session.timeZone", zone)
    frame = spark.createDataFrame(table, spark_schema(table.schema))
    (batch,) = table.combine_chunks().to_batches()
    asked: dict[str, Asked] = {}
    refused = []
    for text in dict.fromkeys(texts):
        predicate = bound(text, table.schema, zone, ansi=ansi)
        if predicate is None:
            refused.append(text)
        else:
            rows = defined_rows(predicate, batch)
            asked[within_rows(text, rows)] = Asked(text, predicate, rows)
    answers = ask(frame, list(asked))
    for masked, expected in answers.truth.items():
        outcomes = {row: OUTCOME[expected[row]] for row in asked[masked].rows}
        check_rows(asked[masked], batch, outcomes)
        check_groups(asked[masked], batch, outcomes)
    if not ansi:  # in ANSI mode, casts that Spark fails on are refused, also where it would not come to them
        assert not ask(frame, refused).truth
    return len(answers.truth)


@pytest.mark.parametrize("ansi", [True, False])
def test_results_have_the_types_that_spark_gives_them(spark: SparkSession, ansi: bool) -> None:
    """A type decides how a value is rounded, and when it overflows: most of all of decimals beside constants."""
    schema = pa.schema([(name, type_) for name, (type_, _) in expressions.COLUMNS.items()])
    numbers = [*expressions.COLUMN_NAMES["number"], *expressions.CONSTANTS["number"]]
    columns = expressions.COLUMN_NAMES["number"]
    texts = [f"({a} {op} {b})" for op in "+-*/" for a in columns for b in numbers]
    texts += [f"({b} {op} {a})" for op in "-/" for a in expressions.DECIMALS for b in numbers]
    texts += [f"{function}({a})" for function in ("abs", "ceil", "floor", "round", "negative") for a in columns]
    texts += [f"round({a}, {n})" for a in columns for n in (1, 2, 5)]
    texts += [f"{function}({a}, {b})" for function in ("coalesce", "greatest") for a in columns for b in columns]
    texts += [f"{name}({a})" for name in ("sqrt", "ln", "rint", "signum", "bround") for a in columns]
    texts += [
        f"{name}({a}, {b})" for name in ("try_add", "try_divide", "nanvl", "pow") for a in columns for b in columns
    ]
    texts += [f"({a} DIV {b})" for a in expressions.INTEGERS for b in expressions.INTEGERS]
    texts += [f"{name}({a}, 2)" for name in ("shiftleft", "shiftright", "bround") for a in expressions.INTEGERS]
    texts += [f"(~ {a})" for a in expressions.INTEGERS]
    texts += [f"((w * {a}) + ({b} / p))" for a in ("2", "(1 + 1)", "1.5", "m") for b in ("3", "CAST(3 AS INT)", "w")]
    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    frame = spark.createDataFrame([], spark_schema(schema))
    types = frame.selectExpr(*[f"{text} AS c{i}" for i, text in enumerate(texts)]).schema
    known = 0
    for text, field in zip(texts, types, strict=True):
        comparison = parse(f"{text} > 0")
        assert isinstance(comparison, Comparison)
        try:
            operand = operand_of(comparison.left, Binder(schema, dt.UTC, ansi=ansi))
        except NoRule:
            continue
        known += 1
        (spark_field,) = spark_schema(pa.schema([("c", operand.type)]))
        assert spark_field.dataType == field.dataType, text
    assert known > 0.8 * len(texts)


# ---- laws that need no oracle ----------------------------------------------------------------------------------------


ROWS_OF_TABLE, PREDICATES_OF_TABLE = 30, 40


@examples(50, shrink=False)
@given(
    seed=seeds,
    zone=st.sampled_from(ZONES),
    ansi=st.booleans(),
    is_near=st.booleans(),
    forgotten=st.frozensets(st.sampled_from(sorted(expressions.COLUMNS))),
)
def test_soundness_monotonicity_merging_and_negation(
    seed: int, zone: str, ansi: bool, is_near: bool, forgotten: frozenset[str]
) -> None:
    """Some 2,000 predicates on 65 groups of rows each; 1.3 million pairs in the nightly profile.

    Of all types, or of times near a change of the clock.
    """
    chance = random.Random(seed)
    words = expressions.near_changes(zone, chance) if is_near else expressions.EVERYTHING
    table = expressions.table(ROWS_OF_TABLE, chance, words)
    (batch,) = table.combine_chunks().to_batches()
    groups = Groups(batch, windows(batch.num_rows))
    blind = replace(groups, forgotten=forgotten)
    for text in {expressions.predicate(chance, 2, words): None for _ in range(PREDICATES_OF_TABLE)}:
        predicate = bound(text, table.schema, zone, ansi=ansi)
        if predicate is None:
            continue
        said, unknown = evaluate(predicate, groups), evaluate(predicate, blind)
        assert said.all(), f"no outcome: {text}"
        assert ((unknown & said) == said).all(), f"monotonicity: {text} without {sorted(forgotten)}"
        assert ((said[-1] & said) == said).all(), f"merging: {text}"
        negated = evaluate(rewrite(Not(predicate)), groups)
        if is_supported(predicate):
            rows = truth(predicate, batch)
            assert rows.all(), f"no outcome: {text} on rows"
            really = of_groups(counted(predicate, rows), groups.spans)
            assert ((said & really) == really).all(), f"soundness: {text} on {lacking(groups, said, really)}"
            opposite = sets.negation(really)
            assert ((negated & opposite) == opposite).all(), f"negation: {text} on {lacking(groups, negated, opposite)}"


def counted(predicate: Predicate, rows: np.ndarray) -> np.ndarray:
    """The rows' outcomes. One on which evaluation fails may be anything in its groups too, but for one thing:

    where a condition of CASE is not known on a row, the groups still know the values that it chooses between.
    """
    chooses = any(isinstance(part, Conditional | Condition) for leaf in all_leaves(predicate) for part in parts(leaf))
    return np.where(np.isin(rows, SINGLE), rows, np.uint8(0)) if chooses else rows


def of_groups(rows: np.ndarray, spans: Sequence[tuple[int, int]]) -> np.ndarray:
    """What the rows of every group really are."""
    return np.array([np.bitwise_or.reduce(rows[start:stop]) for start, stop in spans], np.uint8)


def lacking(groups: Groups, said: np.ndarray, really: np.ndarray) -> str:
    """The first group that lacks an outcome of its rows."""
    i = int(np.argmax((said & really) != really))
    return f"rows {groups.spans[i]}: {said[i]} lacks {really[i]}"


@pytest.mark.parametrize(
    "text",
    [
        "if(a + 2147483647 > 0, 1, 2) < 3",
        "CASE WHEN a / 0 = 1 THEN 1 WHEN a > 0 THEN 1 ELSE 1 END = 1",
        "coalesce(a + 2147483647 > 0, TRUE) IN (TRUE, FALSE)",
        "greatest(a, a / 0) >= a",
        "(a / 0 = 1) = (a > 0)",
        "a / 0 IS NULL",
    ],
)
def test_a_row_on_which_a_part_fails_has_no_value(text: str) -> None:
    """Though whatever the part were, the value would be the same: Spark raises an error."""
    batch = pa.record_batch([pa.array([1, 5], pa.int32())], names=["a"])
    assert truth(bind(parse(text), batch.schema), batch).tolist() == [EVERYTHING, EVERYTHING]
