"""Features of Delta's format, as Delta's own Spark writer uses them: what is read is what its reader reads.

Read by a plan without an index, with one that lags behind, and by plain SQL under ``sec.enable``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import secateur as sec
from secateur.errors import StalePlan, UnsupportedTable
from tests.support.checks import oracle
from tests.support.enabled_session import SWITCH, enabled, require_same
from tests.support.profiles import by_profile, one_in, slow

TURNS = by_profile(quick=3, full=1, nightly=1)  # of checks, until every predicate has been asked in SQL


@dataclass
class Written:
    """A table that Delta's writer writes by SQL, in which `{t}` is its name."""

    spark: SparkSession
    path: str
    name: str
    turn: int = 0  # of the predicates that are asked in SQL

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.spark.sql(statement.replace("{t}", self.name))

    def check(self, predicates: Sequence[str]) -> None:
        """What is read is what Delta's reader reads, now and under the index that there is: ids, and all rows once."""
        self.spark.conf.set(SWITCH, "false")
        answers = oracle.ask(self.spark.table(self.name).selectExpr("*", "id AS rid"), predicates)
        self.spark.conf.unset(SWITCH)
        table = sec.open_table(self.path)
        whole = sec.prune(table, "TRUE", strict=True).to_arrow()
        assert oracle.rows(whole.append_column("rid", whole["id"])) == Counter(answers.rows.values())
        assert answers.truth.keys() == set(predicates), "Spark refuses some"
        for predicate in predicates:
            wanted = sorted(rid for rid, value in answers.truth[predicate].items() if value)
            for use_index in (True, False):
                plan = sec.prune(table, predicate, strict=True, use_index=use_index)
                read = plan.to_arrow(["id"])["id"].to_pylist()
                assert sorted(read) == wanted, (predicate, use_index, plan.explain())
                assert plan.count() == len(wanted), (predicate, use_index)
        for predicate in predicates[self.turn % TURNS :: TURNS]:
            pruned = self.spark.sql(f"SELECT id FROM {self.name} WHERE {predicate}").collect()
            wanted = [rid for rid, value in answers.truth[predicate].items() if value]
            assert sorted(row.id for row in pruned) == sorted(wanted), predicate
        self.turn += 1

    def check_around_a_refresh(self, predicates: Sequence[str]) -> None:
        self.check(predicates)
        sec.refresh_index(sec.open_table(self.path))
        self.check(predicates)

    def files(self, ending: str) -> list[Path]:
        return sorted(Path(self.path).rglob(f"*{ending}"))


Make = Callable[..., Written]


