"""Convert what Spark asks of a scan: filters to predicate nodes, and ORDER BY to columns.

The filters are Catalyst expressions after analysis and optimization: names are resolved and casts are explicit. Java
writes every tree in postfix order (Question.java), so deep nesting needs no recursion here.

An expression is recognised by the name of its class; only the classes below are known. Anything else is opaque: it
keeps every block, and so does a condition on it. The evaluation mode does not matter: where ANSI mode would fail and
another mode gives NULL or wraps around, the block is kept because an error is possible.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import TypeAlias, TypeVar

import pyarrow as pa

from secateur.errors import SecateurError
from secateur.io.spark.column.shapes import value_of
from secateur.pruning.aggregates.answers import AggregateCall
from secateur.pruning.functions.types import INSTANT, LOCAL, size_of
from secateur.pruning.order import OrderItem
from secateur.pruning.predicate.calls import build
from secateur.pruning.predicate.cast_types import sql_type
from secateur.pruning.predicate.constructors import as_expression, as_predicate, compare
from secateur.pruning.predicate.nodes import (
    INTEGERS,
    Among,
    And,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Opaque,
    Or,
    Predicate,
)
from secateur.pruning.predicate.value_lists import compact, listed

Item = TypeVar("Item")
Node: TypeAlias = "Expression | Predicate | None"  # None: a value that no node here can express

_COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_FUNCTIONS = {  # classes whose result depends only on their children, and possibly on the time zone
    **{"Abs": "abs", "Add": "+", "Divide": "/", "Multiply": "*", "Remainder": "%", "Subtract": "-"},
    **{"Ceil": "ceil", "Floor": "floor", "Round": "round", "UnaryMinus": "negative"},
    **{"Coalesce": "coalesce", "Greatest": "greatest", "Least": "least", "IsNaN": "isnan"},
    **{"AddMonths": "add_months", "DateAdd": "date_add", "DateDiff": "datediff", "DateSub": "date_sub"},
    **{"DateFromUnixDate": "date_from_unix_date", "LastDay": "last_day", "TruncDate": "trunc"},
    **{"TruncTimestamp": "date_trunc", "UnixDate": "unix_date", "UnixMicros": "unix_micros"},
    **{"UnixMillis": "unix_millis", "UnixSeconds": "unix_seconds", "MicrosToTimestamp": "timestamp_micros"},
    **{"MillisToTimestamp": "timestamp_millis", "SecondsToTimestamp": "timestamp_seconds"},
    **{"DayOfMonth": "day", "DayOfWeek": "dayofweek", "DayOfYear": "dayofyear", "Month": "month"},
    **{"Quarter": "quarter", "WeekDay": "weekday", "WeekOfYear": "weekofyear", "Year": "year"},
    **{"Hour": "hour", "Minute": "minute", "Second": "second"},
    **{"DateFormatClass": "date_format", "FromUTCTimestamp": "from_utc_timestamp", "MakeDate": "make_date"},
    **{"MonthsBetween": "months_between", "NextDay": "next_day", "ToUTCTimestamp": "to_utc_timestamp"},
    **{"BitwiseNot": "~", "IntegralDivide": "div", "Pmod": "pmod", "ShiftLeft": "shiftleft"},
    **{"ShiftRight": "shiftright", "ShiftRightUnsigned": "shiftrightunsigned"},
    **{"BRound": "bround", "Cbrt": "cbrt", "Exp": "exp", "Expm1": "expm1", "Log": "ln", "Log10": "log10"},
    **{"Log1p": "log1p", "Log2": "log2", "Logarithm": "log", "NaNvl": "nanvl", "Pow": "pow", "Rint": "rint"},
    **{"Signum": "signum", "Sqrt": "sqrt"},
    **{"Concat": "concat", "StringLocate": "locate", "StringLPad": "lpad", "StringRPad": "rpad"},
    **{"InitCap": "initcap", "Length": "length", "Lower": "lower", "StringReplace": "replace"},
    **{"GetJsonObject": "get_json_object", "StringSplit": "split", "Substring": "substring", "Upper": "upper"},
    **{"Contains": "contains", "EndsWith": "endswith", "StartsWith": "startswith", "RLike": "rlike"},
    **{"StringInstr": "instr", "ArrayContains": "array_contains", "ArraysOverlap": "arrays_overlap"},
    **{"CreateArray": "array", "MapContainsKey": "map_contains_key", "MapKeys": "map_keys"},
}
_TRIMS = {"StringTrim": "trim", "StringTrimLeft": "ltrim", "StringTrimRight": "rtrim"}
_ARRAYS: dict[str, Callable[[Sequence[str | None]], pa.Array]] = {  # type of the values -> parser of their texts
    **dict.fromkeys(INTEGERS, lambda texts: pa.array(texts).cast(pa.int64())),
    "date": lambda texts: pa.array(texts).cast(pa.int32()).cast(pa.date32()),
    "timestamp": lambda texts: pa.array(texts).cast(pa.int64()).cast(INSTANT),
    "timestamp_ntz": lambda texts: pa.array(texts).cast(pa.int64()).cast(LOCAL),
    "string": lambda texts: pa.array(texts, pa.large_string()),
}


@dataclass(frozen=True)
class PushedFilter:
    """A conjunct of a query, and the time zones that its functions and casts use."""

    predicate: Predicate
    zones: frozenset[str]


@dataclass(frozen=True)
class Catalyst:
    """One Catalyst node: class name, type as Spark prints it, a name or an escape character, and literal values."""

    kind: str
    type: str
    detail: str
    values: tuple[bytes | None, ...]


@dataclass(frozen=True)
class ScanQuestion:
    """What a query asks of a scan: the rows that match all filters, or some of these.

    `limit`: how many rows are wanted, None for all. `order`: which of them, the first of this order; without items any
    rows will do. None if the order is one of more than columns. `aggregates`: all that is wanted of the rows, if not
    empty; None if some are of more than columns. `groups`: the columns by which the rows are grouped; None if some are
    no columns. `columns`: those whose statistics Spark's optimizer wants.
    """

    filters: tuple[PushedFilter, ...]
    limit: int | None = None
    order: tuple[OrderItem, ...] | None = ()
    aggregates: tuple[AggregateCall, ...] | None = ()
    groups: tuple[Column, ...] | None = ()
    columns: tuple[str, ...] = ()


def scan_question(data: bytes) -> ScanQuestion:
    """Decode what Java's ``Question`` wrote. Raises ValueError or struct.error if `data` is malformed."""
    reader = _Reader(data)
    limit = reader.limit()
    filters = tuple(reader.filter() for _ in range(reader.number()))
    order = _all([reader.order_item() for _ in range(reader.number())])
    aggregates = _all([reader.aggregate() for _ in range(reader.number())])
    groups = _all([reader.column() for _ in range(reader.number())])
    return ScanQuestion(filters, limit, order, aggregates, groups, tuple(reader.text() for _ in range(reader.number())))


