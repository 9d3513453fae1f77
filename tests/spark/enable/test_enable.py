"""``sec.enable``: the answers of the session without it, from the row groups that the index leaves."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, col

import secateur as sec
from secateur.io.spark.planner.session_rule import plans_of
from secateur.io.spark.version import IS_3
from tests.support.enabled_session import answer, answers, enabled, plan_of, pruning, reasons, require_same, settings
from tests.support.older_spark import since_4

ROWS, FILES, BLOCKS = 3_000, 3, 30


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[str]:
    """Indexed tables: `events`, and `days` partitioned by day, both in the catalog."""
    for view in ("events", "days"):  # of other tests, which would hide the tables
        spark.catalog.dropTempView(view)
    root = tmp_path_factory.mktemp("enable") / "ev ents%20+ü"
    root.mkdir()
    for i in range(FILES):
        ids = np.arange(i * ROWS // FILES, (i + 1) * ROWS // FILES)
        table = pa.table(
            {
                "id": ids,
                "uid": np.random.default_rng(i).permutation(ids),
                "x": np.where(ids % 50 == 0, np.nan, np.sin(ids) * 4),
                "name": [f"name-{i:04d}" for i in ids],
                "ts": pa.array(ids * 1_000_000 + 1_767_225_600_000_000, pa.timestamp("us", "UTC")),
                "nested": [{"y": int(i), "z": [int(i)]} for i in ids],
            }
        )
        pq.write_table(table, root / f"part{i}.parquet", row_group_size=100)
    sec.build_index(sec.open_table(str(root)), sort_key=["id"], bloom=["uid"], ngram=["name"])
    spark.catalog.createTable("events", path=str(root), source="parquet")
    spark.sql(
        f"CREATE TABLE days (id BIGINT, name STRING, day DATE) USING parquet PARTITIONED BY (day) "
        f"LOCATION '{root.parent}/days'"
    )
    spark.sql("INSERT INTO days SELECT id, name, DATE'2026-01-01' + CAST(id / 1000 AS INT) FROM events")
    sec.build_index(sec.open_table(str(root.parent / "days")), sort_key=["id"])
    with enabled(spark):
        yield str(root)
    for name in ("events", "days"):
        spark.sql(f"DROP TABLE {name}")


QUERIES = [
    ("SELECT * FROM events WHERE id = 5", "1 of 30"),
    ("SELECT name FROM events WHERE uid = 77 OR id = 9", None),
    ("SELECT * FROM events WHERE id + 0 = 17", "1 of 30"),
    ("SELECT id FROM events WHERE x > 3.9", None),
    ("SELECT id FROM events WHERE isnan(x) AND id < 100", "1 of 30"),
    ("SELECT nested.y FROM events WHERE nested.y = 77", "1 of 30"),
    ("SELECT nested FROM events WHERE nested.z[0] = 77", "30 of 30"),
    ("SELECT id FROM events WHERE name LIKE '%0777%'", None),
    ("SELECT ID FROM events WHERE Id = 3", "1 of 30"),
    ("SELECT count(*), min(id), max(x) FROM events WHERE id BETWEEN 5 AND 250", "3 of 30"),
    ("SELECT count(*) FROM events", "0 of 30"),
    ("SELECT * FROM events WHERE id = -1", "0 of 30"),
    ("SELECT * FROM events WHERE ts > TIMESTAMP '2026-01-01 00:49:00' ORDER BY id DESC LIMIT 3", None),
    ("SELECT id, input_file_name() FROM events WHERE id = 9", "1 of 30"),
    pytest.param("SELECT id FROM events WHERE name = 'NAME-0003' COLLATE UTF8_LCASE", "30 of 30", marks=since_4),
    ("SELECT id FROM events WHERE hash(id) % 3 = 0 AND id < 3", "1 of 30"),
    ("SELECT id FROM events WHERE CAST(name AS INT) = 3 AND id = 5", None),
    ("SELECT 1 / (id - 5) FROM events WHERE id = 5", "1 of 30"),
    ("SELECT id IN (SELECT uid FROM events WHERE id = 17) AS a, count(*) FROM events WHERE id < 9 GROUP BY 1", None),
    ("SELECT * FROM days WHERE day = DATE '2026-01-02' AND id < 1003", "1 of 1"),
    ("SELECT * FROM days WHERE day = DATE '2026-01-02' OR id < 3", "2 of 3"),
    ("SELECT day, count(*) FROM days WHERE id > 2990 GROUP BY day", "1 of 3"),
    ("SELECT a.id, b.name FROM events a JOIN events b ON a.uid = b.id WHERE a.id < 5", None),
    ("SELECT a.id FROM events a LEFT JOIN events b ON a.id = b.uid AND b.id = 3 WHERE a.id < 50", None),
    (
        "SELECT id FROM events a WHERE id < 50 AND EXISTS (SELECT 1 FROM days b WHERE b.id = a.uid AND b.id < 1000)",
        None,
    ),
    ("SELECT id FROM events WHERE id < 50 AND uid NOT IN (SELECT id FROM days WHERE id > 30)", None),
    ("SELECT id FROM events WHERE id < 5 UNION ALL SELECT id FROM days WHERE id > 2990", None),
    ("SELECT id FROM events WHERE id < 50 EXCEPT SELECT uid FROM events WHERE id < 100", None),
    ("SELECT id FROM events WHERE id = (SELECT max(uid) FROM events WHERE id < 100)", None),
    ("SELECT id, row_number() OVER (ORDER BY uid) FROM events WHERE id > 2900 ORDER BY id LIMIT 5", "1 of 30"),
    ("WITH few AS (SELECT * FROM events WHERE id < 7) SELECT a.id FROM few a JOIN few b ON a.id = b.id", None),
    ("SELECT /*+ BROADCAST(d) */ count(*), sum(e.id) FROM events e JOIN days d ON e.uid = d.id WHERE d.id < 3", None),
    (
        "SELECT /*+ BROADCAST(s) */ * FROM days "
        "JOIN (SELECT DATE'2026-01-01' + CAST(id AS INT) AS d FROM range(1)) s ON day = d",
        None,
    ),
]


@pytest.mark.parametrize(("query", "expected"), QUERIES)
def test_answers_are_those_without(spark: SparkSession, lake: str, query: str, expected: str | None) -> None:
    require_same(spark, query)
    kept = pruning(spark.sql(query))
    assert kept, query
    assert expected in (None, *kept)


def test_paths_views_and_new_sessions(spark: SparkSession, lake: str) -> None:
    frames = [spark.read.parquet(lake), spark.read.load(lake), spark.newSession().read.parquet(lake)]
    spark.read.parquet(lake).where("id < 2000").createOrReplaceTempView("some")
    spark.sql("CREATE OR REPLACE VIEW kept AS SELECT * FROM events WHERE id < 2000")
    frames += [spark.table("some"), spark.table("kept"), spark.sql(f"SELECT * FROM parquet.`{lake}`")]
    try:
        for frame in frames:
            answer = frame.where("id = 1234").select("id")
            assert pruning(answer) == ["1 of 30"]
            assert [row.id for row in answer.collect()] == [1234]
    finally:
        spark.sql("DROP VIEW kept")


def test_explain_and_last_plans_tell(spark: SparkSession, lake: str) -> None:
    spark.sql("SELECT * FROM events WHERE id = 5").collect()
    assert (
        "IndexPruning: 1 of 30 row groups"
        in spark.sql("EXPLAIN FORMATTED SELECT * FROM events WHERE id = 5").first()[0]
    )
    plan_text = spark.sql("EXPLAIN FORMATTED SELECT * FROM events WHERE id > 100 AND uid = 77").first()[0]
    assert re.search(r"IndexStages: .*(zone maps|segments|filters) pruned \d+", plan_text)
    spark.sql("SELECT * FROM events WHERE id = 5").collect()
    last = sec.last_plans(spark)[-1]
    assert last.plan is not None
    assert len(last.plan.blocks) == 1
    assert "zone maps" in last.explain()
    assert "part2.parquet" in str(last.why("part2.parquet", 3))
    spark.sql("SELECT rand() FROM events").collect()
    left = sec.last_plans(spark)[-1]
    assert left.plan is None
    assert "rand depends on how rows are partitioned" in left.explain()


def test_it_can_be_switched_off(spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query = "SELECT id FROM events WHERE id = 5"
    spark.sql("SET secateur.enabled=false")
    assert pruning(spark.sql(query)) == []
    spark.sql("RESET secateur.enabled")
    assert pruning(spark.sql(query)) == ["1 of 30"]
    monkeypatch.setenv("SECATEUR_DISABLE", "1")
    assert pruning(spark.sql(query)) == []
    monkeypatch.undo()
    sec.disable(spark)
    assert pruning(spark.sql(query)) == []
    assert pruning(spark.newSession().read.parquet(lake).where("id = 5")) == []
    sec.enable(spark)
    assert pruning(spark.sql(query)) == ["1 of 30"]


def test_an_index_elsewhere(spark: SparkSession, lake: str, tmp_path: Path) -> None:
    root, index = tmp_path / "data", tmp_path / "index"
    root.mkdir()
    pq.write_table(pa.table({"id": range(100)}), root / "a.parquet", row_group_size=10)
    sec.build_index(sec.open_table(str(root), index_location=str(index)))
    assert pruning(spark.read.parquet(str(root)).where("id = 5")) == []
    sec.enable(spark, [str(root)], index_location=str(index))
    assert pruning(spark.read.parquet(str(root)).where("id = 5")) == ["1 of 10"]
    other = spark.read.parquet(str(shutil.copytree(root, tmp_path / "other")))
    sec.build_index(sec.open_table(other, index_location=str(tmp_path / "elsewhere")))
    sec.enable(spark, [other], index_location=str(tmp_path / "elsewhere"))
    assert pruning(other.where("id = 5")) == ["1 of 10"]
    with pytest.raises(ValueError, match="one table"):
        sec.enable(spark, index_location=str(index))


# ---- what is done with rows ------------------------------------------------------------------------------------------


def test_cache_and_writes(spark: SparkSession, lake: str, tmp_path: Path) -> None:
    cached = spark.table("events").where("id < 300").cache()
    try:
        assert cached.count() == 300
        assert cached.where("id = 250").count() == 1
        require_same(spark, "SELECT * FROM events WHERE id < 300 AND uid = 7")
    finally:
        cached.unpersist()
    spark.sql(f"CREATE TABLE made USING parquet LOCATION '{tmp_path}/made' AS SELECT * FROM events WHERE id < 300")
    try:
        spark.sql("INSERT INTO made SELECT * FROM events WHERE id >= 2900")
        assert spark.table("made").count() == 400
        require_same(spark, "SELECT * FROM made WHERE id IN (5, 2901)")
    finally:
        spark.sql("DROP TABLE made")


def test_insert_into_the_indexed_table_is_seen(spark: SparkSession, lake: str, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE grows USING parquet LOCATION '{tmp_path}/grows' AS SELECT id FROM range(100)")
    try:
        sec.build_index(sec.open_table(str(tmp_path / "grows")))
        sec.enable(spark)
        spark.sql("INSERT INTO grows SELECT id + 100 FROM grows WHERE id > 89")
        require_same(spark, "SELECT * FROM grows WHERE id > 80")
        assert spark.sql("SELECT * FROM grows WHERE id > 80").count() == 29
        spark.sql("INSERT OVERWRITE grows SELECT id FROM range(1000, 1010)")
        require_same(spark, "SELECT * FROM grows WHERE id > 80")
    finally:
        spark.sql("DROP TABLE grows")


def test_exchanges_are_reused_where_scans_are_equal_and_only_there(spark: SparkSession, lake: str) -> None:
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        for left, right in (("id = 5", "id = 5"), ("id = 5", "id = 6"), ("x > 3", "x > 3.9")):
            require_same(
                spark,
                f"SELECT count(*) FROM (SELECT uid FROM events WHERE {left}) a "
                f"JOIN (SELECT uid FROM events WHERE {right}) b ON a.uid = b.uid",
            )
        frame = spark.sql(
            "SELECT a.n FROM (SELECT uid, count(*) n FROM events GROUP BY uid) a "
            "JOIN (SELECT uid, count(*) n FROM events GROUP BY uid) b ON a.n = b.n AND a.uid = b.uid"
        )
        frame.collect()
        assert "ReusedExchange" in plan_of(frame)
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_values_of_a_small_side_prune_while_the_query_runs(spark: SparkSession, lake: str) -> None:
    small = spark.createDataFrame([(i, f"k{i}") for i in range(10)], "key bigint, label string").where("label < 'k2'")
    joined = spark.table("events").join(broadcast(small), spark.table("events").uid == small.key)
    assert sorted(row.uid for row in joined.collect()) == [0, 1]
    assert "2 of 30 row groups after run-time filters" in plan_of(joined)
    both = joined.select("id").unionAll(spark.table("events").select("id"))
    assert both.count() == ROWS + 2


def test_plans_of_a_scan_before_and_after_the_values_of_a_join(spark: SparkSession, lake: str) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        small = spark.createDataFrame([(i, f"k{i}") for i in range(10)], "key bigint, label string")
        joined = spark.table("events").join(broadcast(small.where("label < 'k2'")), col("uid") == col("key"))
        alone = spark.table("events").where("id = 5")
        assert (joined.count(), alone.count()) == (2, 1)
        for frame in (joined, alone):
            frame.collect()
        ((plan, narrowed),) = [plans_of(spark, number) for number in answers(joined)]
        assert plan is not None and narrowed is not None
        assert (len(plan.survivors.blocks), len(narrowed.survivors.blocks)) == (BLOCKS, 2)
        assert [plans_of(spark, number)[1] for number in answers(alone)] == [None]
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")


def test_run_time_filters_of_many_joins_are_few(spark: SparkSession, lake: str) -> None:
    """A filter repeats the plan of the other side with its filters: they would double at each join of a chain."""
    joins = 9
    chain = " ".join(f"JOIN events e{i} ON e{i}.uid = e{i - 1}.id" for i in range(1, joins + 1))
    query = f"SELECT count(*), sum(e{joins}.id) FROM events e0 {chain} WHERE e0.id < 20"
    require_same(spark, query)
    plan = spark.sql(query)._jdf.queryExecution().optimizedPlan().toString()
    assert 0 < plan.count("dynamicpruning#") <= 4 * joins


def test_threads(spark: SparkSession, lake: str) -> None:
    def ids(i: int) -> list[int]:
        return [row.id for row in spark.sql(f"SELECT id FROM events WHERE id = {i}").collect()]

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(ids, range(0, ROWS, 250))) == [[i] for i in range(0, ROWS, 250)]


def test_in_a_micro_batch(spark: SparkSession, lake: str, tmp_path: Path) -> None:
    seen: list[tuple[list[str], int]] = []

    def look(batch: DataFrame, number: int) -> None:
        joined = batch.sparkSession.read.parquet(lake).where("id = 5").join(batch, "id")
        seen.append((pruning(joined), joined.count()))

    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"id": range(10)}), tmp_path / "in" / "a.parquet")
    stream = spark.readStream.schema("id bigint").parquet(str(tmp_path / "in"))
    query = (
        stream.writeStream.foreachBatch(look)
        .option("checkpointLocation", str(tmp_path / "check"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    assert [count for _, count in seen] == [1]


@pytest.mark.parametrize(
    ("options", "files"),
    [
        ({"pathGlobFilter": "*[02].parquet"}, (0, 2)),
        ({"PATHGLOBFILTER": "part{0,1}.*"}, (0, 1)),
        ({"recursiveFileLookup": "true"}, (0, 1, 2)),
        ({"modifiedBefore": "2040-01-01T00:00:00"}, (0, 1, 2)),
        ({"modifiedAfter": "2020-01-01T00:00:00", "pathGlobFilter": "*1*"}, (1,)),
    ],
)
def test_options_that_choose_files(
    spark: SparkSession, lake: str, options: dict[str, str], files: tuple[int, ...]
) -> None:
    """The files are those of Spark's own listing, and of these the index leaves row groups out."""
    frame, blocks = spark.read.options(**options).parquet(lake), BLOCKS // FILES * len(files)
    for wanted in (5, 1005, 2005):
        answer = frame.where(f"id = {wanted}").select("id")
        there = [wanted] if wanted * FILES // ROWS in files else []
        assert [row.id for row in answer.collect()] == there
        assert pruning(answer) == [f"{len(there)} of {blocks}"]
    assert (
        frame.where("name LIKE '%7%'").count()
        == spark.read.parquet(*(f"{lake}/part{i}.parquet" for i in files)).where("name LIKE '%7%'").count()
    )
    both = frame.where("id = 1005").unionAll(spark.read.parquet(lake).where("id = 1005"))  # one place, two listings
    assert both.count() == 1 + (1 in files)


