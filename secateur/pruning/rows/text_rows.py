"""Evaluate on rows the tests of :mod:`secateur.pruning.predicate.patterns.text_tests`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import binaries, numbers, truths
from secateur.pruning.bounds.outcomes import EVERYTHING, FALSE, NULL
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.predicate.patterns.java_regex import FINAL_LINE_END
from secateur.pruning.predicate.patterns.letter_case import LOCALES, has_doubtful, lowered_texts
from secateur.pruning.predicate.patterns.text_tests import InLowerCase, Search
from secateur.pruning.rows.arrow_texts import is_ascii, is_null, is_utf8, matches
from secateur.values.conversion import doubles_of, float_keys, keys_of
from secateur.values.key import NAN_KEY
from secateur.values.keys import FEW_THRESHOLDS
from secateur.values.kinds import Kind, is_float


def text_outcomes(test: Search | InLowerCase | RangeSet, texts: pa.Array) -> np.ndarray:
    """Return the outcome of a test on every text, or all three where only Spark knows it: uint8 of shape (n,)."""
    if isinstance(test, RangeSet):
        return value_outcomes(test, texts)
    if isinstance(test, Search) and test.bytewise:
        return _truth_of(texts, matches(test.regex, texts.cast(pa.binary())))
    return _where(is_utf8(texts), texts, lambda known: _of_decoded(test, known))


def _of_decoded(test: Search | InLowerCase, texts: pa.Array) -> np.ndarray:
    match test:
        case InLowerCase(by_locale):
            return _in_lower_case(by_locale, texts)
        case Search(ascii_only=True):
            return _where(is_ascii(texts), texts, lambda plain: _matches_line(test, plain))
        case _:
            return _matches_line(test, texts)


def _in_lower_case(by_locale: tuple[RangeSet | Search, ...], texts: pa.Array) -> np.ndarray:
    """Test texts in lower case; beyond ASCII all locales must agree."""
    outcomes = _matches_line(by_locale[0], lowered_texts(texts, LOCALES[0]))
    if (plain := is_ascii(texts)).all():
        return outcomes
    others = texts.filter(pa.array(~plain))
    agreed = ~has_doubtful(others)
    for locale, test in zip(LOCALES[1:], by_locale[1:], strict=True):
        agreed &= _matches_line(test, lowered_texts(others, locale)) == outcomes[~plain]
    outcomes[~plain] = np.where(agreed, outcomes[~plain], np.uint8(EVERYTHING))
    return outcomes


def _matches_line(test: RangeSet | Search, texts: pa.Array) -> np.ndarray:
    match test:
        case RangeSet():
            return value_outcomes(test, texts)
        case Search(regex, before_line_end=before):
            is_match = matches(regex, texts)
            if before and (ended := matches(FINAL_LINE_END, texts)).any():
                is_match |= ended & matches(regex, pc.replace_substring_regex(texts, FINAL_LINE_END, ""))
            return _truth_of(texts, is_match)


def _where(known: np.ndarray, texts: pa.Array, evaluate: Callable[[pa.Array], np.ndarray]) -> np.ndarray:
    """Evaluate the known texts; nothing is known of the others."""
    if known.all():
        return evaluate(texts)
    outcomes = np.full(len(texts), EVERYTHING, np.uint8)
    outcomes[known] = evaluate(texts.filter(pa.array(known)))
    return outcomes


def value_outcomes(ranges: RangeSet, values: pa.Array) -> np.ndarray:
    """Return whether each value has a key in the set, NULL for NULL: uint8 of shape (n,)."""
    return _truth_of(values, inside(values, ranges))


def _truth_of(texts: pa.Array, holds: np.ndarray) -> np.ndarray:
    outcomes = np.uint8(FALSE) - holds.view(np.uint8)  # TRUE is one less
    if texts.null_count:
        np.putmask(outcomes, is_null(texts), np.uint8(NULL))
    return outcomes


# ---- Arrow values ----------------------------------------------------------------------------------------------------


def inside(values: pa.Array, ranges: RangeSet) -> np.ndarray:
    """Return which values have a key in the set, without regard to NULL: bool of shape (n,)."""
    if ranges.kind is not Kind.BYTES:
        if is_float(values.type) and len(ranges.thresholds) <= FEW_THRESHOLDS:
            return _doubles_inside(numbers(values.cast(pa.float64()), np.float64), ranges)
        return ranges.contains(keys_of(values))
    values = values.cast(pa.binary())
    points = ranges.points
    if points is not None and len(points) > max(1, len(values)):
        return _among(values, ranges)
    if points is not None and len(points) > 1:
        return truths(pc.is_in(values, pa.array(points.tolist(), pa.binary())))
    contained = np.zeros(len(values), bool)
    for threshold in ranges.thresholds:
        contained ^= truths(pc.greater_equal(values, binaries([threshold]).cast(pa.binary())[0]))
    return contained


def _doubles_inside(values: np.ndarray, ranges: RangeSet) -> np.ndarray:
    """Return which doubles have a key in the set, without computing their keys: float64 to bool, of shape (n,).

    Keys ascend as doubles do, whose two zeros have one key; of NaN, which is not less than any number, the key is above
    all others.
    """
    contained = np.zeros(len(values), bool)
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN like any other
        for threshold, number in zip(ranges.thresholds.tolist(), doubles_of(ranges.thresholds).tolist(), strict=True):
            if threshold <= _LEAST:
                np.logical_not(contained, out=contained)
            elif threshold <= _GREATEST:
                contained ^= ~(values < number)
            elif threshold <= NAN_KEY:
                contained ^= np.isnan(values)
    return contained


_LEAST, _GREATEST = float_keys(np.array([-np.inf, np.inf])).tolist()


def _among(values: pa.Array, points: RangeSet) -> np.ndarray:
    """Search values among more points, whose sorted table is made once for all batches."""
    short = truths(pc.less_equal(pc.binary_length(values), len(points.longest)))
    keys = keys_of(pa.concat_arrays([values.filter(pa.array(short)), pa.array([points.longest], pa.binary())]))
    contained = np.zeros(len(values), bool)
    contained[short] = points.contains(keys)[:-1]
    return contained
