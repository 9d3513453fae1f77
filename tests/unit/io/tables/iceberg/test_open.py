"""Opening Iceberg tables: every way, every snapshot, what is read again, and what is said where there is none."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

import secateur as sec
from secateur.errors import StalePlan, TableNotFound, UnknownColumn, UnknownSnapshot, UnsupportedTable
from secateur.index.model import BuildOptions
from secateur.io.tables.iceberg import snapshot
from secateur.io.tables.iceberg.open import newest_metadata, open_iceberg, selection
from secateur.io.tables.iceberg.table import IcebergTable
from tests.support.formats.iceberg_rows import SCHEMA, ids, rows
from tests.support.profiles import takes_seconds
from tests.support.stores.local_build import index_here


@pytest.fixture
def events(catalog: Catalog) -> Table:
    """Three snapshots of one, two and three rows; a branch at the first, a tag at the second."""
    table = catalog.create_table("db.events", SCHEMA)
    for i in range(3):
        table.append(rows(i))
    first, second, _ = (table_snapshot.snapshot_id for table_snapshot in table.metadata.snapshots)
    table.manage_snapshots().create_branch(first, "old").create_tag(second, "named").commit()
    return table.refresh()


def test_a_table_is_opened_by_its_catalog(catalog: Catalog, events: Table) -> None:
    assert ids(sec.open_table("db.events", catalog=catalog)) == [0, 1, 2]
    assert ids(sec.open_table(events)) == [0, 1, 2]
    properties = {"name": catalog.name, **catalog.properties}
    assert ids(sec.open_table("db.events", catalog=properties)) == [0, 1, 2]


def test_a_configured_catalog_is_part_of_the_name(
    catalog: Catalog, events: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As PyIceberg is configured, here by environment variables."""
    from pyiceberg.utils.config import Config

    for key, value in catalog.properties.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__TESTS__{key.upper()}", value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())  # which PyIceberg reads once, when it is imported
    assert ids(sec.open_table("tests.db.events")) == [0, 1, 2]
    with pytest.raises(TableNotFound, match=r"no table db\.nothing"):
        sec.open_table("tests.db.nothing")


def test_a_table_is_opened_without_a_catalog(events: Table, tmp_path: Path) -> None:
    """By a metadata file, which never changes, or by its directory, of which the newest is taken."""
    at_second = events.metadata.metadata_log[2].metadata_file
    assert ids(sec.open_table(at_second)) == [0, 1]
    by_directory = sec.open_table(events.location())
    assert ids(by_directory) == [0, 1, 2]
    events.append(rows(7))
    assert ids(by_directory) == [0, 1, 2, 7]
    assert ids(sec.open_table(events.location().removeprefix("file://"))) == [0, 1, 2, 7]


def test_a_version_hint_names_the_newest_or_less(events: Table, tmp_path: Path) -> None:
    """The layout of Hadoop tables: a writer creates the next version before the hint names it."""
    root = tmp_path / "hadoop"
    (root / "metadata").mkdir(parents=True)
    for version, file in enumerate(["v1.metadata.json", "v2.metadata.json", "v10.metadata.json"]):
        shutil.copy(
            events.metadata.metadata_log[version + 1].metadata_file.removeprefix("file://"), root / "metadata" / file
        )
    (root / "metadata" / "version-hint.text").write_text("2")
    assert newest_metadata(str(root))[0].endswith("/v10.metadata.json")
    (root / "metadata" / "v10.metadata.json").unlink()
    assert newest_metadata(str(root))[0].endswith("/v2.metadata.json")
    (root / "metadata" / "version-hint.text").unlink()
    assert newest_metadata(str(root))[0].endswith("/v2.metadata.json")


def test_of_two_newest_files_a_catalog_has_to_tell(events: Table) -> None:
    """One of them is of a commit that failed."""
    newest = Path(events.metadata_location.removeprefix("file://"))
    shutil.copy(newest, newest.with_name(newest.name.replace("-", "-0", 1)))
    with pytest.raises(TableNotFound, match="of which a catalog knows the right one"):
        sec.open_table(events.location())


