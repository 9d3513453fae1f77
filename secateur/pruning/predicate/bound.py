"""Predicates bound to a table: every leaf has typed operands and a set of keys.

Comparisons with literals, IN lists and prefixes all become :class:`Within`: whether the operand's key is in a set. The
rest are comparisons of two operands, null tests, patterns, constants, and expressions that pruning cannot read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from secateur.pruning.bounds.key_tuples import KeyTuples
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.interval import Function
from secateur.pruning.predicate.abbreviation import brief
from secateur.pruning.predicate.nodes import And, Is, Not, Or, Predicate, Sql, Truth, quoted_name
from secateur.pruning.predicate.patterns.substrings import Alternatives
from secateur.pruning.predicate.patterns.text_tests import OnlySpark, TextTest
from secateur.pruning.predicate.trees import Node, joined, preorder
from secateur.values import Key, kind_of

# ---- operands --------------------------------------------------------------------------------------------------------


_EXPRESSION, _SUM = ("", ""), ("", "sum")


def expression_path(text: str, types: Iterable[pa.DataType]) -> tuple[str, ...]:
    """Return the path of an indexed expression over columns of these types: two names of it are empty."""
    return (*_EXPRESSION, text, *map(str, types))


def is_expression(path: tuple[str, ...]) -> bool:
    """Whether a path is that of an indexed expression."""
    return path[:2] == _EXPRESSION


def text_of_expression(path: tuple[str, ...]) -> str:
    """Return the SQL of an indexed expression."""
    return path[2]


def sum_path(path: tuple[str, ...], scale: int) -> tuple[str, ...]:
    """Return the path under which an index keeps the sums of a column, whose values have this scale."""
    return (*_SUM, str(scale), *path)


def is_sum(path: tuple[str, ...]) -> bool:
    """Whether an index keeps the sums of a column under a path."""
    return path[:2] == _SUM


def summed_path(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path of the column whose sums are kept under a path."""
    return path[3:]


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

# ---- leaves ----------------------------------------------------------------------------------------------------------


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

# ---- walks -----------------------------------------------------------------------------------------------------------


def leaves(predicate: Predicate) -> Iterator[Leaf]:
    """Return the leaves of a bound predicate from left to right, each once, without those inside operands."""
    for part in preorder(predicate, _connected):
        match part:
            case Within() | Missing() | TextMatch() | Compared() | Holds() | Joined() | Unsupported() | Truth():
                yield part
            case And() | Or() | Not() | Is():
                pass
            case _:
                raise TypeError(f"{part!r} is not bound")


def _connected(predicate: Predicate) -> Iterable[Predicate]:
    """Return the children of a connective."""
    match predicate:
        case And(children) | Or(children):
            return children
        case Not(child) | Is(child):
            return (child,)
        case _:
            return ()


def shared(predicate: Predicate) -> frozenset[int]:
    """Return the ids of the connectives that occur more than once in the tree."""
    below = Counter(id(child) for part in preorder(predicate, _connected) for child in _connected(part))
    return frozenset(node for node, count in below.items() if count > 1)


def children(node: Predicate | Operand) -> Iterable[Predicate | Operand]:
    """Return the direct children of a part of a bound predicate, from left to right."""
    match node:
        case Within(operand) | Missing(operand) | TextMatch(operand):
            return (operand,)
        case Compared(left=left, right=right):
            return left, right
        case Joined(columns=joined_columns):
            return joined_columns
        case Apply(arguments=arguments):
            return arguments
        case Conditional(branches, otherwise):
            return (*(part for branch in branches for part in branch), otherwise)
        case Tested(predicate):
            return (predicate,)
        case Predicate():
            return _connected(node)
        case _:
            return ()


def everything_in(predicate: Predicate | Operand) -> Iterator[Predicate | Operand]:
    """Return a bound predicate, or an operand, and everything below it, from left to right, each once."""
    return preorder(predicate, children)


def all_leaves(predicate: Predicate) -> Iterator[Leaf]:
    """Return the leaves of a bound predicate and of the conditions inside its operands, each once."""
    for part in everything_in(predicate):
        match part:
            case Within() | Missing() | TextMatch() | Compared() | Holds() | Joined() | Unsupported() | Truth():
                yield part


