"""Values of expressions on rows of Arrow data, as Spark computes them.

Functions of text are computed on arrays, the others by their intervals: a row is an interval of one value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import flags, from_numpy, truths
from secateur.errors import UnsupportedPredicate
from secateur.pruning.bounds.outcomes import EVERYTHING, FALSE, NULL, TRUE
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.interval import Interval, RowValues, points
from secateur.pruning.node_outcomes import ColumnSubset, interval_of
from secateur.pruning.predicate.bound import Apply, Constant, Field, Leaf, OfValue, Operand, TextMatch
from secateur.pruning.predicate.bound_walks import everything_in, fields
from secateur.pruning.predicate.nodes import Sql
from secateur.pruning.predicate.patterns.letter_case import LOCALES
from secateur.pruning.predicate.patterns.text_tests import OnlySpark, TextTest
from secateur.pruning.predicate.trees import Steps, each_of, unrolled
from secateur.pruning.rows.arrow_texts import is_ascii, is_null
from secateur.pruning.rows.text_rows import text_outcomes
from secateur.values.conversion import binaries_of, byte_matrix, doubles_of, keys_of, scalar_of
from secateur.values.keys import Keys
from secateur.values.kinds import Kind, is_float, kind_of


def column(batch: pa.RecordBatch, field: Field) -> pa.Array:
    """Return the values of a field, null if any enclosing struct is null; texts that are encoded are looked up."""
    values = batch.column(field.path[0])
    if pa.types.is_dictionary(values.type):
        return values.dictionary_decode()
    for name in field.path[1:]:
        values = pc.struct_field(values, name)
    return values


@dataclass(frozen=True)
class Rows:
    """Rows of Arrow data with the top-level columns of an expression, and the locale in which letters change case."""

    batch: pa.RecordBatch
    locale: str = LOCALES[0]

    def values(self, operand: Operand) -> RowValues:
        """Return the values of an operand."""
        return unrolled(partial(_computed, rows=self), operand, {})

    def test(self, leaf: TextMatch) -> np.ndarray:
        """Return the outcome of a test of text, or all three where only Spark knows it: uint8 of shape (rows,).

        Raises UnsupportedPredicate for a test that only Spark can make.
        """
        match leaf.test:
            case OfValue(value, test):
                return self.of_value(value, test, leaf.sql)
            case test:
                return self.of_value(leaf.operand, test, leaf.sql)

    def of_value(self, value: Operand, test: RangeSet | TextTest, sql: Sql) -> np.ndarray:
        """Return the outcome of a test of an operand's values, as :meth:`test` does."""
        if isinstance(test, OnlySpark):
            raise UnsupportedPredicate(f"only Spark can evaluate {sql} ({test.reason}): use plan.to_spark(spark)")
        evaluated = self.values(value)
        outcomes = text_outcomes(test, evaluated.values)
        return np.where(evaluated.unknown, np.uint8(EVERYTHING), outcomes) if evaluated.unknown.any() else outcomes

    def subset(self, below: Operand | Leaf) -> ColumnSubset:
        """Return the rows as units for intervals, with what is computed from values below an operand or a leaf."""
        on_rows = (part for part in everything_in(below) if isinstance(part, Apply) and part.function.on_rows)
        known: dict[Operand, Interval] = {part: _interval(self.values(part)) for part in on_rows}
        tests: dict[Leaf, np.ndarray] = {
            leaf: self.test(leaf) for leaf in everything_in(below) if isinstance(leaf, TextMatch)
        }
        zones = {field: _points(column(self.batch, field)) for field in fields(below)}
        return ColumnSubset(self.batch.num_rows, zones, True, tests, known)

    def beyond_ascii(self, columns: Sequence[Field]) -> np.ndarray:
        """Return the rows with a text that is not ASCII: bool of shape (n,)."""
        texts = [column(self.batch, field) for field in columns if field.type == pa.string()]
        return reduce(np.logical_or, [~is_ascii(text) for text in texts], np.zeros(self.batch.num_rows, bool))


class UnknownValue(Exception):
    """A value on a row that only Spark knows, or an error."""


def known_values(operand: Operand, batch: pa.RecordBatch, locale: str = LOCALES[0]) -> pa.Array:
    """Return the values of an operand on some rows. Raises UnknownValue if one is not known."""
    result = Rows(batch, locale).values(operand)
    if result.unknown.any():
        raise UnknownValue
    return result.values


class OtherTexts(NamedTuple):
    """Other texts that some rows may have, and the row of each, ascending: int64."""

    values: pa.Array
    rows: np.ndarray


