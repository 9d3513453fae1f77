"""Depth: predicates of 100 levels are ordinary, and work grows as the text does. Work is counted, not timed."""

from __future__ import annotations

import copy
import functools
import operator
import pickle
import random
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import IncomparableLiteral, InvalidPredicate
from secateur.io.spark.file_reader import spark_schema
from secateur.pruning.bounds.outcomes import TRUE
from secateur.pruning.evaluate import evaluate, may_match
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.bound_walks import everything_in, is_supported
from secateur.pruning.predicate.nodes import Or, Predicate
from secateur.pruning.predicate.rewrite import rewrite
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.rows.truth import truth
from tests.support.checks.expression_checks import (
    Asked,
    Groups,
    check_groups,
    check_rows,
    defined_rows,
    windows,
    within_rows,
)
from tests.support.checks.naive_outcomes import naive_outcomes
from tests.support.checks.oracle import ask
from tests.support.drawn import expressions
from tests.support.profiles import examples, one_in, some, takes_seconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema([("id", pa.int32()), ("s", pa.string())])
BATCH = pa.record_batch([pa.array([1, 2, None, 4], pa.int32()), pa.array(["a", "b", None, "ab"])], schema=SCHEMA)
SHAPES = [  # what is put around a boolean expression at every level
    "({})",
    "NOT {}",
    "NOT ({})",
    "(id = 2 AND ({} OR id = 3))",
    "NOT (id = 3 OR {})",
    "if({}, TRUE, id = 7)",
    "if(id = 1, TRUE, {})",
    "CASE WHEN {} THEN TRUE ELSE FALSE END",
    "CASE {} WHEN TRUE THEN id = 1 WHEN FALSE THEN id = 2 END",
    "({}) = TRUE",
    "({}) <=> TRUE",
    "({}) <=> (id = 2)",
    "(id = 2) = ({})",
    "coalesce({}, TRUE)",
    "nullif({}, id = 3)",
    "least({}, id = 2)",
    "({}) IN (TRUE)",
    "({}) BETWEEN FALSE AND TRUE",
    "({}) BETWEEN (id = 1) AND TRUE",
    "between({}, id = 1, TRUE)",
    "({}) IS NULL",
    "({}) IS FALSE",
    "coalesce({} IS NULL, s[1]) IS NULL",
    "CAST(CAST({} AS STRING) AS BOOLEAN)",
    "if(s LIKE '%b%', {}, s LIKE 'a_')",
    "(if({}, id, 2) + 1) = 3",
    "unknown_to_us({})",
]
LADDERS = one_in(3, SHAPES)
LEVELS = 100


def ladder(template: str, levels: int) -> str:
    before, after = template.split("{}")
    return before * levels + "id = 1" + after * levels


def groups() -> Groups:
    return Groups(BATCH, windows(len(BATCH)))


@pytest.mark.parametrize("template", LADDERS)
def test_a_hundred_levels_are_ordinary(template: str) -> None:
    predicate = parse(ladder(template, LEVELS))
    assert parse(str(predicate)) == predicate
    for tree in (bind(predicate, SCHEMA), rewrite(bind(predicate, SCHEMA))):
        said = evaluate(tree, groups())
        assert ((may_match(tree, groups())) == ((said & TRUE) != 0)).all()
        for other in (pickle.loads(pickle.dumps(tree)), copy.deepcopy(tree)):
            assert other == tree
            assert hash(other) == hash(tree)
            assert str(other) == str(tree)
        if is_supported(tree):
            rows = truth(tree, BATCH)
            assert ((said[: len(BATCH)] & rows) == rows).all()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> sec.Table:
    root = tmp_path_factory.mktemp("deep")
    rows = pa.table({"id": pa.array(range(40), pa.int32()), "s": [f"k{i}" for i in range(40)]})
    pq.write_table(rows, root / "a.parquet", row_group_size=20)
    return sec.open_table(str(root))


@pytest.mark.parametrize("template", LADDERS)
def test_plans_answer_at_a_hundred_levels(table: sec.Table, template: str) -> None:
    text = ladder(template, LEVELS)
    plan = sec.prune(table, text, strict=True)
    assert plan.explain(verbose=True)
    assert str(plan.why("a.parquet", 0))
    for other in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan)):
        assert other.blocks == plan.blocks
        assert other.residual_by_block == plan.residual_by_block
    if plan.residuals.whole is not None and is_supported(plan.residuals.whole):
        again = sec.prune(table, plan.residual or "TRUE")
        assert again.count() == plan.count() == plan.to_arrow().num_rows


