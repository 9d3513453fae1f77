"""Iceberg tables with random histories, each state of which is read as PyIceberg reads it, with Spark's meaning of
predicates."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, DecimalType, DoubleType, IntegerType, LongType, NestedField, StringType, UUIDType

import secateur as sec
from tests.support.checks import oracle
from tests.support.formats.iceberg_tables import WORDS, History, catalog_in, new_history
from tests.support.profiles import by_profile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def conditions(history: History, draw: random.Random) -> list[str]:
    """Some predicates on the present columns."""
    texts = ["true", "rid >= 0", f"rid = {draw.randrange(0, history.rid + 1)}"]
    for field in history.table.schema().fields:
        name, type_ = f"`{field.name}`", field.field_type
        texts.append(f"{name} IS NULL")
        match type_:
            case IntegerType() | LongType():
                k = draw.choice([-7, -1, 0, 1, 2, 3, 4, 5, 10])
                texts += [f"{name} = {k}", f"{name} IN (1, {k}, 77)", f"{name} > {k}", f"NOT ({name} = {k})"]
            case StringType():
                s = draw.choice(WORDS)
                texts += [f"{name} = '{s}'", f"{name} LIKE '{s[:2]}%'", f"{name} > '{s}'", f"{name} <=> '{s}'"]
            case DoubleType():
                texts += [f"{name} > 1D", f"{name} = 0D", f"isnan({name})", f"{name} <> 1.5D"]
            case DateType():
                texts += [f"{name} < DATE '1969-03-04'", f"{name} = DATE '1970-01-01'", f"year({name}) = 1970"]
            case DecimalType():
                texts += [f"{name} = 12.34", f"{name} > 1000"]
            case UUIDType():
                texts += [f"{name} = '00000000-0000-0000-0000-000000000001'", f"{name} > '0'"]
    if "ts" in history.table.schema().column_names:
        texts += ["ts >= TIMESTAMP '1970-01-01 00:00:00Z'", "ts < TIMESTAMP '1969-12-31 23:45:00Z'"]
    if "nested" in history.table.schema().column_names:
        texts += ["nested.x = 3", "nested.y IS NULL"]
    pairs = [f"({a}) {draw.choice(['AND', 'OR'])} NOT ({b})" for a, b in zip(texts, texts[3:], strict=False)]
    return texts + draw.sample(pairs, min(6, len(pairs)))


def as_spark_reads(rows: pa.Table) -> pa.Table:
    """Rows of PyIceberg in the types that Spark has: UUIDs are text, and no text is large."""
    return pa.table({name: _plain(rows[name].combine_chunks()) for name in rows.column_names})


def _plain(array: Any) -> Any:
    type_ = array.type
    if isinstance(array, pa.ExtensionArray) or pa.types.is_fixed_size_binary(type_):
        raw = (v.bytes if isinstance(v, UUID) else v for v in array.to_pylist())
        return pa.array([None if v is None else str(UUID(bytes=v)) for v in raw], pa.string())
    if pa.types.is_large_string(type_):
        return array.cast(pa.string())
    if pa.types.is_large_binary(type_):
        return array.cast(pa.binary())
    if pa.types.is_struct(type_):
        return pa.array(array.to_pylist(), pa.struct([(f.name, _plain(pa.nulls(0, f.type)).type) for f in type_]))
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.array(array.to_pylist(), pa.list_(_plain(pa.nulls(0, type_.value_type)).type))
    return array


def assert_agrees(
    spark: SparkSession, opened: Any, truth: pa.Table, predicates: list[str], log: object, **options: Any
) -> None:
    """Rows and counts of every predicate are those of Spark over all rows of the snapshot."""
    rows = as_spark_reads(truth)
    frame = spark.createDataFrame(rows) if rows.num_rows else None
    answers = oracle.ask(frame, predicates) if frame is not None else None
    for predicate in predicates:
        if answers is not None and predicate not in answers.truth:
            continue
        expected = answers.matching(predicate) if answers is not None else Counter()
        plan = sec.prune(opened, predicate, strict=True, **options)
        got = Counter(oracle.by_row_id(plan.to_arrow()).values())
        assert got == expected, (predicate, log, plan.explain())
        assert plan.count() == expected.total(), (predicate, log)


def assert_the_read_paths_to_spark_agree(spark: SparkSession, name: str, catalog: Catalog, opened: Any) -> None:
    """Tasks of our own, and the data source, which opens the table by its metadata file."""
    plan = sec.prune(
        opened, "rid % 3 = 1 OR k IS NULL" if "k" in opened.snapshot().declared_schema.names else "rid > 4"
    )
    expected = Counter(oracle.by_row_id(plan.to_arrow()).values())
    assert Counter(oracle.by_row_id(plan.to_spark(spark).toArrow()).values()) == expected
    metadata = catalog.load_table(name).metadata_location
    frame = spark.read.format("secateur").option("predicate", plan.sql).load(metadata)
    assert Counter(oracle.by_row_id(frame.toArrow()).values()) == expected


@pytest.mark.parametrize("seed", by_profile(quick=[1], full=range(3), nightly=range(60)))
@pytest.mark.parametrize("format_version", by_profile(quick=[2], full=[1, 2], nightly=[1, 2]))
def test_every_state_of_a_history_is_read_as_iceberg_reads_it(
    tmp_path: Path, spark: SparkSession, seed: int, format_version: int
) -> None:
    """Without an index, with a fresh one, a stale one, an amended and an optimized one; then snapshots of the past."""
    catalog = catalog_in(tmp_path)
    history = new_history(catalog, seed, format_version)
    opened = sec.open_table("db." + history.table.name()[-1], catalog=catalog)
    draw = random.Random(seed)
    for step in range(14):
        history.step()
        if step == 5 and history.rid:
            sec.build_index(opened, spark=spark, bloom=["rid"], sort_key=["rid"])
        if step == 8 and history.rid:
            columns = [name for name in opened.snapshot().declared_schema.names if name in ("k", "day", "s")]
            sec.refresh_index(opened, spark=spark, postings=columns, gaps=["rid"])
        if step == 10 and history.rid:
            sec.refresh_index(opened, spark=spark)
            sec.optimize_index(opened, spark=spark)
            assert sec.verify_index(opened).sound
        if step in (4, 5, 8, 9, 10, 13):
            history.table.refresh()
            truth = history.table.scan().to_arrow()
            assert_agrees(spark, opened, truth, conditions(history, draw), history.log)
    assert_the_read_paths_to_spark_agree(spark, "db." + history.table.name()[-1], catalog, opened)
    for past in draw.sample(history.table.metadata.snapshots, min(2, len(history.table.metadata.snapshots))):
        truth = history.table.scan(snapshot_id=past.snapshot_id).to_arrow()
        then = sec.open_table("db." + history.table.name()[-1], catalog=catalog, snapshot_id=past.snapshot_id)
        assert_agrees(spark, then, truth, ["true", "rid > 5", "rid IN (1, 2, 30)"], history.log)


def test_what_was_said_under_another_name_mapping_is_not_believed(tmp_path: Path, spark: SparkSession) -> None:
    """A file without field ids holds a column of another id, once a new column gets the name of a renamed one."""
    catalog = catalog_in(tmp_path)
    table = catalog.create_table(
        "db.mapped", Schema(NestedField(1, "rid", LongType()), NestedField(2, "k", LongType()))
    )
    pq.write_table(pa.table({"rid": range(10), "k": [1] * 10}), tmp_path / "a.parquet")
    table.add_files([str(tmp_path / "a.parquet")])
    opened = sec.open_table("db.mapped", catalog=catalog)
    sec.build_index(opened, spark=spark, bloom=["k"], sort_key=["k"])
    for rename in (True, False):
        with table.update_schema() as update:
            if rename:
                update.rename_column("k", "old")
            else:
                update.add_column("k", LongType())
        predicates = ["old IS NULL", "old = 1", *([] if rename else ["k = 1", "k IS NULL"])]
        for use_index in (True, False):
            assert_agrees(spark, opened, table.scan().to_arrow(), predicates, rename, use_index=use_index)
