"""The report on an index: coverage, cost, age and clustering."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import secateur as sec
from secateur.cli import main
from secateur.errors import IndexMissing, UnknownColumn
from secateur.pruning.report import human_seconds
from tests.support.tables import write_file

FILES, BLOCKS = 4, 10  # and row groups per file


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    root = tmp_path / "lake"
    root.mkdir()
    rng = np.random.default_rng(3)
    for i in range(FILES):
        n = BLOCKS * 10
        rows = {"id": np.arange(i * n, i * n + n), "key": rng.integers(0, 1000, n), "note": ["x"] * n}
        write_file(root / f"{i}.parquet", pa.table(rows), row_group_size=10)
    sec.build_index(str(root), sort_key=["id"], bloom=["key"])
    return root


def test_the_report_adds_up(lake: Path) -> None:
    state = sec.report_index(str(lake))
    index = sec.describe_index(str(lake))
    assert (state.live_files, state.covered_files) == (FILES, FILES)
    assert sum(structure.bytes for structure in state.structures) + state.other_bytes == index.index_bytes
    assert state.other_bytes > 0
    assert sorted(state.structures, key=lambda covered: -covered.bytes) == list(state.structures)
    assert {structure.column for structure in state.structures} == {"id", "key", "note"}


def test_clustering_is_that_of_the_columns_named_in_the_build(lake: Path) -> None:
    by_column = {clustering.column: clustering for clustering in sec.report_index(str(lake)).clustering}
    assert list(by_column) == ["id", "key"]
    assert by_column["id"].max_depth == 1
    assert by_column["key"].mean_depth is not None and by_column["key"].mean_depth > 10
    for row in sec.inspect.clustering(str(lake), ["id", "key"]).to_pylist():
        clustering = by_column[row["column"]]
        assert (clustering.blocks, clustering.mean_depth) == (row["blocks"], row["mean_depth"])
        assert [(count.depth, count.blocks) for count in clustering.depths] == [
            (count["depth"], count["blocks"]) for count in row["depths"]
        ]
    (chosen,) = sec.report_index(str(lake), by=["note"]).clustering
    assert (chosen.column, chosen.constant) == ("note", FILES * BLOCKS)


def test_without_named_columns_all_are_measured(lake: Path) -> None:
    sec.build_index(str(lake))
    assert [clustering.column for clustering in sec.report_index(str(lake)).clustering] == ["id", "key", "note"]


def test_files_that_are_not_covered_are_counted(lake: Path) -> None:
    write_file(lake / "new.parquet", pa.table({"id": [7], "key": [7], "note": ["y"]}))
    state = sec.report_index(str(lake))
    assert (state.live_files, state.covered_files) == (FILES + 1, FILES)
    done = CliRunner().invoke(main, ["report", str(lake)])
    assert done.exit_code == 0, done.output
    assert f"1 files are not covered and pruned by their footers only: secateur refresh {lake}" in done.stderr


def test_errors_name_what_is_missing(lake: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownColumn, match="nobody"):
        sec.report_index(str(lake), by=["nobody"])
    sec.drop_index(str(lake))
    with pytest.raises(IndexMissing):
        sec.report_index(str(lake))
    assert CliRunner().invoke(main, ["report", str(lake)]).exit_code == 2


def test_the_command_line(lake: Path, tmp_path: Path) -> None:
    state = sec.report_index(str(lake))
    text = CliRunner().invoke(main, ["report", str(lake)])
    assert text.exit_code == 0, text.output
    assert re.search(r"^key +bloom", text.stdout, re.MULTILINE)
    assert re.search(r"^id +40 +1 +1 ", text.stdout, re.MULTILINE)
    printed = json.loads(CliRunner().invoke(main, ["report", str(lake), "--by", "id", "--json"]).stdout)
    assert printed["index"]["index_bytes"] == state.index.index_bytes
    assert [clustering["column"] for clustering in printed["clustering"]] == ["id"]


def test_the_page_has_every_structure_and_every_depth(lake: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert CliRunner().invoke(main, ["report", str(lake), "--html", str(file)]).exit_code == 0
    page, state = file.read_text(), sec.report_index(str(lake))
    for structure in state.structures:
        assert f'data-column="{structure.column}" data-structure="{structure.structure}"' in page
    depths = [count.blocks for clustering in state.clustering for count in clustering.depths]
    tables = page.partition("How well")[2]
    assert [int(count) for count in re.findall(r'data-count="(\d+)"', tables)] == depths
    assert "http" not in page  # nothing is loaded from elsewhere
    assert state._repr_html_().startswith("<style>")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (99, "99.0 s"), (120, "2 minutes"), (7200, "2 hours"), (200_000, "2 days")],
)
def test_durations_are_for_people(seconds: float, text: str) -> None:
    assert human_seconds(seconds) == text
