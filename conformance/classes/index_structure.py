"""E. The structure of an index: sets, hashes, addresses, paths, caches, threads."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from conformance.classes.coverage import POINTS, three_files
from conformance.registry import bug_class
from conformance.table import Table, numbered

C35 = bug_class(
    35, "Slips of set algebra", "An OR that intersected, an AND whose result was thrown away, a range of two points."
)


@C35.case(partitioned_by=("part",))
def indexes_of_all_kinds_combine(table: Table) -> None:
    """Partition values, zone maps, filters and pages under one AND, OR and NOT."""
    paged = {"row_group_size": 5, "write_page_index": True, "max_rows_per_page": 2}
    for part in range(3):
        for i in range(3):
            numbers = range(part * 30 + i * 10, part * 30 + i * 10 + 10)
            rows = numbered(numbers[0], ts=numbers, user=[(v * 7) % 50 for v in numbers], part=[part] * 10)
            table.write({f"{part}-{i}.parquet": rows}, **paged)
    questions = ["part = 1 AND user = 14", "part = 1 OR user = 14", "user = 14 AND ts < 20"]
    questions += ["NOT (part = 2 OR user = 14)", "part = 0 AND part = 1", "ts = 44 AND user = 9"]
    questions += ["ts BETWEEN 12 AND 17 AND (user IN (34, 41) OR part = 0)", "(ts = 3 OR user = 3) AND NOT (part = 1)"]
    questions += ["part IN (0, 2) AND (ts > 80 OR user = 0)", "user IN (0, 1, 2, 3, 4, 5, 6)", "NOT (user > 10)"]
    table.examine(questions, look_up=["user"], clustered_by=["ts"])


C36 = bug_class(
    36, "Bloom filters of others", "Hashed otherwise, of another byte order, or of a kind that the reader did not know."
)


def values_without_order(first: int) -> pa.Table:
    numbers = [(first + i) * 7919 % 1000 for i in range(40)]
    return numbered(first, a=numbers, s=[f"k{v}" for v in numbers], x=[v / 4 for v in numbers])


FILTERS = {"bloom_filter_options": {name: {"ndv": 20, "fpp": 0.01} for name in ("a", "s", "x")}}
LOOK_UPS = ["a = 919", "a = 7919", "a IN (919, 838, 5)", "s = 'k919'", "s = 'nobody'", "x = 229.75", "NOT (a = 919)"]
LOOK_UPS += ["a = 919 AND s = 'k919'", "a = 5 OR s = 'k757'", "a = '919'", "x = 0"]


@C36.case()
def filters_in_files(table: Table) -> None:
    for i in range(3):
        table.write({f"{i}.parquet": values_without_order(i * 40)}, row_group_size=10, **FILTERS)
    table.ask(LOOK_UPS, "without an index")
    table.index(filtered=["a", "s", "x"])
    table.ask(LOOK_UPS, "with an index of the files' filters")
    table.index(look_up=["a", "s", "x"])
    table.ask(LOOK_UPS, "with an index")


@C36.case()
def filters_of_an_unknown_hash(table: Table) -> None:
    """All their bits are 0: an engine that trusts them finds nothing."""
    for i in range(3):
        table.write({f"{i}.parquet": values_without_order(i * 40)}, row_group_size=10, **FILTERS)
    for path in table.directory.rglob("*.parquet"):
        blind(path)
    table.ask(LOOK_UPS, "without an index")
    table.index(filtered=["a", "s", "x"])
    table.ask(LOOK_UPS, "with an index of the files' filters")


XXHASH_AND_UNCOMPRESSED = b"\x1c\x1c\x00\x00\x1c\x1c\x00\x00\x00"  # how the header of a filter ends
LEAST_FILTER = 32  # bytes
UNKNOWN = b"\x1c\x2c\x00\x00\x1c\x1c\x00\x00\x00"


def blind(path: Path) -> None:
    """Gives the filters of a file an unknown hash and clears their bits."""
    data = bytearray(path.read_bytes())
    at = 0
    while (at := data.find(XXHASH_AND_UNCOMPRESSED, at)) >= 0:
        bits = at + len(UNKNOWN)
        data[at : bits + LEAST_FILTER] = UNKNOWN + bytes(LEAST_FILTER)
        at = bits
    path.write_bytes(data)


C37 = bug_class(
    37, "Dictionaries that end early", "A column chunk was taken for its dictionary, though later pages are plain."
)


@C37.case()
def dictionaries_that_overflow(table: Table) -> None:
    texts = [f"value {i:03} " + "x" * 20 for i in range(200)]
    options = {"row_group_size": 100, "dictionary_pagesize_limit": 256, "data_page_size": 256, "write_batch_size": 4}
    table.write({"a.parquet": numbered(s=texts, n=[i * 3 for i in range(200)])}, **options)
    questions = [f"s = '{texts[i]}'" for i in (0, 5, 99, 100, 150, 199)] + ["s != 'value 000'", "n = 597", "n = 598"]
    table.examine([*questions, f"s IN ('{texts[60]}', 'none')", "s LIKE 'value 19%'"], look_up=["s", "n"])


C39 = bug_class(39, "Addresses of blocks", "Numbers that count in a file were taken for ones that count in a segment.")


@C39.case()
def several_files_of_several_row_groups(table: Table) -> None:
    files = {f"{i}.parquet": numbered(i * 100, a=range(i * 100, i * 100 + 100)) for i in range(4)}
    table.write(files, row_group_size=10)
    questions = [f"a = {value}" for value in (0, 9, 10, 99, 100, 257, 399)]
    table.examine(questions, clustered_by=["a"])
    table.index(look_up=["a"])
    table.ask(questions, "with an index for look-ups")


C40 = bug_class(40, "Nothing to find", "An empty set of candidates stood for no index, or no index for an empty set.")


@C40.case()
def filters_over_null_and_empty_files(table: Table) -> None:
    rows = numbered(a=pa.array([None] * 4, pa.int64()), b=[1, 2, 3, 4])
    table.write({"a.parquet": rows, "b.parquet": rows[:0]}, row_group_size=2)
    questions = ["a = 1", "a IN (1, 2)", "a IS NULL", "NOT (a = 1)", "b = 9", "b > 9", "FALSE", "b = 1 AND b = 2"]
    table.examine([*questions, "a = 1 OR b = 1"], look_up=["a", "b"])


C41 = bug_class(
    41, "Paths that are not what they seem", "Escaped in one place and not in another, a slash more, a scheme less."
)
ODD = ["a b", "50%", "%20", "x+y", "a/b", "k=v", "ä", "🦊", "a'b", "#?", "a\\b", "a:b", None]


@C41.case(partitioned_by=("s",))
def odd_partition_values(table: Table) -> None:
    rows = [numbered(i * 2, a=[i, i + 100], s=pa.array([value] * 2, pa.string())) for i, value in enumerate(ODD)]
    table.write({f"{i}.parquet": data for i, data in enumerate(rows)})
    questions = ["s = '" + s.replace("\\", "\\\\").replace("'", "\\'") + "'" for s in ODD if s is not None]
    questions += ["s IS NULL", "s LIKE '%/%'", "s > 'a'", "a = 3 AND s = 'x+y'", "NOT (s = '50%')"]
    table.examine(questions, look_up=["a"])
    table.delete(0, 4)
    table.ask(questions, "after deletes")


@C41.case()
def odd_names_of_files(table: Table) -> None:
    names = [
        "a b.parquet",
        "50%.parquet",
        "%20.parquet",
        "x+y.parquet",
        "ä🦊.parquet",
        "#1.parquet",
        "a&b.parquet",
    ]
    table.write({name: numbered(i * 2, a=[i, i + 100]) for i, name in enumerate(names)})
    questions = [f"a = {i}" for i in range(len(names))] + ["a > 103", "NOT (a = 2)"]
    table.examine(questions, look_up=["a"])
    table.delete(2, 6)
    table.ask(questions, "after deletes")


C45 = bug_class(45, "Threads that share a table", "Evaluators with state gave the answer to another's question.")


@C45.case()
def many_questions_at_once(table: Table) -> None:
    three_files(table)
    questions = [f"a = {i}" for i in range(30)] + [f"a > {i} AND s IS NULL" for i in range(30)]
    table.ask(questions, "without an index", threads=8)
    table.index(look_up=["a"])
    table.ask(questions, "with an index", threads=8)


C46 = bug_class(46, "Caches that outlive what they hold", "A key of a cache met again with another meaning.")


@C46.case()
def names_that_come_again(table: Table) -> None:
    """Files and indexes are dropped and rebuilt under the names of old ones."""
    options = {"row_group_size": 5}
    for shift in (0, 100, 200):
        rows = {
            f"{i}.parquet": numbered(i * 10, a=range(shift + i * 10, shift + i * 10 + 10), s=["x"] * 10)
            for i in range(3)
        }
        table.rewrite(list(table.files) if shift else [], rows, **options)
        table.index(look_up=["a"])
        table.ask([*POINTS, "a = 3", "a = 103", "a = 203", "a > 95 AND a < 105"], f"values are {shift} greater")
        table.drop_index()
        table.ask(["a = 3", "a = 103"], "the index was dropped")
