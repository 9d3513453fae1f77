"""Tasks for PyIceberg: those of its own scan of the same files, and the same rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import FileScanTask, Table

import secateur as sec
from secateur.errors import UnsupportedTable
from tests.support.formats.iceberg_deletes import delete_positions
from tests.support.formats.iceberg_row_deletes import committed, equality_deletes
from tests.support.formats.iceberg_tables import catalog_in, new_history
from tests.support.profiles import by_profile, takes_seconds
from tests.support.tables import WriteTable

SEEDS = by_profile(quick=range(3), full=range(12), nightly=range(60))


def rows_of(table: Table, tasks: list[FileScanTask], condition: str) -> str:
    """What PyIceberg reads by some tasks, by row number; as text, in which NaN equals NaN."""
    scan = table.scan(row_filter=condition)
    arrow = ArrowScan(table.metadata, table.io, table.schema(), scan.row_filter)
    return str(arrow.to_table(tasks).sort_by("rid").to_pylist())


@takes_seconds
@pytest.mark.parametrize("seed", SEEDS)
def test_pyiceberg_reads_the_same_rows_by_them(seed: int, tmp_path: Path) -> None:
    """Tables with several partition specs, changed columns, and deleted positions."""
    history = new_history(catalog_in(tmp_path), seed)
    for _ in range(10):
        history.step()
        history.table.refresh()
    for task in list(history.table.scan().plan_files())[:3]:
        delete_positions(history.table, task.file.file_path, [0])
        history.table.refresh()
    table = history.table
    sec.build_index(table, bloom=["rid"])
    for first in (0, history.rid // 2, history.rid):
        condition = f"rid >= {first} AND rid < {first + 5}"
        tasks = sec.prune(table, condition).to_pyiceberg()
        theirs = {task.file.file_path: task for task in table.scan().plan_files()}
        for task in tasks:
            their = theirs[task.file.file_path]
            assert task.delete_files == their.delete_files
            for name in ("partition", "spec_id", "record_count", "file_size_in_bytes", "split_offsets", "content"):
                assert getattr(task.file, name) == getattr(their.file, name), name
        wanted = rows_of(table, list(theirs.values()), condition)
        assert rows_of(table, tasks, condition) == wanted


def test_equality_deletes_are_refused(tmp_path: Path) -> None:
    table = catalog_in(tmp_path).create_table("db.t", pa.schema([("rid", pa.int64())]))
    table.append(pa.table({"rid": [1, 2, 3]}))
    changed = committed(table, [equality_deletes(table, "rid", [2])])
    plan = sec.prune(sec.open_table(changed), "rid >= 2")
    assert plan.to_arrow()["rid"].to_pylist() == [3]
    with pytest.raises(UnsupportedTable, match="equality deletes"):
        plan.to_pyiceberg()


def test_other_tables_and_limits_are_refused(write_table: WriteTable) -> None:
    table = sec.open_table(str(write_table({"a.parquet": {"rid": [1, 2]}})))
    with pytest.raises(UnsupportedTable, match="not an Iceberg table"):
        sec.prune(table, "rid = 1").to_pyiceberg()
    with pytest.raises(ValueError, match="limit=1 is no list of tasks"):
        sec.prune(table, "rid = 1", limit=1).to_pyiceberg()
