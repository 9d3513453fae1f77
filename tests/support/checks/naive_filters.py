"""Exact, slow filters of one row: the answer to any question about one value, as the reference for real filters."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from secateur.pruning.predicate.patterns.substrings import CASE_TRICKY, fold, tokens_within
from secateur.pruning.questions import Question, Ranges, Texts, Values
from secateur.values.conversion import key_of, keys_of

TOKEN_BYTES = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_") | frozenset(range(128, 256))


def may_be(question: Question, value: Any) -> bool:
    """Whether a question is answered "may be" of a row with this value: a list for an array, of pairs for a map."""
    if value is None:
        return False
    match question:
        case Values(column, type_, points):
            keys = {
                key_of(value_inside, type_) for value_inside in _values(column.type, value) if value_inside is not None
            }
            return not keys.isdisjoint(points.tolist())
        case Ranges(column, ranges):
            return bool(ranges.contains(keys_of(pa.array([value], column.type)))[0])
        case Texts():
            return text_may_be(question, value.encode() if isinstance(value, str) else value)


def _values(type_: pa.DataType, value: Any) -> list[Any]:
    if pa.types.is_map(type_):
        return [key for key, _ in value]
    return value if pa.types.is_list(type_) else [value]


def text_may_be(question: Texts, text: bytes) -> bool:
    """The same of one text, which may be no UTF-8."""
    if question.folded:
        if not CASE_TRICKY.isdisjoint(text.decode("utf-8", "replace")):
            return True
        text = fold(text)
    whole = tokens(text)
    return set(question.tokens) <= whole and any(
        all(substring.is_in(text) and set(tokens_within(substring)) <= whole for substring in substrings)
        for substrings in question.alternatives
    )


def tokens(text: bytes) -> set[bytes]:
    """The tokens of a text."""
    return set(naive_tokens(text))


def naive_tokens(text: bytes) -> list[bytes]:
    """The tokens of a text in their order, byte by byte."""
    tokens, token = [], b""
    for byte in [*text, 0]:
        if byte in TOKEN_BYTES:
            token += bytes([byte])
        elif token:
            tokens.append(token)
            token = b""
    return tokens
