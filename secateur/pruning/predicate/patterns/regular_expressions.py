"""Java regular expressions: the substrings that every match contains, if they are easy to derive.

Source: ``java.util.regex.Pattern``, without flags, as Spark's RLIKE compiles it and searches anywhere. Supported are
literal characters, ``.``, classes, anchors, groups (as gaps), quantifiers, and alternatives outside groups. A pattern
with anything else (inline flags, quotations, back references, nested classes, code points) gives nothing.
"""

from __future__ import annotations

import re

from secateur.pruning.predicate.patterns.like import encoded
from secateur.pruning.predicate.patterns.substrings import Alternatives, Substring, fold, is_token

_PUNCTUATION = r"!-/:-@\[-`{-~ "  # ASCII characters that an escape makes literal
_PART = re.compile(
    rf"""
      (?P<open>        \( (?: (?!\?) | \? (?: : | = | ! | <= | <! | > | <[A-Za-z][A-Za-z0-9]*> ) ) )
    | (?P<close>       \) )
    | (?P<or>          \| )
    | (?P<begin>       \^ | \\A )
    | (?P<end>         \\z )
    | (?P<gap>         [.$] | \\[dDwWsSbBZ] | \[ \^?+ (?: [^\]\[\\&] | &(?!&) | \\[{_PUNCTUATION}dDsSwWtnrf] )+ \] )
    | (?P<quantifier>  (?: [?*+] | {{ [0-9]+ (?: , [0-9]* )? }} ) [?+]? )
    | (?P<literal>     \\[{_PUNCTUATION}] | [^\\^$.|?*+()\[{{] )
    """,
    re.VERBOSE | re.DOTALL,
)


_PLAIN = re.compile(r"[A-Za-z0-9_ ]+")


def is_plain(pattern: str) -> bool:
    """Whether a pattern just stands for its own characters, in every regular expression engine and for all bytes."""
    return _PLAIN.fullmatch(pattern) is not None


def literal_parts(pattern: str) -> Alternatives:
    """Return the substrings of every (decoded) text in which a pattern is found; none if unknown."""
    reader, position = _Reader(), 0
    while position < len(pattern):
        part = _PART.match(pattern, position)
        if part is None or part.lastgroup is None or not reader.take(part.lastgroup, part[0]):
            return ()
        position = part.end()
    return reader.finished()


class _Reader:
    """Reads the parts of a pattern one by one, and keeps the runs of characters that a match must contain."""

    def __init__(self) -> None:
        self.alternatives: list[tuple[Substring, ...]] = []
        self.substrings: list[Substring] = []
        self.run: list[str] = []
        self.starts = False  # the current run of characters, and whether it begins the text
        self.depth, self.before = 0, "or"

    def take(self, kind: str, text: str) -> bool:
        """Read one more part; return whether the pattern is still supported."""
        match kind:
            case "quantifier" if self.before in ("or", "open", "begin", "end", "quantifier"):
                return False  # a quantifier of nothing, of an anchor, or of a quantifier
            case "open":
                self._cut()
                self.depth += 1
            case "close":
                self.depth -= 1
                if self.depth < 0:
                    return False
            case _ if not self.depth:
                self._take_outside(kind, text)
        self.before = kind
        return True

    def finished(self) -> Alternatives:
        """Return what was found; none if a group is left open."""
        self._end_alternative()
        return () if self.depth else tuple(self.alternatives)

    def _take_outside(self, kind: str, text: str) -> None:
        """Read a part outside groups."""
        match kind:
            case "literal":
                self.run.append(text[-1])
            case "quantifier" if self.before == "literal":
                self._repeat(text)
            case "begin":
                self._cut(starts=True)
            case "end":
                self._cut(ends=True)
            case "or":
                self._end_alternative()
            case "gap":
                self._cut()

    def _repeat(self, quantifier: str) -> None:
        """Apply a quantifier: the last repetition precedes what follows; an optional character contributes nothing."""
        last = self.run[-1]
        if quantifier.startswith("+"):
            self._cut()
            self.run.append(last)
        else:
            self.run.pop()
            self._cut()

    def _cut(self, *, starts: bool = False, ends: bool = False) -> None:
        if self.run:
            self.substrings.append(Substring(encoded("".join(self.run)), self.starts, ends))
        self.run, self.starts = [], starts

    def _end_alternative(self) -> None:
        self._cut()
        self.alternatives.append(tuple(self.substrings))
        self.substrings = []


_SPECIAL = frozenset("\\^$.|?*+()[]{}")


def literal_start(pattern: str) -> str:
    """Return the prefix of every match of a Java regular expression that is anchored at the start.

    Without an anchor, or with alternatives, there is none. A quantifier may make the last character optional.
    """
    if not pattern.startswith("^") or "|" in pattern:
        return ""
    end = next((i for i, c in enumerate(pattern) if i and c in _SPECIAL), len(pattern))
    optional = pattern[end : end + 1] in ("?", "*", "{")
    return pattern[1 : end - 1] if optional else pattern[1:end]


# ---- tokens ----------------------------------------------------------------------------------------------------------

_NO_TOKEN = r"[^0-9A-Za-z_\x{80}-\x{10FFFF}]"  # the characters between tokens, for Java and for RE2
_NO_TEXT = re.compile("[\ud800-\udfff\ufffd]")
_BEFORE, _AFTER = rf"(?:\A|{_NO_TOKEN})", rf"(?:\z|{_NO_TOKEN})"


def token_pattern(word: str) -> str:
    """Return the pattern that finds a word as a whole token, in Java and in RE2 alike.

    Raises ValueError for a word that is not one token; a token needs no quoting.
    """
    if not _is_word(word):
        raise ValueError(f"{word!r} is not one token: digits, letters, _ and characters beyond ASCII, and no others")
    return f"{_BEFORE}{word}{_AFTER}"


def token_of(pattern: str) -> str | None:
    """Return the word if :func:`token_pattern` made this pattern."""
    if not pattern.startswith(_BEFORE) or not pattern.endswith(_AFTER):
        return None
    word = pattern[len(_BEFORE) : -len(_AFTER)]
    return word if _is_word(word) else None


def token_bytes(word: str) -> str:
    """Return the pattern of RE2 that finds a word as a whole token in bytes, which need not be UTF-8."""
    return token_pattern(word).replace("\\x{10FFFF}", "\\x{FF}")


def tokens_of(word: str, *, folded: bool) -> tuple[bytes, ...]:
    """Return the tokens of a text that contains a word; beyond ASCII none are certain if case is ignored."""
    token = encoded(word)
    if not folded:
        return (token,)
    return (fold(token),) if token.isascii() else ()


def _is_word(word: str) -> bool:
    """Return whether a word is a token of decoded text, in which U+FFFD may be any byte."""
    return not _NO_TEXT.search(word) and is_token(encoded(word))
