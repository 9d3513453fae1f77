"""Lower case as Spark makes it, over the characters on which all sources agree.

Spark asks ICU or Java, in the default locale of the machine that runs the query, except for text of ASCII alone, where
no locale counts. So beyond ASCII the result is known if it is the same in all locales. Two differ from the rest:
Turkish (like Azerbaijani), which has a dotless I, and Lithuanian, which keeps the dot of an i under another accent.

Sources: Spark's ``Lower``, ``UTF8String.toLowerCase``, ``CollationAwareUTF8String``; Unicode's ``SpecialCasing.txt``.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

LOCALES = ("", "tr", "lt")  # the first stands for all others

# A sigma, whose lower case depends on its neighbours; letters that got a lower case in one of the newer versions of
# Unicode; an I or a J with an accent of its own, which two locales treat apart.
_DOUBTFUL = (
    r"[\x{3A3}\x{1C80}-\x{1C8F}\x{2C2F}\x{A7C0}-\x{A7FF}\x{AB6C}-\x{AB6D}\x{10400}-\x{1EFFF}]|[IJ\x{12E}\x{130}]\p{M}"
)
_BEFORE = {  # what a locale makes of single letters before the common rule
    "": {"\u0130": "i\u0307"},
    "tr": {"I": "\u0131", "\u0130": "i"},
    "lt": {"\u0130": "i\u0307", "\u00cc": "i\u0307\u0300", "\u00cd": "i\u0307\u0301", "\u0128": "i\u0307\u0303"},
}


def has_doubtful(texts: pa.Array) -> np.ndarray:
    """Return which texts have a lower case that is not known here, in whatever locale: bool of shape (n,)."""
    doubtful = pc.match_substring_regex(texts, _DOUBTFUL)
    return np.asarray(pc.fill_null(doubtful, False).to_numpy(zero_copy_only=False), bool)


def is_doubtful(text: str) -> bool:
    """Whether the lower case of a text is not known here; a text with half a character has none."""
    try:
        return bool(has_doubtful(pa.array([text], pa.string()))[0])
    except UnicodeEncodeError:
        return True


def lowered(text: str, locale: str) -> str:
    """Return the lower case of a text that is not doubtful."""
    return str(lowered_texts(pa.array([text], pa.string()), locale)[0])


def lowered_texts(texts: pa.Array, locale: str) -> pa.Array:
    """Return texts in lower case by the rules of a locale."""
    for letter, instead in _BEFORE[locale].items():
        texts = pc.replace_substring(texts, letter, instead)
    return pc.utf8_lower(texts)
