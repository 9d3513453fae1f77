"""The laws of pruning, checked for one plan or for a whole table against Spark's answers.

1. No pruned block, and no pruned range of rows, holds a row for which the predicate is TRUE.
2. A fully matching block holds only such rows.
3. The rows of a plan, by any read path, equal Spark's as multisets; with a limit, any subset of the right size.
4. The row evaluator gives Spark's truth value on every row.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.functions import lit

import secateur as sec
from secateur.errors import EvaluationError, UnsupportedPredicate
from secateur.io.scan.read_path import asks_hidden_metadata, is_read_by_spark
from secateur.io.spark.version import IS_3
from secateur.pruning.bounds.outcomes import FALSE, NULL, TRUE
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.bound_walks import columns, is_supported
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.rows.truth import truth
from secateur.scan import Scan
from tests.support.checks.oracle import Answers, Truth, ask, by_row_id, in_order, row_id_of_blocks, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PLAN = "number of the plan"
OUTCOME = {True: TRUE, False: FALSE, None: NULL}


def check_table(
    spark: SparkSession,
    root: Path,
    predicates: Sequence[str],
    *,
    frame: DataFrame | None = None,
    limit: int = 3,
    read_paths: int = 0,
    build: dict[str, Any] | None = None,
    ansi: bool | None = None,
) -> Answers:
    """All laws on a table, with a new index (unless `build` is None) and without one.

    `frame` is the table as Spark reads it. The rows of the first `read_paths` predicates are read through Spark too.
    `ansi` is told to `prune`; None leaves the mode for it to ask of the session.
    """
    answers = ask(spark.read.parquet(str(root)) if frame is None else frame, predicates)
    table = sec.open_table(str(root))
    if build is not None:
        sec.build_index(table, **build)
    check_plans(root, answers, limit, ansi=ansi)
    wheres = [text for text in answers.truth if text != "NULL"][:read_paths]  # Spark refuses WHERE NULL
    check_read_paths(spark, [sec.prune(table, text) for text in wheres], answers)
    return answers


def check_plans(root: Path, answers: Answers, limit: int = 3, *, ansi: bool | None = None) -> None:
    """All laws on a table, by the index as it is and without it, for every predicate that Spark answers."""
    prune = partial(sec.prune, ansi=ansi)
    table = sec.open_table(str(root))
    everything = sec.prune(table, "TRUE").to_arrow()
    assert by_row_id(everything) == answers.rows
    batches = everything.combine_chunks().to_batches()
    for text, expected in answers.truth.items():
        plan = prune(table, text, strict=True)
        check_blocks(plan, root, expected)
        check_blocks(prune(table, text, use_index=False), root, expected)
        for checked in (plan, prune(table, text, limit=limit, strict=True)):
            try:
                check_rows(checked, answers.matching(text))
            except EvaluationError:
                assert any(has_undecided_rows(plan, batch) for batch in batches), text
        if batches:
            check_truth(plan, batches[0], expected)


def check_blocks(plan: Scan, root: Path, expected: Truth) -> None:
    """Laws 1 and 2."""
    matching = {rid for rid, value in expected.items() if value}
    kept: set[int] = set()
    blocks = zip(row_id_of_blocks(root, plan), plan.blocks.to_pylist(), strict=True)
    for ids, block in blocks:
        assert len(ids) == block["row_count"]
        for span in block["row_ranges"]:
            assert 0 <= span["start"] < span["stop"] <= block["row_count"]
            kept.update(ids[span["start"] : span["stop"]])
        if block["fully_matching"]:
            assert set(ids) <= matching, (plan.sql, block)
    assert matching <= kept, (plan.sql, sorted(matching - kept))


def has_undecided_rows(plan: Scan, batch: pa.RecordBatch) -> bool:
    """Whether only Spark knows the answer on some row: on a local time before 1970, say."""
    return not np.isin(truth(plan.predicate, batch), list(OUTCOME.values())).all()


def check_truth(plan: Scan, batch: pa.RecordBatch, expected: Truth) -> None:
    """Law 4, for the predicate as bound and as rewritten; a row on which only Spark knows the answer has several."""
    schema, zone = plan.opened.binding_schema, plan.session_time_zone
    for predicate in (bind(parse(plan.sql), schema, session_time_zone=zone, ansi=plan.ansi), plan.predicate):
        if is_supported(predicate) and "_metadata" not in columns(predicate):
            outcomes = dict(zip(batch["rid"].to_pylist(), truth(predicate, batch).tolist(), strict=True))
            single = {rid: outcome for rid, outcome in outcomes.items() if outcome in OUTCOME.values()}
            assert single == {rid: OUTCOME[expected[rid]] for rid in single}, plan.sql
            assert all(outcomes[rid] & OUTCOME[value] for rid, value in expected.items()), plan.sql


def check_rows(plan: Scan, wanted: Counter[str]) -> None:
    """Law 3, for the read paths that need no Spark."""
    if plan.residuals.whole is not None and not is_supported(plan.residuals.whole):
        with pytest.raises(UnsupportedPredicate):
            plan.to_arrow()
        return
    read = rows(plan.to_arrow())
    if plan.limit is None:
        assert read == wanted, plan.sql
    else:
        assert read <= wanted, plan.sql
        assert read.total() == min(plan.limit, wanted.total()), plan.sql
    assert plan.count() == read.total(), plan.sql


def check_read_paths(spark: SparkSession, plans: Sequence[Scan], answers: Answers) -> None:
    """Law 3, for the read paths through Spark, all plans in one query by each read path, and as a stream of batches."""
    if not plans:
        return
    for plan in plans:
        if plan.residuals.whole is None or is_supported(plan.residuals.whole):
            with contextlib.suppress(EvaluationError):  # which check_plans looks into
                read = rows(pa.Table.from_batches(plan.to_batches(), plan.opened.schema))
                assert read == answers.matching(plan.sql)
    for read_path in ("local", "blocks", "native"):
        taken = [(i, plan) for i, plan in enumerate(plans) if has_read_path(plan, read_path)]
        if not taken:
            continue
        wanted = [(i, row) for i, plan in taken for row in answers.matching(plan.sql).elements()]
        numbered = [plan.to_spark(spark, via=read_path).withColumn(PLAN, lit(i)) for i, plan in taken]
        read = reduce(lambda a, b: a.unionAll(b), numbered).toArrow()
        number, table = read[PLAN].to_pylist(), read.drop_columns([PLAN])
        assert Counter(zip(number, in_order(table), strict=True)) == Counter(wanted), (
            read_path,
            [p.sql for p in plans],
        )


def has_read_path(plan: Scan, read_path: str) -> bool:
    """Whether a plan has a read path: of ``_metadata``, only Spark's own reader knows more than names and sizes."""
    return not asks_hidden_metadata(plan) or (read_path == "native" and is_read_by_spark(plan))


def check_source(spark: SparkSession, root: Path, predicates: Sequence[str], answers: Answers) -> None:
    """Law 3, for the data source, one query for all predicates: also for those that only Spark evaluates."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    predicates = [text for text in predicates if "_metadata" not in text]  # a column that the format does not have
    if not predicates or IS_3:  # which has no Python data sources
        return
    table = sec.open_table(str(root))

    def read_by(text: str) -> DataFrame:
        """By a reader of its own: an option changes the reader that it is set on."""
        reader = spark.read.format("secateur").option("time_zone", zone)
        if not sec.prune(table, text).left_to_spark:
            reader = reader.option("predicate", text)
        return reader.load(str(root)).where(text)

    numbered = [read_by(text).withColumn(PLAN, lit(i)) for i, text in enumerate(predicates)]
    read = reduce(lambda a, b: a.unionAll(b), numbered).toArrow()
    wanted = [(i, row) for i, text in enumerate(predicates) for row in answers.matching(text).elements()]
    number, table = read[PLAN].to_pylist(), read.drop_columns([PLAN])
    assert Counter(zip(number, in_order(table), strict=True)) == Counter(wanted), predicates