@takes_seconds
@pytest.mark.parametrize("template", LADDERS)
def test_absurd_depth_is_an_error_of_ours(template: str) -> None:
    before = sys.getrecursionlimit()
    try:
        rewrite(bind(parse(ladder(template, 10_000)), SCHEMA))
    except InvalidPredicate as error:
        assert "nested too deeply" in str(error)
    assert sys.getrecursionlimit() == before


@takes_seconds
def test_long_chains_of_operators_are_wide_and_not_deep() -> None:
    column = sec.col("id")
    either = functools.reduce(operator.or_, [column == i for i in range(3000)])
    assert isinstance(either, Or)
    assert len(either.children) == 3000
    both = functools.reduce(operator.and_, [~(column == i) for i in range(2, 3000)])
    total = functools.reduce(operator.add, [column] * 500) == 500
    for predicate, expected in ((either, [1, 1, 4, 1]), (both, [1, 2, 4, 2]), (total, [1, 2, 4, 2])):
        assert truth(rewrite(bind(predicate, SCHEMA)), BATCH).tolist() == expected
        assert parse(str(predicate)) == predicate
        assert pickle.loads(pickle.dumps(predicate)) == predicate
    assert str(total).count("(") == 1


# ---- work ------------------------------------------------------------------------------------------------------------


def calls(work: Callable[[], Any]) -> int:
    """How many functions of Python a piece of work calls."""
    count = 0

    def counted(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("template", LADDERS)
def test_work_is_linear_in_the_levels(template: str) -> None:
    """Twice as many levels take twice the calls: four times would be quadratic work."""
    few, many = (work_of(ladder(template, levels)) for levels in (30, 60))
    for step, count in many.items():
        assert count <= 2.6 * few[step] + 200, step


def work_of(text: str) -> dict[str, int]:
    """The calls of every step."""
    predicate = parse(text)
    bound = bind(predicate, SCHEMA)
    rewritten = rewrite(bound)
    return {
        "parse": calls(lambda: parse(text)),
        "text": calls(lambda: str(predicate)),
        "bind": calls(lambda: bind(predicate, SCHEMA)),
        "rewrite": calls(lambda: rewrite(bind(predicate, SCHEMA))),
        "evaluate": calls(lambda: evaluate(bound, groups())),
        "rewritten": calls(lambda: evaluate(rewritten, groups())),
        "may match": calls(lambda: may_match(rewritten, groups())),
        "text of bound": calls(lambda: str(rewritten)),
        "hash": calls(lambda: hash(pickle.loads(pickle.dumps(rewritten)))),
        "equal": calls(lambda: bound == bind(predicate, SCHEMA)),
        "pickle": calls(lambda: pickle.dumps(rewritten)),
    }


@pytest.mark.parametrize("template", SHAPES[-2:])
def test_to_say_why_is_linear_in_the_levels(table: sec.Table, template: str) -> None:
    """Also where each level is a condition of its own, in which all below it are nested."""
    plans = [sec.prune(table, ladder(template, levels), strict=True) for levels in (30, 60)]
    few, many = (calls(lambda plan=plan: str(plan.why("a.parquet"))) for plan in plans)  # type: ignore[misc]
    assert many <= 2.6 * few


@examples(60, shrink=False)
@given(seed=st.integers(0, 2**40), depth=st.integers(1, 60))
def test_nodes_are_fewer_than_characters(seed: int, depth: int) -> None:
    """Of whatever is nested in whatever: the tree is no larger than its text."""
    chance = random.Random(seed)
    schema = expressions.table(1, chance).schema
    text = expressions.deep(chance, depth)
    predicate = parse(text)
    assert len(str(predicate)) < 5 * len(text)
    bound = rewrite(bind(predicate, schema))
    assert sum(1 for _ in everything_in(bound)) < len(text)
    assert len(str(bound)) < 10 * len(text)


# ---- meaning ---------------------------------------------------------------------------------------------------------


@examples(60, shrink=False)
@given(seed=st.integers(0, 2**40), depth=st.integers(0, 4))
def test_outcomes_are_those_of_a_naive_evaluation(seed: int, depth: int) -> None:
    """Node by node, shared ones as often as they stand there, without rewriting."""
    chance = random.Random(seed)
    (batch,) = expressions.table(20, chance).combine_chunks().to_batches()
    units = Groups(batch, windows(batch.num_rows))
    for _ in range(5):
        text = expressions.deep(chance, depth)
        predicate = bind(parse(text), batch.schema)
        assert (evaluate(predicate, units) == naive_outcomes(predicate, units)).all(), text
        rewritten = rewrite(predicate)
        assert (evaluate(rewritten, units) == naive_outcomes(rewritten, units)).all(), text


ROWS = 40


@examples(6, shrink=False)
@given(seed=st.integers(0, 2**40))
def test_rows_of_deep_trees_are_as_spark_answers(spark: SparkSession, seed: int) -> None:
    """Conditions as values, and boolean values as conditions."""
    chance = random.Random(seed)
    table = expressions.table(ROWS, chance)
    frame = spark.createDataFrame(table, spark_schema(table.schema))
    (batch,) = table.combine_chunks().to_batches()
    asked: dict[str, Asked] = {}
    for text in [expressions.deep(chance, chance.choice([1, 2, 4, 8])) for _ in range(some(40))]:
        predicate = bound_or_none(text, table.schema)
        if predicate is not None:
            rows = defined_rows(predicate, batch)
            asked[within_rows(text, rows)] = Asked(text, predicate, rows)
    outcome = {True: 1, False: 2, None: 4}
    for masked, expected in ask(frame, list(asked)).truth.items():
        outcomes = {row: outcome[expected[row]] for row in asked[masked].rows}
        check_rows(asked[masked], batch, outcomes)
        check_groups(asked[masked], batch, outcomes)


def bound_or_none(text: str, schema: pa.Schema) -> Predicate | None:
    try:
        return bind(parse(text), schema)
    except IncomparableLiteral:
        return None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if(s LIKE '%b', 1, 0) = 0", [1, 2, 1, 2]),
        ("(s LIKE 'a%') = TRUE", [1, 2, 4, 1]),
        ("(s LIKE 'a_') <=> NULL", [2, 2, 1, 2]),
        ("CASE WHEN contains(s, 'b') THEN id END > 2", [4, 2, 4, 1]),
        ("if(instr(s, 'b') > 0, 'x', 'y') = 'x'", [2, 1, 2, 1]),
        ("(instr(s, 'b') > 0) = endswith(s, 'b')", [1, 1, 4, 1]),
        ("between(id, 2, 3)", [2, 1, 4, 2]),
        ("if(between(s, 'aa', 'b'), id, 0) IN (2, 4)", [2, 1, 2, 1]),
        ("NOT coalesce(like(s, '%b'), TRUE)", [1, 2, 2, 2]),
        ("id BETWEEN (1) AND 2", [1, 1, 4, 2]),
        ("id NOT BETWEEN (1) AND 2 AND NOT between(id, 7, 8)", [2, 2, 4, 1]),
    ],
)
def test_a_condition_is_a_value(text: str, expected: list[int]) -> None:
    assert truth(bind(parse(text), SCHEMA), BATCH).tolist() == expected


