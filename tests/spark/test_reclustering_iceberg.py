"""Statements of ``sec.plan_recluster`` that Spark runs, on directories and on tables of Iceberg."""

from __future__ import annotations

from collections import Counter
from datetime import UTC
from pathlib import Path

import pytest
from click.testing import CliRunner
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

import secateur as sec
from secateur.cli import main
from secateur.errors import InvalidOption, StalePlan
from secateur.index.advise.row_orders import Curve, RowOrder
from secateur.io.scan.advise.reclustering import Terms, rewrite_plan
from secateur.io.scan.clustering import ordered_columns
from secateur.io.scan.opened_table import opened_strictly
from secateur.io.spark.iceberg.rewriting import choose
from secateur.io.spark.rewriting import rewrite
from secateur.io.tables.formats import rewriter_of
from secateur.io.tables.iceberg.snapshot import IcebergSnapshot
from tests.support.checks.reclustered import (
    KEY,
    NO_STATEMENT,
    PART,
    PARTS,
    VALUES,
    WORD,
    quoted,
    require_look_ups,
    rows,
    run,
    share_of_look_ups,
    small_row_groups,
    unordered,
)
from tests.support.profiles import one_in

SMALL = "'write.parquet.row-group-size-bytes'='4000', 'write.parquet.row-group-check-min-record-count'='50', "
SMALL += "'write.parquet.row-group-check-max-record-count'='50'"

ASKED = [f"{quoted(KEY)} = {value}" for value in VALUES]


@pytest.mark.parametrize("by", one_in(2, [[KEY, WORD], [KEY]]))
def test_iceberg(iceberg: SparkSession, by: list[str]) -> None:
    spark, name = iceberg, f"lake.db.`it's {len(by)}`"
    spark.sql(
        f"CREATE TABLE {name} ({quoted(KEY)} BIGINT, {quoted(WORD)} STRING, {quoted(PART)} STRING) USING iceberg "
        f"TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read', {SMALL})"
    )
    for part in range(4):
        spark.sql(f"INSERT INTO {name} {unordered(part)}")
    spark.sql(f"DELETE FROM {name} WHERE {quoted(KEY)} % 10 = 3")
    before = rows(spark, name)
    table = sec.open_table(name, spark=spark)
    plan = sec.plan_recluster(table, list(map(quoted, by)))
    assert len(plan.groups) == 1
    was = share_of_look_ups(table, KEY, VALUES)
    run(spark, plan)
    assert rows(spark, name) == before
    after = sec.open_table(name, spark=spark)
    require_look_ups(spark, after, name, KEY, VALUES)
    assert share_of_look_ups(after, KEY, VALUES) < was
    assert not sec.plan_recluster(after, list(map(quoted, by))).groups, "what was rewritten is left alone"


PARTITIONS = {
    "none": "",
    "identity": f"PARTITIONED BY ({quoted(PART)})",
    "bucket": f"PARTITIONED BY (bucket(2, {quoted(KEY)}))",
}
ORDERS = [*(([KEY], part) for part in PARTITIONS), ([KEY, WORD], "none")]


def make(spark: SparkSession, name: str, of_parts: str = "") -> None:
    """A table of files in no order, with rows deleted by merge-on-read."""
    spark.sql(
        f"CREATE TABLE {name} ({quoted(KEY)} BIGINT, {quoted(WORD)} STRING, {quoted(PART)} STRING) USING iceberg "
        f"{of_parts} TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read', {SMALL})"
    )
    for part in range(4):
        spark.sql(f"INSERT INTO {name} {unordered(part)}")
    spark.sql(f"DELETE FROM {name} WHERE {quoted(KEY)} % 10 = 3")


def live(spark: SparkSession, name: str) -> set[str]:
    """The data files of a table."""
    return {row.file_path for row in spark.sql(f"SELECT file_path FROM {name}.data_files").collect()}


