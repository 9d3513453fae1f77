"""Whether an index tells the truth is proven on the data: by Spark, or here where a test needs no Spark."""

from __future__ import annotations

import datetime as dt
import json
import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from pyspark.sql import SparkSession

import secateur as sec
from secateur.cli import main
from secateur.index.model import BLOOM, NGRAM, POSTINGS, TOKEN, BuildOptions, FilterOption
from secateur.io.scan.audit_findings import AuditFindings
from secateur.io.scan.opened_table import open_snapshot_of
from secateur.io.tables.table import Table
from secateur.maintain.audit import compared
from secateur.pruning.report import Faults
from tests.support.formats.iceberg_row_deletes import committed, equality_deletes, position_deletes
from tests.support.formats.iceberg_tables import catalog_in
from tests.support.profiles import examples, sweep
from tests.support.small_tables import files, written
from tests.support.stores.index_files import Arrays
from tests.support.stores.local_build import index_here
from tests.support.stores.lying_index import (
    array,
    element,
    lie_in_filters,
    lie_in_segment,
    lie_in_snapshot,
    snapshot_of,
)
from tests.support.tables import write_file

ROWS, GROUP, PAGE = 60, 10, 5
OPTIONS = BuildOptions(
    sort_key=("id", "name"),
    filters=(
        FilterOption(BLOOM, "id"),
        FilterOption(POSTINGS, "name"),
        FilterOption(NGRAM, "text", gram=3),
        FilterOption(TOKEN, "text", folded=True),
        FilterOption(BLOOM, "tags"),
    ),
    gaps=("id",),
    sums=("id", "maybe", "wide"),
    segment_blocks=2,
    fan_out=2,
)


def rows(first: int, count: int = ROWS) -> pa.Table:
    n = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(n, pa.int64()),
            "name": [f"name {i % 7}" for i in n],
            "text": [f"Error {i} at the gate" for i in n],
            "maybe": pa.array([None if i % 3 else i for i in n], pa.int32()),
            "real": pa.array([math.nan if i % 10 == 9 else i / 2 for i in n], pa.float64()),
            "wide": pa.array([Decimal(i) * 10**20 for i in n], pa.decimal128(30, 2)),
            "tags": pa.array([[f"t{i}", None] for i in n], pa.list_(pa.string())),
        }
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files of six blocks each, in as many segments."""
    root = tmp_path_factory.mktemp("audited") / "table"
    for i in range(3):
        options: dict[str, Any] = {"row_group_size": GROUP, "write_page_index": True}
        write_file(root / f"{i}.parquet", rows(100 * i), data_page_size=1, write_batch_size=PAGE, **options)
    index_here(sec.open_table(str(root)), OPTIONS)
    return root


@pytest.fixture
def root(built: Path, tmp_path: Path) -> Path:
    """A copy, to lie in."""
    table_root = tmp_path / "table"
    shutil.copytree(built, table_root)
    return table_root


def here(work: Callable[[Sequence[int]], Iterator[bytes]], n: int) -> Iterator[bytes]:
    return work(range(n))


def found_in(table: Table, share: float | None = 1.0) -> AuditFindings:
    """What an audit of all statistics finds, without Spark."""
    opened = open_snapshot_of(table, dt.UTC, Faults(strict=True))
    return compared(opened, here, lambda n: 3, share, 7, lambda *done: None)[0]


def test_a_true_index_is_found_true(built: Path) -> None:
    verification = found_in(sec.open_table(str(built)))
    assert verification.faults == []
    assert verification.skipped == []
    assert (verification.blocks, verification.rows) == (18, 180)
    assert verification.values > 7 * 180
    assert set(verification.drawn) == set(range(6))


def test_a_share_of_the_blocks_is_read(built: Path) -> None:
    assert found_in(sec.open_table(str(built)), 0.3).blocks == 6
    assert found_in(sec.open_table(str(built)), None).blocks == 18


@examples(25)
@given(files())
def test_statistics_of_every_type_are_true(chosen: list[Any]) -> None:
    """NaN, NULL, cut texts, missing columns: what a build records, the audit finds right."""
    with written(chosen, len(chosen)) as table:
        verification = found_in(table)
        assert verification.faults == []
        assert verification.rows == sum(len(part) for _, part, _ in chosen)


WORDS = 4  # arrays of the zone map of 64-bit keys: lower, upper, null count, NaN count
LOST = "without it"


def with_a_gap(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """One over all values but the ends of the second block."""
    (lower, upper), n = arrays[:2], len(arrays[0])
    low, high = np.full(n, 2**63 - 1), np.full(n, 2**63 - 1)
    low[1], high[1] = lower[1], upper[1]
    return [*arrays[:WORDS], low, high]


def shorter_text(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The upper bound of the second block is empty."""
    half = (len(arrays) - 2) // 2
    changed = [array.copy() for array in arrays]
    for word in changed[half : 2 * half]:
        word[1] = 0
    return changed


