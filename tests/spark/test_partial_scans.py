"""LIMIT, ORDER BY and aggregates of plain queries: Spark's answer, from the row groups that have to be read for it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

import secateur as sec
from secateur.io.spark.planner import enabled as enabled_planner
from secateur.io.spark.planner import known_aggregates, session_rule
from tests.support.enabled_session import SWITCH, answer, enabled, plan_of, pruning, require_same, settings
from tests.support.profiles import examples, one_in

ROWS, FILES, GROUP = 600, 3, 20
BLOCKS = ROWS // GROUP
FLOATS = [None, math.nan, 0.0, -0.0, 1.5, -math.inf, math.inf, -2.0]


def numbered(start: int, stop: int) -> pa.Table:
    """Rows with ties, NULL, NaN, both zeros, and text longer than bounds; `ts` ascends."""
    ids = range(start, stop)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "ts": pa.array([i // 4 for i in ids], pa.int64()).cast(pa.timestamp("us", "UTC")),
            "late": pa.array([None if i < 50 or i >= 550 else i // 5 for i in ids], pa.int32()),
            "f": pa.array([FLOATS[i * 7 % 8] if i % 100 < 60 else float(i) for i in ids], pa.float64()),
            "s": [None if i % 11 == 0 else "x" * 70 + f"{i // 40:03d}" for i in ids],
            "n": [{"a": None if i % 13 == 0 else i} for i in ids],
            "day": pa.array([i // 100 for i in ids], pa.int32()).cast(pa.date32()),
        }
    )


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[str]:
    """An indexed table with two views: `ev`, which `enable` prunes, and `df`, made by `dataframe`."""
    root = tmp_path_factory.mktemp("limits") / "ev"
    root.mkdir()
    for i in range(FILES):
        piece = numbered(i * ROWS // FILES, (i + 1) * ROWS // FILES)
        pq.write_table(piece, root / f"{i}.parquet", row_group_size=GROUP)
    table = sec.open_table(str(root))
    sec.build_index(table, sort_key=["ts"], segment_blocks=4)
    spark.read.parquet(str(root)).createOrReplaceTempView("ev")
    sec.dataframe(spark, table, via="transparent").createOrReplaceTempView("df")
    with enabled(spark):
        yield str(root)


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    """Rows with NaN and zero as values that are equal to themselves."""
    return [tuple(repr(v + 0.0) if isinstance(v, float) else repr(v) for v in row) for row in frame.collect()]


MATCHING: dict[str, set[int]] = {}  # by condition, the ids of all rows that match


def check(spark: SparkSession, where: str, order: str, limit: str) -> None:
    """The columns of the order are Spark's, in order, and all rows are rows of the table that match."""
    keys = ", ".join(item.split()[0] for item in order.split(","))
    asked = f"WHERE {where} ORDER BY {order} {limit}"
    spark.conf.set(SWITCH, "false")
    wanted = rows(spark.sql(f"SELECT {keys} FROM ev {asked}"))
    if where not in MATCHING:
        MATCHING[where] = {row.id for row in spark.sql(f"SELECT id FROM ev WHERE {where}").collect()}
    spark.conf.unset(SWITCH)
    for view in ("ev", "df"):
        answer = spark.sql(f"SELECT {keys}, id AS row FROM {view} {asked}")
        *columns, row = zip(*rows(answer), strict=True) if wanted else [()]
        assert list(zip(*columns, strict=True)) == wanted, (view, asked)
        assert len(set(row)) == len(row), (view, asked)
        assert {int(row_id) for row_id in row} <= MATCHING[where], (view, asked)


