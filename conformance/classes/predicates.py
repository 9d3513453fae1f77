"""D. From a predicate to what is asked of statistics."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa

from conformance.engine import PARQUET, Query, Rows
from conformance.registry import bug_class
from conformance.table import Table, numbered


def for_filters(table: Table) -> None:
    """A hundred rows in ten blocks, spread so that bounds tell nothing and only a filter does."""
    shuffled = random.Random(7).sample(range(0, 200, 2), 100)
    rows = numbered(a=shuffled, s=[None if v % 10 == 0 else f"k{v}" for v in shuffled], other=[v % 7 for v in shuffled])
    table.write({"a.parquet": rows}, row_group_size=10, write_page_index=True)


C24 = bug_class(24, "A prefix as an equality", "LIKE 'p%' was asked as whether p lies within the bounds.")


@C24.case()
def prefixes_beside_bounds(table: Table) -> None:
    texts = ["a", "ab", "abc", "abd", "b", "aa\U0010ffff", "ab\U0010ffff", "abz", "ac", None, "", "a\uffff"]
    table.write({"a.parquet": numbered(s=texts)}, row_group_size=3, write_page_index=True)
    patterns = ["ab%", "ab", "a%", "%", "", "_b%", "a_c", "%c", "ab%d", "abc%", "zz%", "ab\U0010ffff%", "a%b%"]
    questions = [f"s {op} '{p}'" for p in patterns for op in ("LIKE", "NOT LIKE")]
    table.examine([*questions, "startswith(s, 'ab')", "endswith(s, 'c')", "contains(s, 'b')", "NOT startswith(s, 'a')"])


C25 = bug_class(25, "NOT over an inexact answer", '"Perhaps" was negated to "surely not".')


@C25.case()
def negations_of_what_a_filter_says(table: Table) -> None:
    for_filters(table)
    questions = [
        "NOT (a = 3)",
        "NOT (a = 4)",
        "a != 4",
        "NOT (a IN (4, 5))",
        "NOT (a = 4 OR s = 'k8')",
        "NOT (s = 'k8')",
    ]
    questions += ["NOT (NOT (a = 4))", "NOT (a = 3 AND other = 1)", "s IS NOT NULL AND NOT (s = 'k2')"]
    questions += ["NOT (s <=> 'k2')", "(a = 3) IS NOT TRUE", "(s = 'absent') IS NULL", "(s = 'absent') IS FALSE"]
    table.examine(questions, look_up=["a", "s"])


C26 = bug_class(26, "NULL as FALSE", "NULL stood for unknown, and became FALSE under NOT or IN.")


@C26.case()
def null_among_literals(table: Table) -> None:
    table.write({"a.parquet": numbered(a=[1, 2, None, None, 3, 3, 1, None])}, row_group_size=2)
    lists = ["(1, NULL)", "(NULL)", "(9, NULL)", "(1, 2, 3)", "(NULL, NULL, 3)"]
    questions = [f"a {word} {items}" for items in lists for word in ("IN", "NOT IN")]
    questions += [f"NOT (a {word} {items})" for items in lists for word in ("IN", "NOT IN")]
    questions += ["a = NULL", "a <=> NULL", "NOT (a <=> NULL)", "a < NULL", "NULL OR a = 1", "NULL AND a = 1"]
    questions += ["NOT (NULL AND a = 1)", "a IN (1, NULL) OR a = 2", "a NOT IN (1, NULL) AND a IS NULL"]
    table.examine([*questions, "(a = NULL) IS NULL"], look_up=["a"])


C27 = bug_class(27, "Negations and NULL", "Rows of NULL were dropped by a negation that holds on them, or the reverse.")


@C27.case()
def blocks_of_one_value_and_null(table: Table) -> None:
    """Blocks of one value, of one value and NULL, and of NULL only."""
    s = ["A", "A", "A", None, None, None, "B", "A", "B", None]
    rows = numbered(s=s, v=[None if text is None else "AB".index(text) + 1 for text in s])
    table.write({"a.parquet": rows}, row_group_size=2, write_page_index=True)
    shapes = ["NOT ({c} = {v})", "{c} != {v}", "NOT ({c} <=> {v})", "{c} NOT IN ({v})", "NOT ({c} > {v})"]
    shapes.append("NOT ({c} BETWEEN {v} AND {v})")
    questions = [shape.format(c=c, v=v) for c, v in (("s", "'A'"), ("v", "1")) for shape in shapes]
    questions += ["s NOT LIKE 'A%'", "NOT startswith(s, 'A')", "NOT (s LIKE '%A')", "NOT (s IS NULL)"]
    table.examine([*questions, "NOT (s IS NULL OR v = 1)"], look_up=["s", "v"])


C28 = bug_class(
    28, "Statistics of another column", "Of the same name in a struct, at the same position, or with a dot in its name."
)


@C28.case(partitioned_by=("part",))
def names_that_are_alike(table: Table) -> None:
    """Leaves of one name in several structs, odd names, columns in another order per file."""
    for i in range(4):
        columns: dict[str, Any] = {
            "v": [i, i + 10],
            "st": [{"v": i + 100, "w": {"v": i + 200}}, None],
            "a`b": [i + 500, None],
            "p": [i, i],
            "part": [i % 2, i % 2],
        }
        if table.format == PARQUET:  # in Iceberg no column may be named like a field of another
            columns["st.v"] = [i + 300, i + 400]
        names = list(columns) if i % 2 else list(reversed(columns))
        table.write({f"{i}.parquet": numbered(i * 2, **{name: columns[name] for name in names})})
    values = {"v": 2, "st.v": 102, "st.w.v": 202, "`a``b`": 501, "V": 12, "ST.W.V": 203, "part": 1}
    questions = ["st.v = 102 OR v = 13", "part = 1 AND v = 2", "v IN (100, 200, 300)"]
    if table.format == PARQUET:
        values["`st.v`"] = 302
        questions += ["v = 2 AND `st.v` = 302", "st.v = 102 OR `st.v` = 401"]
    questions += [f"{c} {op} {v}" for op in ("=", ">=") for c, v in values.items()]
    table.examine(questions, look_up=["v", "st.w.v", *(["`st.v`"] if table.format == PARQUET else [])])


C29 = bug_class(
    29, "Literals of another type", "Hashed by their own type or width; a number beside text has many spellings."
)


@C29.case()
def numbers_beside_text(table: Table) -> None:
    rows = numbered(s=["1", "01", "1.0", " 1", "2", None], i=[1, 1, 1, 1, 2, None], x=[1.0, 1.5, -0.0, 2.0, 0.1, None])
    table.write({"a.parquet": rows}, row_group_size=1)
    questions = ["s = '1'", "s IN ('1', '2')", "i = '1'", "i = ' 1 '", "i = 1.0", "i = 1e0", "x = 1", "x = '1.5'"]
    questions += ["x = 0", "x = 0.1", "CAST(s AS DOUBLE) = 1", "i = 1L", "i IN (1.0, 7)"]
    table.examine(questions, look_up=["s", "i", "x"])


@C29.case()
def literals_of_a_session_without_ansi(table: Table) -> None:
    """Text is cast to the column's type there, and integers meet floats as floats."""
    rows = numbered(
        i=[1, 74, 75, 300, -128, None],
        g=pa.array([16777216.0, 16777218.0, 0.1, 1.0, 75.0, None], pa.float32()),
        d=pa.array([Decimal(v) for v in (1, 74, 75, 300, -128)] + [None], pa.decimal128(9, 0)),
        n=pa.array([Decimal(v) for v in (1, 74, 75, 300, -128)] + [None], pa.decimal128(9, 2)),
        b=[True, False, True, False, True, None],
    )
    table.write({"a.parquet": rows}, row_group_size=1)
    texts = ["'1'", "'74.999'", "'0.1'", "'75.0'", "'1e2'", "'x'", "'true'"]
    questions = [f"{c} {op} {t}" for c in "ignd" for t in texts for op in ("=", "<", ">=", "<=>")]
    questions += [f"{c} {op} {t}" for c in "ig" for t in ("16777217", "16777217L", "16777216F") for op in ("=", ">")]
    questions += ["g IN (16777217, 2)", "i IN ('1', '75')", "i IN (1, 75F)", "g = i", "b = 1", "b <=> 'x'", "i = TRUE"]
    questions += ["i + 2147483647 = -2147483574", "CAST(i AS TINYINT) = 44", "i / 0 IS NULL", "CAST(n AS INT) = 74"]
    table.ansi = False
    table.examine(questions, look_up=["i", "g", "d", "n"])


