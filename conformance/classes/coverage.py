"""A. Coverage and staleness: what the index knows is not what the table is now."""

from __future__ import annotations

from conformance.registry import bug_class
from conformance.table import Table, numbered

POINTS = ["a = 3", "a = 25", "a IN (1, 14, 27)", "a > 17", "s IS NULL", "s = 'x' AND a < 12", "NOT (a < 22)", "a = 99"]


def three_files(table: Table) -> None:
    """Thirty rows in three files of two row groups."""
    files = {f"{i}.parquet": numbered(i * 10, a=range(i * 10, i * 10 + 10), s=["x", None] * 5) for i in range(3)}
    table.write(files, row_group_size=5)


C1 = bug_class(1, "A block without an index entry", "What the index did not cover was taken for dead.")


@C1.case()
def files_that_came_since(table: Table) -> None:
    three_files(table)
    table.examine(POINTS, look_up=["a", "s"])
    nothing = numbered(30, a=[1], s=["x"])[:0]
    table.write({"late.parquet": numbered(30, a=[3, 25, 99], s=["x", None, "x"]), "empty.parquet": nothing})
    table.ask(POINTS, "after files came")
    table.refresh()
    table.ask(POINTS, "after a refresh")


@C1.case()
def columns_that_came_since(table: Table) -> None:
    three_files(table)
    table.index(look_up=["a"])
    table.write({"late.parquet": numbered(30, a=[3, 4], s=["x", "y"], later=[7, None])})
    questions = ["later = 7", "later IS NULL", "NOT later = 7", "later <=> NULL AND a = 3", "later != 7 OR a = 3"]
    table.ask(questions, "after files with one column more came")
    table.refresh()
    table.ask(questions, "after a refresh")


C3 = bug_class(3, "A file overwritten under its path", "Statistics of the former bytes were believed.")


@C3.case()
def another_file_of_equal_size(table: Table) -> None:
    table.write(
        {"a.parquet": numbered(a=[1, 2]), "b.parquet": numbered(2, a=[3, 4])}, compression="none", use_dictionary=False
    )
    questions = ["a = 1", "a = 2", "a >= 7"]
    table.examine(questions, look_up=["a"])
    new = {"a.parquet": numbered(a=[7, 8])}
    table.rewrite(["a.parquet"], new, compression="none", use_dictionary=False)
    table.ask(questions, "after the overwrite")
    table.refresh()
    table.ask(questions, "after a refresh")


C5 = bug_class(5, "Compaction", "Addresses of rows that had moved were looked up.")


@C5.case()
def all_rows_move(table: Table) -> None:
    three_files(table)
    table.index(look_up=["a"])
    whole = table.rows.sort_by([("s", "ascending")])
    table.rewrite(list(table.files), {"1.parquet": whole}, row_group_size=7)
    table.ask(POINTS, "after the compaction")
    table.refresh()
    table.ask(POINTS, "after a refresh")
