"""Constant expressions without a rule here: whether Spark can evaluate them once for all rows.

It can for functions that Spark's documentation calls deterministic and that read only their arguments and the session's
settings; so not for clocks, random numbers, names of users and files, and functions registered by users.
"""

from __future__ import annotations

import pyarrow as pa

from secateur.pruning.functions.types import INSTANT, LOCAL, NAMED, is_decimal
from secateur.pruning.predicate import node_walks
from secateur.pruning.predicate.binding.temporal import MOVING_WORDS
from secateur.pruning.predicate.bound import Constant
from secateur.pruning.predicate.nodes import Call, Case, Cast, Column, Duration, Expression, Literal, Opaque, Predicate
from secateur.pruning.predicate.trees import preorder
from secateur.values.conversion import keys_of

LONGEST = 4096  # longest text, in characters, sent to Spark

_OPERATORS = ("+", "-", "*", "/", "%", "negative", "positive", "div", "~", "&", "|", "^")
_NAMES = """
    abs acos acosh add_months ascii asin asinh atan atan2 atanh base64 bin bit_count bit_length bround btrim cbrt ceil
    chr coalesce concat concat_ws conv cos cosh cot crc32 csc date_add date_from_unix_date date_part date_sub
    date_trunc datediff day dayname dayofweek dayofyear decode degrees elt encode endswith contains exp expm1 extract
    factorial find_in_set floor format_number format_string from_unixtime from_utc_timestamp getbit greatest hash hex
    hour hypot initcap instr last_day least left length levenshtein like ln locate log log10 log1p log2 lower lpad ltrim
    make_date make_timestamp make_timestamp_ltz make_timestamp_ntz mask md5 minute month monthname months_between
    nanvl next_day octet_length overlay parse_url pmod pow printf quarter radians regexp_count regexp_extract
    regexp_instr regexp_like regexp_replace regexp_substr repeat replace reverse right rint rlike round rpad rtrim sec
    second sha sha1 sha2 shiftleft shiftright shiftrightunsigned signum sin sinh soundex space split_part sqrt
    startswith substring substring_index tan tanh timestamp_micros timestamp_millis timestamp_seconds to_binary
    to_char to_date to_number to_timestamp to_timestamp_ltz to_timestamp_ntz to_utc_timestamp to_varchar translate trim
    trunc try_add try_divide try_mod try_multiply try_subtract try_to_binary try_to_date try_to_number
    try_to_timestamp unbase64 unhex unix_date unix_micros unix_millis unix_seconds unix_timestamp upper url_decode
    url_encode weekday weekofyear width_bucket xxhash64 year
"""
_PURE = frozenset(_NAMES.split())
_WITHOUT_ARGUMENTS = ("e", "pi")


def is_foldable(node: Expression | Predicate) -> bool:
    """Return whether an expression has the same value on every row, at any time and on any machine."""
    return all(map(_is_pure, preorder(node, node_walks.children)))


def _is_pure(node: Expression | Predicate) -> bool:
    """Return whether a node itself adds nothing that varies by row or by time."""
    match node:
        case Column() | Opaque():
            return False
        case Literal(str(text), "date" | "timestamp" | "timestamp_ntz"):
            return not any(word in text.lower() for word in MOVING_WORDS)
        case Literal() | Duration():
            return True
        case Call(function, ()):
            return function in _WITHOUT_ARGUMENTS
        case Call(function):
            return function in _PURE or function in _OPERATORS
        case _:
            return True


def is_computed(expression: Expression) -> bool:
    """Return whether an expression is more than a column or a literal."""
    return isinstance(expression, Call | Cast | Case)


def constant_of_scalar(value: pa.Scalar) -> Constant | None:
    """Convert a value from Spark to a typed constant; None for types that are not compared here."""
    type_ = value.type
    if pa.types.is_timestamp(type_):
        type_ = LOCAL if type_.tz is None else INSTANT
    elif pa.types.is_large_string(type_):
        type_ = pa.string()
    elif pa.types.is_large_binary(type_):
        type_ = pa.binary()
    if pa.types.is_null(type_):
        return Constant(type_, None)
    if type_ not in NAMED.values() and not is_decimal(type_):
        return None
    if not value.is_valid:
        return Constant(type_, None)
    return Constant(type_, keys_of(pa.repeat(value, 1).cast(type_)).at(0))
