"""Tables about a table: what ``sec.inspect`` says of directories and of Iceberg tables, and the command line of it."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform
from pyiceberg.types import (
    BinaryType,
    DecimalType,
    ListType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimeType,
    UUIDType,
)

import secateur as sec
from secateur.cli import main
from secateur.cli.tables import TABLES
from secateur.index.model import BuildOptions, FilterOption
from tests.support.formats.iceberg_deletes import delete_positions
from tests.support.profiles import takes_seconds
from tests.support.stores.local_build import index_here

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "name", StringType()),
    NestedField(3, "ts", TimestampType()),
    NestedField(4, "tags", ListType(5, StringType(), element_required=False)),
)
SPEC = PartitionSpec(PartitionField(3, 1000, DayTransform(), "day"), PartitionField(1, 1001, BucketTransform(2), "b"))
OPTIONS = BuildOptions(
    sort_key=("id",), filters=(FilterOption("bloom", "id"), FilterOption("ngram", "name", gram=3)), segment_blocks=2
)


def rows(first: int, n: int) -> pa.Table:
    numbers = range(first, first + n)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "name": [f"n{i}" for i in numbers],
            "ts": pa.array([dt.datetime(2024, 1, 1) + dt.timedelta(hours=i) for i in numbers], pa.timestamp("us")),
            "tags": [[str(i)] for i in numbers],
        }
    )


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    loaded = load_catalog("inspected", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/w")
    loaded.create_namespace("db")
    return loaded


@pytest.fixture
def events(catalog: Catalog) -> Table:
    """30 rows in 4 files, which are indexed; 30 more in 4 others; two rows of the first file deleted, by positions."""
    table = catalog.create_table("db.events", SCHEMA, partition_spec=SPEC)
    table.append(rows(0, 30))
    index_here(sec.open_table(table), OPTIONS)
    with table.manage_snapshots() as update:
        update.create_tag(snapshot_of(table), "indexed")
    table.append(rows(30, 30))
    delete_positions(table, min(table.inspect.files()["file_path"].to_pylist()), [0, 1])
    return table


def snapshot_of(table: Table) -> int:
    current = table.current_snapshot()
    assert current is not None
    return current.snapshot_id


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Three days, of 40 rows in 2 blocks each, indexed; a fourth that came later, and the second was changed since."""
    root = tmp_path / "lake"
    for day in (1, 2, 3):
        write_day(root, day, 40)
    options = BuildOptions(filters=(FilterOption("postings", "id"),), sort_key=("id",), segment_blocks=2)
    index_here(sec.open_table(str(root)), options)
    write_day(root, 2, 50)
    write_day(root, 4, 40)
    return root


def write_day(root: Path, day: int, n: int) -> None:
    path = root / f"day=2024-01-0{day}" / "rows.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows(100 * day, n).drop_columns(["tags"]), path, row_group_size=20, write_page_index=True)


def by_name(table: pa.Table, **where: Any) -> dict[str, Any]:
    """The only row with these values."""
    (row,) = (row for row in table.to_pylist() if all(row[name] == value for name, value in where.items()))
    return row


# ---- snapshots and manifests -----------------------------------------------------------------------------------------


def test_snapshots_are_those_of_iceberg(events: Table) -> None:
    shown_snapshots = sec.inspect.snapshots(sec.open_table(events))
    theirs = events.inspect.snapshots()
    assert shown_snapshots["committed_at"].cast(pa.timestamp("ms")).equals(theirs["committed_at"])
    for name in ("snapshot_id", "parent_id", "operation", "manifest_list", "summary"):
        assert shown_snapshots[name].to_pylist() == theirs[name].to_pylist(), name
    assert shown_snapshots["sequence_number"].to_pylist() == [1, 2, 3]
    assert shown_snapshots["refs"].to_pylist() == [["indexed"], [], ["main"]]
    assert shown_snapshots["selected"].to_pylist() == [False, False, True]
    past = sec.open_table(events, ref="indexed")
    assert sec.inspect.snapshots(past)["selected"].to_pylist() == [True, False, False]


def test_manifests_are_those_of_iceberg(events: Table) -> None:
    manifests = sec.inspect.manifests(sec.open_table(events)).to_pylist()
    theirs = events.inspect.manifests().to_pylist()
    for manifest, their in zip(manifests, theirs, strict=True):
        kind = "data" if their["content"] == 0 else "delete"
        assert manifest["content"] == ("data" if their["content"] == 0 else "deletes")
        assert (manifest["manifest"], manifest["bytes"]) == (their["path"], their["length"])
        assert (manifest["spec_id"], manifest["snapshot_id"]) == (
            their["partition_spec_id"],
            their["added_snapshot_id"],
        )
        for status in ("added", "existing", "deleted"):
            assert manifest[f"{status}_files"] == their[f"{status}_{kind}_files_count"]
        summaries = [(part["contains_null"], part["lower"], part["upper"]) for part in manifest["partitions"]]
        expected = [(s["contains_null"], s["lower_bound"], s["upper_bound"]) for s in their["partition_summaries"]]
        assert summaries == expected
        assert [part["field"] for part in manifest["partitions"]] == ["day", "b"]
    assert [m["added_rows"] for m in manifests] == [30, 30, 2]
    past = sec.inspect.manifests(sec.open_table(events, ref="indexed"))
    assert past["manifest"].to_pylist() == [theirs[1]["path"]]


