"""Read text as Spark SQL with `sqlglot`: the dialect, what a predicate may be, and errors that say where.

Everything here is about sqlglot's syntax trees; :mod:`.parse` makes nodes of them.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, ClassVar

import sqlglot
from sqlglot import Dialect as AnyDialect
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError

from secateur.errors import InvalidPredicate
from secateur.pruning.predicate.sql.syntax import with_variant_paths

_OPENING = frozenset(  # tokens followed by an operand, not by an operator
    {
        *(TokenType.L_PAREN, TokenType.COMMA, TokenType.AND, TokenType.OR, TokenType.BETWEEN),
        *(TokenType.EQ, TokenType.NEQ, TokenType.NULLSAFE_EQ),
        *(TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE),
        *(TokenType.CASE, TokenType.WHEN, TokenType.THEN, TokenType.ELSE),
    }
)
# Spark's aggregate functions, but for those that the parser reads as something else: any, some and every.
_AGGREGATES = frozenset(
    {
        *("any_value", "approx_count_distinct", "approx_percentile", "array_agg", "avg", "bit_and", "bit_or"),
        *("bit_xor", "bool_and", "bool_or", "collect_list", "collect_set", "corr", "count", "count_if"),
        *("covar_pop", "covar_samp", "first", "first_value", "kurtosis", "last", "last_value", "listagg", "max"),
        *("max_by", "mean", "median", "min", "min_by", "mode", "percentile", "percentile_approx", "regr_count"),
        *("skewness", "std", "stddev", "stddev_pop", "stddev_samp", "string_agg", "sum", "try_avg", "try_sum"),
        *("var_pop", "var_samp", "variance"),
    }
)
_MISSING_OPERAND = re.compile("Required keyword: '(this|expression|low|high)' missing for ")
_INSTEAD = {"WHERE": "leave out WHERE: a predicate is what follows it", "&&": "write AND in place of &&"}


class Dialect(Spark):
    """Spark SQL whose functions keep their names: :mod:`..calls` defines what they mean, not the parser."""

    class Parser(Spark.Parser):  # type: ignore[valid-type, misc]
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        COLON_IS_VARIANT_EXTRACT: ClassVar[bool] = True

    def tokenize(self, sql: str, dialect: str | AnyDialect | type[AnyDialect] | None = None) -> list[Token]:
        """Tokenize text; ``between`` before a parenthesis is a name if no operand precedes it."""
        tokens: list[Token] = super().tokenize(sql, dialect)
        if _may_have_doubled_quotes(sql):
            tokens = _with_doubled_quotes(sql, tokens)
        before = TokenType.L_PAREN  # the last token other than NOT
        for token, after in pairwise(tokens):
            if token.token_type is TokenType.BETWEEN and after.token_type is TokenType.L_PAREN and before in _OPENING:
                token.token_type = TokenType.VAR
            if token.token_type is not TokenType.NOT:
                before = token.token_type
        return tokens


def has_doubled_quotes(sql: str) -> bool:
    """Return whether two quotes within a text stand for one. Raises TokenError."""
    return _may_have_doubled_quotes(sql) and any(
        token.token_type is TokenType.STRING and 2 * sql[token.start] in sql[token.start + 1 : token.end]
        for token in Dialect().tokenize(sql)
    )


def _may_have_doubled_quotes(sql: str) -> bool:
    """Return whether two quotes touch: also those of an empty text."""
    return "''" in sql or '""' in sql


def _with_doubled_quotes(sql: str, tokens: list[Token]) -> list[Token]:
    """Join texts that touch, which sqlglot separates: ``'it''s'`` has a quote, as in Spark 4 and the SQL standard."""
    joined: list[Token] = []
    for token in tokens:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.token_type is token.token_type is TokenType.STRING
            and token.start == last.end + 1
            and sql[token.start] == sql[last.end]
        ):
            text = f"{last.text}{sql[last.end]}{token.text}"
            joined[-1] = Token(TokenType.STRING, text, last.line, last.col, last.start, token.end, last.comments)
        else:
            joined.append(token)
    return joined


def tree_of(text: str) -> exp.Expression:
    """Parse text to a syntax tree. Raises ParseError, and InvalidPredicate if it is not one condition on a row."""
    tree = sqlglot.parse_one(text, dialect=Dialect)
    if not isinstance(tree, exp.Condition):
        raise InvalidPredicate(f"{text!r} is not one boolean expression: it reads as {type(tree).__name__.upper()}")
    _require_condition_on_rows(tree)
    return with_variant_paths(tree)  # type: ignore[return-value]


def _require_condition_on_rows(tree: exp.Condition) -> None:
    """Raise InvalidPredicate for anything that Spark's WHERE refuses, and for parameters, which have no value here."""
    for node in tree.walk(prune=lambda node: isinstance(node, exp.Query)):  # a subquery has rows of its own
        match node:
            case exp.Placeholder() | exp.Parameter():
                what = "a parameter without a value: give it one by params="
            case exp.Window():
                what = "a window function: a predicate, as after WHERE, is about a single row"
            case exp.Anonymous(this=str(name)) if name.lower() in _AGGREGATES:
                what = "an aggregate: a predicate, as after WHERE, is about a single row"
            case exp.In() if not any(node.args.get(name) for name in node.args.keys() - {"this"}):
                what = "a list without values, which Spark's parser refuses; `col.isin([])` is FALSE on every row"
            case _:
                continue
        raise InvalidPredicate(f"{node.sql(Dialect)} is {what}")


def explain_error(text: str, error: ParseError) -> str:
    """Say what is wrong in a text: with line, column, and a mark below the place."""
    detail = error.errors[0] if error.errors else {}
    line, column = detail.get("line"), detail.get("col")
    if line is None or column is None:
        return f"cannot parse the predicate {text!r}: {error}"
    marker = " " * max(0, column - len(str(detail.get("highlight") or " "))) + "^"
    source = text.splitlines()[line - 1] if text.splitlines() else text
    missing = _MISSING_OPERAND.match(detail["description"])
    at_fault = str(detail.get("highlight")).upper()
    what = "an operand is missing" if missing else _INSTEAD.get(at_fault, detail["description"])
    return f"cannot parse the predicate at line {line}, column {column}: {what}\n  {source}\n  {marker}"
