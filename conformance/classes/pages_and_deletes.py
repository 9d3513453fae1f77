"""E, continued: parts of blocks that are skipped, and deleted rows."""

from __future__ import annotations

import pyarrow as pa

from conformance.classes.coverage import three_commits
from conformance.delta import DeltaTable
from conformance.engine import DELTA, ICEBERG, Aggregate, Rows
from conformance.iceberg import IcebergTable
from conformance.registry import bug_class
from conformance.table import Table, numbered

C38 = bug_class(
    38, "Pages", "Pages of NULL only, of columns that end at other rows, or cut bounds gave the wrong ranges of rows."
)


@C38.case()
def pages_that_end_at_other_rows(table: Table) -> None:
    """Wide values make more pages than narrow ones; some pages hold NULL alone."""
    n = 60
    rows = numbered(
        a=[None if 10 <= i < 30 else i for i in range(n)],
        s=[None if i % 20 < 5 else "x" * 200 + str(i) for i in range(n)],
        flag=[i >= 30 for i in range(n)],
        tags=[[f"t{i}"] * (i % 4) for i in range(n)],
    )
    small = {"write_page_index": True, "data_page_size": 600, "write_batch_size": 4, "use_dictionary": False}
    table.write({"a.parquet": rows}, row_group_size=30, **small)
    questions = ["a = 7", "a IS NULL", "a > 40 AND flag", "a IS NULL AND s IS NULL", "NOT (a = 7)", "a IN (9, 30, 31)"]
    questions += [f"s = '{'x' * 200}33'", "s LIKE '%7'", "a < 3 OR s IS NULL", "flag AND NOT (a > 33)", "rid = 29"]
    table.examine([*questions, "rid BETWEEN 27 AND 33 AND size(tags) = 3"])
    table.delete(7, 8, 29, 30, 31, 45)
    table.ask(questions, "after deletes")


NO_DELETES = "a directory has no rows that its files hold and that are deleted"
NO_LOG_FILES = "base files hold no deleted rows, and file groups with log files are refused"

C42 = bug_class(
    42,
    "What changed since, kept beside the base",
    "A base file was pruned, and with it the newer versions of its rows that lay elsewhere.",
    parquet=NO_DELETES,
    hudi=NO_LOG_FILES,
)


@C42.case(ICEBERG)
def updates_as_deletes_and_inserts(table: IcebergTable) -> None:
    table.write({"0.parquet": numbered(k=[1] * 32)}, row_group_size=8)
    table.write({"1.parquet": numbered(32, k=[2] * 8)}, row_group_size=8)
    table.index(look_up=["k"], clustered_by=["rid"])
    questions = [
        "TRUE",
        "k = 1",
        "k = 2",
        "k = 9",
        "rid >= 0",
        "k = 1 AND rid > 5",
        "rid = 35",
        "k IS NULL",
        "rid = 100",
    ]
    limits = [Rows("k = 1", limit=limit) for limit in (1, 2, 5)]
    table.delete(*range(1, 31), 35)
    table.ask([*questions, *limits], "after deletes")
    table.delete(36)
    table.write({"2.parquet": numbered(100, k=[9])})
    table.ask([*questions, *limits], "after an update")
    table.delete_by_key("k", 2)
    table.write({"3.parquet": numbered(101, k=[2, 2])})
    table.ask_around_a_refresh([*questions, *limits], "keys were deleted and written again")


@C42.case(ICEBERG)
def keys_of_null_and_nan(table: IcebergTable) -> None:
    table.write({"0.parquet": numbered(k=[1, None, 3, None], s=["a", "b", None, "d"])}, row_group_size=1)
    table.index(look_up=["k", "s"])
    table.delete_by_key("k", None)
    table.delete_by_key("s", "a")
    table.write({"1.parquet": numbered(4, k=[None, 1], s=["a", "a"])})
    questions = ["k IS NULL", "k = 1", "s = 'a'", "TRUE", "k = 3", "NOT (k = 3)"]
    table.ask_around_a_refresh(questions, "keys were deleted")


