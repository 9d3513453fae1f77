"""Draw millions of blocks in at most :data:`MOST_ACROSS` pixels, as SVG: numpy adds up what a pixel shows."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from secateur.io.scan.clustering import RankedBounds
from secateur.io.scan.fates import ColumnBounds, Fates
from secateur.values.conversion import scalar_of, text_of
from secateur.values.kinds import is_float

MOST_ACROSS = 1_200  # pixels of a strip
STRIP_HEIGHT, MAP_HEIGHT, DEPTH_WIDTH = 48, 160, 120
# From the palette of Okabe and Ito, which is safe for colour-blind readers.
SURVIVES, QUIET = "#E69F00", "#c2c2c2"
COLOURS = {
    "files": "#999999",
    "segments": "#56B4E9",
    "top-n segments": "#2f7fb0",
    "filters": "#0072B2",
    "zone maps": "#009E73",
    "remembered": "#005f45",
    "deletes": "#CC79A7",
    "limit": "#D55E00",
    "top-n": "#b84d00",
    "pages": "#F0E442",
    "rows": "#000000",
}


def colour_of(stage: str) -> str:
    """Return the colour of a stage of the pipeline."""
    return COLOURS.get(stage, "#666666")


def strip(fates: Fates) -> str:
    """Draw all blocks in file order, coloured by the stage that pruned each; survivors are bright, at the bottom.

    Where a pixel stands for several blocks, it is divided by their shares; a survivor always shows.
    """
    column, across = _columns(len(fates))
    names = (*fates.stages, "")
    table = np.zeros((len(names), across), np.int64)
    np.add.at(table, (fates.stage, column), 1)
    height = table / np.maximum(table.sum(axis=0), 1) * STRIP_HEIGHT
    height[-1] = np.where(table[-1] > 0, np.maximum(height[-1], 3), 0)
    top = np.minimum(np.cumsum(height, axis=0) - height, STRIP_HEIGHT - height[-1])
    top[-1] = STRIP_HEIGHT - height[-1]
    parts = []
    for i, name in enumerate(names):
        if table[i].any():
            colour = SURVIVES if i == len(names) - 1 else colour_of(name)
            label = f'data-stage="{escape(name or "read")}" data-blocks="{int(table[i].sum())}"'
            path = _bars(np.arange(across), top[i], height[i])
            parts.append(f'<path class="fate" {label} fill="{colour}" d="{path}"/>')
    return _svg(across, STRIP_HEIGHT, parts)


def bounds_map(bounds: ColumnBounds, fates: Fates) -> str:
    """Draw a column's lower to upper bound in every block, in file order; survivors are bright.

    Heights are by value, for floats by rank. Where a pixel stands for several blocks, it spans all of their bounds.
    """
    column, across = _columns(len(fates))
    lower, upper = _heights(bounds)
    parts = []
    wide = f'stroke="{SURVIVES}" stroke-width="2" vector-effect="non-scaling-stroke" '  # seen among a thousand others
    for which, name, colour, stroke in (
        (~fates.survives, "pruned", QUIET, ""),
        (fates.survives, "read", SURVIVES, wide),
    ):
        chosen = np.flatnonzero(which & bounds.known)
        if not len(chosen):
            continue
        low, high = np.full(across, np.inf), np.full(across, -np.inf)
        np.minimum.at(low, column[chosen], lower[chosen])
        np.maximum.at(high, column[chosen], upper[chosen])
        at = np.flatnonzero(high >= low)
        top = (1 - high[at]) * MAP_HEIGHT
        path = _bars(at, top, np.maximum((high[at] - low[at]) * MAP_HEIGHT, 1.5))
        parts.append(
            f'<path class="bounds" data-part="{name}" data-blocks="{len(chosen)}" fill="{colour}" {stroke}d="{path}"/>'
        )
    return _svg(across, MAP_HEIGHT, parts)


def ranks_map(bounds: RankedBounds) -> str:
    """Draw the lower to the upper bound of every block, in file order; heights are by rank.

    Where a pixel stands for several blocks, it spans all of their bounds.
    """
    column, across = _columns(bounds.every)
    scale = max(int(bounds.upper.max(initial=0)), 1)
    low, high = np.full(across, np.inf), np.full(across, -np.inf)
    np.minimum.at(low, column[bounds.block], bounds.lower / scale)
    np.maximum.at(high, column[bounds.block], bounds.upper / scale)
    at = np.flatnonzero(high >= low)
    path = _bars(at, (1 - high[at]) * MAP_HEIGHT, np.maximum((high[at] - low[at]) * MAP_HEIGHT, 1.5))
    label = f'data-column="{escape(bounds.column)}" data-blocks="{len(bounds.block)}"'
    return _svg(across, MAP_HEIGHT, [f'<path class="bounds" {label} fill="{SURVIVES}" d="{path}"/>'])


def depth_map(bounds: ColumnBounds, fates: Fates) -> str:
    """Draw how many blocks' bounds enclose a value, at the value's height in :func:`bounds_map`; survivors are bright.

    The width is 0 to the greatest depth. Where a pixel stands for several values, it shows the greatest depth of them.
    """
    lower, upper = (np.minimum(height * MAP_HEIGHT, MAP_HEIGHT - 1).astype(np.int64) for height in _heights(bounds))
    parts, most = [], 1
    for which, name, colour in ((bounds.known, "all", QUIET), (bounds.known & fates.survives, "read", SURVIVES)):
        if not which.any():
            continue
        depth = _depths(bounds.lower[which], bounds.upper[which], lower[which], upper[which])[::-1]  # from the top
        greatest = int(depth.max())
        most = max(most, greatest)
        path = _area(depth * DEPTH_WIDTH / most)
        parts.append(f'<path class="depth" data-part="{name}" data-depth="{greatest}" fill="{colour}" d="{path}"/>')
    return _svg(DEPTH_WIDTH, MAP_HEIGHT, parts)


def greatest_depth(bounds: ColumnBounds) -> int:
    """Return how many blocks' bounds at most enclose the same value."""
    return int(_depths_at_begins(bounds.lower[bounds.known], bounds.upper[bounds.known]).max())