def test_snapshots_of_the_past(events: Table) -> None:
    first, second, third = events.metadata.snapshots
    opened = [
        sec.open_table(events, snapshot_id=table_snapshot.snapshot_id) for table_snapshot in (first, second, third)
    ]
    assert [ids(table) for table in opened] == [[0], [0, 1], [0, 1, 2]]
    assert ids(sec.open_table(events, ref="old")) == [0]
    assert ids(sec.open_table(events, ref="named")) == [0, 1]
    moment = dt.datetime.fromtimestamp(second.timestamp_ms / 1000, dt.UTC)
    assert ids(sec.open_table(events, as_of=moment)) == [0, 1]
    assert ids(sec.open_table(events, as_of=moment.isoformat())) == [0, 1]
    assert ids(sec.open_table(events, as_of=moment.replace(tzinfo=None))) == [0, 1]


def test_a_past_snapshot_has_the_schema_of_its_time_and_a_branch_that_of_the_table(events: Table) -> None:
    with events.update_schema() as update:
        update.rename_column("name", "title")
    events.append(pa.table({"id": pa.array([9], pa.int64()), "title": ["t"]}))
    then = sec.open_table(events, snapshot_id=events.metadata.snapshots[0].snapshot_id)
    assert sec.prune(then, "name = 'n0'").to_arrow().num_rows == 1
    assert sec.prune(sec.open_table(events, ref="old"), "title = 'n0'").to_arrow().num_rows == 1
    with pytest.raises(UnknownColumn):
        sec.prune(then, "title = 'n0'")


def test_what_is_not_there_is_said(catalog: Catalog, events: Table, tmp_path: Path) -> None:
    with pytest.raises(UnknownSnapshot, match="has no snapshot 5: there are "):
        sec.open_table(events, snapshot_id=5)
    with pytest.raises(UnknownSnapshot, match="had no snapshot at 1999"):
        sec.open_table(events, as_of="1999-01-01")
    with pytest.raises(UnknownSnapshot, match="no branch or tag 'new': there are main, named, old"):
        sec.open_table(events, ref="new")
    with pytest.raises(ValueError, match="give one of them"):
        sec.open_table(events, ref="old", snapshot_id=1)
    with pytest.raises(ValueError, match="Invalid isoformat"):
        sec.open_table(events, as_of="yesterday")
    with pytest.raises(TableNotFound, match=r"no table db\.nothing"):
        sec.open_table("db.nothing", catalog=catalog)
    with pytest.raises(TableNotFound, match="cannot read the Iceberg metadata"):
        sec.open_table(str(tmp_path / "missing.metadata.json"))
    with pytest.raises(TypeError, match="catalog is a catalog of PyIceberg"):
        sec.open_table("db.events", catalog=3)
    with pytest.raises(ValueError, match="leave out schema"):
        sec.open_table(events, schema=pa.schema([]))
    (tmp_path / "plain").mkdir()
    with pytest.raises(ValueError, match="has no snapshots to choose from"):
        sec.open_table(tmp_path / "plain", ref="old")


def test_c20_partitions_of_doubles_are_no_floats(catalog: Catalog) -> None:
    """Nor those of an index beside the table, in which manifests may be kept that were read as floats."""
    values = [0.1, 16777217.0, 1e300, -0.0, None]
    doubles = pa.table({"id": range(5), "x": pa.array(values, pa.float64())})
    table = catalog.create_table("db.doubles", doubles.schema)
    with table.update_spec() as spec:
        spec.add_identity("x")
    table.append(doubles)
    opened = sec.open_table(table)
    for _ in range(2):
        for i, value in enumerate(values[:3]):
            assert ids(opened, f"x = {value!r}D") == [i]
        assert ids(opened, "x > 1e299D") == [2]
        assert ids(opened, "x = 0D") == [3]
        index_here(opened, BuildOptions())
        opened = sec.open_table(table)


def with_column(table: Table, type_: str, default: object = None) -> None:
    """Add a column to the table's metadata file, in which PyIceberg writes neither all types nor defaults."""
    place = Path(table.metadata_location.removeprefix("file://"))
    metadata = json.loads(place.read_text())
    column = {"id": 99, "name": "v", "required": False, "type": type_}
    metadata["schemas"][-1]["fields"].append(column if default is None else {**column, "initial-default": default})
    place.write_text(json.dumps({**metadata, "format-version": 3, "next-row-id": 3}))


