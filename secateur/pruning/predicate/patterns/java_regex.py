r"""Java regular expressions in the syntax of RE2, where both find the same.

A pattern is read by Java's rules and rewritten for RE2, with explicit code points. It only matters whether something is
found, not what or where: so lazy quantifiers become greedy, and groups need no numbers.

Sources: ``java.util.regex.Pattern`` of Java 17, as Spark's RLIKE uses it, which searches decoded text; RE2's syntax.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

_Span = tuple[int, int]  # code points, the last one included

_LAST = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
_MOST_DEPTH = 50  # groups within groups
_MOST_TIMES = 1000  # RE2 refuses to repeat more often
_DIGITS = [(0x30, 0x39)]
_WORD = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]
_SPACE = [(0x09, 0x0D), (0x20, 0x20)]
_LINE_ENDS = [(0x0A, 0x0A), (0x0D, 0x0D), (0x85, 0x85), (0x2028, 0x2029)]
_CONTROLS = {"t": 0x09, "n": 0x0A, "r": 0x0D, "f": 0x0C, "a": 0x07, "e": 0x1B}
_QUANTIFIER = re.compile(r"(?:([?*+])|\{([0-9]{1,9})(,?)([0-9]{0,9})\})([?+]?)")
_FLAGS = re.compile(r"\(\?([is]+)\)")
_NAMED = re.compile(r"\(\?<[A-Za-z][A-Za-z0-9]*>")
_CODE_POINT = re.compile(r"\\(?:x\{([0-9A-Fa-f]{1,6})\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4}))")
FINAL_LINE_END = r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])\z"  # what ``$`` may stand before, besides the end


class Untranslatable(ValueError):
    """A pattern has a part that RE2 lacks or understands otherwise; the message names it."""


@dataclass(frozen=True)
class Translation:
    """A pattern of RE2, to be used on text that is UTF-8.

    `before_line_end`: it must also be tried on the text without its final line terminator. `ascii_only`: it finds the
    same as Java in ASCII text only.
    """

    regex: str
    before_line_end: bool
    ascii_only: bool


def translated(pattern: str) -> Translation:
    """Return a Java regular expression for RE2. Raises Untranslatable."""
    reader = _Reader(pattern)
    regex = reader.read()
    try:
        pc.match_substring_regex(pa.array([], pa.string()), regex)
    except pa.ArrowInvalid:
        raise Untranslatable("its size") from None
    return Translation(regex, reader.has_dollar, reader.has_boundary)


@dataclass(frozen=True)
class _Part:
    regex: str
    may_be_empty: bool = False
    is_anchor: bool = False
    ends: bool = False  # has a ``$``, after which nothing may follow


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        flags = _FLAGS.match(pattern)
        self.pattern, self.at = pattern, flags.end() if flags else 0
        self.ignores_case = flags is not None and "i" in flags[1]
        self.dot = _written([(0, _LAST)] if flags and "s" in flags[1] else _others(_LINE_ENDS))
        self.depth = 0
        self.has_dollar = self.has_end = self.has_boundary = False

    def read(self) -> str:
        """Return the whole pattern for RE2."""
        part = self._alternatives()
        if self.at < len(self.pattern):
            raise Untranslatable("an unmatched )")
        if self.has_dollar and self.has_end:
            raise Untranslatable("both $ and \\z")
        return part.regex

    def _starts(self, *texts: str) -> bool:
        return self.pattern.startswith(texts, self.at)

    def _alternatives(self) -> _Part:
        branches = [self._sequence()]
        while self._starts("|"):
            self.at += 1
            branches.append(self._sequence())
        empty, ends = any(b.may_be_empty for b in branches), any(b.ends for b in branches)
        return _Part("|".join(b.regex for b in branches), empty, ends=ends)

    def _sequence(self) -> _Part:
        parts: list[_Part] = []
        while self.at < len(self.pattern) and not self._starts("|", ")"):
            if parts and parts[-1].ends:
                raise Untranslatable("something after $")
            parts += self._repeated()
        empty = all(part.may_be_empty for part in parts)
        return _Part("".join(part.regex for part in parts), empty, ends=bool(parts) and parts[-1].ends)

    def _repeated(self) -> Iterator[_Part]:
        """Read one part with its quantifier; a quotation is several."""
        if self._starts("\\Q"):
            yield from self._quotation()
            return
        part = self._part()
        quantifier = _QUANTIFIER.match(self.pattern, self.at)
        if quantifier is None:
            yield part
            return
        self.at = quantifier.end()
        if quantifier[5] == "+":
            raise Untranslatable(f"the possessive quantifier {quantifier[0]}")
        optional = quantifier[1] == "?"
        if part.is_anchor or part.ends or (part.may_be_empty and not optional):
            raise Untranslatable(f"{quantifier[0]} of what may be empty")
        if any(times and int(times) > _MOST_TIMES for times in quantifier.group(2, 4)):
            raise Untranslatable(f"{quantifier[0]}, more than {_MOST_TIMES} times")
        if _QUANTIFIER.match(self.pattern, self.at):
            raise Untranslatable("a quantifier of a quantifier")
        times = quantifier[1] or f"{{{quantifier[2]}{quantifier[3]}{quantifier[4]}}}"
        empty = part.may_be_empty or times in ("?", "*") or int(quantifier[2] or 1) == 0
        yield _Part(part.regex + times, empty)

    def _quotation(self) -> Iterator[_Part]:
        start = self.at + 2
        stop = self.pattern.find("\\E", start)
        self.at = len(self.pattern) if stop < 0 else stop + 2
        for character in self.pattern[start : None if stop < 0 else stop]:
            yield self._literal(ord(character))
        if _QUANTIFIER.match(self.pattern, self.at):
            raise Untranslatable("a quantifier of \\Q...\\E")

    def _part(self) -> _Part:
        character = self.pattern[self.at]
        match character:
            case "(":
                return self._group()
            case "[":
                return _Part(_written(self._class()))
            case "\\":
                return self._escape()
            case "?" | "*" | "+" | "{":
                raise Untranslatable(f"{character} without what it repeats")
        self.at += 1
        match character:
            case ".":
                return _Part(self.dot)
            case "^":
                return _Part("\\A", may_be_empty=True, is_anchor=True)
            case "$":
                return self._dollar()
            case _:
                return self._literal(ord(character))

    def _dollar(self) -> _Part:
        self.has_dollar = True
        return _Part("\\z", may_be_empty=True, is_anchor=True, ends=True)

    def _literal(self, code: int) -> _Part:
        if _SURROGATES[0] <= code <= _SURROGATES[1]:
            raise Untranslatable("half a character")
        return _Part(_written(_both_cases([(code, code)]) if self.ignores_case else [(code, code)]))

    def _group(self) -> _Part:
        named = _NAMED.match(self.pattern, self.at)
        if named:
            self.at = named.end()
        elif self._starts("(?:"):
            self.at += 3
        elif self._starts("(?"):
            raise Untranslatable(f"{self.pattern[self.at : self.at + 4]!r}: look-around, flags or an atomic group")
        else:
            self.at += 1
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            raise Untranslatable("its depth")
        inner = self._alternatives()
        self.depth -= 1
        if not self._starts(")"):
            raise Untranslatable("an unmatched (")
        self.at += 1
        return _Part(f"(?:{inner.regex})", inner.may_be_empty, ends=inner.ends)

    def _escape(self) -> _Part:
        following = self.pattern[self.at + 1 : self.at + 2]
        if following in ("A", "z", "Z", "b") and not self._starts("\\b{"):
            self.at += 2
            match following:
                case "Z":
                    return self._dollar()
                case "A":
                    return _Part("\\A", may_be_empty=True, is_anchor=True)
                case "z":
                    self.has_end = True
                case "b":
                    self.has_boundary = True
            return _Part(f"\\{following}", may_be_empty=True, is_anchor=True)
        named = _SETS.get(following)
        if named is not None:
            self.at += 2
            return _Part(_written(named))
        return self._literal(self._escaped_code())

    def _escaped_code(self) -> int:
        """Read an escape of one character."""
        match = _CODE_POINT.match(self.pattern, self.at)
        if match is not None:
            self.at = match.end()
            code = int(match[1] or match[2] or match[3], 16)
            if code > _LAST:
                raise Untranslatable(match[0])
            return code
        following = self.pattern[self.at + 1 : self.at + 2]
        code = _CONTROLS.get(following, ord(following) if following in _PUNCTUATION else -1)
        if not following or code < 0:
            raise Untranslatable(f"\\{following}")
        self.at += 2
        return code

    # ---- classes

    def _class(self) -> list[_Span]:
        self.at += 1
        excludes = self._starts("^")
        self.at += excludes
        spans: list[_Span] = []
        first = True
        while first or not self._starts("]"):
            spans += self._class_part()
            first = False
        self.at += 1
        if any(last >= 0x10000 and (begin, last) not in _NEGATED for begin, last in spans):
            raise Untranslatable("a class with characters beyond U+FFFF")
        if self.ignores_case:
            spans = _both_cases(spans)
        return _others(spans) if excludes else spans

    def _class_part(self) -> list[_Span]:
        """Read a set, a character, or a range of a class."""
        if self._starts("\\") and (named := _SETS.get(self.pattern[self.at + 1 : self.at + 2])) is not None:
            self.at += 2
            if self._starts("-") and not self._starts("-]"):
                raise Untranslatable("a range from a set")
            return named
        begin = self._class_character(is_first=self.pattern[self.at - 1] in "[^")
        if not self._starts("-") or self._starts("-]"):
            return [(begin, begin)]
        self.at += 1
        last = self._class_character(is_first=False)
        if begin > last or (begin <= _SURROGATES[1] and last >= _SURROGATES[0]):
            raise Untranslatable("a range that is empty, or has half characters")
        return [(begin, last)]

    def _class_character(self, *, is_first: bool) -> int:
        character = self.pattern[self.at : self.at + 1]
        if character == "\\":
            code = self._escaped_code()
        elif not character or character in "[]&^" or (character == "-" and not is_first and not self._starts("-]")):
            raise Untranslatable(f"{character or 'no ]'} in a class")
        else:
            self.at += 1
            code = ord(character)
        if _SURROGATES[0] <= code <= _SURROGATES[1]:
            raise Untranslatable("half a character")
        return code


def _others(spans: Iterable[_Span]) -> list[_Span]:
    """Return the code points outside spans."""
    gaps, start = [], 0
    for begin, last in sorted(spans):
        if begin > start:
            gaps.append((start, begin - 1))
        start = max(start, last + 1)
    return [*gaps, (start, _LAST)] if start <= _LAST else gaps


def _both_cases(spans: list[_Span]) -> list[_Span]:
    """Add the other case of ASCII letters, the only ones whose case Java ignores."""
    letters = [letter for letter in string.ascii_letters if any(b <= ord(letter) <= e for b, e in spans)]
    return spans + [(ord(letter.swapcase()),) * 2 for letter in letters]


def _written(spans: list[_Span]) -> str:
    """Return a set of code points for RE2."""
    if not spans:
        return "[^\\x{0}-\\x{10FFFF}]"
    if len(spans) == 1 and spans[0][0] == spans[0][1]:
        return _character(spans[0][0])
    return f"[{''.join(_character(b) if b == e else f'{_character(b)}-{_character(e)}' for b, e in spans)}]"


def _character(code: int) -> str:
    return chr(code) if chr(code) in string.ascii_letters + string.digits else f"\\x{{{code:X}}}"


_PUNCTUATION = frozenset(string.punctuation + " ")
_SETS = {
    "d": _DIGITS,
    "w": _WORD,
    "s": _SPACE,
    "D": _others(_DIGITS),
    "W": _others(_WORD),
    "S": _others(_SPACE),
}
_NEGATED = frozenset(_SETS[name][-1] for name in "DWS")
