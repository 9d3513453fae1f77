"""Read the join keys of a query from what users have: Arrow data, frames, lists."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from secateur.errors import InvalidPredicate, UnknownColumn
from secateur.pruning.predicate.expressions import split_name
from secateur.pruning.predicate.joins.join_keys import JoinKeys, ManyKeys
from secateur.pruning.predicate.nodes import Column, SemiJoin

On = str | Sequence[str] | Mapping[str, str]
Keys = Any  # pyarrow, pandas, Polars, a Spark DataFrame, numpy, or a sequence of values


def semi_join(keys: Keys, on: On | None, *, null_safe: bool = False) -> SemiJoin:
    """Return the semi join of a table with keys: the rows of a frame, or the values of a list.

    `on` has the names of the table's columns if the frame has the same names, or maps them to the frame's names.

    Raises
    ------
    InvalidPredicate
        If the keys are no frame and no list, or if `on` does not fit them.
    UnknownColumn
        If the frame lacks a column.
    UnsupportedPredicate
        If a column of a Spark DataFrame has a collation.
    """
    names = _names(on)
    return SemiJoin(
        tuple(Column(split_name(name)) for name in names), _keys(keys, list(names.values()), null_safe=null_safe)
    )


def _keys(keys: Keys, names: Sequence[str], *, null_safe: bool) -> JoinKeys | ManyKeys:
    spark = sys.modules.get("pyspark.sql")
    if spark is not None and isinstance(keys, spark.DataFrame):
        from secateur.io.spark.join_keys import keys_of_frame

        return keys_of_frame(keys, names, null_safe=null_safe)
    return JoinKeys(_table(keys, names), null_safe)


def _names(on: On | None) -> dict[str, str]:
    """Return the table's columns with the names that the keys have for them."""
    match on:
        case None | "":
            raise InvalidPredicate("keys need on=: the columns to compare them with")
        case str():
            return {on: on}
        case Mapping():
            names = dict(on)
        case _:
            names = {name: name for name in on}
    if not names:
        raise InvalidPredicate("on is empty; it names the columns to compare the keys with")
    return names


def _table(keys: Keys, names: Sequence[str]) -> pa.Table:
    """Return the columns of the keys as a table, in the order of `names`, which may repeat."""
    table = _frame(keys)
    if table is None:
        if len(names) > 1:
            raise InvalidPredicate(f"a list has the keys of one column, and on names {len(names)}: pass a table")
        return pa.table([_values(keys)], ["0"])
    known = table.column_names
    if missing := [name for name in names if name not in known]:
        raise UnknownColumn(f"the keys have no column {', '.join(missing)}: they have {', '.join(known)}")
    if repeated := [name for name in names if known.count(name) > 1]:
        raise UnknownColumn(f"the keys have several columns {', '.join(repeated)}")
    return pa.table([table[name] for name in names], [str(i) for i in range(len(names))])


def _frame(keys: Keys) -> pa.Table | None:
    """Return a frame of any library as a table; None for any other object."""
    if isinstance(keys, pa.Table):
        return keys
    if isinstance(keys, pa.RecordBatch):
        return pa.table(keys)
    if isinstance(keys, pa.Array | pa.ChunkedArray) or not hasattr(keys, "__arrow_c_stream__"):
        return None
    try:
        return pa.table(keys)
    except (pa.ArrowInvalid, TypeError):  # a stream of one column, such as a series
        return None


def _values(keys: Keys) -> pa.Array | pa.ChunkedArray:
    """Return the values of a list, an array or a series."""
    if isinstance(keys, pa.Array | pa.ChunkedArray):
        return keys
    if isinstance(keys, str | bytes | Mapping):
        raise InvalidPredicate(f"keys are a list of values or a frame, not {type(keys).__name__}")
    try:
        if hasattr(keys, "__arrow_c_stream__"):
            return pa.chunked_array(keys)
        if isinstance(keys, np.ma.MaskedArray):
            return pa.array(keys.data, mask=np.ma.getmaskarray(keys))
        return pa.array(keys if hasattr(keys, "__array__") else list(keys))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, OverflowError) as error:
        raise InvalidPredicate(f"keys are a list of values of one type, or a frame: {error}") from None