def test_a_catalogs_table_whose_options_choose_files(spark: SparkSession, lake: str) -> None:
    spark.sql(f"CREATE TABLE globbed USING parquet OPTIONS (pathGlobFilter '*[02]*') LOCATION '{lake}'")
    try:
        for query in ("SELECT id FROM globbed WHERE id IN (5, 1005)", "SELECT count(*), max(id) FROM globbed"):
            require_same(spark, query)
        assert pruning(spark.sql("SELECT id FROM globbed WHERE id IN (5, 1005)")) == ["1 of 20"]
        assert spark.sql("SELECT count(*) FROM globbed").first()[0] == ROWS * 2 // 3
    finally:
        spark.sql("DROP TABLE globbed")


def test_directories_whose_names_spark_does_not_read(spark: SparkSession, tmp_path: Path) -> None:
    """With `recursiveFileLookup` a column comes from the files that without it comes from the names of directories."""
    for day in (1, 2):
        (tmp_path / f"Day={day}").mkdir()
        days = [day + 6, 9 - day] * 10
        pq.write_table(
            pa.table({"id": range(20), "day": days}), tmp_path / f"Day={day}" / "a.parquet", row_group_size=5
        )
    sec.build_index(sec.open_table(str(tmp_path)), bloom=["id"])
    for options in ({"recursiveFileLookup": "true"}, {}):
        frame = spark.read.options(**options).parquet(str(tmp_path))
        for condition in ("day = 1", "day = 7", "day > 6 AND id = 3", "id = 3", "day <=> 2"):
            answer = frame.where(condition)
            spark.conf.set("secateur.enabled", "false")
            expected = sorted(map(tuple, frame.where(condition).collect()))
            spark.conf.unset("secateur.enabled")
            assert sorted(map(tuple, answer.collect())) == expected, (options, condition)
        if options:
            assert pruning(frame.where("id = 3")) == ["2 of 8"]


