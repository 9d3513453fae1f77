"""Patterns, lower case and places of texts on rows: what Spark answers, or nothing."""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.io.spark.version import IS_3
from secateur.pruning.bounds.outcomes import EVERYTHING, FALSE, NULL, TRUE
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.bound_walks import left_to_spark
from secateur.pruning.predicate.patterns.java_regex import Untranslatable, translated
from secateur.pruning.predicate.patterns.letter_case import (
    LOCALES,
    has_doubtful,
    has_doubtful_upper,
    lowered_texts,
    uppered_texts,
)
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.rows.truth import truth
from tests.support.checks.oracle import ask
from tests.support.drawn.text_expressions import expressions, likes, quoted
from tests.support.profiles import FULL, examples, one_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUTCOME = {True: TRUE, False: FALSE, None: NULL}
ENDS = ("", "\n", "\r", "\r\n", "\n\r", "\u0085", "\u2028", "\n\n")
TEXTS = [
    "",
    "a",
    "Ab",
    "a b_c",
    "ERROR 42",
    "naïve I",
    "İa",
    "ΑΣ",
    "\u212aelvin",
    "ﬁne ß",
    "😀b",
    "Ía",
    "I\u0301",
    None,
]
NO_UTF8 = [b"a\xffb", b"\xc3ab", b"ab\xc3", b"\xed\xa0\x80ab", b"\xf0\x9f\x98ab", b"\xc0\x80a", b"\xefab\xbf\xbd"]
CHARACTERS = [chr(code) for code in range(128, 0x110000) if not 0xD800 <= code < 0xE000]
JAVA_SYNTAX = [r"\Z", r"\S", r"\W", r"[^\d\s]", r"[\w.-]", r"\Qa.b\E", r"\x41", r"\u00e9", r"\x{1F600}", r"[^é]"]
JAVA_SYNTAX += [r"[\D]", r"a{1,3}", r"(?<n>a)", r"(?=a)", r"a++", r"\p{L}", r"\1", r"[a-c&&b]", r"\R", r"$\n", r"\v"]
JAVA_SYNTAX += [r"[ -~]", r"\t", r"\r?$", r"(?:a$)", r"^b?"]


def of_locales(characters: list[str]) -> list[str]:
    """Those that are asked for in every locale: the assigned ones, as no locale has rules for others."""
    return characters if FULL else [c for c in characters if unicodedata.category(c) not in ("Cn", "Co")]


@st.composite
def java_expressions(draw: st.DrawFn) -> tuple[str, str]:
    """A Java regular expression, of the syntax that RE2 shares and other, and a text in which it may be found."""
    pattern, text = draw(expressions())
    if draw(st.booleans()):
        pattern = draw(st.permutations([pattern, draw(st.sampled_from(JAVA_SYNTAX))]))[0] + draw(
            st.sampled_from(JAVA_SYNTAX)
        )
    flags = draw(st.sampled_from(["", "", "", "(?i)", "(?s)", "(?is)"]))
    return flags + pattern, text + draw(st.sampled_from(ENDS))


PARTS = [
    "upper({})",
    "lower({})",
    "initcap({})",
    "trim({})",
    "ltrim({})",
    "rtrim({})",
    "btrim({})",
    "replace({}, 'a', 'bé')",
    "replace({}, '', 'b')",
    "concat({}, '-', lower(s))",
    "coalesce(nullif({}, 'a'), 'none')",
    "split({}, ' ')[0]",
    "get(split({}, '\\\\.'), 1)",
    "get(split({}, ' ', 2), 1)",
    "get(split({}, 'a', -1), 2)",
    "split_part({}, ' ', 1)",
    "split_part({}, 'a', -2)",
    "split_part({}, '😀', 2)",
    "CASE WHEN upper(s) LIKE 'A%' THEN {} ELSE 'B' END",
]


