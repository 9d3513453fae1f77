"""Draw how requests add up over the seconds of a query, as SVG; both axes are linear and begin at 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

WIDTH, HEIGHT = 560, 140  # of what the axes enclose
LEFT, TOP, RIGHT, BOTTOM = 60, 10, 30, 36  # around it, for the labels
MOST_TICKS = 6


@dataclass(frozen=True)
class RequestCurve:
    """The requests of a run."""

    name: str
    arrivals: Sequence[float]  # seconds since its begin, ascending
    seconds: float  # its length
    colour: str


def timeline(curves: Sequence[RequestCurve]) -> str:
    """Draw the number of requests so far against seconds, one line per run."""
    seconds = max(max((curve.seconds, *curve.arrivals[-1:])) for curve in curves)
    requests = max(len(curve.arrivals) for curve in curves)
    across, up = WIDTH / (seconds or 1), HEIGHT / (requests or 1)
    parts = [
        *(_tick(LEFT + at * across, TOP + HEIGHT + 14, f"{at:g}", "middle") for at in _ticks(seconds, 0)),
        *(_tick(LEFT - 6, TOP + HEIGHT - at * up + 4, f"{at:,g}", "end") for at in _ticks(requests, 1)),
        _tick(LEFT + WIDTH / 2, TOP + HEIGHT + 30, "seconds", "middle"),
        f'<text transform="translate(12 {TOP + HEIGHT / 2:g}) rotate(-90)" text-anchor="middle">requests</text>',
        f'<path d="M{LEFT} {TOP}v{HEIGHT}h{WIDTH}" fill="none" stroke="#999"/>',
        *(_line(curve, across, up) for curve in curves),
    ]
    width, height = LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM
    style = f"width:{width}px;max-width:100%;background:none;font-size:11px;fill:#444"
    return f'<svg class="timeline" viewBox="0 0 {width} {height}" style="{style}" role="img">{"".join(parts)}</svg>'


def _line(curve: RequestCurve, across: float, up: float) -> str:
    """Return a run as steps: a request counts from the pixel in which it arrived."""
    pixel = np.ceil(np.array(curve.arrivals, np.float64) * across).astype(np.int64)
    at, so_far = np.unique(pixel, return_counts=True)
    so_far = np.cumsum(so_far)
    points = zip((LEFT + at).tolist(), (TOP + HEIGHT - so_far * up).tolist(), strict=True)
    steps = "".join(f"H{x}V{y:.1f}" for x, y in points)
    end = LEFT + max(curve.seconds * across, float(at[-1]) if len(at) else 0.0)
    label = f"{curve.name}: {len(curve.arrivals):,} requests, {curve.seconds:.2f} s"
    return (
        f'<path class="requests" data-run="{escape(curve.name)}" data-requests="{len(curve.arrivals)}" fill="none" '
        f'stroke="{curve.colour}" stroke-width="2" d="M{LEFT} {TOP + HEIGHT}{steps}H{end:.1f}">'
        f"<title>{escape(label)}</title></path>"
        f'<circle cx="{LEFT + curve.seconds * across:.1f}" cy="{TOP + HEIGHT - len(curve.arrivals) * up:.1f}" r="4" '
        f'fill="{curve.colour}"/>'
    )


def _ticks(most: float, least_step: float) -> list[float]:
    """Return the multiples of 1, 2 or 5 times a power of ten from 0 to `most`, few enough to label."""
    rough = max(most / (MOST_TICKS - 1), least_step, 1e-9)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(times * power for times in (1, 2, 5, 10) if times * power >= rough * (1 - 1e-9))
    return [round(i * step, 12) for i in range(int(most / step * (1 + 1e-9)) + 1)]


def _tick(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'
