"""LIMIT without an order may take any rows that match: what is held against Spark is how many, and that they match."""

from __future__ import annotations

from collections import Counter

from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.support.enabled_session import answer

LIMITS = st.builds(
    lambda most, skipped: f"LIMIT {most}" + (f" OFFSET {skipped}" if skipped else ""),
    st.sampled_from([0, 1, 3, 40, 250, 251, 700, 5000]),
    st.sampled_from([0, 0, 0, 1, 60, 600]),
)


def require_some_rows(spark: SparkSession, rows: str, limit: str) -> None:
    """A query and its limit give as many rows as Spark alone gives, each of them at most as often as there are such."""
    some, wanted = (answer(spark, f"{rows} {limit}", pruned=pruned) for pruned in (True, False))
    assert (some[0], len(some)) == (wanted[0], len(wanted)), (rows, limit)
    matching = Counter(answer(spark, rows, pruned=False)[1:])
    assert not Counter(some[1:]) - matching, (rows, limit)