@st.composite
def computed(draw: st.DrawFn) -> tuple[str, str]:
    """A condition on a text computed from `s` by some functions, and a text for which it is often TRUE."""
    text = draw(st.text([*"aAbBiIßéÉ\u03c3😀 .-_1"], max_size=8))
    value, like = "s", draw(st.sampled_from([text[:2], text.lower(), text.upper(), text.strip(), text[1:3]]))
    for _ in range(draw(st.integers(1, 2))):
        start, length = draw(st.integers(-4, 4)), draw(st.integers(-1, 5))
        parts = [*PARTS, f"substring({{}}, {start}, {length})", f"substring({{}}, {start})"]
        value = draw(st.sampled_from(parts)).format(value)
    literal = quoted(like)
    tests = [f"= {literal}", f"<> {literal}", f"IN ({literal}, 'a', '')", f"> {literal}", f"LIKE {quoted(like + '%')}"]
    tests += [f"ILIKE {quoted('%' + like)}", "RLIKE '^[aA].*'", "IS NULL", "= upper(s)", "<=> trim(s)"]
    return f"{value} {draw(st.sampled_from(tests))}", text


@st.composite
def conditions(draw: st.DrawFn) -> tuple[str, str]:
    """A condition on the text `s`, and a text for which it is often TRUE."""
    match draw(st.sampled_from(["rlike", "rlike", "like", "lower", "place", "computed", "computed"])):
        case "rlike":
            pattern, text = draw(java_expressions())
            return f"{draw(st.sampled_from(['s', 's', 'lower(s)']))} RLIKE {quoted(pattern)}", text
        case "like":
            pattern, _, text = draw(likes())
            operand = draw(st.sampled_from(["s LIKE", "lower(s) LIKE", "s ILIKE", "s ILIKE", "upper(s) LIKE"]))
            return f"{operand} {quoted(pattern)}", draw(st.sampled_from([text, text.upper(), text.lower()]))
        case "computed":
            return draw(computed())
        case "lower":
            text = draw(st.text("aAbIİiÍΣé", max_size=4))
            literal = quoted(text.lower())
            return draw(
                st.sampled_from([f"lower(s) = {literal}", f"lower(s) IN ({literal}, 'a')", f"lower(s) < {literal}"])
            ), text
        case _:
            text = draw(st.text("abé😀", max_size=8))
            part = quoted(draw(st.sampled_from([text[1:2], text[1:3], text[-1:], "a", "é", ""])))
            start = draw(st.integers(-1, 5))
            place = draw(
                st.sampled_from([f"instr(s, {part})", f"locate({part}, s, {start})", f"position({part} IN s)"])
            )
            place += draw(st.sampled_from(["", " + 1", " * 2"]))
            test = draw(st.sampled_from([f"= {start}", f"> {start}", f"<= {start}", f"IN (2, {start})", "= length(s)"]))
            return f"{place} {test}", text


def of_bytes(texts: list[bytes | None]) -> pa.Array:
    """Texts that may be no UTF-8."""
    binary = pa.array(texts, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(binary), binary.buffers())


@examples(6, shrink=False)
@given(drawn=st.lists(conditions(), min_size=80, max_size=80))
def test_rows_are_those_of_spark(spark: SparkSession, drawn: list[tuple[str, str]]) -> None:
    """Where a condition is evaluated here at all; most are, on most rows."""
    texts = [text if text is None else text.encode() for text in (*(text for _, text in drawn), *TEXTS)] + NO_UTF8
    table = pa.table({"rid": pa.array(range(len(texts)), pa.int64()), "s": pa.array(texts, pa.binary())})
    frame = spark.createDataFrame(table).selectExpr("rid", "CAST(s AS STRING) AS s")
    batch = pa.record_batch({"s": of_bytes(texts)})
    counted: Counter[str] = Counter()
    for condition, expected in ask(frame, list(dict.fromkeys(text for text, _ in drawn))).truth.items():
        predicate = bind(parse(condition), batch.schema)
        if any(left_to_spark(predicate)):
            counted["conditions left to Spark"] += 1
            continue
        counted["conditions"] += 1
        for rid, outcome in enumerate(truth(predicate, batch).tolist()):
            wanted = OUTCOME[expected[rid]]
            assert outcome == wanted or (outcome & wanted and outcome & (outcome - 1)), (condition, texts[rid], outcome)
            counted["rows decided" if outcome == wanted else "rows left to Spark"] += 1
    assert counted["conditions"] > counted["conditions left to Spark"], counted
    assert counted["rows decided"] > 5 * counted["rows left to Spark"], counted


