"""Predicates as written: column names and literals, not yet bound to a table's types.

Every node prints as Spark SQL. Text (:mod:`.parse`) and expression objects (:mod:`.expressions`) give one tree. The
connectives serve bound predicates too (:mod:`secateur.pruning.predicate.bound`).
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

LiteralValue: TypeAlias = bool | int | float | Decimal | str | bytes | dt.date | dt.datetime | None


class Predicate:
    """Anything that is TRUE, FALSE or NULL on a row; combine with ``&``, ``|`` and ``~``."""

    def __and__(self, other: Predicate) -> Predicate:
        return And((self, other))

    def __or__(self, other: Predicate) -> Predicate:
        return Or((self, other))

    def __invert__(self) -> Predicate:
        return Not(self)

    def __bool__(self) -> bool:
        raise TypeError("a predicate has no truth value by itself: combine with &, | and ~, not with and, or, not")


@dataclass(frozen=True)
class And(Predicate):
    """TRUE where all children are."""

    children: tuple[Predicate, ...]

    def __str__(self) -> str:
        return "(" + " AND ".join(map(str, self.children)) + ")"


@dataclass(frozen=True)
class Or(Predicate):
    """TRUE where any child is."""

    children: tuple[Predicate, ...]

    def __str__(self) -> str:
        return "(" + " OR ".join(map(str, self.children)) + ")"


@dataclass(frozen=True)
class Not(Predicate):
    """TRUE where the child is FALSE."""

    child: Predicate

    def __str__(self) -> str:
        return f"(NOT {self.child})"


@dataclass(frozen=True)
class Is(Predicate):
    """``child IS TRUE``, ``IS FALSE`` or ``IS UNKNOWN``: whether the child has that truth value; never NULL."""

    child: Predicate
    value: bool | None

    def __str__(self) -> str:
        return f"(({self.child}) IS {'NULL' if self.value is None else str(self.value).upper()})"


@dataclass(frozen=True)
class Truth(Predicate):
    """A constant."""

    value: bool | None

    def __str__(self) -> str:
        return "CAST(NULL AS BOOLEAN)" if self.value is None else str(self.value).upper()


@dataclass(frozen=True)
class Opaque(Predicate):
    """An expression kept as text: only Spark evaluates it, and pruning knows nothing of it but its columns' names."""

    sql: str
    columns: tuple[Column, ...] = ()

    def __str__(self) -> str:
        return f"({self.sql})"


@dataclass(frozen=True)
class Literal:
    """A value with the SQL type it was written in.

    `type` is one of int, decimal, double, float, string, binary, boolean, date, timestamp, timestamp_ntz, null.
    `value` is the Python value; for a date or timestamp it may be the text of a Spark literal, which binding
    parses in the session's time zone.
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
            case _, value:
                return str(value).upper()


@dataclass(frozen=True)
class Column:
    """A column name, or the path of a nested field: ``Column(("address", "zip"))``."""

    path: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(quoted_name(part) for part in self.path)

    @property
    def is_true(self) -> Predicate:
        """A boolean column as a predicate of its own."""
        return Comparison("=", self, Literal(True, "boolean"))


@dataclass(frozen=True)
class Call:
    """A function of one operand that is monotone in it: ``to_date``, ``year``, ``trunc``, ``date_trunc``.

    `parameter` is the unit to truncate to, in upper case.
    """

    function: str
    operand: Operand
    parameter: str | None = None

    def __str__(self) -> str:
        match self.function:
            case "date_trunc":
                return f"date_trunc('{self.parameter}', {self.operand})"
            case "trunc":
                return f"trunc({self.operand}, '{self.parameter}')"
            case function:
                return f"{function}({self.operand})"


Operand: TypeAlias = Column | Call


@dataclass(frozen=True)
class Comparison(Predicate):
    """``operand op literal``, with op one of ``= <=> < <= > >=``; ``!=`` is NOT of ``=``, which NULL keeps exact."""

    op: str
    operand: Operand
    literal: Literal

    def __str__(self) -> str:
        return f"{self.operand} {self.op} {self.literal}"


@dataclass(frozen=True)
class In(Predicate):
    """``operand IN (literals)``."""

    operand: Operand
    literals: tuple[Literal, ...]

    def __str__(self) -> str:
        return f"{self.operand} IN ({', '.join(map(str, self.literals))})" if self.literals else "FALSE"


@dataclass(frozen=True)
class IsNull(Predicate):
    """``operand IS NULL``."""

    operand: Operand

    def __str__(self) -> str:
        return f"{self.operand} IS NULL"


@dataclass(frozen=True)
class Like(Predicate):
    """``column LIKE pattern ESCAPE escape``."""

    column: Column
    pattern: str
    escape: str

    def __str__(self) -> str:
        escape = "" if self.escape == "\\" else f" ESCAPE {_quoted(self.escape)}"
        return f"{self.column} LIKE {_quoted(self.pattern)}{escape}"


def quoted_name(name: str) -> str:
    """A name in back-quotes."""
    return "`" + name.replace("`", "``") + "`"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