def test_statements_name_identity_partitions(iceberg: SparkSession) -> None:
    """Values with quotes, backslashes and NULL; the statement rewrites the files of its group and no others."""
    spark, name = iceberg, "lake.db.named_partitions"
    make(spark, name, PARTITIONS["identity"])
    before, files = rows(spark, name), live(spark, name)
    plan = sec.plan_recluster(sec.open_table(name, spark=spark), quoted(KEY))
    assert len(plan.groups) == len(PARTS)
    for group in plan.groups:
        spark.sql(group.statement)
        now = live(spark, name)
        assert files - now == set(group.files)
        files = now
    assert rows(spark, name) == before


@pytest.mark.parametrize(("by", "partitioned"), one_in(2, ORDERS))
def test_apply_rewrites_the_chosen_files(iceberg: SparkSession, by: list[str], partitioned: str) -> None:
    spark, name = iceberg, f"lake.db.`applied {partitioned} {len(by)}`"
    make(spark, name, PARTITIONS[partitioned])
    before, files = rows(spark, name), live(spark, name)
    table = sec.open_table(name, spark=spark)
    was = share_of_look_ups(table, KEY, VALUES)
    plan = sec.plan_recluster(table, list(map(quoted, by)), budget_bytes="60%", apply=True, spark=spark)
    chosen = {file for group in plan.groups for file in group.files}
    assert plan.applied
    assert 0 < len(chosen) < len(files), "a part of the table"
    assert files - live(spark, name) == chosen
    assert rows(spark, name) == before
    after = sec.open_table(name, spark=spark)
    require_look_ups(spark, after, name, KEY, VALUES)
    assert len(by) > 1 or share_of_look_ups(after, KEY, VALUES) < was


def test_apply_on_a_table_by_its_location(iceberg: SparkSession) -> None:
    spark, name = iceberg, "lake.db.by_location"
    make(spark, name)
    before = rows(spark, name)
    location = spark.sql(f"SELECT file FROM {name}.metadata_log_entries").collect()[-1].file.rpartition("/metadata/")[0]
    plan = sec.plan_recluster(location, quoted(KEY), apply=True, spark=spark)
    assert plan.applied
    assert plan.groups
    assert plan.groups[0].statement.startswith(NO_STATEMENT)
    spark.catalog.refreshTable(name)
    assert rows(spark, name) == before
    assert not sec.plan_recluster(location, quoted(KEY)).groups, "what was rewritten is left alone"


@pytest.mark.parametrize(
    ("what", "between", "conflicts"),
    [
        ("append", "INSERT INTO {} SELECT -1, 'new', NULL", False),
        ("delete", f"DELETE FROM {{}} WHERE {quoted(KEY)} = 7", False),
        ("empty", f"DELETE FROM {{}} WHERE {quoted(KEY)} >= 0", True),
    ],
)
def test_a_commit_after_files_are_chosen(iceberg: SparkSession, what: str, between: str, conflicts: bool) -> None:
    """Rows that it adds stay, and what it deletes does not come back; files that it removes end the rewrite."""
    spark, name = iceberg, f"lake.db.race_{what}"
    make(spark, name)
    table = sec.open_table(name, spark=spark).snapshot()
    assert isinstance(table, IcebergSnapshot)
    chosen = choose(spark, table, table.listing(UTC).paths.to_pylist())
    spark.sql(between.format(name))
    committed = rows(spark, name)
    order = RowOrder(Curve.SORT, (quoted(KEY),))
    if conflicts:
        with pytest.raises(Py4JJavaError, match=r"ValidationException|CommitFailedException"):
            chosen.rewrite(order)
    else:
        chosen.rewrite(order)
    spark.sql(f"REFRESH TABLE {name}")
    assert rows(spark, name) == committed


@pytest.mark.parametrize(
    ("what", "statement"),
    [("deleted", "DELETE FROM {} WHERE {} >= 0"), ("replaced", "INSERT OVERWRITE {} SELECT {}, 'x', 'y' FROM {}")],
)
def test_a_commit_before_files_are_chosen(iceberg: SparkSession, what: str, statement: str) -> None:
    """Files that are gone when the rewrite begins stop it before anything is written."""
    spark, name = iceberg, f"lake.db.gone_{what}"
    make(spark, name)
    table = sec.open_table(name, spark=spark).snapshot()
    spark.sql(statement.format(name, quoted(KEY), name))
    committed, files = rows(spark, name), live(spark, name)
    opened = opened_strictly(table)
    rewriter = rewriter_of(table)
    terms = Terms(None, 1000.0)
    plan = rewrite_plan(opened, rewriter, list(ordered_columns(opened, [quoted(KEY)])), [], terms, 64)
    assert plan.files
    with pytest.raises(StalePlan, match=r"group 1 of 1.*plan again"):
        rewrite(spark, opened, rewriter, plan)
    spark.sql(f"REFRESH TABLE {name}")
    assert (rows(spark, name), live(spark, name)) == (committed, files)