ORDERS = [
    *("ts", "ts DESC, id", "id DESC", "late", "late DESC NULLS FIRST", "late NULLS LAST, id", "f", "f DESC"),
    *("f DESC NULLS FIRST, id", "s DESC", "s NULLS LAST, f", "n.a DESC, id"),
]
WHERES = [
    *("TRUE", "id >= 300", "id < 45 OR id > 560", "late IS NOT NULL", "f > 0", "s LIKE 'xxx%'", "late <=> NULL"),
    *("CAST(ts AS DATE) = DATE'1970-01-01'", "id % 3 = 0", "NOT (id BETWEEN 100 AND 500)", "ts IN (NULL, ts)"),
]
LIMITS = ["LIMIT 1", "LIMIT 7", "LIMIT 7 OFFSET 5", "LIMIT 25 OFFSET 30", "LIMIT 1000 OFFSET 590"]


@examples(60, shrink=False)
@given(st.sampled_from(WHERES), st.sampled_from(ORDERS), st.sampled_from(LIMITS))
def test_the_first_rows_are_those_of_spark(spark: SparkSession, root: str, where: str, order: str, limit: str) -> None:
    check(spark, where, order, limit)


NARROWED = [
    ("SELECT * FROM {} ORDER BY ts DESC LIMIT 10", 1),
    ("SELECT * FROM {} ORDER BY ts DESC LIMIT 10 OFFSET 20", 2),
    ("SELECT id AS ts, ts AS t FROM {} ORDER BY t LIMIT 3", 1),
    ("SELECT upper(s), x.t FROM (SELECT ts AS t, s FROM {}) x WHERE t > TIMESTAMP_MICROS(100) ORDER BY t LIMIT 3", 2),
    ("SELECT * FROM {} WHERE id >= 300 ORDER BY late NULLS LAST LIMIT 5", 1),
    ("SELECT id FROM {} WHERE id >= 300 ORDER BY n.a DESC LIMIT 5", 1),
    ("SELECT * FROM {} WHERE id < 120 LIMIT 25", 2),
    ("SELECT * FROM {} LIMIT 25 OFFSET 30", 3),
    ("SELECT EXISTS (SELECT 1 FROM {} WHERE id > 5)", 1),
    ("(SELECT id FROM {} ORDER BY ts LIMIT 2) UNION ALL (SELECT 7)", 1),
]


@pytest.mark.parametrize("view", ["ev", "df"])
def test_only_row_groups_that_can_hold_one_are_read(spark: SparkSession, root: str, view: str) -> None:
    for query, kept in NARROWED:
        assert pruning(spark.sql(query.format(view))) == [f"{kept} of {BLOCKS}"], query


NOT_NARROWED = [
    "SELECT * FROM {} ORDER BY -id LIMIT 3",
    "SELECT -id AS id FROM {} ORDER BY id LIMIT 3",
    "SELECT * FROM {} ORDER BY s COLLATE UTF8_LCASE LIMIT 3",
    "SELECT * FROM {} WHERE hash(id) % 3 = 0 ORDER BY ts LIMIT 3",
    "SELECT * FROM {} WHERE s LIKE '%01%' AND id >= 0 ORDER BY ts LIMIT 3",
    "SELECT * FROM {} WHERE hash(id) % 3 = 0 LIMIT 3",
    "SELECT * FROM {} WHERE CAST(right(s, 2) AS INT) >= 0 ORDER BY ts LIMIT 3",
    "SELECT id, id + 1 FROM {} ORDER BY ts LIMIT 3",
    "SELECT id FROM {} WHERE id + 1 > 0 ORDER BY ts LIMIT 3",
    "SELECT ts, count(*) FROM {} GROUP BY ts ORDER BY ts LIMIT 3",
    "SELECT DISTINCT ts FROM {} ORDER BY ts LIMIT 3",
    "SELECT id, sum(id) OVER (PARTITION BY late ORDER BY id) FROM {} ORDER BY id LIMIT 3",
    "SELECT id, explode(array(1, 2)) FROM {} ORDER BY id DESC LIMIT 3",
    "SELECT * FROM {} WHERE id = (SELECT max(id) - 300 FROM range(500)) + 200 ORDER BY ts LIMIT 3",
    "SELECT * FROM {} WHERE id IN (SELECT id + 555 FROM range(9)) ORDER BY ts LIMIT 3",
]


