"""What is expected before anything is read decides how it is read, and not which rows come out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secateur as sec
from secateur.io.scan.planned_scan import PlannedScan

ROWS = 20_000


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> sec.Table:
    """A table in ten row groups, each with almost all values."""
    directory = tmp_path_factory.mktemp("even")
    numbers = np.random.default_rng(0).permutation(ROWS)
    data = pa.table({"key": numbers, "share": numbers / ROWS, "name": [f"{number:05}" for number in numbers]})
    pq.write_table(data, directory / "a.parquet", row_group_size=ROWS // 10)
    return sec.open_table(str(directory))


def expected(table: sec.Table, predicate: str) -> list[float]:
    plan = sec.prune(table, predicate, strict=True)
    assert isinstance(plan, PlannedScan)
    return list(plan.expected_gains)


@pytest.mark.parametrize(
    ("predicate", "spared"),
    [
        ("share < 0.5", 0),
        ("key % 2 = 0", 1),  # bounds tell nothing
        ("name LIKE '%7'", 1),
        ("key = 10000", np.exp(-0.1)),  # a tenth of a row is expected in each row group
        ("share < 0.5 AND key = 10000", np.exp(-0.05)),
        ("share < 0.5 AND name > '1'", 1),
    ],
)
def test_a_share_of_row_groups_is_expected_to_hold_no_match(table: sec.Table, predicate: str, spared: float) -> None:
    assert expected(table, predicate) == pytest.approx([spared], abs=0.01)


def test_blocks_without_a_condition_spare_nothing_to_read_later(table: sec.Table) -> None:
    assert expected(table, "key >= 0") == [1.0]