def test_lower_case_is_that_of_spark(spark: SparkSession) -> None:
    """Character by character, from the mappings of ICU and of Java, but for the doubtful ones."""
    known = [c for c, doubtful in zip(CHARACTERS, has_doubtful(pa.array(CHARACTERS)), strict=True) if not doubtful]
    assert len(known) > 0.94 * len(CHARACTERS)
    lowered = spark.createDataFrame(pa.table({"c": known})).selectExpr("c", "lower(c) AS l").toArrow()
    assert lowered["l"].to_pylist() == lowered_texts(pa.array(lowered["c"].to_pylist()), "").to_pylist()
    known = of_locales(known)
    java = spark._jvm.org.apache.commons.lang3.StringUtils  # type: ignore[union-attr]
    for locale in one_in(2, (*LOCALES, "az", "de", "el", "nl")):
        ours = lowered_texts(pa.array(known), locale.replace("az", "tr") if locale in ("az", *LOCALES) else "")
        theirs = java.lowerCase("|".join(known), spark._jvm.java.util.Locale.forLanguageTag(locale))  # type: ignore[union-attr]
        assert theirs.split("|") == ours.to_pylist(), locale


def test_upper_case_is_that_of_spark(spark: SparkSession) -> None:
    """Character by character, as lower case is."""
    doubtful = has_doubtful_upper(pa.array(CHARACTERS))
    known = [c for c, is_doubtful in zip(CHARACTERS, doubtful, strict=True) if not is_doubtful]
    assert len(known) > 0.94 * len(CHARACTERS)
    raised = spark.createDataFrame(pa.table({"c": known})).selectExpr("c", "upper(c) AS u").toArrow()
    assert raised["u"].to_pylist() == uppered_texts(pa.array(raised["c"].to_pylist()), "").to_pylist()
    known = of_locales(known)
    jvm = spark._jvm
    assert jvm is not None
    for locale in one_in(2, (*LOCALES, "az", "de", "el", "nl", "hy")):
        by_rule = locale.replace("az", "tr") if locale in ("az", *LOCALES) else ""
        ours = uppered_texts(pa.array(["i", "\u0131", *known]), by_rule).to_pylist()
        text, of_java = "|".join(["i", "\u0131", *known]), jvm.java.util.Locale.forLanguageTag(locale)
        assert jvm.org.apache.commons.lang3.StringUtils.upperCase(text, of_java).split("|") == ours, locale
        if IS_3:  # without ICU
            continue
        icu = jvm.com.ibm.icu.lang.UCharacter.toUpperCase(jvm.com.ibm.icu.util.ULocale(locale), text)
        assert icu.split("|") == ours, locale


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(?=a)b", r"'\(\?=a'"),
        ("a++", r"possessive quantifier \+\+"),
        (r"\p{L}", r"\\p"),
        (r"(a)\1", r"\\1"),
        ("[a&&b]", "& in a class"),
        ("[[a]b]", r"\[ in a class"),
        ("(a?)*", r"\* of what may be empty"),
        ("$a", r"something after \$"),
        ("[\\u0080-\\uffff]", "half characters"),
        ("a{1001}", "more than 1000 times"),
        ("(?m)^a", "flags"),
    ],
)
def test_what_is_left_to_java_is_named(pattern: str, reason: str) -> None:
    with pytest.raises(Untranslatable, match=reason):
        translated(pattern)
    (left,) = left_to_spark(bind(parse(f"s RLIKE {quoted(pattern)}"), pa.schema({"s": pa.string()})))
    assert "only Java" in left


def test_texts_that_are_no_utf8_are_found_by_their_bytes_or_left_to_spark() -> None:
    batch = pa.record_batch({"s": of_bytes([b"a\xff error b", b"error\xff", b"x\xc3", None])})

    def found(condition: str) -> list[int]:
        return truth(bind(parse(condition), batch.schema), batch).tolist()  # type: ignore[no-any-return]

    assert found("s LIKE '%error%'") == [TRUE, TRUE, FALSE, NULL]
    assert found("s LIKE 'a%b'") == [TRUE, FALSE, FALSE, NULL]
    assert found("s LIKE '%e_ror%'") == [EVERYTHING, EVERYTHING, EVERYTHING, NULL]
    assert found("has_token(s, 'error')") == [TRUE, FALSE, FALSE, NULL]
    assert found("instr(s, 'b') = 10") == [TRUE, FALSE, FALSE, NULL]
