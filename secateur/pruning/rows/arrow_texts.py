"""Texts of Arrow arrays: which are NULL, ASCII, or UTF-8 at all, and where a pattern is found."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import truths

_UTF8 = (  # the valid sequences of bytes
    r"\A(?:[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}"
    r"|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}"
    r"|\xf4[\x80-\x8f][\x80-\xbf]{2})*\z"
)


def is_utf8(texts: pa.Array) -> np.ndarray:
    """Return which texts are UTF-8, or NULL: bool of shape (n,)."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return matches(_UTF8, texts.cast(pa.binary())) | is_null(texts)
    return np.ones(len(texts), bool)


def is_ascii(texts: pa.Array) -> np.ndarray:
    """Return which texts are ASCII, or NULL: bool of shape (n,)."""
    return truths(pc.string_is_ascii(texts)) | is_null(texts)


def matches(regex: str, texts: pa.Array) -> np.ndarray:
    """Return in which texts a pattern of RE2 is found: bool of shape (n,)."""
    return truths(pc.match_substring_regex(texts, regex))


def is_null(values: pa.Array) -> np.ndarray:
    """Return which values are NULL: bool of shape (n,)."""
    return truths(pc.is_null(values))
