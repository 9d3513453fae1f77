"""Selective predicates over clustered blocks: kept are the blocks that hold a match, and the rows are Spark's."""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.functions import expr

import secateur as sec
from secateur.errors import UnsupportedPredicate
from secateur.index.model import BuildOptions
from secateur.io.tables.directory.table import ParquetDirectory
from tests.support.stores.local_build import index_here

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

ORDINARY = """
id BETWEEN 5 + 5 AND 2 * 10
id BETWEEN 30 AND 20 + 15 AND s > 'k'
year(ts) = 2020 AND month(ts) = 1
year(d) = 2020
month(d) = 3 AND year(d) = 2019
date_trunc('MONTH', ts) = TIMESTAMP '2019-03-01'
date_trunc('day', ts) = '2019-03-01'
trunc(d, 'MM') = DATE '2019-03-01'
unix_timestamp(ts) < 1546500000
ts::date = DATE '2019-05-01'
CAST(ts AS DATE) = '2019-05-01'
to_date(ts) IN ('2019-05-01', '2019-06-01')
date(ts) BETWEEN '2019-05-01' AND '2019-05-05'
substr(s, 1, 3) = 'k15'
substring(s, 1, 3) IN ('k01', 'k39')
left(s, 3) = 'k15'
startswith(s, 'k15')
s LIKE 'k15%'
s LIKE 'k15_'
coalesce(id, 0) > 390
nvl(id, 0) < 5
ifnull(id, -1) = 7
nullif(id, 0) = 7
greatest(id, 10) < 12
greatest(id, i) < 12
least(id, 1000) > 390
abs(id) < 3
abs(id - 200) <= 5
-id > -5
-x > -3
id * 2 + 1 = 11
(id + 1) / 2 = 75
id - 100 < -95
100 - id > 95
2 * id < 10
id % 400 = 399
id % 100 = 5 AND id > 300
id % 10 = 5 AND id < 30
NOT (id >= 5)
NOT (id < 395)
NOT id <> 7
id <=> 7
id = 7.0
id = '7'
id > 389.5
id < 1e1
id BETWEEN 1 AND 3 OR id BETWEEN 396 AND 398
(id BETWEEN 1 AND 3 OR id = 250) AND s < 'k3'
id IN (1, 2, 3) OR s = 'k399'
(id, d) IN ((7L, DATE '2019-01-08'))
if(id < 5, 1, 0) = 1
if(id < 5, 'low', 'high') = 'low'
CASE WHEN id < 5 THEN 'low' ELSE 'high' END = 'low'
CASE WHEN id < 5 THEN 1 WHEN id > 390 THEN 2 END IS NOT NULL
CASE WHEN id < 100 THEN 'a' WHEN id < 110 THEN 'b' ELSE 'c' END IN ('b', 'd')
CAST(id AS DECIMAL(10, 2)) = 7.00
CAST(id AS DOUBLE) < 3.5
CAST(x AS INT) = 35
CAST(m AS INT) = 35
int(x) = 35
s > 'k38' AND s < 'k39'
s >= 'k390'
upper(s) = 'K150'
lower(s) = 'k150'
upper(s) LIKE 'K15%'
upper(s) IN ('K150', 'K151')
s || '!' = 'k150!'
length(s) = 4 AND id = 9
trim(s) LIKE 'k15%'
regexp_like(s, '^k15')
s RLIKE '^k15.*'
s IN ('k150', 'k001')
s ILIKE 'K15%'
d = '2019-05-01'
d >= '2020-02-01'
d BETWEEN DATE '2019-05-01' AND DATE '2019-05-31'
d > DATE '2020-02-01' - INTERVAL 3 DAYS
d + INTERVAL 1 DAY = DATE '2019-05-02'
date_add(d, 7) = DATE '2019-05-08'
d + 7 = DATE '2019-05-08'
add_months(d, 1) = DATE '2019-06-01'
d + INTERVAL 1 MONTH = DATE '2019-06-01'
last_day(d) = DATE '2019-05-31'
datediff(d, DATE '2019-01-01') < 5
datediff('2020-02-04', d) <= 3
ts >= '2020-02-01'
ts > '2020-02-01 00:00:00' AND ts < '2020-02-03'
ts < DATE '2019-01-05'
ts - INTERVAL 1 HOUR < TIMESTAMP '2019-01-03'
ts + INTERVAL '1 02:00:00' DAY TO SECOND < TIMESTAMP '2019-01-03'
ts BETWEEN '2019-05-01' AND '2019-05-02'
hour(ts) = 0 AND d = DATE '2019-02-02'
unix_date(d) = 18000
unix_millis(ts) < 1546300800001
unix_micros(ts) < 1546300800001000
unix_seconds(ts) < 1546300801
date_format(ts, 'yyyy-MM') = '2019-05'
date_format(ts, 'yyyy-MM-dd') = '2019-05-01'
date_format(d, 'yyyy') = '2020'
date_format(d, 'yyyyMMdd') BETWEEN '20190501' AND '20190510'
year(d) * 100 + month(d) = 202001
year(d) * 10000 + month(d) * 100 + day(d) = 20190501
quarter(d) = 1 AND year(d) = 2020
weekofyear(d) = 5 AND year(d) = 2020
dayofyear(d) = 30
extract(YEAR FROM ts) = 2020
date_part('month', d) = 1
months_between(d, DATE '2019-01-01') < 1
next_day(d, 'MON') = DATE '2019-05-06'
from_utc_timestamp(ts, 'Europe/Berlin') < '2019-01-03'
to_utc_timestamp(ts, 'America/New_York') < TIMESTAMP '2019-01-03'
timestampadd(HOUR, 5, ts) < TIMESTAMP '2019-01-03'
timestampdiff(DAY, TIMESTAMP '2019-01-01', ts) < 4
DATEDIFF(MONTH, DATE '2019-01-01', d) = 0
DATEDIFF(DAY, DATE '2019-01-01', d) = 7
dateadd(DAY, 3, d) = DATE '2019-05-04'
d - DATE '2019-01-01' < INTERVAL 5 DAYS
ts - TIMESTAMP '2019-01-01' < INTERVAL '5' DAY
ts = make_timestamp(2019, 5, 1, 0, 0, 0)
round(x) = 35
round(x, 0) = 36
floor(x) = 35
ceil(x) = 36
floor(id / 10) = 15
id / 10 = 15
x / 2 < 1
m * 2 = 11.0
m + 1 = 6.5
m BETWEEN 5 AND 6
m = 5.5
sign(id - 5) = -1
isnotnull(id) AND id < 7
id IS NULL OR id = 7
(id = 7) IS TRUE
NOT (id <> 7 OR s <> 'k007')
id < 7 AND rand() < 2
id IN (7, NULL)
coalesce(id = 7, false)
nvl(s, '') = 'k150'
coalesce(s, '') LIKE 'k15%'
coalesce(d, DATE '1970-01-01') > DATE '2020-02-01'
s = 'k' || 150
CAST(ts AS STRING) LIKE '2019-05%'
string(d) = '2019-05-01'
CAST(d AS STRING) LIKE '2019-05-%'
CAST(d AS STRING) >= '2020-02'
substring(CAST(d AS STRING), 1, 7) = '2019-05'
left(string(ts), 10) = '2019-05-01'
CAST(ts AS LONG) < 1546400000
bigint(ts) < 1546400000
from_unixtime(unix_timestamp(ts)) = '2019-05-01 00:00:00'
from_unixtime(id) < '1970-01-01 00:00:05'
CAST(x AS FLOAT) < 2
isnan(x) OR x < 2
double(id) = 7
id + i < 10
id + i = 300
id = i AND id < 5
x * 2 = id AND id < 5
id > x + 195
(id > 5 AND id < 8) OR (id > 395)
id NOT BETWEEN 5 AND 395
s NOT LIKE 'k%' OR id = 3
s BETWEEN 'k150' AND 'k155'
s < 'k0' || '05'
mod(id, 1000) = 7
int(id / 100) = 3 AND id < 305
date_from_unix_date(i) = DATE '1970-01-08'
timestamp_seconds(id) < TIMESTAMP '1970-01-01 00:00:05'
date_add(DATE '2019-01-01', i) = DATE '2019-01-08'
CAST(d AS TIMESTAMP) = TIMESTAMP '2019-05-01'
timestamp(d) = '2019-05-01'
d = CAST(TIMESTAMP '2019-05-01 10:00:00' AS DATE)
date_trunc('year', d) = '2020-01-01'
trunc(d, 'year') = '2020-01-01'
date_trunc('week', ts) = '2019-05-06'
x > 1 / 0.00505
x BETWEEN 5 AND 5.5
x = float('5.5')
try_cast(id AS INT) = 7
try_mod(id, 1000) = 7
nvl2(id, id, 0) = 7
id = bigint(round(7.4))
to_char(d, 'yyyy') = '2020'
cast(id as string) LIKE '39%'
instr(s, 'k15') = 1
s LIKE 'k15%' ESCAPE '!'
s LIKE 'k1%' AND s LIKE '%50'
d = to_date('20190501', 'yyyyMMdd')
ts = to_timestamp('2019-05-01T00:00:00Z')
ts >= date_trunc('month', TIMESTAMP '2020-02-03 10:00:00')
d >= trunc(DATE '2020-02-03', 'MM')
ts < to_timestamp('2019-01-01') + INTERVAL 2 DAYS
d BETWEEN add_months(DATE '2019-05-01', -1) AND last_day(DATE '2019-04-01')
ts BETWEEN TIMESTAMP '2019-05-01' AND TIMESTAMP '2019-05-01' + INTERVAL 23 HOURS
dayofmonth(d) = 1 AND month(d) = 5
day(d) = 31 AND month(d) = 12
id + 0 = 7
id * 1.0 = 7
id > (3 * 130)
i > 395 OR i < 3
abs(x - 100) < 2
sqrt(x) < 1
x * x < 4
x * x + 1 < 5
id * id = 49
(id - 200) * (id - 200) < 9
pow(x, 2) < 4
least(abs(id - 5), abs(id - 395)) < 2
greatest(d, DATE '2020-01-31') > DATE '2020-01-31'
coalesce(nullif(s, ''), 'none') = 'k150'
if(s = 'k150', true, false)
CASE s WHEN 'k150' THEN 1 ELSE 0 END = 1
CASE WHEN s LIKE 'k15%' THEN 'x' END = 'x'
(CASE WHEN id < 5 THEN id ELSE NULL END) >= 0
pmod(id, 1000) = 7
pmod(id - 400, 1000) = 607
zeroifnull(id) = 7 AND id > 0
nullifzero(id) = 7
array_contains(array(7L, 8L), id)
array_contains(array('k007', 'k008'), s)
to_utc_timestamp(ts, 'America/New_York') = TIMESTAMP '2019-05-01 04:00:00'
from_utc_timestamp(ts, 'Asia/Tokyo') = TIMESTAMP '2019-05-01 09:00:00'
DATEDIFF(HOUR, TIMESTAMP '2019-01-01', ts) = 48
timestampadd(DAY, 7, ts) = TIMESTAMP '2019-05-08'
date_format(ts, 'yyyy') = '2020'
locate('k15', s) = 1
1 - x > 0
try_mod(id, 500) = 7
d - INTERVAL 2 DAYS = DATE '2019-05-01'
DATE '2019-05-10' - d = INTERVAL 9 DAYS
ts - TIMESTAMP '2019-05-01' = INTERVAL '0' DAY
"""
FEW = 12  # of the 40 blocks
TUPLES = {predicate for predicate in FUNCTIONS.splitlines() if predicate.startswith("(")}  # structs in Spark


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
    opened = sec.open_table(str(root))
    index_here(opened, BuildOptions())  # which counts NaN
    return opened


