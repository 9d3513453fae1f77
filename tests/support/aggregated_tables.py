"""What tests of aggregates under ``sec.enable`` ask of any format: tables have the columns id, k, part and huge."""

from __future__ import annotations

from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.support.enabled_session import answer, require_same

SPAN = st.tuples(st.integers(-5, 2000), st.integers(0, 2000))  # the least id, and how far the ids go
ANSI = "spark.sql.ansi.enabled"


def require_same_overflow(spark: SparkSession, table: str, ansi: str) -> None:
    """Sums of `huge` overflow: the error of ANSI mode, or the result without it, is Spark's."""
    spark.conf.set(ANSI, ansi)
    try:
        for query in (f"SELECT sum(huge) FROM {table}", f"SELECT part, sum(huge) FROM {table} GROUP BY part"):
            require_same(spark, query)
        said = answer(spark, f"SELECT sum(huge) FROM {table}", pruned=True)
        assert ("OVERFLOW" in str(said)) == (ansi == "true")
    finally:
        spark.conf.unset(ANSI)


def aggregate_query(table: str, span: tuple[int, int], calls: list[str], by: tuple[str, ...]) -> str:
    """Aggregates of the rows of a span of ids, by some columns."""
    columns = ", ".join([*by, *(f"{call} AS c{i}" for i, call in enumerate(calls))])
    grouped = f"GROUP BY {', '.join(by)}" if by else ""
    return f"SELECT {columns} FROM {table} WHERE id BETWEEN {span[0]} AND {sum(span)} {grouped}"
