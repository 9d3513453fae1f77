"""Random predicates over expressions: every function with bounds, on every type, nested, with awkward constants.

They are drawn by :mod:`random` from a seed, not by Hypothesis, which would take ten times as long for trees: a nightly
run draws a million.
"""

from __future__ import annotations

import datetime as dt
import math
import random
import re
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa

from tests.support.strategies import DAYS, MOMENTS, TEXTS, clock, padded, quoted

NAN, INF = math.nan, math.inf
INSTANT, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
EPOCH = dt.datetime(1970, 1, 1)
SPACED = [" abc", "abc  ", "k\n"]
COLUMNS: dict[str, tuple[pa.DataType, Sequence[object]]] = {
    "t": (pa.int8(), [-128, -127, -3, -1, 0, 1, 2, 5, 126, 127]),
    "h": (pa.int16(), [-(2**15), -300, 0, 1, 7, 2**15 - 1]),
    "i": (pa.int32(), [-(2**31), -70000, -2, -1, 0, 1, 3, 10, 12345, 2**31 - 1]),
    "l": (pa.int64(), [-(2**63), -(2**53) - 1, -5, -1, 0, 1, 2, 100, 2**31, 2**53 + 1, 2**63 - 1]),
    "f": (pa.float32(), [NAN, -INF, INF, -1.5, -0.0, 0.0, 0.1, 1.0, 2.5, 16777216.0, 3e38]),
    "x": (pa.float64(), [NAN, -INF, INF, -2.5, -0.5, 0.0, 0.1, 0.5, 1.0, 1.5, 3.0, 1e10, 1e300, 9.3e18, 2147483647.5]),
    "m": (pa.decimal128(9, 2), [Decimal(v).scaleb(-2) for v in (-999999999, -150, -1, 0, 1, 50, 100, 149, 999999999)]),
    "p": (pa.decimal128(18, 4), [Decimal(v).scaleb(-4) for v in (1 - 10**18, -15000, 0, 5, 10000, 12345, 10**18 - 1)]),
    "w": (pa.decimal128(38, 10), [Decimal(v) / 10**10 for v in (-(10**25), -1, 0, 5 * 10**9, 10**10, 10**27)]),
    "s": (
        pa.string(),
        [*TEXTS[:12], "ABC", "Abd", "abcd", "2024-03-31", "K", "\u212a", "İ", " abc", "abc  ", "k\n", "1", "10"],
    ),
    "d": (pa.date32(), [*DAYS, dt.date(2024, 2, 28), dt.date(2023, 12, 31)]),
    "ts": (INSTANT, [m.replace(tzinfo=dt.UTC) for m in MOMENTS]),
    "n": (LOCAL, list(MOMENTS)),
    "flag": (pa.bool_(), [True, False]),
}
INTEGERS, DECIMALS, FLOATS = ("t", "h", "i", "l"), ("m", "p", "w"), ("f", "x")


def table(n: int, chance: random.Random) -> pa.Table:
    """A table of n rows with values of every column, some of them NULL, in no order."""
    columns: dict[str, pa.Array] = {"rid": pa.array(range(n), pa.int64())}
    for name, (type_, values) in COLUMNS.items():
        few = chance.sample(list(values), min(chance.randint(1, 8), len(values)))
        columns[name] = pa.array([chance.choice([None, *few, *few]) for _ in range(n)], type_)
    return pa.table(columns)