@pytest.mark.parametrize(
    ("type_", "default", "message"),
    [
        ("variant", None, r"type variant, which PyIceberg .* does not know"),
        ("timestamp_ns", "2026-01-01T00:00:00.1", r"timestamp_ns with a default, which PyIceberg .* does not know"),
    ],
)
def test_a_column_that_pyiceberg_cannot_read_is_named(
    catalog: Catalog, events: Table, type_: str, default: object, message: str
) -> None:
    with_column(events, type_, default)
    with pytest.raises(UnsupportedTable, match=message):
        sec.open_table(events.metadata_location)
    with pytest.raises(UnsupportedTable, match=message):
        sec.open_table("db.events", catalog=catalog)


def test_c12_a_uuid_is_what_older_files_have_by_default(events: Table) -> None:
    text = "eb26bdb1-a1d8-4aa6-990e-da940875492c"
    with_column(events, "uuid", text)
    opened = sec.open_table(events.metadata_location)
    assert sec.prune(opened, f"v = '{text}'", strict=True).to_arrow()["v"].to_pylist() == [text] * 3
    assert ids(opened, f"v <> '{text}' OR v IS NULL") == []


def test_broken_metadata_is_named(events: Table) -> None:
    file = Path(events.metadata_location.removeprefix("file://"))
    file.write_text(json.dumps({"format-version": 2}))
    with pytest.raises(TableNotFound, match="cannot read the Iceberg metadata"):
        sec.open_table(events.metadata_location)


@pytest.mark.parametrize("what", ["manifest list", "manifest"])
@pytest.mark.parametrize("damage", [b"", b"Obj\x01", None])
def test_broken_manifests_are_named(events: Table, what: str, damage: bytes | None) -> None:
    """They are data: without them nobody knows the rows of the table."""
    snapshot = events.current_snapshot()
    assert snapshot is not None
    location = snapshot.manifest_list if what == "manifest list" else snapshot.manifests(events.io)[0].manifest_path
    file = Path(location.removeprefix("file://"))
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage)
    with pytest.raises(TableNotFound, match=f"cannot read the {what} .*{file.name}"):
        sec.prune(sec.open_table(events), "true")


def test_a_table_without_snapshots_is_empty(catalog: Catalog) -> None:
    empty = sec.open_table(catalog.create_table("db.empty", SCHEMA))
    plan = sec.prune(empty, "id = 1", strict=True)
    assert (plan.count(), plan.to_arrow().schema.names) == (0, ["id", "name"])


