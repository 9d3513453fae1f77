"""Substrings, elements of arrays and keys of maps: what Spark answers, by rows and by questions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import InvalidPredicate, UnsupportedPredicate
from secateur.io.spark.file_reader import spark_schema
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.bound import Holds, TextMatch, Unsupported
from secateur.pruning.predicate.bound_walks import all_leaves
from secateur.pruning.predicate.patterns.substrings import CASE_TRICKY
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.questions import Texts, questions
from tests.support.checks.laws import check_table
from tests.support.checks.naive_filters import may_be, text_may_be
from tests.support.checks.oracle import ask, rows
from tests.support.drawn.text_expressions import expressions, likes, quoted
from tests.support.profiles import examples, one_in, some
from tests.support.tables import WriteTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TEXTS = ["", "error", "an Error: 42", "ERROR.", "a%b_c\\d", "naïve word", "word", "sword", "a word", "words", "err\nor"]
TEXTS += [
    "\u212aelvin K",
    "İstanbul",
    "\u0131i",
    "ﬁne",
    "ß",
    "x=1;id=22;",
    "2024-03-31 WARN [main] disk full",
    "😀word😀",
    "é",
    None,
]
TAGS = [None, [], ["a"], ["b", None], [None], ["a", "b"], ["A"], ["é", "x"], ["a", "a", None]]
NUMBERS = [None, [], [1], [2, None], [-5, 7], [2**40], [None]]
FLOATS = [None, [], [0.0], [-0.0], [float("nan"), None], [0.5, 1.0], [float("inf")]]
ATTRS = [None, [], [("k", "v")], [("k", None)], [("K", "5"), ("z", "v")], [("k", "5"), ("a.b", "v")]]

TEXT_CONDITIONS = [
    *(
        f"s LIKE {quoted(p)}"
        for p in ("%error%", "%a\\%b\\_%", "%d", "_rror%", "%word", "word%", "%o_d", "%\\\\%", "%\ufffd%")
    ),
    *(f"s NOT LIKE '{p}'" for p in ("%r%r%", "%e_r%")),
    "s LIKE '%a!%b!_%' ESCAPE '!'",
    *(
        f"s ILIKE '{p}'"
        for p in ("%error%", "E%", "%k%", "ISTANBUL", "%İSTAN%", "%fine", "ß", "%i%", "%WARN [MAIN]%", "É")
    ),
    "s NOT ILIKE '%ERR_R%'",
    "s ILIKE '%A!%B%' ESCAPE '!'",
    *(
        f"{name}(s) LIKE '{p}'"
        for name in ("lower", "upper")
        for p in ("%err%", "%ERR%", "%i%", "%K%", "SS", "%fi%", "ERROR_")
    ),
    *(f"{name}(s) = '{p}'" for name in ("lower", "upper") for p in ("error", "ERROR", "SS", "é", "")),
    "lower(s) IN ('error', 'word')",
    *(
        f"s RLIKE {quoted(p)}"
        for p in ("^err", "r{2}or", "wor+d$", "error|WARN", "\\d+-\\d{2}", "id=[0-9]+;", "^a%b_c\\\\", "a.word")
    ),
    *(
        f"s RLIKE {quoted(p)}"
        for p in ("(?i)error", "err.or", "(?s)err.or", "\\Q%b_\\E", "\\bword\\b", "[.]$", "\\[(main|x)\\]", "\\z")
    ),
    "s RLIKE r'\\d+;id'",
    "regexp_like(s, 'wo(r|x)d')",
    "contains(s, 'a%')",
    "startswith(lower(s), 'err')",
    "instr(s, 'or') > 0",
    "instr(s, '') > 0",
]
WORDS = ["word", "error", "42", "naïve", "K", "id"]
ELEMENT_CONDITIONS = [
    *(f"array_contains(tags, '{tag}')" for tag in ("a", "b", "é", "", "z")),
    "NOT array_contains(tags, 'a')",
    "array_contains(tags, 'a') IS NULL",
    "array_contains(tags, 'a') OR rid = 3",
    "array_contains(st.tags, 'a')",
    "arrays_overlap(tags, array('a', 'é'))",
    "arrays_overlap(array('z'), tags)",
    "arrays_overlap(tags, array('a', NULL))",
    "arrays_overlap(nums, array(1, 2))",
    *(f"array_contains(nums, {n})" for n in ("1", "2L", "-5Y", "1099511627776", "1.0", "7D")),
    *(
        f"array_contains(xs, {n})"
        for n in ("0", "-0.0D", "CAST('NaN' AS DOUBLE)", "0.5", "1e0", "CAST('inf' AS FLOAT)")
    ),
    *(f"arrays_overlap(xs, array({n}))" for n in ("0D", "-0.0D", "CAST('NaN' AS DOUBLE)")),
    "array_contains(days, DATE '2024-03-31')",
    "array_contains(moments, TIMESTAMP '2024-03-31 01:30:00Z')",
    "array_contains(sums, 1.50)",
    "array_contains(sums, 2)",
    *(f"map_contains_key(attrs, '{key}')" for key in ("k", "K", "nope")),
    "array_contains(map_keys(attrs), 'k')",
    *(
        f"attrs['k'] {test}"
        for test in ("= 'v'", "!= 'v'", "<=> 'v'", "<=> NULL", "IN ('v', '5')", "LIKE '_'", "ILIKE 'V'")
    ),
    "attrs['k'] IS NOT NULL",
    "attrs['k'] IS NULL",
    "attrs.k = '5'",
    "attrs['a.b'] = 'v'",
    "CAST(attrs['z'] AS STRING) > 'a'",
    "try_cast(attrs['k'] AS INT) = 5",
    "element_at(attrs, 'k') = 'v'",
    "length(attrs['k']) = 1",
    "byid[7] = 'v'",
    "element_at(byid, 7) = 'v'",
    "map_contains_key(byid, 7L)",
    "st['f'] = 3",
    "coalesce(array_contains(tags, 'a'), FALSE)",
    "CASE WHEN array_contains(tags, 'a') THEN rid = 2 ELSE FALSE END",
]


def some_rows() -> pa.Table:
    n = 42

    def every(values: Sequence[Any]) -> list[Any]:
        return [values[i % len(values)] for i in range(n)]

    days, moments = pa.list_(pa.date32()), pa.list_(pa.timestamp("us", "UTC"))
    march = [None, [19813], [19812, None], []]
    micros = [None, [1_711_848_600_000_000], [0, None], []]
    tags = pa.array(every(TAGS), pa.list_(pa.string()))
    numbers = pa.array([i % 5 for i in range(n)], pa.int32())
    return pa.table(
        {
            "rid": pa.array(range(n), pa.int64()),
            "s": pa.array(every(TEXTS), pa.string()),
            "tags": tags,
            "nums": pa.array(every(NUMBERS), pa.list_(pa.int64())),
            "xs": pa.array(every(FLOATS), pa.list_(pa.float64())),
            "days": pa.array(every(march), days),
            "moments": pa.array(every(micros), moments),
            "sums": pa.array(every([None, [150], [200, None], []]), pa.list_(pa.int64())).cast(
                pa.list_(pa.decimal128(21, 2))
            ),
            "attrs": pa.array(every(ATTRS), pa.map_(pa.string(), pa.string())),
            "byid": pa.array(every([None, [], [(7, "v")], [(8, "v"), (7, None)]]), pa.map_(pa.int32(), pa.string())),
            "st": pa.StructArray.from_arrays(
                [tags, numbers], ["tags", "f"], mask=pa.array([i % 7 == 6 for i in range(n)])
            ),
        }
    )


@pytest.mark.parametrize(
    "conditions", [one_in(2, TEXT_CONDITIONS), one_in(2, ELEMENT_CONDITIONS)], ids=["texts", "elements"]
)
def test_rows_are_those_of_spark(spark: SparkSession, write_table: WriteTable, conditions: list[str]) -> None:
    """Some by every read path; and the rows that match answer all questions with "may be"."""
    root = write_table({"rows.parquet": some_rows()}, row_group_size=5)
    answers = check_table(spark, root, conditions, read_paths=some(10), build={"bloom": ["s"]})
    left_out = set(conditions) - set(answers.truth)
    assert not left_out, "Spark refuses them"
    check_questions(spark.read.parquet(str(root)), some_rows(), conditions)


def check_questions(frame: DataFrame, table: pa.Table, conditions: Sequence[str]) -> None:
    """That every leaf which Spark finds TRUE on a row has all its questions answered "may be" there."""
    bound_leaves = (leaf for text in conditions for leaf in all_leaves(bind(parse(text), table.schema)))
    by_text = {str(leaf): leaf for leaf in bound_leaves if questions(leaf)}
    truth = ask(frame, list(by_text)).truth
    assert set(truth) == set(by_text)
    for text, leaf in by_text.items():
        for question in questions(leaf):
            values = column_of(table, question.column.path)
            for rid, value in truth[text].items():
                assert value is not True or may_be(question, values[rid]), (text, values[rid])


def column_of(table: pa.Table, path: tuple[str, ...]) -> list[Any]:
    values = table[path[0]].to_pylist()
    for name in path[1:]:
        values = [value and value[name] for value in values]
    return values


def test_which_conditions_ask_something() -> None:
    """So that the questions above are not all empty."""
    schema = some_rows().schema
    silent = [
        text
        for text in [*TEXT_CONDITIONS, *ELEMENT_CONDITIONS]
        if not any(questions(leaf) for leaf in all_leaves(bind(parse(text), schema)))
    ]
    assert len(silent) == 30, silent


def test_a_whole_token_is_one_for_spark_too(spark: SparkSession, write_table: WriteTable) -> None:
    table = sec.open_table(str(write_table({"rows.parquet": some_rows()}, row_group_size=5)))
    for word in WORDS:
        expected = sec.prune(table, sec.has_token("s", word)).to_arrow(["rid"])
        assert expected.num_rows
        for predicate in (sec.has_token("s", word), f"has_token(s, '{word}') AND rid >= 0"):
            assert rows(sec.prune(table, predicate).to_spark(spark, columns=["rid"]).toArrow()) == rows(expected)
    check_questions(
        spark.createDataFrame(some_rows(), spark_schema(some_rows().schema)),
        some_rows(),
        [str(sec.has_token(text, word)) for word in WORDS for text in ("s", sec.call_function("lower", sec.col("s")))],
    )


@st.composite
def pattern_conditions(draw: st.DrawFn) -> tuple[str, str]:
    """A condition on text, and a text for which it is often TRUE."""
    if draw(st.booleans()):
        pattern, _, text = draw(likes())
        operand = draw(st.sampled_from(["s LIKE", "s LIKE", "lower(s) LIKE", "upper(s) LIKE", "s ILIKE"]))
        return f"{operand} {quoted(pattern)}", text
    pattern, text = draw(expressions())
    return f"{draw(st.sampled_from(['s', 's', 'lower(s)']))} RLIKE {quoted(pattern)}", text


@examples(4, shrink=False)
@given(drawn=st.lists(pattern_conditions(), min_size=60, max_size=60))
def test_java_finds_what_holds_the_substrings(spark: SparkSession, drawn: list[tuple[str, str]]) -> None:
    texts = list(dict.fromkeys([*(text for _, text in drawn), *(text for text in TEXTS if text is not None)]))
    table = pa.table({"rid": pa.array(range(len(texts)), pa.int64()), "s": pa.array(texts, pa.string())})
    conditions = list(dict.fromkeys(condition for condition, _ in drawn))
    truth = ask(spark.createDataFrame(table), conditions).truth
    event(f"{len(truth) * 10 // len(conditions) * 10} % of the conditions have an answer")
    for condition, answers in truth.items():
        for leaf in all_leaves(bind(parse(condition), table.schema)):
            for question in questions(leaf):
                assert isinstance(leaf, TextMatch) or not isinstance(question, Texts) or not question.folded
                for rid, value in answers.items():
                    assert value is not True or may_be(question, texts[rid]), (condition, texts[rid])


def test_texts_that_are_no_utf8_hold_the_substrings(spark: SparkSession) -> None:
    """Spark matches them as decoded: U+FFFD is found in place of what is no UTF-8, and ASCII letters are kept."""
    odd = [
        b"a\xff b",
        b"\xc3ab",
        b"ab\xc3",
        b"\xed\xa0\x80ab",
        b"\xf0\x9f\x98ab",
        b"\xc0\x80a",
        b"K\xe2\x84ab",
        b"\xefab\xbf\xbd",
    ]
    table = pa.table({"rid": pa.array(range(len(odd)), pa.int64()), "s": pa.array(odd, pa.binary())})
    frame = spark.createDataFrame(table).selectExpr("rid", "CAST(s AS STRING) AS s")
    parts = ["a", "ab", "\ufffd", "\ufffda", "ab\ufffd", "b", "k", "\ufffd\ufffdab", "a\ufffd b"]
    shapes = [
        "s LIKE '%{}%'",
        "s LIKE '%{}_%'",
        "s LIKE '{}_%'",
        "s RLIKE '^{}'",
        "s RLIKE '{}'",
        "lower(s) LIKE '%{}%'",
    ]
    conditions = [shape.format(part) for shape in shapes for part in parts]
    conditions += [str(sec.has_token("s", word)) for word in ("a", "b", "ab")]
    frame.createOrReplaceTempView("odd_texts")
    columns = ", ".join(f"({condition}) AS c{i}" for i, condition in enumerate(conditions))
    answers = spark.sql(f"SELECT rid, {columns} FROM odd_texts").collect()
    schema = pa.schema({"s": pa.string()})
    true_rows = 0
    for i, condition in enumerate(conditions):
        for leaf in all_leaves(bind(parse(condition), schema)):
            for question in (question for question in questions(leaf) if isinstance(question, Texts)):
                for row in answers:
                    true_rows += bool(row[f"c{i}"])
                    assert not row[f"c{i}"] or text_may_be(question, odd[row.rid]), (condition, odd[row.rid])
    assert true_rows > 20


def test_no_other_character_turns_into_ascii_in_spark(spark: SparkSession) -> None:
    """Spark maps case by ICU, which knows another version of Unicode than Python."""
    characters = [chr(code) for code in range(128, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    frame = spark.createDataFrame(pa.table({"c": pa.array(characters, pa.string())}))
    tricky = frame.where("lower(c) RLIKE '[\\\\x{0}-\\\\x{7F}]' OR lower(c) = ''")
    assert {row.c for row in tricky.collect()} == CASE_TRICKY


def test_c19_elements_with_a_collation_are_left_to_spark(spark: SparkSession, tmp_path: Any) -> None:
    text = "'A' COLLATE UTF8_LCASE"
    spark.sql(
        f"SELECT id AS rid, array({text}) AS tags, map('k', {text}) AS attrs, named_struct('t', array({text})) AS st, "
        "array('A') AS plain FROM range(4)"
    ).coalesce(1).write.parquet(str(tmp_path / "lake"))
    table = sec.open_table(str(tmp_path / "lake"))
    for condition in ("array_contains(tags, 'a')", "attrs['k'] = 'a'", "array_contains(st.t, 'a')"):
        plan = sec.prune(table, condition)
        assert not any(isinstance(leaf, Holds) for leaf in all_leaves(plan.predicate)), condition
        assert not any(questions(leaf) for leaf in all_leaves(plan.predicate)), condition
        with pytest.raises(UnsupportedPredicate):
            plan.to_arrow()
        expected = spark.read.parquet(str(tmp_path / "lake")).where(condition)
        assert expected.count() == plan.to_spark(spark).count() == 4, condition
    assert sec.prune(table, "array_contains(plain, 'a')").count() == 0
    assert sec.prune(table, "array_contains(plain, 'A')").to_spark(spark).count() == 4


def test_what_is_left_of_a_container_is_named() -> None:
    schema = some_rows().schema
    leaf = bind(parse("array_contains(tags, 5)"), schema)
    assert isinstance(leaf, Unsupported)
    assert "elements of tags" in leaf.reason
    with pytest.raises(InvalidPredicate):
        bind(parse("s LIKE 'a\\\\b'"), schema)
