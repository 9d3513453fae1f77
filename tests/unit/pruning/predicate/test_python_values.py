"""Python values, and those of numpy and pandas, as literals."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import secateur as sec
from secateur.errors import InvalidPredicate

SECOND = "2024-01-03T04:05:06"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.datetime64("2024-01-03"), "DATE '2024-01-03'"),
        (np.datetime64("2024-01"), "DATE '2024-01-01'"),
        (np.datetime64(SECOND, "s"), "TIMESTAMP_NTZ '2024-01-03 04:05:06'"),
        (np.datetime64(SECOND, "ns"), "TIMESTAMP_NTZ '2024-01-03 04:05:06'"),
        (np.datetime64(f"{SECOND}.000007", "ns"), "TIMESTAMP_NTZ '2024-01-03 04:05:06.000007'"),
        (np.datetime64("NaT"), "NULL"),
        (pd.NaT, "NULL"),
        (pd.Timestamp(f"{SECOND}.000007"), "TIMESTAMP_NTZ '2024-01-03 04:05:06.000007'"),
    ],
)
def test_times_are_times_whatever_their_unit(value: Any, expected: str) -> None:
    """numpy gives nanoseconds as a number."""
    assert str(sec.col("x") == value) == f"`x` = {expected}"


@pytest.mark.parametrize(
    "value",
    [np.datetime64(f"{SECOND}.000000001"), pd.Timestamp(f"{SECOND}.000000001"), np.datetime64("10000-01-01T00:00:00")],
)
def test_times_that_no_literal_has_are_refused(value: Any) -> None:
    """As they are in arrays: another time would be compared."""
    for refused in (lambda: sec.col("x") > value, lambda: sec.col("x").isin([value])):
        with pytest.raises(InvalidPredicate, match=r"finer than a microsecond|beyond the years 1 to 9999"):
            refused()


@pytest.mark.parametrize(
    "value", [np.timedelta64(5, "ns"), np.timedelta64(5, "s"), np.longdouble(1), Decimal("NaN"), Decimal("-Infinity")]
)
def test_what_is_no_literal_is_a_type_error(value: Any) -> None:
    with pytest.raises(TypeError, match="is not a literal of Spark SQL"):
        sec.col("x") > value  # noqa: B015