@pytest.mark.parametrize("view", ["ev", "df"])
def test_what_lies_between_limit_and_scan_must_be_known(spark: SparkSession, root: str, view: str) -> None:
    for query in one_in(2, NOT_NARROWED):
        assert pruning(spark.sql(query.format(view)))[:1] == [f"{BLOCKS} of {BLOCKS}"], query


@pytest.mark.parametrize("view", ["ev", "df"])
def test_errors_of_rows_that_come_later_are_raised(spark: SparkSession, root: str, view: str) -> None:
    for query in (
        f"SELECT id, 1 / (id - 599) FROM {view} ORDER BY ts LIMIT 3",
        f"SELECT id FROM {view} WHERE 1 / (id - 599) < 2 ORDER BY ts LIMIT 3",
    ):
        assert answer(spark, query, pruned=True) == ["DIVIDE_BY_ZERO"]


WINDOW = "row_number() OVER (PARTITION BY {} ORDER BY {}) AS nth"
ONE_PARTITION = [  # columns of PARTITION BY, order, filter, condition on the number, and what is read
    ("day", "ts DESC, id", "day = DATE'1970-01-04'", "nth <= 3", 1),
    ("day", "ts DESC, id", "DATE'1970-01-04' = day AND id < 350", "nth = 1", 2),
    ("day", "ts, id", "day <=> DATE'1970-01-04'", "nth < 26", 2),
    ("late, day", "id DESC", "late <=> NULL AND day = DATE'1970-01-01'", "nth <= 2", 2),
    ("day, late", "f, id", "day = DATE'1970-01-04' AND late = 61", "nth <= 2", 1),
    ("day", "late DESC, id", "day = DATE'1970-01-01'", "nth <= 2", 1),
    ("day", "s, id", "day IN (DATE'1970-01-04')", "nth <= 4", 5),
]
SEVERAL = [
    ("day", "ts DESC, id", "day >= DATE'1970-01-04'", "nth <= 3", 15),
    ("day", "ts DESC, id", "day = DATE'1970-01-04' OR day = DATE'1970-01-02'", "nth <= 3", 10),
    ("day, late", "ts DESC, id", "day = DATE'1970-01-04'", "nth <= 3", 5),
    ("day + INTERVAL 1 DAY", "ts DESC, id", "day = DATE'1970-01-04'", "nth <= 3", 5),
    ("day", "ts DESC, id", "day = DATE'1970-01-04' AND hash(id) % 2 = 0", "nth <= 3", 5),
    ("day", "-id", "day = DATE'1970-01-04'", "nth <= 3", 5),
    ("day", "ts DESC, id", "day = DATE'1970-01-04'", "nth >= 3", 5),
]


@pytest.mark.parametrize(("view", "cases"), [("ev", [*ONE_PARTITION, *SEVERAL]), ("df", ONE_PARTITION[:2])])
def test_the_first_rows_of_one_partition(
    spark: SparkSession, root: str, view: str, cases: list[tuple[str, str, str, str, int]]
) -> None:
    for columns, order, where, wanted, kept in cases:
        window = WINDOW.format(columns, order)
        query = f"SELECT * FROM (SELECT *, {window} FROM {{}} WHERE {where}) WHERE {wanted}"
        assert answer(spark, query.format(view), pruned=True) == answer(spark, query.format("ev"), pruned=False), query
        assert pruning(spark.sql(query.format(view))) == [f"{kept} of {BLOCKS}"], query


def test_ranks_with_ties_need_all_rows(spark: SparkSession, root: str) -> None:
    for function in ("rank", "dense_rank"):
        ranked = f"{function}() OVER (PARTITION BY day ORDER BY ts DESC) AS nth"
        query = f"SELECT id, nth FROM (SELECT *, {ranked} FROM ev WHERE day = DATE'1970-01-04') WHERE nth <= 1"
        require_same(spark, query)
        assert pruning(spark.sql(query)) == [f"5 of {BLOCKS}"]
    both = "row_number() OVER (PARTITION BY day ORDER BY id) AS nth, max(id) OVER (PARTITION BY day) AS m"
    require_same(spark, f"SELECT * FROM (SELECT *, {both} FROM ev WHERE day = DATE'1970-01-04') WHERE nth <= 2")


