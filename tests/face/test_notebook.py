"""The notebook of the documentation, run by a kernel: what its cells show."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.profiles import takes_seconds

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook.ipynb"


@pytest.fixture(scope="module")
def html_of(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The HTML that each cell shows, by the last line of its code."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    place = {"metadata": {"path": str(tmp_path_factory.mktemp("notebook"))}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources=place).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    html = [[part.data.get("text/html", "") for part in cell.outputs if "data" in part] for cell in cells]
    assert all("text/plain" in part.data for cell in cells for part in cell.outputs if "data" in part)
    return {cell.source.splitlines()[-1]: "".join(parts) for cell, parts in zip(cells, html, strict=True)}


@takes_seconds
def test_a_table_shows_its_files(html_of: dict[str, str]) -> None:
    assert "10 files" in html_of["table"] and "lake/visits" in html_of["table"]


@takes_seconds
def test_advice_shows_what_to_build(html_of: dict[str, str]) -> None:
    (advice,) = [html for line, html in html_of.items() if line.startswith("sec.advise")]
    assert re.search(r"<td>bloom</td><td>user_id</td>", advice)


def test_an_index_snapshot_shows_what_it_covers(html_of: dict[str, str]) -> None:
    (built,) = [html for line, html in html_of.items() if line.startswith("sec.build_index")]
    assert "<th>rows</th><td>100,000</td>" in built and re.search(r"<td>user_id</td><td>bloom</td>", built)


def test_a_plan_shows_its_stages_and_blocks(html_of: dict[str, str]) -> None:
    assert "<svg" in html_of["plan"] and "filters" in html_of["plan"]


def test_verification_shows_its_verdict(html_of: dict[str, str]) -> None:
    assert "<th>sound</th><td>no fault found</td>" in html_of["sec.verify_index(table)"]


def test_a_report_shows_costs_and_clustering(html_of: dict[str, str]) -> None:
    assert "How well the table is clustered" in html_of["sec.report_index(table)"]