def another_sum(arrays: Arrays) -> Arrays:
    """Both bounds of block 1, which are its sum, with another lower half."""
    return element(3, 1, 7)(element(1, 1, 7)(arrays))


def tuple_column(index: Path) -> int:
    return len(snapshot_of(index).columns) - 1


LIES: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "lower": (lambda i: lie_in_segment(i, "zone/0", element(0, 1, 15)), "id", "the lower bound"),
    "upper": (lambda i: lie_in_segment(i, "zone/0", element(1, 1, 15)), "id", "the upper bound"),
    "loose": (lambda i: lie_in_segment(i, "zone/0", element(1, 1, 500)), "id", "the upper bound"),
    "nulls": (lambda i: lie_in_segment(i, "zone/3", element(2, 1, 0)), "maybe", "the null count"),
    "NaNs": (lambda i: lie_in_segment(i, "zone/4", element(3, 1, 0)), "real", "the NaN count"),
    "no NaN": (lambda i: lie_in_segment(i, "zone/4", element(1, 1, 0)), "real", "the upper bound"),
    "wide": (lambda i: lie_in_segment(i, "zone/5", element(2, 1, 0)), "wide", "the upper bound"),
    "text": (lambda i: lie_in_segment(i, "zone/1", shorter_text), "name", "the upper bound"),
    "sum": (lambda i: lie_in_segment(i, "zone/7", another_sum), "maybe", "the unscaled sum"),
    "nulls of sums": (
        lambda i: lie_in_segment(i, "zone/7", element(4, 1, 0)),
        "maybe",
        "the null count beside the sum",
    ),
    "gap": (lambda i: lie_in_segment(i, "zone/0", with_a_gap), "id", "a gap"),
    "tuples": (
        lambda i: lie_in_segment(i, f"zone/{tuple_column(i)}", shorter_text),
        "id, name",
        "the upper bound of the tuples of the sort key",
    ),
    "page bound": (lambda i: lie_in_segment(i, "page/0", element(2, 2, 14)), "id", "the lower bound of page 0"),
    "page row": (lambda i: lie_in_segment(i, "page/0", element(1, 3, 7)), "id", "the upper bound of page 0"),
    "page nulls": (lambda i: lie_in_segment(i, "page/3", element(4, 2, 0)), "maybe", "the null count of page 0"),
    "segment": (
        lambda i: lie_in_snapshot(i, "tree/0", element(1, 0, 12)),
        "id",
        "the upper bound of its segment in the tree",
    ),
    "segment nulls": (
        lambda i: lie_in_snapshot(i, "tree/3", element(2, 0, 0)),
        "maybe",
        "the null count of its segment in the tree",
    ),
    "bloom": (lambda i: lie_in_filters(i, 0, np.zeros_like), "id", "the filter (bloom)"),
    "postings": (
        lambda i: lie_in_segment(i, "posting/1", array(2, lambda prefixes: prefixes + np.uint64(1))),
        "name",
        "the filter (postings)",
    ),
    "grams": (lambda i: lie_in_filters(i, 2, np.zeros_like), "text", "the filter (ngram)"),
    "tokens": (lambda i: lie_in_filters(i, 3, np.zeros_like), "text", "the filter (token)"),
    "elements": (lambda i: lie_in_filters(i, 4, np.zeros_like), "tags", "the filter (bloom)"),
    "rows": (lambda i: lie_in_segment(i, "blocks", element(2, 1, 9)), "", "the row count"),
    "row groups": (lambda i: lie_in_segment(i, "blocks", element(1, 1, 7)), "", "row groups"),
}