def operands(leaf: Leaf) -> tuple[Operand, ...]:
    """Return the operands of a leaf."""
    match leaf:
        case Within(operand) | Missing(operand) | TextMatch(operand):
            return (operand,)
        case Compared(left=left, right=right):
            return (left, right)
        case _:
            return ()


def parts(leaf: Leaf) -> Iterator[Operand]:
    """Return the operands of a leaf and all below them, without those of conditions inside them."""
    return (part for operand in operands(leaf) for part in preorder(operand, _values_below))


def _values_below(node: Operand) -> Iterable[Operand]:
    match node:
        case Apply(arguments=arguments):
            return arguments
        case Conditional(branches, otherwise):
            return (*(value for _, value in branches), otherwise)
        case _:
            return ()


def is_repeatable(operand: Operand) -> bool:
    """Return whether an operand written twice has the same value on a row; Spark-only ones may be random."""
    return not any(isinstance(leaf, Unsupported) for leaf in all_leaves(Missing(operand, "")))


def is_total(predicate: Predicate) -> bool:
    """Return whether a bound predicate is known to raise an error on no row, whatever its values."""
    return not any(
        isinstance(part, Apply | Unsupported) or (isinstance(part, Within) and part.fails is not None)
        for part in everything_in(predicate)
    )


def fields(predicate: Predicate | Operand) -> list[Field]:
    """Return the fields whose statistics a bound predicate or an operand can use, each once, in order of appearance."""
    return list(dict.fromkeys(part for part in everything_in(predicate) if isinstance(part, Field)))


def columns(predicate: Predicate) -> list[str]:
    """Return the top-level columns needed to evaluate a bound predicate on rows, each once."""
    without = (field for leaf in all_leaves(predicate) for field in _without_statistics(leaf))
    return list(dict.fromkeys(field.path[0] for field in (*fields(predicate), *without)))


def _without_statistics(leaf: Leaf) -> tuple[Field, ...]:
    match leaf:
        case Unsupported(fields=named):
            return named
        case Holds(column):
            return (column,)
        case _:
            return ()


def is_supported(predicate: Predicate) -> bool:
    """Return whether every leaf can be evaluated on rows here, without Spark."""
    return not any(True for _ in left_to_spark(predicate))


def unbounded(predicate: Predicate, served: Container[Leaf] = ()) -> Iterator[str]:
    """Return the leaves that no statistics can bound, as text with the reason.

    Leaves in `served`, which filters support, are omitted.
    """
    for leaf in all_leaves(predicate):
        match leaf:
            case _ if leaf in served:
                continue
            case Unsupported(sql, reason):
                yield f"{brief(sql)}: {reason}"
            case TextMatch(prefix=prefix, sql=sql) if prefix.is_everything:
                yield f"{brief(sql)}: no literal prefix bounds it"
            case Holds(column, sql=sql):
                yield f"{brief(sql)}: no bounds are kept of what is in a {column.type}"
            case Missing(Field(type=type_), sql) if kind_of(type_) is None:
                yield f"{brief(sql)}: no statistics are kept of a {type_}"


def left_to_spark(predicate: Predicate) -> Iterator[str]:
    """Return the leaves that only Spark can evaluate on rows, as text, with the reason if there is one."""
    for leaf in all_leaves(predicate):
        match leaf:
            case Unsupported(sql, reason) | TextMatch(test=OnlySpark(reason), sql=sql):
                yield f"{brief(sql)}: {reason}"
            case TextMatch(test=OfValue(test=OnlySpark(reason)), sql=sql):
                yield f"{brief(sql)}: {reason}"
            case Truth():
                pass
            case TextMatch(test=OfValue(value), sql=sql) if not is_known_on_rows(value):
                yield brief(sql)
            case _ if not all(map(_is_known, parts(leaf))):
                yield brief(leaf.sql)


def is_known_on_rows(operand: Operand) -> bool:
    """Return whether all functions of an operand can be computed on rows here; conditions in it are not looked at."""
    return all(map(_is_known, preorder(operand, _values_below)))


def _is_known(part: Operand) -> bool:
    match part:
        case Apply(function):
            return function.is_known_on_rows
        case _:
            return not isinstance(part, Varying)
