"""Evaluate a bound predicate on rows of Arrow data, as Spark would.

A row is a unit whose lower and upper key are its value, so its outcome set holds one truth value, and leaves, functions
and connectives are the ones used for blocks. A set of all three marks a row on which Spark raises an error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from textwrap import shorten

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import numbers
from secateur.errors import EvaluationError, UnsupportedPredicate
from secateur.pruning.bounds.outcomes import EVERYTHING, FALSE, NULL, TRUE, of_truth, survives, undecided
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.connectives import combined
from secateur.pruning.evaluate import at_once
from secateur.pruning.node_outcomes import outcomes_over
from secateur.pruning.predicate.bound import Apply, Field, Holds, Leaf, Missing, OfValue, TextMatch, Unsupported, Within
from secateur.pruning.predicate.bound_walks import everything_in, fields
from secateur.pruning.predicate.nodes import Predicate, Truth
from secateur.pruning.predicate.patterns.letter_case import LOCALES
from secateur.pruning.rows.arrow_texts import is_null
from secateur.pruning.rows.row_values import Rows, column, is_computed_by_locale
from secateur.pruning.rows.text_rows import inside, value_outcomes
from secateur.values.conversion import text_of
from secateur.values.kinds import Kind, kind_of

CHUNK = 1 << 14  # rows whose functions are computed in one step
CHUNK_BYTES = 1 << 24  # of text, as each key is as wide as the longest


def possible_rows(predicate: Predicate, batch: pa.RecordBatch) -> np.ndarray:
    """Return which rows may match, including those that only Spark can evaluate: bool of shape (rows,)."""
    return survives(truth(predicate, batch))


def matching_rows(predicate: Predicate, batch: pa.RecordBatch) -> np.ndarray:
    """Return which rows match: bool of shape (rows,).

    The batch has the predicate's top-level columns with the table's types. Raises UnsupportedPredicate for a leaf that
    only Spark can evaluate, EvaluationError for a row on which Spark raises an error.
    """
    outcomes = truth(predicate, batch)
    open_rows = undecided(outcomes)
    if open_rows.any():
        row = int(np.argmax(open_rows))
        values = ", ".join(f"{field} = {_value_text(column(batch, field)[row])}" for field in fields(predicate))
        raise EvaluationError(
            f"{shorten(str(predicate), 200)} has no value on the row with {values}: Spark raises an error there "
            "(overflow, division by zero, a cast that does not fit), or only Spark knows; use plan.to_spark(spark), "
            "or try_ functions"
        )
    return survives(outcomes)


def _value_text(value: pa.Scalar) -> str:
    """Format a value for a message; text may not be UTF-8."""
    if pa.types.is_string(value.type) and value.is_valid:
        return repr(value.as_buffer().to_pybytes().decode("utf-8", "backslashreplace"))
    return text_of(value)


def truth(predicate: Predicate, batch: pa.RecordBatch) -> np.ndarray:
    """Return each row's truth value as a set of one outcome, or all three if it has none: uint8 of shape (rows,)."""
    encoded = {
        field.name
        for field, values in zip(batch.schema, batch.columns, strict=True)
        if pa.types.is_dictionary(field.type) and len(values.dictionary) < batch.num_rows
    }
    return combined(predicate, lambda leaf: _leaf(leaf, batch, encoded))


def _leaf(leaf: Leaf, batch: pa.RecordBatch, encoded: Collection[str]) -> np.ndarray:
    """Evaluate a leaf; if a dictionary encodes the only column that it needs, once for every entry."""
    name = _only_column(leaf) if encoded else None
    if name not in encoded:
        return _in_all_locales(leaf, batch)
    values = batch.column(name)
    entries = pa.concat_arrays([values.dictionary, pa.nulls(1, values.dictionary.type)])
    of_entries = _in_all_locales(leaf, pa.record_batch({name: entries}))
    return of_entries[numbers(values.indices.fill_null(len(values.dictionary)), np.int32)]


def _only_column(leaf: Leaf) -> str | None:
    """Return the only column that a leaf needs; None if it needs none or several."""
    needed = {part for part in _evaluated(leaf) if isinstance(part, Field)}
    return needed.pop().path[0] if len(needed) == 1 else None


