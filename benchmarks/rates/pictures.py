"""Pictures of pruning rates: what each technique prunes of a workload, and what single scans keep beside the ideal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.rates.scans import FILTERS, JOINS, LIMIT, TOP_N, ZONE_MAPS, Measured
from benchmarks.rates.summary import Group
from secateur.plotting import INK, PALE, STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# From the palette of Okabe and Ito, which is safe for colour-blind readers
COLOURS = {ZONE_MAPS: "#0072B2", FILTERS: "#56B4E9", JOINS: "#009E73", LIMIT: "#F0E442", TOP_N: "#CC79A7"}
KEPT, IDEAL, OTHER = "#D55E00", "#222222", "#BBBBBB"
ROW = 0.34  # inches


def draw_techniques(groups: Sequence[Group], path: Path) -> None:
    """A bar for each table: the shares of blocks that techniques prune, and what is kept; a line at the ideal."""
    with matplotlib.rc_context(STYLE):
        figure, axis = _figure(len(groups))
        for row, group in enumerate(groups):
            start = 0.0
            for technique, colour in COLOURS.items():
                width = 100 * group.share(group.pruned[technique])
                axis.barh(row, width, 0.62, start, color=colour, label=None if row else technique)
                start += width
            axis.barh(row, 100 - start, 0.62, start, color=KEPT, label=None if row else "kept")
            ideal = 100 - 100 * group.share(group.ideal)
            axis.plot(
                [ideal, ideal], [row - 0.42, row + 0.42], color=IDEAL, label=None if row else "right of it: the ideal"
            )
        _dress(axis, [f"{group.table} ({group.scans} scans)" for group in groups], "% of the blocks of all scans")
        _save(figure, axis, path)


def draw_scans(scans: Sequence[Measured], other: str, path: Path) -> None:
    """For each scan the share of blocks that another engine keeps, that secateur keeps, and a line at the ideal."""
    with matplotlib.rc_context(STYLE):
        figure, axis = _figure(len(scans))
        for row, scan in enumerate(scans):
            shares = [
                100 * blocks / scan.all.blocks for blocks in (scan.others[other], scan.kept.blocks, scan.ideal.blocks)
            ]
            axis.barh(row, shares[0], 0.62, color=OTHER, label=None if row else other)
            axis.barh(row, shares[1], 0.36, color=KEPT, label=None if row else "secateur")
            axis.plot([shares[2]] * 2, [row - 0.42, row + 0.42], color=IDEAL, label=None if row else "ideal")
        _dress(axis, [scan.name for scan in scans], "% of all blocks that are read")
        _save(figure, axis, path)


def _figure(rows: int) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(8.4, ROW * rows + 0.9), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure, figure.subplots()


def _dress(axis: Axes, labels: Sequence[str], scale: str) -> None:
    axis.set_yticks(range(len(labels)), labels)
    axis.set_ylim(len(labels) - 0.4, -0.6)
    axis.set_xlim(0, 100)
    axis.set_xlabel(scale, color=PALE)
    axis.tick_params(length=0, colors=INK)
    axis.spines[:].set_visible(False)


def _save(figure: Figure, axis: Axes, path: Path) -> None:
    handles, names = axis.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(names), frameon=False)
    figure.savefig(path, metadata={"Date": None})
