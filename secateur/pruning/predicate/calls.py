"""Map Spark SQL function names to nodes; shared by all front ends.

Synonyms get one name, and functions that equal other syntax get its node: ``if`` is CASE, ``date(x)`` a cast,
``startswith`` LIKE. The rest become a :class:`Call`, which binding may know or not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from secateur.errors import InvalidPredicate
from secateur.pruning.functions.json_schema import field_in
from secateur.pruning.predicate.constructors import as_expression, as_predicate, compare
from secateur.pruning.predicate.interval_literals import negative, total
from secateur.pruning.predicate.nodes import (
    And,
    Call,
    Case,
    Cast,
    Comparison,
    Duration,
    Expression,
    ILike,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Predicate,
    RLike,
)
from secateur.pruning.predicate.patterns.regular_expressions import token_pattern

NULL = Literal(None, "null")

_SYNONYMS = {
    "add": "+",
    "ceiling": "ceil",
    "char_length": "length",
    "character_length": "length",
    "date_diff": "datediff",
    "dateadd": "date_add",
    "datepart": "date_part",
    "dayofmonth": "day",
    "divide": "/",
    "ifnull": "coalesce",
    "char": "chr",
    "lcase": "lower",
    "len": "length",
    "mod": "%",
    "multiply": "*",
    "nvl": "coalesce",
    "position": "locate",
    "power": "pow",
    "subtract": "-",
    "substr": "substring",
    "to_unix_timestamp": "unix_timestamp",
    "sign": "signum",
    "ucase": "upper",
}
_CASTS = {  # functions that cast to the type of their name
    "bigint": "BIGINT",
    "binary": "BINARY",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "decimal": "DECIMAL(10, 0)",
    "double": "DOUBLE",
    "float": "FLOAT",
    "int": "INT",
    "smallint": "SMALLINT",
    "string": "STRING",
    "timestamp": "TIMESTAMP",
    "tinyint": "TINYINT",
    "to_date": "DATE",
    "to_timestamp": "TIMESTAMP",
}
_TRY_CASTS = {"try_to_date": "DATE", "try_to_timestamp": "TIMESTAMP"}
CONTAINMENTS = ("array_contains", "arrays_overlap", "map_contains_key")
_COMPARISONS = {"=": "=", "==": "=", "<=>": "<=>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_PARTS = {  # fields of EXTRACT and date_part, and their functions
    **dict.fromkeys(("YEAR", "YEARS", "Y", "YR", "YRS"), "year"),
    **dict.fromkeys(("QUARTER", "QTR"), "quarter"),
    **dict.fromkeys(("MONTH", "MON", "MONS", "MONTHS"), "month"),
    **dict.fromkeys(("DAY", "D", "DAYS"), "day"),
    **dict.fromkeys(("HOUR", "H", "HOURS", "HR", "HRS"), "hour"),
    **dict.fromkeys(("MINUTE", "MIN", "M", "MINS", "MINUTES"), "minute"),
}


def build(name: str, arguments: Sequence[Expression | Predicate]) -> Expression | Predicate:
    """Return the node of a function, whose name may have any case, on these arguments."""
    values = tuple(as_expression(a) if isinstance(a, Predicate) else a for a in arguments)
    function = _SYNONYMS.get(name.lower(), name.lower())
    match function, values:
        case (("+" | "-"), (Duration() as first, Duration() as second)):
            return total(first, second if function == "+" else negative(second)) or Call(function, values)
        case "negative", (Duration() as duration,):
            return negative(duration)
        case _, (operand,) if function in _CASTS:
            return Cast(operand, _CASTS[function])
        case _, (operand,) if function in _TRY_CASTS:
            return Cast(operand, _TRY_CASTS[function], safe=True)
        case (("if" | "iff"), (condition, value, otherwise)):
            return Case(((as_predicate(condition), value),), otherwise)
        case "nvl2", (operand, value, otherwise):
            return Case(((Not(IsNull(operand)), value),), otherwise)
        case "nullif", (operand, other):
            return Case(((compare(operand, "=", other), NULL),), operand)
        case "nullifzero", (operand,):
            return Case(((compare(operand, "=", Literal(0, "int")), NULL),), operand)
        case "zeroifnull", (operand,):
            return Call("coalesce", (operand, Literal(0, "int")))
        case (("extract" | "date_part"), (Literal(str(part), "string"), operand)) if part.upper() in _PARTS:
            return Call(_PARTS[part.upper()], (operand,))
        case "btrim", (operand,):
            return Call("trim", (operand,))
        case "split", (text, pattern, Literal(int(limit))) if limit <= 0:  # as many parts as there are
            return Call("split", (text, pattern))
        case "from_json_field", (text, Literal(str(schema)), Literal(str()), *_):
            return _field_of_json(text, schema, values[2:])
        case "get", (Call("split", split), index):
            return Call("get_split_item", (*split, index))
        case "locate", (part, text):
            return Call("instr", (text, part))
        case "positive", (operand,):
            return operand
        case "left", (operand, length):
            return Call("substring", (operand, Literal(1, "int"), length))
        case _:
            test = _condition(function, values)
            return Call(function, values) if test is None else test


def _field_of_json(text: Expression, schema: str, names: Sequence[Expression]) -> Call:
    """Return a field of JSON text, with no more of the schema than its value depends on, if that is known."""
    part = field_in(schema, tuple(str(name.value) if isinstance(name, Literal) else "" for name in names))
    if part is None:
        return Call("from_json_field", (text, Literal(schema, "string"), *names))
    return Call("from_json_field", (text, *(Literal(literal, "string") for literal in (part[0], *part[1]))))


def _condition(function: str, values: tuple[Expression, ...]) -> Predicate | None:
    """Return the node of a function that is a condition."""
    match function, values:
        case _, (left, right) if function in _COMPARISONS:
            return compare(left, _COMPARISONS[function], right)
        case (("!=" | "<>"), (left, right)):
            return Not(compare(left, "=", right))
        case "equal_null", (left, right):
            return compare(left, "<=>", right)
        case "between", (operand, low, high):
            return And((compare(operand, ">=", low), compare(operand, "<=", high)))
        case "isnull", (operand,):
            return IsNull(operand)
        case "isnotnull", (operand,):
            return Not(IsNull(operand))
        case "isnan", (operand,):
            return Comparison("<=>", operand, Literal(math.nan, "double"))
        case (("startswith" | "endswith" | "contains"), (operand, Literal(str(part), "string"))):
            before = "" if function == "startswith" else "%"
            after = "" if function == "endswith" else "%"
            return Like(operand, before + escaped(part) + after, "\\")
        case "like", (operand, Literal(str(pattern), "string")):
            return Like(operand, pattern, "\\")
        case "ilike", (operand, Literal(str(pattern), "string")):
            return ILike(operand, pattern, "\\")
        case "has_token", (operand, Literal(str(word), "string")):
            return has_token(operand, word)
        case "array_contains", (Call("array", elements), operand) if _is_list(elements) and not _is_list([operand]):
            return In(operand, tuple(element for element in elements if isinstance(element, Literal)))
        case _, (_, _) if function in CONTAINMENTS:
            return as_predicate(Call(function, values))
        case (("rlike" | "regexp" | "regexp_like"), (operand, Literal(str(pattern), "string"))):
            return RLike(operand, pattern)
        case _:
            return None


def _is_list(elements: Sequence[Expression]) -> bool:
    """Return whether elements are literals that IN compares as ``array_contains`` does: of one type, without floats."""
    types = {element.type if isinstance(element, Literal) else "" for element in elements}
    return len(types) == 1 and types <= {"int", "bigint", "string", "date"}


def has_token(operand: Expression, word: str) -> Predicate:
    """Test for a word as a whole token; Spark has no function for it. Raises InvalidPredicate."""
    try:
        return RLike(operand, token_pattern(word))
    except ValueError as error:
        raise InvalidPredicate(f"has_token: {error}") from None


def escaped(text: str) -> str:
    r"""Escape text for LIKE with the escape character ``\``."""
    return "".join("\\" + c if c in "%_\\" else c for c in text)
