"""Sessions with ANSI mode and without: what a predicate means is that of the session, on every read path."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import IncomparableLiteral, StalePlan
from secateur.io.spark.file_reader import spark_schema
from secateur.pruning.predicate.binding.without_ansi import beside
from secateur.pruning.predicate.nodes import Literal
from secateur.scan import Scan
from tests.support.checks.laws import check_table
from tests.support.drawn import expressions
from tests.support.drawn.strategies import ZONES
from tests.support.profiles import examples, some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EACH = some(15)  # predicates of each kind on a table
VALUES = [16777216.0, 1.0, 2.0, None]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Floats, one to a block."""
    rows = pa.table({"g": pa.array(VALUES, pa.float32()), "i": pa.array([1, 2, 2**31 - 1, None], pa.int32())})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=1)
    return tmp_path


def values(plan: Scan, column: str) -> list[object]:
    return plan.to_arrow([column])[column].to_pylist()


# ---- any table -------------------------------------------------------------------------------------------------------


@examples(3, shrink=False)
@given(seed=st.integers(0, 2**40), zone=st.sampled_from(ZONES))
def test_plans_without_ansi_are_right(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, seed: int, zone: str
) -> None:
    """The mode is that of the session, which nothing else tells."""
    chance = random.Random(seed)
    rows = expressions.table(60, chance)
    rows = rows.take(pa.array(np.argsort(np.array(rows[chance.choice("tilfxmp")].is_null()), kind="stable")))
    root = tmp_path_factory.mktemp("lake")
    pq.write_table(rows, root / "part.parquet", row_group_size=5)
    texts = [expressions.mixed(chance) for _ in range(EACH)] + [expressions.predicate(chance) for _ in range(EACH)]
    spark.conf.set("spark.sql.session.timeZone", zone)
    spark.conf.set("spark.sql.ansi.enabled", "false")
    frame = spark.read.schema(spark_schema(rows.schema)).parquet(str(root))
    build = {"sort_key": ["l"], "bloom": ["i", "l", "f", "m", "s"], "fpr": 0.1, "segment_blocks": 3}
    check_table(spark, root, list(dict.fromkeys(texts)), frame=frame, read_paths=some(4), build=build)


# ---- how a plan learns the mode --------------------------------------------------------------------------------------


def test_the_mode_is_an_argument(lake: Path) -> None:
    table = sec.open_table(lake)
    assert values(sec.prune(table, "g = 16777217", ansi=False), "g") == [16777216.0]
    assert values(sec.prune(table, "g = 16777217", ansi=True), "g") == []
    assert sec.prune(table, "g = 16777217").ansi
    assert sec.aggregate(table, "count(*) AS n", "g = 16777217", ansi=False)["n"].to_pylist() == [1]
    assert sec.advise(table, ["i = '1.5'"], ansi=False)
    with pytest.raises(IncomparableLiteral):
        sec.prune(table, "i = '1.5'", ansi=True)


def test_a_plan_made_again_keeps_the_mode(lake: Path) -> None:
    plan = sec.prune(sec.open_table(lake), "i + 1 < 0", ansi=False)
    assert values(plan, "i") == [2**31 - 1]
    again = plan.replanned()
    assert not again.ansi
    assert values(again, "i") == [2**31 - 1]


def test_zone_maps_are_asked_in_a_mode() -> None:
    bound = pa.array([16777216.0], pa.float32())
    none = pa.array([0])
    zone_maps = pa.table({"g.lower": bound, "g.upper": bound, "g.nan_count": none, "g.null_count": none})
    for ansi in (True, False):
        outcomes = sec.evaluate("g = 16777217", zone_maps, ansi=ansi)
        assert outcomes["may_be_true"].to_pylist() == [not ansi]


def test_the_session_tells_the_mode(spark: SparkSession, lake: Path) -> None:
    table = sec.open_table(lake)
    spark.conf.set("spark.sql.ansi.enabled", "false")
    plan = sec.prune(table, "g = 16777217")
    assert not plan.ansi
    assert [row.g for row in plan.to_spark(spark).collect()] == [16777216.0]
    assert [row.g for row in sec.dataframe(spark, table).where("g = 16777217").collect()] == [16777216.0]


def test_a_plan_goes_to_sessions_where_it_means_the_same(spark: SparkSession, lake: Path) -> None:
    table = sec.open_table(lake)
    other = sec.prune(table, "g = 16777217", ansi=False)
    with pytest.raises(StalePlan, match="ansi=True"):
        other.to_spark(spark)
    refused = sec.prune(table, "i = 'x'", ansi=False)
    with pytest.raises(StalePlan):
        refused.to_spark(spark)
    same = sec.prune(table, "g >= 2.0 AND i IN (1, 2) OR now() IS NULL", ansi=False)
    assert [row.g for row in same.to_spark(spark).collect()] == [16777216.0]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_columns_of_pyspark_mean_what_they_mean_in_the_session(spark: SparkSession, lake: Path, ansi: str) -> None:
    table, frame = sec.open_table(lake), spark.read.parquet(str(lake))
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    for condition in (~frame.i.isin([]), frame.i.isin([]).isNull(), frame.g == 16777217, frame.i <= 2):
        plan = sec.prune(table, condition)
        assert plan.count() == plan.to_spark(spark).count() == frame.where(condition).count()


def test_the_format_has_an_option(spark: SparkSession, lake: Path) -> None:
    frame = spark.read.format("secateur").options(predicate="g = 16777217", ansi="false").load(str(lake))
    assert [row.g for row in frame.collect()] == [16777216.0]
    assert spark.read.format("secateur").options(predicate="g = 16777217").load(str(lake)).collect() == []


# ---- text as floats --------------------------------------------------------------------------------------------------


@given(
    bits=st.integers(0, 0x7F7F_FFFE),
    tail=st.sampled_from(["", "1", "0000000000000000000000001"]),
    above=st.booleans(),
    digits=st.integers(1, 40),
)
def test_text_is_the_nearest_float_or_left_to_spark(bits: int, tail: str, above: bool, digits: int) -> None:
    """Around the middle between two floats, where rounding to a double first may lead to the other."""
    low, high = (float(np.array(b, np.int32).view(np.float32)) for b in (bits, bits + 1))
    middle = (Decimal(low) + Decimal(high)) / 2 if above else Decimal(low) * Decimal(10) ** -digits
    text = f"{middle:f}"
    text += tail if "." in text else f".{tail}"
    operand = beside(pa.float32(), Literal(text, "string"))
    if operand is None or len(text) > 400:
        return
    value = Fraction(text)
    assert isinstance(operand.value, float)
    candidates = [
        operand.value,
        *(float(np.nextafter(np.float32(operand.value), np.float32(e))) for e in (-np.inf, np.inf)),
    ]
    assert all(abs(Fraction(operand.value) - value) <= abs(Fraction(c) - value) for c in candidates if np.isfinite(c))
