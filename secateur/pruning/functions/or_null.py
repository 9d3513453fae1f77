"""NULL where a function fails: the ``try_`` forms, and functions in sessions without ANSI mode.

Source: Spark's ``EvalMode.TRY`` and ``EvalMode.LEGACY``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from secateur.pruning.bounds.outcomes import NULL
from secateur.pruning.interval import Function, Interval, widened


def null_on_error(plain: Function, name: str, *, certain: bool = True, keeps_order: bool = True) -> Function:
    """Return the function that is NULL where `plain` fails; where an argument fails, so does the result.

    Parameters
    ----------
    certain : where `plain` is said to fail on single values, it does; else the result may be any value, too.
    keeps_order : keys are pulled back through it as through `plain`, which is then its
        :attr:`~secateur.pruning.interval.Function.strict` form; else it is not known to be monotone.
    """

    def bounds(arguments: Sequence[Interval]) -> Interval:
        interval = plain.bounds(arguments)
        before = any_fails(arguments)
        failing = interval.fails & ~before
        surely = failing & all_points(arguments) & interval.is_point if certain else np.zeros(len(interval), bool)
        null = np.where(failing, interval.null | np.uint8(NULL), interval.null)
        value = np.where(surely, np.uint8(0), interval.value)
        # a value that is out of range may have wrapped around
        return Interval(interval.type, *widened(interval, failing & ~surely), value, null, before)

    if keeps_order:
        return replace(plain, name=name, bounds=bounds, strict=plain)
    return Function(name, plain.type, bounds, (0,) * len(plain.directions), plain.exact)


def any_fails(arguments: Sequence[Interval]) -> np.ndarray:
    """Return the units in which an argument may fail: bool of shape (n,)."""
    return reduce(np.logical_or, [a.fails for a in arguments])


def all_points(arguments: Sequence[Interval]) -> np.ndarray:
    """Return the units in which each argument is one value: bool of shape (n,)."""
    return reduce(np.logical_and, [a.is_point for a in arguments])