def test_a_limited_scan_serves_no_other_query(spark: SparkSession, root: str) -> None:
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        for view in ("ev", "df"):
            few = f"(SELECT * FROM {view} ORDER BY ts DESC, id LIMIT 4)"
            for query in (
                f"SELECT a.id, b.id FROM {view} a JOIN {few} b ON a.late <=> b.late",
                f"SELECT count(*) FROM (SELECT * FROM {view} UNION ALL SELECT * FROM {few} UNION ALL "
                f"SELECT * FROM (SELECT * FROM {view} ORDER BY ts DESC, id LIMIT 5))",
                f"WITH w AS (SELECT * FROM {view} WHERE id > 3) SELECT count(*) FROM w JOIN "
                f"(SELECT * FROM w ORDER BY id LIMIT 3) v ON w.id >= v.id",
                f"SELECT a.id FROM {few} a LEFT ANTI JOIN {view} b ON a.id = b.id + 1 WHERE a.id > 597",
                f"SELECT id FROM {view} WHERE late IN (SELECT late FROM {few})",
            ):
                require_same(spark, query)
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_values_of_a_join_do_not_reach_below_a_limit(spark: SparkSession, root: str) -> None:
    spark.range(600).where("id % 50 = 0").createOrReplaceTempView("small")
    for view in ("ev", "df"):
        query = (
            f"SELECT /*+ BROADCAST(b) */ a.id FROM (SELECT * FROM {view} ORDER BY ts LIMIT 60) a "
            f"JOIN (SELECT * FROM small WHERE id < 300) b ON a.id = b.id"
        )
        assert sorted(row.id for row in spark.sql(query).collect()) == [0, 50]
        assert "after run-time filters" not in plan_of(spark.sql(query))


def test_cached_rows_are_all_of_them(spark: SparkSession, root: str) -> None:
    for view in ("ev", "df"):
        cached = spark.table(view).cache()
        try:
            assert [row.id for row in cached.orderBy("ts", "id").limit(2).collect()] == [0, 1]
            assert cached.count() == ROWS
        finally:
            cached.unpersist()
        few = spark.table(view).orderBy("ts", "id").limit(2).cache()
        try:
            assert few.count() == 2
            assert spark.table(view).count() == ROWS
        finally:
            few.unpersist()


def test_files_that_may_be_skipped_prove_nothing(spark: SparkSession, root: str) -> None:
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        assert pruning(spark.sql("SELECT * FROM df ORDER BY ts LIMIT 3")) == [f"{BLOCKS} of {BLOCKS}"]
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")


def test_files_without_an_entry_are_read_where_they_may_hold_one(
    spark: SparkSession, root: str, tmp_path: Path
) -> None:
    pq.write_table(numbered(0, 200), tmp_path / "a.parquet", row_group_size=GROUP)
    sec.build_index(sec.open_table(str(tmp_path)), sort_key=["ts"])
    pq.write_table(numbered(1000, 1100), tmp_path / "b.parquet", row_group_size=GROUP)
    sec.enable(spark)
    frame = spark.read.parquet(str(tmp_path))
    newest = frame.orderBy("ts", ascending=False).limit(3)
    assert "1 of 10 row groups, and all of 1 files without an entry" in plan_of(newest)
    assert {row.id for row in newest.collect()} <= {1096, 1097, 1098, 1099}
    assert "1 of 10 row groups" in plan_of(frame.limit(3))
    assert "without an entry" not in plan_of(frame.limit(3))
    assert frame.limit(250).count() == 250