def test_a_directory_has_neither(lake: Path, events: Table) -> None:
    for name in ("snapshots", "manifests"):
        table_of = getattr(sec.inspect, name)
        empty = table_of(sec.open_table(str(lake)))
        assert len(empty) == 0
        assert empty.schema == table_of(sec.open_table(events)).schema


# ---- files -----------------------------------------------------------------------------------------------------------


def assert_files_are_icebergs(table: Table) -> pa.Table:
    files = sec.inspect.files(sec.open_table(table))
    theirs = {row["file_path"]: row for row in table.inspect.files().to_pylist()}
    partitions = {
        row["data_file"]["file_path"]: (row["data_file"]["partition"], row["snapshot_id"], row["sequence_number"])
        for row in table.inspect.entries().to_pylist()
        if row["status"] != 2
    }
    assert sorted(files["file"].to_pylist()) == sorted(theirs)
    for file_row in files.to_pylist():
        their = theirs[file_row["file"]]
        assert file_row["content"] == ("data", "position deletes", "equality deletes")[their["content"]]
        assert (file_row["format"], file_row["bytes"]) == (their["file_format"].upper(), their["file_size_in_bytes"])
        assert (file_row["row_count"], file_row["spec_id"]) == (their["record_count"], their["spec_id"])
        partition, *ids = partitions[file_row["file"]]
        assert [file_row["snapshot_id"], file_row["sequence_number"]] == ids
        assert file_row["partition"] == partition
    return files


def test_files_are_those_of_iceberg(events: Table) -> None:
    files = assert_files_are_icebergs(events)
    data = files.slice(0, 8)
    assert data["file"].to_pylist() == sorted(data["file"].to_pylist())
    assert data["delete_files"].to_pylist() == [1, 0, 0, 0, 0, 0, 0, 0]
    assert data["indexed"].to_pylist() == [number == 1 for number in data["sequence_number"].to_pylist()]
    (deletes,) = files.slice(8).to_pylist()
    assert (deletes["content"], deletes["indexed"], deletes["delete_files"]) == ("position deletes", None, None)


def test_files_of_the_past(events: Table) -> None:
    files = sec.inspect.files(sec.open_table(events, ref="indexed"))
    assert files["row_count"].to_pylist() == [10, 14, 4, 2]
    assert files["indexed"].to_pylist() == [True] * 4
    assert files["delete_files"].to_pylist() == [0] * 4


def test_files_of_many_partition_specs(catalog: Catalog) -> None:
    """Types that Spark has otherwise; a field that was renamed, one that was dropped, and NULL.

    PyIceberg shows values of a renamed field as NULL.
    """
    schema = Schema(
        NestedField(1, "amount", DecimalType(9, 2)),
        NestedField(2, "at", TimeType()),
        NestedField(4, "data", BinaryType()),
        NestedField(5, "name", StringType()),
    )
    fields = [(1, IdentityTransform()), (2, IdentityTransform()), (4, TruncateTransform(2))]
    spec = PartitionSpec(*(PartitionField(i, 1000 + i, transform, f"p{i}") for i, transform in fields))
    table = catalog.create_table("db.typed", schema, partition_spec=spec)
    data = pa.Table.from_pylist(
        [
            {"amount": 3, "at": dt.time(1, 2, 3), "data": b"abc", "name": "x"},
            {"amount": None, "at": None, "data": None, "name": None},
        ],
        pa.schema(
            [
                ("amount", pa.decimal128(9, 2)),
                ("at", pa.time64("us")),
                ("data", pa.binary()),
                ("name", pa.string()),
            ]
        ),
    )
    table.append(data)
    with table.update_spec() as update:
        update.remove_field("p4")
        update.add_field("name", IdentityTransform(), "name_is")
    table.append(data)
    files = assert_files_are_icebergs(table)
    assert files.schema.field("partition").type.names == ["p1", "p2", "p4", "name_is"]
    with table.update_spec() as update:
        update.rename_field("p1", "money")
    renamed = sec.inspect.files(sec.open_table(table))["partition"].to_pylist()
    assert [p["money"] for p in renamed] == [p["p1"] for p in files["partition"].to_pylist()]


