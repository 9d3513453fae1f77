"""Statements by which tables' own writers rewrite files, as text."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from secateur.index.advise.row_orders import Curve, RowOrder
from secateur.io.tables.delta.rewriter import DeltaRewriter
from secateur.io.tables.directory.rewriter import DirectoryRewriter
from secateur.io.tables.iceberg.rewriter import NO_STATEMENT, IcebergRewriter
from secateur.io.tables.rewriter import RewrittenFiles, can_be_written

ORDER = RowOrder(Curve.ZORDER, ("größe", "`a ``b`.c"))
PLAIN = RewrittenFiles(["/lake/t/a.parquet"], [], True)


@pytest.mark.parametrize(
    ("value", "condition"),
    [
        (pa.scalar("it's \\"), r"`the ``day` = 'it\'s \\'"),
        (pa.scalar(None, pa.string()), "`the ``day` IS NULL"),
        (pa.scalar(7), "`the ``day` = 7"),
    ],
)
def test_conditions_quote_names_and_values(value: pa.Scalar, condition: str) -> None:
    files = RewrittenFiles(["/lake/t/a.parquet"], [(("the `day",), value)], True)
    assert files.condition == condition
    statement = DeltaRewriter("/lake/`t").statement(files, ORDER, 0)
    assert statement == f"OPTIMIZE delta.`/lake/``t` WHERE {condition} ZORDER BY (`größe`, `a ``b`.`c`)"


def test_iceberg_takes_whole_tables_by_name() -> None:
    statement = IcebergRewriter("/lake/t", ("lake", "db", "it's")).statement(PLAIN, ORDER, 0)
    assert statement == (
        r"CALL `lake`.system.rewrite_data_files(table => '`db`.`it\'s`', strategy => 'sort', "
        "sort_order => 'zorder(`größe`, `a ``b`.`c`)', options => map('rewrite-all', 'true'))"
    )
    part = RewrittenFiles(PLAIN.paths, [], False)
    assert IcebergRewriter("/lake/t", ("lake", "db", "t")).statement(part, ORDER, 0) == NO_STATEMENT
    assert IcebergRewriter("/lake/t", None).statement(PLAIN, ORDER, 0) == NO_STATEMENT


def test_conditions_name_fields_of_structs() -> None:
    files = RewrittenFiles(PLAIN.paths, [(("a.b", "c"), pa.scalar(1)), (("d",), pa.scalar(None, pa.int64()))], True)
    assert files.condition == "`a.b`.`c` = 1 AND `d` IS NULL"
    where = r"where => '`a.b`.`c` = 1 AND `d` IS NULL', options"
    assert where in IcebergRewriter("/lake/t", ("lake", "db", "t")).statement(files, ORDER, 0)


@pytest.mark.parametrize(
    ("value", "can"),
    [
        (pa.scalar("it's"), True),
        (pa.scalar(None, pa.date32()), True),
        (pa.scalar(b"\0"), True),
        (pa.scalar(dt.date(2026, 1, 1)), True),
        (pa.scalar(Decimal("1.5")), True),
        (pa.scalar(dt.time(1)), False),
    ],
)
def test_what_sql_has_a_literal_for(value: pa.Scalar, can: bool) -> None:
    assert can_be_written(value) == can


def test_copies_keep_the_names_of_directories() -> None:
    """Spark would write ``day=01`` as ``day=1``."""
    files = RewrittenFiles(["/lake/t/day=01/a.parquet"], [(("day",), pa.scalar("01"))], True)
    statement = DirectoryRewriter("/lake/t").statement(files, RowOrder(Curve.SORT, ("x",)), 3)
    assert statement == (
        "spark.read.option('mergeSchema', True).parquet('/lake/t/day=01/a.parquet')"
        ".repartitionByRange(1, 'x').sortWithinPartitions('x').write.parquet('/lake/t_by_x/3/day=01')"
    )