@pytest.mark.parametrize(
    ("partitioned", "applied"), one_in(3, [(False, False), (False, True), (True, False), (True, True)])
)
def test_directory(spark: SparkSession, tmp_path: Path, partitioned: bool, applied: bool) -> None:
    root = tmp_path / "it's odd"
    root_text = str(root)
    names = [quoted(KEY), quoted(WORD)]
    with small_row_groups(spark):
        for part in range(4):
            writer = spark.sql(unordered(part)).coalesce(1).write.mode("append")
            (writer.partitionBy(PART) if partitioned else writer).parquet(root_text)
        before = content(root)
        was = share_of_look_ups(root_text, KEY, VALUES)
        files = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
        if applied:
            plan = sec.plan_recluster(root_text, names, predicates=ASKED, apply=True, spark=spark)
        else:
            plan = sec.plan_recluster(root_text, names, predicates=ASKED)
            run(spark, plan)
    assert files == {path: path.stat().st_mtime_ns for path in root.rglob("*")}, "only copies are written"
    assert content(root) == before
    replace(root, plan)
    assert content(root) == before
    assert share_of_look_ups(root_text, KEY, VALUES) < was
    assert not sec.plan_recluster(root_text, names, predicates=ASKED).groups, "what was rewritten is left alone"


def test_copies_of_a_directory_are_never_overwritten(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "lake"
    with small_row_groups(spark):
        for part in range(4):
            spark.sql(unordered(part)).coalesce(1).write.mode("append").parquet(str(root))
    result = CliRunner().invoke(main, ["recluster", str(root), "--by", quoted(KEY), "--apply"])
    assert result.exit_code == 0, result.output
    assert result.output.rstrip().endswith(
        "copies are written; put them in place of the old files, then refresh the index"
    )
    with pytest.raises(InvalidOption, match="is there already, of an earlier run: publish or remove it first"):
        sec.plan_recluster(str(root), quoted(KEY), apply=True)


def test_a_directory_that_changes_has_no_commit(spark: SparkSession, tmp_path: Path) -> None:
    """A file that is overwritten after the plan was made: the copy has other rows than the plan's files had."""
    root = tmp_path / "lake"
    with small_row_groups(spark):
        for part in range(4):
            spark.sql(unordered(part)).coalesce(1).write.mode("append").parquet(str(root))
    opened = opened_strictly(sec.open_table(str(root)))
    rewriter = rewriter_of(opened.table)
    plan = rewrite_plan(opened, rewriter, list(ordered_columns(opened, [quoted(KEY)])), [], Terms(None, 1000.0), 64)
    (group,) = plan.files
    one, other = (Path(path) for path in group.paths[:2])
    one.write_bytes(other.read_bytes())
    (root / f".{one.name}.crc").unlink()
    with pytest.raises(StalePlan, match=r"files were changed while they were copied to .*: remove it, and plan again"):
        rewrite(spark, opened, rewriter, plan)
    assert sorted(path.name for path in root.glob("*.parquet")) == sorted(Path(path).name for path in group.paths)


def content(root: Path) -> Counter[tuple[object, ...]]:
    """All rows."""
    return Counter(tuple(row.values()) for row in sec.prune(str(root), "true").to_arrow().to_pylist())


def replace(root: Path, plan: sec.Reclustering) -> None:
    """Put the copies in the place of the old files."""
    for group in plan.groups:
        for file in group.files:
            (root / file).unlink()
    (copies,) = [path for path in root.parent.iterdir() if path != root]
    for number in sorted(copies.iterdir()):
        for file in number.rglob("*.parquet"):
            there = root / file.relative_to(number)
            there.parent.mkdir(exist_ok=True, parents=True)
            file.rename(there)
