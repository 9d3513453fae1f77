"""What survives is handed on as arrays: to readers here, and to Spark's tasks as bytes."""

from __future__ import annotations

import datetime as dt
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.functions import spark_partition_id

import secateur as sec
from secateur.io.scan.block_list import BlockList, block_list, reading_order
from secateur.io.scan.read_path import MOST_LOCAL_FILES, MOST_NATIVE, choose_read_path
from secateur.io.spark.packing import MOST_TASKS, TASK_BYTES, pack
from secateur.io.spark.to_spark import descriptors
from secateur.io.tables.file_rows import FileBlocks
from secateur.io.tables.listing import Listing
from secateur.io.tables.partitions import Partitions
from secateur.pruning.bounds.outcomes import EVERYTHING
from secateur.pruning.plain_blocks import PlainBlocks
from secateur.pruning.stages.survivors import Survivors
from secateur.scan import Scan
from tests.support.profiles import examples, takes_seconds
from tests.support.tables import WriteTable

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyspark.sql import SparkSession

PARTITION_VALUES = {
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.decimal128(38, 0): st.integers(-(10**37), 10**37).map(Decimal),
    pa.float64(): st.floats(allow_nan=False),
    pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(dt.UTC)),
    pa.string(): st.text(st.characters(codec="utf-8"), max_size=5),
}
NAMES = ["path", "size", "count", "p", "é"]


@st.composite
def listings(draw: st.DrawFn) -> Listing:
    paths = sorted(draw(st.sets(st.text(st.characters(codec="utf-8"), min_size=1, max_size=8), min_size=1, max_size=6)))
    n = len(paths)
    types = draw(st.lists(st.sampled_from(list(PARTITION_VALUES)), max_size=len(NAMES)))
    values = [draw(st.lists(PARTITION_VALUES[t] | st.none(), min_size=n, max_size=n)) for t in types]
    return Listing(
        paths=pa.array(paths),
        size=np.array(draw(st.lists(st.integers(0, 2**62), min_size=n, max_size=n)), np.int64),
        stamp=np.array(draw(st.lists(st.integers(0, 2**62), min_size=n, max_size=n)), np.int64),
        witness=np.array(draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=n, max_size=n)), np.int64),
        partitions=Partitions(
            tuple(pa.field(name, t) for name, t in zip(NAMES, types, strict=False)),
            tuple(pa.array(column, t) for column, t in zip(values, types, strict=True)),
        ),
    )


@st.composite
def blocks_of_listings(draw: st.DrawFn) -> tuple[Listing, list[tuple[int, int, int]]]:
    """A listing, and (file, row group, residual) of some of its blocks in any order."""
    listing = draw(listings())
    places = st.tuples(st.integers(0, len(listing.paths) - 1), st.integers(0, 2**31 - 1) | st.integers(0, 5))
    chosen = draw(st.lists(places, max_size=12, unique=True))
    return listing, [(file, row_group, draw(st.integers(0, 99))) for file, row_group in chosen]


def listed(listing: Listing, blocks: Sequence[tuple[int, int, int]]) -> BlockList:
    file, row_group, residual = np.array(blocks, np.int64).reshape(-1, 3).T
    order = reading_order(file, row_group)
    files = np.unique(file)
    partitions = pa.nulls(len(files), pa.struct([]))
    if listing.partitions.fields:
        values = [values_of_column.take(pa.array(files)) for values_of_column in listing.partitions.values]
        partitions = pa.StructArray.from_arrays(values, fields=list(listing.partitions.fields))
    return block_list(listing, partitions, file[order], row_group[order], residual[order])


def told(blocks: BlockList) -> list[tuple[object, ...]]:
    """What readers are told, block by block."""
    return [
        (file.path, file.size, file.stamp, file.witness, row_group, residual, file.options)
        for file in blocks.by_file()
        for row_group, residual in zip(file.row_groups, file.residual, strict=True)
    ]


def expected(listing: Listing, blocks: Sequence[tuple[int, int, int]]) -> list[tuple[object, ...]]:
    names = [field.name for field in listing.partitions.fields]
    return [
        (
            listing.paths[file].as_py(),
            int(listing.size[file]),
            int(listing.stamp[file]),
            int(listing.witness[file]),
            row_group,
            residual,
            {name: values[file] for name, values in zip(names, listing.partitions.values, strict=True)},
        )
        for file, row_group, residual in sorted(blocks)
    ]


