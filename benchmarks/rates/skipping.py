"""What others skip by bounds: the libraries of table formats skip whole files, and pyarrow skips row groups."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from functools import reduce
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import sqlglot
from deltalake import DeltaTable
from pyiceberg import expressions
from pyiceberg.expressions.visitors import bind
from pyiceberg.io.pyarrow import expression_to_pyarrow, pyarrow_to_schema
from pyiceberg.table import StaticTable
from pyiceberg.table.name_mapping import NameMapping
from sqlglot import exp

from benchmarks.rates.copies import Copy
from benchmarks.rates.questions import Question

ice: Any = expressions  # untyped, for its constructors get names of columns here

COMPARED: Mapping[type[exp.Expr], Any] = {
    exp.EQ: ice.EqualTo,
    exp.GT: ice.GreaterThan,
    exp.GTE: ice.GreaterThanOrEqual,
    exp.LT: ice.LessThan,
    exp.LTE: ice.LessThanOrEqual,
}

FOOTERS = "bounds in footers"  # as pyarrow uses them


class NotPushed(Exception):
    """The libraries have no such condition."""


def formats_own(copy: Copy, question: Question) -> dict[str, np.ndarray]:
    """The blocks that the format's own library leaves, by its name: bool of shape (n_blocks,).

    Those of Iceberg and Delta leave whole files; of a directory's files, pyarrow leaves row groups by their footers.
    """
    match copy.reference:
        case StaticTable() as table:
            tasks = table.scan(row_filter=pushed(question.sql)).plan_files()
            return {"PyIceberg": _in_files(copy, {task.file.file_path for task in tasks})}
        case DeltaTable() as delta:
            data = delta.to_pyarrow_dataset()
            fragments = data.get_fragments(filter=in_arrow(pushed(question.sql), data.schema))
            return {"deltalake": _in_files(copy, {copy.path(unquote(fragment.path)) for fragment in fragments})}
    files = list(ds.dataset(str(copy.home), format="parquet").get_fragments())
    condition = in_arrow(pushed(question.sql), files[0].physical_schema)
    left = np.zeros(len(copy.blocks), bool)
    for file in files:
        left[[copy.numbers[file.path, group.id] for group in file.subset(condition).row_groups]] = True
    return {FOOTERS: left}


def _in_files(copy: Copy, paths: set[str]) -> np.ndarray:
    held = copy.blocks["path"].to_pylist()
    assert paths <= set(held), "the library names files that are not the table's"
    return np.array([path in paths for path in held], bool)


def in_arrow(condition: expressions.BooleanExpression, schema: pa.Schema) -> pc.Expression:
    """A condition as an expression of pyarrow."""
    fields = [{"field-id": i, "names": [name]} for i, name in enumerate(schema.names, 1)]
    bound = bind(pyarrow_to_schema(schema, NameMapping.model_validate(fields)), condition, case_sensitive=True)
    return pc.scalar(True) if isinstance(bound, ice.AlwaysTrue) else expression_to_pyarrow(bound)


def pushed(sql: str) -> expressions.BooleanExpression:
    """The conjuncts that the libraries can evaluate, as engines push them down; rows are checked for the others."""
    whole = sqlglot.parse_one(sql, read="spark")
    known: list[expressions.BooleanExpression] = []
    for conjunct in whole.flatten() if isinstance(whole, exp.And) else [whole]:
        try:
            known.append(_condition(conjunct))
        except NotPushed:
            continue
    return reduce(ice.And, known, ice.AlwaysTrue())


def _condition(node: exp.Expr) -> expressions.BooleanExpression:
    """Raises NotPushed."""
    match node:
        case exp.Paren():
            return _condition(node.this)
        case exp.And():
            return ice.And(_condition(node.left), _condition(node.right))
        case exp.Or():
            return ice.Or(_condition(node.left), _condition(node.right))
        case exp.Not():
            return ice.Not(_condition(node.this))
        case exp.Is() if isinstance(node.expression, exp.Null):
            return ice.IsNull(_column(node.this))
        case exp.Between():
            low, high = (_value(node.args[side]) for side in ("low", "high"))
            return ice.And(
                ice.GreaterThanOrEqual(_column(node.this), low), ice.LessThanOrEqual(_column(node.this), high)
            )
        case exp.In() if node.expressions:
            return ice.In(_column(node.this), [_value(literal) for literal in node.expressions])
        case exp.Like():
            return _prefix(_column(node.this), _value(node.expression))
    if type(node) in COMPARED:
        return COMPARED[type(node)](_column(node.this), _value(node.expression))
    raise NotPushed


def _prefix(column: str, pattern: Any) -> expressions.BooleanExpression:
    text = str(pattern)
    if not text.endswith("%") or any(wildcard in text[:-1] for wildcard in "%_"):
        raise NotPushed
    return ice.StartsWith(column, text[:-1])


def _column(node: exp.Expr) -> str:
    if not isinstance(node, exp.Column):
        raise NotPushed
    return node.name


def _value(node: exp.Expr) -> Any:
    """A number or a text; a text that is a date is one in UTC, as Spark reads it where it is compared with a time."""
    if not isinstance(node, exp.Literal):
        raise NotPushed
    if not node.is_string:
        return float(node.this) if "." in node.this else int(node.this)
    try:
        return dt.datetime.fromisoformat(node.this).replace(tzinfo=dt.UTC).isoformat()
    except ValueError:
        return node.this
