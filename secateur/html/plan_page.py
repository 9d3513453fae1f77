"""A plan as HTML: what each stage left, the blocks in file order, and the bounds that decided."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from secateur.html.pictures import SURVIVES, bar, bounds_map, colour_of, depth_map, greatest_depth, range_of, strip
from secateur.io.scan.fates import Fates, fates_of
from secateur.io.scan.planned_scan import PlannedScan
from secateur.pruning.report import Counts, human_bytes

STYLE = """
.secateur{font:14px/1.5 system-ui,sans-serif;color:#222;max-width:1200px;margin:1em auto}
.secateur h1{font-size:22px}.secateur h2{font-size:17px;margin:1.6em 0 .3em}
.secateur svg{display:block;width:100%;background:#f6f6f6}
.secateur table{border-collapse:collapse}.secateur td,.secateur th{padding:2px 12px 2px 0;text-align:right}
.secateur td{white-space:nowrap}.secateur td.quiet{white-space:normal}
.secateur td:first-child,.secateur th:first-child,.secateur td.left,.secateur th.left{text-align:left}
.secateur .map{display:flex;gap:6px}.secateur .map svg{min-width:0}
.secateur .map svg:last-child{flex:none;width:120px}
.secateur .bar{display:inline-block;width:200px;height:10px;background:#eee}
.secateur .bar span{display:block;height:10px}
.secateur .key{display:inline-block;width:10px;height:10px;margin:0 4px 0 12px}.secateur .key:first-child{margin-left:0}
.secateur code,.secateur pre{font-family:ui-monospace,monospace;font-size:13px}
.secateur pre{white-space:pre-wrap}
.secateur p{margin:.3em 0}.secateur .quiet{color:#666}.secateur .headline{font-size:18px;font-weight:600}
"""
MEANS = {
    "files": "partition values and file names rule out whole files",
    "segments": "a tree of merged bounds rules out groups of blocks at once",
    "top-n segments": "groups of blocks that cannot hold one of the first rows of the order",
    "filters": "bloom filters, postings, n-grams and words tell which blocks may hold a value or a part of a text",
    "zone maps": "the bounds of a block's values rule it out",
    "remembered": "an earlier read of the same condition, or of a wider one, found no row in the block",
    "deletes": "all of the block's rows are deleted",
    "limit": "other blocks are sure to hold as many rows as are asked for",
    "top-n": "the block cannot hold one of the first rows of the order",
    "pages": "the bounds of pages leave ranges of rows within blocks",
    "first rows": "values kept in order say which rows may be among the first of the order",
    "rows": "postings say which rows hold what is asked for",
}


def page(title: str, parts: Sequence[str]) -> str:
    """Return a whole, self-contained document."""
    head = f'<meta charset="utf-8"><title>{escape(title)}</title>'
    return f'<!DOCTYPE html><html lang="en"><head>{head}</head><body>{fragment(parts)}</body></html>\n'


def fragment(parts: Sequence[str]) -> str:
    """Return parts of a page with their style."""
    return f'<style>{STYLE}</style><div class="secateur">{"".join(parts)}</div>'


def plan_parts(plan: PlannedScan, level: int = 1) -> list[str]:
    """Return the parts of a page about a plan; headings start at a level."""
    report, fates = plan.report, fates_of(plan)
    head = f"<h{level}><code>{escape(report.predicate)}</code></h{level}>"
    facts = [f"table {report.described_table()}", f"index: {report.index}", *([report.order] if report.order else [])]
    troubles = [
        *(f"not used for pruning: {reason}" for reason in report.unsupported),
        *(f"degraded: {reason}" for reason in report.degraded),
    ]
    return [
        head,
        f'<p class="quiet">{escape("; ".join(facts))}</p>',
        _table(plan),
        *(f"<p>{escape(trouble)}</p>" for trouble in troubles),
        *_strip_parts(fates, level + 1),
        *_map_parts(fates, level + 1),
    ]


def _table(plan: PlannedScan) -> str:
    """Return a table of the initial counts and of those after each stage, with bars of bytes."""
    first = plan.report.stages[0].before
    counted = "".join(f"<th>{name}</th>" for name in ("stage", "files", "blocks", "rows", "bytes"))
    head = f'<tr>{counted}<th class="left">bytes left</th><th></th></tr>'
    rows = [_row("table", first, first, "")]
    for stage in plan.report.stages:
        meaning = "" if stage.before == stage.after else MEANS.get(stage.name, "")
        rows.append(_row(stage.name, stage.after, first, meaning))
    return f'<table class="stages">{head}{"".join(rows)}</table>'


def _row(name: str, left: Counts, first: Counts, meaning: str) -> str:
    counts = ((unit, getattr(left, unit)) for unit in ("files", "blocks", "rows"))
    cells = "".join(
        f'<td data-unit="{unit}" data-count="{"" if n is None else n}">{"-" if n is None else f"{n:,}"}</td>'
        for unit, n in counts
    )
    size = left.bytes or 0
    colour = SURVIVES if name == "table" else colour_of(name)
    size_cell = f'<td data-unit="bytes" data-count="{size}">{human_bytes(size)}</td>'
    bar_and_meaning = (
        f'<td class="left">{bar(size, first.bytes or 0, colour)}</td><td class="left quiet">{escape(meaning)}</td>'
    )
    return f'<tr data-stage="{escape(name)}"><td>{escape(name)}</td>{cells}{size_cell}{bar_and_meaning}</tr>'


def _strip_parts(fates: Fates, level: int) -> list[str]:
    keys = [
        f'<span class="key" style="background:{colour_of(name)}"></span>{escape(name)}: {number:,}'
        for name, number in zip(fates.stages, fates.counts.tolist(), strict=False)
        if number
    ]
    read = f'<span class="key" style="background:{SURVIVES}"></span>read: {int(fates.counts[-1]):,}'
    return [
        f"<h{level}>All {len(fates):,} blocks in the order of the files</h{level}>",
        "<p>Every block is a row group, drawn from left to right in the colour of the stage that ruled it out; what is "
        "read is bright, at the bottom.</p>",
        strip(fates),
        f"<p>{''.join(keys)}{read}</p>",
    ]


def _map_parts(fates: Fates, level: int) -> list[str]:
    parts = []
    for bounds in fates.bounds:
        least, greatest = (escape(text) for text in range_of(bounds))
        parts += [
            f"<h{level}>Bounds of <code>{escape(str(bounds.column))}</code></h{level}>",
            "<p>From the least to the greatest value of every block: short lines rule much out, long ones little. "
            f"What is read is bright. Bottom {least}, top {greatest}. On the right, how many blocks have a value "
            f"within their bounds: at most {greatest_depth(bounds):,}.</p>",
            f'<div class="map">{bounds_map(bounds, fates)}{depth_map(bounds, fates)}</div>',
        ]
    return parts
