"""docs/read-sweep.svg: every cell of the sweep as a coloured number, the ratio to pyarrow's whole read.

``python -m benchmarks.reading.sweep_picture`` measures and draws it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from benchmarks.__main__ import DATA
from benchmarks.reading.read_sweep import MATCHES, SURVIVORS, Cell, local_cells, s3_cells
from benchmarks.setting import Setting
from secateur.plotting import INK, STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURE = Path(__file__).parents[2] / "docs" / "read-sweep.svg"
COLOURS = "PuOr_r"  # of ColorBrewer, safe for colour-blind readers: purple is faster, orange slower
LEAST, MOST = 0.25, 2.0  # ratios that have the deepest colours
ROW, COLUMN, HEAD = 0.24, 0.78, 1.3  # inches
NARROW = 12  # characters of a line below a column


@click.command()
@click.option("--scale", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True, help="Size.")
@click.option("--repetitions", type=click.IntRange(min=1), default=3, show_default=True, help="Least, per time.")
@click.option("--directory", type=click.Path(path_type=Path), default=DATA, help="Where generated data is kept.")
def main(scale: float, repetitions: int, directory: Path) -> None:
    """Measure the sweep on the local disk and on S3, and draw it."""
    setting = Setting(directory.absolute(), scale, repetitions)
    draw({"local disk, CPU time": list(local_cells(setting)), "S3, by the clock": list(s3_cells(setting))}, PICTURE)
    click.echo(f"{PICTURE} is drawn")


def draw(panels: Mapping[str, Sequence[Cell]], path: Path) -> None:
    """Draw a panel for each kind of storage."""
    rows = max(len(_rows(cells)) for cells in panels.values())
    with matplotlib.rc_context(STYLE):
        figure = Figure(
            figsize=(COLUMN * 2 * len(MATCHES) * len(panels) + 2.6, ROW * rows + HEAD),
            layout="constrained",
            facecolor="white",
        )
        FigureCanvasAgg(figure)
        axes = figure.subplots(1, len(panels), squeeze=False)
        for axis, (title, cells) in zip(axes[0], panels.items(), strict=True):
            _panel(axis, cells)
            axis.set_title(title, color=INK)
        figure.savefig(path, metadata={"Date": None})


def _panel(axis: Axes, cells: Sequence[Cell]) -> None:
    rows = _rows(cells)
    columns = [(matches, is_wide) for is_wide in (True, False) for matches in MATCHES]
    ratio = {
        ((cell.case.row_group, cell.case.survivors), (cell.case.matches, cell.case.columns is None)): cell.ratio
        for cell in cells
    }
    norm = TwoSlopeNorm(1.0, LEAST, MOST)
    axis.imshow([[ratio[row, column] for column in columns] for row in rows], COLOURS, norm, aspect="auto")
    for y, row in enumerate(rows):
        for x, column in enumerate(columns):
            times = ratio[row, column]
            is_dark = abs(norm(times) - 0.5) > 0.3
            axis.text(x, y, f"{times:.2f}", ha="center", va="center", color="white" if is_dark else INK)
    axis.set_yticks(range(len(rows)), [f"{size:,} rows, {survivors}" for size, survivors in rows])
    names = [f"{matches}, {'all columns' if is_wide else 'two columns'}" for matches, is_wide in columns]
    axis.set_xticks(range(len(columns)), [textwrap.fill(name, NARROW) for name in names])
    axis.tick_params(length=0, colors=INK)
    axis.spines[:].set_visible(False)


def _rows(cells: Sequence[Cell]) -> list[tuple[int, str]]:
    sizes = dict.fromkeys(cell.case.row_group for cell in cells)
    return [(size, survivors) for size in sizes for survivors in SURVIVORS]


if __name__ == "__main__":
    main()
