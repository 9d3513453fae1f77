"""B. Missing or fabricated statistics: what files and manifests do not say, or say wrongly."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from conformance.engine import PARQUET, Aggregate
from conformance.files import WRITERS
from conformance.footers import (
    MAX_VALUE,
    MIN_VALUE,
    NULL_COUNT,
    no_nulls_and_no_bounds,
    signed_bounds,
    without,
)
from conformance.iceberg import METRICS, IcebergTable
from conformance.registry import bug_class
from conformance.table import Table, numbered

NAN = float("nan")


def with_nulls(first: int = 0) -> pa.Table:
    """Blocks of two rows: of NULL only, of values only, and of both."""
    return numbered(first, a=[None, None, 1, 2, None, 3, 4, 5], s=[None, "", "", None, "b", "c", "d", "e"])


NULL_TESTS = ["a IS NULL", "a IS NOT NULL", "NOT (a IS NULL)", "a <=> NULL", "a IS NULL OR s = 'e'", "s IS NULL"]
NULL_TESTS += ["NOT (s <=> NULL)", "a > 3", "a < 3", "NOT (a > 3)", "a = 3 OR s IS NULL"]

C8 = bug_class(
    8,
    "A null count that is absent",
    "It was read as 0, or as all; so were bounds of which only one was there, or none beside a null count of 0.",
)


@C8.case()
def footers_lack_statistics(table: Table) -> None:
    table.write({"0.parquet": with_nulls()}, row_group_size=2)
    table.write({"1.parquet": with_nulls(8)}, row_group_size=2, footer=without(NULL_COUNT))
    table.write({"2.parquet": with_nulls(16)}, row_group_size=2, footer=without(MIN_VALUE))
    table.write({"3.parquet": with_nulls(24)}, row_group_size=2, footer=without(MAX_VALUE, NULL_COUNT))
    table.write({"4.parquet": with_nulls(32)}, row_group_size=2, footer=no_nulls_and_no_bounds)
    table.write({"5.parquet": with_nulls(40)}, row_group_size=2, write_statistics=False)
    table.examine(NULL_TESTS)


@C8.case()
def manifests_lack_metrics(table: Table) -> None:
    """Of a directory: files without statistics beside files with some."""
    for i in range(len(METRICS) + 1):
        metrics = (
            {"metrics": [metric for j, metric in enumerate(METRICS) if j != i]}
            if isinstance(table, IcebergTable)
            else {}
        )
        table.write({f"{i}.parquet": with_nulls(i * 8)}, write_statistics=i % 2 == 0, **metrics)
    table.examine(NULL_TESTS)


@C8.case(PARQUET)
def files_of_several_writers(table: Table) -> None:
    for i, writer in enumerate(WRITERS):
        table.write({f"{writer}.parquet": with_nulls(i * 8)}, writer=writer)
    table.examine(NULL_TESTS, look_up=["a"])


C9 = bug_class(9, "IS NULL without null counts", "A count that is not known was taken for none, or for an exact set.")


@C9.case()
def null_tests_without_statistics(table: Table) -> None:
    for i, statistics in enumerate((True, False, ["rid"], ["a"])):
        table.write({f"{i}.parquet": with_nulls(i * 8)}, row_group_size=2, write_statistics=statistics)
    table.examine(NULL_TESTS)


C10 = bug_class(10, "Row groups and files without rows", "A row count of 0 or unknown was taken for an empty file.")


@C10.case()
def row_groups_of_no_rows(table: Table) -> None:
    rows = numbered(a=[1, 2, 3])
    table.write({"a.parquet": rows}, groups=[0, 3, 0])
    table.write({"b.parquet": rows[:0]}, groups=[0])
    table.write({"c.parquet": rows[:0]})
    table.write({"d.parquet": numbered(3, a=[6, None])}, groups=[0, 0, 1, 0, 1])
    table.examine(["a = 2", "a > 5", "a IS NULL", "TRUE", "NOT a = 2"], look_up=["a"])
    table.ask([Aggregate(("count(*)", "count(a)", "min(a)", "max(a)"))])


C11 = bug_class(11, "Bounds that are falsy", "A bound of 0, '' or an empty binary was taken for none.")


@C11.case()
def zeros_and_empty_texts(table: Table) -> None:
    rows = numbered(
        i=[0, 0, 0, 1],
        x=[0.0, -0.0, 0.0, 1.0],
        s=["", "", "", "a"],
        b=[b"", b"", b"", b"a"],
        flag=[False, False, False, True],
        d=pa.array([0, 0, 0, 1], pa.int32()).cast(pa.date32()),
        n=pa.array([Decimal(0)] * 3 + [Decimal(1)], pa.decimal128(30, 2)),
    )
    table.write({"a.parquet": rows}, row_group_size=1, write_page_index=True)
    zeros = {"i": "0", "x": "0D", "s": "''", "b": "X''", "flag": "FALSE", "d": "DATE '1970-01-01'", "n": "0"}
    questions = [f"{c} {op} {zero}" for c, zero in zeros.items() for op in ("=", "<", "<=", ">", ">=", "!=")]
    table.examine([*questions, *(f"{c} IN ({zero})" for c, zero in zeros.items())], look_up=list(zeros))


C14 = bug_class(
    14, "A parent's bounds of one child", "Bounds of a group of blocks were those of one of them, or of the known ones."
)


@C14.case()
def forty_files_of_which_some_are_odd(table: Table) -> None:
    """One of NULL only, one with NaN, one that alone holds the extremes, one without statistics."""
    odd = {7: [None, None], 20: [NAN, 3.0], 33: [-1e300, 1e300]}
    files = {
        f"{i:02}.parquet": numbered(i * 2, x=pa.array(odd.get(i, [i, i + 0.5]), pa.float64()), s=[f"k{i}", None])
        for i in range(40)
    }
    table.write(files)
    table.write({"40.parquet": numbered(80, x=[-7.0, 500.0], s=["k40", None])}, write_statistics=False)
    questions = ["x = 12", "x > 1e299", "x < -5", "x IS NULL", "x = CAST('NaN' AS DOUBLE)", "x > 39 AND s = 'k33'"]
    questions += ["s = 'k7'", "s IS NULL AND x < 2", "NOT (x < 38)", "x BETWEEN 19.2 AND 20", "x = 500"]
    table.examine(questions, clustered_by=["x"])


C15 = bug_class(
    15,
    "Statistics of writers with bugs",
    "Bounds by signed bytes, and null counts that leave some out, were believed.",
)


@C15.case()
def null_counts_of_dictionaries_in_structs(table: Table) -> None:
    """pyarrow leaves the NULLs of the struct itself out of the count where its field is a dictionary."""
    field = pa.array(["a", "b"] * 4).dictionary_encode()
    mask = pa.array([False, False, True, True, False, True, True, True])
    table.write(
        {"a.parquet": numbered(st=pa.StructArray.from_arrays([field], ["s"], mask=mask))},
        row_group_size=4,
        write_page_index=True,
    )
    questions = ["st.s IS NULL", "st.s IS NOT NULL", "st.s = 'a'", "NOT (st.s = 'a')", "st.s <=> NULL"]
    table.examine([*questions, Aggregate(("count(*)",), "st.s IS NULL")])


@C15.case()
def text_bounds_by_signed_bytes(table: Table) -> None:
    texts = ["a", "b", "é", "z", "a", "ü", "€", "x"]
    table.write({"a.parquet": numbered(s=texts)}, row_group_size=2, footer=signed_bounds, use_dictionary=False)
    questions = [f"s {op} '{text}'" for text in ("a", "é", "m", "z", "ü", "€") for op in ("=", ">", "<=")]
    table.examine([*questions, "s LIKE 'é%'"])
