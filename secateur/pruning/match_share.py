"""Guess what share of a unit's rows meets a predicate, from bounds alone. A guess may decide only how rows are read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.conjuncts import conjuncts
from secateur.pruning.predicate.bound import Field, Within
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.statistics import Statistics
from secateur.values.conversion import doubles_of
from secateur.values.key import INT64_MAX, INT64_MIN
from secateur.values.kinds import Kind, is_float


def match_shares(predicate: Predicate, units: Statistics) -> np.ndarray:
    """Return the share of rows expected to match in every unit: float64 of shape (n,), 0 where nothing is known.

    Values are taken to lie evenly between their bounds, without NULL, and columns to be independent.
    """
    shares = np.ones(len(units))
    for conjunct in conjuncts(predicate):
        match conjunct:
            case Within(Field() as field, ranges) if ranges.kind is Kind.WORD:
                zones = units.zones(field)
                shares *= 0.0 if zones is None else _covered(zones, ranges, field.type)
            case _:
                return np.zeros(len(units))
    return shares


def _covered(zones: Zones, ranges: RangeSet, type_: pa.DataType) -> np.ndarray:
    """Return what share of the interval between the bounds of every unit lies inside a set."""
    lower, upper = zones.lower.words[0], zones.numbers_upper.words[0]
    known = (lower > INT64_MIN) & (upper < INT64_MAX)
    end = np.where(known & (not is_float(type_)), upper + 1, upper)  # an upper bound is a value, too
    cuts = ranges.thresholds if len(ranges.thresholds) % 2 == 0 else np.append(ranges.thresholds, INT64_MAX)
    inside = _numbers(np.clip(cuts[:, None], lower, end), type_)
    with np.errstate(invalid="ignore", over="ignore"):  # bounds may be infinite
        covered = (inside[1::2] - inside[::2]).sum(axis=0)
        width = _numbers(end, type_) - _numbers(lower, type_)
    return np.divide(covered, width, out=np.zeros(len(width)), where=known & (width > 0) & np.isfinite(width))


def _numbers(keys: np.ndarray, type_: pa.DataType) -> np.ndarray:
    return doubles_of(keys) if is_float(type_) else keys.astype(np.float64)