def test_plans_and_audits_know_of_the_limit(spark: SparkSession, root: str) -> None:
    spark.conf.set("secateur.audit", "1")
    try:
        spark.sql("SELECT * FROM ev WHERE id >= 300 ORDER BY ts DESC LIMIT 3").collect()
        rule = session_rule._rule_of(spark)
        assert rule is not None
        rule.python.audits.wait()
    finally:
        spark.conf.unset("secateur.audit")
    plan = sec.last_plans(spark)[-1].plan
    assert plan is not None
    assert (str(plan.order_by), plan.limit, len(plan.blocks)) == ("ts DESC NULLS LAST", 3, 1)
    assert plan.report.audit is not None
    assert plan.report.audit.blocks == BLOCKS // 2
    plan_text = spark.sql("EXPLAIN FORMATTED SELECT * FROM ev ORDER BY ts DESC LIMIT 3").collect()[0][0]
    assert "top-n pruned" in plan_text or "top-n segments pruned" in plan_text


# ---- aggregates ------------------------------------------------------------------------------------------------------

TOLD = [
    ("SELECT count(*) FROM {}", 0),
    ("SELECT count(*) FROM {} WHERE id >= 300", 0),
    ("SELECT count(*) + 1 AS n, count(id), count(late) FROM {} WHERE id >= 310", 1),
    ("SELECT min(id), max(ts), count(late) FROM {} WHERE id < 310 OR id >= 590", 2),
    ("SELECT min(ts), min(late) FROM {} WHERE id >= 310", 1),
    ("SELECT max(id) FROM {} WHERE id <= 310", 1),
    ("SELECT max(t) - min(t) AS d FROM (SELECT id AS t, upper(s) FROM {} WHERE id < 40)", 0),
    ("SELECT min(f), max(f) FROM {}", None),
    ("SELECT min(s), max(s), count(s) FROM {}", None),
    ("SELECT min(n.a), count(n.a) FROM {} WHERE id >= 40", 0),
    ("SELECT count(*), max(late) FROM {} WHERE late IS NULL", None),
    ("SELECT count(*), max(late) FROM {} WHERE id > 10000", 0),
    ("SELECT id FROM {0} WHERE id = (SELECT max(id) FROM {0} WHERE id < 400)", None),
]
READ = [
    "SELECT count(DISTINCT id) FROM {}",
    "SELECT count(DISTINCT day), count(DISTINCT id) FROM {}",
    "SELECT count(DISTINCT day) FILTER (WHERE id > 5) FROM {}",
    "SELECT day, count(*), sum(id) FROM {} GROUP BY day",
    "SELECT day, count(*) FROM {} GROUP BY ROLLUP(day)",
    "SELECT year(day) AS y, count(*) FROM {} GROUP BY year(day)",
    "SELECT day, count(*) FROM {} WHERE id + 1 > 0 GROUP BY day",
    "SELECT s, count(*) FROM {} GROUP BY s",
    "SELECT s COLLATE UTF8_LCASE AS c, count(*) FROM {} GROUP BY s COLLATE UTF8_LCASE",
    "SELECT count(*) FILTER (WHERE id > 5) FROM {}",
    "SELECT count(*), sum(id) FROM {}",
    "SELECT max(-id) FROM {}",
    "SELECT count(late, id) FROM {}",
    "SELECT count(*) FROM {} WHERE id + 1 > 0",
    "SELECT count(*) FROM (SELECT * FROM {} LIMIT 700)",
    "SELECT max(s COLLATE UTF8_LCASE) FROM {}",
]


def test_what_statistics_tell_is_not_read(spark: SparkSession, root: str) -> None:
    for query, kept in one_in(3, TOLD):
        spark.conf.set(SWITCH, "false")
        wanted = rows(spark.sql(query.format("ev")))
        spark.conf.unset(SWITCH)
        for view in ("ev", "df"):
            assert rows(spark.sql(query.format(view))) == wanted, (query, view)
            kept_now = pruning(spark.sql(query.format(view)))
            assert kept is None or kept_now == [f"{kept} of {BLOCKS}"], (query, view)
    assert "statistics answer for 30" in plan_of(spark.sql("SELECT count(*) FROM ev"))


