"""The waterfall of a plan as a table: the initial counts, and what each stage left."""

from __future__ import annotations

from secateur.cli.output import CAUTION, QUIET, STRONG, Cell, OutputColumn, Sheet, count
from secateur.pruning.report import UNITS, Counts, Report, StageReport, human_bytes

BAR_WIDTH = 12
EIGHTHS = " ▏▎▍▌▋▊▉"


def waterfall(report: Report, *, bars: bool, brief: bool = False) -> Sheet:
    """Return a row for the table and one per stage; `brief` omits stages that changed nothing."""
    first = report.stages[0].before
    stages = [stage for stage in report.stages if not brief or stage.before != stage.after or stage.degraded]
    counts = [first, *(stage.after for stage in report.stages)]
    units = [unit for unit in UNITS if any(getattr(c, unit) is not None for c in counts)]
    rows = [_row(Cell("table"), None, first, units, None), *(_stage_row(stage, units) for stage in stages)]
    columns = [OutputColumn("stage", right=False), *map(OutputColumn, units), OutputColumn("ms")]
    if bars:
        columns.append(OutputColumn("rows left", right=False, spare=True))
        left = [first, *(stage.after for stage in stages)]
        rows = [(*row, Cell(_bar(c.rows, first.rows), "cyan")) for row, c in zip(rows, left, strict=True)]
    return Sheet(tuple(columns), tuple(rows))


def _stage_row(stage: StageReport, units: list[str]) -> tuple[Cell, ...]:
    name = Cell(f"{stage.name} (degraded)", CAUTION) if stage.degraded else Cell(stage.name)
    return _row(name, stage.before, stage.after, units, stage.seconds)


def _row(name: Cell, before: Counts | None, after: Counts, units: list[str], seconds: float | None) -> tuple[Cell, ...]:
    """Return one row; counts that the stage changed are highlighted."""
    cells = []
    for unit in units:
        number = getattr(after, unit)
        same = before is not None and getattr(before, unit) == number
        cells.append(Cell(_amount(unit, number), QUIET if same else STRONG))
    return (name, *cells, Cell("" if seconds is None else f"{seconds * 1000:.2f}", QUIET))


def _amount(unit: str, number: int | None) -> str:
    return human_bytes(number) if unit == "bytes" and number is not None else count(number)


def _bar(part: int | None, whole: int | None) -> str:
    """Draw a part of a whole as a bar; anything above zero is visible."""
    if part is None or not whole:
        return ""
    eighths = max(round(8 * BAR_WIDTH * part / whole), 1 if part else 0)
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()
