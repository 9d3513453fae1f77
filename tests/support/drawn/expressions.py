"""Random predicates over expressions: every function that has bounds, on every type, nested, with awkward constants.

They are drawn by :mod:`random` from a seed. Hypothesis would take ten times as long for trees, and a nightly run draws
a million.
"""

from __future__ import annotations

import datetime as dt
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from zoneinfo import ZoneInfo

import pyarrow as pa

from tests.support.drawn.strategies import DAYS, MOMENTS, TEXTS, clock, padded, quoted

NAN, INF = math.nan, math.inf
INSTANT, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
EPOCH = dt.datetime(1970, 1, 1)
SPACED = [" abc", "abc  ", "k\n"]
COLUMNS: dict[str, tuple[pa.DataType, Sequence[object]]] = {
    "t": (pa.int8(), [-128, -127, -3, -1, 0, 1, 2, 5, 126, 127]),
    "h": (pa.int16(), [-(2**15), -300, 0, 1, 7, 2**15 - 1]),
    "i": (pa.int32(), [-(2**31), -70000, -2, -1, 0, 1, 3, 10, 12345, 2**24 + 1, 2**31 - 1]),
    "l": (pa.int64(), [-(2**63), -(2**53) - 1, -5, -1, 0, 1, 2, 100, 2**31, 2**53 + 1, 2**63 - 1]),
    "f": (pa.float32(), [NAN, -INF, INF, -1.5, -0.0, 0.0, 0.1, 1.0, 2.5, 16777216.0, 3e38]),
    "x": (pa.float64(), [NAN, -INF, INF, -2.5, -0.5, 0.0, 0.1, 0.5, 1.0, 1.5, 3.0, 1e10, 1e300, 9.3e18, 2147483647.5]),
    "m": (pa.decimal128(9, 2), [Decimal(v).scaleb(-2) for v in (-999999999, -150, -1, 0, 1, 50, 100, 149, 999999999)]),
    "p": (pa.decimal128(18, 4), [Decimal(v).scaleb(-4) for v in (1 - 10**18, -15000, 0, 5, 10000, 12345, 10**18 - 1)]),
    "v": (pa.decimal128(10, 0), [Decimal(n) for n in (-1, 0, 1, 74, 75, 2**24 + 1, 10**10 - 1)]),
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
INTEGERS, DECIMALS, FLOATS = ("t", "h", "i", "l"), ("m", "p", "v", "w"), ("f", "x")


@dataclass(frozen=True)
class Vocabulary:
    """The values of a table's columns, and what conditions on them are made of, by kinds of values."""

    columns: Mapping[str, tuple[pa.DataType, Sequence[object]]]
    kinds: Sequence[str]  # of comparisons, the likelier the more often
    constants: Mapping[str, Sequence[str]]
    grammar: Mapping[str, Sequence[str]]
    fewest: int  # values of a column of one table
    most: int


def table(n: int, chance: random.Random, words: Vocabulary | None = None) -> pa.Table:
    """A table of n rows with values of every column, some of them NULL, in no order."""
    columns: dict[str, pa.Array] = {"rid": pa.array(range(n), pa.int64())}
    words = words or EVERYTHING
    for name, (type_, values) in words.columns.items():
        few = chance.sample(list(values), min(chance.randint(words.fewest, words.most), len(values)))
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
    "instr({text}, 'b')",
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
# Day-time intervals, of which Spark adds whole days to the calendar and the rest to the instant.
DAYS_AND_HOURS = [
    *("INTERVAL 24 HOURS", "INTERVAL '25' HOUR", "INTERVAL 47 HOURS", "INTERVAL '-24' HOUR", "INTERVAL 1440 MINUTES"),
    *("INTERVAL 86400 SECONDS", "INTERVAL '1 02:00:00' DAY TO SECOND", "INTERVAL '1 12' DAY TO HOUR", "INTERVAL 1 DAY"),
    *("INTERVAL 1 DAY 2 HOURS", "INTERVAL 2 DAYS -3 HOURS", "INTERVAL '-1 12' DAY TO HOUR", "INTERVAL 90 MINUTES"),
]
DURATIONS += [f"({{}} {sign} {interval})" for sign in "+-" for interval in DAYS_AND_HOURS]
DURATIONS += [f"({interval} + {{}})" for interval in DAYS_AND_HOURS[:3]]
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
PARTS = ["startswith", "endswith", "contains"]
PATTERNS += ["RLIKE '^ab'", "RLIKE '^a?b'", "RLIKE 'b'", "RLIKE '^(a|b)'", "RLIKE '^a.c'"]
EVERYTHING = Vocabulary(
    COLUMNS, ["integer", "number", "number", "day", "instant", "local", "text"], CONSTANTS, GRAMMAR, 1, 8
)

# ---- columns beside other types --------------------------------------------------------------------------------------

ANYTHING = [
    *("0", "1", "74", "75L", "16777217", "16777216.5", "9007199254740993", "0.1", "74.999", "0.1D", "1e3", "3S"),
    *("CAST(0.1 AS FLOAT)", "CAST('NaN' AS DOUBLE)", "16777217D", "9223372036854775808", "TRUE", "FALSE", "NULL"),
    *("'0'", "'1'", "'74.999'", "'75'", "' 75 '", "'16777217'", "'0.1'", "'1e3'", "'x'", "''", "'true'", "'t'", "'no'"),
    *("'NaN'", "'Infinity'", "'9223372036854775808'", "'2024-03-31'", "'2024-03-31 02:30:00'", "'2024'", "X'61'"),
    *("DATE '2024-03-31'", "TIMESTAMP '2024-03-31 00:00:00'", "TIMESTAMP_NTZ '2024-10-27 02:30:00'"),
]


def beside_another_type(chance: random.Random) -> str:
    """A comparison of a column with a literal, or with another column, of whatever type."""
    column = chance.choice([*COLUMNS, "f", "v", "i"])
    one, two = chance.choice(ANYTHING), chance.choice([*ANYTHING, *COLUMNS])
    operator = chance.choice(OPERATORS)
    shapes = [f"{column} {operator} {two}", f"{one} {operator} {column}", f"{column} {operator} {one}"]
    shapes += [f"{column} IN ({one}, {chance.choice(ANYTHING)})", f"{column} BETWEEN {one} AND {two}"]
    shapes += [f"({column} {operator} {one}) IS NULL", f"NOT ({column} {operator} {one})"]
    return chance.choice(shapes)


# ---- conditions as values --------------------------------------------------------------------------------------------

AS_VALUES = [
    *("if({}, 1, 0) = {n}", "if({}, s, 'b') = 'b'", "CASE WHEN {} THEN 'a' END = 'a'", "coalesce({}, FALSE)"),
    *("({}) = TRUE", "({}) <=> ({other})", "({}) != flag", "({}) IN (TRUE, NULL)", "(({}) = flag) IS NULL"),
    *("nullif({}, {other}) IS NULL", "NOT if({}, flag, {other})", "greatest({}, {other}) = flag"),
]


def condition_as_value(chance: random.Random) -> str:
    """A condition on text as an operand, or the place of one text in another."""
    if chance.random() < 0.2:
        place = f"instr(s, {chance.choice(TEXT_CONSTANTS)})"
        return chance.choice([f"{place} {chance.choice(OPERATORS)} {chance.randrange(3)}", f"{place} + 1 > i"])
    one, other = (_about_text(chance) for _ in range(2))
    return chance.choice(AS_VALUES).format(one, other=other, n=chance.randrange(2))


def _about_text(chance: random.Random) -> str:
    likes = [pattern for pattern in PATTERNS if pattern.startswith(("LIKE", "NOT LIKE"))]
    return chance.choice([f"s {chance.choice(likes)}", f"{chance.choice(PARTS)}(s, {chance.choice(TEXT_CONSTANTS)})"])


# ---- changes of the clock --------------------------------------------------------------------------------------------

GRID = [dt.timedelta(hours=n) for n in range(-25, 26)]  # a day and an hour on either side
IN_A_DAY = ["hour({instant})", "day({instant})", "minute({instant})", "hour({local})", "dayofweek({instant})"]


def changes(zone: str, year: int) -> list[dt.datetime]:
    """The hours of a year at whose beginning, in UTC, the clocks of a zone change; where none does, two others."""
    hours = [dt.datetime(year, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=n) for n in range(24 * 366)]
    offsets = [hour.astimezone(_zone(zone)).utcoffset() for hour in hours]
    changed = [hour for hour, before, now in zip(hours[1:], offsets, offsets[1:], strict=False) if before != now]
    return changed or [hours[24 * 59], hours[24 * 300]]


def _zone(name: str) -> dt.tzinfo:
    if name.startswith("+"):
        return dt.timezone(dt.timedelta(hours=int(name[1:3]), minutes=int(name[4:6])))
    return ZoneInfo(name)


def near_changes(zone: str, chance: random.Random) -> Vocabulary:
    """Instants, local times and days near a change of a zone's clock, and constants of the same times."""
    change = chance.choice(changes(zone, chance.choice([2020, 2024])))
    instants = [change + step for step in GRID]
    clocks = sorted({instant.astimezone(_zone(zone)).replace(tzinfo=None) for instant in instants})
    days = sorted({moment.date() for moment in clocks})
    ends = [dt.timedelta(0), dt.timedelta(microseconds=1), dt.timedelta(microseconds=-1)]
    columns: dict[str, tuple[pa.DataType, Sequence[object]]] = {
        "ts": (INSTANT, [instant + chance.choice([dt.timedelta(minutes=30), *ends]) for instant in instants]),
        "n": (LOCAL, [moment + chance.choice(ends) for moment in clocks]),
        "d": (pa.date32(), days),
        "i": (pa.int32(), [0, 1, 2, 3, 23, 24, 25]),
        "t": (pa.int8(), [-1, 0, 1, 2]),
        "l": (pa.int64(), [int(instant.timestamp()) for instant in instants[::7]]),
        "h": (pa.int16(), [0, 1]),
        "x": (pa.float64(), [0.0, 1.5]),
        "m": (pa.decimal128(9, 2), [Decimal("0.50")]),
        "s": (pa.string(), ["a", "2024"]),
        "flag": (pa.bool_(), [True, False]),
    }
    constants = {
        **CONSTANTS,
        "integer": [*map(str, range(-3, 26))],
        "instant": [
            *(f"TIMESTAMP '{clock(moment)}'" for moment in clocks),
            *(f"TIMESTAMP '{clock(instant.replace(tzinfo=None))}Z'" for instant in instants),
        ],
        "local": [f"TIMESTAMP_NTZ '{clock(moment)}'" for moment in clocks],
        "day": [f"DATE '{padded(day)}'" for day in days],
    }
    durations = [f"({{}} {sign} {interval})" for sign in "+-" for interval in DAYS_AND_HOURS]
    durations = [*durations * 4, "timestampadd(HOUR, 24, {})"]
    grammar = {**GRAMMAR, "integer": IN_A_DAY, "instant": [*GRAMMAR["instant"], *durations]}
    return Vocabulary(columns, [*["instant"] * 6, "local", "day", "integer"], constants, grammar, 40, 60)


def predicate(chance: random.Random, depth: int = 2, words: Vocabulary | None = None) -> str:
    """A random condition in Spark SQL over the columns of :func:`table`."""
    words = words or EVERYTHING
    if depth and chance.random() < 0.35:
        inner = predicate(chance, depth - 1, words), predicate(chance, depth - 1, words)
        return chance.choice(["({} AND {})", "({} OR {})", "(NOT {})", "(({}) IS TRUE)", "(({}) IS NULL)"]).format(
            *inner
        )
    if chance.random() < 0.15:
        return _flag(chance, chance.choice([2, 2, 3, 5]))
    if words is EVERYTHING and chance.random() < 0.3:
        return mixed(chance)
    return _comparison(chance.choice(words.kinds), chance, words)


def _comparison(kind: str, chance: random.Random, words: Vocabulary) -> str:
    value = value_of(kind, chance, chance.choice([1, 1, 2, 3]), words)
    one, two, three = (chance.choice(words.constants[kind]) for _ in range(3))
    other = value_of(kind, chance, 1, words)
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
    value = "flag" if chance.random() < 0.1 else value_of(kind, chance, chance.choice([0, 0, 0, 1]), EVERYTHING)
    others = [
        *OTHER_CONSTANTS,
        *OTHER_CONSTANTS,
        *(number for constants in CONSTANTS.values() for number in constants),
    ]
    one, two, op = chance.choice(others), chance.choice(others), chance.choice(OPERATORS)
    other = value_of(chance.choice([*COLUMN_NAMES]), chance, chance.choice([0, 0, 1]), EVERYTHING)
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


def value_of(kind: str, chance: random.Random, depth: int, words: Vocabulary) -> str:
    """A random expression of a kind, with functions nested up to `depth`."""
    if not depth or chance.random() < 0.25:
        names = [name for name in COLUMN_NAMES[kind] if name in words.columns]
        return chance.choice(words.constants[kind] if chance.random() < 0.2 else names)
    template = chance.choice(words.grammar[kind])
    return _filled(template, kind, chance, depth - 1, words)


def _filled(template: str, kind: str, chance: random.Random, depth: int, words: Vocabulary) -> str:
    return re.sub(
        r"\{(\w*)\}",
        lambda m: _flag(chance, 1) if m[1] == "if" else value_of(m[1] or kind, chance, depth, words),
        template,
    )


def _flag(chance: random.Random, depth: int) -> str:
    """A condition of small size, or a boolean expression with conditions in it, nested up to `depth`."""
    if depth > 1 and chance.random() < 0.6:
        template = chance.choice(BOOLEAN)
        return template.format(*(_flag(chance, depth - 1) for _ in range(3)))
    simple = [f"({chance.choice(INTEGERS)} {op} {chance.choice(INTEGER_CONSTANTS)})" for op in ("=", "<", ">=")]
    simple += [f"(s {chance.choice(PATTERNS)})", chance.choice(TESTS_OF_TEXT)]
    simple += [f"{chance.choice(PARTS)}(s, {chance.choice(TEXT_CONSTANTS)})"]
    return chance.choice(["flag", "(s IS NULL)", "(x > 0D)", "(m <=> 0.5)", "(NOT flag)", "(l IS NOT NULL)", *simple])


BOOLEAN = [
    "coalesce({}, {})",
    "if({}, {}, {})",
    "(({}) = ({}))",
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