C30 = bug_class(30, "What differs from row to row", "rand(), or a UDF, was evaluated once, or on bounds.")


@C30.case()
def random_numbers(table: Table) -> None:
    for_filters(table)
    table.index(look_up=["a"])
    texts = ("a = 4 OR rand() < 2", "uuid() IS NOT NULL", "NOT (rand() > 2)", "a = 4 AND rand() < 2")
    table.ask([*map(Rows, texts), *(Rows(where, limit=5) for where in texts)], "with an index")


C31 = bug_class(31, "LIMIT before the filter", "Rows that may match were counted as rows that do.")


@C31.case()
def limits_that_blocks_seem_to_fill(table: Table) -> None:
    for_filters(table)
    texts = ["a > 100", "a >= 0", "a >= 0 AND other = 3", "a % 4 = 0", "other = 6 OR a = 3", "s IS NULL", "s LIKE '%4'"]
    table.examine([Rows(where, limit=limit) for where in texts for limit in (0, 1, 9, 10, 11, 99, 1000)], look_up=["a"])
    table.delete(*range(0, 100, 3))
    table.ask([Rows(where, limit=limit) for where in texts for limit in (1, 9, 40, 1000)], "after deletes")


C32 = bug_class(32, "OR with a side without an index", "The side that had one decided alone.")


