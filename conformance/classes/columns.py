"""B, continued: changing schemas, and files that differ in their columns and types (C12, C13)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyiceberg.types import LongType, StringType

from conformance.delta import DeltaTable
from conformance.engine import DELTA, ICEBERG
from conformance.iceberg import IcebergTable
from conformance.registry import bug_class
from conformance.table import Table, numbered

NAN = float("nan")

C12 = bug_class(
    12,
    "Columns that come and go",
    "A column that a file lacks was taken for one that cannot match IS NULL, != or NOT; its default was forgotten; "
    "a new column was pruned by the statistics of a former one of its name.",
)
SHAPES = ["{c} = {v}", "{c} != {v}", "{c} IS NULL", "{c} IS NOT NULL", "{c} <=> {v}", "NOT ({c} <=> {v})"]
SHAPES += ["{c} NOT IN ({v})", "NOT ({c} > {v} AND kept > 1)", "{c} > {v} OR kept = 2", "coalesce({c}, {v}) = {v}"]


@C12.case()
def files_lack_columns(table: Table) -> None:
    files: list[dict[str, Any]] = [
        {"kept": [1, 2], "dropped": [1, 2], "st": [{"p": 1}, None]},
        {"kept": [3, 4], "st": [{"p": 1, "q": "a"}, {"p": None, "q": None}]},
        {"added": ["a", None], "kept": [5, 6], "st": [{"q": "a"}, {"q": "b"}]},
        {"added": ["b", "a"], "dropped": [7, 8]},
    ]
    for i, columns in enumerate(files):
        table.write({f"{i}.parquet": numbered(i * 2, **columns)}, row_group_size=1)
    values = {"kept": "3", "dropped": "7", "added": "'a'", "st.p": "1", "st.q": "'a'"}
    questions = [shape.format(c=c, v=v) for c, v in values.items() for shape in SHAPES]
    table.examine(questions, look_up=["kept", "added", "st.q"])


@C12.case(ICEBERG)
def a_column_under_the_name_of_another(table: IcebergTable) -> None:
    names_change(table, LongType(), StringType())


@C12.case(DELTA)
def a_mapped_column_under_the_name_of_another(table: DeltaTable) -> None:
    table.map_columns()
    names_change(table, pa.int64(), pa.string())


def names_change(table: IcebergTable | DeltaTable, long: Any, text: Any) -> None:
    """A column is dropped, another renamed, and new ones get the names of both."""
    table.write({"0.parquet": numbered(k=[1, 2, 3, 7], kept=[1, 2, 3, 4])}, row_group_size=2)
    table.index(look_up=["k"], clustered_by=["k"])
    table.rename("kept", "old")
    table.drop("k")
    table.add("k", long)
    table.add("kept", text)
    questions = [
        "k IS NULL",
        "k = 7",
        "k = 1",
        "k != 1",
        "NOT (k > 5)",
        "k <=> NULL",
        "old = 3",
        "kept = 'a'",
        "old > 8",
    ]
    questions += ["kept IS NULL AND old < 3"]
    table.ask(questions, "after columns changed names")
    table.write({"1.parquet": numbered(4, k=[7, None, 100], kept=["a", None, "b"], old=[9, 3, None])}, row_group_size=1)
    table.ask_around_a_refresh(questions, "files with the new columns came")


@C12.case(ICEBERG, version=3)
def a_column_with_a_default(table: IcebergTable) -> None:
    """Earlier rows have the default, which no file holds."""
    table.write({"0.parquet": numbered(kept=[1, 2, 3, 4])}, row_group_size=2)
    table.index(look_up=["kept"])
    table.add("k", LongType(), default=7)
    table.add("s", StringType(), default="as ever")
    questions = [
        "k = 7",
        "k != 7",
        "k IS NULL",
        "k > 6",
        "k < 7",
        "NOT (k = 7)",
        "s = 'as ever'",
        "s LIKE 'as%'",
        "s > 'b'",
    ]
    questions += ["k = 7 AND kept = 2", "k IN (1, 8)"]
    table.ask(questions, "after columns with defaults came")
    table.write({"1.parquet": numbered(4, kept=[5, 6, 7], k=[7, None, 8], s=[None, "z", "as ever"])}, row_group_size=1)
    table.ask_around_a_refresh(questions, "files with the new columns came")


C13 = bug_class(
    13,
    "Types that became wider",
    "Bounds and values of a narrow type were compared as ones of the wide type, wrapped, or hashed by their width.",
)


@C13.case()
def files_of_narrower_types(table: Table) -> None:
    """Integers of 8, 32 and 64 bits, float and double, decimals of less and of more digits."""
    money = [Decimal("1.25"), Decimal("99.99")]
    kinds = [
        (pa.int8(), [-1, 100], pa.float32(), [0.1, NAN], pa.decimal128(4, 2)),
        (pa.int32(), [100, 2**31 - 1], pa.float32(), [0.1, 0.5], pa.decimal128(18, 2)),
        (pa.int64(), [100, 2**40], pa.float64(), [1e300, -0.0], pa.decimal128(20, 2)),
    ]
    questions = ["i = 100", "i = 356", "i < 256", "i > 2147483647", "i = 1099511627776", "i IN (-1, 4294967295)"]
    questions += ["x = 0.1D", "x > 0.1D", "x <= CAST('0.1' AS FLOAT)", "x > 1e200", "x = 0", "i = 9", "x IN (0.5D, 7D)"]
    questions += ["n = 1.25", "n = 1.250000", "n > 99.985", "n < 100000000000000000", "n IN (99.99, 1)"]
    for number, (integer, i, floating, x, decimal) in enumerate(kinds):
        columns = {"i": pa.array(i, integer), "x": pa.array(x, floating), "n": pa.array(money, decimal)}
        table.write({f"{number}.parquet": numbered(number * 2, **columns)}, row_group_size=1)
        if number == 0:
            table.index(look_up=["i", "x", "n"])
    table.ask(questions, "with an index of the narrowest types")
    table.refresh()
    table.ask(questions, "after a refresh")
    table.index(look_up=["i", "x", "n"])
    table.ask(questions, "with an index of all types")


C47 = bug_class(47, "Files of other schemas", "The schema of the first block was used for all.")


@C47.case()
def every_file_has_its_own_columns(table: Table) -> None:
    """Their types and their order too."""
    for i in range(8):
        wide = i > 3
        columns: dict[str, Any] = {"a": pa.array([i, i + 50], pa.int64() if wide else pa.int32())}
        if i % 3:
            columns["b"] = pa.array([f"k{i}", None])
        columns["c"] = pa.array([i / 2, NAN], pa.float64() if wide else pa.float32())
        names = sorted(columns, reverse=bool(i % 2))
        table.write({f"{i}.parquet": numbered(i * 2, **{name: columns[name] for name in names})})
    questions = ["a = 3", "a = 54", "b = 'k4'", "b IS NULL", "c = 1.5D", "isnan(c)", "NOT (b = 'k4')"]
    questions += ["a = 6 AND b IS NULL", "c > 2D AND b = 'k7'"]
    table.examine(questions, look_up=["a", "b", "c"])


@C47.case(ICEBERG)
def one_name_means_three_columns(table: IcebergTable) -> None:
    names_are_exchanged(table, LongType())


@C47.case(DELTA)
def one_name_means_three_mapped_columns(table: DeltaTable) -> None:
    table.map_columns()
    names_are_exchanged(table, pa.int64())


def names_are_exchanged(table: IcebergTable | DeltaTable, long: Any) -> None:
    """Every file has other columns under the same names."""
    table.write({"0.parquet": numbered(a=[10, None], b=[20, 21])})
    table.rename("a", "c")
    table.rename("b", "a")
    table.write({"1.parquet": numbered(2, c=[11, 12], a=[22, None])})
    table.index(look_up=["a", "c"], clustered_by=["a"])
    table.drop("c")
    table.add("b", long)
    table.write({"2.parquet": numbered(4, a=[23, 24], b=[10, 20])})
    questions = ["TRUE", "a = 20", "a = 22", "a IS NULL", "b = 20", "b = 10", "b IS NULL", "a > 21 OR b = 10"]
    table.ask_around_a_refresh(questions, "columns changed names")
