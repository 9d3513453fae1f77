"""Draw the demo's waterfalls: a panel per question, a bar per stage and copy."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from secateur.demo.lineitem import DemoNotPossible
from secateur.plotting import INK, LABEL_SHARE, LEAST_SHARE, PALE, STYLE, amounts, short
from secateur.pruning.report import Counts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from secateur.demo.trials import Trial

# From the palette of Okabe and Ito, which is safe for colour-blind readers; they differ in lightness too.
COLOURS = {"generated": "#0072B2", "clustered": "#E69F00"}
PANELS_ACROSS = 2
PANEL_WIDTH, PANEL_HEIGHT, HEAD_HEIGHT = 5.2, 1.95, 0.75  # inches
BAR_HEIGHT = 0.36
PICTURES = ("waterfall.png", "waterfall.svg")


@dataclass(frozen=True)
class Bar:
    """What remains of one copy after one stage."""

    stage: str
    copy: str
    left: Counts


def require_matplotlib() -> None:
    """Raise DemoNotPossible if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise DemoNotPossible("the picture needs matplotlib: pip install 'secateur[demo]'")


def draw_waterfalls(trials: Sequence[Trial], directory: Path) -> tuple[Path, ...]:
    """Write the picture as PNG and SVG into a directory; return the paths."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    stages = _stages(trials)
    panels = list(dict.fromkeys(trial.question.name for trial in trials))
    down = math.ceil(len(panels) / PANELS_ACROSS)
    height = PANEL_HEIGHT * down + HEAD_HEIGHT
    with matplotlib.rc_context(STYLE):
        layout = ConstrainedLayoutEngine(rect=(0, 0, 1, 1 - HEAD_HEIGHT / height), hspace=0.06, wspace=0.03)
        figure = Figure(figsize=(PANEL_WIDTH * PANELS_ACROSS, height), layout=layout, facecolor="white")
        FigureCanvasAgg(figure)
        axes = figure.subplots(down, PANELS_ACROSS, squeeze=False).flat
        for name, axis in zip(panels, axes, strict=False):
            _draw_panel(axis, [trial for trial in trials if trial.question.name == name], stages)
        for axis in list(axes)[len(panels) :]:
            axis.set_axis_off()
        _draw_head(figure, trials, height)
        paths = tuple(directory / name for name in PICTURES)
        for path in paths:
            figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    return paths


def _stages(trials: Sequence[Trial]) -> list[str]:
    """Return the stages that left fewer rows in any trial, in order, after "table", the initial state."""
    changing = {
        stage.name for trial in trials for stage in trial.report.stages if stage.before.rows != stage.after.rows
    }
    return ["table", *(stage.name for stage in trials[0].report.stages if stage.name in changing)]


def _draw_head(figure: object, trials: Sequence[Trial], height: float) -> None:
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    assert isinstance(figure, Figure), "typed as object, so that matplotlib is imported late"
    rows = trials[0].report.stages[0].before.rows or 0
    figure.text(
        0.012, 1 - 0.22 / height, "What is left to read after each stage of pruning", fontsize=12, weight="bold"
    )
    scale = f"lineitem of TPC-H, {rows:,} rows in two orders; bars: rows left, on a linear scale"
    figure.text(0.012, 1 - 0.44 / height, scale, color=PALE, fontsize=8.5)
    orders = {"generated": "as generated", "clustered": "sorted by l_shipdate"}
    copies = dict.fromkeys(trial.copy for trial in trials)
    handles = [Patch(color=COLOURS[copy], label=orders[copy]) for copy in copies]
    figure.legend(handles=handles, loc="upper right", ncols=len(handles), frameon=False, fontsize=9)


def _draw_panel(axis: Axes, trials: Sequence[Trial], stages: Sequence[str]) -> None:
    """Draw one question: for every stage the bars of all copies, and a line at the number of matching rows."""
    most = max(trial.report.stages[0].before.rows or 1 for trial in trials)
    bars = [bar for trial in trials for bar in _bars(trial, stages)]
    for bar in bars:
        _draw_bar(axis, bar, stages.index(bar.stage), list(COLOURS).index(bar.copy), most)
    matching = trials[0].answer.rows
    if matching:
        axis.axvline(matching, color=INK, linewidth=0.9, linestyle=(0, (2, 2)), zorder=3)
    _dress(axis, trials[0], stages, most)


def _dress(axis: Axes, trial: Trial, stages: Sequence[str], most: int) -> None:
    axis.set_xlim(0, most / (1 - LABEL_SHARE))
    axis.set_xticks([0, most // 2, most], ["0", short(most // 2), short(most)], color=PALE)
    axis.set_yticks(range(len(stages)), stages)
    axis.set_ylim(len(stages) - 0.45, -0.55)
    axis.tick_params(length=0, pad=3)
    axis.spines[:].set_visible(False)
    rows = trial.answer.rows
    matches = {0: "no row matches", 1: "1 row matches"}.get(rows, f"{rows:,} rows match")
    axis.set_title(f"{trial.question.name}: {matches}", loc="left", weight="bold", fontsize=9, pad=15)
    sql = textwrap.shorten(trial.question.sql, 84, placeholder=" ...")
    axis.text(0, 1.03, sql, transform=axis.transAxes, fontsize=6.6, family="monospace", color=PALE)


def _bars(trial: Trial, stages: Sequence[str]) -> list[Bar]:
    table = Bar("table", trial.copy, trial.report.stages[0].before)
    return [table, *(Bar(s.name, trial.copy, s.after) for s in trial.report.stages if s.name in stages)]


def _draw_bar(axis: Axes, bar: Bar, stage: int, copy: int, most: int) -> None:
    rows = bar.left.rows or 0
    at = stage + (copy - 0.5) * (BAR_HEIGHT + 0.06)
    axis.barh(at, max(rows, LEAST_SHARE * most) if rows else 0, BAR_HEIGHT, color=COLOURS[bar.copy], zorder=2)
    axis.annotate(amounts(bar.left), (rows, at), (4, 0), textcoords="offset points", va="center", fontsize=7, zorder=4)