# ---- what is left as it is -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mergeSchema", "true"),
        ("ignoreCorruptFiles", "true"),
        ("ignoreMissingFiles", "true"),
        ("datetimeRebaseMode", "LEGACY"),
        ("int96RebaseMode", "LEGACY"),
    ],
)
def test_options_that_change_what_is_read(spark: SparkSession, lake: str, name: str, value: str) -> None:
    frame = spark.read.option(name, value).parquet(lake).where("id < 3000").select("id")
    assert pruning(frame) == []
    assert frame.count() == ROWS
    assert f"the option {name.lower()}" in reasons(spark)[-1].lower()


def test_hidden_columns_several_roots_and_samples(spark: SparkSession, lake: str) -> None:
    for query in (
        "SELECT id, _metadata.file_name FROM events WHERE id = 5",
        "SELECT id, monotonically_increasing_id() FROM events WHERE id = 5",
        "SELECT id, input_file_block_start() FROM events WHERE id = 5",
        "SELECT id FROM events TABLESAMPLE (10 PERCENT) REPEATABLE (3) WHERE id < 500",
    ):
        require_same(spark, query)
        assert pruning(spark.sql(query)) == [], query
    frame = spark.read.parquet(f"{lake}/part0.parquet", f"{lake}/part1.parquet").where("id = 5")
    assert (pruning(frame), frame.count()) == ([], 1)


