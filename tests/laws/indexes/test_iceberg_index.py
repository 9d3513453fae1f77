"""The index of an Iceberg table goes by field ids, and by the snapshots that added its files."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, StructType

import secateur as sec
from secateur.errors import InvalidOption, UnknownColumn
from secateur.index.model import BLOOM, POSTINGS, BuildOptions, FilterOption
from secateur.io.tables.iceberg.table import IcebergTable
from tests.support.formats.iceberg_row_deletes import with_id
from tests.support.stores.local_build import index_here
from tests.support.tables import write_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema(
    NestedField(1, "day", IntegerType()),
    NestedField(2, "user", LongType()),
    NestedField(3, "who", StructType(NestedField(4, "name", StringType()), NestedField(5, "age", IntegerType()))),
)


@pytest.fixture
def events(catalog: Catalog) -> Table:
    """Four files, of which each has two days and every second user."""
    table = catalog.create_table("db.events", SCHEMA)
    for part in range(4):
        table.append(rows(table, part))
    return table


def rows(table: Table, part: int, **others: Any) -> pa.Table:
    """Rows in order of day, and of user within it."""
    days = [2 * part + i // 50 for i in range(100)]
    users = [2 * (i % 50) + part % 2 for i in range(100)]
    who = [{"name": f"n{day}-{user}", "age": user} for day, user in zip(days, users, strict=True)]
    columns = {"day": days, "user": users, "who": who, **others}
    names = table.schema().column_names
    return pa.table({name: columns[name] for name in columns if name in names}, schema=table.schema().as_arrow())


def kept(table: Any, predicate: str, **options: Any) -> tuple[int, int]:
    """The blocks and the rows of a plan."""
    plan = sec.prune(table, predicate, strict=True, **options)
    return len(plan.blocks), plan.to_arrow().num_rows


def test_an_indexed_expression_survives_the_renaming_of_its_columns(events: Table) -> None:
    table = sec.open_table(events)
    built = sec.build_index(table, bloom=["upper(who.name)"], zone_map=["user * 2"], fpr=1e-9)
    assert built.columns[-2:] == ("(`user` * 2)", "upper(`who`.`name`)")
    assert kept(table, "upper(who.name) = 'N3-7'") == (1, 1)
    with events.update_schema() as update:
        update.rename_column("who.name", "called")
        update.rename_column("user", "visitor")
    renamed = sec.open_table(events.refresh())
    assert kept(renamed, "upper(who.called) = 'N3-7'") == (1, 1)
    assert len(sec.prune(renamed, "visitor * 2 = 1000").blocks) == 0
    assert sec.describe_index(renamed).bloom == ("upper(`who`.`called`)",)
    events.append(rows_of_renamed(events))
    longer = sec.open_table(events.refresh())
    assert kept(longer, "upper(who.called) = 'NEW'") == (1, 1)
    sec.refresh_index(longer)
    assert kept(longer, "upper(who.called) = 'NEW'") == (1, 1)
    assert len(sec.prune(longer, "upper(who.called) = 'OLD'").blocks) == 0


def rows_of_renamed(table: Table) -> pa.Table:
    """A row with the new names."""
    row = {"day": [9], "visitor": [1], "who": [{"called": "new", "age": 1}]}
    return pa.table(row, schema=table.schema().as_arrow())


def test_columns_are_asked_for_by_their_names(spark: SparkSession, events: Table) -> None:
    table = sec.open_table(events)
    built = sec.build_index(
        table, spark=spark, sort_key=["day", "user DESC"], bloom=["who.name"], postings=["user"], gaps=["who.age"]
    )
    assert (built.sort_key, built.bloom, built.postings, built.gaps) == (
        ("day", "user DESC"),
        ("who.name",),
        ("user",),
        ("who.age",),
    )
    assert built.columns == ("day", "user", "who.name", "who.age")
    assert built.table_snapshot == events.refresh().current_snapshot().snapshot_id  # type: ignore[union-attr]
    assert sec.describe_index(table) == built
    assert sec.verify_index(table).sound
    with pytest.raises(UnknownColumn, match="nobody"):
        sec.build_index(table, spark=spark, bloom=["nobody"])
    with pytest.raises(UnknownColumn, match="nobody"):
        sec.build_index(table, spark=spark, auto=["nobody"])
    with pytest.raises(InvalidOption, match="gaps"):
        sec.build_index(table, spark=spark, gaps=["who.name"])


def test_auto_says_columns_by_their_names(spark: SparkSession, events: Table) -> None:
    table = sec.open_table(events)
    built = sec.build_index(table, spark=spark, auto=["user", "who.name"])
    assert [choice.column for choice in built.choices] == ["user", "who.name"]


def test_c12_a_renamed_column_keeps_its_index(spark: SparkSession, events: Table) -> None:
    table = sec.open_table(events)
    sec.build_index(table, spark=spark, sort_key=["day", "user"], bloom=["who.name"], pages=False)
    before = [kept(table, "day = 3 AND user > 90"), kept(table, "who.name = 'n5-8'"), kept(table, "user = 4")]
    with events.update_schema() as update:
        update.rename_column("day", "date").rename_column("who.name", "title").rename_column("user", "day")
    after = [kept(table, "date = 3 AND day > 90"), kept(table, "who.title = 'n5-8'"), kept(table, "day = 4")]
    assert after == before == [(1, 5), (1, 1), (4, 4)]
    assert sec.describe_index(table).sort_key == ("date", "day")
    assert sec.describe_index(table).bloom == ("who.title",)


def test_c12_a_new_column_under_an_old_name_has_no_index(spark: SparkSession, events: Table) -> None:
    """The old one's statistics would say that no user is 1000. Of files that were indexed before, nothing is known."""
    table = sec.open_table(events)
    sec.build_index(table, spark=spark, postings=["user"], sort_key=["user"])
    with events.update_schema() as update:
        update.delete_column("user")
    with events.update_schema() as update:
        update.add_column("user", LongType())
    events.append(rows(events, 4, user=[1000] * 100))
    assert kept(table, "user = 1000") == (5, 100)
    assert kept(table, "user IS NULL") == (4, 400)
    assert kept(table, "user = 4")[1] == 0
    assert sec.describe_index(table).postings == ("2",)
    sec.refresh_index(table, spark=spark)
    assert kept(table, "user = 1000") == (1, 100)
    assert kept(table, "user IS NULL") == (4, 400)