def kept(table: ParquetDirectory, predicate: str) -> list[int]:
    """The row groups of a plan."""
    return sorted(sec.prune(table, predicate, strict=True, session_time_zone="UTC").blocks["row_group"].to_pylist())


def test_ordinary_predicates_leave_few_blocks(table: ParquetDirectory, spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    predicates = lines(ORDINARY)
    answers = spark.createDataFrame(rows()).select("rid", *map(expr, predicates)).toArrow()
    for i, predicate in enumerate(predicates, 1):
        holders = {rid // ROWS for rid, value in enumerate(answers.column(i).to_pylist()) if value}
        blocks = kept(table, predicate)
        assert holders and holders <= set(blocks), predicate
        assert len(blocks) < FEW, predicate


def test_dataframes_prune_by_functions(table: ParquetDirectory, spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    frame = sec.dataframe(spark, table, via="transparent")
    predicates = [predicate for predicate in lines(FUNCTIONS) if predicate not in TUPLES]
    answers = spark.createDataFrame(rows()).select("rid", *map(expr, predicates)).toArrow()
    for i, predicate in enumerate(predicates, 1):
        answer = frame.where(predicate).select("rid")
        matches = [rid for rid, value in enumerate(answers.column(i).to_pylist()) if value]
        assert sorted(row.rid for row in answer.collect()) == matches, predicate
        pruned = re.search(r"IndexPruning: (\d+) of 40", answer._jdf.queryExecution().executedPlan().toString())
        assert pruned is not None and int(pruned[1]) < FEW, predicate


def test_the_blocks_kept_are_those_that_hold_a_match(table: ParquetDirectory, spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    predicates = [*lines(CONSTANTS), *lines(FUNCTIONS)]
    frame = spark.createDataFrame(rows())
    truths = frame.selectExpr("rid", *[f"({predicate}) AS p{i}" for i, predicate in enumerate(predicates)]).toArrow()
    for i, predicate in enumerate(predicates):
        matches = [rid for rid, value in enumerate(truths[f"p{i}"].to_pylist()) if value]
        assert matches, f"{predicate} matches no row"
        assert kept(table, predicate) == sorted({rid // ROWS for rid in matches}), predicate
        plan = sec.prune(table, predicate, session_time_zone="UTC")
        with contextlib.suppress(UnsupportedPredicate):
            assert sorted(plan.to_arrow(columns=["rid"])["rid"].to_pylist()) == matches, predicate