@pytest.fixture
def make(delta: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Make:
    """Makes a table with some columns and properties, in a session that prunes."""

    def made(columns: str, more: str = "", **properties: str) -> Written:
        table = Written(delta, str(tmp_path / "t"), f"features_{abs(hash(request.node.name))}")
        named = {f"delta.{name.replace('_', '.')}": value for name, value in properties.items()}
        options = ", ".join(f"'{name}' = '{value}'" for name, value in {"delta.appendOnly": "false", **named}.items())
        table.run(
            f"CREATE TABLE {{t}} ({columns}) USING delta {more} LOCATION '{table.path}' TBLPROPERTIES ({options})"
        )
        request.addfinalizer(lambda: table.run("DROP TABLE {t}"))
        return table

    with enabled(delta):
        yield made


def test_c13_types_that_widen(make: Make) -> None:
    """Files of the narrow type stay as they are; bounds, filters and keys of both mean the same values."""
    columns = "id BIGINT, b TINYINT, n INT, f FLOAT, d DECIMAL(6, 2), day DATE, w INT"
    table = make(columns, enableTypeWidening="true", enableDeletionVectors="true", feature_timestampNtz="supported")
    rows = (
        "INSERT INTO {{t}} SELECT id, CAST({b} AS {bt}), CAST({n} AS {nt}), CAST({f} AS {ft}), CAST({d} AS {dt}), "
        "{day}, CAST(id AS {wt}) FROM range({start}, {start} + 40, 1, 2)"
    )
    narrow = {"bt": "TINYINT", "nt": "INT", "ft": "FLOAT", "dt": "DECIMAL(6, 2)", "wt": "INT"}
    wide = {"bt": "BIGINT", "nt": "BIGINT", "ft": "DOUBLE", "dt": "DECIMAL(12, 4)", "wt": "DOUBLE"}
    day, moment = "date_add(DATE '1969-12-20', CAST(id AS INT))", "TIMESTAMP_NTZ '1969-12-25 12:00:00.000001'"
    table.run(rows.format(b="id % 128", n="id - 20", f="id / 10", d="id / 4", day=day, start=0, **narrow))
    sec.build_index(sec.open_table(table.path), bloom=["b", "n", "d", "w"], sort_key=["n"])
    table.run(
        *(
            f"ALTER TABLE {{t}} ALTER COLUMN {column} TYPE {type_}"
            for column, type_ in (
                ("b", "SMALLINT"),
                ("b", "INT"),
                ("b", "BIGINT"),
                ("n", "BIGINT"),
                ("f", "DOUBLE"),
                ("d", "DECIMAL(12, 4)"),
                ("day", "TIMESTAMP_NTZ"),
                ("w", "DOUBLE"),
            )
        )
    )
    predicates = [
        "b = 7",
        "b IN (39, 300, 5000000000)",
        "n < 0 OR n = 3000000007",
        "NOT (n > -15)",
        "f = 0.1D OR f = 0.5D",
        "f > 0.1D AND f < 0.15D",  # holds for the float next to 0.1 alone, which is more
        "f < 0.7D AND f > 0.65D",
        "d = 2.25 OR d = 2.2501",
        "d > 9.5",
        "day <= TIMESTAMP_NTZ '1969-12-25 12:00:00'",
        "day > TIMESTAMP_NTZ '1969-12-25 12:00:00'",
        "w = 7 OR w = 41.5",
        "id % 7 = 0",
    ]
    table.check(predicates[::2])
    more = {"b": "id + 5000000000 - 40", "n": "id + 3000000000 - 33", "f": "0.1D", "d": "2.2501", "day": moment}
    table.run(rows.format(**more, start=40, **wide), "INSERT INTO {t} (id, w) VALUES (100, 41.5)")
    table.check_around_a_refresh(predicates)
    table.run("DELETE FROM {t} WHERE id % 5 = 0", "UPDATE {t} SET n = 3000000007 WHERE id = 3")
    table.check(predicates)
    table.run("OPTIMIZE {t} ZORDER BY (n)")
    table.check_around_a_refresh(predicates)


@slow
@pytest.mark.parametrize("mode", ["id", "name"])
def test_c12_columns_that_are_renamed_dropped_and_come_again(make: Make, mode: str) -> None:
    """A new column under the name of a former one is another column, in files, in bounds and in the index."""
    table = make("id BIGINT, k BIGINT, kept STRING", columnMapping_mode=mode, checkpointInterval="3")
    table.run("INSERT INTO {t} SELECT id, id % 10, concat('v', id) FROM range(0, 40, 1, 2)")
    sec.build_index(sec.open_table(table.path), bloom=["k", "kept"], sort_key=["k"])
    table.check(["k = 7", "kept = 'v9' OR k IS NULL"])
    table.run(
        "ALTER TABLE {t} RENAME COLUMN kept TO old",
        "ALTER TABLE {t} DROP COLUMN k",
        "ALTER TABLE {t} ADD COLUMNS (k BIGINT, kept STRING)",
    )
    predicates = [
        "k = 7",
        "k IS NULL",
        "NOT (k > 5)",
        "kept = 'v9'",
        "old = 'v9' OR kept = 'a'",
        "k <=> NULL AND id < 5",
    ]
    table.check_around_a_refresh(predicates)
    table.run("INSERT INTO {t} SELECT id, concat('v', id), 7, 'a' FROM range(40, 60, 1, 1)")
    table.check_around_a_refresh(predicates)
    assert sec.prune(sec.open_table(table.path), "k = 7", strict=True).count() == 20


@slow
def test_c6_checkpoints_of_the_second_version(make: Make) -> None:
    """With sidecars, and statistics as structs and not as JSON; the past is read too."""
    table = make(
        "id BIGINT, s STRING, at TIMESTAMP, p STRING",
        "PARTITIONED BY (p)",
        checkpointPolicy="v2",
        checkpointInterval="2",
        checkpoint_writeStatsAsJson="false",
        checkpoint_writeStatsAsStruct="true",
        enableDeletionVectors="true",
    )
    predicates = [
        "id = 7",
        "s > concat(repeat('a', 40), 'm')",
        "at >= TIMESTAMP '2001-09-09 01:46:41.000001'",
        "p IS NULL OR id < 3",
        "p = 'b c' AND id % 2 = 0",
    ]
    for step in range(5):
        table.run(
            f"INSERT INTO {{t}} SELECT id + {step * 20}, concat(repeat('a', 40), chr(97 + id % 26)), "
            "timestamp_micros(1000000000000001 + id * 100003), "
            "element_at(array('b c', 'a/b=%', NULL), 1 + CAST(id % 3 AS INT)) FROM range(0, 20, 1, 1)",
            f"DELETE FROM {{t}} WHERE id % 9 = {step}",
        )
        if step == 1:
            sec.build_index(sec.open_table(table.path), bloom=["id"])
        if step:
            table.check(predicates)
    assert table.files(".checkpoint.*.json") or table.files(".checkpoint.*.parquet")
    assert list((Path(table.path) / "_delta_log" / "_sidecars").iterdir())
    for version in (3, 6):
        past = table.spark.read.format("delta").option("versionAsOf", version).load(table.path)
        plan = sec.prune(sec.open_table(table.path, version=version), "id > 5", strict=True)
        assert oracle.rows(plan.to_arrow()) == oracle.rows(past.where("id > 5").toArrow())


@slow
def test_tables_that_only_writers_need_more_for(make: Make) -> None:
    """Row tracking, clustering, generated columns and constraints change nothing for a reader."""
    table = make(
        "id BIGINT, name STRING, day DATE GENERATED ALWAYS AS (date_add(DATE '2020-01-01', CAST(id AS INT)))",
        "CLUSTER BY (id)",
        enableRowTracking="true",
        enableDeletionVectors="true",
    )
    table.run(
        "ALTER TABLE {t} ADD CONSTRAINT small CHECK (id < 1000)",
        "INSERT INTO {t} (id, name) SELECT id, concat('n', id) FROM range(0, 60, 1, 3)",
    )
    sec.build_index(sec.open_table(table.path), bloom=["id", "name"])
    predicates = ["id = 7", "name = 'n9' AND day > DATE '2020-01-05'", "day = DATE '2020-01-08'", "id > 50"]
    table.check(predicates)
    table.run("DELETE FROM {t} WHERE id IN (7, 8)", "OPTIMIZE {t} FULL")
    table.check_around_a_refresh(predicates)
    require_same(table.spark, f"SELECT id, _metadata.row_id FROM {table.name} WHERE name = 'n9'")


VARIANT_CONDITIONS = [
    "try_variant_get(v, '$.user', 'int') = 7",
    "variant_get(v, '$.items[1]', 'bigint') = 28 AND id <> 3",
    "NOT (try_variant_get(v, '$.user', 'int') > 7) OR id = 150",
    "try_variant_get(v, '$.user', 'int') IS NULL",
    "v:name::string IN ('n7', 'n131')",
    "v IS NULL OR is_variant_null(v:user)",
]


@pytest.mark.parametrize("mode", one_in(2, ["name", "none"]))
def test_c56_paths_into_variant(make: Make, mode: str) -> None:
    """Spark's own reader reads the rows; the index leaves files and row groups out, by columns or their ids."""
    table = make("id BIGINT, v VARIANT", enableDeletionVectors="true", columnMapping_mode=mode)
    values = """parse_json(CASE WHEN id % 13 = 0 THEN '{"user":"x"}' WHEN id % 17 = 0 THEN '{"user":null}'
        WHEN id % 19 = 0 THEN NULL
        ELSE '{"user":' || id || ',"name":"n' || id || '","items":[1,' || (id * 4) || ']}' END)"""
    table.run(f"INSERT INTO {{t}} SELECT id, {values} FROM range(0, 200, 1, 8)")
    paths = ["v:user::int", "variant_get(v, '$.items[1]', 'bigint')"]
    sec.build_index(sec.open_table(table.path), bloom=[*paths, "v:name::string"], zone_map=paths)
    assert sec.verify_index(sec.open_table(table.path)).faults == ()
    for change in (
        None,
        "DELETE FROM {t} WHERE id IN (7, 8, 26)",
        "INSERT INTO {t} SELECT id, NULL FROM range(300, 310)",
    ):
        if change is not None:
            table.run(change)
        for condition in VARIANT_CONDITIONS:
            require_same(table.spark, f"SELECT id, to_json(v) FROM {table.name} WHERE {condition}")
        require_same(table.spark, f"SELECT id FROM {table.name} WHERE id = 130")
    sec.refresh_index(sec.open_table(table.path))
    assert len(sec.prune(table.path, "v:name::string = 'n131'", strict=True).blocks) == 1
    assert table.spark.sql(f"SELECT id FROM {table.name} WHERE v:name::string = 'n131'").collect()[0].id == 131
    assert sec.last_plans(table.spark)[-1].reason.startswith("1 of ")
    with pytest.raises(UnsupportedTable, match="leave it out of the columns"):
        sec.prune(table.path, "id = 9").to_spark(table.spark)
    assert [row.id for row in sec.prune(table.path, "id = 9").to_spark(table.spark, ["id"]).collect()] == [9]


@slow
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_plan_is_held_while_the_table_is_rewritten_and_vacuumed(make: Make, vectors: str) -> None:
    """Until files are removed a plan is of its version; then it says so, and never reads fewer rows."""
    table = make("id BIGINT, v BIGINT", enableDeletionVectors=vectors)
    table.run("INSERT INTO {t} SELECT id, id FROM range(0, 50, 1, 4)")
    sec.build_index(sec.open_table(table.path), bloom=["id"])
    opened = sec.open_table(table.path)
    table.run("DELETE FROM {t} WHERE id = 9")
    plan = sec.prune(opened, "id < 20", strict=True)
    table.run(
        "MERGE INTO {t} t USING (SELECT 5 AS id UNION ALL SELECT 77) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = -1 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 0)",
        "OPTIMIZE {t} ZORDER BY (v)",
    )
    assert sorted(plan.to_arrow()["v"].to_pylist()) == [number for number in range(20) if number != 9]
    table.run("RESTORE TABLE {t} TO VERSION AS OF 1")
    table.check(["id = 9", "id < 20"])
    table.run("RESTORE TABLE {t} TO VERSION AS OF 4")
    held = sec.prune(opened, "id < 20", strict=True)
    table.run("DELETE FROM {t} WHERE id < 50 AND v >= 0")
    if vectors == "true":
        table.run("REORG TABLE {t} APPLY (PURGE)")
    table.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        table.run("VACUUM {t} RETAIN 0 HOURS")
    finally:
        table.spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    for stale in (plan, held):
        with pytest.raises(StalePlan, match="vanished"):
            stale.to_arrow()
    table.check_around_a_refresh(["id = 5", "id < 100", "v = -1"])