def test_c13_a_promoted_column_keeps_its_index(spark: SparkSession, events: Table) -> None:
    table = sec.open_table(events)
    sec.build_index(table, spark=spark, postings=["day"], pages=False)
    with events.update_schema() as update:
        update.update_column("day", LongType())
    events.append(rows(events, 4, day=[2**40] * 100))
    assert kept(table, "day = 3") == (1, 50)
    assert kept(table, f"day = {2**40}") == (1, 100)
    sec.refresh_index(table, spark=spark)
    assert kept(table, "day = 3") == (1, 50)
    assert kept(table, f"day = {2**40}") == (1, 100)


def test_a_refresh_reads_added_files_only(spark: SparkSession, events: Table) -> None:
    table = sec.open_table(events)
    assert isinstance(table, IcebergTable)
    sec.build_index(table, spark=spark, segment_blocks=1)
    segments = {file.name for file in table.store.files("segments")}
    events.append(rows(events, 4))
    assert kept(table, "day >= 6")[1] == 200
    refreshed = sec.refresh_index(table, spark=spark).index
    now = {file.name for file in table.store.files("segments")}
    assert segments < now and len(now - segments) == 1
    assert (refreshed.files, refreshed.table_snapshot) == (5, events.refresh().metadata.current_snapshot_id)
    events.delete("day < 4")
    assert sec.refresh_index(table, spark=spark).index.files == 3
    sec.vacuum_index(table, grace_seconds=-1)
    assert len(table.store.files("segments")) == 3
    assert len(table.store.files("manifests")) == 1
    assert sec.verify_index(table).sound