def other_texts(operand: Operand, batch: pa.RecordBatch, values: pa.Array) -> Iterator[OtherTexts]:
    """Yield, for every other locale that Spark may run in, the texts that differ from the known `values` on some rows.

    Raises UnknownValue if one is not known.
    """
    beyond = np.flatnonzero(Rows(batch).beyond_ascii(fields(operand))) if is_by_locale(operand) else np.zeros(0, int)
    if not len(beyond):
        return
    part, usual = batch.take(from_numpy(beyond)), values.take(from_numpy(beyond))
    for locale in LOCALES[1:]:
        local = known_values(operand, part, locale)
        different = np.flatnonzero(truths(pc.fill_null(pc.not_equal(local, usual), True)))
        if len(different) and (kind_of(values.type) is not Kind.BYTES or local.null_count):
            raise UnknownValue
        yield OtherTexts(local.take(from_numpy(different)), beyond[different])


def is_by_locale(operand: Operand) -> bool:
    """Return whether the values of an operand depend on the locale that Spark runs in."""
    return any(map(is_computed_by_locale, everything_in(operand)))


def is_computed_by_locale(part: object) -> bool:
    """Return whether a part of a predicate is a function whose values depend on the locale."""
    return isinstance(part, Apply) and part.function.on_rows is not None and part.function.on_rows.by_locale


def _computed(operand: Operand, rows: Rows) -> Steps[RowValues]:
    """Compute the values of an operand; yields the operands below it."""
    match operand:
        case Field():
            values = column(rows.batch, operand)
            return RowValues(values, np.zeros(len(values), bool))
        case Apply(function, arguments) if function.on_rows is not None:
            moving = [argument for i, argument in enumerate(arguments) if not i or not isinstance(argument, Constant)]
            evaluated = dict(zip(map(id, moving), (yield from each_of(moving)), strict=True))
            inputs = [evaluated[id(part)].values if id(part) in evaluated else _scalar(part) for part in arguments]
            result = function.on_rows.compute(inputs, rows.locale)
            unknown = reduce(np.logical_or, [part.unknown for part in evaluated.values()], result.unknown)
            return RowValues(result.values, unknown)
        case Constant():
            return RowValues(pa.repeat(_scalar(operand), len(rows.batch)), np.zeros(len(rows.batch), bool))
        case _:
            return _of_interval(interval_of(operand, rows.subset(operand)))


def _scalar(operand: Operand) -> pa.Scalar:
    """Return a constant as a scalar."""
    assert isinstance(operand, Constant), "other operands have a value on each row"
    return pa.scalar(None, operand.type) if operand.key is None else scalar_of(operand.key, operand.type)


def _points(values: pa.Array) -> Zones:
    keys, null = keys_of(values), is_null(values)
    value = np.where(null, np.uint8(0), np.uint8(TRUE | FALSE))
    return Zones(keys, keys, value, np.where(null, np.uint8(NULL), np.uint8(0)))


def _interval(row_values: RowValues) -> Interval:
    """Return values of rows as units of one row each."""
    interval, null = points(row_values.values.type, keys_of(row_values.values)), is_null(row_values.values)
    value, nulls = np.where(null, np.uint8(0), interval.value), np.where(null, np.uint8(NULL), np.uint8(0))
    return Interval(interval.type, interval.lower, interval.upper, value, nulls, row_values.unknown)


def _of_interval(interval: Interval) -> RowValues:
    """Return the values of units of one row each."""
    null = interval.value == 0
    unknown = interval.fails | (~null & ((interval.null != 0) | ~interval.is_point))
    return RowValues(values_of(interval.lower, interval.type, ~null & ~unknown), unknown)


def values_of(keys: Keys, type_: pa.DataType, present: np.ndarray) -> pa.Array:
    """Return the values of keys, NULL where not present: the inverse of :func:`secateur.values.conversion.keys_of`.

    A zero is 0.0, and a NaN one of the many.
    """
    match kind_of(type_):
        case Kind.BYTES:
            _, inside = byte_matrix(keys)
            binary = binaries_of(keys, inside).cast(pa.binary())
            values = binary if type_ == pa.binary() else pa.Array.from_buffers(type_, len(binary), binary.buffers())
        case Kind.WIDE | Kind.WORD if pa.types.is_decimal128(type_):
            high, low = keys.words if keys.kind is Kind.WIDE else (keys.words[0] >> 63, keys.words[0].view(np.uint64))
            words = np.stack([low, high.view(np.uint64)], axis=1)
            values = pa.Array.from_buffers(type_, len(words), [None, pa.py_buffer(np.ascontiguousarray(words))])
        case _ if is_float(type_):
            values = from_numpy(doubles_of(keys.words[0])).cast(type_, safe=False)
        case _ if pa.types.is_boolean(type_):
            values = flags(keys.words[0] != 0)
        case _:
            word = np.where(present, keys.words[0], 0)
            whole = from_numpy(word.astype(np.int32)) if pa.types.is_date32(type_) else from_numpy(word)
            values = whole.cast(type_)
    return values if present.all() else pc.if_else(flags(present), values, pa.scalar(None, type_))
