"""Delta tables with random histories, each state of which is read as Delta's own reader for Spark reads it.

Row by row, Spark says for which rows a predicate is TRUE: nothing is pushed into Delta's scan.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

import secateur as sc
from secateur.errors import UnsupportedPredicate
from tests.support import oracle
from tests.support.conditions import conditions
from tests.support.delta_histories import DeltaHistory
from tests.support.profiles import by_profile

SEEDS = by_profile(quick=range(3), full=range(8), nightly=range(60))
STEPS = 10
CHECKED = (4, 9)


def agrees(
    spark: SparkSession, frame: DataFrame, handles: Mapping[str, Any], draw: random.Random, log: object, each: int = 6
) -> None:
    """Some predicates, others for every handle; one of them on the roads to Spark."""
    answers = oracle.ask(frame, conditions(frame.schema, draw))
    assert len(answers.truth) > 20
    for label, handle in handles.items():
        for predicate in ["true", *draw.sample(list(answers.truth), each)]:
            expected = answers.matching(predicate)
            plan = sc.prune(handle, predicate, strict=True, use_index=label != "none")
            with contextlib.suppress(UnsupportedPredicate):
                rows = plan.to_arrow()
                assert rows.schema.names == frame.schema.names
                equal(oracle.rows(rows), expected, (label, predicate, log, plan.explain()))
                assert plan.count() == expected.total(), (label, predicate, log)
                n = draw.randrange(0, expected.total() + 3)
                some = oracle.rows(sc.prune(handle, predicate, limit=n, strict=True).to_arrow())
                assert some.total() == min(n, expected.total()) and some <= expected, (label, predicate, n, log)
    label, predicate = draw.choice(list(handles)), draw.choice(list(answers.truth))
    plan = sc.prune(handles[label], predicate, strict=True)
    for via in ("blocks", "auto"):
        found = plan.to_spark(spark, via=via).toArrow()
        equal(oracle.rows(found), answers.matching(predicate), (label, via, predicate, log))


def equal(found: Counter[str], expected: Counter[str], about: object) -> None:
    lost, more = expected - found, found - expected
    assert not lost | more, (f"{lost=}, {more=}", about)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_state_of_a_history_is_read_as_delta_reads_it(delta: SparkSession, tmp_path: Path, seed: int) -> None:
    """Without an index, with a stale one, and with one that is kept in order; now and in the past."""
    path = str(tmp_path / "table")
    history, draw = DeltaHistory.begin(delta, path, seed), random.Random(seed)
    handles = {name: sc.open_table(path, index_location=str(tmp_path / name)) for name in ("none", "stale", "kept")}
    for name in ("stale", "kept"):
        build(delta if name == "kept" else None, handles[name], history, draw)
    for step in range(STEPS):
        history.step()
        if step in CHECKED:
            sc.refresh_index(handles["kept"], spark=delta)
            assert sc.verify_index(handles["kept"]).sound
            agrees(delta, delta.read.format("delta").load(path), handles, draw, history.log)
    version = draw.randrange(1, handles["none"].snapshot().id)
    frame = delta.read.format("delta").option("versionAsOf", version).load(path)
    then = {
        name: sc.open_table(path, index_location=str(tmp_path / name), version=version) for name in ("none", "kept")
    }
    agrees(delta, frame, then, draw, (version, history.log), each=3)


def build(spark: SparkSession | None, handle: Any, history: DeltaHistory, draw: random.Random) -> None:
    """An index with filters and a sort key of columns that files have."""
    outside = {part.strip() for part in history.partitioned.split(",")}
    plain = [
        each.name
        for each in history.schema
        if isinstance(each.dataType, t.IntegerType | t.StringType | t.LongType) and each.name not in outside
    ]
    sc.build_index(handle, spark=spark, bloom=draw.sample(plain, min(2, len(plain))), sort_key=[draw.choice(plain)])
