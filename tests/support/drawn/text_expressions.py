"""Random texts, LIKE patterns and expressions over texts."""

from __future__ import annotations

import re

from hypothesis import strategies as st

LETTERS = st.sampled_from([*"abAB_ .%-\n", "é", "😀", "\ufffd"])


some_text = st.text(LETTERS, max_size=6)


@st.composite
def likes(draw: st.DrawFn) -> tuple[str, str, str]:
    """A pattern, a regular expression of Python that says the same, and a text that matches it."""
    parts = draw(st.lists(st.tuples(st.sampled_from("%_=="), some_text), max_size=5))
    pattern = regex = text = ""
    for kind, chosen in parts:
        match kind:
            case "%":
                pattern, regex, text = pattern + "%", regex + ".*", text + chosen
            case "_":
                pattern, regex, text = pattern + "_", regex + ".", text + (chosen + "x")[0]
            case _:
                pattern += re.sub(r"([%_\\])", r"\\\1", chosen)
                regex, text = regex + re.escape(chosen), text + chosen
    return pattern, regex, text


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2) -> tuple[str, str]:
    """A regular expression that Java and Python read alike, but for \\z, and a text in which it is (often) found."""
    pattern = text = ""
    for _ in range(draw(st.integers(0, 5))):
        part, example = draw(atoms(depth))
        quantifier, times = draw(
            st.sampled_from([("", 1)] * 8 + [("?", 0), ("?", 1), ("*", 0), ("*", 2), ("+", 1), ("+", 3), ("{2}", 2)])
        )
        if part in ("^", "$", "\\A", "\\z", "\\b", "\\B"):
            quantifier, times = "", 1
        lazy = draw(st.sampled_from(["", "", "?"])) if quantifier else ""
        pattern, text = pattern + part + quantifier + lazy, text + example * times
    return pattern, text


@st.composite
def atoms(draw: st.DrawFn, depth: int) -> tuple[str, str]:
    kind = draw(st.sampled_from(["literal"] * 6 + ["escape", "class", "group", "or", "zero"]))
    match kind:
        case "escape":
            chosen = draw(st.sampled_from(".\\*+?()[]{}^$|-_ "))
            return "\\" + chosen, chosen
        case "class":
            return draw(
                st.sampled_from([(".", "b"), ("[a-c]", "b"), ("[^ab]", "c"), ("\\d", "7"), ("\\w", "_"), ("\\s", " ")])
            )
        case "group" if depth:
            inner, example = draw(expressions(depth - 1))
            opening = draw(st.sampled_from(["(", "(?:"]))
            return f"{opening}{inner})", example
        case "or" if depth:
            branches = draw(st.lists(expressions(depth - 1), min_size=2, max_size=3))
            joined = "|".join(pattern for pattern, _ in branches)
            return f"({joined})", draw(st.sampled_from(branches))[1]
        case "zero":
            return draw(st.sampled_from(["^", "$", "\\A", "\\z", "\\b", "\\B"])), ""
        case _:
            chosen = draw(st.sampled_from([*"abAB_ }]-\n", "é", "😀", "\ufffd"]))
            return chosen, chosen


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
