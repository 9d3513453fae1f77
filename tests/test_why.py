"""``plan.why``: the stage that decides, and what every condition can be in a block."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from conftest import write_file

import secateur as sc
from secateur.errors import UnknownBlock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = "day=2024-01-01/a.parquet"
ROWS = pa.table(
    {"id": pa.array(range(0, 80, 2)), "x": [1.0] * 39 + [float("nan")], "text": [f"n{i}" for i in range(40)]}
)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write_file(tmp_path / FILE, ROWS, row_group_size=10)
    return tmp_path


@pytest.mark.parametrize(
    ("predicate", "row_group", "stage"),
    [
        ("id = 4", 0, None),
        ("id = 4", 1, "zone maps"),
        ("id = 5", 0, "filters"),
        ("id = 4 AND day = DATE '2023-01-01'", 0, "files"),
        ("id >= 0", 3, None),
    ],
)
def test_the_stage_that_decides(
    spark: SparkSession, lake: Path, predicate: str, row_group: int, stage: str | None
) -> None:
    table = sc.open_table(str(lake))
    sc.build_index(table, spark=spark, bloom=["id"], fpr=1e-6)
    why = sc.prune(table, predicate, strict=True).why(FILE, row_group)
    assert (why.stage, why.survives) == (stage, stage is None)


def test_text(lake: Path) -> None:
    plan = sc.prune(sc.open_table(str(lake)), "id + 1 > 25 AND (x > 3 OR text LIKE 'z%') AND day IS NOT NULL")
    assert str(plan.why(FILE, 0)).splitlines() == [
        f"{FILE}, row group 0, is left out by the stage 'zone maps':",
        "  (`id` + 1) > 25 can be FALSE  (id from 0 to 18, no NULL)",
        "  `x` > 3 can be TRUE or FALSE  (x from 1.0 to nan, no NULL)",
        "  `text` LIKE 'z%' can be FALSE  (text from 'n0' to 'n9', no NULL)",
        "  `day` IS NULL can be FALSE  (day from 2024-01-01 to 2024-01-01, no NULL)",
    ]
    assert str(plan.why(FILE, 3)).startswith(f"{FILE}, row group 3, is read, and (`x` > 3 OR `text` LIKE 'z%') is left")


@pytest.mark.parametrize(("file", "row_group"), [("a.parquet", 0), (FILE, 4), (FILE, -1)])
def test_blocks_that_are_not_there(lake: Path, file: str, row_group: int) -> None:
    with pytest.raises(UnknownBlock):
        sc.prune(sc.open_table(str(lake)), "id = 4").why(file, row_group)
