"""``plan.why``: the stage that decides, and what every condition can be in a block."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import secateur as sec
from secateur.cli import main
from secateur.errors import UnknownBlock
from secateur.index.model import BLOOM, NGRAM, BuildOptions, FilterOption
from secateur.pruning.explain.why import Why
from tests.support.stores.local_build import index_here
from tests.support.tables import write_file

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
        ("id = 4 OR text = 'z'", 1, "zone maps"),
        ("id = 4", 1, "zone maps"),
        ("id = 5", 0, "filters"),
        ("id = 500", 0, "segments"),
        ("id = 4 AND day = DATE '2023-01-01'", 0, "files"),
        ("id >= 0", 3, None),
    ],
)
def test_the_stage_that_decides(lake: Path, predicate: str, row_group: int, stage: str | None) -> None:
    table = sec.open_table(str(lake))
    index_here(table, BuildOptions(filters=(FilterOption(BLOOM, "id"),), fpr=1e-6))
    why = sec.prune(table, predicate, strict=True).why(FILE, row_group)
    assert (why.stage, why.survives) == (stage, stage is None)


def test_text(lake: Path) -> None:
    plan = sec.prune(sec.open_table(str(lake)), "id + 1 > 25 AND (x > 3 OR text LIKE 'z%') AND day IS NOT NULL")
    assert str(plan.why(FILE, 0)).splitlines() == [
        f"{FILE}, row group 0, is left out by the stage 'zone maps':",
        "  because (`id` + 1) > 25 is TRUE on no row: id from 0 to 18, no NULL",
        "  (`id` + 1) > 25 can be FALSE  (id from 0 to 18, no NULL)",
        "  `x` > 3 can be TRUE or FALSE  (x from 1.0 to 1.0, NaN possible, no NULL)",
        "  `text` LIKE 'z%' can be FALSE  (text from 'n0' to 'n9', no NULL)",
        "  `day` IS NULL can be FALSE  (day from 2024-01-01 to 2024-01-01, no NULL)",
    ]
    assert str(plan.why(FILE, 3)).startswith(f"{FILE}, row group 3, is read, and (`x` > 3 OR `text` LIKE 'z%') is left")


@pytest.mark.parametrize(
    ("predicate", "because"),
    [
        ("day = DATE '2023-01-01'", "by what the table says of the file, day from 2024-01-01 to 2024-01-01, no NULL"),
        ("id = 500", "by the merged zone map of its segment, id from 0 to 78, no NULL"),
        ("id = 5", "by the bloom filter of id, nothing that `id` = 5 asks for is here"),
        ("text LIKE '%m10%'", "by the n-grams of text, nothing that `text` LIKE '%m10%' asks for is here"),
        ("far = 50 AND id >= 0", "far from 0 to 10000, no NULL; far has no value between 8 and 10000"),
    ],
)
def test_the_statistic_that_decides(tmp_path: Path, predicate: str, because: str) -> None:
    far = [100 * (i // 10) + i % 10 if i % 10 < 9 else 10_000 for i in range(40)]
    write_file(tmp_path / FILE, ROWS.append_column("far", pa.array(far)), row_group_size=10)
    table = sec.open_table(str(tmp_path))
    filters = (FilterOption(BLOOM, "id"), FilterOption(NGRAM, "text", gram=3))
    index_here(table, BuildOptions(filters=filters, gaps=("far",), fpr=1e-6))
    why = sec.prune(table, predicate, strict=True).why(FILE, 0)
    assert why.cause is not None
    assert why.cause.statistic.startswith(because)


def test_a_file_has_one_verdict_where_its_blocks_share_it(lake: Path) -> None:
    table = sec.open_table(str(lake))
    whole = sec.prune(table, "id >= 0").why(FILE)
    assert str(whole) == f"{FILE}, each of its 4 row groups is read, and every row matches"
    out = sec.prune(table, "day = DATE '2023-01-01'").why(FILE)
    assert (out.stage, out.survives, len(out.blocks)) == ("files", False, 4)
    assert str(out).splitlines() == [
        f"{FILE}, each of its 4 row groups is left out by the stage 'files':",
        "  because `day` = DATE '2023-01-01' is TRUE on no row: "
        "by what the table says of the file, day from 2024-01-01 to 2024-01-01, no NULL",
    ]
    several = sec.prune(table, "id = 4").why(FILE)
    assert [block.stage for block in several.blocks] == [None, "zone maps", "zone maps", "zone maps"]
    assert str(several) == "\n".join(map(str, several.blocks))


def test_on_the_command_line(lake: Path) -> None:
    plan = sec.prune(sec.open_table(str(lake)), "id = 44")
    for place, why in ((FILE, plan.why(FILE)), (f"{FILE}:2", plan.why(FILE, 2))):
        printed = CliRunner().invoke(main, ["prune", str(lake), "id = 44", "--why", place])
        assert printed.output == f"{why}\n"
        printed_json = CliRunner().invoke(main, ["prune", str(lake), "id = 44", "--why", place, "--json"])
        assert json.loads(printed_json.stdout) == json.loads(json.dumps(asdict(why)))


def test_a_row_of_the_blocks_of_a_plan(lake: Path) -> None:
    plan = sec.prune(sec.open_table(str(lake)), "id = 44")
    (block,) = plan.blocks.to_pylist()
    why = plan.why(block)
    assert isinstance(why, Why)
    assert (why.row_group, why.survives) == (2, True)
    with pytest.raises(UnknownBlock, match="is not a block"):
        plan.why({"file": FILE})


@pytest.mark.parametrize(("file", "row_group"), [("a.parquet", 0), (FILE, 4), (FILE, -1)])
def test_blocks_that_are_not_there(lake: Path, file: str, row_group: int) -> None:
    with pytest.raises(UnknownBlock):
        sec.prune(sec.open_table(str(lake)), "id = 4").why(file, row_group)
