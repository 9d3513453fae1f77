"""Predicates as SQL text for Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

import secateur as sec
from secateur.pruning.predicate.sql.parse import parse
from tests.support.tables import WriteTable

TEXTS = ["${spark.app.name}", "a${env:HOME}b\\", "\\${x}", "$${x}'", "$ {x}", "it's"]


@pytest.mark.parametrize("text", TEXTS)
def test_no_text_names_a_variable_of_spark(text: str) -> None:
    """Spark puts the values of variables into SQL before it reads it, into literals too."""
    for predicate in (sec.col("s") == text, sec.col("s").isin([text, "b"]), sec.col("s").like(text)):
        assert "${" not in str(predicate)
        assert parse(str(predicate)) == predicate


def test_spark_gets_the_text_that_was_planned(write_table: WriteTable) -> None:
    table = sec.open_table(write_table({"a.parquet": {"s": pa.array(["${x}", "x"])}}))
    plan = sec.prune(table, "s = '${x}'")
    assert plan.count() == 1
    assert "${" not in str(plan.sql)
    assert str(sec.prune(table, "s = 'x'").sql) == "s = 'x'"