def _in_all_locales(leaf: Leaf, batch: pa.RecordBatch) -> np.ndarray:
    """Evaluate a leaf; where letters beyond ASCII change case, all locales must agree."""
    outcomes = _in_locale(leaf, batch, LOCALES[0])
    if isinstance(leaf, Within | Missing) and isinstance(leaf.operand, Field):
        return outcomes
    if not any(is_computed_by_locale(part) for part in _evaluated(leaf)):
        return outcomes
    others = Rows(batch).beyond_ascii(fields(leaf))
    if others.any():
        part, common = batch.filter(pa.array(others)), outcomes[others]
        for locale in LOCALES[1:]:
            common = np.where(_in_locale(leaf, part, locale) == common, common, np.uint8(EVERYTHING))
        outcomes[others] = common
    return outcomes


def _evaluated(leaf: Leaf) -> Iterator[object]:
    """Yield everything in a leaf that is evaluated on rows: all nodes below it, and the values that it tests."""
    for part in everything_in(leaf):
        yield part
        if isinstance(part, TextMatch) and isinstance(part.test, OfValue):
            yield from everything_in(part.test.value)


def _in_locale(leaf: Leaf, batch: pa.RecordBatch, locale: str) -> np.ndarray:
    rows = Rows(batch, locale)
    match leaf:
        case Truth(value):
            return np.full(batch.num_rows, of_truth(value), np.uint8)
        case Unsupported(sql, reason):
            raise UnsupportedPredicate(f"only Spark can evaluate {sql} ({reason}): use plan.to_spark(spark)")
        case Holds(field, ranges):
            return _elements_inside(column(batch, field), ranges)
        case Missing(Field() as field):
            return np.where(is_null(column(batch, field)), np.uint8(TRUE), np.uint8(FALSE))
        case Within(Field() as field, ranges, fails=None):
            return value_outcomes(ranges, column(batch, field))
        case Within(Apply(function) as operand, ranges, fails=None, sql=sql) if function.on_rows is not None:
            return rows.of_value(operand, ranges, sql)
        case TextMatch():
            return rows.test(leaf)
        case _:
            return _computed(leaf, batch, locale)


def _computed(leaf: Leaf, batch: pa.RecordBatch, locale: str) -> np.ndarray:
    """Evaluate a leaf over values computed from columns, in batches of rows."""
    needed = fields(leaf)
    outcomes = []
    step = at_once(leaf, _rows_at_once([column(batch, field) for field in needed]))
    for start in range(0, max(batch.num_rows, 1), step):
        part = batch.slice(start, step)
        outcomes.append(outcomes_over(leaf, Rows(part, locale).subset(leaf)))
    return np.concatenate(outcomes)


def _rows_at_once(columns: Sequence[pa.Array]) -> int:
    texts = [array for array in columns if kind_of(array.type) is Kind.BYTES]
    longest = max((pc.max(pc.binary_length(text)).as_py() or 0 for text in texts), default=0)
    return max(1, min(CHUNK, CHUNK_BYTES // (longest + 8)))


def _elements_inside(values: pa.Array, ranges: RangeSet) -> np.ndarray:
    """Return whether some element of an array, or some key of a map, is in the set."""
    elements = values.keys if pa.types.is_map(values.type) else values.values
    offsets = values.offsets.to_numpy()
    elements = elements.slice(offsets[0], offsets[-1] - offsets[0])
    row = np.repeat(np.arange(len(values)), np.diff(offsets))
    unknown = is_null(elements)
    is_inside, holds_null = np.zeros(len(values), bool), np.zeros(len(values), bool)
    is_inside[row[inside(elements, ranges) & ~unknown]] = True
    holds_null[row[unknown]] = True
    return _truth_of(is_inside, is_null(values) | (holds_null & ~is_inside))


def _truth_of(inside: np.ndarray, null: np.ndarray) -> np.ndarray:
    return np.where(null, np.uint8(NULL), np.where(inside, np.uint8(TRUE), np.uint8(FALSE)))
