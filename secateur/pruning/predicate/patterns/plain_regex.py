"""Java regular expressions that stand for one text: characters, some of them escaped."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"(?:[^\\^$.|?*+()\[\]{}]|\\[!-/:-@\[-`{-~])+")
_NO_TEXT = re.compile("[\ud800-\udfff\ufffd]")


def plain_text(pattern: str) -> str | None:
    """Return the only text in which a pattern is found as a whole; None for any other pattern."""
    if not _PLAIN.fullmatch(pattern) or _NO_TEXT.search(pattern):
        return None
    return re.sub(r"\\(.)", r"\1", pattern)
