"""Hudi tables that Hudi's own Spark writer writes, with random histories: what is read is what its reader reads."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import secateur as sec
from secateur.errors import TableNotFound, UnknownSnapshot, UnsupportedTable
from secateur.io.spark.version import IS_3
from tests.support.checks import oracle
from tests.support.formats.hudi_tables import ALWAYS_COMPACTED, PREDICATES, HudiHistory, in_order
from tests.support.profiles import by_profile

pytestmark = pytest.mark.skipif(
    not IS_3, reason="there is no bundle of Hudi for Spark 4: tests/data/hudi has tables of it"
)

STEPS = by_profile(quick=5, full=9, nightly=12)
SEEDS = by_profile(quick=range(2), full=range(6), nightly=range(40))
VERSIONS = ["6", "9", "8"]


def made(hudi: SparkSession, path: Path, draw: random.Random, seed: int, kind: str, **more: str) -> HudiHistory:
    settings = {
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": VERSIONS[seed % len(VERSIONS)],
        "hoodie.datasource.write.hive_style_partitioning": draw.choice(["true", "false"]),
        "hoodie.parquet.small.file.limit": draw.choice(["0", "104857600"]),
        "hoodie.metadata.enable": draw.choice(["true", "false"]),
        "hoodie.clean.automatic": draw.choice(["true", "false"]),
        "hoodie.clean.commits.retained": "1",
        "hoodie.cleaner.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.parquet.block.size": "1024",
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    if draw.random() < 0.7:
        settings["hoodie.datasource.write.partitionpath.field"] = "p"
    else:
        settings["hoodie.datasource.write.keygenerator.class"] = "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    history = HudiHistory(hudi, str(path), settings, log=[f"seed {seed} {settings}"])
    history.write(history.new(30), "insert")
    return history


def check(history: HudiHistory, **options: str | bool) -> None:
    """What is read is what Hudi's reader reads, now, for every predicate."""
    theirs: dict[str, str] = {}
    if options.get("read_optimized"):
        theirs["hoodie_datasource_query_type"] = "read_optimized"
    if "as_of" in options:
        theirs["as_of_instant"] = str(options["as_of"])
    frame = history.read(**theirs)
    table = sec.open_table(history.path, **options)  # type: ignore[arg-type]
    answers = oracle.ask(frame, PREDICATES)
    if "as_of" in options and not answers.truth:
        return  # Hudi refuses instants before those that a cleaning has left, whether or not it removed something
    for predicate in PREDICATES:
        plan = sec.prune(table, predicate, strict=True, session_time_zone="UTC", ansi=False)
        got, want = plan.to_arrow(), answers.matching(predicate)
        assert got.schema.names == frame.columns, history.log
        assert oracle.rows(got) == want, (history.log, predicate)
        assert plan.count() == want.total(), (history.log, predicate)