GROUPS = [
    ("SELECT day, count(*), count(late), min(id), max(ts) FROM {} GROUP BY day", [0]),
    ("SELECT count(*) + 1 AS n, day FROM {} WHERE id >= 310 GROUP BY day HAVING count(*) > 90", [1]),
    ("SELECT late, count(*), max(late), min(f) FROM {} GROUP BY late", None),
    ("SELECT late, count(*), count(late), max(late) FROM {} GROUP BY late", [26]),
    ("SELECT d, t, count(s) FROM (SELECT day AS d, late AS t, s FROM {} WHERE id < 40) GROUP BY d, t", [0]),
    ("SELECT DISTINCT day FROM {} WHERE id <> 5", [1]),
    ("SELECT day FROM {} GROUP BY day ORDER BY max(id) DESC LIMIT 2", [0]),
    ("SELECT count(DISTINCT day) FROM {}", [0]),
    ("SELECT count(DISTINCT day), count(*), min(ts) FROM {} WHERE id >= 590", [1]),
    ("SELECT count(DISTINCT day), count(*), max(id) FROM {} WHERE id > 10000", [0]),
    ("SELECT day, count(*) FROM {} WHERE id > 10000 GROUP BY day", [0]),
    ("SELECT count(DISTINCT late), count(late) FROM {}", [26]),
    ("SELECT day, count(DISTINCT late), count(DISTINCT late) + count(*) AS n FROM {} GROUP BY day", [26]),
    ("SELECT count(DISTINCT day, late) FROM {} WHERE id >= 40", [26]),
    ("SELECT day, count(*) / (datediff(day, DATE'1970-01-01') - 3) FROM {} GROUP BY day", [0]),
    (
        "SELECT a.day, a.n, b.n FROM (SELECT day, count(*) AS n FROM {0} GROUP BY day) a JOIN "
        "(SELECT day, count(*) AS n FROM {0} WHERE id >= 150 GROUP BY day) b ON a.day = b.day",
        None,
    ),
    ("SELECT id FROM {0} WHERE day IN (SELECT day FROM {0} GROUP BY day HAVING max(id) > 500)", None),
]


@pytest.mark.parametrize(("view", "ansi"), [("ev", "true"), ("df", "false")])
def test_groups_that_statistics_tell_are_not_read(spark: SparkSession, root: str, view: str, ansi: str) -> None:
    """C48, C49 and C59: blocks of several groups are read, NULL is a group, and no row is counted twice."""
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for query, kept in one_in(3, GROUPS):
            wanted = answer(spark, query.format("ev"), pruned=False)
            assert answer(spark, query.format(view), pruned=True) == wanted, query
            kept_now = pruning(spark.sql(query.format(view)))
            assert kept is None or kept_now == [f"{n} of {BLOCKS}" for n in kept], query
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert "statistics answer for 30" in plan_of(spark.sql("SELECT day, count(*) FROM ev GROUP BY day"))


def test_what_statistics_do_not_tell_is_asked_once(spark: SparkSession, root: str) -> None:
    rule = session_rule._rule_of(spark)
    assert rule is not None
    for query in (
        "SELECT ts, count(*) FROM ev WHERE id > 100 GROUP BY ts",
        "SELECT count(*), max(s) FROM ev WHERE f > 700",
        "SELECT day, sum(id) FROM ev GROUP BY day",
        "SELECT day, count(*) FROM ev GROUP BY day",
    ):
        before = next(rule.python._numbers)
        require_same(spark, query)
        assert next(rule.python._numbers) - before == 2, query