def test_bucketed_tables_and_streams(spark: SparkSession, lake: str) -> None:
    spark.sql("CREATE TABLE cut USING parquet CLUSTERED BY (id) INTO 2 BUCKETS AS SELECT id FROM events WHERE id < 99")
    try:
        location = spark.sql("DESCRIBE FORMATTED cut").where("col_name = 'Location'").first().data_type
        sec.build_index(sec.open_table(location.removeprefix("file:")))
        assert pruning(spark.table("cut").where("id = 5")) == []
        assert "a bucketed table" in reasons(spark)
    finally:
        spark.sql("DROP TABLE cut")


def test_settings_that_change_what_is_read(spark: SparkSession, lake: str) -> None:
    for name in ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles"):
        spark.conf.set(name, "true")
        try:
            assert pruning(spark.sql("SELECT id FROM events WHERE id = 5")) == []
            assert reasons(spark)[-1] == name
        finally:
            spark.conf.unset(name)


def test_schemas_that_differ_from_the_files(spark: SparkSession, lake: str) -> None:
    """A column prunes where a relation and the index mean the same by it."""
    for schema, expected in (
        ("id bigint, name string", ["1 of 30"]),
        ("ID bigint", ["30 of 30"]),
        ("id bigint, other string", ["1 of 30"]),
        ("name string, id decimal(20, 0)", ["30 of 30"]),  # which Spark 3.5 does not read
    )[: 3 if IS_3 else 4]:
        frame = spark.read.schema(schema).parquet(lake).where("id = 5")
        assert pruning(frame) == expected, schema
        spark.conf.set("secateur.enabled", "false")
        try:
            plain = sorted(map(repr, spark.read.schema(schema).parquet(lake).where("id = 5").collect()))
        finally:
            spark.conf.unset("secateur.enabled")
        assert sorted(map(repr, frame.collect())) == plain


