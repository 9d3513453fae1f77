"""Predicates bound to a table: every leaf has typed operands and a set of keys.

Comparisons with literals, IN lists and prefixes all become :class:`Within`: whether the operand's key is in a set. The
rest are comparisons of two operands, null tests, patterns, constants, and expressions that pruning cannot read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from secateur.pruning.bounds.key_tuples import KeyTuples
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.interval import Function
from secateur.pruning.predicate.index_paths import is_expression, text_of_expression
from secateur.pruning.predicate.nodes import Predicate, Sql, Truth, quoted_name
from secateur.pruning.predicate.patterns.substrings import Alternatives
from secateur.pruning.predicate.patterns.text_tests import TextTest
from secateur.pruning.predicate.trees import Node, joined
from secateur.values.key import Key


@dataclass(frozen=True)
class Field:
    """A column of the table, or a field nested in structs, or an expression that is indexed as one, with its type."""

    path: tuple[str, ...]
    type: pa.DataType

    def __str__(self) -> str:
        if is_expression(self.path):
            return text_of_expression(self.path)
        return ".".join(quoted_name(part) if not part.isidentifier() else part for part in self.path)


@dataclass(frozen=True)
class Constant:
    """A value that is the same in every row; a `key` of None is NULL.

    `written`: whether it is a literal. None: a literal or a cast of one, which text does not distinguish (``5L``).
    """

    type: pa.DataType
    key: Key | None
    written: bool | None = field(default=False, compare=False)


@dataclass(frozen=True)
class Varying:
    """A value that is the same in every row but known only when the query runs: a key of [lower, upper]."""

    type: pa.DataType
    lower: Key
    upper: Key


@dataclass(frozen=True, eq=False, repr=False)
class Apply(Node):
    """A function of operands."""

    function: Function
    arguments: tuple[Operand, ...]

    @property
    def type(self) -> pa.DataType:
        """The type of the function's value."""
        return self.function.type

    def sql_parts(self) -> Iterable[object]:
        return f"{self.function.name}(", *joined(", ", self.arguments), ")"


@dataclass(frozen=True, eq=False, repr=False)
class Conditional(Node):
    """The value of the first branch whose condition is TRUE, else `otherwise`; all have one type."""

    branches: tuple[tuple[Predicate, Operand], ...]
    otherwise: Operand

    @property
    def type(self) -> pa.DataType:
        """The type of every branch."""
        return self.otherwise.type

    def sql_parts(self) -> Iterable[object]:
        branches = (part for condition, value in self.branches for part in (" WHEN ", condition, " THEN ", value))
        return "CASE", *branches, " ELSE ", self.otherwise, " END"


@dataclass(frozen=True, eq=False, repr=False)
class Tested(Node):
    """A predicate as a boolean value."""

    predicate: Predicate

    @property
    def type(self) -> pa.DataType:
        """Boolean."""
        return pa.bool_()

    def sql_parts(self) -> Iterable[object]:
        return "(", self.predicate, ")"


Operand: TypeAlias = Field | Constant | Varying | Apply | Conditional | Tested


@dataclass(frozen=True)
class OfValue:
    """A test of a value that is computed from a leaf's text, on rows: whether its key is in a set, or of its text."""

    value: Operand
    test: RangeSet | TextTest


@dataclass(frozen=True, eq=False, repr=False)
class Within(Predicate):
    """TRUE where the operand's key is in `ranges`, FALSE where it is not, NULL where the operand is NULL.

    On keys in `fails` Spark raises an error, or its answer is unknown here. If several conditions under AND were
    merged, for example the two ends of a range, `sides` has them.
    """

    operand: Operand
    ranges: RangeSet
    sql: Sql = field(compare=False)
    fails: RangeSet | None = None
    sides: tuple[Within, ...] = field(default=(), compare=False, repr=False)

    def sql_parts(self) -> Iterable[object]:
        return (self.sql,)


@dataclass(frozen=True, eq=False, repr=False)
class Missing(Predicate):
    """TRUE where the operand is NULL, else FALSE."""

    operand: Operand
    sql: Sql = field(compare=False)

    def sql_parts(self) -> Iterable[object]:
        return (self.sql,)


@dataclass(frozen=True, eq=False, repr=False)
class TextMatch(Predicate):
    """A test of text that is TRUE only for values in `prefix`, for example LIKE with an inner wildcard.

    Such a value contains all substrings of one of the `alternatives`, if there are any, and each of the `tokens` as a
    whole token. If `folded`, this holds after :func:`.patterns.substrings.fold`, unless the value has a character of
    CASE_TRICKY.
    """

    operand: Operand
    test: TextTest | OfValue  # tells exactly for which values this is TRUE
    prefix: RangeSet
    sql: Sql
    alternatives: Alternatives = field(default=(), compare=False)
    folded: bool = field(default=False, compare=False)
    tokens: tuple[bytes, ...] = field(default=(), compare=False)

    def sql_parts(self) -> Iterable[object]:
        return (self.sql,)


@dataclass(frozen=True, eq=False, repr=False)
class Compared(Predicate):
    """``left op right`` of two operands of one type, with op one of ``= <=> < <=``."""

    op: str
    left: Operand
    right: Operand
    sql: Sql = field(compare=False)

    def sql_parts(self) -> Iterable[object]:
        return (self.sql,)


@dataclass(frozen=True, eq=False, repr=False)
class Holds(Predicate):
    """TRUE where some element of an array, or some key of a map, is in `ranges`.

    Otherwise NULL where the column or some element is NULL, and FALSE elsewhere.
    """

    column: Field
    ranges: RangeSet
    sql: Sql = field(compare=False)

    @property
    def type(self) -> pa.DataType:
        """The type of the elements, or of the keys."""
        return element_type(self.column.type)

    def sql_parts(self) -> Iterable[object]:
        return (self.sql,)


def element_type(type_: pa.DataType) -> pa.DataType | None:
    """Return the type of an array's elements or of a map's keys; None for other types."""
    if pa.types.is_map(type_):
        return type_.key_type
    return type_.value_type if pa.types.is_list(type_) else None


@dataclass(frozen=True, eq=False, repr=False)
class Joined(Predicate):
    """Whether the values of several columns are one of some tuples, which decide about NULL."""

    columns: tuple[Field, ...]
    tuples: KeyTuples
    sql: Sql = field(compare=False)

    def sql_parts(self) -> Iterable[object]:
        return (self.sql,)


@dataclass(frozen=True, eq=False, repr=False)
class Unsupported(Predicate):
    """An expression that pruning cannot bound, except that it is TRUE only where all `needs` are."""

    sql: Sql
    reason: str
    fields: tuple[Field, ...]  # needed to evaluate it
    needs: tuple[Holds, ...] = ()

    def sql_parts(self) -> Iterable[object]:
        return (self.sql,)


Leaf: TypeAlias = Within | Missing | TextMatch | Compared | Holds | Joined | Unsupported | Truth
