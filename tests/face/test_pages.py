"""The HTML page of a plan: its counts are those of the report, and its size does not grow with the table."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.cli import main
from secateur.html.pictures import MOST_ACROSS, bounds_map, strip
from secateur.io.scan.fates import ColumnBounds, Fates
from secateur.pruning.predicate.bound import Field
from tests.support.profiles import examples
from tests.support.tables import WriteTable

FILES, BLOCKS, ROWS = 6, 5, 20
PREDICATES = (
    "id = 137",
    "id BETWEEN 130 AND 210 OR x > 0.99",
    "user = 77",
    "name LIKE 'n-1%' AND id < 300",
    "day = 3",
    "id < 0",
    "TRUE",
)


class Parts(HTMLParser):
    """The elements of a page that carry data, as their attributes; tags that stand open at the end."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))
        if tag not in ("meta", "path"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("meta", "path"):
            assert self.open.pop() == tag

    def blocks(self, name: str) -> dict[str, int]:
        """The blocks that the paths of a class stand for, by what they show."""
        paths = [given for tag, given in self.found if tag == "path" and given["class"] == name]
        return {str(p.get("data-stage") or p["data-part"]): int(str(p["data-blocks"])) for p in paths}

    def counts(self, unit: str) -> list[int]:
        """The cells of the table of stages that count something, from the top."""
        return [int(str(g["data-count"])) for tag, g in self.found if tag == "td" and g.get("data-unit") == unit]


def make_table(write_table: WriteTable) -> Path:
    rng = np.random.default_rng(5)
    n = BLOCKS * ROWS
    files = {}
    for i in range(FILES):
        row = np.arange(i * n, (i + 1) * n)
        columns = {"id": row, "user": row * 7919 % 1000, "x": rng.random(n), "name": [f"n-{v}" for v in row]}
        files[f"day={i}/part.parquet"] = pa.table(columns)
    return write_table(files, row_group_size=ROWS)


def test_counts_are_those_of_the_report(write_table: WriteTable) -> None:
    table = sec.open_table(str(make_table(write_table)))
    sec.build_index(table, bloom=["user"])
    for predicate in PREDICATES:
        plan = sec.prune(table, predicate, strict=True)
        parts, stages = Parts(plan.to_html()), plan.report.stages
        assert parts.open == []
        for unit in ("blocks", "rows", "bytes"):
            assert parts.counts(unit) == [getattr(c, unit) for c in (stages[0].before, *(s.after for s in stages))]
        pruned = {s.name: (s.before.blocks or 0) - (s.after.blocks or 0) for s in stages}
        drawn = {**pruned, "read": len(plan.blocks)}
        assert parts.blocks("fate") == {name: number for name, number in drawn.items() if number}, predicate
        assert sum(parts.blocks("fate").values()) == FILES * BLOCKS


def test_the_page_needs_nothing_else(write_table: WriteTable, tmp_path: Path) -> None:
    root, path = make_table(write_table), tmp_path / "report.html"
    done = CliRunner().invoke(main, ["prune", str(root), "x < 0.1 AND name = '<b>&'", "--html", str(path)])
    assert done.exit_code == 0, done.output
    text = path.read_text()
    assert not re.search(r"<script|<link|<img|src=|href=|url\(", text)
    assert "&lt;b&gt;&amp;" in text and "<b>" not in text
    assert Parts(text).blocks("bounds").keys() <= {"pruned", "read"}
    plan = sec.prune(sec.open_table(str(root)), "id = 137")
    assert "<html" not in plan._repr_html_() and "fate" in plan._repr_html_()
    named = CliRunner().invoke(main, ["demo", str(root), "id = 137", "--directory", str(tmp_path / "own")])
    assert named.exit_code == 0, named.output
    assert Parts((tmp_path / "own" / "plan.html").read_text()).blocks("fate")["read"] == 1
    assert not list(root.glob("_*"))


@examples(60)
@given(n=st.integers(1, 40), seed=st.integers(0, 100), million=st.booleans())
def test_strips_of_any_length(n: int, seed: int, million: bool) -> None:
    """Every block is counted, and each pixel's heights fill it, however many blocks it stands for."""
    rng = np.random.default_rng(seed)
    n = n * 1_000 + 3 if million else n
    fates = Fates(("files", "zone maps"), rng.choice(3, n, p=(0.5, 0.49, 0.01)), ())
    drawn = strip(fates)
    counts = Parts(drawn).blocks("fate")
    assert [counts.get(name, 0) for name in ("files", "zone maps", "read")] == fates.counts.tolist()
    assert drawn.count("M") <= 3 * MOST_ACROSS
    lower = rng.integers(0, 1000, n)
    bounds = ColumnBounds(Field(("c",), pa.int64()), lower, lower + rng.integers(0, 9, n), rng.random(n) < 0.9)
    known_blocks = Parts(bounds_map(bounds, fates)).blocks("bounds")
    assert sum(known_blocks.values()) == int(bounds.known.sum())


def test_a_million_blocks_are_a_small_page() -> None:
    stage = np.zeros(1_000_000, np.int64)
    stage[123_456] = 1
    drawn = strip(Fates(("zone maps",), stage, ()))
    assert len(drawn) < 1_000
    assert Parts(drawn).blocks("fate") == {"zone maps": 999_999, "read": 1}


def test_a_plan_is_plotted_stage_by_stage(write_table: WriteTable, tmp_path: Path) -> None:
    root = make_table(write_table)
    sec.build_index(str(root), bloom=["user"])
    for predicate in PREDICATES:
        plan = sec.prune(str(root), predicate)
        figure = plan.plot()
        (axis,) = figure.axes
        stages = [stage for stage in plan.report.stages if stage.before != stage.after]
        assert [label.get_text() for label in axis.get_yticklabels()] == ["table", *(stage.name for stage in stages)]
        rows = [plan.report.stages[0].before.rows, *(stage.after.rows for stage in stages)]
        texts = [text.get_text() for text in axis.texts]
        for text, count, bar in zip(texts, rows, axis.patches, strict=True):
            assert (text == "nothing") == (count == 0)
            assert bar.get_width() == pytest.approx(count, abs=0.003 * FILES * BLOCKS * ROWS)
        figure.savefig(tmp_path / "plan.svg")
        assert "table" in (tmp_path / "plan.svg").read_text()


def test_an_empty_table_is_plotted(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([], pa.int64())}), tmp_path / "empty.parquet")
    (axis,) = sec.prune(str(tmp_path), "id = 1").plot().axes
    assert re.fullmatch(r"1 file · \d+ B", axis.texts[0].get_text())
    assert axis.texts[-1].get_text() == "nothing"
