"""Conditions on paths into VARIANT: blocks are pruned by the statistics of shredded values, and no row is lost.

Spark writes files that shred one column differently, or not at all; Spark's rows decide.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import secateur as sec
from secateur.io.spark.version import IS_3
from secateur.io.tables.directory.table import ParquetDirectory
from tests.support.enabled_session import plan_of, pruning, reasons, settings
from tests.support.profiles import by_profile, one_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.skipif(IS_3, reason="Spark 3.5 has no VARIANT")

ROWS, BLOCK = 160, 40
PREDICATES = by_profile(16, 600, 3000)
AT_ONCE = 40  # predicates that one job of Spark's evaluates
SCHEMAS = {  # what a file shreds; None: as Spark infers it
    "nothing": "",
    "numbers": "user bigint, name string, nest struct<k bigint>",
    "narrow": "user int, nest struct<k tinyint, j string>",
    "texts": "user string, User bigint, nest struct<k string>",
    "decimals": "user decimal(12,2), nest struct<k decimal(5,1)>, name string",
    "floats": "user double, name string, nest struct<k float>",
    "nested": "user struct<x bigint>, nest bigint, ok boolean",
    "whole": "bigint",
    "arrays": "user array<bigint>, name string",
    "objects in arrays": "items array<struct<x bigint, y string>>, user int",
    "arrays in arrays": "items array<array<bigint>>, name string",
    "inferred": None,
}
PATHS = ["user", "User", "name", "nest.k", "nest", "ok", "user.x", "gone", "user[0]"]
PATHS += ["items[0].x", "items[0].x", "items[1]", "items[2][0]", "items[9]", "items"]
TYPES = ["tinyint", "int", "bigint", "double", "float", "decimal(12,2)", "decimal(4,0)", "string", "boolean", "date"]


@contextmanager
def shredding(spark: SparkSession, schema: str | None) -> Iterator[None]:
    settings = {
        "spark.sql.variant.writeShredding.enabled": str(schema != "").lower(),
        "spark.sql.variant.inferShreddingSchema": str(schema is None).lower(),
        "spark.sql.variant.forceShreddingSchemaForTest": schema or "",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            spark.conf.unset(name)


def drawn_text(draw: random.Random, at: int, *, is_wild: bool) -> str | None:
    """JSON whose values mostly grow with `at`; wild ones may have any type, or be missing."""
    user: Any = draw.choice([at, at, at * 100, at / 4]) if draw.random() < 0.2 else at
    fields: dict[str, Any] = {"user": user, "name": f"n{at:05}", "nest": {"k": at % 200 - 100, "j": str(at)}}
    fields["items"] = [{"x": at, "y": f"y{at}"}, at * 2, [at, 7]][: draw.choice([3, 3, 3, 2, 1, 0])]
    if is_wild and draw.random() < 0.15:
        others = [None, "7", "x", str(at), 7.5, 1e3, True, [7, 8], {"x": 7}, 3_000_000_000, 10**30, "2024-01-01"]
        name = draw.choice(list(fields))
        fields[name] = draw.choice(others)
    if draw.random() < 0.1:
        fields.pop(draw.choice(list(fields)))
    if draw.random() < 0.2:
        fields[draw.choice(["rest", "User", "ok"])] = draw.choice([at, True, "y"])
    if is_wild and draw.random() < 0.05:
        return draw.choice([None, "null", "[1,2]", "7", '"7"', "{}", str(at)])
    return json.dumps(fields)


@dataclass(frozen=True)
class Lake:
    """Files of one VARIANT column, and which rows lie in which block."""

    root: Path
    places: dict[int, tuple[str, int]]  # by id: file and row group

    def blocks_of(self, ids: set[int]) -> set[tuple[str, int]]:
        return {self.places[i] for i in ids}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    root, draw, at = tmp_path_factory.mktemp("shredded"), random.Random(26), 0
    for schema in SCHEMAS.values():
        for is_wild in (False, True):
            rows = []
            for i in range(ROWS):
                # half of the row groups of a wild file are tame: they can be pruned though others cannot
                text = drawn_text(draw, i, is_wild=is_wild and i // BLOCK % 2 == 0)
                rows.append((at + i, f"{i}" if schema == "bigint" and draw.random() < 0.9 else text))
            at += ROWS
            frame = spark.createDataFrame(rows, "id bigint, text string").coalesce(1)
            with shredding(spark, schema):
                written = frame.selectExpr("id", "parse_json(text) AS payload")
                written.write.mode("append").option("parquet.block.row.count.limit", str(BLOCK)).parquet(str(root))
    typed = """to_variant_object(named_struct('day', DATE'2020-01-01' + CAST(id AS INT), 'at',
        TIMESTAMP'2020-01-01 00:00:00Z' + make_dt_interval(0, CAST(id AS INT)), 'local',
        TIMESTAMP_NTZ'2020-01-01 00:00:00' + make_dt_interval(0, CAST(id AS INT)), 'single', CAST(id AS FLOAT) / 4,
        'double', IF(id % 50 = 1, double('NaN'), id / 8D), 'bytes', CAST(CAST(id AS STRING) AS BINARY),
        'ok', id % 80 < 40)) AS payload"""
    for schema in (
        "",
        "day date, at timestamp, local timestamp_ntz, single float, double double, bytes binary, ok boolean",
    ):
        with shredding(spark, schema):
            frame = spark.range(at, at + ROWS, 1, 1).selectExpr("id AS real", f"id - {at} AS id")
            written = frame.selectExpr("real AS id", typed)
            written.write.mode("append").option("parquet.block.row.count.limit", str(BLOCK)).parquet(str(root))
        at += ROWS
    places = {}
    for path in root.glob("*.parquet"):
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                for i in file.read_row_group(group, columns=["id"])["id"].to_pylist():
                    places[i] = (path.name, group)
    assert len(places) == at
    return Lake(root, places)


LITERALS = {
    "boolean": ["true", "false"],
    "date": ["DATE'2020-02-01'", "DATE'2020-05-20'", "DATE'2024-01-01'"],
    "string": ["'7'", "'n00007'", "'n00150'", "'150'", "'true'", "''"],
    "timestamp": ["TIMESTAMP'2020-01-02 00:00:00Z'", "TIMESTAMP'2020-01-06 12:00:00Z'"],
    "timestamp_ntz": ["TIMESTAMP_NTZ'2020-01-02 00:00:00'", "TIMESTAMP_NTZ'2020-01-06 12:00:00'"],
}
MOMENTS_AND_FLOATS = [
    *(("day", "date"), ("at", "timestamp"), ("local", "timestamp_ntz"), ("single", "float"), ("ok", "boolean")),
    *(("double", "double"), ("double", "int"), ("single", "double"), ("bytes", "string")),
]
NAMED = {*((path, type_) for path in one_in(3, PATHS) for type_ in TYPES), *MOMENTS_AND_FLOATS}
NAMED |= {("name", "bigint"), ("name", "string")}  # of which there are filters
FILTERS: dict[str, Any] = {
    "bloom": [f"payload:{path}::{type_}" for path in ("user", "name", "items[0].x") for type_ in ("bigint", "string")],
    "postings": {
        **{f"payload:{path}::int": "rows" for path in ("user", "nest.k")},
        **{f"payload:{path}::double": "blocks" for path in ("user", "nest.k")},
    },
    "gaps": ["payload:user::bigint", "payload:nest.k::int"],
    "ngram": {"payload:name::string": 3},
}


@pytest.fixture(scope="module")
def indexed(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> ParquetDirectory:
    """The files with an index elsewhere, of the bounds of paths as all types, and filters of some."""
    table = sec.open_table(str(lake.root), index_location=str(tmp_path_factory.mktemp("index")))
    assert isinstance(table, ParquetDirectory)
    built = sec.build_index(table, zone_map=[f"payload:{path}::{type_}" for path, type_ in NAMED], **FILTERS)
    assert len(built.columns) == 1 + len(NAMED)
    assert sec.verify_index(table).faults == ()
    return table


NUMBERS = ["7", "-50", "0", "99", "119", "120", "158.5D", "37.25", "1500", "3000000000"]


def drawn_leaf(draw: random.Random) -> str:
    path, type_ = draw.choice(PATHS), draw.choice(TYPES)
    if draw.random() < 0.25:
        path, type_ = draw.choice(MOMENTS_AND_FLOATS)
    value = f"try_variant_get(payload, '$.{path}', '{type_}')"
    if draw.random() < 0.3:
        value = f"try_cast(payload:{path} AS {type_})"
    literals = LITERALS.get(type_, NUMBERS)
    one, other = draw.choice(literals), draw.choice(literals)
    forms = [
        *(f"{value} {op} {one}" for op in ("=", "<", "<=", ">", ">=", "<>", "<=>")),
        *(f"{value} IN ({one}, {other})", f"{value} BETWEEN {one} AND {other}", f"{value} IS NULL"),
        *(f"{value} IS NOT NULL", f"coalesce({value}, {one}) = {one}", f"NOT ({value} > {one})"),
    ]
    if type_ == "string":
        forms += [f"{value} LIKE 'n0001%'", f"{value} LIKE '%7'", f"upper({value}) = 'N00007'", f"length({value}) > 5"]
    return draw.choice(forms)


def drawn_predicate(draw: random.Random) -> str:
    parts = [drawn_leaf(draw) for _ in range(draw.choice([1, 1, 2, 3]))]
    if draw.random() < 0.2:
        parts.append(f"id < {draw.randrange(4000)}")
    parts = [f"NOT ({part})" if draw.random() < 0.15 else f"({part})" for part in parts]
    return draw.choice([" AND ", " OR "]).join(parts)


def true_rows(spark: SparkSession, lake: Lake, conditions: list[str]) -> list[set[int]]:
    """The ids of the rows on which each condition is TRUE, by Spark."""
    rows: list[set[int]] = []
    for start in range(0, len(conditions), AT_ONCE):
        some = conditions[start : start + AT_ONCE]
        columns = [f"({condition}) IS TRUE AS c{i}" for i, condition in enumerate(some)]
        answer = spark.read.parquet(str(lake.root)).selectExpr("id", *columns).toArrow()
        rows += [set(answer.filter(answer[f"c{i}"])["id"].to_pylist()) for i in range(len(some))]
    return rows


def kept(table: Any, condition: str) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
    """The blocks that a plan keeps, and those of which it says that every row matches."""
    rows = sec.prune(table, condition, strict=True).blocks.to_pylist()
    whole = {(row["file"], row["row_group"]) for row in rows if row["fully_matching"]}
    return {(row["file"], row["row_group"]) for row in rows}, whole


def test_c56_no_row_is_lost_whatever_is_shredded(spark: SparkSession, lake: Lake, indexed: ParquetDirectory) -> None:
    """By footers; an index with the bounds of all paths and types, and filters of some, prunes no fewer blocks."""
    draw = random.Random(PREDICATES)
    conditions = [drawn_predicate(draw) for _ in range(PREDICATES)]
    every = set(lake.places.values())
    pruned = by_index = whole_blocks = 0
    for condition, ids in zip(conditions, true_rows(spark, lake, conditions), strict=True):
        blocks, whole = kept(str(lake.root), condition)
        assert lake.blocks_of(ids) <= blocks, condition
        assert {i for i, place in lake.places.items() if place in whole} <= ids, condition
        fewer, more_whole = kept(indexed, condition)
        assert lake.blocks_of(ids) <= fewer <= blocks, condition
        assert whole & fewer <= more_whole, condition
        assert {i for i, place in lake.places.items() if place in more_whole} <= ids, condition
        pruned += len(every - blocks)
        by_index += len(blocks - fewer)
        whole_blocks += len(whole)
    assert pruned > PREDICATES  # else this test would say little
    assert by_index > PREDICATES
    assert whole_blocks > PREDICATES / 4


def test_c56_no_row_is_lost_by_plain_queries(spark: SparkSession, lake: Lake, indexed: ParquetDirectory) -> None:
    """Of an enabled session, whether Spark has its reader extract the values or does it itself."""
    draw = random.Random(PREDICATES + 1)
    conditions = [drawn_predicate(draw) for _ in range(max(10, PREDICATES // 4))]
    wanted, left, of_all = true_rows(spark, lake, conditions), 0, 0
    sec.enable(spark, tables=[indexed])
    try:
        for number, (condition, ids) in enumerate(zip(conditions, wanted, strict=True)):
            with settings(spark, {"spark.sql.variant.pushVariantIntoScan": str(number % 2 == 0).lower()}):
                frame = spark.read.parquet(str(lake.root)).where(condition).select("id")
                assert {row.id for row in frame.collect()} == ids, condition
                scanned = pruning(frame)
                if not scanned:  # FALSE, as Spark's optimizer finds out
                    assert "FileScan" not in plan_of(frame), (condition, reasons(spark)[-1:])
                    continue
                kept_blocks, blocks = (int(count.replace(",", "")) for count in scanned[0].split(" of "))
                left, of_all = left + kept_blocks, of_all + blocks
                assert kept_blocks >= len(lake.blocks_of(ids)), condition
    finally:
        sec.disable(spark)
    least = by_profile(quick=1 / 8, full=1 / 4, nightly=1 / 4)  # else nothing would be pruned by such conditions
    assert of_all - left > of_all * least


def test_c56_a_block_whose_rows_raise_is_kept(spark: SparkSession, lake: Lake) -> None:
    """Where the cast of a value fails, `variant_get` raises an error, and no statistic may hide that."""
    pairs = one_in(3, product(("user", "name", "nest.k", "nest"), TYPES))
    at = "variant_get(payload, '$.{0}')"
    fails = f"{at} IS NOT NULL AND NOT is_variant_null({at}) AND try_variant_get(payload, '$.{{0}}', '{{1}}') IS NULL"
    raising = true_rows(spark, lake, [fails.format(path, type_) for path, type_ in pairs])
    assert sum(map(len, raising)) > ROWS
    for i, ((path, type_), ids) in enumerate(zip(pairs, raising, strict=True)):
        one = LITERALS.get(type_, ["1"])[0]
        value = f"payload:{path}::{type_}" if i % 2 else f"variant_get(payload, '$.{path}', '{type_}')"
        for condition in (f"{value} = {one}", f"NOT ({value} = {one})", f"{value} IS NULL"):
            assert lake.blocks_of(ids) <= kept(str(lake.root), condition)[0], condition


def test_blocks_are_pruned_by_shredded_values(spark: SparkSession, tmp_path: Path) -> None:
    """As by a column: a needle leaves one block, and what explain counts says so; one value of text keeps its block."""
    text = """'{"user":' || id || ',"name":"n' || id || '","nest":{"k":' || (id * 2) || '},"rest":' || id || '}'"""
    odd = f"""CASE WHEN id = 250 THEN '{{"user":"7"}}' WHEN id = 150 THEN '{{"name":"n"}}' ELSE {text} END"""
    with shredding(spark, "user bigint, name string, nest struct<k bigint>"):
        rows = spark.range(0, 400, 1, 1).selectExpr("id", f"parse_json({odd}) AS payload")
        rows.write.option("parquet.block.row.count.limit", "100").parquet(str(tmp_path / "t"))
    frame = spark.read.parquet(str(tmp_path / "t"))
    for condition, groups in {
        "payload:user::int = 7": [0, 2],  # in the third block a text may be cast to 7, and in fact is
        "variant_get(payload, '$.user', 'int') = 7": [0, 2],
        "try_variant_get(payload, '$.user', 'bigint') BETWEEN 120 AND 130": [1, 2],
        "payload:user::double > 350.5 AND payload:name::string LIKE 'n39%'": [3],
        "payload:nest.k::bigint IN (14, 100000)": [0],
        "payload:user::int IS NULL": [1, 2],
        "NOT (payload:nest.k::int < 700)": [3],
        "payload:user::int = 7 OR id = 350": [0, 2, 3],
        "payload:user::tinyint = 7": [0, 1, 2, 3],  # values beyond 127 raise an error
        "payload:rest::int = 7": [0, 1, 2, 3],  # not shredded
    }.items():
        plan = sec.prune(str(tmp_path / "t"), condition, strict=True)
        assert plan.blocks["row_group"].to_pylist() == groups, condition
        assert next(row for row in plan.report.stages if row.name == "zone maps").after.blocks == len(groups)
        if "tinyint" not in condition:
            wanted = sorted(row.id for row in frame.where(condition).collect())
            assert sorted(row.id for row in plan.to_spark(spark, ["id"]).collect()) == wanted, condition
    assert sec.prune(str(tmp_path / "t"), "payload:nest.k::int >= 0 AND id < 100", strict=True).count() == 100


@pytest.mark.parametrize("schema", ["", "user bigint, name string", "user int, nest struct<j string>"])
def test_filters_of_paths_find_needles(spark: SparkSession, tmp_path: Path, schema: str) -> None:
    """Whether a path is shredded or not; one text at a path of numbers keeps its block."""
    text = """'{"user":' || (id * 7919 % 400) || ',"name":"n' || (id * 31 % 400) || '","nest":{"k":' || id || '}}'"""
    with shredding(spark, schema):
        rows = spark.range(0, 400, 1, 1).selectExpr("id", f'parse_json(IF(id = 250, \'{{"user":"x"}}\', {text})) AS p')
        rows.write.option("parquet.block.row.count.limit", "50").parquet(str(tmp_path / "t"))
    table = sec.open_table(str(tmp_path / "t"))
    sec.build_index(table, bloom=["p:user::int"], postings={"p:name::string": "rows", "p:nest.k::bigint": "blocks"})
    assert sec.verify_index(table).faults == ()
    frame = spark.read.parquet(str(tmp_path / "t"))
    for condition, groups in {
        "p:user::int = 7": 2,  # the block of id 250 too
        "try_variant_get(p, '$.user', 'int') = 7": 2,
        "variant_get(p, '$.name', 'string') = 'n31'": 1,
        "p:nest.k::bigint IN (7, 399)": 2,
        "p:user::int = 7 AND p:nest.k::bigint = 3": 0,
        "p:user::bigint = 7": 8 if "user" not in schema else None,  # not named: by footers alone
    }.items():
        plan = sec.prune(table, condition, strict=True)
        safe = condition.replace("p:user::int", "try_variant_get(p, '$.user', 'int')")
        safe = safe.replace("p:user::bigint", "try_variant_get(p, '$.user', 'bigint')")
        ids = sorted(row.id for row in frame.where(safe).collect())
        blocks = plan.blocks["row_group"].to_pylist()
        assert {i // 50 for i in ids} <= {*blocks}, condition
        if groups is not None:
            assert len(blocks) <= groups, condition
        if condition.startswith(("try", "variant")):
            assert sorted(row.id for row in plan.to_spark(spark, ["id"]).collect()) == ids
