"""What came between snapshots: which are on the way, and what is said where they are not known."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

import secateur as sec
from secateur.errors import MixedRewrite, UnknownSnapshot
from secateur.io.tables.iceberg.history import _added_by, _Origins
from secateur.io.tables.iceberg.table import IcebergTable
from secateur.io.tables.table import Table as AnyTable
from tests.support.drawn.row_histories import IcebergWriter
from tests.support.formats.delta_tables import numbered
from tests.support.formats.iceberg_rows import SCHEMA, rows


@pytest.fixture
def events(catalog: Catalog) -> Table:
    """Three snapshots, each of which appended some rows."""
    table = catalog.create_table("db.events", SCHEMA)
    for i in range(3):
        table.append(rows(i))
    return table.refresh()


def snapshots(table: Table) -> list[int]:
    return [snapshot.snapshot_id for snapshot in table.metadata.snapshots]


def new(table: Table | AnyTable, since: int) -> list[int]:
    ids: list[int] = sorted(sec.prune(table, "true", since=since).to_arrow()["id"].to_pylist())
    return ids


def edit_metadata(table: Table, edit: object) -> None:
    """Writes the newest metadata file anew."""
    path = Path(table.metadata_location.removeprefix("file://"))
    metadata = json.loads(path.read_text())
    edit(metadata)  # type: ignore[operator]
    path.write_text(json.dumps(metadata))


def test_new_rows(catalog: Catalog, events: Table) -> None:
    first, second, third = snapshots(events)
    table = sec.open_table(events)
    assert [new(table, since) for since in (first, second, third)] == [[1, 2], [2], []]
    then = sec.open_table("db.events", catalog=catalog, snapshot_id=second)
    assert new(then, first) == [1]
    plan = sec.prune(then, "true", since=first)
    assert plan.snapshot == second
    assert f"of 2 files, 1 came after snapshot {first}" in plan.explain()


def test_aggregates_of_new_rows(events: Table) -> None:
    first, second, third = snapshots(events)
    table = sec.open_table(events)

    def counted(since: int, where: str) -> list[dict[str, int | None]]:
        answer: list[dict[str, int | None]] = sec.aggregate(
            table, "count(*) AS n, min(id) AS id", where, since=since, params={"least": 2}
        ).to_pylist()
        return answer

    assert counted(first, "true") == [{"n": 2, "id": 1}]
    assert counted(first, "id >= :least") == [{"n": 1, "id": 2}]
    assert counted(second, "id < :least") == [{"n": 0, "id": None}]
    assert counted(third, "true") == [{"n": 0, "id": None}]


def test_no_ancestor(catalog: Catalog, events: Table) -> None:
    """Both snapshots are named, and which ones would do."""
    first, second, third = snapshots(events)
    then = sec.open_table("db.events", catalog=catalog, snapshot_id=second)
    with pytest.raises(UnknownSnapshot, match=rf"{third} of .* no known ancestor of snapshot {second}.*{first}"):
        new(then, third)
    with pytest.raises(UnknownSnapshot, match=rf"no snapshot 5 .*{second}, {first}"):
        new(then, 5)
    empty = catalog.create_table("db.empty", SCHEMA)
    with pytest.raises(UnknownSnapshot, match="the table has no snapshot"):
        new(sec.open_table(empty), 5)
    assert sec.prune(sec.open_table(empty), "true").snapshot is None


def test_expired_snapshots_between(catalog: Catalog, events: Table) -> None:
    first, second, third = snapshots(events)

    def expire(metadata: dict[str, list[dict[str, int]]]) -> None:
        metadata["snapshots"] = [snapshot for snapshot in metadata["snapshots"] if snapshot["snapshot-id"] != second]

    edit_metadata(events, expire)
    with pytest.raises(UnknownSnapshot, match=f"{first} .* no known ancestor of snapshot {third}.*expired"):
        new(sec.open_table("db.events", catalog=catalog), first)


def test_a_snapshot_that_does_not_say_what_it_did_appended(catalog: Catalog, events: Table) -> None:
    first, *_ = snapshots(events)

    def forget(metadata: dict[str, list[dict[str, object]]]) -> None:
        for snapshot in metadata["snapshots"]:
            del snapshot["summary"]

    edit_metadata(events, forget)
    assert new(sec.open_table("db.events", catalog=catalog), first) == [1, 2]


def test_a_refusal_says_how_to_read_on(catalog: Catalog) -> None:
    """Rows from before and after a snapshot in one file; read in two steps, every row comes once."""
    writer = IcebergWriter(catalog, catalog.create_table("db.t", numbered(0, 0).schema))
    first = writer.commit({0: [0, 1]}, [], moves=False)
    second = writer.commit({1: [2, 3]}, [], moves=False)
    third = writer.commit({2: [0, 1, 2, 3]}, [0, 1], moves=True)
    writer.commit({3: [4]}, [], moves=False)
    with pytest.raises(MixedRewrite, match=f"snapshot_id={second}\\), ..., since={first}.*since={third}"):
        sec.prune(writer.open(), "true", since=first)
    before = sec.prune(sec.open_table("db.t", catalog=catalog, snapshot_id=second), "true", since=first)
    after = sec.prune(writer.open(), "true", since=third)
    assert [*before.to_arrow()["rid"].to_pylist(), *after.to_arrow()["rid"].to_pylist()] == [2, 3, 4]


def test_files_whose_snapshot_is_not_told_are_new(events: Table) -> None:
    """Beside ids that no float holds."""
    first, *_ = snapshots(events)
    files = pa.record_batch({"snapshot_id": pa.array([None, 2**62 + 1])})
    added_by = _added_by(files).tolist()
    assert added_by[1] == 2**62 + 1
    table = sec.open_table(events)
    assert isinstance(table, IcebergTable)
    origins = _Origins(table.snapshot(), {})
    assert [origins.of(snapshot_id) for snapshot_id in [added_by[0], first]] == [{True}, {False}]
