"""Draw millions of blocks in at most :data:`MOST_ACROSS` pixels, as SVG: numpy adds up what a pixel shows."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from secateur.io.scan.fates import ColumnBounds, Fates
from secateur.values import is_float, scalar_of

MOST_ACROSS = 1_200  # pixels of a strip
STRIP_HEIGHT, MAP_HEIGHT = 48, 160
# From the palette of Okabe and Ito, which is safe for colour-blind readers.
SURVIVES, QUIET = "#E69F00", "#d8d8d8"
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
    for which, name, colour in ((~fates.survives, "pruned", QUIET), (fates.survives, "read", SURVIVES)):
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
            f'<path class="bounds" data-part="{name}" data-blocks="{len(chosen)}" fill="{colour}" d="{path}"/>'
        )
    return _svg(across, MAP_HEIGHT, parts)


def range_of(bounds: ColumnBounds) -> tuple[str, str]:
    """Return the least and the greatest bound as text."""
    least, greatest = int(bounds.lower[bounds.known].min()), int(bounds.upper[bounds.known].max())
    return tuple(str(scalar_of(key, bounds.column.type)) for key in (least, greatest))  # type: ignore[return-value]


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


def _svg(width: int, height: int, parts: Sequence[str]) -> str:
    head = f'<svg viewBox="0 0 {width} {height}" preserveAspectRatio="none" style="height:{height}px" role="img">'
    return f"{head}{''.join(parts)}</svg>"
