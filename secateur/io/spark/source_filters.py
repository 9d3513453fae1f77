"""Convert filters that Spark pushes to a Python data source to predicate nodes.

Spark passes the conjuncts that it can express. A filter without a node here, or with a value that is not a literal, is
left out. Sound: leaving out a conjunct only keeps more blocks, and Spark applies all of them itself.
"""

from __future__ import annotations

from pyspark.sql import datasource as ds

from secateur.pruning.predicate.calls import escaped
from secateur.pruning.predicate.nodes import Column, Comparison, In, IsNull, Like, Not, Predicate
from secateur.pruning.predicate.python_values import literal
from secateur.pruning.predicate.value_lists import listed

_COMPARISONS: dict[type[ds.Filter], str] = {
    ds.EqualTo: "=",
    ds.EqualNullSafe: "<=>",
    ds.LessThan: "<",
    ds.LessThanOrEqual: "<=",
    ds.GreaterThan: ">",
    ds.GreaterThanOrEqual: ">=",
}


def predicate_of(item: ds.Filter) -> Predicate | None:
    """Return the node of one filter, or None."""
    try:
        return _predicate(item)
    except TypeError:  # not a literal: a value of an array or a struct
        return None


def _predicate(item: ds.Filter) -> Predicate | None:
    match item:
        case ds.Not(child):
            inner = _predicate(child)
            return None if inner is None else Not(inner)
        case ds.IsNull(path):
            return IsNull(Column(path))
        case ds.IsNotNull(path):
            return Not(IsNull(Column(path)))
        case ds.In(path, values):
            return In(Column(path), listed(values))
        case ds.StringStartsWith(path, text):
            return Like(Column(path), escaped(text) + "%", "\\")
        case ds.StringEndsWith(path, text):
            return Like(Column(path), "%" + escaped(text), "\\")
        case ds.StringContains(path, text):
            return Like(Column(path), f"%{escaped(text)}%", "\\")
        case (
            ds.EqualTo(path, value)
            | ds.EqualNullSafe(path, value)
            | ds.LessThan(path, value)
            | ds.LessThanOrEqual(path, value)
            | ds.GreaterThan(path, value)
            | ds.GreaterThanOrEqual(path, value)
        ):
            return Comparison(_COMPARISONS[type(item)], Column(path), literal(value))
        case _:
            return None
