"""The HTML page of a plan: its counts are those of the report, and its size does not grow with the table."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.cli import main
from secateur.demo.lake import IndexCost, LakeDemo, LakeTrial, QueryRun
from secateur.demo.lake_questions import lake_questions
from secateur.html.lake_page import lake_page
from secateur.html.pictures import DEPTH_WIDTH, MAP_HEIGHT, MOST_ACROSS, bounds_map, depth_map, greatest_depth, strip
from secateur.html.timeline import HEIGHT, LEFT, TOP, WIDTH, RequestCurve, timeline
from secateur.io.scan.clustering import depths
from secateur.io.scan.fates import ColumnBounds, Fates, fates_of
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
        if tag not in ("meta", "path", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("meta", "path", "circle"):
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


def place(block: dict[str, Any]) -> tuple[str, int]:
    return block["file"], block["row_group"]


def test_segments_that_are_not_in_the_order_of_the_files(write_table: WriteTable) -> None:
    table = sec.open_table(str(make_table(write_table)))
    sec.build_index(table, sort_key=["x"], segment_blocks=3)
    for predicate in PREDICATES:
        plan = sec.prune(table, predicate, strict=True)
        fates = fates_of(plan)
        every = sorted(map(place, sec.prune(table, "TRUE").blocks.to_pylist()))
        read = set(map(place, plan.blocks.to_pylist()))
        assert fates.survives.tolist() == [block in read for block in every], predicate
        assert sum(Parts(plan.to_html()).blocks("fate").values()) == FILES * BLOCKS


def test_bounds_that_python_does_not_know(write_table: WriteTable) -> None:
    days = pa.array([-800_000, 3_000_000], pa.int32()).cast(pa.date32())
    plan = sec.prune(write_table({"a.parquet": pa.table({"day": days})}), "day IS NOT NULL")
    assert "top 10183-09-21" in plan.to_html()


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


@examples(60)
@given(n=st.integers(1, 60), seed=st.integers(0, 100), values=st.sampled_from((1, 7, 160, 1_000, 10**18)))
def test_depths_are_those_of_every_value(n: int, seed: int, values: int) -> None:
    """The step line is the greatest number of bounds around a value of the pixel, for all blocks and for survivors."""
    rng = np.random.default_rng(seed)
    lower = rng.integers(0, values, n)
    upper = lower + rng.integers(0, max(values // 5, 1), n, endpoint=True)
    bounds = ColumnBounds(Field(("c",), pa.int64()), lower, upper, rng.random(n) < 0.9)
    bounds.known[0] = True
    fates = Fates(("zone maps",), rng.choice(2, n), ())
    drawn = depth_map(bounds, fates)
    assert greatest_depth(bounds) == depths(lower[bounds.known], upper[bounds.known])[0].max()
    least, most = float(lower[bounds.known].min()), float(upper[bounds.known].max())
    pixels = {}
    for tag, attributes in Parts(drawn).found:
        if tag == "path":
            assert attributes["class"] == "depth"
            pixels[attributes["data-part"]] = rows_of(str(attributes["d"]))
    known = bounds.known & fates.survives
    assert pixels.keys() == ({"all", "read"} if known.any() else {"all"})
    for name, which in (("all", bounds.known), ("read", known)):
        wanted = np.zeros(MAP_HEIGHT)
        for value in np.concatenate([lower[which], upper[which]]):  # the depth changes at bounds only
            pixel = min(int((value - least) / max(most - least, 1.0) * MAP_HEIGHT), MAP_HEIGHT - 1)
            depth = np.count_nonzero((lower[which] <= value) & (value <= upper[which]))
            wanted[pixel] = max(wanted[pixel], depth)
        enclosing = pixels.get(name, np.zeros(MAP_HEIGHT))[::-1] * greatest_depth(bounds) / DEPTH_WIDTH
        has_bound = wanted > 0
        assert enclosing[has_bound] == pytest.approx(wanted[has_bound], abs=0.06)
        for pixel in np.flatnonzero(~has_bound):  # no bound lies here: the depth of all of its values is the same
            value = least + (pixel + 0.5) / MAP_HEIGHT * max(most - least, 1.0)
            depth = np.count_nonzero((lower[which] < value) & (value < upper[which]))
            assert enclosing[pixel] == pytest.approx(depth, abs=0.06)


def test_depths_of_floats_are_at_the_height_of_their_rank() -> None:
    keys = np.array([-5, 0, 3, 2**62])  # far apart as keys; as ranks 0, 1, 2 and 3 of 3
    bounds = ColumnBounds(Field(("c",), pa.float64()), keys[[0, 0, 1]], keys[[3, 1, 2]], np.ones(3, bool))
    (path,) = (
        g for tag, g in Parts(depth_map(bounds, Fates(("zone maps",), np.zeros(3, int), ()))).found if tag == "path"
    )
    rows = rows_of(str(path["d"])) * 3 / DEPTH_WIDTH
    assert path["data-depth"] == "3"
    third = MAP_HEIGHT / 3
    assert rows[::-1][[0, int(third) - 1, int(third), int(2 * third), MAP_HEIGHT - 1]].tolist() == [2, 2, 3, 2, 1]


def rows_of(path: str) -> np.ndarray:
    """The width of every pixel row of a step line, from the top."""
    rows, above = np.zeros(MAP_HEIGHT), 0
    for width, end in re.findall(r"H([\d.]+)V(\d+)", path):
        rows[above : int(end)], above = float(width), int(end)
    assert above == MAP_HEIGHT
    return rows


@examples(60)
@given(
    runs=st.lists(st.lists(st.floats(0, 50, allow_subnormal=False), max_size=50), min_size=1, max_size=2),
    seconds=st.floats(0.01, 60),
)
def test_requests_add_up_over_time(runs: list[list[float]], seconds: float) -> None:
    curves = [RequestCurve(f"run <{i}>", sorted(run), seconds, "#000") for i, run in enumerate(runs)]
    parts = Parts(timeline(curves))
    assert parts.open == []
    lines = [attributes for tag, attributes in parts.found if attributes.get("class") == "requests"]
    most, longest = max(map(len, runs)), max(seconds, *(max(run, default=0) for run in runs))
    for curve, line in zip(curves, lines, strict=True):
        assert (line["data-run"], line["data-requests"]) == (curve.name, str(len(curve.arrivals)))
        steps = [0]
        for x, y in re.findall(r"H(\d+)V([\d.]+)", str(line["d"])):
            moment = (int(x) - LEFT) / WIDTH * longest
            steps.append(round((TOP + HEIGHT - float(y)) / HEIGHT * most))
            least, greatest = (sum(a <= moment + d for a in curve.arrivals) for d in (-1e-9, 1e-9))
            assert least <= steps[-1] <= greatest, "but for rounding of a time"
        assert steps[-1] == len(curve.arrivals), "the line ends with the last request"
        assert steps == sorted(set(steps))


def test_the_lake_page_draws_the_requests_of_every_query(write_table: WriteTable) -> None:
    root = str(make_table(write_table))
    index, plan = sec.build_index(root), sec.prune(root, "id = 137")
    alone = QueryRun(("row",), 4.0, 5_000, 10_000, 40, 20, tuple(np.linspace(0.1, 3.9, 5_000).tolist()))
    pruned = QueryRun(("row",), 0.5, 3, 100, 3, 1, (0.1, 0.2, 0.3))
    nothing = QueryRun(("row",), 0.5, 0, 0, 0, 0, ())
    some = lake_questions(20)[:2]
    trials = (LakeTrial(some[0], alone, pruned, plan), LakeTrial(some[1], alone, nothing, None))
    text = lake_page(LakeDemo(20, 10**6, IndexCost(index, 1.0, 30, 10**5), trials, 10.0))
    parts = Parts(text)
    assert parts.open == []
    lines = [attributes for tag, attributes in parts.found if attributes.get("class") == "requests"]
    counts = [(line["data-run"], line["data-requests"]) for line in lines]
    assert counts == [(n, c) for few in ("3", "0") for n, c in (("Spark alone", "5000"), ("with the index", few))]
    assert len({line["stroke"] for line in lines}) == 2
    assert text.count(">seconds</text>") == text.count(">requests</text>") == len(trials)
    assert all(len(str(line["d"])) < 20 * WIDTH for line in lines), "no longer than the picture is wide"


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
