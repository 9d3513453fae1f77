"""An index that the table's own metadata names."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

import secateur as sec
from secateur.errors import IndexMissing, IndexNotWritable, UnsupportedTable
from secateur.index.model import BuildOptions
from tests.support.formats.iceberg_rows import SCHEMA, ids, rows
from tests.support.stores.local_build import index_here


@pytest.fixture
def events(catalog: Catalog) -> Table:
    table = catalog.create_table("db.events", SCHEMA)
    table.append(rows(0, 1, 2))
    return table


def test_whoever_opens_the_table_finds_the_index(catalog: Catalog, events: Table, tmp_path: Path) -> None:
    elsewhere = str(tmp_path / "elsewhere")
    opened = sec.open_table(events, index_location=elsewhere)
    index_here(opened, BuildOptions())
    assert sec.prune(sec.open_table("db.events", catalog=catalog), "id = 1").report.index == "none"
    location = sec.register_index(opened)
    again = sec.open_table("db.events", catalog=catalog)
    assert again.store.root == elsewhere
    assert catalog.load_table("db.events").properties["secateur.index-location"] == location
    assert sec.prune(again, "id = 1", strict=True).report.index.startswith("snapshot 1, 1 segment, covers 1 of 1 file")
    assert ids(again, "id = 1") == [1]
    events.refresh().append(rows(5))
    assert ids(sec.open_table("db.events", catalog=catalog), "id > 1") == [2, 5]
    third = sec.open_table("db.events", catalog=catalog, index_location=str(tmp_path / "third"))
    assert third.store.root.endswith("third")


def test_an_index_that_is_gone_costs_no_row(catalog: Catalog, events: Table, tmp_path: Path) -> None:
    opened = sec.open_table(events, index_location=str(tmp_path / "elsewhere"))
    index_here(opened, BuildOptions())
    sec.register_index(opened)
    (tmp_path / "elsewhere").rename(tmp_path / "moved")
    assert ids(sec.open_table("db.events", catalog=catalog)) == [0, 1, 2]
    sec.register_index(sec.open_table(events, index_location=str(tmp_path / "moved")))
    moved = sec.open_table("db.events", catalog=catalog)
    assert sec.prune(moved, "id = 1", strict=True).report.index.startswith("snapshot 1")


def test_the_library_s_table_is_taken(catalog: Catalog, events: Table) -> None:
    index_here(sec.open_table(events), BuildOptions())
    location = sec.register_index(events)
    assert catalog.load_table("db.events").properties["secateur.index-location"] == location


def test_what_cannot_be_registered_is_said(events: Table, tmp_path: Path) -> None:
    with pytest.raises(IndexMissing):
        sec.register_index(sec.open_table(events))
    static = sec.open_table(events.metadata_location)
    index_here(static, BuildOptions())
    with pytest.raises(IndexNotWritable, match="cannot register the index"):
        sec.register_index(static)
    (tmp_path / "plain").mkdir()
    with pytest.raises((IndexMissing, UnsupportedTable)):
        sec.register_index(sec.open_table(tmp_path / "plain"))