@C42.case(DELTA)
def updates_by_vectors(table: DeltaTable) -> None:
    table.write({"0.parquet": numbered(k=[1] * 32)}, row_group_size=8)
    table.index(look_up=["k"], clustered_by=["rid"])
    questions = ["TRUE", "k = 1", "k = 2", "rid >= 0", "k = 1 AND rid > 5", "rid = 100", "rid < 31", "k IS NULL"]
    limits = [Rows("k = 1", limit=limit) for limit in (1, 2, 5)]
    table.delete(*range(1, 31))
    table.write({"1.parquet": numbered(100, k=[2, 1])})
    table.ask([*questions, *limits], "after an update")
    table.delete(31, 101)
    table.write({"2.parquet": numbered(102, k=[2])}, stats=False)
    table.ask_around_a_refresh([*questions, *limits], "after another")


C43 = bug_class(
    43,
    "Row ids and addresses",
    "A row's own id, which survives a rewrite, was used as its address.",
    parquet="a directory has no row ids",
    delta="row ids are not read",
    hudi="rows have keys, and no ids",
)


@C43.case(version=3)
def rows_keep_their_ids_and_move(table: IcebergTable) -> None:
    """Version 3 numbers rows through all files; files are rewritten and manifests merged."""
    for i in range(3):
        table.write({f"{i}.parquet": numbered(i * 10, a=range(i * 10, i * 10 + 10))}, row_group_size=5)
    table.index(look_up=["a"])
    questions = ["a = 3", "a = 17", "a IN (1, 14, 27)", "a > 17", "NOT (a < 22)", "a = 99", "rid = 12"]
    table.ask(questions, "with an index")
    whole = table.rows.sort_by([("a", "descending")])
    table.rewrite(
        ["0.parquet", "2.parquet"], {"3.parquet": whole.filter(pa.array([not 10 <= i < 20 for i in range(29, -1, -1)]))}
    )
    table.ask(questions, "after a rewrite")
    table.rewrite_manifests(lambda entries: [entries])
    table.delete(14, 27)
    table.ask_around_a_refresh(questions, "manifests were merged and rows deleted")


C44 = bug_class(
    44,
    "Deleted rows in aggregates and positions",
    "Bounds and counts of files with deletion vectors were taken for those of their live rows.",
    parquet=NO_DELETES,
    hudi=NO_LOG_FILES,
)
AGGREGATES = [
    Aggregate(("count(*)", "count(a)", "min(a)", "max(a)")),
    Aggregate(("min(s)", "max(s)", "count(s)")),
    Aggregate(("count(*)", "max(a)"), "a < 25"),
    Aggregate(("min(a)",), "s = 'x'"),
]
LIVE = ["TRUE", "a = 0", "a = 29", "a > 17", "s IS NULL", "NOT (a < 22)", "a BETWEEN 4 AND 6"]


@C44.case(ICEBERG, DELTA, version=3)
def deletion_vectors(table: IcebergTable | DeltaTable) -> None:
    three_commits(table)
    table.index(look_up=["a"])
    table.delete_by_vectors(0, 1, 2, 3, 4, 29, 5)
    table.ask([*LIVE, *AGGREGATES, Rows("a < 10", limit=4)], "after deletes")
    table.delete_by_vectors(6, 28, *range(10, 20))
    table.ask_around_a_refresh([*LIVE, *AGGREGATES, Rows("a < 20", limit=4)], "more deletes")


@C44.case(ICEBERG)
def positions_and_keys(table: IcebergTable) -> None:
    three_commits(table)
    table.index(look_up=["a"])
    table.delete(0, 1, 2, 3, 4, 29)
    table.ask([*LIVE, *AGGREGATES, Rows("a < 10", limit=4)], "after positions were deleted")
    table.delete_by_key("a", 28, 9, 14)
    table.write({"3.parquet": numbered(30, a=[0, 29], s=["x", None])})
    table.ask_around_a_refresh([*LIVE, *AGGREGATES, Rows("a < 20", limit=4)], "keys were deleted")