@C32.case()
def sides_that_no_index_knows(table: Table) -> None:
    for_filters(table)
    questions = ["a = 4 OR length(s) = 2", "a = 3 OR coalesce(other, 0) = 1", "a = 4 OR (a = 3 AND s RLIKE '.*')"]
    questions += ["NOT (a = 4 AND length(s) = 2)", "(a = 4 OR a + 1 = 5) AND other = 4", "a IN (4, 6) OR a = other * 2"]
    table.examine(questions, look_up=["a"])


C33 = bug_class(
    33,
    "Conditions of outer joins",
    "A condition that decides which rows join, and not which are kept, pruned the table.",
)
JOINS = [  # in each, rows on which the condition on the table is not TRUE are part of the result
    "SELECT l.a, r.b FROM lake l LEFT JOIN few r ON l.a = r.b AND l.a > 100",
    "SELECT l.a, r.b FROM lake l FULL JOIN few r ON l.a = r.b AND l.a > 100 AND l.other = 3",
    "SELECT l.a FROM lake l LEFT ANTI JOIN few r ON l.a = r.b AND l.a > 100",
]


@C33.case()
def joins_that_keep_what_does_not_match(table: Table) -> None:
    """MERGE ... WHEN NOT MATCHED BY SOURCE is such a join."""
    for_filters(table)
    table.index(look_up=["a"])
    table.ask([Query(sql, (4, 5, 150, 151, 198)) for sql in JOINS], "with an index")


C34 = bug_class(34, "Wildcards and escapes of LIKE", "An escaped wildcard ended the prefix, or a literal one did not.")


@C34.case()
def escapes_in_patterns(table: Table) -> None:
    texts = ["50%", "50", "500", "5_0", "5a0", "a\\b", "a\\", "%", "_", "", None, "50%x", "5__", "\\%"]
    table.write({"a.parquet": numbered(s=texts)}, row_group_size=1, write_page_index=True)
    patterns = [
        "50\\\\%",
        "50%",
        "50\\\\%%",
        "5\\\\_0",
        "5_0",
        "a\\\\\\\\%",
        "a\\\\\\\\",
        "\\\\%",
        "\\\\_",
        "%",
        "",
        "\\\\%%",
        "_",
    ]
    questions = [f"s {op} '{p}'" for p in patterns for op in ("LIKE", "NOT LIKE")]
    questions += ["s LIKE '50!%' ESCAPE '!'", "s LIKE '5!_%' ESCAPE '!'", "s LIKE '!%%' ESCAPE '!'"]
    table.examine(questions)
