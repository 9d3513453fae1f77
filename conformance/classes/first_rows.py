"""H: the first rows of an order, and limits."""

from __future__ import annotations

import math

import pyarrow as pa

from conformance.classes.pages_and_deletes import NO_DELETES, NO_LOG_FILES
from conformance.engine import ICEBERG, FirstRows, Question, Rows
from conformance.footers import MAX_VALUE, MIN_VALUE, NULL_COUNT, without
from conformance.iceberg import IcebergTable
from conformance.registry import bug_class
from conformance.table import Table, numbered

LIMITS = (1, 3, 10)


def firsts(*orders: str, where: str = "TRUE") -> list[FirstRows]:
    """The first rows of some orders; the row id, added last, leaves no choice among equal rows."""
    return [FirstRows(where, f"{order}, rid", limit) for order in orders for limit in LIMITS]


BOTH_WAYS = ("a", "a DESC", "a NULLS LAST", "a DESC NULLS FIRST")

C48 = bug_class(
    48,
    "First rows in what has no statistics",
    "Units without statistics dropped out when bounds were merged, and with them the first rows.",
)


@C48.case()
def files_without_statistics_hold_the_first_rows(table: Table) -> None:
    table.write({"0.parquet": numbered(a=range(10, 30), f=[float(i) for i in range(20)])}, row_group_size=5)
    extremes = numbered(20, a=[-5, 99, None, 20], f=[math.nan, -math.inf, None, 3.5])
    table.write({"1.parquet": extremes}, row_group_size=1, footer=without(MIN_VALUE, MAX_VALUE, NULL_COUNT))
    table.write({"2.parquet": numbered(24, a=[-9, 98], f=[7.0, -7.0])}, row_group_size=1, write_statistics=False)
    orders = (*BOTH_WAYS, "f", "f DESC")
    table.examine([*firsts(*orders), *firsts(*orders, where="a > 11 OR a < 0")], clustered_by=["a"])
    table.write({"3.parquet": numbered(26, a=[-20, 200], f=[0.0, math.inf])}, row_group_size=1)
    table.ask_around_a_refresh(firsts(*orders), "a file came without an index entry")


@C48.case()
def text_longer_than_bounds(table: Table) -> None:
    """All texts have the same bounds once these are cut."""
    texts = ["x" * 70 + end for end in ("b", "a", "\U0010ffff", "", "aa")] + ["x", "y", None]
    table.write({"0.parquet": numbered(a=texts)}, row_group_size=1)
    table.examine([*firsts(*BOTH_WAYS), *firsts("a DESC", where="a LIKE 'x%'")], clustered_by=["a"])


C49 = bug_class(
    49, "NULLs first, and how many is unknown", "An absent null count was read as 0, though NULLs come first."
)


@C49.case()
def null_counts_are_absent(table: Table) -> None:
    table.write({"0.parquet": numbered(a=[1, 2, 3, 4])}, row_group_size=2)
    table.write({"1.parquet": numbered(4, a=[50, None, 60, None])}, row_group_size=2, footer=without(NULL_COUNT))
    table.write({"2.parquet": numbered(8, a=[None, None, 70, 80])}, row_group_size=2)
    table.examine([*firsts(*BOTH_WAYS), *firsts(*BOTH_WAYS, where="rid <> 5")], clustered_by=["a"])


C50 = bug_class(
    50,
    "A unit given twice",
    "The boundary moved while blocks were read, the plan was rebuilt, and some were read again, or never.",
)


@C50.case()
def the_boundary_moves_with_every_block(table: Table) -> None:
    """Bounds that overlap: every block read may hold better rows than the one before."""
    values = [(i * 37) % 64 + 100 * (i % 2) for i in range(64)]
    files = {f"{i}.parquet": numbered(i * 16, a=values[i * 16 :][:16], b=[i % 3] * 16) for i in range(4)}
    table.write(files, row_group_size=2)
    wheres = ("b = 1", "a % 5 = 2", "b = 1 OR a > 150", "a > 1000")
    questions = [question for where in wheres for question in firsts("a", "a DESC", "b, a DESC", where=where)]
    table.examine(questions, look_up=["b"], clustered_by=["b", "a DESC"])
    table.delete(3, 17, 40)
    table.ask(questions, "after deletes")


C51 = bug_class(
    51,
    "A verdict remembered without a part of the question",
    "What was remembered of a condition was used for another limit, another order or another filter beside it.",
)


@C51.case()
def the_same_condition_asked_otherwise(table: Table) -> None:
    table.write({"0.parquet": numbered(a=[i % 10 for i in range(40)], b=range(40, 0, -1))}, row_group_size=4)
    table.index(look_up=["a"], clustered_by=["b"])
    where = "a = 3"
    orders = firsts("b", "b DESC", "a, b", where=where)
    others = [Rows(where), Rows(where, limit=2), Rows(f"{where} AND b > 20"), Rows(where, limit=0)]
    table.ask([*orders, *others, *firsts("b", where=f"{where} AND b > 20"), *orders, *others], "one after the other")


C59 = bug_class(
    59,
    "Limits that count what does not count",
    "Deleted rows, or NULLs, filled a limit; overlap was looked for in the neighbour alone.",
    parquet=NO_DELETES,
    hudi=NO_LOG_FILES,
)


@C59.case(ICEBERG)
def deleted_rows_do_not_fill_a_limit(table: IcebergTable) -> None:
    table.write({"0.parquet": numbered(a=range(8))}, row_group_size=4)
    table.write({"1.parquet": numbered(8, a=range(8, 16))}, row_group_size=4)
    table.write({"2.parquet": numbered(16, a=[None, 0, 15, 7])}, row_group_size=2)
    table.index(look_up=["a"], clustered_by=["a"])
    questions: list[Question] = [
        *firsts(*BOTH_WAYS),
        *firsts("a", where="a >= 2"),
        *(Rows("a >= 0", limit=n) for n in LIMITS),
    ]
    table.ask(questions, "before deletes")
    table.delete(0, 1, 2, 15, 17)
    table.ask(questions, "after positions were deleted")
    table.delete_by_key("a", 14, 4)
    table.ask_around_a_refresh(questions, "keys were deleted")


@C59.case(version=3)
def vectors_do_not_fill_a_limit(table: IcebergTable) -> None:
    table.write({"0.parquet": numbered(a=range(12))}, row_group_size=4)
    table.index(clustered_by=["a"])
    table.delete_by_vectors(0, 1, 2, 3, 11, 10)
    questions: list[Question] = [*firsts(*BOTH_WAYS), *(Rows("a >= 0", limit=n) for n in LIMITS)]
    table.ask(questions, "after deletes")


@C59.case()
def an_earlier_block_reaches_further(table: IcebergTable) -> None:
    """Blocks [0, 100], [1, 1], [2, 3]: the first three rows are in all of them."""
    table.write({"0.parquet": numbered(a=pa.array([0, 100, 1, 2, 3, 3, 3, 3], pa.int64()))}, row_group_size=2)
    table.write({"1.parquet": numbered(8, a=[1, None, None, None])}, row_group_size=4)
    table.index(clustered_by=["a"])
    table.ask(firsts(*BOTH_WAYS), "with an index")