def _all(items: Sequence[Item | None]) -> tuple[Item, ...] | None:
    """Return the items, or None if one is None."""
    known = tuple(item for item in items if item is not None)
    return known if len(known) == len(items) else None


class _Reader:
    """Reads big-endian numbers, texts, and trees in postfix order."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self) -> int:
        (value,) = struct.unpack_from(">i", self._data, self._at)
        self._at += 4
        return int(value)

    def limit(self) -> int | None:
        """Read a number of rows; None for all."""
        (rows,) = struct.unpack(">q", self._bytes(8))
        return None if rows < 0 else int(rows)

    def order_item(self) -> OrderItem | None:
        """Read an item of ORDER BY; None if it is not a column."""
        descending, nulls_first = struct.unpack(">??", self._bytes(2))
        column = self.column()
        return None if column is None else OrderItem(column, descending, nulls_first)

    def aggregate(self) -> AggregateCall | None:
        """Read an aggregate; None if it is not of rows or of a column."""
        function = self.text()
        if self._bytes(1) == b"\0":
            return AggregateCall(function, None, "")
        column = self.column()
        return None if column is None else AggregateCall(function, column, "")

    def column(self) -> Column | None:
        """Read a tree; None if it is not a column."""
        root, _ = self._tree()
        return root if isinstance(root, Column) else None

    def filter(self) -> PushedFilter:
        """Read a condition."""
        root, zones = self._tree()
        return PushedFilter(Opaque("?") if root is None else _condition(root), zones)

    def _tree(self) -> tuple[Node, frozenset[str]]:
        """Read one tree, and the time zones in it."""
        stack: list[Node] = []
        zones: set[str] = set()
        while True:
            kind, type_, detail, zone = (self.text() for _ in range(4))
            node = Catalyst(kind, type_, detail, self._values())
            at = len(stack) - self.number()
            stack[at:] = [node_of(node, stack[at:])]
            zones |= {zone} - {""}
            if self._bytes(1) == b"\0":  # end of this tree
                (root,) = stack
                return root, frozenset(zones)

    def text(self) -> str:
        """Read a text."""
        return self._bytes(self.number()).decode(errors="replace")

    def _bytes(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]

    def _values(self) -> tuple[bytes | None, ...]:
        sizes = struct.unpack_from(f">{(count := self.number())}i", self._data, self._at)
        self._at += 4 * count
        return tuple(None if size < 0 else self._bytes(size) for size in sizes)


def node_of(node: Catalyst, children: Sequence[Node]) -> Node:
    """Return the equivalent of a Catalyst node. Without one: an opaque node for a condition, None for a value."""
    known = [child for child in children if child is not None]
    try:
        equivalent = _known(node, known) if len(known) == len(children) else None
    except (SecateurError, ValueError, ArithmeticError, pa.ArrowException):  # a value that a Literal cannot hold
        equivalent = None
    return Opaque(f"{node.kind} of Spark") if equivalent is None and node.type == "boolean" else equivalent


def _known(node: Catalyst, children: Sequence[Expression | Predicate]) -> Node:
    match node.kind, children:
        case "And" | "Or" as kind, (left, right):
            return _connected(And if kind == "And" else Or, _condition(left), _condition(right))
        case "AttributeReference", ():
            return Column((node.detail,))
        case "GetStructField", (Column(path),):
            return Column((*path, node.detail))
        case "JsonToStructs", (text,) if node.detail:
            return Call("from_json_field", (_value(text), Literal(node.detail, "string")))
        case "GetStructField", (Call("from_json_field", read),):
            return build("from_json_field", (*read, Literal(node.detail, "string")))
        case "VariantGet", (Column() as column, *_) if node.values:
            return _at_path(column, node)
        case "GetMapValue", (Column(path), Literal(str(key), "string")):
            return Column((*path, key))
        case "Literal", ():
            return _declared(_literal(node.type, node.values[0]), node.type)
        case "Not", (child,):
            return Not(_condition(child))
        case "InSet", (operand,):
            return In(_value(operand), _list(node.type, node.values))
        case _:
            return _of_values(node, [_value(child) for child in children])


def _of_values(node: Catalyst, children: Sequence[Expression]) -> Node:
    """Convert a node whose children are all values."""
    match node.kind, children:
        case kind, (left, right) if kind in _COMPARISONS:
            return compare(_bare(left), _COMPARISONS[kind], _bare(right))
        case "IsNull", (child,):
            return IsNull(child)
        case "IsNotNull", (child,):
            return Not(IsNull(child))
        case "In", (operand, *items):
            literals = tuple(bare for item in items if isinstance(bare := _bare(item), Literal))
            return In(operand, compact(literals)) if len(literals) == len(items) else Among(operand, tuple(items))
        case "Like", (operand, Literal(str(pattern), "string")):
            return Like(operand, pattern, node.detail)
        case "Cast", (Literal() | Cast(Literal()),):  # Spark folds casts of constants; one that is left is unusual
            return None
        case "Cast", (child,):
            return Cast(child, sql_type(node.type))
        case "If", (condition, value, otherwise):
            return Case(((as_predicate(condition), value),), otherwise)
        case "CaseWhen", _:
            pairs, odd = len(children) // 2, len(children) % 2
            branches = [(as_predicate(children[2 * i]), children[2 * i + 1]) for i in range(pairs)]
            return Case(tuple(branches), children[-1] if odd else Literal(None, "null"))
        case (("StringTrim" | "StringTrimLeft" | "StringTrimRight"), (child,)):  # of spaces
            return build(_TRIMS[node.kind], (child,))
        case "StringLocate", (part, child, Literal(1)):
            return build("locate", (part, child))
        case "GetArrayItem", (Call("split", split), index):
            return build("split_item", (*split, index))
        case "FromUnixTime", (child, Literal("yyyy-MM-dd HH:mm:ss")):
            return build("from_unixtime", (child,))
        case (("UnixTimestamp" | "ToUnixTimestamp"), (child, _)):  # the format is that of text, which has no bounds
            return build("unix_timestamp", (child,))
        case kind, _ if kind in _FUNCTIONS:
            return build(_FUNCTIONS[kind], children)
        case _:
            return None


def _at_path(column: Column, node: Catalyst) -> Call:
    """Convert the value at a path into VARIANT, which has a type, or is VARIANT to be cast."""
    function = "try_variant_get" if node.values == (b"false",) else "variant_get"
    of = (column, Literal(node.detail, "string"))
    return Call(function, of if node.type == "variant" else (*of, Literal(sql_type(node.type), "string")))


def _condition(node: Expression | Predicate) -> Predicate:
    return node if isinstance(node, Predicate) else as_predicate(node)


def _value(node: Expression | Predicate) -> Expression:
    return as_expression(node) if isinstance(node, Predicate) else node


def _connected(kind: type[And] | type[Or], *parts: Predicate) -> Predicate:
    """Flatten nested ANDs or ORs, as Catalyst writes them, into one node."""
    return kind(reduce(lambda row, part: row + (part.children if isinstance(part, kind) else (part,)), parts, ()))


# ---- values ----------------------------------------------------------------------------------------------------------


def _literal(type_: str, value: bytes | None) -> Literal:
    """Decode a value in Spark's internal form: dates are days, timestamps microseconds.

    Raises InvalidPredicate for types without literals.
    """
    if value is None or type_ == "binary":
        return value_of(value, type_).literal
    text = value.decode()
    return value_of(_plain(type_, text), type_).literal


def _plain(type_: str, text: str) -> object:
    if type_ == "boolean":
        return text == "true"
    return int(text) if type_ in ("date", "timestamp", "timestamp_ntz") else text


def _list(type_: str, values: Sequence[bytes | None]) -> Sequence[Literal]:
    if type_ in _ARRAYS:
        return listed(_ARRAYS[type_]([None if value is None else value.decode() for value in values]))
    return tuple(_literal(type_, value) for value in values)


def _declared(literal: Literal, type_: str) -> Expression:
    """Keep the declared type of a decimal: it determines the type of the expression around it."""
    if not isinstance(literal.value, Decimal):
        return literal
    declared = sql_type(type_)
    precision, scale = size_of(literal.value)
    return literal if declared == f"DECIMAL({precision}, {scale})" else Cast(literal, declared)


def _bare(operand: Expression) -> Expression:
    """Drop the declared type of a decimal operand: it does not affect a comparison."""
    match operand:
        case Cast(Literal(Decimal()) as literal):
            return literal
        case _:
            return operand
