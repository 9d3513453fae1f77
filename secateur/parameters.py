"""Put values in the place of the parameters ``:name`` and ``?`` of SQL text, as ``spark.sql(text, args)`` does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import Token, TokenType
from sqlglot.errors import SqlglotError

from secateur.errors import InvalidPredicate
from secateur.pruning.predicate.expressions import operand
from secateur.pruning.predicate.nodes import Literal
from secateur.pruning.predicate.sql.dialect import Dialect

Parameters = Mapping[str, object] | Sequence[object]

# After these a colon goes into a value, as in payload:user, and begins no parameter.
_ENDS_OF_OPERANDS = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.STRING}


def filled(text: str, parameters: Parameters) -> str:
    """Return the text of a predicate with the SQL of its values in place of its parameters.

    A mapping has the values of ``:name``, a sequence those of ``?`` from left to right. A list or tuple among them
    stands for its values, separated by commas. Raises InvalidPredicate if a parameter has no value, a ``?`` has none or
    too many, or a value is of no SQL type.
    """
    if isinstance(parameters, str | bytes) or not isinstance(parameters, Mapping | Sequence):
        raise InvalidPredicate(
            f"params={parameters!r}: give a mapping with the values of :name, or a list with the values of ?"
        )
    try:
        tokens = Dialect().tokenize(text)
    except SqlglotError as error:
        raise InvalidPredicate(f"cannot read the predicate {text!r}: {error}") from None
    parts, end, used = [], 0, 0
    for name, start, stop in _places(tokens):
        value = _value(name, used, parameters)
        parts += [
            text[end:start],
            *_space(text[start - 1 : start], value),
            value,
            *_space(value, text[stop : stop + 1]),
        ]
        used += name is None
        end = stop
    if not isinstance(parameters, Mapping) and used < len(parameters):
        raise InvalidPredicate(f"{len(parameters)} values for {used} parameters ? of {text!r}")
    return "".join([*parts, text[end:]])


def _space(before: str, after: str) -> tuple[str, ...]:
    """Return what keeps two texts apart that would be read as one: two minus signs begin a comment."""
    last, first = before[-1:], after[:1]
    is_word = (last.isalnum() or last == "_") and (first.isalnum() or first in "_'")
    return (" ",) if first and ((last == first == "-") or is_word) else ()


def _places(tokens: Sequence[Token]) -> Iterator[tuple[str | None, int, int]]:
    """Yield the parameters with their ranges of characters; None for ``?``."""
    for i, token in enumerate(tokens):
        if token.token_type is TokenType.PLACEHOLDER:
            yield None, token.start, token.end + 1
        elif token.token_type is TokenType.COLON and i + 1 < len(tokens):
            after = tokens[i + 1]
            is_inside = i > 0 and tokens[i - 1].token_type in _ENDS_OF_OPERANDS
            if not is_inside and after.start == token.end + 1:
                yield after.text, token.start, after.end + 1


def _value(name: str | None, used: int, parameters: Parameters) -> str:
    """Return the SQL of a parameter's value."""
    if isinstance(parameters, Mapping):
        if name is None or name not in parameters:
            placeholder = "?" if name is None else f":{name}"
            named = ", ".join(map(str, parameters)) or "none"
            raise InvalidPredicate(f"{placeholder} has no value: params has values for {named}")
        value = parameters[name]
    else:
        if name is not None:
            raise InvalidPredicate(f":{name} has no value: params is a list of values for ?, not a mapping")
        if used >= len(parameters):
            raise InvalidPredicate(f"params has {len(parameters)} values, and the predicate more parameters ?")
        value = parameters[used]
    return ", ".join(map(_literal, value)) if isinstance(value, list | tuple) else _literal(value)


def _literal(value: object) -> str:
    try:
        literal = operand(value)
    except TypeError as error:
        raise InvalidPredicate(f"a parameter has no SQL value: {error}") from None
    if not isinstance(literal, Literal):
        raise InvalidPredicate(f"{value!r} is an expression: a parameter stands for one value, or a list of them")
    return str(literal)