def test_defaults_of_columns_that_files_lack(spark: SparkSession, lake: str, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE old USING parquet LOCATION '{tmp_path}/old' AS SELECT id FROM range(10)")
    try:
        spark.sql("ALTER TABLE old ADD COLUMN c INT DEFAULT 5")
        spark.sql("INSERT INTO old VALUES (100, 7)")
        sec.build_index(sec.open_table(str(tmp_path / "old")))
        sec.enable(spark)
        require_same(spark, "SELECT * FROM old WHERE c = 5")
        assert len(answer(spark, "SELECT * FROM old WHERE c = 5", pruned=True)) == 11
    finally:
        spark.sql("DROP TABLE old")


def test_char_varchar_and_collations(spark: SparkSession, lake: str, tmp_path: Path) -> None:
    collated = "STRING" if IS_3 else "STRING COLLATE UTF8_LCASE"
    spark.sql(f"CREATE TABLE texts (c CHAR(5), v VARCHAR(5), l {collated}) USING parquet LOCATION '{tmp_path}/texts'")
    try:
        spark.sql("INSERT INTO texts VALUES ('a', 'b', 'C'), ('abc  ', 'x  ', 'd')")
        sec.build_index(sec.open_table(str(tmp_path / "texts")))
        sec.enable(spark)
        for condition in ("c = 'a'", "c = 'abc'", "v = 'x'", "v = 'x  '", "l = 'c'", "l > 'C'", "l = 'D'"):
            require_same(spark, f"SELECT * FROM texts WHERE {condition}")
    finally:
        spark.sql("DROP TABLE texts")


def test_case_sensitive_names(spark: SparkSession, lake: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": range(100), "A": range(100, 200)}), tmp_path / "x.parquet", row_group_size=10)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        sec.build_index(sec.open_table(str(tmp_path)))
        spark.read.parquet(str(tmp_path)).createOrReplaceTempView("cases")
        for condition in ("a = 5", "A = 105", "A = 5"):
            require_same(spark, f"SELECT * FROM cases WHERE {condition}")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize(
    "query", ["x WHERE id IS NULL", "x WHERE coalesce(id, 0) = 0", "(SELECT count(id), max(id) FROM x)"]
)
def test_names_of_files_that_differ_in_case(spark: SparkSession, tmp_path: Path, query: str) -> None:
    """C28: where names are told apart by case, Spark reads NULL for `id` in a file that has `ID`; an index does not."""
    for file, name in (("a", "id"), ("b", "ID")):
        pq.write_table(pa.table({name: range(1, 100), "v": range(1, 100)}), tmp_path / f"{file}.parquet")
    sec.build_index(sec.open_table(str(tmp_path)))
    with enabled(spark), settings(spark, {"spark.sql.caseSensitive": "true"}):
        plain = spark.read.schema("id BIGINT, v BIGINT").parquet(str(tmp_path))
        plain.createOrReplaceTempView("x")
        require_same(spark, f"SELECT * FROM {query}")
        expected = answer(spark, f"SELECT * FROM {query}", pruned=False)
        sec.dataframe(spark, str(tmp_path)).select("id", "v").createOrReplaceTempView("x")
        assert answer(spark, f"SELECT * FROM {query}", pruned=False) == expected
