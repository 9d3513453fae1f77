"""Predicates as written: expressions over column names and literals, not yet bound to a table's types.

Every node prints as Spark SQL. Text (:mod:`.sql.parse`), expression objects (:mod:`.expressions`) and the front ends of
other libraries all produce this tree. Bound predicates use the same connectives
(:mod:`secateur.pruning.predicate.bound`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias, TypeGuard

from secateur.pruning.predicate.joins.join_keys import JoinKeys, ManyKeys
from secateur.pruning.predicate.trees import Node, joined

LiteralValue: TypeAlias = bool | int | float | Decimal | str | bytes | dt.date | dt.datetime | None


class Predicate(Node):
    """Anything that is TRUE, FALSE or NULL on a row; combine with ``&``, ``|`` and ``~``."""

    def __and__(self, other: object) -> Predicate:
        return _flat(And, self, _condition(other))

    def __rand__(self, other: object) -> Predicate:
        return _flat(And, _condition(other), self)

    def __or__(self, other: object) -> Predicate:
        return _flat(Or, self, _condition(other))

    def __ror__(self, other: object) -> Predicate:
        return _flat(Or, _condition(other), self)

    def __invert__(self) -> Predicate:
        return Not(self)

    def __bool__(self) -> bool:
        raise TypeError("a predicate has no truth value by itself: combine with &, | and ~, not with and, or, not")


Sql: TypeAlias = str | Predicate  # prints as Spark SQL; a tree does so only on demand


def _flat(connective: type[And] | type[Or], *parts: Predicate) -> Predicate:
    """Combine parts by a connective, flattening nested ones: a chain of 300 is one node wide."""
    return connective(tuple(x for part in parts for x in (part.children if isinstance(part, connective) else (part,))))


def _condition(value: object) -> Predicate:
    """Convert a predicate, or a boolean column (anything with a predicate `is_true`), to a predicate."""
    condition = value if isinstance(value, Predicate) else getattr(value, "is_true", None)
    if not isinstance(condition, Predicate):
        raise TypeError(f"{value!r} is not a predicate: it cannot stand beside & or |")
    return condition


@dataclass(frozen=True, eq=False, repr=False)
class And(Predicate):
    """TRUE if all children are."""

    children: tuple[Predicate, ...]

    def sql_parts(self) -> Iterable[object]:
        return "(", *joined(" AND ", _with_ranges(self.children)), ")"


@dataclass(frozen=True, eq=False, repr=False)
class Or(Predicate):
    """TRUE if any child is."""

    children: tuple[Predicate, ...]

    def sql_parts(self) -> Iterable[object]:
        return "(", *joined(" OR ", self.children), ")"


@dataclass(frozen=True, eq=False, repr=False)
class Not(Predicate):
    """TRUE if the child is FALSE."""

    child: Predicate

    def sql_parts(self) -> Iterable[object]:
        return "(NOT ", self.child, ")"


@dataclass(frozen=True, eq=False, repr=False)
class Is(Predicate):
    """``child IS TRUE``, ``IS FALSE`` or ``IS UNKNOWN``: whether the child has that truth value; never NULL."""

    child: Predicate
    value: bool | None

    def sql_parts(self) -> Iterable[object]:
        return "((", self.child, f") IS {'NULL' if self.value is None else str(self.value).upper()})"


@dataclass(frozen=True, eq=False, repr=False)
class Truth(Predicate):
    """A constant."""

    value: bool | None

    def sql_parts(self) -> Iterable[object]:
        return ("CAST(NULL AS BOOLEAN)" if self.value is None else str(self.value).upper(),)


@dataclass(frozen=True, eq=False, repr=False)
class Opaque(Predicate):
    """An expression kept as text: only Spark evaluates it; pruning knows only its column names."""

    sql: str
    columns: tuple[Column, ...] = ()

    def sql_parts(self) -> Iterable[object]:
        return (f"({self.sql})",)


@dataclass(frozen=True)
class Literal:
    """A value with the SQL type it was written in.

    `type` is one of tinyint, smallint, int, bigint, decimal, double, float, string, binary, boolean, date, timestamp,
    timestamp_ntz, null. `value` is the Python value; for a date or timestamp it may be the text of a Spark literal,
    which binding parses in the session's time zone.
    """

    value: LiteralValue
    type: str

    def __str__(self) -> str:
        match self.type, self.value:
            case "null", _:
                return "NULL"
            case "string", str(text):
                return _quoted(text)
            case "binary", bytes(data):
                return f"X'{data.hex().upper()}'"
            case "decimal", Decimal() as number:
                return f"{number:f}BD"
            case ("double" | "float") as type_, number:
                return f"CAST('{number!r}' AS {type_.upper()})"
            case ("date" | "timestamp" | "timestamp_ntz") as type_, moment:
                return f"{type_.upper()} {_quoted(str(moment))}"
            case type_, value:
                return str(value).upper() + _SUFFIXES.get(type_, "")


VARIABLE = "${"  # begins the name of one of Spark's variables, in any text of SQL
_SUFFIXES = {"tinyint": "Y", "smallint": "S", "bigint": "L"}
INTEGERS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}  # bits


@dataclass(frozen=True)
class Column:
    """A column name, or the path of a nested field: ``Column(("address", "zip"))``."""

    path: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(quoted_name(part) for part in self.path)


SYMBOLS = ("+", "-", "*", "/", "%", "&", "|", "^", "~")


@dataclass(frozen=True, eq=False, repr=False)
class Call(Node):
    """A function of other expressions, by its lower-case name; operators are ``+ - * / % & | ^ ~ div negative``.

    Unknown functions are calls too: binding reports that they have no rule.
    """

    function: str
    arguments: tuple[Expression, ...]

    def sql_parts(self) -> Iterable[object]:
        match self.function, self.arguments:
            case (("+" | "-"), (_, _)):
                return "(", *_chain(self), ")"
            case operator, (left, right) if operator in SYMBOLS:
                return "(", left, f" {operator} ", right, ")"
            case "div", (left, right):
                return "(", left, " DIV ", right, ")"
            case "~", (operand,):
                return "(~ ", operand, ")"
            case "negative", (Literal() as literal,):  # a sign in front would make a negative literal
                return "(- (", literal, "))"
            case "negative", (operand,):
                return "(- ", operand, ")"
            case "split_item", (*split, index):
                return "split(", *joined(", ", split), ")[", index, "]"
            case "get_split_item", (*split, index):
                return "get(split(", *joined(", ", split), "), ", index, ")"
            case "from_json_field", (text, schema, *names):
                path = "".join(f".{quoted_name(str(name.value))}" for name in names if isinstance(name, Literal))
                return "from_json(", text, ", ", schema, f"){path}"
            case ("timestampadd" | "timestampdiff") as function, (Literal(str(unit), "string"), *arguments):
                return f"{function}({unit}, ", *joined(", ", arguments), ")"
            case function, arguments:
                return f"{function}(", *joined(", ", arguments), ")"


@dataclass(frozen=True, eq=False, repr=False)
class Cast(Node):
    """``CAST(operand AS type)``, or ``TRY_CAST`` where `safe`; `type` is SQL in upper case."""

    operand: Expression
    type: str
    safe: bool = False

    def sql_parts(self) -> Iterable[object]:
        return "TRY_CAST(" if self.safe else "CAST(", self.operand, f" AS {self.type})"


@dataclass(frozen=True, eq=False, repr=False)
class Case(Node):
    """``CASE WHEN condition THEN value ... ELSE otherwise END``; without ELSE, `otherwise` is a NULL literal."""

    branches: tuple[tuple[Predicate, Expression], ...]
    otherwise: Expression

    def sql_parts(self) -> Iterable[object]:
        match self:
            case Case(((Comparison("=", left, right), Literal(None, "null")),), otherwise) if left is otherwise:
                yield from ("nullif(", left, ", ", right, ")")
                return
        yield "CASE"
        subject = _subject(self)
        if subject is not None:
            yield " "
            yield subject
        for condition, value in self.branches:
            yield " WHEN "
            yield condition if subject is None else condition.right  # type: ignore[attr-defined]
            yield " THEN "
            yield value
        yield " ELSE "
        yield self.otherwise
        yield " END"


@dataclass(frozen=True, eq=False, repr=False)
class Test(Node):
    """A predicate as a boolean value."""

    predicate: Predicate

    def sql_parts(self) -> Iterable[object]:
        if isinstance(self.predicate, And | Or | Not | Is | Opaque):  # these have their own parentheses
            return (self.predicate,)
        return "(", self.predicate, ")"


@dataclass(frozen=True)
class Duration:
    """An ANSI interval: months, or days if written in days only, or microseconds.

    `unit` is MONTH, DAY or MICROSECOND; a date plus days stays a date.
    """

    amount: int
    unit: str

    def __str__(self) -> str:
        if self.unit != "MICROSECOND":
            return f"INTERVAL '{self.amount}' {self.unit}"
        seconds, micros = divmod(abs(self.amount), 1_000_000)
        minutes, second = divmod(seconds, 60)
        hours, minute = divmod(minutes, 60)
        sign, fraction = "-" if self.amount < 0 else "", f".{micros:06}" if micros else ""
        return f"INTERVAL '{sign}{hours // 24} {hours % 24:02}:{minute:02}:{second:02}{fraction}' DAY TO SECOND"


Expression: TypeAlias = Column | Literal | Call | Cast | Case | Test | Duration


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Predicate):
    """``left op right``, with op one of ``= <=> < <= > >=``; ``!=`` is NOT of ``=``, which treats NULL exactly.

    If one side is a literal, :func:`compare` puts it on the right.
    """

    op: str
    left: Expression
    right: Expression

    def sql_parts(self) -> Iterable[object]:
        return self.left, f" {self.op} ", self.right


@dataclass(frozen=True, eq=False, repr=False)
class In(Predicate):
    """``operand IN (literals)``: a tuple, or for long lists a :mod:`.value_lists` list."""

    operand: Expression
    literals: Sequence[Literal]

    def sql_parts(self) -> Iterable[object]:
        return (self.operand, " IN (", *joined(", ", self.literals), ")") if self.literals else ("FALSE",)


@dataclass(frozen=True, eq=False, repr=False)
class SemiJoin(Predicate):
    """Whether the values of columns equal those of one of the keys, as in a left semi join."""

    columns: tuple[Column, ...]
    keys: JoinKeys | ManyKeys

    def sql_parts(self) -> Iterable[object]:
        names = ", ".join(map(str, self.columns))
        return (f"{names if len(self.columns) == 1 else f'({names})'} IN ({self.keys})",)


@dataclass(frozen=True, eq=False, repr=False)
class Among(Predicate):
    """``operand IN (options)``, where some options are not literals; all are compared in one type."""

    operand: Expression
    options: tuple[Expression, ...]

    def sql_parts(self) -> Iterable[object]:
        return self.operand, " IN (", *joined(", ", self.options), ")"


@dataclass(frozen=True, eq=False, repr=False)
class IsNull(Predicate):
    """``operand IS NULL``."""

    operand: Expression

    def sql_parts(self) -> Iterable[object]:
        return self.operand, " IS NULL"


@dataclass(frozen=True, eq=False, repr=False)
class Like(Predicate):
    """``operand LIKE pattern ESCAPE escape``."""

    operand: Expression
    pattern: str
    escape: str

    def sql_parts(self) -> Iterable[object]:
        return self.operand, f" LIKE {_pattern(self.pattern, self.escape)}"


@dataclass(frozen=True, eq=False, repr=False)
class ILike(Predicate):
    """``operand ILIKE pattern ESCAPE escape``: LIKE of the operand and the pattern in lower case."""

    operand: Expression
    pattern: str
    escape: str

    def sql_parts(self) -> Iterable[object]:
        return self.operand, f" ILIKE {_pattern(self.pattern, self.escape)}"


def _pattern(pattern: str, escape: str) -> str:
    return _quoted(pattern) if escape == "\\" else f"{_quoted(pattern)} ESCAPE {_quoted(escape)}"


@dataclass(frozen=True, eq=False, repr=False)
class RLike(Predicate):
    """``operand RLIKE pattern``: whether a Java regular expression matches anywhere in a string."""

    operand: Expression
    pattern: str

    def sql_parts(self) -> Iterable[object]:
        return self.operand, f" RLIKE {_quoted(self.pattern)}"


def _with_ranges(conditions: Sequence[Predicate]) -> Iterator[object]:
    """Return conditions as parts of text; ``x >= low`` and ``x <= high`` on the same computed x become BETWEEN."""
    i = 0
    while i < len(conditions):
        match conditions[i : i + 2]:
            case (Comparison(">=", left, low), Comparison("<=", same, high)) if left is same and isinstance(left, Node):
                yield _Between(left, low, high)
                i += 2
            case _:
                yield conditions[i]
                i += 1


@dataclass(frozen=True, eq=False, repr=False)
class _Between(Node):
    operand: Expression
    low: Expression
    high: Expression

    def sql_parts(self) -> Iterable[object]:
        return self.operand, " BETWEEN ", self.low, " AND ", self.high


def _chain(call: Call) -> Iterator[object]:
    """Return a chain of sums and differences as text, without parentheses around the left ones."""
    parts: list[object] = []
    operand: Expression = call
    while isinstance(operand, Call) and operand.function in ("+", "-") and len(operand.arguments) == 2:
        left, right = operand.arguments
        parts += [right, f" {operand.function} "]
        operand = left
    return reversed([*parts, operand])


def _subject(case: Case) -> Expression | None:
    """Return what all conditions compare, if it is the same node in each, and more than a name."""
    subjects = [condition.left for condition, _ in case.branches if _is_equality(condition)]
    if len(subjects) < 2 or len(subjects) < len(case.branches) or not isinstance(subjects[0], Node):
        return None
    return subjects[0] if all(subject is subjects[0] for subject in subjects) else None


def _is_equality(condition: Predicate) -> TypeGuard[Comparison]:
    return isinstance(condition, Comparison) and condition.op == "="


def quoted_name(name: str) -> str:
    """A name in back-quotes."""
    return "`" + name.replace("`", "``") + "`"


def _quoted(text: str) -> str:
    """Return a text in quotes; Spark would replace ``${name}`` by a variable, also in quotes."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace(VARIABLE, "\\u0024{")
    return f"'{escaped}'"
