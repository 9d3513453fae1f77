"""Values at a path into JSON text: what Spark answers, or nothing; and no row is lost, by whichever structure."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import EvaluationError, InvalidOption
from secateur.pruning.bounds import rangeset
from secateur.pruning.functions.json_fields import fields_of
from secateur.pruning.functions.json_schema import field_in, schema_of
from secateur.pruning.functions.json_text import path_of, substrings_of, values_at
from secateur.pruning.predicate.sql.parse import parse
from secateur.values.kinds import Kind
from tests.support.checks.laws import check_table
from tests.support.drawn.text_expressions import quoted
from tests.support.enabled_session import pruning, settings
from tests.support.profiles import examples, one_in
from tests.support.tables import write_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATHS = ["$.a", "$.user", "$.a.b", "$['a']", "$['a b']", "$.a[0]", "$[0]", "$[1].a", "$.a[1].user", "$.a-b"]
NAMES = st.sampled_from(["a", "a", "b", "user", "user", "a b", "a-b", "é", "\t", 'q"', ""])
TEXTS = st.one_of(
    st.sampled_from(
        ["u-1", "7", "true", "null", "{}", "é", "ab/cd", "it's", 'say "x"', "back\\slash", "\x01", "😀", ""]
    ),
    st.text("ab12 é'\"\\/\n\x7f\u2028😀{}[]:,", max_size=8),
)
NUMBERS = st.one_of(
    st.integers(-20, 20), st.sampled_from([2**63, -(2**63), 10**40, 1.5, 1e300, -0.0, 1e-7, 10.0, 12345678.0])
)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)


class Repeated(dict[str, Any]):
    """An object whose members may have one name: json writes what `items` gives."""

    def __init__(self, members: list[tuple[str, Any]]) -> None:
        super().__init__({"": members} if members else {})
        self.members = members

    def items(self) -> Any:
        return self.members


OBJECTS: Callable[[st.SearchStrategy[Any]], st.SearchStrategy[Any]] = lambda below: st.lists(  # noqa: E731
    st.tuples(NAMES, below), max_size=4
).map(Repeated)
VALUES = st.recursive(SCALARS, lambda below: st.one_of(st.lists(below, max_size=3), OBJECTS(below)), max_leaves=8)
ROOTS = st.one_of(OBJECTS(VALUES), OBJECTS(SCALARS), OBJECTS(SCALARS), VALUES)
ODD = [
    "",
    " ",
    "x",
    "{",
    '{"a":01}',
    '{"a":-0}',
    '{"a":+1}',
    '{"a":.5}',
    '{"a":1.}',
    '{"a":NaN}',
    '{"a":-Infinity}',
    '{"a":1,}',
    '{"a":1} rest',
    '{"a":1}{"a":2}',
    '{"a":null,"a":3}',
    '{"a":{"c":1},"a":{"b":2}}',
    '{"a":"\\u0075\\u0031"}',
    '{"\\u0061":"x"}',
    '{"a":"\\ud83d\\ude00"}',
    '{"a":"\\ud83d"}',
    '{"a":"\\x"}',
    '{"a":"\\u00"}',
    '{"a":"tab\there"}',
    "{'a':'x'}",
    "{'a':'it\\'s'}",
    '{"a":"it\\\'s"}',
    '\ufeff{"a":1}',
    '{"a":1//x\n}',
    '{"a":tru}',
    '{"user":7,"msg":"cut',
    '[null,{"a":null}]',
    '{"a":[null,{"user":2}]}',
    '{"a":"' + "x" * 60_000 + '"}',
    '{"' + "n" * 60_000 + '":1,"a":2}',
    '{"b":' + "1" * 1200 + ',"a":2}',
    '{"b":' + "[" * 1200 + "]" * 1200 + ',"a":2}',
    '{"a":1e400}',
    "\u00a0{}",
    '\x0b{"a":1}',
    '{"a"\u00a0:1}',
    '{"a":1}\x00',
    '{"a":"\x00"}',
    '{a:1}',
]  # fmt: skip


@st.composite
def json_texts(draw: st.DrawFn) -> str:
    """A JSON text in some way of writing, and now and then one that is almost one."""
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:")]))
    text = json.dumps(draw(ROOTS), ensure_ascii=draw(st.booleans()), separators=separators)
    if draw(st.booleans()):
        text = text.replace("u", "\\u0075") if draw(st.booleans()) else draw(st.sampled_from([" ", "\n"])) + text + "  "
    if draw(st.integers(0, 3)) == 0 and text:
        at = draw(st.integers(0, len(text) - 1))
        text = (
            text[:at]
            + draw(st.sampled_from(["", "", '"', "'", "}", "]", ",", "\\", "0", " ", "\x02"]))
            + text[at + 1 :]
        )
    return text


@examples(6, shrink=False)
@given(drawn=st.lists(json_texts(), min_size=150, max_size=150))
def test_values_are_those_of_spark(spark: SparkSession, drawn: list[str]) -> None:
    """C56: missing, null and mistyped members, and texts that are no JSON."""
    texts = pa.array([*drawn, *ODD, None], pa.string())
    frame = spark.createDataFrame(pa.table({"s": texts}))
    columns = [f"get_json_object(s, {quoted(path)}) AS p{i}" for i, path in enumerate(PATHS)]
    expected = frame.selectExpr(*columns).toArrow()
    known = 0
    for i, text in enumerate(PATHS):
        path = path_of(text)
        assert path is not None
        values = values_at(texts, path)
        pairs = zip(values.values.to_pylist(), values.unknown.tolist(), expected[f"p{i}"].to_pylist(), strict=True)
        for row, (value, unknown, of_spark) in enumerate(pairs):
            assert unknown or value == of_spark, (text, texts[row])
            known += not unknown
            _holds_its_substrings(texts[row].as_py(), path, of_spark)
    assert known > 0.85 * len(texts) * len(PATHS)


SCHEMAS: dict[str, list[tuple[tuple[str, ...], pa.DataType]]] = {  # names of some fields of each, and their types
    "a STRING, b INT, user DOUBLE": [(("a",), pa.string()), (("b",), pa.int32()), (("user",), pa.float64())],
    "a STRUCT<b: STRING, user: BIGINT>, user BOOLEAN": [
        *((("a", "b"), pa.string()), (("a", "user"), pa.int64()), (("user",), pa.bool_())),
    ],
    "a TINYINT, b STRUCT<a: STRUCT<a: STRING>>, user ARRAY<STRING>, `a b` SMALLINT": [
        *((("a",), pa.int8()), (("b", "a", "a"), pa.string()), (("a b",), pa.int16())),
    ],
}
JSON_SETTINGS = ("spark.sql.json.enablePartialResults", "spark.sql.optimizer.enableJsonExpressionOptimization")


@examples(6, shrink=False)
@given(drawn=st.lists(json_texts(), min_size=150, max_size=150))
def test_fields_of_a_schema_are_those_of_spark(spark: SparkSession, drawn: list[str]) -> None:
    """C56: missing, null, repeated and mistyped fields, at each level, and texts that are no JSON."""
    texts = pa.array([*drawn, *ODD, None], pa.string())
    frame = spark.createDataFrame(pa.table({"s": texts}))
    for schema, asked in SCHEMAS.items():
        columns = [
            f"from_json(s, '{schema}').{'.'.join(f'`{n}`' for n in names)} AS c{i}"
            for i, (names, _) in enumerate(asked)
        ]
        for partial in ("true", "false"):
            with settings(spark, {"spark.sql.json.enablePartialResults": partial}):
                expected = frame.selectExpr(*columns).toArrow()
            for i, (names, type_) in enumerate(asked):
                part = field_in(schema, names)
                assert part is not None
                assert part[1] == names
                values = fields_of(texts, schema_of(part[0]), names, type_)
                of_spark = expected[f"c{i}"].to_pylist()
                pairs = zip(values.values.to_pylist(), values.unknown.tolist(), of_spark, strict=True)
                for row, (value, unknown, wanted) in enumerate(pairs):
                    assert unknown or value == wanted, (schema, names, texts[row])
                    if type_ == pa.string():
                        _holds_its_substrings(texts[row].as_py(), names, wanted, is_encoded=True)


def test_fields_that_leave_no_choice_are_known() -> None:
    texts = ['{"a":"x","b":7,"c":{"d":true}}', '{"b":null}', "{}", '{"c":null,"a":5}', '{"c":{},"b":-9,"a":false}']
    for name, type_, values in (
        ("a", pa.string(), ["x", None, None, "5", "false"]),
        ("b", pa.int8(), [7, None, None, None, -9]),
        ("b", pa.float64(), [7.0, None, None, None, -9.0]),
        ("c.d", pa.bool_(), [True, None, None, None, None]),
    ):
        schema = {"c": {"d": pa.bool_()}, name: type_}
        known = fields_of(pa.array(texts), schema, name.split("."), type_)
        assert (known.values.to_pylist(), known.unknown.any()) == (values, False), name
    for text in (
        '{"b":128}',
        '{"b":1.0}',
        '{"b":"7"}',
        '{"b":-0}',
        '{"b":1,"b":2}',
        '[{"b":1}]',
        '{"b":1} x',
        "{'b':1}",
    ):
        assert fields_of(pa.array([text]), schema_of("b TINYINT"), ["b"], pa.int8()).unknown.all(), text


@pytest.mark.parametrize(
    "schema",
    [
        *("a DATE", "a INT, b TIMESTAMP", "a INT NOT NULL", "a STRING COLLATE UTF8_LCASE", "a INT, A INT", "b INT"),
        *("ARRAY<STRUCT<a: INT>>", "MAP<STRING, INT>", "a VARIANT", "a STRUCT<b: INT>", "a ARRAY<INT>", "", "a INT)"),
        *('{"type":"struct"}', '{"type":"struct","fields":[{"name":"a","type":"date"}]}', '{"type":'),
    ],
)
def test_other_schemas_are_left_to_spark(schema: str) -> None:
    assert field_in(schema, ("a",)) is None


def test_the_column_for_texts_that_cannot_be_read_is_left_to_spark() -> None:
    assert field_in("_corrupt_record STRING", ("_corrupt_record",)) is None


AS_JSON = [{"name": "User", "type": "string"}, {"name": "x", "type": {"type": "array", "elementType": "long"}}]


@pytest.mark.parametrize(
    "schema",
    [
        *("x DOUBLE, User STRING", "User: string", "struct<User: string>"),
        json.dumps({"type": "struct", "fields": AS_JSON}),
    ],
)
def test_a_schema_is_written_as_its_part(schema: str) -> None:
    assert str(parse(f"from_json(p, '{schema}').user = 'x'")) == "from_json(`p`, '`User` STRING').`User` = 'x'"


def _holds_its_substrings(
    text: str | None, path: tuple[str | int, ...], value: str | None, *, is_encoded: bool = False
) -> None:
    """What filters are asked is in every text with the value, as Spark has it."""
    if text is None or value is None:
        return
    written = text.encode()
    for ranges in (rangeset.points(Kind.BYTES, [value.encode()]), rangeset.starting_with(value.encode()[:1])):
        alternatives = substrings_of(path, ranges, is_encoded=is_encoded)
        held = any(all(part.is_in(written) for part in substrings) for substrings in alternatives)
        assert held or not alternatives, (text, value)


@pytest.mark.parametrize(
    "path", ["$", "user", "$.*", "$.a.*", "$[*].a", "$. a", "$..a", "$.a[-1]", "$['a.b']", "$.é", ""]
)
def test_other_paths_are_left_to_spark(path: str) -> None:
    assert path_of(path) is None


EVENTS = [
    json.dumps({"user": user, "level": level, "ip": {"v4": f"10.0.0.{i % 7}"}, **({"rare": i} if i == 31 else {})})
    for i, (user, level) in enumerate(
        zip([f"user-{i // 3}" for i in range(59)], ["info", "warn", None] * 20, strict=False)
    )
]
EVENTS += ['{"user":"\\u0075ser-3"}', "{'user':'user-4'}", '{"user":7}', "no JSON", '{"user":"user-5","msg":"cut']
CONDITIONS = [
    "get_json_object(payload, '$.user') = 'user-3'",
    "get_json_object(payload, '$.user') IN ('user-4', 'user-5', 'nobody')",
    "get_json_object(payload, '$.user') = '7'",
    "NOT (get_json_object(payload, '$.user') = 'user-3')",
    "get_json_object(payload, '$.user') <=> NULL",
    "get_json_object(payload, '$.user') IS NULL",
    "get_json_object(payload, '$.rare') IS NOT NULL",
    "get_json_object(payload, '$.rare') > '0'",
    "get_json_object(payload, '$.ip.v4') = '10.0.0.3' AND rid < 20",
    "get_json_object(payload, '$.level') LIKE 'w%'",
    "upper(get_json_object(payload, '$.level')) = 'WARN'",
    "coalesce(get_json_object(payload, '$.level'), 'none') = 'none'",
    "from_json(payload, 'user STRING, level STRING').user = 'user-3'",
    "from_json(payload, 'user STRING').user IN ('7', 'user-4', 'user-5')",
    "NOT (from_json(payload, 'rare INT').rare = 31)",
    "from_json(payload, 'rare INT').rare > 30 OR from_json(payload, 'user INT').user = 7",
    "from_json(payload, 'level STRING').level IS NULL",
    "from_json(payload, 'level STRING').LEVEL LIKE 'w%'",
    "from_json(payload, 'ip STRUCT<v4: STRING>').ip.v4 = '10.0.0.3' AND rid < 20",
    "from_json(payload, 'user STRING', map('mode', 'FAILFAST')).user = 'user-3' AND rid < 9",
]
BUILDS: dict[str, dict[str, Any]] = {
    "none": {},
    "n-grams": {"ngram": ["payload"]},
    "of the value": {
        "bloom": ["get_json_object(payload, '$.user')"],
        "postings": ["get_json_object(payload, '$.level')"],
        "ngram": {"get_json_object(payload, '$.level')": 3},
        "zone_map": ["get_json_object(payload, '$.ip.v4')", "get_json_object(payload, '$.rare')"],
    },
    "of the field": {
        "bloom": ["from_json(payload, 'user STRING').user"],
        "postings": ["from_json(payload, 'level STRING').level", "from_json(payload, 'ip STRUCT<v4: STRING>').ip.v4"],
        "zone_map": ["from_json(payload, 'rare INT').rare"],
    },
}


@pytest.fixture(params=one_in(3, BUILDS))
def events(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A log table whose messages are JSON texts, with one of the indexes."""
    rows = {"rid": pa.array(range(len(EVENTS)), pa.int64()), "payload": pa.array(EVENTS)}
    write_file(tmp_path / "a.parquet", pa.table(rows), row_group_size=4)
    if BUILDS[request.param]:
        sec.build_index(sec.open_table(str(tmp_path)), **BUILDS[request.param])
    return tmp_path


