"""Functions of text computed on rows, exactly as Spark computes them; where that is not known, the row is unknown.

Spark decodes a text for most functions, so they are unknown on bytes that are not UTF-8. Beyond ASCII the case of
letters depends on the locale of the machine. Sources: Spark's ``UTF8String``, ``CollationAwareUTF8String``,
``StringSplit``, ``Substring``, ``SplitPart``; ``java.lang.String.split``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.pruning.interval import OnRows, RowValues
from secateur.pruning.predicate.patterns.letter_case import (
    has_doubtful,
    has_doubtful_upper,
    lowered_texts,
    uppered_texts,
)
from secateur.pruning.rows.arrow_texts import is_ascii, is_null, is_utf8

Change: TypeAlias = Callable[[pa.Array], pa.Array]
Values: TypeAlias = Sequence[pa.Array | pa.Scalar]
_SPACE, _CASE_BIT = ord(" "), 0x20


def bytewise(change: Change) -> OnRows:
    """Make a function of its first argument, a text, that looks at bytes, whether they are UTF-8 or not."""

    def compute(arguments: Values, locale: str) -> RowValues:
        texts = arguments[0]
        return RowValues(change(texts), np.zeros(len(texts), bool))

    return OnRows(compute)


def decoded(change: Change) -> OnRows:
    """Make a function of its first argument, a text, that looks at characters."""

    def compute(arguments: Values, locale: str) -> RowValues:
        texts = arguments[0]
        known = is_utf8(texts)
        return RowValues(change(only(known, texts)), ~known)

    return OnRows(compute)


def only(known: np.ndarray, texts: pa.Array) -> pa.Array:
    """Return the known texts, and NULL for the others."""
    return texts if known.all() else pc.if_else(pa.array(known), texts, pa.scalar(None, texts.type))


# ---- case ------------------------------------------------------------------------------------------------------------


def _case(doubtful: Callable[[pa.Array], np.ndarray], change: Callable[[pa.Array, str], pa.Array]) -> OnRows:
    def compute(arguments: Values, locale: str) -> RowValues:
        texts = arguments[0]
        plain = is_ascii(texts)
        if plain.all():  # no locale counts
            return RowValues(change(texts, ""), ~plain)
        known = is_utf8(texts)
        known[known] = plain[known] | ~doubtful(texts.filter(pa.array(known)))
        changed = change(only(known, texts), locale)
        if locale:
            changed = pc.if_else(pa.array(plain), change(only(plain, texts), ""), changed)
        return RowValues(changed, ~known)

    return OnRows(compute, by_locale=True)


LOWER = _case(has_doubtful, lowered_texts)
UPPER = _case(has_doubtful_upper, uppered_texts)


def _titled(arguments: Values, locale: str) -> RowValues:
    """Put the first letter of every word in upper case and the others in lower case; only spaces end a word."""
    texts = arguments[0]
    plain = is_ascii(texts)
    lowered = pc.ascii_lower(only(plain, texts)).cast(pa.large_string())
    offsets = np.frombuffer(lowered.buffers()[1], np.int64)[lowered.offset : lowered.offset + len(lowered) + 1]
    data = np.frombuffer(lowered.buffers()[2] or b"", np.uint8)[: offsets[-1]].copy()
    begins = np.zeros(len(data) + 1, bool)
    begins[1:] = data == _SPACE
    begins[offsets] = True
    letters = begins[:-1] & (data >= ord("a")) & (data <= ord("z"))
    data[letters] -= _CASE_BIT
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    titled = pa.Array.from_buffers(pa.string(), len(texts), buffers)
    return RowValues(pc.if_else(pc.is_valid(lowered), titled, pa.scalar(None, pa.string())), ~plain)


INITCAP = OnRows(_titled)


def _lengths(values: pa.Array) -> RowValues:
    """Count characters, or the bytes of a binary."""
    if pa.types.is_binary(values.type):
        return RowValues(pc.binary_length(values), np.zeros(len(values), bool))
    known = is_utf8(values)
    return RowValues(pc.utf8_length(only(known, values)), ~known)


# ---- parts -----------------------------------------------------------------------------------------------------------

TRIMS = {
    "trim": bytewise(lambda texts: pc.ascii_trim(texts, characters=" ")),
    "ltrim": bytewise(lambda texts: pc.ascii_ltrim(texts, characters=" ")),
    "rtrim": bytewise(lambda texts: pc.ascii_rtrim(texts, characters=" ")),
}


def slicing(start: int, length: int) -> OnRows:
    """Make ``substring(text, start, length)``: characters count from 1, or from the end if negative; 0 is 1."""
    first = start - 1 if start > 0 else start
    stop = first + max(length, 0)
    end = None if start < 0 <= stop else stop  # the end of the text, however many characters it has

    def change(texts: pa.Array) -> pa.Array:
        if length <= 0:
            return pc.utf8_slice_codeunits(texts, 0, 0)
        return pc.utf8_slice_codeunits(texts, first, end)

    return decoded(change)


def joining(arguments: Values, locale: str) -> RowValues:
    """Concatenate texts; NULL if one of them is."""
    joined = pc.binary_join_element_wise(*arguments, "", null_handling="emit_null")
    return RowValues(joined, np.zeros(len(joined), bool))


def replacing(old: str, new: str) -> OnRows:
    """Make ``replace(text, old, new)``, from left to right; an empty `old` is found nowhere."""
    return bytewise(lambda texts: pc.replace_substring(texts, old, new) if old else texts)


def item(separator: str, at: int, most: int | None, beyond: str) -> OnRows:
    """Make the part of a text at an index, below 0 counted from the end, between separators.

    `most`: the greatest number of parts. `beyond`: the result if the text has no such part: "" an empty text, "null"
    NULL, "error" an error.
    """

    def compute(arguments: Values, locale: str) -> RowValues:
        texts = arguments[0]
        known = is_utf8(texts)
        parts = pc.split_pattern(only(known, texts), separator, max_splits=None if most is None else most - 1)
        offsets = parts.offsets.to_numpy().astype(np.int64)
        place = offsets[:-1] + at if at >= 0 else offsets[1:] + at
        there = (place >= offsets[:-1]) & (place < offsets[1:]) & ~is_null(texts)
        items = parts.values.take(pa.array(np.where(there, place, 0), mask=~there))
        missing = ~there & ~is_null(texts)
        if not beyond:
            items = pc.if_else(pa.array(missing), pa.scalar("", pa.string()), items)
        return RowValues(items, ~known | missing if beyond == "error" else ~known)

    return OnRows(compute)


LENGTH = OnRows(lambda arguments, locale: _lengths(arguments[0]))
DIGITS = bytewise(lambda numbers: numbers.cast(pa.string()))