# ---- long patterns ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operator_", ["LIKE", "ILIKE", "RLIKE"])
def test_work_on_patterns_is_linear_in_their_length(operator_: str) -> None:
    between = "." if operator_ == "RLIKE" else "%"

    def work(words: int) -> int:
        pattern = between.join(f"word{i}" for i in range(words))
        predicate = parse(f"s {operator_} '{pattern}{between}'")
        return calls(lambda: rewrite(bind(predicate, SCHEMA)))

    assert work(2000) <= 2.6 * work(1000)


@takes_seconds
@pytest.mark.parametrize("pattern", ["%" + "x" * 300_000 + "%", "%_" * 150_000, "a%" * 150_000])
def test_a_pattern_too_large_for_a_regular_expression_is_left_to_spark(pattern: str) -> None:
    predicate = bind(parse(f"s LIKE '{pattern}'"), SCHEMA)
    if is_supported(predicate):
        assert truth(predicate, BATCH).tolist() == [2, 2, 4, 2]
    assert np.array_equal(evaluate(predicate, groups()) & TRUE, evaluate(rewrite(predicate), groups()) & TRUE)


# ---- names -----------------------------------------------------------------------------------------------------------


def test_names_with_a_backtick(tmp_path: Path) -> None:
    """Spark writes them doubled."""
    names = ["a`b", "`", "``", "a``", "x.`y"]
    rows = pa.table({name: pa.array(range(10), pa.int64()) for name in names})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=2)
    table = sec.open_table(str(tmp_path))
    for name in names:
        quoted = "`" + name.replace("`", "``") + "`"
        for predicate in (f"{quoted} = 5", sec.col(quoted) == 5, f"if({quoted} > 4, {quoted}, 0) = 5"):
            plan = sec.prune(table, predicate, strict=True)
            assert plan.to_arrow([quoted]).to_pydict() == {name: [5]}
            assert len(plan.blocks) <= 3
            assert sec.prune(table, plan.residual or "").count() == 1
            assert quoted in plan.explain()
            assert quoted in plan.explain(verbose=True)
            assert quoted in str(plan.why("a.parquet", 0))
