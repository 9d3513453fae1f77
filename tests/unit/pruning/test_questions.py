"""What leaves ask of filters: whatever makes a leaf TRUE answers all of its questions with "may be"."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import InvalidPredicate, UnsupportedPredicate
from secateur.pruning.bounds.outcomes import EVERYTHING, FALSE, NULL, TRUE
from secateur.pruning.evaluate import evaluate
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.bound import Field, Holds, TextMatch, Unsupported
from secateur.pruning.predicate.bound_walks import columns, is_supported, leaves
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.predicate.patterns.regular_expressions import literal_parts
from secateur.pruning.predicate.patterns.substrings import (
    CASE_TRICKY,
    MOST_ALTERNATIVES,
    Substring,
    in_bytes,
    tokens_within,
)
from secateur.pruning.predicate.rewrite import rewrite
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.questions import MOST_POINTS, Question, Ranges, Texts, Values, questions
from secateur.pruning.rows.truth import matching_rows, truth
from tests.support.checks.naive_filters import may_be, text_may_be, tokens
from tests.support.drawn.text_expressions import expressions, likes, quoted, some_text
from tests.support.profiles import examples

SCHEMA = pa.schema(
    {
        "i": pa.int32(),
        "x": pa.float64(),
        "s": pa.string(),
        "b": pa.binary(),
        "tags": pa.list_(pa.string()),
        "nums": pa.list_(pa.int64()),
        "xs": pa.list_(pa.float64()),
        "fs": pa.list_(pa.float32()),
        "attrs": pa.map_(pa.string(), pa.string()),
        "byid": pa.map_(pa.int32(), pa.string()),
        "st": pa.struct({"f": pa.int32(), "tags": pa.list_(pa.string()), "attrs": pa.map_(pa.string(), pa.int32())}),
        "items": pa.list_(pa.struct({"name": pa.string()})),
    }
)


def bound(text: str) -> Predicate:
    return rewrite(bind(parse(text), SCHEMA))


def asked(text: str) -> list[Question]:
    """The questions of all leaves of a predicate, but for those about ranges."""
    return [
        question for leaf in leaves(bound(text)) for question in questions(leaf) if not isinstance(question, Ranges)
    ]


def ranges_of(text: str) -> list[Ranges]:
    return [question for leaf in leaves(bound(text)) for question in questions(leaf) if isinstance(question, Ranges)]


def texts_of(text: str) -> list[Texts]:
    return [question for question in asked(text) if isinstance(question, Texts)]


def short(question: Texts) -> str:
    """Substrings as ``^starts``, ``ends$``; alternatives with ``|``, folded ones after ``~``, tokens in brackets."""
    texts = "|".join(
        " ".join("^" * p.starts + p.text.decode() + "$" * p.ends for p in substrings)
        for substrings in question.alternatives
    )
    return "~" * question.folded + texts + "".join(f"[{token.decode()}]" for token in question.tokens)


# ---- texts -----------------------------------------------------------------------------------------------------------

PATTERNS = [  # a condition, and the first question about texts
    ("s LIKE 'abc'", "^abc$"),
    ("s LIKE 'abc%'", "^abc"),
    ("s LIKE 'abc%%'", "^abc"),
    ("s LIKE '%abc'", "abc$"),
    ("s LIKE '%abc%'", "abc"),
    ("s LIKE 'abc%def_ghi'", "^abc def ghi$"),
    ("s LIKE '%def_ghi_'", "def ghi"),
    ("s LIKE '_abc'", "abc$"),
    ("s LIKE '%a\\\\%b%'", "a%b"),
    ("s LIKE '%a\\\\_b!%' ", "a_b!"),
    ("s LIKE '%a!%b!!%' ESCAPE '!'", "a%b!"),
    ("s LIKE '%ab%a%b%'", "ab"),  # the others are in it
    ("s LIKE '%ab%a'", "ab a$"),
    ("s LIKE '%a\ufffdb%'", "a b"),  # which Spark finds in place of bytes that are no UTF-8
    ("s NOT LIKE '%abc%'", "abc"),
    ("contains(s, 'a%')", "a%"),
    ("startswith(s, 'a_b')", "^a_b"),
    ("endswith(s, '\\\\')", "\\$"),
    ("instr(s, '50%') > 0", "50%"),
    ("substring(s, 1, 3) = 'abc'", "^abc"),
    ("left(s, 3) IN ('abc', 'abd')", "^ab"),
    ("left(s, 1) IN ('a', 'c')", "^a|^c"),
    ("s = 'abc'", "^abc$"),
    ("s IN ('abc', 'b')", "^abc$|^b$"),
    ("s = 'abc' OR s LIKE 'b%'", "^abc$|^b"),
    ("s >= 'abc' AND s < 'abd'", "^abc"),
    ("s >= 'abc' AND s < 'abx'", "^ab"),
    ("s ILIKE '%Error%'", "~error"),
    ("s ILIKE 'Err_r!_%' ESCAPE '!'", "~^err r_"),
    ("s ILIKE 'ERROR'", "~^error$"),
    ("s ILIKE '%École I%'", "~cole "),
    ("s ILIKE '%\u212aELVIN%'", "~elv n"),
    ("lower(s) LIKE '%err%'", "~err"),
    ("lower(s) = 'abc'", "~^abc$"),
    ("lower(s) = 'abcé'", "~^abc"),
    ("upper(s) IN ('DE', 'FR')", "^DE|^De|^FR|^Fr|^dE|^de|^fR|^fr"),
    ("contains(lower(s), 'x y')", "~x y"),
    ("lower(s) RLIKE 'err.*fail'", "~err fail"),
    ("has_token(s, 'word')", "word[word]"),
    ("has_token(s, 'naïve_1')", "naïve_1[naïve_1]"),
    ("has_token(lower(s), 'naïve')", "~na ve"),
]


@pytest.mark.parametrize(("text", "expected"), PATTERNS, ids=[text for text, _ in PATTERNS])
def test_the_substrings_of_a_condition(text: str, expected: str) -> None:
    assert short(texts_of(text)[0]) == expected


@pytest.mark.parametrize(
    "text",
    [
        "s LIKE '%'",
        "s LIKE '%_%'",
        "s LIKE ''",
        "s > 'abc'",
        "s < 'abc'",
        "s != 'abc'",
        "s >= 'a' AND s < 'c'",
        "s ILIKE '%é%'",
        "s IN ('abc', '')",
        "b = X'616263'",
        "lower(s) > 'a'",
        "lower(s) IN ('abc', 'é')",
        "lower(lower(s)) LIKE '%a%'",
        "concat(s, 'x') LIKE '%a%'",
        "left(s, 3) LIKE '%c'",
        "lower(left(s, 3)) LIKE '%c'",
        "s RLIKE '(?i)error'",
        "CAST(i AS STRING) LIKE '%1'",
    ],
)
def test_conditions_that_ask_for_no_text(text: str) -> None:
    assert texts_of(text) == []


def test_many_alternatives_are_none() -> None:
    listed = [f"'{i:03}'" for i in range(MOST_ALTERNATIVES + 1)]
    assert texts_of(f"s IN ({', '.join(listed)})") == []
    assert not any(question.folded for question in texts_of(f"lower(s) IN ({', '.join(listed)})"))
    assert len(texts_of(f"s IN ({', '.join(listed[1:])})")[0].alternatives) == MOST_ALTERNATIVES


EXPRESSIONS = [  # a regular expression, and its substrings; - where nothing is known
    ("abc", "abc"),
    ("^abc", "^abc"),
    ("\\Aabc\\z", "^abc$"),
    ("abc$", "abc"),
    ("^abc$", "^abc"),
    ("a.c", "a c"),
    ("a.*bc", "a bc"),
    ("ab?c", "a c"),
    ("ab*c", "a c"),
    ("ab{2}c", "a c"),
    ("ab{0,3}?c", "a c"),
    ("ab+c", "ab bc"),
    ("ab++c+?\\z", "ab bc c$"),
    ("x?abc", "abc"),
    ("^x?abc", "abc"),
    ("x+^abc", "x ^abc"),
    ("a\\.b\\\\c\\-", "a.b\\c-"),
    ("\\d{4}-\\d{2}", "-"),
    ("id=\\d+;", "id= ;"),
    ("[a-z]+@[\\w.\\-]+\\.com", "@ .com"),
    ("a[^]x]b", None),
    ("a[]x]b", None),
    ("a[^^]b", "a b"),
    ("a[b&c]d", "a d"),
    ("a[b&&c]d", None),
    ("a[b[c]]d", None),
    ("a[\\Q]\\E]d", None),
    ("a(b|c)d", "a d"),
    ("a(?:b)+d", "a d"),
    ("a(?=b)(?!c)(?<=d)(?<!e)(?>f)(?<g>h)i", "a i"),
    ("a(?i)b", None),
    ("(?i:a)b", None),
    ("(a(?s)b)c", None),
    ("a\\(b\\)", "a(b)"),
    ("a(b\\)c)d", "a d"),
    ("a([)])b", "a b"),
    ("error|warn(ing)?", "error|warn"),
    ("error|.*", None),
    ("error|", None),
    ("\\berror\\b", "error"),
    ("a\\Bb", "a b"),
    ("\\Qa.b\\E", None),
    ("(a)\\1", None),
    ("\\x41b", None),
    ("\\u0041b", None),
    ("a\\tb", None),
    ("\\p{L}b", None),
    ("a{b", None),
    ("a}b]", "a}b]"),
    ("a(b", None),
    ("a)b", None),
    ("*a", None),
    ("a**", None),
    ("a{2}{3}b", None),
    ("^*abc", None),
    ("(?abc", None),
    ("a\\", None),
    ("", None),
    ("a b#c", "a b#c"),
    ("😀+é", "😀é"),
    ("a\nb", "a\nb"),
]


@pytest.mark.parametrize(("pattern", "expected"), EXPRESSIONS, ids=[repr(pattern) for pattern, _ in EXPRESSIONS])
def test_the_substrings_of_a_regular_expression(pattern: str, expected: str | None) -> None:
    alternatives = in_bytes(literal_parts(pattern), folded=False)
    assert (short(Texts(None, alternatives, False)) if alternatives else None) == expected  # type: ignore[arg-type]


# ---- texts that match hold the substrings ----------------------------------------------------------------------------


def check_substrings(condition: str, text: str) -> None:
    """That a text for which a condition is TRUE answers all questions of it with "may be"."""
    asked = texts_of(condition)
    event("with substrings" if asked else "without substrings")
    for question in asked:
        assert may_be(question, text), (condition, text, short(question))


@examples(400)
@given(like=likes(), other=some_text)
def test_a_text_that_is_like_a_pattern_holds_its_substrings(like: tuple[str, str, str], other: str) -> None:
    pattern, regex, text = like
    for candidate in (text, other, other + text, text + other):
        if re.fullmatch(regex, candidate, re.DOTALL):
            check_substrings(f"s LIKE {quoted(pattern)}", candidate)


@examples(600)
@given(branches=st.lists(expressions(), min_size=1, max_size=2), before=some_text, after=some_text)
def test_a_text_in_which_an_expression_is_found_holds_its_substrings(
    branches: list[tuple[str, str]], before: str, after: str
) -> None:
    """By Python, whose syntax is Java's where substrings are read; its \\Z is Java's \\z."""
    pattern, text = "|".join(pattern for pattern, _ in branches), branches[-1][1]
    compiled = re.compile(pattern.replace("\\z", "\\Z"), re.ASCII)
    for candidate in (text, before + text, text + after, before + text + after, after):
        if compiled.search(candidate):
            check_substrings(f"s RLIKE {quoted(pattern)}", candidate)


odd_letters = st.sampled_from([*"abkiAKIsS ", "é", "É", "ß", "\u212a", "\u017f", "İ", "\u0131", "ﬁ", "\u03c3", "Σ"])
odd_text = st.text(odd_letters, max_size=6)


@examples(400)
@given(
    needle=odd_text,
    before=odd_text,
    after=odd_text,
    wild=st.sampled_from(["", "%", "_"]),
    name=st.sampled_from(["lower", "upper"]),
)
def test_a_text_in_lower_or_upper_case_holds_the_folded_substrings(
    needle: str, before: str, after: str, wild: str, name: str
) -> None:
    """Where it has no character that case mapping turns into ASCII."""
    text = before + needle + after
    mapped = getattr(text, name)()
    wanted = getattr(before + needle, name)()[len(before) // 2 :]
    pattern = f"%{wanted[:2]}{wild}{wanted[3:]}%" if wild else f"%{wanted}%"
    if re.fullmatch(pattern.replace("%", ".*").replace("_", "."), mapped):
        check_substrings(f"{name}(s) LIKE '{pattern}'", text)
        check_substrings(f"{name}(s) RLIKE '{wanted[:2]}.*'", text)
        if name == "lower":
            check_substrings(f"s ILIKE '%{wanted[:2]}%'", text)
    check_substrings(f"{name}(s) = '{mapped}'", text)
    check_substrings(f"{name}(s) IN ('{mapped}', 'q')", text)


some_bytes = st.sampled_from([0x61, 0x62, 0x20, 0xC3, 0xA9, 0xE2, 0x84, 0xAA, 0xF0, 0xFF, 0xBF, 0xEF, 0xBD])
any_bytes = st.lists(some_bytes, min_size=1, max_size=8).map(bytes)


@examples(400)
@given(text=any_bytes, start=st.integers(0, 8), length=st.integers(1, 4))
def test_bytes_that_are_no_text_hold_the_substrings_of_what_is_decoded_of_them(
    text: bytes, start: int, length: int
) -> None:
    part = text.decode("utf-8", "replace")[start:][:length]
    for condition in (f"s LIKE '%{part}%'", f"s LIKE '_%{part}%'", f"lower(s) LIKE '%{part.lower()}%'"):
        for question in texts_of(condition):
            assert text_may_be(question, text), (condition, question)


def test_the_characters_that_case_turns_into_ascii() -> None:
    """All of Unicode, as Python has it; its mappings of these do not change any more."""
    characters = (chr(code) for code in range(128, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)
    assert frozenset(c for c in characters if any(map(str.isascii, c.lower()))) == CASE_TRICKY


# ---- tokens ----------------------------------------------------------------------------------------------------------


@examples(300)
@given(
    text=st.text(st.sampled_from([*"ab1_ .-", "é"]), max_size=8).map(str.encode),
    starts=st.booleans(),
    ends=st.booleans(),
)
def test_the_tokens_of_a_piece_are_those_of_all_texts_that_hold_it(text: bytes, starts: bool, ends: bool) -> None:
    before, after = ([b""] if at_end else [b"", b"x", b" ", b"\xc3"] for at_end in (starts, ends))
    around = [tokens(first + text + last) for first in before for last in after]
    assert set(tokens_within(Substring(text, starts, ends))) == set.intersection(*around)


words = st.text(st.sampled_from([*"abA1_", "é", "😀"]), min_size=1, max_size=3)


@examples(300)
@given(word=words, texts=st.lists(st.text(st.sampled_from([*"abA1_ .-\n", "é", "😀"]), max_size=8), max_size=5))
def test_a_token_is_found_as_a_whole(word: str, texts: list[str]) -> None:
    texts += [f"{texts[0]} {word}.{texts[-1]}", word] if texts else []
    predicate = rewrite(bind(sec.has_token("s", word), SCHEMA))
    batch = pa.record_batch({"s": pa.array(texts, pa.string())})
    expected = [word.encode() in tokens(text.encode()) for text in texts]
    assert matching_rows(predicate, batch).tolist() == expected
    for text, is_there in zip(texts, expected, strict=True):
        if is_there:
            check_substrings(f"has_token(s, '{word}')", text)
            check_substrings(f"has_token(lower(s), '{word.lower()}')", text)


@pytest.mark.parametrize("word", ["", "two words", "a-b", "a.", " a", "'", "\ufffd", "a\ud800", "a|b"])
def test_what_is_not_one_token_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="is not one token"):
        sec.has_token("s", word)
    with pytest.raises(InvalidPredicate, match="has_token"):
        parse(f"has_token(s, {quoted(word)})")


def test_a_token_may_be_asked_of_an_expression_and_printed() -> None:
    predicate = sec.has_token(sec.call_function("lower", sec.col("st.name")), "word")
    assert parse(str(predicate)) == predicate == parse("has_token(lower(st.name), 'word')")


# ---- values ----------------------------------------------------------------------------------------------------------


def test_points_are_values_and_ranges_are_not() -> None:
    (values,) = asked("i IN (5, 3, 3)")
    assert isinstance(values, Values)
    assert values.points.tolist() == [3, 5]
    assert values.type == pa.int32()
    assert asked("i > 5") == []
    assert [type(question) for question in asked("s = 'a'")] == [Values, Texts]
    assert [type(question) for question in asked("b = X'61'")] == [Values]


def test_what_says_nothing_asks_nothing() -> None:
    for text in (
        "i > 5 AND i < 5",
        "i >= -2147483648L OR i < 3",
        "i IS NULL",
        "i = x",
        "TRUE",
        "s > 'a'",
        "rand() < 0.5",
    ):
        assert asked(text) == [], text


def test_long_lists_are_not_looked_up() -> None:
    for n in (MOST_POINTS, MOST_POINTS + 1):
        leaf = rewrite(bind(sec.col("i").isin(np.arange(0, 2 * n, 2)), SCHEMA))
        assert [type(question) for question in questions(leaf)] == ([Values, Ranges] if n <= MOST_POINTS else [])


def test_a_column_against_constants_asks_of_ranges() -> None:
    for text in ("i > 5 AND i <= 9", "i IN (5, 3, 3)", "i != 5", "i = 7 OR i < 2"):
        assert [question.column for question in ranges_of(text)] == [Field(("i",), pa.int32())], text
    for text in ("s > 'a'", "s LIKE 'a_c'", "left(s, 1) = 'a'"):
        assert [question.column for question in ranges_of(text)] == [Field(("s",), pa.string())], text
    for text in ("i > 5 AND i < 5", "i IS NULL", "i = x", "TRUE", "rand() < 0.5", "s LIKE '%b%'", "i + 1 = x"):
        assert ranges_of(text) == [], text


# ---- elements and keys -----------------------------------------------------------------------------------------------

HOLDS = [  # a condition, the column, and the keys that it looks for
    ("array_contains(tags, 'x')", "tags", [b"x"]),
    ("NOT array_contains(tags, 'x')", "tags", [b"x"]),
    ("array_contains(st.tags, 'x') AND i = i", "st.tags", [b"x"]),
    ("array_contains(nums, 5)", "nums", [5]),
    ("array_contains(nums, 5Y)", "nums", [5]),
    ("array_contains(xs, 0)", "xs", [0]),
    ("array_contains(xs, -0.0D)", "xs", [0]),
    ("array_contains(fs, CAST('NaN' AS DOUBLE))", "fs", [0x7FF8_0000_0000_0000]),
    ("arrays_overlap(tags, array('b', 'a', 'b'))", "tags", [b"a", b"b"]),
    ("arrays_overlap(array(1, 2), nums)", "nums", [1, 2]),
    ("map_contains_key(attrs, 'k')", "attrs", [b"k"]),
    ("array_contains(map_keys(attrs), 'k')", "attrs", [b"k"]),
    ("map_contains_key(byid, 7)", "byid", [7]),
    ("map_contains_key(st.attrs, 'k')", "st.attrs", [b"k"]),
]


@pytest.mark.parametrize(("text", "name", "points"), HOLDS, ids=[text for text, *_ in HOLDS])
def test_elements_and_keys_are_looked_up(text: str, name: str, points: list[Any]) -> None:
    leaf = next(leaf for leaf in leaves(bound(text)) if isinstance(leaf, Holds))
    (question,) = questions(leaf)
    assert isinstance(question, Values)
    assert str(question.column) == name
    assert question.points.tolist() == points
    assert question.type == leaf.type != question.column.type


NEEDS = [  # a condition on the value of a key, and the key
    ("attrs['k'] = 'v'", b"k"),
    ("attrs.k = 'v'", b"k"),
    ("attrs['k'] <=> 'v'", b"k"),
    ("NOT attrs['k'] = 'v'", b"k"),  # of the condition under NOT
    ("attrs['k'] IN ('v', NULL)", b"k"),
    ("attrs['k'] LIKE 'v%'", b"k"),
    ("attrs['k'] ILIKE 'v%'", b"k"),
    ("attrs['k'] RLIKE 'v'", b"k"),
    ("attrs['k'] IS NOT NULL", b"k"),
    ("CAST(attrs['k'] AS INT) > 5", b"k"),
    ("lower(attrs['k']) = 'v'", b"k"),
    ("st.attrs['k'] = 5", b"k"),
    ("attrs['a.b'] > 'v'", b"a.b"),
    ("element_at(attrs, 'k') = 'v'", b"k"),
    ("try_element_at(byid, 7) = 'v'", 7),
]


@pytest.mark.parametrize(("text", "key"), NEEDS, ids=[text for text, _ in NEEDS])
def test_the_value_of_a_key_needs_the_key(text: str, key: Any) -> None:
    (leaf,) = leaves(bound(text))
    assert isinstance(leaf, Unsupported)
    (question,) = questions(leaf)
    assert isinstance(question, Values)
    assert question.points.tolist() == [key]
    assert question.type == (pa.int32() if key == 7 else pa.string())


@pytest.mark.parametrize(
    "text",
    [
        "attrs['k'] IS NULL",
        "attrs['k'] <=> NULL",
        "coalesce(attrs['k'], 'v') = 'v'",
        "attrs['k'] = s",
        "element_at(tags, 1) = 'v'",
        "element_at(byid, 7L) = byid.x",
        "byid['k'] = 'v'",
        "array_contains(tags, 5)",
        "array_contains(tags, NULL)",
        "array_contains(tags, s)",
        "array_contains(nums, 5.0)",
        "array_contains(nums, 5D)",
        "array_contains(fs, 16777217)",
        "array_contains(s, 'x')",
        "array_contains(items.name, 'x')",
        "array_contains(items, 'x')",
        "map_contains_key(tags, 'x')",
        "map_contains_key(attrs, 7)",
        "arrays_overlap(tags, array('a', NULL))",
        "arrays_overlap(tags, array())",
        "arrays_overlap(tags, st.tags)",
        "arrays_overlap(xs, array(0D))",
        "arrays_overlap(nums, array(1, 2L))",
        "coalesce(array_contains(tags, 'x'), FALSE)",
        "CASE WHEN array_contains(tags, 'x') THEN 1 END = 1",
    ],
)
def test_what_else_there_is_of_containers_is_left_to_spark(text: str) -> None:
    (leaf,) = leaves(bound(text))
    assert isinstance(leaf, Unsupported)
    assert questions(leaf) == ()
    assert columns(leaf)


def test_elements_have_no_bounds() -> None:
    """Whatever is known of blocks; and evaluating them needs the column."""
    predicate = bound("array_contains(tags, 'x') AND i > 5")
    assert columns(predicate) in (["tags", "i"], ["i", "tags"])
    batch = pa.record_batch({"tags": pa.array([["x"]], SCHEMA.field("tags").type), "i": pa.array([9], pa.int32())})
    assert matching_rows(predicate, batch).tolist() == [True]
    (leaf,) = [leaf for leaf in leaves(predicate) if isinstance(leaf, Holds)]
    assert evaluate(leaf, NoStatistics(3)).tolist() == [EVERYTHING] * 3


class NoStatistics:
    """Units of which only the number is known."""

    def __init__(self, n: int) -> None:
        self.row_count = np.ones(n, np.int64)

    def __len__(self) -> int:
        return len(self.row_count)

    def zones(self, field: object) -> None:
        return None


lists = st.lists(st.none() | st.lists(st.none() | st.sampled_from(["a", "b", "", "é"]), max_size=4), max_size=6)


@examples(200)
@given(values=lists, sought=st.sampled_from(["a", "b", "", "z"]), skipped=st.integers(0, 3), absent=st.booleans())
def test_elements_of_rows_are_looked_at_as_sql_has_it(
    values: list[list[str | None] | None], sought: str, skipped: int, absent: bool
) -> None:
    """Of slices too, of arrays behind NULL, and of arrays in structs, which are NULL where the struct is."""
    whole = pa.array(values, pa.list_(pa.string()))
    if absent and len(whole):  # a NULL that covers elements
        mask = pa.array([i % 2 == 0 for i in range(len(whole))])
        plain = whole.fill_null([])
        whole = pa.ListArray.from_arrays(plain.offsets, plain.values, mask=mask)
    batch = pa.record_batch({"tags": whole}).slice(skipped)
    rows = whole.slice(skipped).to_pylist()
    for text in (f"array_contains(tags, '{sought}')", f"arrays_overlap(tags, array('{sought}', 'b'))"):
        wanted = {sought} if text.startswith("array_c") else {sought, "b"}
        assert truth(bound(text), batch).tolist() == [contains(row, wanted) for row in rows]
        for row, outcome in zip(rows, truth(bound(text), batch).tolist(), strict=True):
            assert outcome != TRUE or all(may_be(question, row) for question in asked(text))
    struct = pa.StructArray.from_arrays(
        [whole], ["tags"], mask=pa.array([i % 3 == 0 for i in range(len(whole))], pa.bool_())
    )
    nested = [None if i % 3 == 0 else row for i, row in enumerate(whole.to_pylist())][skipped:]
    inside = pa.record_batch({"st": struct}).slice(skipped)
    outcomes = truth(bound(f"array_contains(st.tags, '{sought}')"), inside).tolist()
    assert outcomes == [contains(row, {sought}) for row in nested]


def contains(row: list[str | None] | None, wanted: set[str]) -> int:
    if row is None:
        return NULL
    if wanted & set(row):
        return TRUE
    return NULL if None in row else FALSE


maps = st.lists(st.none() | st.dictionaries(st.integers(-2, 2), st.none() | st.just("v"), max_size=3), max_size=6)


@examples(100)
@given(values=maps, sought=st.integers(-2, 3), skipped=st.integers(0, 3))
def test_keys_of_rows_are_looked_at_as_sql_has_it(
    values: list[dict[int, str | None] | None], sought: int, skipped: int
) -> None:
    array = pa.array([None if v is None else list(v.items()) for v in values], pa.map_(pa.int32(), pa.string()))
    batch = pa.record_batch({"byid": array}).slice(skipped)
    outcomes = truth(bound(f"map_contains_key(byid, {sought})"), batch).tolist()
    rows = values[skipped:]
    assert outcomes == [NULL if row is None else TRUE if sought in row else FALSE for row in rows]


# ---- soundness over rows ---------------------------------------------------------------------------------------------

ROWS = {
    "i": [None, -3, 0, 5, 7, 2**31 - 1],
    "x": [None, float("nan"), -0.0, 0.0, 5.0, 1e300],
    "s": [None, "", "a", "abc", "Abc def", "ABC", "a%b", "\u212aa", "é abc", "word. x", "abc\nabc"],
    "b": [None, b"", b"abc", b"\xff"],
    "tags": [None, [], ["a"], [None], ["b", None], ["x", "a"]],
    "nums": [None, [5], [None, 7]],
    "xs": [None, [0.0], [float("nan")], [-0.0, None]],
    "attrs": [None, [], [("k", "v")], [("k", None), ("z", "a")]],
}
CONDITIONS = [
    *(f"i {op} {n}" for op in ("=", "!=", "<=>") for n in (0, 5, 7)),
    "i IN (0, 5, NULL)",
    *(f"x {op} {n}" for op in ("=", "!=") for n in ("0", "-0.0D", "CAST('NaN' AS DOUBLE)", "5")),
    "isnan(x)",
    *(f"s {op} '{text}'" for op in ("=", "!=") for text in ("", "a", "abc", "ABC")),
    *(f"s LIKE '{pattern}'" for pattern in ("a%", "%bc", "%b%c%", "a_c", "_bc%", "a\\\\%b", "abc%abc", "% %")),
    "s IN ('a', 'abc', 'q')",
    "left(s, 1) = 'a'",
    "contains(s, 'b')",
    "has_token(s, 'abc')",
    "has_token(s, 'word')",
    "instr(s, 'bc') > 0",
    "b = X'616263'",
    *(f"array_contains(tags, '{text}')" for text in "abx"),
    "arrays_overlap(tags, array('a', 'b'))",
    "array_contains(nums, 7)",
    "array_contains(xs, 0)",
    "array_contains(xs, CAST('NaN' AS DOUBLE))",
    "map_contains_key(attrs, 'z')",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_row_that_matches_answers_all_questions_with_may_be(condition: str) -> None:
    predicate = bind(parse(condition), SCHEMA)
    (name,) = columns(predicate)
    batch = pa.record_batch({name: pa.array(ROWS[name], SCHEMA.field(name).type)})
    assert is_supported(predicate)
    assert any(map(questions, leaves(predicate)))
    for leaf in leaves(predicate):
        for value, outcome in zip(ROWS[name], truth(leaf, batch).tolist(), strict=True):
            assert outcome != TRUE or all(may_be(question, value) for question in questions(leaf)), value


def test_what_only_spark_evaluates_raises_on_rows() -> None:
    batch = pa.record_batch({"s": pa.array(["a"])})
    leaf = bound("s RLIKE '(?=a)'")
    assert isinstance(leaf, TextMatch)
    with pytest.raises(UnsupportedPredicate, match="look-around"):
        truth(leaf, batch)