def test_partitions_by_uuids(catalog: Catalog) -> None:
    """Of which PyIceberg's own table of files cannot be made."""
    schema, spec = Schema(NestedField(1, "code", UUIDType())), PartitionField(1, 1000, IdentityTransform(), "code")
    table = catalog.create_table("db.coded", schema, partition_spec=PartitionSpec(spec))
    table.append(pa.table({"code": pa.array([UUID(int=7).bytes, None], pa.binary(16))}))
    partitions = sec.inspect.files(sec.open_table(table))["partition"].to_pylist()
    assert sorted(partitions, key=str) == [{"code": str(UUID(int=7))}, {"code": None}]


def test_tables_without_rows(catalog: Catalog) -> None:
    empty = sec.open_table(catalog.create_table("db.empty", SCHEMA))
    for name in ("snapshots", "manifests", "files", "blocks", "segments"):
        assert len(getattr(sec.inspect, name)(empty)) == 0, name
    assert set(sec.inspect.coverage(empty)["why"].to_pylist()) == {"there is no index"}


def test_files_of_a_directory(lake: Path) -> None:
    files = sec.inspect.files(sec.open_table(str(lake)))
    assert files["file"].to_pylist() == [f"day=2024-01-0{day}/rows.parquet" for day in (1, 2, 3, 4)]
    assert files["partition"].to_pylist() == [{"day": dt.date(2024, 1, day)} for day in (1, 2, 3, 4)]
    assert files["indexed"].to_pylist() == [True, False, True, False]
    assert files["row_count"].to_pylist() == [40, None, 40, None]
    assert files["bytes"].to_pylist() == [(lake / name).stat().st_size for name in files["file"].to_pylist()]
    modified = [(lake / name).stat().st_mtime_ns for name in files["file"].to_pylist()]
    assert files["modified"].cast(pa.int64()).to_pylist() == modified


# ---- blocks and segments ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", ["directory", "iceberg"])
def test_blocks_are_those_of_a_plan_of_everything(lake: Path, events: Table, format_: str) -> None:
    table: Any = sec.open_table(str(lake)) if format_ == "directory" else sec.open_table(events)
    blocks = sec.inspect.blocks(table)
    plan = sec.prune(table, "TRUE", strict=True).blocks
    columns = ["file", "row_group", "row_count", "bytes"]
    assert blocks.select(columns).to_pylist() == sorted(
        plan.select(columns).to_pylist(), key=lambda row: [*row.values()]
    )
    indexed = dict(zip(*(sec.inspect.files(table)[name].to_pylist() for name in ("file", "indexed")), strict=True))
    for block in blocks.to_pylist():
        assert (block["segment"] is not None) == indexed[block["file"]]


def test_segments(lake: Path, events: Table) -> None:
    segments = sec.inspect.segments(sec.open_table(str(lake))).to_pylist()
    assert [segment["files"] for segment in segments] == [1, 1, 1]
    assert [segment["live_files"] for segment in segments] == [1, 0, 1]  # one was changed since
    assert [(segment["lower"]["id"], segment["upper"]["id"]) for segment in segments] == [
        (100, 139),
        (200, 239),
        (300, 339),
    ]
    sizes = [(lake / "_secateur" / segment["name"]).stat().st_size for segment in segments]
    assert [segment["bytes"] for segment in segments] == sizes
    of_iceberg = sec.inspect.segments(sec.open_table(events)).to_pylist()
    assert [(segment["lower"], segment["upper"]) for segment in of_iceberg] == [
        ({"id": 0}, {"id": 23}),
        ({"id": 24}, {"id": 29}),
    ]
    assert sum(segment["row_count"] for segment in of_iceberg) == 30


def test_an_index_calls_columns_as_the_table_does_now(events: Table) -> None:
    with events.update_schema() as update:
        update.rename_column("id", "number")
    table = sec.open_table(events)
    assert sec.inspect.segments(table).schema.field("lower").type.names == ["number"]
    assert by_name(sec.inspect.coverage(table), column="number", structure="bloom")["files"] == 4


# ---- coverage --------------------------------------------------------------------------------------------------------


def test_coverage_of_a_directory(lake: Path) -> None:
    coverage = sec.inspect.coverage(sec.open_table(str(lake)))
    assert {(row["column"], row["structure"]) for row in coverage.to_pylist()} == {
        *((name, what) for name in ("id", "name", "ts") for what in ("zone map", "pages")),
        ("id", "postings"),
    }
    for row in coverage.to_pylist():
        assert (row["files"], row["blocks"], row["row_count"]) == (2, 4, 80)
        assert (row["files_without_entry"], row["files_changed"], row["files_without_structure"]) == (1, 1, 0)
        assert row["why"] == "1 file not in the index, 1 file changed since"