@pytest.mark.parametrize("seed", SEEDS)
def test_histories_of_copy_on_write(hudi: SparkSession, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    history = made(hudi, tmp_path / "t", draw, seed, "COPY_ON_WRITE")
    sec.build_index(sec.open_table(history.path), bloom=["k", "s"], sort_key=["rid"])
    for _ in range(STEPS):
        history.step(draw)
        check(history)
        if draw.random() < 0.5:
            sec.refresh_index(sec.open_table(history.path))
            check(history)
    check_past(history)


def check_past(history: HudiHistory, **options: bool) -> None:
    """Every instant of the timeline is read as Hudi reads it, or is refused because its files are gone."""
    table = sec.open_table(history.path, **options)  # type: ignore[arg-type]
    instants = table.snapshot().metadata_tables.snapshots()["snapshot_id"].to_pylist()
    for instant in instants:
        try:
            sec.open_table(history.path, version=instant, **options)  # type: ignore[arg-type]
        except (UnknownSnapshot, TableNotFound) as error:
            assert re.search("cleaned|is gone", str(error)), history.log
            continue
        except UnsupportedTable as error:
            assert "log files" in str(error), history.log
            continue
        check(history, as_of=str(instant), **options)


@pytest.mark.parametrize("seed", SEEDS)
def test_histories_of_merge_on_read(hudi: SparkSession, tmp_path: Path, seed: int) -> None:
    """Where the table is not refused it has no rows in log files; the view of base files is always there."""
    draw = random.Random(seed + 100)
    history = made(hudi, tmp_path / "t", draw, seed, "MERGE_ON_READ")
    for _ in range(STEPS):
        if draw.random() < 0.3:
            history.write(history.known("id % 4 = 1"), "upsert", **ALWAYS_COMPACTED)
        else:
            history.step(draw)
        check_both_views(history)
    history.write(history.known("true"), "upsert")
    check_both_views(history)
    check_past(history, read_optimized=True)


def check_both_views(history: HudiHistory) -> None:
    """Base files are read as by Hudi; what is live is refused, or read as by Hudi."""
    check(history, read_optimized=True)
    try:
        sec.open_table(history.path)
    except UnsupportedTable as error:
        assert "log files" in str(error), history.log
        assert any(Path(history.path).rglob(".*.log.*")), history.log
    else:
        check(history)


def test_a_rolled_back_commit(hudi: SparkSession, tmp_path: Path) -> None:
    """Before the rollback its files are there, and its commit is not; the rollback removes them."""
    draw = random.Random(5)
    history = made(hudi, tmp_path / "t", draw, 1, "COPY_ON_WRITE", hoodie_rollback_using_markers="false")
    before = in_order(history.read().toArrow())
    history.upsert(draw)
    last = sec.open_table(history.path).snapshot().id
    (complete,) = (tmp_path / "t/.hoodie/timeline").glob(f"{last}_*.commit")
    complete.unlink()  # as if the writer had ended before
    assert in_order(sec.prune(sec.open_table(history.path), "true").to_arrow()) == before
    check(history)
    history.upsert(draw)  # rolls it back first
    check(history)
    newest = sec.open_table(history.path).snapshot().id
    history.roll_back(newest)
    assert in_order(sec.prune(sec.open_table(history.path), "true").to_arrow()) == before


def test_columns_that_came_and_types_that_widened(hudi: SparkSession, tmp_path: Path) -> None:
    history = made(hudi, tmp_path / "t", random.Random(1), 1, "COPY_ON_WRITE")
    rows = history.new(10).selectExpr("*", "nullif(CAST(rid AS STRING), '') AS later")
    rows = rows.selectExpr(*[f"CAST({name} AS BIGINT) AS k" if name == "k" else name for name in rows.columns])
    history.write(rows, "insert")
    check(history)
    table = sec.open_table(history.path)
    sec.build_index(table, bloom=["k", "later"])
    check(history)
    got = sec.prune(table, "later = '35' OR later IS NULL AND k = 3", strict=True).to_arrow()
    want = history.read().where("later = '35' OR later IS NULL AND k = 3").toArrow()
    assert in_order(got) == in_order(want)


def test_files_without_their_partition_columns(hudi: SparkSession, tmp_path: Path) -> None:
    history = HudiHistory(
        hudi,
        str(tmp_path / "t"),
        {
            "hoodie.datasource.write.partitionpath.field": "p,day",
            "hoodie.datasource.write.drop.partition.columns": "true",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.datasource.write.partitionpath.urlencode": "true",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        },
    )
    history.write(history.new(30), "insert")
    history.upsert(random.Random(1))
    table = sec.open_table(history.path)
    frame = history.read()
    for predicate in ("true", "p = 'b c'", "p <> 'one' AND rid > 7", "rid = 4"):
        got = sec.prune(table, predicate, strict=True, ansi=False).to_arrow()
        want = frame.where(predicate).toArrow()
        names = [name for name in want.column_names if name != "day"]
        assert sorted(got.column_names) == sorted(want.column_names)
        assert in_order(got.select(names)) == in_order(want.select(names)), predicate


def test_handed_to_spark(hudi: SparkSession, tmp_path: Path) -> None:
    history = made(hudi, tmp_path / "t", random.Random(2), 1, "COPY_ON_WRITE")
    table = sec.open_table(history.path)
    sec.build_index(table, bloom=["rid"])
    plan = sec.prune(table, "rid = 7 OR k = 3", spark=hudi, session_time_zone="UTC")
    want = history.read().where("rid = 7 OR k = 3").toArrow()
    assert in_order(plan.to_spark(hudi).toArrow()) == in_order(want)


def test_by_name(hudi: SparkSession, tmp_path: Path) -> None:
    hudi.sql(
        f"CREATE TABLE named (rid BIGINT, v INT, p STRING) USING hudi PARTITIONED BY (p) LOCATION '{tmp_path / 't'}' "
        "TBLPROPERTIES (primaryKey = 'rid', preCombineField = 'v')"
    )
    hudi.sql("INSERT INTO named SELECT id, 1, 'x' FROM range(10)")
    hudi.sql("UPDATE named SET v = 2 WHERE rid = 3")
    table = sec.open_table("named", spark=hudi)
    assert sec.prune(table, "v = 2").to_arrow()["rid"].to_pylist() == [3]
    hudi.sql("DROP TABLE named")