INTEGER_CONSTANTS = ["0", "1", "-1", "2", "3", "7", "100", "2147483647", "2147483648", "9223372036854775807"]
INTEGER_CONSTANTS += ["5L", "1Y", "-128Y", "3S"]
COMPUTED_CONSTANTS = [
    "(1 + 1)",
    "CAST(3 AS INT)",
    "-(2)",
    "CAST('1.5' AS DECIMAL(10, 2))",
    "CAST(3BD AS DECIMAL(20, 4))",
    "CAST('3' AS BIGINT)",
    "int('2')",
    "(7 DIV 2)",
    "pow(2, 1)",
    "CAST('1.55' AS DECIMAL(4, 1))",
    "CAST('0.5' AS DOUBLE)",
]
DECIMAL_CONSTANTS = ["0.5", "1.50", "-0.01", "100.0", "3BD", "99999999999999999999.5", "0.0000000001"]
FLOAT_CONSTANTS = ["0.5D", "1e0", "-2.5D", "1e300", "CAST('NaN' AS DOUBLE)", "0D", "CAST(0.1 AS FLOAT)"]
TEXT_CONSTANTS = [quoted(text) for text in [*TEXTS[:12], "ABC", "abc", "k", "2024", "2024-03-31", "1", "abcb"]]
TEXT_CONSTANTS += ["concat('a', 'bc')", "lower('ABC')", "trim(' K ')", "('ab' || 'c')", "substring('xabcx', 2, 3)"]
DATE_CONSTANTS = [f"DATE '{padded(day)}'" for day in DAYS]
DATE_CONSTANTS += ["to_date('2024-03-31')", "make_date(2024, 2, 28)", "to_date('28/02/2024', 'dd/MM/yyyy')"]
DATE_CONSTANTS += ["date_add('2024-03-30', 1)", "last_day('2023-12-01')"]
INSTANT_CONSTANTS = [f"TIMESTAMP '{clock(moment)}Z'" for moment in MOMENTS]
LOCAL_CONSTANTS = [f"TIMESTAMP_NTZ '{clock(moment)}'" for moment in MOMENTS]
CONSTANTS = {
    "integer": INTEGER_CONSTANTS,
    "number": [*INTEGER_CONSTANTS, *DECIMAL_CONSTANTS, *FLOAT_CONSTANTS, *COMPUTED_CONSTANTS],
    "day": DATE_CONSTANTS,
    "instant": INSTANT_CONSTANTS,
    "local": LOCAL_CONSTANTS,
    "text": TEXT_CONSTANTS,
}
COLUMN_NAMES = {
    "integer": [*INTEGERS],
    "number": [*INTEGERS, *DECIMALS, *FLOATS],
    "day": ["d"],
    "instant": ["ts"],
    "local": ["n"],
    "text": ["s"],
}
# By kind: {} of the same kind, {day} and so on of another, {if} a condition.
ARITHMETIC = [
    "({} + {})",
    "({} - {})",
    "({} * {})",
    "({} / {})",
    "({} % {})",
    "(- {})",
    "abs({})",
    "ceil({})",
    "floor({})",
    "round({})",
    "round({}, 1)",
    "round({}, 2)",
    *(
        f"{cast}({{}} AS {type_})"
        for cast in ("CAST", "try_cast")
        for type_ in "TINYINT,SMALLINT,INT,BIGINT,FLOAT,DOUBLE,DECIMAL(10;2),DECIMAL(38;6),DECIMAL(4;3)".replace(
            ";", ":"
        ).split(",")
    ),
]
ARITHMETIC = [template.replace(":", ", ") for template in ARITHMETIC]
ROOTS = ["sqrt", "cbrt", "exp", "expm1", "ln", "log", "log2", "log10", "log1p", "rint", "signum", "bround"]
ELEMENTARY = [
    *(f"{name}({{}})" for name in ROOTS),
    *(f"pow({{}}, {exponent})" for exponent in ("2", "3", "0.5", "-1", "-2")),
    *(f"pow({base}, {{}})" for base in ("2", "0.5D")),
    *(f"log({base}, {{}})" for base in ("2", "0.5D")),
    *(f"try_{name}({{}}, {{}})" for name in ["add", "subtract", "multiply", "divide"]),
    "bround({}, 1)",
    "nanvl({}, {})",
    "nanvl(x, {})",
]
WHOLE = [
    "({} DIV {})",
    "({} DIV 3)",
    "({} DIV -2)",
    "(~ {})",
    "({} << 3)",
    "({} >> 2)",
    "shiftleft({}, t)",
    "shiftright({}, i)",
    "shiftrightunsigned({}, 1)",
    "try_mod({}, {})",
]
CONDITIONAL = [
    "coalesce({}, {})",
    "nvl({}, {})",
    "nullif({}, {})",
    "if({if}, {}, {})",
    "CASE WHEN {if} THEN {} WHEN {if} THEN {} END",
    "greatest({}, {}, {})",
    "least({}, {})",
]
CALENDAR = ["year", "quarter", "month", "day", "dayofweek"]
FIELDS = [
    *(f"{name}({{{kind}}})" for name in CALENDAR for kind in ("day", "instant", "local")),
    *(f"{name}({{{kind}}})" for name in ("hour", "minute", "second") for kind in ("instant", "local")),
    "datediff({day}, {day})",
    "timestampdiff(HOUR, {instant}, {local})",
    "timestampdiff(MONTH, {day}, {instant})",
    "unix_timestamp({instant})",
    "length({text})",
]
DURATIONS = [
    *(
        f"({{}} {sign} INTERVAL '{count}' {unit})"
        for sign, count, unit in [("+", 1, "DAY"), ("-", 7, "DAY"), ("-", 1, "WEEK")]
    ),
    "({} + INTERVAL '1' HOUR)",
    "({} - INTERVAL 36 HOURS)",
    "({} + INTERVAL '1 12:30' DAY TO MINUTE)",
    "timestampadd(HOUR, 24, {})",
    "({} - INTERVAL 30 SECONDS)",
    "({} - INTERVAL 1 MONTH)",
    "({} + INTERVAL '-2' YEAR)",
]
GRAMMAR = {
    "integer": [*ARITHMETIC, *WHOLE, *WHOLE, *CONDITIONAL, *FIELDS],
    "number": [*ARITHMETIC, *ARITHMETIC, *ELEMENTARY, *CONDITIONAL, *FIELDS],
    "day": [
        *CONDITIONAL,
        "to_date({instant})",
        "CAST({local} AS DATE)",
        "date_add({}, 1)",
        "date_add({}, i)",
        "date_sub({}, t)",
        "({} + 400)",
        "({} - t)",
        *(f"trunc({{}}, '{unit}')" for unit in ("YEAR", "quarter", "MM", "week")),
        "last_day({})",
        "next_day({}, 'MO')",
        "({} + INTERVAL '3' DAY)",
        "({} - INTERVAL 2 MONTHS)",
        "(INTERVAL 1 YEAR + {})",
    ],
    "instant": [
        *CONDITIONAL,
        "CAST({day} AS TIMESTAMP)",
        *DURATIONS,
        "({day} + INTERVAL '1' HOUR)",
        "CAST({local} AS TIMESTAMP)",
        "from_utc_timestamp({}, 'America/New_York')",
        *(f"date_trunc('{unit}', {{}})" for unit in ("YEAR", "quarter", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE")),
    ],
    "local": [*CONDITIONAL, *DURATIONS, "CAST({day} AS TIMESTAMP_NTZ)", "CAST({instant} AS TIMESTAMP_NTZ)"],
    "text": [
        *CONDITIONAL,
        "substring({}, 1, 2)",
        "substring({}, 1, 0)",
        "left({}, 1)",
        "left({}, 4)",
        "lower({})",
        "upper({})",
        "CAST({day} AS STRING)",
        "from_unixtime(l)",
        "date_format({instant}, 'yyyy-MM-dd HH')",
        "concat('a', {})",
        "concat({}, 'b')",
        "('a' || {} || 'b')",
        *(f"{name}({{}})" for name in ("trim", "ltrim", "rtrim")),
        "rpad({}, 3, 'b')",
        "rpad({}, 2)",
        "lpad({}, 4, 'ab')",
        "CAST(i AS STRING)",
        "CAST({integer} AS STRING)",
        "concat('1', t)",
    ],
}
TYPED_TEXTS = [
    "1",
    "1.5",
    "74.999",
    "0.1",
    " 3 ",
    "-0.5",
    "1e2",
    "300",
    "-128",
    "2147483648",
    "16777217",
    "99999999999",
]
TYPED_TEXTS += ["x", "", ".", "true", "N", "NaN", "-inf", "2024-03-31", "2020-10-25 01:30:00", "123456789.5", "3.4e38"]
OTHER_CONSTANTS = [
    *map(quoted, TYPED_TEXTS),
    "TRUE",
    "FALSE",
    "16777217",
    "16777217L",
    "16777216F",
    "1.5F",
    "-2.5F",
    "0.1F",
]
OPERATORS = ["=", "!=", "<", "<=", ">", ">=", "<=>"]
PATTERNS = ["LIKE 'a%'", "LIKE 'abc'", "LIKE '%b%'", "LIKE 'A_C%'", "LIKE 'a\\\\%%'", "LIKE ''", "NOT LIKE '%'"]
PATTERNS += ["ILIKE 'A%c'", "NOT ILIKE 'k%'", "ILIKE '%B%'", "RLIKE 'a|K'", "RLIKE 'ab+c$'"]
PATTERNS += ["LIKE ANY ('a%', '%c', lower('K'))", "NOT LIKE ALL ('a%', 'k_')", "LIKE '1%'", "LIKE concat('a', '%')"]
PATTERNS += ["RLIKE '^(abc|k)$'", "RLIKE '^(ab|K)'", "RLIKE '^a[bB]c?$'", "RLIKE '^1.*'", "RLIKE '^k\\\\z'"]
PATTERNS += ["RLIKE '^ab'", "RLIKE '^a?b'", "RLIKE 'b'", "RLIKE '^(a|b)'", "RLIKE '^a.c'"]


def predicate(chance: random.Random, depth: int = 2) -> str:
    """A random condition in Spark SQL over the columns of :func:`table`."""
    if depth and chance.random() < 0.35:
        inner = predicate(chance, depth - 1), predicate(chance, depth - 1)
        return chance.choice(["({} AND {})", "({} OR {})", "(NOT {})", "(({}) IS TRUE)", "(({}) IS NULL)"]).format(
            *inner
        )
    if chance.random() < 0.15:
        return _flag(chance, chance.choice([2, 2, 3, 5]))
    if chance.random() < 0.3:
        return mixed(chance)
    kind = chance.choice(["integer", "number", "number", "day", "instant", "local", "text"])
    return _comparison(kind, chance)


def _comparison(kind: str, chance: random.Random) -> str:
    value = value_of(kind, chance, chance.choice([1, 1, 2, 3]))
    one, two, three = (chance.choice(CONSTANTS[kind]) for _ in range(3))
    other = value_of(kind, chance, 1)
    shapes = [
        *[f"{value} {op} {one}" for op in OPERATORS],
        f"{one} {chance.choice(OPERATORS)} {value}",
        *[f"{value} {op} {other}" for op in OPERATORS],
        f"{value} BETWEEN {one} AND {other}",
        f"{value} IN ({one}, {two}, {three})",
        f"{value} NOT IN ({one}, NULL)",
        f"{value} IS NULL",
        f"{one} IN ({value}, {other})",
        f"({value}, flag) = ({other}, TRUE)",
        f"({value}, t) IN (({one}, 1Y), ({two}, 2Y))",
    ]
    if kind == "text":
        shapes += [f"{value} {pattern}" for pattern in PATTERNS]
        shapes += [f"locate('b', {value}) {op} {place}" for op in OPERATORS for place in (0, 1, 2)]
    if kind == "number":
        shapes += [f"isnan({value})"]
    return chance.choice(shapes)


def mixed(chance: random.Random) -> str:
    """A comparison of values of types that may differ, some of which Spark refuses."""
    kind = chance.choice([*COLUMN_NAMES, "number", "number"])
    value = "flag" if chance.random() < 0.1 else value_of(kind, chance, chance.choice([0, 0, 0, 1]))
    others = [*OTHER_CONSTANTS, *OTHER_CONSTANTS, *(each for constants in CONSTANTS.values() for each in constants)]
    one, two, op = chance.choice(others), chance.choice(others), chance.choice(OPERATORS)
    other = value_of(chance.choice([*COLUMN_NAMES]), chance, chance.choice([0, 0, 1]))
    shapes = [
        *[f"{value} {op} {one}"] * 4,
        f"{one} {op} {value}",
        f"{value} {op} {other}",
        f"{value} BETWEEN {one} AND {two}",
        f"{value} IN ({one}, {two})",
        f"{value} IN ({one})",
        f"{value} NOT IN ({one}, NULL)",
        f"coalesce({value}, {other}) {op} {one}",
        f"if({value} = {one}, {value}, {other}) {op} {two}",
        f"({value} + {other}) {op} {one}",
        f"({value} * {one}) {op} {two}",
    ]
    return chance.choice(shapes)


def value_of(kind: str, chance: random.Random, depth: int) -> str:
    """A random expression of a kind, with functions nested up to `depth`."""
    if not depth or chance.random() < 0.25:
        return chance.choice(CONSTANTS[kind] if chance.random() < 0.2 else COLUMN_NAMES[kind])
    template = chance.choice(GRAMMAR[kind])
    return _filled(template, kind, chance, depth - 1)


def _filled(template: str, kind: str, chance: random.Random, depth: int) -> str:
    return re.sub(
        r"\{(\w*)\}",
        lambda m: _flag(chance, 1) if m[1] == "if" else value_of(m[1] or kind, chance, depth),
        template,
    )


def _flag(chance: random.Random, depth: int) -> str:
    """A condition of small size, or a boolean expression with conditions in it, nested up to `depth`."""
    if depth > 1 and chance.random() < 0.6:
        template = chance.choice(BOOLEAN)
        return template.format(*(_flag(chance, depth - 1) for _ in range(3)))
    simple = [f"({chance.choice(INTEGERS)} {op} {chance.choice(INTEGER_CONSTANTS)})" for op in ("=", "<", ">=")]
    simple += [f"(s {chance.choice(PATTERNS)})", chance.choice(TESTS_OF_TEXT)]
    return chance.choice(["flag", "(s IS NULL)", "(x > 0D)", "(m <=> 0.5)", "(NOT flag)", "(l IS NOT NULL)", *simple])


BOOLEAN = [
    "coalesce({}, {})",
    "if({}, {}, {})",
    "({}) = ({})",
    "nullif({}, {})",
    "({} <=> {})",
    "({} BETWEEN {} AND {})",
    "between({}, {}, {})",
    "(CASE {} WHEN {} THEN {} WHEN TRUE THEN s LIKE 'a%' ELSE FALSE END)",
    "(CASE WHEN {} THEN {} WHEN {} THEN NULL END)",
    "({} IN (TRUE, NULL))",
    "(({} AND {}) IS NULL)",
    "(NOT ({} OR {}))",
    "greatest({}, {})",
]
TESTS_OF_TEXT = [
    "contains(s, 'b')",
    "startswith(s, 'ab')",
    "endswith(s, 'c')",
    "(instr(s, 'b') > 0)",
    "like(s, '_b%')",
    "between(i, 0, 7)",
    "between(s, 'a', 'b')",
]


def deep(chance: random.Random, depth: int) -> str:
    """A boolean expression whose nesting is as deep as asked, one branch of it at every level."""
    text = _flag(chance, 2)
    for _ in range(depth):
        parts = [text, _flag(chance, 1), _flag(chance, 1)]
        chance.shuffle(parts)
        text = chance.choice(BOOLEAN).format(*parts)
    return text
