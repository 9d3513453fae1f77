"""``sec.enable`` on Iceberg tables: which files to read is told by the index, and Iceberg reads no manifests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

import secateur as sec
from secateur.io.spark.iceberg import listed_files
from secateur.io.spark.planner import protocol
from tests.support.enabled_session import answer, enabled, pruning, require_same
from tests.support.formats.iceberg_spark import add_equality_deletes, data_files, location, metadata_file
from tests.support.profiles import by_profile

NAMES = {2: "lake.db.planned", 3: "lake.db.planned_v3"}  # by version of the format


def make(spark: SparkSession, name: str, version: int) -> None:
    """A table of three partition specs, with rows deleted by position and by value, and a tag from before that."""
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, uid BIGINT, part INT, name STRING, day DATE, f DOUBLE) USING iceberg "
        f"PARTITIONED BY (part) TBLPROPERTIES ('format-version'='{version}', 'write.delete.mode'='merge-on-read', "
        "'write.distribution-mode'='hash', 'write.parquet.row-group-size-bytes'='4000', "
        "'write.parquet.row-group-check-min-record-count'='50', 'write.parquet.row-group-check-max-record-count'='50')"
    )
    steps = ("ADD PARTITION FIELD days(day)", "DROP PARTITION FIELD part", "ADD PARTITION FIELD bucket(3, name)")
    for number in range(4):
        spark.sql(
            f"INSERT INTO {name} SELECT id, (id * 7919) % 800, CAST(IF(id % 50 = 49, NULL, id % 3) AS INT), "
            "concat('name-', id), date_add(DATE'1969-12-30', CAST(id % 4 AS INT)), "
            "IF(id >= 400 AND id % 3 > 0, double('NaN'), double(id % 2)) "
            f"FROM range({number * 200}, {number * 200 + 200})"
        )
        if number < 3:
            spark.sql(f"ALTER TABLE {name} {steps[number]}")
    spark.sql(f"ALTER TABLE {name} CREATE TAG before")
    spark.sql(f"DELETE FROM {name} WHERE id IN (5, 210, 411, 799)")
    gone = pa.table({"name": ["name-6", "name-7", "name-650"]})
    for file in data_files(spark, name):
        add_equality_deletes(spark, name, gone, beside=file)


@pytest.fixture(scope="module", params=by_profile(quick=[3], full=[2, 3], nightly=[2, 3]))
def table(iceberg: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    name = NAMES[request.param]
    make(iceberg, name, request.param)
    sec.build_index(sec.open_table(metadata_file(iceberg, name)), sort_key=["id"], bloom=["uid"])
    with enabled(iceberg):
        yield name
    iceberg.sql(f"DROP TABLE {name}")


def read_manifests(frame: DataFrame) -> bool:
    """Whether Iceberg planned a scan of a query: then it tells how many manifests it has read."""
    query = frame._jdf.queryExecution()
    query.executedPlan()
    leaves = query.optimizedPlan().collectLeaves()
    scans = [leaves.apply(number).scan() for number in range(leaves.size())]
    return "scannedDataManifests" in {metric.name() for scan in scans for metric in scan.reportDriverMetrics()}


BY_INDEX = [
    "SELECT * FROM {} WHERE id = 8",
    "SELECT * FROM {} WHERE id IN (5, 6, 7, 8, 210, 650, 651, 799)",
    "SELECT * FROM {} WHERE id + 0 IN (5, 6, 7, 8, 210, 650, 651, 799)",
    "SELECT id FROM {} WHERE part = 1 AND id + 0 < 30",
    "SELECT id FROM {} WHERE part IS NULL AND uid + 0 > 5",
    "SELECT id FROM {} WHERE day = DATE'1969-12-31' AND id + 0 > 300",
    "SELECT id FROM {} WHERE name = 'name-651' AND id + 0 > 300",
    "SELECT count(*), sum(id) FROM {} WHERE uid + 0 < 300",
    "SELECT id, _pos, _spec_id, _partition, substring_index(_file, '/', -1) FROM {} WHERE id < 12",
    "SELECT id, _deleted FROM {} WHERE id < 12",
    "SELECT id FROM {} VERSION AS OF 'before' WHERE id IN (5, 6, 210, 650)",
    "SELECT id FROM {}.tag_before WHERE part = 2 AND id + 0 < 50",
    "SELECT id FROM (SELECT * FROM {0} WHERE id < 40 UNION ALL SELECT * FROM {0} WHERE uid = 77) WHERE id > 5",
    "SELECT id FROM {} WHERE id < (SELECT min(id) + 7 FROM {} WHERE uid + 0 = 77)",
    "SELECT a.id, b.name FROM {0} a JOIN {0} b ON a.uid = b.id WHERE a.id < 9 AND b.part = 1",
    "SELECT a.id FROM {0} a JOIN {0} b ON a.id = b.id WHERE (a.uid = 77 OR a.id IN (3, 9)) AND a.name LIKE 'name-%'",
    "SELECT id FROM {0} WHERE id BETWEEN 7 AND 12 AND uid NOT IN (SELECT uid FROM {0} WHERE id = 8)",
]
BY_ICEBERG = [  # what Iceberg's tasks tell of its planning, or Spark asks for before the rule is called
    "SELECT id FROM {}",
    "SELECT id, f FROM {} WHERE f > 1D",
]


@pytest.mark.parametrize(
    ("query", "by_iceberg"), [*((query, False) for query in BY_INDEX), *((query, True) for query in BY_ICEBERG)]
)
def test_answers_are_those_without(iceberg: SparkSession, table: str, query: str, by_iceberg: bool) -> None:
    query = query.replace("{}", "{0}").format(table)
    require_same(iceberg, query)
    assert read_manifests(iceberg.sql(query)) == by_iceberg


def test_plans_have_the_tables_of_iceberg(iceberg: SparkSession, table: str) -> None:
    """Which others look for: whether scans were pruned or not, or answered by statistics of Iceberg's."""
    for query in ("SELECT * FROM {} WHERE id = 8", "SELECT * FROM {}", "SELECT count(*) FROM {}.tag_before"):
        plan = iceberg.sql(query.format(table))._jdf.queryExecution().optimizedPlan()
        assert plan.collectLeaves().head().relation().table().getClass().getSimpleName() == "SparkTable"


