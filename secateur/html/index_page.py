"""A report on an index as HTML: its age and size, what it covers, and the clustering of the table."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import zip_longest

from secateur.html.pictures import QUIET, SURVIVES, bar, ranks_map
from secateur.io.scan.clustering import RankedBounds
from secateur.io.scan.index_coverage import Covered
from secateur.maintain.index_state import ColumnClustering, IndexState
from secateur.pruning.report import human_bytes, human_seconds

MOST_STRUCTURES = 100  # rows of the table


def index_parts(state: IndexState) -> list[str]:
    """Return the parts of the page."""
    index = state.index
    share = 100 * index.index_bytes / index.data_bytes if index.data_bytes else 0.0
    return [
        f"<h1>Index of <code>{escape(index.location)}</code></h1>",
        f'<p class="headline">{human_bytes(index.index_bytes)}, {share:.3g} % of the data; '
        f"{state.covered_files:,} of {state.live_files:,} live files are covered; "
        f"{human_seconds(index.age_seconds)} old.</p>",
        f'<p class="quiet">snapshot {index.number}; {index.segments:,} segments, {index.blocks:,} blocks, '
        f"{index.rows:,} rows, {human_bytes(index.data_bytes)} of data</p>",
        *_structure_parts(state),
        *clustering_parts(state.clustering),
    ]


def _structure_parts(state: IndexState) -> list[str]:
    head = "<tr><th>column</th><th>structure</th><th>bytes</th><th></th><th>blocks covered</th><th></th></tr>"
    rows = [_structure_row(covered, state) for covered in state.structures[:MOST_STRUCTURES]]
    rest = state.structures[MOST_STRUCTURES:]
    if rest:
        more = sum(covered.bytes for covered in rest)
        rows.append(_bytes_row(f"{len(rest):,} more structures", more, state))
    rows.append(_bytes_row("page locations, lists of files, the tree", state.other_bytes, state))
    return [
        "<h2>What it costs, and what it covers</h2>",
        "<p>Bars are linear: bytes of a structure of all bytes of the index.</p>",
        f'<table class="structures">{head}{"".join(rows)}</table>',
    ]


def _structure_row(covered: Covered, state: IndexState) -> str:
    name = f"{covered.structure} ({covered.setting})" if covered.setting else covered.structure
    return (
        f'<tr data-column="{escape(covered.column)}" data-structure="{escape(covered.structure)}">'
        f'<td>{escape(covered.column)}</td><td class="left">{escape(name)}</td>{_bytes_cells(covered.bytes, state)}'
        f'<td data-count="{covered.blocks}">{covered.blocks:,}</td>'
        f'<td class="left quiet">{escape(covered.why or "")}</td></tr>'
    )


def _bytes_row(name: str, size: int, state: IndexState) -> str:
    return f'<tr><td class="left" colspan="2">{escape(name)}</td>{_bytes_cells(size, state)}<td></td><td></td></tr>'


def _bytes_cells(size: int, state: IndexState) -> str:
    return (
        f'<td data-unit="bytes" data-count="{size}">{human_bytes(size)}</td>'
        f'<td class="left">{bar(size, state.index.index_bytes)}</td>'
    )


def clustering_parts(columns: Sequence[ColumnClustering], bounds: Sequence[RankedBounds] = ()) -> list[str]:
    """Return a section with the depths of some columns, and pictures of their bounds."""
    parts = [
        "<h2>How well the table is clustered</h2>",
        "<p>The depth of a block is how many blocks may hold one value of it, by their bounds: 1 or 2 in a table "
        "sorted by the column, nearly all blocks in one without an order. Bars are linear: blocks of all blocks.</p>",
    ]
    for clustering, ranked in zip_longest(columns, bounds):
        parts += _column_parts(clustering)
        if ranked is not None and len(ranked.block):
            parts += [
                '<p class="quiet">The lower to the upper bound of every block, in the order of files, by rank:</p>',
                ranks_map(ranked),
            ]
    return parts


def _column_parts(clustering: ColumnClustering) -> list[str]:
    every = clustering.blocks + clustering.unbounded
    rows = "".join(
        f'<tr><td>{_depths(count.depth)}</td><td data-count="{count.blocks}">{count.blocks:,}</td>'
        f'<td class="left">{bar(count.blocks, every, SURVIVES if count.depth > 2 else QUIET)}</td></tr>'
        for count in clustering.depths
    )
    if clustering.unbounded:
        rows += (
            f'<tr><td>without bounds</td><td data-count="{clustering.unbounded}">{clustering.unbounded:,}</td>'
            f'<td class="left">{bar(clustering.unbounded, every)}</td></tr>'
        )
    mean = "no block has bounds" if clustering.mean_depth is None else f"mean depth {clustering.mean_depth:,.4g}"
    return [
        f"<h3><code>{escape(clustering.column)}</code>: {mean} of {every:,} blocks</h3>",
        f'<table class="depths" data-column="{escape(clustering.column)}"><tr><th>depth</th><th>blocks</th><th></th>'
        f"</tr>{rows}</table>",
    ]


def _depths(most: int) -> str:
    return str(most) if most <= 2 else f"{most // 2 + 1:,} to {most:,}"
