"""TPC-H's lineitem as two tables, as generated and clustered by date, predicates on it from TPC-H's queries; orders."""

from __future__ import annotations

import datetime as dt
import subprocess
import sysconfig
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SCALE_FACTOR = 0.1
ROW_GROUPS = 256
FILES = 8
PAGES = 8  # per column of a row group
BLOOM = ("l_orderkey", "l_partkey")


@dataclass(frozen=True)
class Layout:
    """One order of the rows."""

    name: str
    order_by: tuple[str, ...]  # empty: as generated


LAYOUTS = (Layout("generated", ()), Layout("clustered", ("l_shipdate",)))


@dataclass(frozen=True)
class Question:
    """One predicate in Spark SQL and for pyarrow, with the columns it names."""

    sql: str
    arrow: pc.Expression
    columns: tuple[str, ...]


def _day(text: str) -> pa.Scalar:
    return pa.scalar(dt.date.fromisoformat(text))


def _money(text: str) -> pa.Scalar:
    return pa.scalar(Decimal(text), pa.decimal128(15, 2))


_order, _part, _ship = pc.field("l_orderkey"), pc.field("l_partkey"), pc.field("l_shipdate")
_commit, _receipt, _mode = pc.field("l_commitdate"), pc.field("l_receiptdate"), pc.field("l_shipmode")
_discount, _quantity, _price = pc.field("l_discount"), pc.field("l_quantity"), pc.field("l_extendedprice")

QUESTIONS = (
    Question("l_orderkey = 300007", _order == 300007, ("l_orderkey",)),
    Question("l_partkey = 1234", _part == 1234, ("l_partkey",)),
    Question("l_partkey IN (17, 4711, 15555)", _part.isin([17, 4711, 15555]), ("l_partkey",)),
    Question("l_shipdate = DATE '1995-03-15'", _ship == _day("1995-03-15"), ("l_shipdate",)),
    Question(  # query 1
        "l_shipdate <= DATE '1998-09-02'", _ship <= _day("1998-09-02"), ("l_shipdate",)
    ),
    Question(  # query 14
        "l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'",
        (_ship >= _day("1995-09-01")) & (_ship < _day("1995-10-01")),
        ("l_shipdate",),
    ),
    Question(  # query 6
        "l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' "
        "AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
        (_ship >= _day("1994-01-01"))
        & (_ship < _day("1995-01-01"))
        & (_discount >= _money("0.05"))
        & (_discount <= _money("0.07"))
        & (_quantity < _money("24")),
        ("l_shipdate", "l_discount", "l_quantity"),
    ),
    Question(  # query 12
        "l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate "
        "AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'",
        _mode.isin(["MAIL", "SHIP"])
        & (_commit < _receipt)
        & (_ship < _commit)
        & (_receipt >= _day("1994-01-01"))
        & (_receipt < _day("1995-01-01")),
        ("l_shipmode", "l_commitdate", "l_receiptdate", "l_shipdate"),
    ),
    Question(
        "l_shipdate < DATE '1992-02-01' OR l_orderkey IN (1, 300007)",
        (_ship < _day("1992-02-01")) | _order.isin([1, 300007]),
        ("l_shipdate", "l_orderkey"),
    ),
    Question(
        "NOT (l_shipdate BETWEEN DATE '1992-03-01' AND DATE '1998-10-31')",
        ~((_ship >= _day("1992-03-01")) & (_ship <= _day("1998-10-31"))),
        ("l_shipdate",),
    ),
    Question("l_extendedprice > 94000", _price > _money("94000"), ("l_extendedprice",)),
    Question(
        "l_comment LIKE 'sly%' AND l_shipdate >= DATE '1998-06-01'",
        pc.starts_with(pc.field("l_comment"), "sly") & (_ship >= _day("1998-06-01")),
        ("l_comment", "l_shipdate"),
    ),
)


def write_tables(directory: Path, scale_factor: float) -> None:
    """Both layouts as directories of Parquet files with page indexes."""
    data = generated(directory, scale_factor, "lineitem")
    for layout in LAYOUTS:
        ordered = data.sort_by([(name, "ascending") for name in layout.order_by]) if layout.order_by else data
        _write(directory / layout.name, ordered)


def write_orders(directory: Path, scale_factor: float) -> None:
    """The orders as a directory of Parquet files, by date, so that the bounds of their keys rule out nothing."""
    _write(directory / "orders", generated(directory, scale_factor, "orders").sort_by("o_orderdate"))


def generated(directory: Path, scale_factor: float, table: str) -> pa.Table:
    """A table of TPC-H as its generator writes it."""
    generator = str(Path(sysconfig.get_path("scripts")) / "tpchgen-cli")
    command = [generator, "parquet", "-s", str(scale_factor), "--tables", table, "--output-dir", str(directory)]
    subprocess.run(command, check=True, capture_output=True)
    path = directory / f"{table}.parquet"
    data = _plain(pq.read_table(path))
    path.unlink()
    return data


def _plain(data: pa.Table) -> pa.Table:
    """Strings as ordinary strings; tpchgen marks them as views."""
    fields = [f.with_type(pa.string()) if pa.types.is_string_view(f.type) else f for f in data.schema]
    return data.cast(pa.schema(fields))


def _write(directory: Path, data: pa.Table) -> None:
    directory.mkdir()
    rows = -(-data.num_rows // ROW_GROUPS)
    for i in range(FILES):
        part = data.slice(i * rows * ROW_GROUPS // FILES, rows * ROW_GROUPS // FILES)
        if part.num_rows:
            pq.write_table(
                part,
                directory / f"part-{i:02d}.parquet",
                row_group_size=rows,
                write_page_index=True,
                write_batch_size=-(-rows // PAGES),  # with the least page size, every batch ends a page
                data_page_size=1,
            )
