"""The logged plans as HTML: the shapes that read the most, and what each stage leaves."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from secateur.html.index_page import clustering_parts
from secateur.html.pictures import QUIET, SURVIVES, bar, colour_of
from secateur.html.plan_page import page
from secateur.maintain.index_state import ColumnClustering
from secateur.pruning.report import human_bytes
from secateur.workloads import ShapeUse, Workload

IDEAL = "ideal index"  # the row after the stages


def workload_page(workload: Workload, clustering: Sequence[ColumnClustering] = ()) -> str:
    """Return the whole page, with how well the table is clustered by some columns."""
    total = workload.bytes_read
    parts = [
        "<h1>What is asked, and what it reads</h1>",
        f'<p class="headline">{workload.plans:,} plans of {len(workload.shapes):,} shapes read '
        f"{human_bytes(total)}.</p>",
        f'<p class="quiet">log {escape(workload.log)}; {workload.unreadable:,} lines are not plans. A <code>?</code> '
        "stands for a literal. Bars are linear: bytes read of all bytes that are read. An ideal index reads row groups "
        "that hold a match; a dash: no read has told which these are.</p>",
        _table(workload, total),
        *_column_parts(workload, total),
        *(clustering_parts(clustering) if clustering else ()),
        *(part for number, use in enumerate(workload.shapes, 1) for part in _shape_parts(number, use)),
    ]
    return page("secateur: what is asked, and what it reads", parts)


def _table(workload: Workload, total: int) -> str:
    heads = ("#", "shape", "plans", "literals", "bytes read", "", "ideal", "of the table", "planning ms")
    head = "".join(f"<th>{name}</th>" for name in heads)
    rows = (
        f'<tr data-shape="{escape(use.shape)}"><td>{number}</td><td class="left"><code>{escape(use.shape)}</code></td>'
        f'<td data-count="{use.plans}">{use.plans:,}</td><td>{use.literals:,}</td>'
        f'<td data-unit="bytes" data-count="{use.bytes_read}">{human_bytes(use.bytes_read)}</td>'
        f"<td>{bar(use.bytes_read, total)}</td>{_ideal(use)}<td>{_share(use.bytes_read, use.bytes_before)}</td>"
        f"<td>{use.planning_ms:.1f}</td></tr>"
        for number, use in enumerate(workload.shapes, 1)
    )
    return f'<table class="shapes"><tr>{head}</tr>{"".join(rows)}</table>'


def _column_parts(workload: Workload, total: int) -> list[str]:
    several = len({use.table for use in workload.columns}) > 1
    rows = (
        f'<tr data-column="{escape(use.column)}"><td class="left"><code>{escape(use.column)}</code>'
        f"{' of ' + escape(use.table) if several else ''}</td><td>{use.plans:,}</td>"
        f'<td data-unit="bytes" data-count="{use.bytes_read}">{human_bytes(use.bytes_read)}</td>'
        f"<td>{bar(use.bytes_read, total)}</td></tr>"
        for use in workload.columns
    )
    return [
        "<h2>Which columns are asked for</h2>",
        '<p class="quiet">The bytes that plans read whose predicate names the column, in all columns. A plan that '
        "names several counts for each.</p>",
        '<table class="columns"><tr><th>column</th><th>plans</th><th>bytes read</th><th></th></tr>',
        *rows,
        "</table>",
    ]


def _ideal(use: ShapeUse) -> str:
    """Return the cell that says what an ideal index would read."""
    if use.ideal_bytes is None:
        return "<td>-</td>"
    return f'<td data-unit="ideal" data-count="{use.ideal_bytes}">{human_bytes(use.ideal_bytes)}</td>'


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.3g} %" if whole else "-"


def _shape_parts(number: int, use: ShapeUse) -> list[str]:
    stages = [("table", use.bytes_before, QUIET), *((n, left, colour_of(n)) for n, left in _stages(use))]
    if use.ideal_bytes is not None:
        stages.append((IDEAL, use.ideal_bytes, QUIET))
    rows = (
        f'<tr><td>{escape(name)}</td><td data-unit="bytes" data-count="{left}">{human_bytes(left)}</td>'
        f"<td>{bar(left, use.bytes_before, SURVIVES if left == use.bytes_read and name != IDEAL else colour)}</td></tr>"
        for name, left, colour in stages
    )
    degraded = f", {use.degraded:,} of them without some of the index" if use.degraded else ""
    return [
        f"<h2>{number}. <code>{escape(use.shape)}</code></h2>",
        f'<p class="quiet">{escape(use.table)}; {use.plans:,} plans from {escape(use.first)} to '
        f"{escape(use.last)}{degraded}; {use.blocks_read:,} of {use.blocks_before:,} blocks read; planning "
        f"{use.planning_ms:.1f} ms, at most {use.most_planning_ms:.1f}</p>",
        f'<table class="stages"><tr><th>stage</th><th>bytes left</th><th></th></tr>{"".join(rows)}</table>',
    ]


def _stages(use: ShapeUse) -> list[tuple[str, int]]:
    return list(use.bytes_after_stage.items())
