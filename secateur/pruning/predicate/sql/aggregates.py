"""Parse a list of aggregates, ``count(*), max(ts) AS last``, to calls, using `sqlglot`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from secateur.errors import InvalidAggregate
from secateur.pruning.aggregates.answers import COUNT, DISTINCT, FUNCTIONS, AggregateCall
from secateur.pruning.predicate.nodes import Column
from secateur.pruning.predicate.sql.dialect import Dialect
from secateur.pruning.predicate.sql.leaves import column_of
from secateur.pruning.predicate.sql.syntax import has_only

_OPENING, _CLOSING = (TokenType.L_PAREN, TokenType.L_BRACKET), (TokenType.R_PAREN, TokenType.R_BRACKET)


def parse_aggregates(text: str) -> list[AggregateCall]:
    """Return the aggregates of a list, each named as it is written, or by its alias. Raises InvalidAggregate."""
    try:
        return [_call(item, sqlglot.parse_one(item, dialect=Dialect)) for item in _items(text)]  # type: ignore[arg-type]
    except (SqlglotError, RecursionError) as error:
        reason = error.errors[0]["description"] if isinstance(error, ParseError) and error.errors else error
        raise InvalidAggregate(f"cannot parse the aggregates {text!r}: {reason}") from None


def parse_groups(texts: Iterable[str]) -> list[Column]:
    """Return the columns of GROUP BY. Raises InvalidAggregate."""
    return [_group(item) for text in texts for item in _items(text)]


def _group(text: str) -> Column:
    try:
        column = column_of(sqlglot.parse_one(text, dialect=Dialect))  # type: ignore[arg-type]
    except (SqlglotError, RecursionError):
        column = None
    if column is None:
        raise InvalidAggregate(
            f"cannot group by {text!r}: write a column's name, in back-quotes if it has spaces or dots. Rows are "
            "grouped by columns only, not by expressions"
        )
    return column


def _items(text: str) -> Iterator[str]:
    """Split a list at the commas outside parentheses."""
    depth, begin, end = 0, 0, 0
    for token in sqlglot.tokenize(text, dialect=Dialect):
        if token.token_type is TokenType.COMMA and depth == 0:
            yield text[begin:end].strip()
            begin = token.end + 1
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        end = token.end + 1
    yield text[begin:end].strip()


def _call(text: str, tree: exp.Expression) -> AggregateCall:
    name = text
    if isinstance(tree, exp.Alias) and has_only(tree, "this", "alias"):
        tree, name = tree.this, tree.alias
    match tree:
        case exp.Anonymous(expressions=[argument]) if str(tree.this).lower() in FUNCTIONS:
            function = str(tree.this).lower()
            if function == COUNT and isinstance(argument, exp.Distinct) and len(argument.expressions) == 1:
                function, argument = DISTINCT, argument.expressions[0]
            if function == COUNT and _is_never_null(argument):
                return AggregateCall(COUNT, None, name)
            if (column := column_of(argument)) is not None:
                return AggregateCall(function, column, name)
    raise InvalidAggregate(
        f"the aggregate {text!r} is not answered here, only count(*), count(column), count(DISTINCT column), "
        "min(column), max(column), sum(column) and avg(column)"
    )


def _is_never_null(argument: exp.Expression) -> bool:
    """Return whether an argument is ``*`` or a literal: counting it counts rows."""
    return isinstance(argument, exp.Star | exp.Literal)