@given(blocks_of_listings(), st.data())
def test_readers_are_told_all_of_every_block_in_order(
    case: tuple[Listing, list[tuple[int, int, int]]], data: st.DataObject
) -> None:
    listing, blocks = case
    read = listed(listing, blocks)
    wanted = expected(listing, blocks)
    assert len(read) == len(blocks)
    assert told(read) == wanted
    assert told(BlockList.from_bytes(read.to_bytes())) == wanted
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(blocks))] * 2)))
    part = read.between(start, stop)
    assert told(part) == wanted[start:stop]
    again = BlockList.from_bytes(part.to_bytes())
    assert told(again) == wanted[start:stop]
    assert again.files.schema == read.files.schema
    middle = data.draw(st.integers(0, len(again)))
    assert told(again.between(0, middle)) + told(again.between(middle, len(again))) == told(again)


def test_a_part_of_a_file_has_its_own_row_groups_only() -> None:
    listing = Listing(pa.array(["a", "b"]), np.array([5, 6]), *np.zeros((2, 2), np.int64), Partitions((), ()))
    whole = listed(listing, [(0, 0, 0), (0, 1, 0), (1, 0, 1), (1, 1, 0), (1, 2, 1)])
    (only,) = BlockList.from_bytes(whole.between(3, 5).to_bytes()).by_file()
    assert only == FileBlocks(
        path="b", size=6, stamp=0, witness=0, row_groups=(1, 2), residual=(0, 1), rows=(None, None), options={}
    )


# ---- tasks -----------------------------------------------------------------------------------------------------------

sizes = st.integers(0, 1 << 20) | st.integers(0, TASK_BYTES) | st.integers(0, 3 * TASK_BYTES)


def check_tasks(first: np.ndarray, sizes: np.ndarray, room: int) -> None:
    """Every block is in one task, in order; tasks keep to the room, and part no file that one task has room for."""
    cuts = pack(first, sizes)
    assert cuts[0] == 0
    assert cuts[-1] == len(sizes)
    assert (np.diff(cuts) > 0).all()
    assert len(cuts) - 1 <= MOST_TASKS
    if len(sizes):
        task_bytes = np.add.reduceat(sizes, cuts[:-1])
        assert ((task_bytes <= room) | (np.diff(cuts) == 1)).all()
        file_bytes = np.add.reduceat(sizes, first[:-1])
        inside = np.setdiff1d(cuts, first)
        assert (file_bytes[np.searchsorted(first, inside, "right") - 1] > room).all()


@given(st.lists(st.lists(sizes, min_size=1, max_size=5), max_size=20))
def test_tasks_cover_every_block_once_and_keep_to_their_room(files: list[list[int]]) -> None:
    first = np.cumsum([0, *map(len, files)])
    flat = np.array([size for file in files for size in file], np.int64)
    check_tasks(first, flat, TASK_BYTES)
    cuts = pack(first, flat)
    totals = [int(flat[start:stop].sum()) for start, stop in pairwise(cuts)]
    assert all(a + b > TASK_BYTES for a, b in pairwise(totals)), "two tasks that would fit into one"