def _depths(lower: np.ndarray, upper: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the greatest depth of a value in every pixel, from the bottom: int64 of shape (MAP_HEIGHT,).

    `low` and `high` are the pixels of the bounds. The bounds that begin below a pixel and end in it or above it all
    enclose the pixel's least value, for pixels are in the order of values. Within a pixel the depth only grows where
    bounds begin.
    """
    begins, ends = (np.bincount(pixel, minlength=MAP_HEIGHT) for pixel in (low, high))
    depth = np.cumsum(begins) - begins - (np.cumsum(ends) - ends)
    order = np.argsort(lower)
    np.maximum.at(depth, low[order], _depths_at_begins(lower, upper))
    return depth


def _depths_at_begins(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return how many of n bounds enclose each lower bound, these in order: int64 of shape (n,)."""
    begins = np.sort(lower)
    return np.searchsorted(begins, begins, "right") - np.searchsorted(np.sort(upper), begins, "left")


def range_of(bounds: ColumnBounds) -> tuple[str, str]:
    """Return the least and the greatest bound as text."""
    least, greatest = int(bounds.lower[bounds.known].min()), int(bounds.upper[bounds.known].max())
    return tuple(text_of(scalar_of(key, bounds.column.type)) for key in (least, greatest))  # type: ignore[return-value]


def bar(part: float, whole: float, colour: str = SURVIVES) -> str:
    """Draw a part of a whole as a bar on a linear axis."""
    width = 100 * part / whole if whole else 0.0
    return f'<span class="bar"><span style="width:{min(width, 100):.3f}%;background:{colour}"></span></span>'


def _columns(n: int) -> tuple[np.ndarray, int]:
    """Return the pixel of each of n blocks, and the number of pixels."""
    across = max(min(n, MOST_ACROSS), 1)
    return np.arange(n) * across // max(n, 1), across


def _heights(bounds: ColumnBounds) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper bounds on a scale from 0 to 1."""
    lower, upper = (np.where(bounds.known, bound, 0) for bound in (bounds.lower, bounds.upper))
    if is_float(bounds.column.type):
        distinct, rank = np.unique(np.concatenate([lower, upper]), return_inverse=True)
        return tuple(np.split(rank / max(len(distinct) - 1, 1), 2))  # type: ignore[return-value]
    least, most = lower[bounds.known].min(), upper[bounds.known].max()
    scale = max(float(most) - float(least), 1.0)
    return (lower - float(least)) / scale, (upper - float(least)) / scale


def _bars(at: np.ndarray, top: np.ndarray, height: np.ndarray) -> str:
    """Return the path of bars one pixel wide; equal neighbours become one bar."""
    is_visible = height > 0
    at, top, height = at[is_visible], np.round(top[is_visible], 1), np.round(height[is_visible], 1)
    if not len(at):
        return ""
    new = np.flatnonzero(np.r_[True, (np.diff(at) != 1) | (np.diff(top) != 0) | (np.diff(height) != 0)])
    width = np.diff(np.r_[new, len(at)])
    bars = zip(at[new].tolist(), top[new].tolist(), width.tolist(), height[new].tolist(), strict=True)
    return "".join(f"M{x} {y:g}h{w}v{h:g}h-{w}z" for x, y, w, h in bars)


def _area(width: np.ndarray) -> str:
    """Return the path of rows one pixel high, from the top; equal neighbours become one step."""
    width = np.round(width, 1)
    last = np.flatnonzero(np.r_[np.diff(width) != 0, True])
    steps = zip(width[last].tolist(), (last + 1).tolist(), strict=True)
    return f"M0 0{''.join(f'H{w:g}V{y}' for w, y in steps)}H0z"


def _svg(width: int, height: int, parts: Sequence[str]) -> str:
    head = f'<svg viewBox="0 0 {width} {height}" preserveAspectRatio="none" style="height:{height}px" role="img">'
    return f"{head}{''.join(parts)}</svg>"