@pytest.mark.parametrize("lie", sweep(LIES, 3))
def test_every_kind_of_lie_is_named(root: Path, lie: str) -> None:
    lay, column, statistic = LIES[lie]
    lay(root / "_secateur")
    faults = found_in(sec.open_table(str(root))).faults
    named = [fault for fault in faults if (fault.column, fault.statistic) == (column, statistic)]
    assert named, faults
    assert named[0].file in ("0.parquet", "1.parquet", "2.parquet")
    assert named[0].row_group in (-1, 0, 1)
    assert f"{statistic}" in str(named[0])
    assert named[0].file in str(named[0])


def test_a_node_that_denies_its_segments_is_told_without_spark(root: Path) -> None:
    tree = snapshot_of(root / "_secateur").tree
    assert len(tree.begin) > 2
    assert sec.verify_index(sec.open_table(str(root))).sound
    lie_in_snapshot(root / "_secateur", "tree/0", element(1, tree.begin[1], 0))
    verification = sec.verify_index(sec.open_table(str(root)))
    assert any(
        f"node {tree.begin[1]} of the tree of id denies what is below it" in fault for fault in verification.faults
    )


def test_progress_is_told(built: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    verification = sec.verify_index(sec.open_table(str(built)), on_progress=lambda *step: steps.append(step))
    assert verification.sound
    assert [done for what, done, _ in steps if what == "index files"] == list(range(1, len(steps) + 1))
    assert steps[-1][1] == steps[-1][2] > verification.segments


@pytest.mark.parametrize("arguments", [{"sample": 0.0}, {"sample": 1.5}, {"sample": 0.5}, {"predicates": ["id = 1"]}])
def test_an_audit_needs_spark_and_a_share(built: Path, arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"share|pass spark="):
        sec.verify_index(sec.open_table(str(built)), **arguments)


GIVEN = ["id = 14", "maybe IS NULL AND id < 30", "text LIKE '%25 at%'", "name = 'name 3' OR real > 100", "1 / id = 7"]


def test_spark_proves_statistics_and_plans(spark: SparkSession, built: Path) -> None:
    verification = sec.verify_index(
        sec.open_table(str(built)), spark=spark, sample=1.0, predicates=GIVEN, random_predicates=8, seed=3
    )
    audit = verification.audit
    assert audit is not None
    assert verification.sound, audit.faults
    assert (audit.blocks, audit.covered_blocks, audit.rows, audit.seed) == (18, 18, 180, 3)
    assert len(audit.predicates) == len(GIVEN) + 8
    assert audit.predicates[: len(GIVEN)] == tuple(GIVEN)
    assert audit.pruned_blocks > 18
    assert audit.skipped == ()


def test_spark_names_the_rows_that_a_lie_loses(spark: SparkSession, root: Path) -> None:
    lie_in_segment(root / "_secateur", "zone/0", element(0, 1, 15))
    lie_in_segment(root / "_secateur", "page/0", element(2, 0, 3))
    table = sec.open_table(str(root))
    verification = sec.verify_index(
        table, spark=spark, sample=1.0, predicates=["id = 14", "id = 1"], random_predicates=0
    )
    assert verification.audit is not None
    assert not verification.sound
    lost = {(row.predicate, row.file, row.row_group, row.position) for row in verification.audit.lost_rows}
    assert lost == {("id = 14", "0.parquet", 1, 4), ("id = 1", "0.parquet", 0, 1)}
    text = next(str(row) for row in verification.audit.lost_rows if row.position == 4)
    assert "id = 14" in text
    assert "left out by the stage 'zone maps'" in text
    assert {fault.statistic for fault in verification.audit.contradictions} == {
        "the lower bound",
        "the lower bound of page 0",
    }


def test_what_is_random_finds_lies_too(spark: SparkSession, root: Path) -> None:
    """Bloom filters without a bit: a few of the random predicates ask for a value."""
    lie_in_filters(root / "_secateur", 0, np.zeros_like)
    verification = sec.verify_index(sec.open_table(str(root)), spark=spark, sample=1.0, random_predicates=24, seed=1)
    assert verification.audit is not None
    assert verification.audit.lost_rows
    assert all("`id`" in row.predicate for row in verification.audit.lost_rows)


def test_files_beside_the_index_and_values_of_directories(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "table"
    for i in range(3):
        write_file(root / f"p={i}" / "a.parquet", rows(100 * i), row_group_size=GROUP)
    index_here(sec.open_table(str(root)), OPTIONS)
    write_file(root / "p=7" / "new.parquet", rows(700), row_group_size=GROUP)
    settings = {"predicates": ["p = 2", "p = 7 AND id < 705"], "random_predicates": 2, "seed": 5}
    verification = sec.verify_index(sec.open_table(str(root)), spark=spark, **settings)
    assert verification.audit is not None
    assert verification.audit.faults == verification.audit.skipped == ()
    assert (verification.files_covered, verification.files_uncovered, verification.audit.covered_blocks) == (3, 1, 18)
    assert verification.audit.pruned_rows > 3 * ROWS


def test_rows_that_iceberg_deleted_stay_deleted(spark: SparkSession, tmp_path: Path) -> None:
    """Statistics are of all rows of a file; predicates are proven on those that live."""
    columns = rows(0).drop_columns(["wide", "tags"])
    properties = {"write.parquet.row-group-limit": str(GROUP)}
    made = catalog_in(tmp_path).create_table("db.t", columns.schema, properties=properties)
    made.append(columns)
    (path,) = (task.file.file_path for task in made.scan().plan_files())
    deleted = committed(made, [position_deletes(made, [(path, 14)]), equality_deletes(made, "id", [16])])
    index_here(sec.open_table(deleted), BuildOptions())
    settings: dict[str, Any] = {"spark": spark, "sample": 1.0, "random_predicates": 6, "seed": 5}
    verification = sec.verify_index(sec.open_table(deleted), **settings)
    assert verification.audit is not None
    assert verification.sound, verification.audit.faults
    assert (verification.audit.blocks, verification.audit.skipped) == (6, ())
    lie_in_segment(Path(made.location().removeprefix("file://")) / "_secateur", "zone/0", element(1, 1, 12))
    settings |= {"predicates": ["id = 14", "id = 16", "id = 15"], "random_predicates": 0}
    wrong = sec.verify_index(sec.open_table(deleted), **settings).audit
    assert wrong is not None
    assert [(row.predicate, row.position) for row in wrong.lost_rows] == [("id = 15", 5)]
    assert [fault.column for fault in wrong.contradictions] == ["id"]


def test_the_command_line_compares_with_the_data(spark: SparkSession, root: Path) -> None:
    asked = ["verify", str(root), "--sample", "1", "--predicate", "id = 14", "--random-predicates", "0", "--seed", "3"]
    done = CliRunner().invoke(main, asked)
    assert done.exit_code == 0, done.output
    assert "18 of 18 blocks" in done.output
    assert "no fault found" in done.output
    lie_in_segment(root / "_secateur", "zone/0", element(0, 1, 15))
    failed = CliRunner().invoke(main, [*asked, "--json"])
    assert failed.exit_code == 1
    parsed = json.loads(failed.stdout)
    assert parsed["sound"] is False
    assert {(row["file"], row["row_group"], row["position"]) for row in parsed["audit"]["lost_rows"]} >= {
        ("0.parquet", 1, 4)
    }
