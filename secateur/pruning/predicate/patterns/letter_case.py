"""Lower and upper case as in Spark, for the characters on which all sources agree.

Spark asks ICU or Java, in the default locale of the machine that runs the query, except for ASCII text, for which the
locale does not matter. So beyond ASCII the result is known if it is the same in all locales. Two differ from the rest:
Turkish (like Azerbaijani), which has a dotless I, and Lithuanian, which keeps the dot of an i under another accent. In
upper case, ICU also drops the accents of Greek in a Greek locale.

Sources: Spark's ``Lower``, ``Upper``, ``UTF8String.toLowerCase``, ``CollationAwareUTF8String``; Unicode's
``SpecialCasing.txt``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.pruning.rows.arrow_texts import matches

LOCALES = ("", "tr", "lt")  # the first stands for all others

# A sigma, whose lower case depends on its neighbours; letters that got a lower case in one of the newer versions of
# Unicode; an I or a J with an accent of its own, which two locales treat apart.
_DOUBTFUL = (
    r"[\x{3A3}\x{1C80}-\x{1C8F}\x{2C2F}\x{A7C0}-\x{A7FF}\x{AB6C}-\x{AB6D}\x{10400}-\x{1EFFF}]|[IJ\x{12E}\x{130}]\p{M}"
)
# Letters of Greek; letters whose upper case is several characters; letters that got an upper case in one of the newer
# versions of Unicode; a dot above, which Lithuanian drops.
_DOUBTFUL_UPPER = (
    r"[\x{DF}\x{149}\x{19B}\x{1F0}\x{264}\x{277}\x{27C}\x{282}\x{307}\x{345}\x{370}-\x{3FF}\x{587}\x{10D0}-\x{10FF}\x{1C80}-\x{1C8F}"
    r"\x{1D8E}\x{1E96}-\x{1E9E}\x{1F00}-\x{1FFF}\x{2126}\x{2C5F}\x{A7C0}-\x{A7FF}\x{AB30}-\x{ABBF}\x{FB00}-\x{FB17}"
    r"\x{10400}-\x{1EFFF}]"
)
_BEFORE = {  # replacements of a locale, made before the common rule
    "": {"\u0130": "i\u0307"},
    "tr": {"I": "\u0131", "\u0130": "i"},
    "lt": {"\u0130": "i\u0307", "\u00cc": "i\u0307\u0300", "\u00cd": "i\u0307\u0301", "\u0128": "i\u0307\u0303"},
}


def has_doubtful(texts: pa.Array) -> np.ndarray:
    """Return which texts have a lower case that is not known here, in whatever locale: bool of shape (n,)."""
    return matches(_DOUBTFUL, texts)


def is_doubtful(text: str) -> bool:
    """Whether the lower case of a text is not known here; a text with half a character has none."""
    try:
        return bool(has_doubtful(pa.array([text], pa.string()))[0])
    except UnicodeEncodeError:
        return True


def lowered(text: str, locale: str) -> str:
    """Return the lower case of a text that is not doubtful."""
    return str(lowered_texts(pa.array([text], pa.string()), locale)[0])


def has_doubtful_upper(texts: pa.Array) -> np.ndarray:
    """Return which texts have an upper case that is not known here, in whatever locale: bool of shape (n,)."""
    return matches(_DOUBTFUL_UPPER, texts)


def uppered_texts(texts: pa.Array, locale: str) -> pa.Array:
    """Return texts in upper case by the rules of a locale."""
    return pc.utf8_upper(pc.replace_substring(texts, "i", "\u0130") if locale == "tr" else texts)


def lowered_texts(texts: pa.Array, locale: str) -> pa.Array:
    """Return texts in lower case by the rules of a locale."""
    for letter, instead in _BEFORE[locale].items():
        texts = pc.replace_substring(texts, letter, instead)
    return pc.utf8_lower(texts)


def lowered_letters() -> Iterator[tuple[str, str]]:
    """Yield the letters whose lower case depends on the locale, with each lower case of theirs."""
    for locale in LOCALES:
        for letter in dict.fromkeys(letter for letters in _BEFORE.values() for letter in letters):
            yield letter, lowered(letter, locale)