@contextmanager
def hidden_manifests(spark: SparkSession, name: str) -> Iterator[None]:
    """The table without the files that list its data files."""
    manifests = [*Path(location(spark, name), "metadata").glob("*-m*.avro")]
    assert manifests
    for path in manifests:
        path.rename(path.with_suffix(".hidden"))
    try:
        yield
    finally:
        for path in manifests:
            path.with_suffix(".hidden").rename(path)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM {0} WHERE id + 0 IN (5, 6, 7, 8, 210, 650, 651, 799)",
        "SELECT a.id, b.name FROM {0} a JOIN {0} b ON a.uid = b.id WHERE a.id < 9 AND b.uid IN (9, 77, 600)",
    ],
)
def test_no_manifest_is_read(iceberg: SparkSession, table: str, query: str) -> None:
    query = query.format(table)
    expected = answer(iceberg, query, pruned=False)
    with hidden_manifests(iceberg, table):
        assert answer(iceberg, query, pruned=True) == expected
        with pytest.raises(Py4JJavaError, match="NotFoundException"):
            iceberg.sql(f"SELECT * FROM {table}").collect()


def test_iceberg_plans_where_many_files_are_left(
    iceberg: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "FEW_FILES", 1)
    for query in ("SELECT * FROM {} WHERE id + 0 < 300", "SELECT * FROM {} WHERE id = 8"):
        require_same(iceberg, query.format(table))
    many, one = (iceberg.sql(f"SELECT * FROM {table} WHERE {where}") for where in ("id + 0 < 300", "id = 8"))
    assert [read_manifests(frame) for frame in (many, one)] == [True, False]
    assert len(pruning(many)) == len(pruning(one)) == 1


def test_iceberg_plans_where_it_does_not_take_the_tasks(
    iceberg: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listed_files, "whole_texts", lambda tasks, table: ["{}"] * len(tasks))
    query = f"SELECT * FROM {table} WHERE id = 8"
    require_same(iceberg, query)
    assert read_manifests(iceberg.sql(query))
    assert len(pruning(iceberg.sql(query))) == 1


LIMITED = [  # how many row groups are read, or None where Iceberg's own filters may tell others apart
    ("SELECT * FROM {} LIMIT 3", None),
    ("SELECT * FROM {} VERSION AS OF 'before' LIMIT 3", 1),
    ("SELECT id FROM {} WHERE id + 0 >= 0 LIMIT 3", None),
    ("SELECT id FROM {} WHERE id >= 100 LIMIT 10", None),
    ("SELECT id FROM {} VERSION AS OF 'before' WHERE id >= 100 LIMIT 10", 1),
    ("SELECT id FROM {} VERSION AS OF 'before' WHERE part = 1 AND id >= 150 LIMIT 10", None),
    ("SELECT id FROM {} VERSION AS OF 'before' WHERE f > 1D AND id >= 100 LIMIT 10", None),
    ("SELECT id FROM {} WHERE id IN (5, 6, 7, 8, 210, 650, 651, 799) LIMIT 7", None),
    ("SELECT id FROM {} WHERE part = 1 LIMIT 5", None),
    ("SELECT id FROM {} WHERE part = 1 AND id >= 250 LIMIT 5", None),
    ("SELECT id FROM {} WHERE f > 1D LIMIT 20", None),
    ("SELECT id FROM {} WHERE f > 1D AND id >= 100 LIMIT 20", None),
    ("SELECT id FROM {} ORDER BY id DESC LIMIT 3", None),
    ("SELECT id FROM {} WHERE id >= 100 ORDER BY id LIMIT 3", None),
    ("SELECT id FROM {} ORDER BY f DESC, id LIMIT 3", None),
    ("SELECT count(*) FROM (SELECT * FROM {} LIMIT 790)", None),
    ("SELECT count(*) FROM (SELECT * FROM {} WHERE id >= 3 LIMIT 700)", None),
    ("SELECT id FROM {} VERSION AS OF 'before' ORDER BY id LIMIT 9", None),
    ("SELECT a.id FROM {0} a JOIN (SELECT id FROM {0} ORDER BY id LIMIT 5) b ON a.id = b.id", None),
]


@pytest.mark.parametrize(("query", "kept"), LIMITED)
def test_a_limit_reads_what_surely_suffices(iceberg: SparkSession, table: str, query: str, kept: int | None) -> None:
    """As many rows as without, and all of them match; of an order, the same."""
    query = query.replace("{}", "{0}").format(table)
    every = "SELECT id " + query[query.index("FROM") :].split(" LIMIT")[0]
    with_, without = (answer(iceberg, query, pruned=pruned) for pruned in (True, False))
    if "ORDER" in query or "count" in query:
        assert with_ == without
    else:
        assert len(with_) == len(without)
        ids = answer(iceberg, query.replace("SELECT *", "SELECT id"), pruned=True)[1:]
        assert set(ids) <= set(answer(iceberg, every, pruned=False))
    if kept is not None:
        assert [text.split(" of ")[0] for text in pruning(iceberg.sql(query))] == [str(kept)]