@pytest.mark.parametrize("blocks", [1, 4, 100_000])
@pytest.mark.parametrize("size", [TASK_BYTES // 2 + 1, TASK_BYTES, TASK_BYTES * 20])
def test_tasks_grow_where_they_would_be_too_many(blocks: int, size: int) -> None:
    """So many blocks that one task for each would be too many; in files of 1, 4 and all of them."""
    n = 100_000
    flat = np.full(n, size, np.int64)
    check_tasks(np.append(np.arange(0, n, blocks), n), flat, 3 * int(flat.sum()) // MOST_TASKS)


# ---- no object for a block -------------------------------------------------------------------------------------------


def with_survivors(plan: Scan, files: int, per_file: int, block_bytes: int) -> Scan:
    """A plan for `files` files, of each of which all blocks survive."""
    n = files * per_file
    number = pa.array(np.arange(files) + 10**9).cast(pa.string())
    days = pa.array(np.arange(files, dtype=np.int32) // 100).cast(pa.date32())
    listing = Listing(
        paths=pa.compute.binary_join_element_wise("day=2024-01-01/part-", number, ".parquet", ""),
        size=np.full(files, per_file * block_bytes),
        stamp=np.zeros(files, np.int64),
        witness=np.zeros(files, np.int64),
        partitions=Partitions((pa.field("day", pa.date32()),), (days,)),
    )
    blocks = PlainBlocks(
        segment=np.zeros(n, np.int64),
        file=np.repeat(np.arange(files), per_file),
        row_group=np.tile(np.arange(per_file, dtype=np.int32), files),
        row_count=np.full(n, 1000),
        byte_count=np.full(n, block_bytes),
    )
    outcomes = np.full(n, EVERYTHING, np.uint8)
    survivors = Survivors(plan.predicate, blocks, known=outcomes)
    bare = replace(plan, paths=listing.paths, survivors=survivors, opened=replace(plan.opened, listing=listing))
    # what is left to check is that of no block in particular
    bare.__dict__["residuals"] = replace(plan.residuals, of_block=np.zeros(n, np.int64))
    return bare


@pytest.fixture
def plan(write_table: WriteTable) -> Scan:
    root = write_table({"a.parquet": {"id": [1, 2, 3], "name": ["a", "b", "c"]}})
    return sec.prune(sec.open_table(str(root)), "id = 2")


@takes_seconds
def test_a_million_survivors_make_no_object_each(plan: Scan) -> None:
    scan = with_survivors(plan, 250_000, 4, TASK_BYTES >> 9)
    tracemalloc.start()
    try:
        work = descriptors(scan, scan.fields())
        kept = tracemalloc.take_snapshot()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    objects = sum(stat.count for stat in kept.statistics("filename"))
    n = 1_000_000
    assert len(work.tasks) == -(-n // 512)
    assert peak < 100 * n, "arrays of integers and the descriptors: no tuple or string for a block"
    assert objects < 4 * len(work.tasks) + 1_000
    assert sum(map(len, work.tasks)) < 40 * n
    assert sum(len(BlockList.from_bytes(task)) for task in work.tasks) == n


def test_blocks_and_files_of_a_large_plan_are_arrays(plan: Scan) -> None:
    scan = with_survivors(plan, 250_000, 4, 1 << 20)
    assert scan.blocks["file"].type == pa.dictionary(pa.int32(), pa.string())
    assert scan.blocks["file"][-1].as_py() == scan.paths[-1].as_py()
    assert scan.residual_by_block[-1].as_py() == "`id` = 2"
    assert "1,000,000 blocks of 250,000 files" in repr(scan)


def test_sparks_own_reader_is_not_chosen_for_many_files(plan: Scan) -> None:
    assert choose_read_path(with_survivors(plan, MOST_NATIVE, 1, 1 << 20)).name == "native"
    assert choose_read_path(with_survivors(plan, MOST_NATIVE + 1, 1, 1 << 20)).name == "blocks"
    assert choose_read_path(with_survivors(plan, MOST_LOCAL_FILES, 1, 1 << 10)).name == "local"
    assert choose_read_path(with_survivors(plan, MOST_LOCAL_FILES + 1, 1, 1 << 10)).name != "local"


# ---- through Spark ---------------------------------------------------------------------------------------------------


def test_every_task_is_a_partition(spark: SparkSession, write_table: WriteTable) -> None:
    """Files of which two are too much for a task, and one that is too much for two; row groups of 10 MB."""
    noise = np.random.default_rng(1)
    root = write_table(
        {
            f"{name}.parquet": {"id": pa.array([f"{name}{i}" for i in range(n)]), "x": [noise.bytes(1 << 20)] * n}
            for name, n in (("a", 20), ("b", 20), ("c", 80))
        },
        row_group_size=10,
        compression="none",
        use_dictionary=False,
    )
    plan = sec.prune(sec.open_table(str(root)), "id >= 'a1'")
    assert len(descriptors(plan, plan.fields(["id"])).tasks) == 5
    frame = plan.to_spark(spark, columns=["id"], via="blocks")
    rows = frame.select("id", spark_partition_id().alias("task")).toArrow()
    assert sorted(set(rows["task"].to_pylist())) == [0, 1, 2, 3, 4]
    assert sorted(rows["id"].to_pylist()) == sorted(plan.to_arrow(["id"])["id"].to_pylist())


@examples(10)
@given(values=st.lists(st.integers(0, 3) | st.none(), min_size=1, max_size=6))
def test_partition_values_reach_the_rows(tmp_path_factory: pytest.TempPathFactory, values: list[int | None]) -> None:
    root = tmp_path_factory.mktemp("lake")
    for i, value in enumerate(values):
        folder = Path(root) / f"p={'__HIVE_DEFAULT_PARTITION__' if value is None else value}"
        folder.mkdir(exist_ok=True)
        pa.parquet.write_table(pa.table({"rid": [i]}), folder / f"{i}.parquet")
    rows = sec.prune(sec.open_table(str(root)), "rid >= 0").to_arrow()
    typed = values if any(value is not None for value in values) else [None] * len(values)
    assert sorted(rows.select(["rid", "p"]).to_pylist(), key=lambda row: row["rid"]) == [
        {"rid": i, "p": value} for i, value in enumerate(typed)
    ]


def test_sparks_own_reader_gets_the_surviving_row_groups_alone(spark: SparkSession, write_table: WriteTable) -> None:
    names = {f"{i}.parquet": {"id": range(i * 100, i * 100 + 100)} for i in range(4)}
    root = write_table(names, row_group_size=10)
    table = sec.open_table(str(root))
    plan = sec.prune(table, "id IN (7, 133, 139)")
    frame = plan.to_spark(spark, via="native")
    plan_text = frame._jdf.queryExecution().toString()
    assert "IndexPruning: 2 row groups of 4 files" in plan_text
    assert sorted(row.id for row in frame.collect()) == [7, 133, 139]
    by_name = sec.prune(table, "_metadata.file_name = '1.parquet' AND id < 120")
    hidden = by_name.to_spark(spark, via="native")
    assert "IndexPruning" not in hidden._jdf.queryExecution().toString(), "a column that such tables do not have"
    assert sorted(row.id for row in hidden.collect()) == list(range(100, 120))


def test_no_filter_is_left_to_parquet_where_spark_reads_files(spark: SparkSession, write_table: WriteTable) -> None:
    """Bounds leave NaN out, and a name with a dot is taken for a field of a struct: also by filters that come later."""
    data = {"id": [1, 2, 3], "x": [1.0, np.nan, 0.0], "a.b": ["u", "v", None], "a": [{"b": "w"}] * 3}
    table = sec.open_table(str(write_table({"1.parquet": data})))
    plan = sec.prune(table, "_metadata.file_name = '1.parquet' AND id > 0")
    spark.conf.set("spark.sql.parquet.filterPushdown", "true")
    try:
        for frame in (plan.to_spark(spark, via="native"), sec.dataframe(spark, table, via="public")):
            for query, wanted in {
                "x > 5": [2],
                "`a.b` = 'v'": [2],
                "`a.b` IS NULL": [3],
                "a.b = 'w'": [1, 2, 3],
            }.items():
                answer = frame.where(query)
                assert "PushedFilters: [" in answer._jdf.queryExecution().toString(), "else this test sees nothing"
                assert sorted(row.id for row in answer.collect()) == wanted, query
    finally:
        spark.conf.set("spark.sql.parquet.filterPushdown", "false")


def test_sparks_own_reader_does_not_read_what_only_a_format_knows(spark: SparkSession, catalog: Catalog) -> None:
    catalog.create_table("db.t", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1, 2, 3]}))
    plan = sec.prune(sec.open_table("db.t", catalog=catalog), "id > 1")
    with pytest.raises(ValueError, match="via='native' needs a directory"):
        plan.to_spark(spark, via="native")


def test_sparks_own_reader_takes_no_name_for_a_pattern(spark: SparkSession, write_table: WriteTable) -> None:
    root = write_table({"[1].parquet": {"id": [1]}, "1.parquet": {"id": [2]}})
    plan = sec.prune(sec.open_table(str(root)), "_metadata.file_name IS NOT NULL AND id < 2")
    assert [row.id for row in plan.to_spark(spark).collect()] == [1]
    with pytest.raises(ValueError, match="without wildcards"):
        plan.to_spark(spark, via="native")
