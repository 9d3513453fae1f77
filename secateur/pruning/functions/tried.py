"""Functions of the ``try_`` forms: NULL where the plain function fails."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from secateur.pruning.interval import Function, Interval, of_zones
from secateur.pruning.outcomes import NULL
from secateur.values import Keys, choose


def tried(plain: Function) -> Function:
    """Return a function that may be NULL, or any value (it may be unknown here), where the plain one may fail."""

    def bounds(args: Sequence[Interval]) -> Interval:
        found = plain.bounds(args)
        given = np.logical_or.reduce([argument.fails for argument in args])
        failing = found.fails & ~given
        null = np.where(failing, found.null | np.uint8(NULL), found.null)
        return Interval(found.type, *loosened(found, failing), found.value, null, given)

    return Function(f"try_{plain.name}", plain.type, bounds, (0,) * len(plain.directions), plain.exact)


def loosened(found: Interval, loose: np.ndarray) -> tuple[Keys, Keys]:
    """Widen bounds to the whole type where a function fails for only some of the values."""
    whole = of_zones(None, found.type, len(found))
    return choose(loose, whole.lower, found.lower), choose(loose, whole.upper, found.upper)
