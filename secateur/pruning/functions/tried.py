"""Functions of the ``try_`` forms: NULL where the plain function fails."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from secateur.pruning.interval import Function, Interval, widened
from secateur.pruning.outcomes import NULL


def tried(plain: Function) -> Function:
    """Return a function that may be NULL, or any value (it may be unknown here), where the plain one may fail."""

    def bounds(args: Sequence[Interval]) -> Interval:
        found = plain.bounds(args)
        given = np.logical_or.reduce([argument.fails for argument in args])
        failing = found.fails & ~given
        null = np.where(failing, found.null | np.uint8(NULL), found.null)
        return Interval(found.type, *widened(found, failing), found.value, null, given)

    return Function(f"try_{plain.name}", plain.type, bounds, (0,) * len(plain.directions), plain.exact)