def test_other_formats_of_files_are_refused_by_name(events: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody here writes a table of ORC files: the manifest says so of Parquet."""
    real = snapshot.read_manifest

    def orc(io: Any, manifest: Any) -> Any:
        contents = real(io, manifest)
        formats = pa.array(["ORC"] * contents.files.num_rows)
        at = contents.files.schema.get_field_index("format")
        columns = [*contents.files.columns[:at], formats, *contents.files.columns[at + 1 :]]
        return type(contents)(
            pa.RecordBatch.from_arrays(columns, schema=contents.files.schema), *list(vars(contents).values())[1:]
        )

    monkeypatch.setattr(snapshot, "read_manifest", orc)
    with pytest.raises(UnsupportedTable, match=r"\.parquet is a file of ORC"):
        sec.prune(sec.open_table(events), "true")


# ---- what is read again ----------------------------------------------------------------------------------------------


@pytest.fixture
def read_manifests(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The manifests that are read from now on."""
    paths: list[str] = []
    real = snapshot.read_manifest

    def counted(io: Any, manifest: Any) -> Any:
        paths.append(manifest.manifest_path)
        return real(io, manifest)

    monkeypatch.setattr(snapshot, "read_manifest", counted)
    yield paths


def test_a_new_snapshot_reads_new_manifests_only(events: Table, read_manifests: list[str]) -> None:
    opened = sec.open_table(events)
    assert ids(opened) == [0, 1, 2]
    assert len(read_manifests) == 3
    assert ids(opened) == [0, 1, 2]
    assert len(read_manifests) == 3
    events.append(rows(3))
    assert ids(opened) == [0, 1, 2, 3]
    assert len(read_manifests) == 4


def test_of_the_snapshot_that_an_index_covers_no_manifest_is_read(events: Table, read_manifests: list[str]) -> None:
    """By a process that has nothing in memory; and of a later one, what came since."""
    first = sec.open_table(events)
    assert isinstance(first, IcebergTable)
    index_here(first, BuildOptions())
    read_manifests.clear()
    assert ids(sec.open_table(events), "id >= 1") == [1, 2]
    assert read_manifests == []
    events.append(rows(3))
    assert ids(sec.open_table(events), "id >= 1") == [1, 2, 3]
    assert len(read_manifests) == 1


@takes_seconds
def test_manifests_that_are_kept_broken_are_read_themselves(events: Table, read_manifests: list[str]) -> None:
    """Every byte of the file may be another, and it may be cut, empty or gone: the answer stays."""
    first = sec.open_table(events)
    assert isinstance(first, IcebergTable)
    index_here(first, BuildOptions())
    (file,) = Path(first.store.root).glob("manifests/*")
    whole = file.read_bytes()
    for damaged in (
        b"",
        whole[:-1],
        whole[: len(whole) // 2],
        *(_flipped(whole, at) for at in range(0, len(whole), 97)),
    ):
        file.write_bytes(damaged)
        assert ids(sec.open_table(events), "id >= 1") == [1, 2]
    file.unlink()
    read_manifests.clear()
    assert ids(sec.open_table(events), "id >= 1") == [1, 2]
    assert len(read_manifests) == 3
    assert not sec.verify_index(first).sound


def _flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]


def test_metadata_may_be_old_for_as_long_as_is_said(events: Table) -> None:
    patient = sec.open_table(events, freshness=3600)
    assert ids(patient) == [0, 1, 2]
    events.append(rows(3))
    assert ids(patient) == [0, 1, 2]
    assert isinstance(patient, IcebergTable)
    patient.snapshot(fresh=True)
    assert ids(patient) == [0, 1, 2, 3]


def test_paths_may_be_relative(events: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ids(sec.open_table("warehouse/db/events")) == [0, 1, 2]
    opened = sec.open_table("~/warehouse/db/events", index_location="~/my-index")
    assert ids(opened) == [0, 1, 2]
    assert opened.store.root == str(tmp_path / "my-index")


def test_a_table_that_was_made_again_is_another(catalog: Catalog, events: Table, tmp_path: Path) -> None:
    """Dropped and created at the same place, its first metadata file has the name of the old one."""
    other = catalog.create_table("db.other", SCHEMA)
    other.append(rows(8))
    root = tmp_path / "hadoop" / "metadata"
    root.mkdir(parents=True)
    tables = []
    for table in (events, other.refresh()):
        shutil.copy(table.metadata_location.removeprefix("file://"), root / "v1.metadata.json")
        tables.append(sec.open_table(tmp_path / "hadoop") if not tables else tables[0])
        assert ids(tables[-1]) == ([0, 1, 2] if table is events else [8])


def test_c53_a_table_that_was_made_again_is_another_to_a_function(catalog: Catalog, tmp_path: Path) -> None:
    """Spark's catalog names the metadata file: v1 for a Hadoop table that was dropped, and for the next one."""
    place = tmp_path / "v1.metadata.json"
    opened = None
    for name, wanted in (("empty", []), ("filled", [8])):
        table = catalog.create_table(f"db.{name}", SCHEMA)
        if wanted:
            table.append(rows(8))
        shutil.copy(table.refresh().metadata_location.removeprefix("file://"), place)
        opened = opened or open_iceberg(lambda: str(place), selection=selection(None, None, None))
        assert ids(opened) == wanted
        assert ids(open_iceberg(lambda: str(place), selection=selection(None, None, None))) == wanted


def test_a_vanished_file_ends_the_patience(events: Table) -> None:
    """The next query looks for a new snapshot, however old metadata may be."""
    patient = sec.open_table(events, freshness=3600)
    assert ids(patient) == [0, 1, 2]
    old = [task.file.file_path for task in events.scan().plan_files()]
    events.overwrite(rows(5))
    for path in old:
        Path(path.removeprefix("file://")).unlink()
    with pytest.raises(StalePlan, match="has vanished since the table was listed: plan again"):
        ids(patient)
    assert ids(patient) == [5]
