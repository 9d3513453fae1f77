"""Selective predicates over clustered blocks: kept are the blocks that hold a match, and the rows are Spark's."""

from __future__ import annotations

import contextlib
import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secateur as sec
from secateur.errors import UnsupportedPredicate
from secateur.index.model import BuildOptions
from secateur.io.tables.directory.table import ParquetDirectory
from tests.support.local_build import index_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BLOCKS, ROWS = 40, 10  # row groups, and rows of each

CONSTANTS = """
d = to_date('2019-05-01')
d = to_date('30/05/2019', 'dd/MM/yyyy')
d = make_date(2019, 5, 1)
d = date_add('2019-05-01', 1)
d > date_sub(last_day('2019-12-15'), 3) AND d < DATE '2020-01-05'
d IN (to_date('2019-05-01'), make_date(2019, 12, 31))
d BETWEEN add_months('2019-04-01', 1) AND date_add('2019-05-01', 5)
d = concat('2019', '-05-01')
ts < to_timestamp('2019-01-01 10:00:00')
ts < timestamp('2019-01-02')
ts = to_timestamp('2019-05-01 00:00', 'yyyy-MM-dd HH:mm')
id IN (5 + 6)
id IN (5 + 6, 300, int('17'))
id = int('11')
id = CAST('11' AS BIGINT)
id = pow(11, 1)
id = 22 DIV 2
id = length('abcdefghijk')
id = (1 << 4)
id BETWEEN pow(3, 2) AND 5 * 4
s = 'k' || '011'
s = concat('k', '011')
s = lower('K011')
s = trim('  k011 ')
s = substring('xk011x', 2, 4)
s = lpad('11', 4, 'k0')
s LIKE concat('k01', '%')
s LIKE lower('K01%')
s RLIKE concat('^k0', '11$')
x = CAST('5.5' AS DOUBLE)
m = CAST('5.50' AS DECIMAL(9, 2))
"""

FUNCTIONS = """
id DIV 3 = 4
-id DIV 3 = -4
id DIV 10 IN (3, 30)
~id = -151
id << 2 = 600
id >> 3 = 12
shiftright(id, 3) = 12
shiftleft(i, 1) = 30
sqrt(id) = 12
cbrt(id) > 7.3
exp(id) < 10
exp(x) < 3
ln(id + 1) < 2
log(id) > 5.98
log2(id) > 8.6
log(2, id) > 8.6
log10(id) < 0.5
pow(id, 2) = 22500
power(x, 3) < 1
sqrt(x) > 14
rint(x) = 35
bround(x, 0) = 36
bround(m, 1) = 1.5
signum(id - 8) = -1
try_add(id, 1) = 151
try_subtract(id, 1) = 149
try_multiply(id, 2) = 300
try_divide(id, 2) = 75
nanvl(x, 0D) > 195
150 IN (id, i)
id IN (150, i + 1000)
(id, s) = (150L, 'k150')
(id, s) IN ((150L, 'k150'), (3L, 'k003'), (4L, 'k005'))
CAST(id AS STRING) = '150'
CAST(id AS STRING) IN ('150', '7', '0150')
concat('a', s) = 'ak150'
concat(s, '-x') = 'k150-x'
concat('a', s) LIKE 'ak15%'
concat('id-', id) = 'id-150'
rpad(s, 6, '-') = 'k150--'
lpad(id, 5, '0') = '00150'
s LIKE ANY ('k01%', 'k39%')
s LIKE ALL ('k01%', '%')
s RLIKE '^(k011|k311)$'
s RLIKE '^k01|^k39'
s RLIKE '^k(01|39)[0-3]'
rtrim(s) = 'k150'
trim(s) = 'k150'
ltrim(s) LIKE 'k15%'
trim(s) IN ('k150', 'k151')
position('k' IN s) = 1 AND id < 20
locate('k39', s) = 1
"""


def lines(text: str) -> list[str]:
    return text.strip().splitlines()


def rows() -> pa.Table:
    """Four hundred rows in order of every column."""
    numbers = range(BLOCKS * ROWS)
    day = dt.date(2019, 1, 1)
    return pa.table(
        {
            "rid": pa.array(numbers, pa.int64()),
            "id": pa.array(numbers, pa.int64()),
            "i": pa.array(numbers, pa.int32()),
            "x": pa.array([n / 2 for n in numbers], pa.float64()),
            "m": pa.array([n / 2 for n in numbers], pa.float64()).cast(pa.decimal128(9, 2)),
            "s": [f"k{n:03}" for n in numbers],
            "d": [day + dt.timedelta(n) for n in numbers],
            "ts": pa.array(
                [dt.datetime(2019, 1, 1, tzinfo=dt.UTC) + dt.timedelta(n) for n in numbers], pa.timestamp("us", "UTC")
            ),
        }
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ParquetDirectory:
    root: Path = tmp_path_factory.mktemp("selective") / "lake"
    root.mkdir()
    pq.write_table(rows(), root / "0.parquet", row_group_size=ROWS)
    found = sec.open_table(str(root))
    index_here(found, BuildOptions())  # which counts NaN
    return found


def kept(table: ParquetDirectory, predicate: str) -> list[int]:
    """The row groups of a plan."""
    return sorted(sec.prune(table, predicate, strict=True, session_time_zone="UTC").blocks["row_group"].to_pylist())


def test_the_blocks_kept_are_those_that_hold_a_match(table: ParquetDirectory, spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    predicates = [*lines(CONSTANTS), *lines(FUNCTIONS)]
    frame = spark.createDataFrame(rows())
    found = frame.selectExpr("rid", *[f"({predicate}) AS p{i}" for i, predicate in enumerate(predicates)]).toArrow()
    for i, predicate in enumerate(predicates):
        matches = [rid for rid, value in enumerate(found[f"p{i}"].to_pylist()) if value]
        assert matches, f"{predicate} matches no row"
        assert kept(table, predicate) == sorted({rid // ROWS for rid in matches}), predicate
        plan = sec.prune(table, predicate, session_time_zone="UTC")
        with contextlib.suppress(UnsupportedPredicate):
            assert sorted(plan.to_arrow(columns=["rid"])["rid"].to_pylist()) == matches, predicate