def test_c02_any_snapshot_is_planned_with_the_entries_that_fit(spark: SparkSession, events: Table) -> None:
    """An index of the present, read at the past; and of the past, after rollback and overwriting."""
    table = sec.open_table(events)
    past = events.refresh().current_snapshot()
    assert past is not None
    events.overwrite(rows(events, 9))
    sec.build_index(table, spark=spark, postings=["user"])
    assert kept(table, "day >= 0")[1] == 100
    then = sec.open_table(events, snapshot_id=past.snapshot_id)
    assert kept(then, "day >= 0") == (4, 400)
    assert "covers 0 of 4 files" in sec.prune(then, "day = 1").report.index
    events.manage_snapshots().rollback_to_snapshot(past.snapshot_id).commit()
    assert kept(table, "day >= 0") == (4, 400)
    sec.refresh_index(table, spark=spark)
    assert "covers 4 of 4 files" in sec.prune(table, "day = 1").report.index
    assert kept(table, "user = 4")[1] == 4


def test_segments_are_pruned_on_executors_too(spark: SparkSession, events: Table) -> None:
    table = sec.open_table(events)
    sec.build_index(table, spark=spark, segment_blocks=1, bloom=["who.name"])
    with events.update_schema() as update:
        update.rename_column("day", "date")
    for predicate in ("date = 3", "who.name = 'n5-8'", "user > 90 OR date IS NULL"):
        here = sec.prune(table, predicate, strict=True)
        there = sec.prune(table, predicate, strict=True, spark=spark, prune_on="executors")
        assert there.blocks.equals(here.blocks)
        assert "pruned by" in str(there.report.stages)


def test_an_index_of_another_table_covers_nothing(
    spark: SparkSession, catalog: Catalog, events: Table, tmp_path: Path
) -> None:
    """Of the same files even: the snapshots that added them are others."""
    place = str(tmp_path / "shared-index")
    sec.build_index(sec.open_table(events, index_location=place), spark=spark)
    other = catalog.create_table("db.other", SCHEMA)
    other.add_files([file.file.file_path for file in events.scan().plan_files()], check_duplicate_files=False)
    opened = sec.open_table(other, index_location=place)
    plan = sec.prune(opened, "day = 3", strict=True)
    assert "covers 0 of 4 files" in plan.report.index
    assert plan.count() == 50


def test_the_plan_says_what_it_is_of(events: Table) -> None:
    plan = sec.prune(sec.open_table(events), "day = 3")
    assert plan.files[0].startswith("file://") and plan.files[0].endswith(".parquet")
    assert plan.why(plan.files[0]).survives
    assert dataclasses.is_dataclass(plan.report)


def test_a_column_that_files_lack_is_not_null_where_their_partition_tells_it(catalog: Catalog) -> None:
    """C12: files that were added to a table as they were, without the columns of their directories."""
    schema = Schema(NestedField(1, "k", LongType()), NestedField(2, "p", IntegerType()))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "p"))
    made = catalog.create_table("db.added", schema, partition_spec=spec)
    for p in (5, 6):
        path = f"{made.location()}/data/{p}.parquet"
        stored = pa.table([pa.array([1, 2, 3], pa.int64())], schema=pa.schema([with_id("k", pa.int64(), 1)]))
        size = write_file(Path(path.removeprefix("file://")), stored).stat().st_size
        described = {"file_format": FileFormat.PARQUET, "record_count": 3, "file_size_in_bytes": size}
        file = DataFile.from_args(content=DataFileContent.DATA, file_path=path, partition=Record(p), **described)
        file.spec_id = spec.spec_id
        with made.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
            append.append_data_file(file)
    table = sec.open_table(made)
    filters = (FilterOption(BLOOM, "p"), FilterOption(POSTINGS, "p"))
    index_here(table, BuildOptions(filters=filters, gaps=("p",)))
    for predicate, count in (("p = 5", 3), ("p >= 6 OR k = 77", 3), ("p IS NULL", 0), ("p IS NOT NULL AND k = 1", 2)):
        assert sec.prune(table, predicate, strict=True, audit=1.0).to_arrow().num_rows == count
    assert sec.aggregate(table, "count(p) AS n, max(p) AS p", strict=True).to_pylist() == [{"n": 6, "p": 6}]