def test_groups_of_every_type(spark: SparkSession, root: str, tmp_path: Path) -> None:
    number = pa.array([None if i < 10 else i // 20 for i in range(40)], pa.int32())
    small = [pa.int8(), pa.int16(), pa.int64(), pa.float32(), pa.bool_(), pa.date32()]
    exact = [pa.decimal128(12, 2), pa.decimal128(30, 4), pa.string()]
    instants = [pa.timestamp("us", "UTC"), pa.timestamp("us")]
    table = pa.table(
        {
            **{str(type_): number.cast(type_) for type_ in [*small, *exact]},
            **{str(type_): number.cast(pa.int64()).cast(type_) for type_ in instants},
            "zero": [[-0.0, None, 0.0, math.nan][i // 10] for i in range(40)],
            "text": [["", "é" * 9, None, "x"][i // 10] for i in range(40)],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10)
    sec.build_index(sec.open_table(str(tmp_path)))
    sec.enable(spark)
    spark.read.parquet(str(tmp_path)).createOrReplaceTempView("kinds")
    every = ", ".join(f"`{name}`" for name in table.column_names)
    for query in (
        f"SELECT {every}, count(*), min(text) FROM kinds GROUP BY {every}",
        "SELECT zero, count(*) FROM kinds GROUP BY zero",
        "SELECT count(DISTINCT zero), count(*) FROM kinds",
        "SELECT count(DISTINCT zero, text) FROM kinds",
    ):
        require_same(spark, query)
        assert pruning(spark.sql(query)) == ["0 of 4"], query


def test_other_aggregates_are_read(spark: SparkSession, root: str) -> None:
    for query in one_in(3, READ):
        for view in ("ev", "df"):
            assert pruning(spark.sql(query.format(view))) == [f"{BLOCKS} of {BLOCKS}"], (query, view)


def test_extremes_of_every_type(spark: SparkSession, root: str, tmp_path: Path) -> None:
    ids = range(1, 41)
    numbers = pa.array([None if i % 7 == 0 else i for i in ids], pa.int64())
    small = numbers.cast(pa.int32())
    table = pa.table(
        {
            **{str(type_): numbers.cast(type_) for type_ in (pa.int8(), pa.int16(), pa.float32(), pa.float64())},
            "decimal": small.cast(pa.decimal128(12, 2)),
            "wide": small.cast(pa.decimal128(30, 4)),
            "date": small.cast(pa.date32()),
            "at": numbers.cast(pa.timestamp("ms", "UTC")),
            "local": numbers.cast(pa.timestamp("us")),
            "flag": [i > 20 for i in ids],
            "text": [f"t{i // 10}" for i in range(40)],
            "binary": [b"x"] * 40,
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10)
    sec.build_index(sec.open_table(str(tmp_path)))
    sec.enable(spark)
    spark.read.parquet(str(tmp_path)).createOrReplaceTempView("types")
    for name in table.column_names:
        require_same(spark, f"SELECT min(`{name}`), max(`{name}`), count(`{name}`) FROM types")
        kept = pruning(spark.sql(f"SELECT min(`{name}`), max(`{name}`) FROM types"))
        assert kept == (["4 of 4"] if name == "binary" else ["0 of 4"]), name


@pytest.mark.parametrize("chosen", ["count(*) AS n", "sum(id) AS n, max(id) AS m"])
def test_an_index_that_changes_while_a_query_is_planned(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str
) -> None:
    """C53: two equal scans were answered by two snapshots; neither may take the place of the other."""

    def refreshed(*given: Any, **named: Any) -> Any:
        rest = known_aggregates.rest_of(*given, **named)
        sec.refresh_index(str(tmp_path))
        return rest

    for i in range(2):
        pq.write_table(pa.table({"id": range(30)}), tmp_path / f"{i}.parquet", row_group_size=10)
        if not i:
            sec.build_index(str(tmp_path), sums=["id"])
    spark.read.parquet(str(tmp_path)).createOrReplaceTempView("growing")
    monkeypatch.setattr(enabled_planner, "rest_of", refreshed)
    apart = {"spark.sql.optimizer.excludedRules": "org.apache.spark.sql.execution.planmerging.MergeSubplans"}
    with enabled(spark), settings(spark, {"spark.sql.adaptive.enabled": "false", **apart}):
        query = f"SELECT {chosen} FROM growing WHERE id >= 15"  # of which each file has a row group in doubt
        require_same(spark, f"{query} UNION ALL {query}")
