"""Plans that prove themselves: ``prune(..., audit=...)`` reads what it leaves out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.cli import main
from secateur.errors import AuditFailed
from secateur.index.model import BLOOM, POSTINGS, BuildOptions, FilterOption
from secateur.values.key import INT64_MIN
from tests.support.formats.iceberg_row_deletes import committed, equality_deletes, position_deletes
from tests.support.formats.iceberg_tables import catalog_in
from tests.support.profiles import examples
from tests.support.small_tables import WHERE, Where, files, rows_of, written
from tests.support.stores.local_build import index_here
from tests.support.stores.lying_index import element, lie_in_filters, lie_in_segment, lie_in_snapshot
from tests.support.tables import WriteTable

ROWS = 40  # in four row groups of ten, pages of five
LOWER, UPPER, NULLS = 0, 1, 2  # of the arrays of a zone map with 64-bit keys
PAGE_LOWER = 2  # of those of pages
OPTIONS = BuildOptions(
    filters=(FilterOption(BLOOM, "id"), FilterOption(POSTINGS, "name")), gaps=("id",), segment_blocks=2
)


def rows() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "name": [f"name {i % 7}" for i in range(ROWS)],
            "maybe": pa.array([None if i % 3 else i for i in range(ROWS)], pa.int32()),
        }
    )


@pytest.fixture
def root(write_table: WriteTable) -> Path:
    options: dict[str, Any] = {
        "row_group_size": 10,
        "write_page_index": True,
        "data_page_size": 1,
        "write_batch_size": 5,
    }
    root = write_table({"a.parquet": rows(), "b.parquet": rows().slice(0, 10)}, **options)
    index_here(sec.open_table(str(root)), OPTIONS)
    return root


@examples(15)
@given(files(), WHERE, st.data())
def test_what_a_plan_leaves_out_holds_no_match(chosen: list[Any], where: Where, data: st.DataObject) -> None:
    """Of tables of every type, of which the index covers some files: all excluded blocks are read."""
    with written(chosen, data.draw(st.integers(0, len(chosen)))) as table:
        plan = sec.prune(table, where.sql or "TRUE", strict=True, audit=1.0)
        audit = plan.report.audit
        assert audit is not None
        total = sum(-(-len(part) // size) for _, part, size in chosen)
        partly = sum(
            sum(span["stop"] - span["start"] for span in block["row_ranges"]) < block["row_count"]
            for block in plan.blocks.to_pylist()
        )
        assert audit.blocks == audit.excluded == total - len(plan.blocks) + partly
        assert plan.count() == sum(where.holds(row) for row in rows_of(chosen))


def test_a_share_of_the_pruned_blocks_is_read_and_told(root: Path) -> None:
    table = sec.open_table(str(root))
    plan = sec.prune(table, "id = 35", strict=True, audit=0.5)
    assert plan.report.audit is not None
    assert plan.report.audit.excluded == 5  # four blocks, and half of the one that survives
    assert plan.report.audit.blocks == 3
    assert "audit: 3 of 5 pruned blocks read" in plan.explain()
    assert '"excluded": 5' in plan.explain("json")
    least = sec.prune(table, "id = 35", strict=True, audit=1e-9).report.audit
    assert least is not None
    assert least.blocks == 1
    assert plan.to_arrow()["id"].to_pylist() == [35]


def test_a_plan_that_leaves_out_nothing_has_nothing_to_prove(root: Path) -> None:
    audit = sec.prune(sec.open_table(str(root)), "TRUE", strict=True, audit=1.0).report.audit
    assert audit is not None
    assert (audit.blocks, audit.excluded, audit.rows) == (0, 0, 0)


def with_a_gap(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """One between 13 and 18 in the second of four blocks."""
    return [*arrays[:4], np.array([9, 13, 9, 9]), np.array([9, 18, 9, 9])]


LIES: dict[str, Callable[[Path], None]] = {
    "lower": lambda index: lie_in_segment(index, "zone/0", element(LOWER, 1, 15)),
    "tree": lambda index: lie_in_snapshot(index, "tree/0", element(UPPER, 0, 12)),
    "gaps": lambda index: lie_in_segment(index, "zone/0", with_a_gap),
    "pages": lambda index: lie_in_segment(index, "page/0", element(PAGE_LOWER, 2, 15)),
    "bloom": lambda index: lie_in_filters(index, 0, np.zeros_like),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_row_that_is_left_out_and_matches_is_named(root: Path, lie: str) -> None:
    table = sec.open_table(str(root))
    assert sec.prune(table, "id = 14", strict=True, audit=1.0).count() == 1
    LIES[lie](root / "_secateur")
    fresh = sec.open_table(str(root))
    with pytest.raises(AuditFailed, match=r"row 4 of row group 1 of a\.parquet matches id = 14.*id = 14") as raised:
        sec.prune(fresh, "id = 14", strict=True, audit=1.0)
    assert "Drop the index and build it again" in str(raised.value)
    with pytest.raises(AuditFailed):
        sec.prune(fresh, "id = 14", limit=1, strict=True, audit=1.0)
    assert sec.prune(fresh, "id = 14", use_index=False, audit=1.0).count() == 1


def test_a_lie_about_nulls_is_found(root: Path) -> None:
    lie_in_segment(root / "_secateur", "zone/2", element(NULLS, 0, 0))
    with pytest.raises(AuditFailed, match=r"matches maybe IS NULL.*maybe = NULL"):
        sec.prune(sec.open_table(str(root)), "maybe IS NULL", strict=True, audit=1.0)


def test_the_index_is_not_looked_at_where_it_is_switched_off(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    LIES["lower"](root / "_secateur")
    monkeypatch.setenv("SECATEUR_DISABLE", "1")
    assert sec.prune(sec.open_table(str(root)), "id = 14", strict=True, audit=1.0).count() == 1


def test_a_limit_is_not_taken_for_a_loss(root: Path) -> None:
    plan = sec.prune(sec.open_table(str(root)), "id >= 10", limit=1, strict=True, audit=1.0)
    assert plan.to_arrow().num_rows == 1
    assert plan.report.audit is not None
    assert plan.report.audit.excluded == 2  # blocks without a match, not those that the limit makes needless


def test_what_only_spark_can_tell_is_skipped_and_said(root: Path) -> None:
    audit = sec.prune(sec.open_table(str(root)), "id = 35 AND rand() < 2", strict=True, audit=1.0).report.audit
    assert audit is not None
    assert audit.blocks == 0
    assert "only Spark can evaluate" in audit.skipped[0]


def test_a_pruned_file_that_is_gone_is_said(root: Path) -> None:
    table = sec.open_table(str(root), freshness=float("inf"))
    sec.prune(table, "TRUE")
    (root / "b.parquet").unlink()
    audit = sec.prune(table, "id = 35", strict=True, audit=1.0).report.audit
    assert audit is not None
    assert audit.blocks == 4
    assert "b.parquet has vanished" in audit.skipped[0]


@pytest.mark.parametrize("share", [0, -0.5, 1.5, float("nan")])
def test_a_share_is_more_than_none_and_at_most_all(root: Path, share: float) -> None:
    with pytest.raises(ValueError, match="share of pruned blocks"):
        sec.prune(sec.open_table(str(root)), "TRUE", audit=share)


def test_rows_that_iceberg_deleted_are_no_matches(tmp_path: Path) -> None:
    """An index that loses a block of which one row is deleted by position, another by a key, and others live."""
    properties = {"write.parquet.row-group-limit": "10"}
    made = catalog_in(tmp_path).create_table("db.t", rows().schema, properties=properties)
    made.append(rows())
    (path,) = (task.file.file_path for task in made.scan().plan_files())
    deleted = committed(made, [position_deletes(made, [(path, 14)]), equality_deletes(made, "id", [16])])
    index_here(sec.open_table(deleted), BuildOptions())
    lie_in_segment(Path(made.location().removeprefix("file://")) / "_secateur", "zone/0", element(UPPER, 1, INT64_MIN))
    for gone in (14, 16):
        plan = sec.prune(sec.open_table(deleted), f"id = {gone}", strict=True, audit=1.0)
        assert plan.count() == 0
        assert plan.report.audit is not None
        assert plan.report.audit.blocks == plan.report.audit.excluded == 4
    with pytest.raises(AuditFailed, match="row 5 of row group 1"):
        sec.prune(sec.open_table(deleted), "id = 15", strict=True, audit=1.0)


def test_the_command_line_audits(root: Path) -> None:
    asked = ["prune", str(root), "id = 14", "--audit", "1"]
    done = CliRunner().invoke(main, asked)
    assert done.exit_code == 0
    assert "audit: 5 of 5 pruned blocks read" in done.output
    LIES["lower"](root / "_secateur")
    failed = CliRunner().invoke(main, asked)
    assert failed.exit_code == 1
    assert "row 4 of row group 1 of a.parquet matches id = 14" in failed.output
    assert "query with --no-index" in failed.output
    assert CliRunner().invoke(main, [*asked, "--no-index"]).exit_code == 0
    assert CliRunner().invoke(main, [*asked[:-1], "0"]).exit_code == 2