def test_no_row_is_lost(spark: SparkSession, events: Path) -> None:
    check_table(spark, events, CONDITIONS)


@pytest.mark.parametrize("build", ["n-grams", "of the value", "of the field"])
def test_a_value_within_json_text_is_looked_up(tmp_path: Path, build: str) -> None:
    """Two row groups hold the user; the text that is no JSON for Python, and one with an escape, are read too."""
    rows = {"rid": pa.array(range(len(EVENTS)), pa.int64()), "payload": pa.array(EVENTS)}
    write_file(tmp_path / "a.parquet", pa.table(rows), row_group_size=4)
    table = sec.open_table(str(tmp_path))
    sec.build_index(table, **BUILDS[build])
    value = (
        "from_json(payload, 'user STRING').user" if build == "of the field" else "get_json_object(payload, '$.user')"
    )
    plan = sec.prune(table, f"{value} = 'user-9' AND rid < 59")
    assert plan.to_arrow()["rid"].to_pylist() == [27, 28, 29]
    assert len(plan.blocks) <= 3


FUNCTIONS = [
    "get_json_object(payload, '$.user')",
    "from_json(payload, 'user STRING').user",
    "initcap(word)",
    "replace(word, '-', '')",
    "split(word, '-')[1]",
]


def test_sparks_own_plans_ask_for_functions_of_text(spark: SparkSession, tmp_path: Path) -> None:
    """Through the rule that replaces a scan, from an index of their values."""
    words = pa.array([f"w-{i // 8}" for i in range(len(EVENTS))])
    rows = {"rid": pa.array(range(len(EVENTS)), pa.int64()), "payload": pa.array(EVENTS), "word": words}
    write_file(tmp_path / "a.parquet", pa.table(rows), row_group_size=4)
    table = sec.open_table(str(tmp_path))
    sec.build_index(table, bloom=FUNCTIONS)
    frame, plain = sec.dataframe(spark, table, via="transparent"), spark.read.parquet(str(tmp_path))
    for value, wanted in zip(FUNCTIONS, ["user-9", "user-9", "W-3", "w3", "3"], strict=True):
        condition = f"{value} = '{wanted}' AND rid < 56"
        answer = frame.where(condition)
        assert sorted(row.rid for row in answer.collect()) == sorted(
            row.rid for row in plain.where(condition).collect()
        )
        (kept,) = pruning(answer)
        assert int(kept.split()[0]) <= 3, value


def test_what_only_spark_knows_is_said(events: Path) -> None:
    table = sec.open_table(str(events))
    with pytest.raises(EvaluationError):
        sec.prune(table, "get_json_object(payload, '$.user') = 'user-4'").count()
    with pytest.raises(InvalidOption, match="only Spark"):
        sec.build_index(table, bloom=["get_json_object(payload, '$.*')"])
