"""Iceberg tables with random histories, each state of which is read as Iceberg's own reader reads it.

Row by row, Spark says for which rows a predicate is TRUE: nothing is pushed into Iceberg's scan, whose bounds leave NaN
out where Spark orders it above every number.
"""

from __future__ import annotations

import contextlib
import itertools
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

import secateur as sec
from secateur.errors import UnsupportedPredicate
from tests.support.checks import oracle
from tests.support.drawn.conditions import conditions
from tests.support.drawn.iceberg_histories import SparkHistory
from tests.support.enabled_session import SWITCH, enabled
from tests.support.formats.iceberg_spark import location
from tests.support.profiles import by_profile

FEW = [(1, 0), (2, 1), (3, 0)]  # versions of the format, and seeds
EVERY = [(version, seed) for version in (1, 2, 3) for seed in range(20)]
CASES = by_profile(quick=FEW[2:], full=FEW, nightly=EVERY)
STEPS = by_profile(quick=4, full=12, nightly=12)
CHECKED = (5, 11)
NUMBERS = itertools.count()


@dataclass(frozen=True)
class Reader:
    """One way to one state of a table: how it is opened, here and by Spark."""

    path: str
    options: Mapping[str, Any]
    use_index: bool = True

    def open(self) -> Any:
        return sec.open_table(self.path, **self.options)

    def plan(self, predicate: str, **more: Any) -> Any:
        return sec.prune(self.open(), predicate, strict=True, use_index=self.use_index, **more)

    def format(self, spark: SparkSession, predicate: str) -> DataFrame:
        options = {name: str(value) for name, value in self.options.items()}
        reader = spark.read.format("secateur").options(**options, predicate=predicate)
        return reader.option("use_index", str(self.use_index).lower()).load(self.path)


@dataclass(frozen=True)
class Check:
    """What Iceberg and Spark say of one state of a table, to compare with."""

    spark: SparkSession
    answers: oracle.Answers
    schema: t.StructType
    draw: random.Random
    log: object

    @staticmethod
    def of(spark: SparkSession, frame: DataFrame, draw: random.Random, log: object) -> Check:
        answers = oracle.ask(frame, conditions(frame.schema, draw))
        assert len(answers.truth) > 20
        return Check(spark, answers, frame.schema, draw, log)

    def agrees(self, readers: Mapping[str, Reader], predicates: int = 6, read_paths: int = 1) -> None:
        """Some predicates, others for every reader; some readers on all read paths to Spark."""
        for label, reader in readers.items():
            for predicate in ["true", *self.draw.sample(list(self.answers.truth), predicates)]:
                self._rows_agree(label, reader, predicate)
        for label in self.draw.sample(list(readers), min(read_paths, len(readers))):
            self._read_paths_agree(label, readers[label], self.draw.choice(list(self.answers.truth)))

    def agrees_by_name(self, source: str, predicates: int) -> None:
        """SQL by name, with `enable` on: what Iceberg answers, and no row that Spark would not find row by row.

        Iceberg's own answer may lack rows with NaN.
        """
        for predicate in ["true", *self.draw.sample(list(self.answers.truth), predicates)]:
            query = f"SELECT * FROM {source} WHERE {predicate}"
            without, rows = (self._rows_of(query, pruned=pruned) for pruned in (False, True))
            assert not without - rows, (source, predicate, self.log)
            assert not rows - self.answers.matching(predicate), (source, predicate, self.log)
            n = self.draw.randrange(1, rows.total() + 3)
            some = self._rows_of(f"{query} LIMIT {n}", pruned=True)
            assert some.total() == min(n, rows.total()), (source, predicate, n, self.log)
            assert some <= rows, (source, predicate, n, self.log)

    def _rows_of(self, query: str, *, pruned: bool) -> Counter[str]:
        self.spark.conf.set(SWITCH, str(pruned).lower())
        try:
            return oracle.rows(self.spark.sql(query).toArrow())
        finally:
            self.spark.conf.unset(SWITCH)

    def _rows_agree(self, label: str, reader: Reader, predicate: str) -> None:
        expected = self.answers.matching(predicate)
        plan = reader.plan(predicate)
        try:
            rows = plan.to_arrow()
        except UnsupportedPredicate:
            return
        assert rows.schema.names == self.schema.names
        self._equal(rows, expected, label, predicate, plan)
        assert plan.count() == expected.total(), (label, predicate, self.log)
        n = self.draw.randrange(0, expected.total() + 3)
        some = oracle.rows(reader.plan(predicate, limit=n).to_arrow())
        assert some.total() == min(n, expected.total()), (label, predicate, n, self.log)
        assert some <= expected, (label, predicate, n, self.log)

    def _read_paths_agree(self, label: str, reader: Reader, predicate: str) -> None:
        expected = self.answers.matching(predicate)
        plan = reader.plan(predicate)
        frames = {"blocks": plan.to_spark(self.spark, via="blocks")}
        with contextlib.suppress(UnsupportedPredicate):
            plan.require_supported()
            frames["format"] = reader.format(self.spark, predicate)
        if len(plan.files):
            frames["iceberg"] = plan.to_spark(self.spark, via="iceberg")
        for read_path, frame in frames.items():
            assert _untyped(frame.schema) == _untyped(self.schema), (label, read_path, self.log)
            self._equal(frame.toArrow(), expected, f"{label}, {read_path}", predicate, plan)

    def _equal(self, rows: pa.Table, expected: Counter[str], label: str, predicate: str, plan: Any) -> None:
        read = oracle.rows(rows)
        lost, more = expected - read, read - expected
        assert not lost | more, (label, predicate, f"{lost=}, {more=}", self.log, plan.explain())


