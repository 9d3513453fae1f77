"""Pruning against Spark, on random tables and predicates.

For every predicate Spark says on which rows it is TRUE, FALSE and NULL. The laws, which every test here states:

1. no pruned block, and no pruned range of rows, holds a row for which the predicate is TRUE;
2. a fully matching block holds only such rows;
3. the rows of a plan, by whatever road, are those of Spark, as multisets; with a limit, any so many of them;
4. the row evaluator gives Spark's truth value on every row.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from conftest import examples
from hypothesis import event, given
from hypothesis import strategies as st
from oracle import Answers, Truth, ask, by_row_id, in_order, row_id_of_blocks, rows
from pyspark.sql.functions import lit
from strategies import ZONES, TableSpec, predicates, table_specs

import secateur as sc
from secateur.errors import UnsupportedPredicate
from secateur.io.scan import Scan
from secateur.io.spark_plan import spark_schema
from secateur.pruning.outcomes import FALSE, NULL, TRUE
from secateur.pruning.predicate.bind import bind
from secateur.pruning.predicate.bound import columns, is_supported
from secateur.pruning.predicate.parse import parse
from secateur.pruning.rows import truth

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PREDICATES = 30  # per table, evaluated by Spark in one query
ROADS = 4  # predicates per table whose rows take every road
PLAN = "number of the plan"
OUTCOME = {True: TRUE, False: FALSE, None: NULL}


@contextmanager
def written(spec: TableSpec) -> Iterator[Path]:
    root = Path(tempfile.mkdtemp(prefix="secateur-"))
    try:
        yield spec.write(root / "lake")
    finally:
        shutil.rmtree(root)


def oracle_frame(spark: SparkSession, root: Path, spec: TableSpec) -> DataFrame:
    """The table as Spark reads it: data columns by their types, partition columns as Spark infers them."""
    return spark.read.schema(spark_schema(spec.schema)).parquet(str(root))


@dataclass(frozen=True, repr=False)
class Case:
    """A table, predicates on it, the session's time zone, and a limit."""

    spec: TableSpec
    predicates: list[str]
    zone: str
    limit: int

    def __repr__(self) -> str:  # short: what fails is named by the assertion
        return f"<a table of {len(self.spec.files)} files in {self.zone}>"


@st.composite
def cases(draw: st.DrawFn) -> Case:
    spec = draw(table_specs())
    texts = draw(st.lists(predicates(spec), min_size=PREDICATES, max_size=PREDICATES, unique=True))
    return Case(spec, texts, draw(st.sampled_from(ZONES)), draw(st.integers(0, 30)))


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


def check_truth(plan: Scan, batch: pa.RecordBatch, expected: Truth) -> None:
    """Law 4, for the predicate as bound and as rewritten."""
    schema, zone = plan.opened.binding_schema, plan.session_time_zone
    for predicate in (bind(parse(plan.sql), schema, session_time_zone=zone), plan.predicate):
        if is_supported(predicate) and "_metadata" not in columns(predicate):
            found = dict(zip(batch["rid"].to_pylist(), truth(predicate, batch).tolist(), strict=True))
            assert found == {rid: OUTCOME[value] for rid, value in expected.items()}, plan.sql


def check_rows(plan: Scan, wanted: Counter[str]) -> None:
    """Law 3, for the roads that need no Spark."""
    if plan.residual_predicate is not None and not is_supported(plan.residual_predicate):
        with pytest.raises(UnsupportedPredicate):
            plan.to_arrow()
        return
    found = rows(plan.to_arrow())
    if plan.limit is None:
        assert found == wanted, plan.sql
    else:
        assert found <= wanted, plan.sql
        assert found.total() == min(plan.limit, wanted.total()), plan.sql
    assert sum(batch.num_rows for batch in plan.to_batches(["rid"])) == found.total()
    assert plan.count() == found.total(), plan.sql


def check_roads(spark: SparkSession, plans: Sequence[Scan], answers: Answers) -> None:
    """Law 3, for the roads through Spark: all plans in one query by each road."""
    if not plans:
        return
    wanted = [(i, row) for i, plan in enumerate(plans) for row in answers.matching(plan.sql).elements()]
    for road in ("blocks", "native"):
        numbered = [plan.to_spark(spark, via=road).withColumn(PLAN, lit(i)) for i, plan in enumerate(plans)]
        found = reduce(lambda a, b: a.unionAll(b), numbered).toArrow()
        number, table = found[PLAN].to_pylist(), found.drop_columns([PLAN])
        assert Counter(zip(number, in_order(table), strict=True)) == Counter(wanted), (road, [p.sql for p in plans])


@examples(ci=35, shrink=False)
@given(case=cases())
def test_plans_are_right_on_random_tables(spark: SparkSession, case: Case) -> None:
    """Laws 1 to 4, with an index (pages, bloom filters, small segments) and without."""
    spec = case.spec
    spark.conf.set("spark.sql.session.timeZone", case.zone)
    with written(spec) as root:
        answers = ask(oracle_frame(spark, root, spec), case.predicates)
        event(f"{len(answers.truth) * 10 // len(case.predicates) * 10} % of the predicates evaluate")
        table = sc.open_table(str(root))
        names = [kind.sql for kind in spec.kinds]
        sc.build_index(table, spark=spark, sort_key=names[:1], bloom=names, fpr=0.2, segment_blocks=3)
        everything = sc.prune(table, "TRUE").to_arrow()
        assert by_row_id(everything) == answers.rows
        batches = everything.combine_chunks().to_batches()
        for text, expected in answers.truth.items():
            plan = sc.prune(table, text, strict=True)
            check_blocks(plan, root, expected)
            check_rows(plan, answers.matching(text))
            check_blocks(sc.prune(table, text, use_index=False), root, expected)
            check_rows(sc.prune(table, text, limit=case.limit, strict=True), answers.matching(text))
            if batches:
                check_truth(plan, batches[0], expected)
        wheres = [text for text in answers.truth if text != "NULL"][:ROADS]  # Spark refuses WHERE NULL
        check_roads(spark, [sc.prune(table, text) for text in wheres], answers)
