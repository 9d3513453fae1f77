"""Functions that keep no order: the values that a function takes to given texts, against the function itself."""

from __future__ import annotations

import re

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from secateur.pruning.bounds import rangeset
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.functions.joined_text import RULES, digits
from secateur.pruning.interval import Argument
from secateur.pruning.predicate.binding.constants import pad_to
from secateur.pruning.predicate.patterns.finite_patterns import matching_texts
from secateur.pruning.predicate.patterns.substrings import alternatives_of, in_bytes
from secateur.pruning.predicate.patterns.trimming import untrimmed
from secateur.values.conversion import keys_of
from secateur.values.key import INT64_MAX, INT64_MIN
from secateur.values.kinds import Kind

TEXTS = st.text("ab é", max_size=5)
NUMBERS = st.one_of(
    st.integers(-1200, 1200),
    st.integers(INT64_MIN, INT64_MAX),
    st.sampled_from([INT64_MIN, INT64_MAX, INT64_MIN + 1, INT64_MAX - 1, -(2**31), 2**31 - 1]),
)


def holds(ranges: RangeSet, value: object, type_: pa.DataType) -> bool:
    return bool(ranges.contains(keys_of(pa.array([value], type_)))[0])


@given(NUMBERS, st.integers(0, 20), st.sampled_from(["", "-", "0", "00", "15", "-15", "9", "x"]))
def test_numbers_of_given_digits(number: int, cut: int, other: str) -> None:
    function = digits(pa.int64())
    assert function is not None
    assert function.preimage is not None
    for text in (str(number), str(number)[:cut], other):
        point = function.preimage(rangeset.points(Kind.BYTES, [text.encode()]))
        assert point is not None
        assert holds(point, number, pa.int64()) == (str(number) == text)
        if text:
            beginning = function.preimage(rangeset.starting_with(text.encode()))
            assert beginning is not None
            assert holds(beginning, number, pa.int64()) == str(number).startswith(text)


@given(TEXTS, TEXTS, st.integers(1, 5), st.sampled_from(["", " ", "ab", "aab"]), st.booleans())
def test_texts_that_are_padded_to_a_given_one(text: str, other: str, length: int, pad: str, left: bool) -> None:
    arguments = Argument(pa.string()), Argument(pa.int32(), length), Argument(pa.string(), pad.encode())
    function = RULES["lpad" if left else "rpad"](arguments, None)  # type: ignore[arg-type]
    assert function is not None
    assert function.preimage is not None
    for padded in (pad_to(text, length, pad, left=left), other):
        preimage = function.preimage(rangeset.points(Kind.BYTES, [padded.encode()]))
        assert preimage is not None
        assert holds(preimage, text, pa.string()) == (pad_to(text, length, pad, left=left) == padded)


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_texts_that_are_joined_to_a_given_one(before: str, text: str, after: str, other: str) -> None:
    arguments = [Argument(pa.string(), before.encode()), Argument(pa.string()), Argument(pa.string(), after.encode())]
    function = RULES["concat"](arguments, None)  # type: ignore[arg-type]
    assert function is not None
    for joined in (before + text + after, other):
        if function.preimage is not None:
            preimage = function.preimage(rangeset.points(Kind.BYTES, [joined.encode()]))
            assert preimage is not None
            assert holds(preimage, text, pa.string()) == (before + text + after == joined)
        else:
            assert function.inverse is not None
            first = function.inverse(joined.encode())
            reached = first is not None and text.encode() >= first  # type: ignore[operator]
            assert reached == ((before + text).encode() >= joined.encode())


@given(TEXTS, st.sampled_from(["trim", "ltrim", "rtrim"]), TEXTS, st.booleans())
def test_texts_that_may_be_trimmed_to_a_given_one(text: str, name: str, other: str, prefix: bool) -> None:
    trimmed = {"trim": text.strip(" "), "ltrim": text.lstrip(" "), "rtrim": text.rstrip(" ")}[name]
    for wanted in (trimmed, other):
        key = wanted.encode()
        asked = rangeset.starting_with(key) if prefix and key else rangeset.points(Kind.BYTES, [key])
        if holds(asked, trimmed, pa.string()):
            starts, substrings = untrimmed(name, alternatives_of(asked))
            assert holds(starts, text, pa.string())
            kept = in_bytes(substrings, folded=False)
            assert not kept or any(
                all(substring.is_in(text.encode()) for substring in substrings) for substrings in kept
            )


PARTS = st.sampled_from(["a", "b", "\\.", "(a|b)", "(?:ab|)", "[ab]", "a?", "(b|ab)?", "((a|b)b)"])
PATTERNS = st.builds(
    lambda parts, end, parts2, two: "^" + "".join(parts) + end + (f"|^{''.join(parts2)}{end}" if two else ""),
    st.lists(PARTS, max_size=4),
    st.sampled_from(["", "\\z", ".*"]),
    st.lists(PARTS, max_size=2),
    st.booleans(),
)


@given(PATTERNS, st.text("ab.", max_size=5))
def test_texts_in_which_a_pattern_is_found(pattern: str, text: str) -> None:
    texts = matching_texts(pattern)
    if texts is not None:
        assert holds(texts, text, pa.string()) == bool(re.search(pattern.replace("\\z", "\\Z"), text))


def test_patterns_that_are_not_read() -> None:
    for pattern in [
        "a",
        "^a+",
        "^a$b",
        "^(a",
        "^a)",
        "^[^a]",
        "^a??",
        "(?i)^a",
        "^\\d",
        "^" + "[0-9]" * 3,
        "^(?=a)",
        "^",
    ]:
        assert matching_texts(pattern) is None, pattern