def _untyped(schema: t.StructType) -> list[tuple[str, str]]:
    """Names and types; whether NULL is possible is not compared."""
    return [(field.name, field.dataType.simpleString()) for field in schema]


@pytest.mark.parametrize(("version", "seed"), CASES)
def test_every_state_of_a_history_is_read_as_iceberg_reads_it(
    iceberg: SparkSession, tmp_path: Path, version: int, seed: int
) -> None:
    """Without an index, with a fresh one, a stale one, one that is kept in order; branches, tags, the past."""
    history = SparkHistory.begin(iceberg, f"lake.db.h{next(NUMBERS)}", version, seed)
    path = location(iceberg, history.name)
    draw = random.Random(seed)
    readers = {name: Reader(path, {"index_location": str(tmp_path / name)}) for name in ("none", "stale", "kept")}
    for kind in ("stale", "kept"):
        build(iceberg, readers[kind], history, draw)
    for step in range(STEPS):
        history.step()
        if step in CHECKED:
            sec.refresh_index(readers["kept"].open(), spark=iceberg)
            sec.optimize_index(readers["kept"].open(), spark=iceberg)
            if step == CHECKED[-1]:
                readers["fresh"] = Reader(path, {})
                build(iceberg, readers["fresh"], history, draw)
            Check.of(iceberg, iceberg.table(history.name), draw, history.log).agrees(readers)
    with enabled(iceberg):
        Check.of(iceberg, iceberg.table(history.name), draw, history.log).agrees_by_name(history.name, predicates=4)
        check_the_past(iceberg, history, readers, draw)
    if seed == 1:
        history.expire()
        Check.of(iceberg, iceberg.table(history.name), draw, history.log).agrees(readers, predicates=3)


def build(spark: SparkSession, reader: Reader, history: SparkHistory, draw: random.Random) -> None:
    """An index with filters and a sort key of columns that there are."""
    schema = history.schema
    plain = [field.name for field in schema if isinstance(field.dataType, t.IntegerType | t.StringType | t.LongType)]
    table = reader.open()
    sec.build_index(table, spark=spark, bloom=draw.sample(plain, min(3, len(plain))), sort_key=[draw.choice(plain)])


def check_the_past(
    spark: SparkSession, history: SparkHistory, readers: Mapping[str, Reader], draw: random.Random
) -> None:
    """Some snapshot of the past, some branch and some tag, by indexes that were built for another state."""
    snapshots = [row[0] for row in spark.sql(f"SELECT snapshot_id FROM {history.name}.snapshots").collect()]
    past = draw.choice(snapshots[:-1] or snapshots)
    moments = [(f"{history.name} VERSION AS OF {past}", {"snapshot_id": past})]
    refs = spark.sql(f"SELECT name, type FROM {history.name}.refs WHERE name <> 'main'").collect()
    for name, kind in draw.sample(refs, min(2, len(refs))):
        moments.append((f"{history.name}.{kind.lower()}_{name}", {"ref": name}))
    for source, moment in moments:
        frame = spark.sql(f"SELECT * FROM {source}")
        then = {label: Reader(reader.path, {**reader.options, **moment}) for label, reader in readers.items()}
        check = Check.of(spark, frame, draw, (moment, history.log))
        check.agrees(then, predicates=3)
        check.agrees_by_name(source, predicates=2)
