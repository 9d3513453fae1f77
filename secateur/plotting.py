"""The picture of a plan: what each stage leaves, as bars on a linear axis. Drawn by matplotlib."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from secateur.errors import PackageMissing
from secateur.pruning.report import Counts, Report, human_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, PALE = "#222222", "#8a8a8a"
# From the palette of Okabe and Ito, which is safe for colour-blind readers
LEFT, SURVIVES = "#0072B2", "#E69F00"
WIDTH, ROW_HEIGHT, HEAD_HEIGHT = 7.5, 0.34, 0.9  # inches
BAR_HEIGHT = 0.6
LABEL_SHARE = 0.42  # share of a panel's width for labels, beside the longest bar's
LEAST_SHARE = 0.003  # of the axis, so that a bar above zero is visible
LONGEST_TITLE = 110  # characters of a predicate
STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "font.size": 8,
    "text.color": INK,
    "axes.labelcolor": INK,
    "svg.fonttype": "none",  # text stays text: smaller, and searchable
    "svg.hashsalt": "secateur",  # makes the bytes of the picture reproducible
}


def plan_figure(report: Report) -> Figure:
    """Draw what each stage leaves of a table: rows, or bytes if some rows were not counted.

    Raises PackageMissing without matplotlib.
    """
    if find_spec("matplotlib") is None:
        raise PackageMissing("plan.plot() needs matplotlib: pip install 'secateur[plot]'")
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    first = report.stages[0].before
    changing = [stage for stage in report.stages if stage.before != stage.after]
    bars = [("table", first), *((stage.name, stage.after) for stage in changing)]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, ROW_HEIGHT * len(bars) + HEAD_HEIGHT), layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        axis = figure.subplots()
        lengths = _lengths([left for _, left in bars])
        most = max(lengths[0], 1)
        for row, (length, (_, left)) in enumerate(zip(lengths, bars, strict=True)):
            colour = SURVIVES if row == len(bars) - 1 else LEFT
            axis.barh(row, max(length, LEAST_SHARE * most) if length else 0, BAR_HEIGHT, color=colour)
            axis.annotate(amounts(left), (length, row), (4, 0), textcoords="offset points", va="center", fontsize=7)
        axis.set_xlim(0, most / (1 - LABEL_SHARE))
        axis.set_xticks([0, most // 2, most], ["0", short(most // 2), short(most)], color=PALE)
        axis.set_yticks(range(len(bars)), [name for name, _ in bars])
        axis.set_ylim(len(bars) - 0.45, -0.55)
        axis.tick_params(length=0, pad=3)
        axis.spines[:].set_visible(False)
        title = textwrap.shorten(report.predicate, LONGEST_TITLE, placeholder=" ...")
        axis.set_title(title.replace("$", r"\$"), loc="left", weight="bold", fontsize=9)
    return figure


def _lengths(left: Sequence[Counts]) -> list[int]:
    """Return the rows that are left after every stage, or the bytes if some rows were not counted."""
    rows = [counts.rows for counts in left if counts.rows is not None]
    return rows if len(rows) == len(left) else [counts.bytes or 0 for counts in left]


def amounts(left: Counts) -> str:
    """Return what is left in words: blocks, or files where these are not counted, rows and bytes."""
    if left.blocks == 0 or not left.bytes:
        return "nothing"
    units, noun = (left.files, "file") if left.blocks is None else (left.blocks, "block")
    rows = "" if left.rows is None else f"{short(left.rows)} rows · "
    return f"{units:,} {noun}{'' if units == 1 else 's'} · {rows}{human_bytes(left.bytes)}"


def short(number: int) -> str:
    """Format a number with three digits: ``6.00 M``, ``15.0 k``, ``7``."""
    for size, unit in ((1_000_000, " M"), (1_000, " k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return str(number)