def test_coverage_of_an_iceberg_table(events: Table) -> None:
    table = sec.open_table(events)
    coverage = sec.inspect.coverage(table)
    ngram = by_name(coverage, column="name", structure="ngram")
    assert (ngram["setting"], ngram["files"], ngram["row_count"]) == ("3 bytes", 4, 30)
    assert ngram["why"] == "4 files not in the index"
    assert "have no order" in by_name(coverage, column="tags")["why"]
    past = sec.inspect.coverage(sec.open_table(events, ref="indexed"))
    assert by_name(past, column="id", structure="bloom")["why"] is None


def test_a_column_that_came_later_is_not_indexed(events: Table) -> None:
    with events.update_schema() as update:
        update.add_column("more", LongType())
    row = by_name(sec.inspect.coverage(sec.open_table(events)), column="more")
    assert (row["files"], row["files_without_structure"]) == (0, 4)
    assert "lacks the column" in row["why"]


def test_without_an_index_nothing_is_covered(lake: Path) -> None:
    table = sec.open_table(str(lake))
    sec.drop_index(table)
    assert len(sec.inspect.segments(table)) == 0
    assert sec.inspect.blocks(table)["segment"].null_count == len(sec.inspect.blocks(table)) == 9
    row = by_name(sec.inspect.coverage(table), column="id")
    assert (row["files"], row["files_without_entry"], row["why"]) == (0, 4, "there is no index")


# ---- the command line ------------------------------------------------------------------------------------------------


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_shown(lake: Path, events: Table, name: str) -> None:
    for place in (str(lake), events.metadata_location):
        table = getattr(sec.inspect, name)(sec.open_table(place))
        parsed = json.loads(run("inspect", place, name, "--json").stdout)
        assert [list(row) for row in parsed] == [table.column_names] * len(table)
        text = run("inspect", place, name)
        assert text.exit_code == 0
        assert len(text.stdout.splitlines()) == 2 + len(table)


def test_columns_of_an_index_are_named_as_in_the_table(events: Table) -> None:
    columns_by_name = {
        column["name"]: column
        for column in json.loads(run("inspect", events.metadata_location, "--json").stdout)["columns"]
    }
    assert list(columns_by_name) == ["id", "name", "ts"]
    assert (columns_by_name["id"]["filters"], columns_by_name["id"]["sort_key"]) == (["bloom"], 1)


def test_commands_choose_a_snapshot(events: Table) -> None:
    place = events.metadata_location
    (first, *_) = events.metadata.snapshots
    then = dt.datetime.fromtimestamp(first.timestamp_ms / 1000, dt.UTC).isoformat()
    for chosen in (("--snapshot-id", str(first.snapshot_id)), ("--as-of", then), ("--ref", "indexed")):
        assert run("prune", place, "TRUE", "--count", *chosen).stdout == "30\n"
        assert len(json.loads(run("inspect", place, "files", "--json", *chosen).stdout)) == 4
        assert json.loads(run("verify", place, "--json", *chosen).stdout)["files_uncovered"] == 0
    assert run("prune", place, "TRUE", "--count").stdout == "58\n"


@takes_seconds
def test_commands_find_a_catalog(events: Table, tmp_path: Path) -> None:
    settings = {"TYPE": "sql", "URI": f"sqlite:///{tmp_path}/c.db", "WAREHOUSE": f"file://{tmp_path}/w"}
    environment = {f"PYICEBERG_CATALOG__INSPECTED__{name}": value for name, value in settings.items()}
    for place in (["db.events", "--catalog", "inspected"], ["inspected.db.events"]):
        done = subprocess.run(
            [sys.executable, "-m", "secateur", "prune", *place, "--count", "--", "TRUE"],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **environment},
        )
        assert done.stdout == "58\n", done.stderr


def test_choices_that_do_not_fit_are_mistakes(lake: Path, events: Table) -> None:
    place = events.metadata_location
    for arguments, message in (
        ((str(lake), "--snapshot-id", "1"), "no snapshots to choose from"),
        ((place, "--snapshot-id", "1"), "has no snapshot 1"),
        ((place, "--as-of", "yesterday"), "is not a time"),
        ((place, "--ref", "main", "--snapshot-id", "1"), "give one of them"),
        ((place, "nonsense"), "nonsense"),
    ):
        result = run("inspect", *arguments)
        assert result.exit_code == 2, arguments
        assert message in result.stderr
        assert "Traceback" not in result.stderr


def test_the_clustering_by_several_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 1, 2, 2], "b": [1, 2, 1, 2]}), tmp_path / "0.parquet", row_group_size=2)
    parsed = json.loads(run("inspect", tmp_path, "clustering", "--by", "a,b", "--json").stdout)
    assert [(row["column"], row["max_depth"]) for row in parsed] == [("a", 1), ("b", 2), ("a, b", 1)]
    refused = run("inspect", tmp_path, "files", "--by", "a")
    assert refused.exit_code == 2 and "--by is about the clustering" in refused.output
