"""Tables of integers, doubles, texts and decimals that a build keeps in order, and predicates on their values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from secateur.index.filters import ordered
from secateur.index.read import ordered_lookup
from tests.support.row_lake import Asked, Row, RowLake, combined, of_column

NAN, BIG = float("nan"), 10**25
VALUES: dict[str, list[Any]] = {
    "i": [-(2**63), -7, 0, 1, 2, 3, 2**63 - 1],
    "x": [NAN, -0.0, 0.0, 1.5, -1.5, float("inf"), float("-inf"), 1e300],
    "s": ["", "a", "a\0", "ab", "user-00000001", "user-00000001\0", "user-00000002", "user-1", "é", "user-0000000"],
    "d": [Decimal(n).scaleb(-2) for n in (-BIG, -(2**63) * 1, -1, 0, 1, 2**63 - 1, 2**63, BIG)],
}
BY_HEADS = VALUES | {  # those that are known by their heads
    "s": ["", "a", "ab", "é", "user-1"],
    "d": [value for value in VALUES["d"] if abs(value) < 10**16],
}
SCHEMA = pa.schema(
    [("rid", pa.int64()), ("i", pa.int64()), ("x", pa.float64()), ("s", pa.string()), ("d", pa.decimal128(30, 2))]
)
IN_ORDER = dict.fromkeys(VALUES, "ordered")


def rank(value: Any) -> Any:
    """Values order as these do: NaN is the greatest number, and -0.0 is 0.0."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value.encode() if isinstance(value, str) else value


def literal(name: str, value: Any) -> str:
    match name:
        case "s":
            return "'" + value.replace("\0", "\\u0000") + "'"
        case "x":
            return f"CAST('{value}' AS DOUBLE)"
        case "d":
            return f"CAST('{value}' AS DECIMAL(30,2))"
        case _:
            return f"CAST('{value}' AS BIGINT)"


@st.composite
def leaves(draw: st.DrawFn) -> Asked:
    name = draw(st.sampled_from(list(VALUES)))
    a, b, *more = draw(st.lists(st.sampled_from(VALUES[name]), min_size=2, max_size=4))
    low, high = rank(a), rank(b)
    options = [
        of_column(name, f"{name} = {literal(name, a)}", lambda v: rank(v) == low),
        of_column(name, f"{name} < {literal(name, a)}", lambda v: rank(v) < low),
        of_column(name, f"{name} >= {literal(name, a)}", lambda v: rank(v) >= low),
        of_column(name, f"{name} <> {literal(name, a)}", lambda v: rank(v) != low),
        of_column(
            name,
            f"{name} BETWEEN {literal(name, a)} AND {literal(name, b)}",
            lambda v: low <= rank(v) <= high,
        ),
        of_column(
            name,
            f"{name} IN ({', '.join(literal(name, v) for v in (a, b, *more))})",
            lambda v: rank(v) in [rank(one) for one in (a, b, *more)],
        ),
    ]
    if name == "s":
        start = a.rstrip("\0")[: draw(st.integers(1, 12))]
        options.append(of_column("s", f"s LIKE '{start}%'", lambda v: v.startswith(start)))
        options.append(Asked("s IS NULL", lambda row: row["s"] is None))
    return draw(st.sampled_from(options))


predicates = combined(leaves(), 5)


def rows_of(random: np.random.Generator, first: int) -> list[Row]:
    """Rows of few distinct values, some of them NULL; mostly such as are known by their heads."""
    count = int(random.choice([0, 1, 30, 70]))
    pools = BY_HEADS if random.random() < 0.75 else VALUES
    some = {column: random.permutation(len(values))[:4].tolist() for column, values in pools.items()}
    return [
        {"rid": first + i}
        | {
            column: None if random.random() < 0.15 else values[int(random.choice(some[column]))]
            for column, values in pools.items()
        }
        for i in range(count)
    ]


def ordered_lake(root: Path) -> RowLake:
    """A table of such rows below a folder."""
    return RowLake(root, SCHEMA, rows_of, pages=(5,))


@contextmanager
def small(page: int, least: int, most: int) -> Iterator[None]:
    """Other limits, so that small tables meet them."""
    with (
        patch.object(ordered, "PAGE", page),
        patch.object(ordered_lookup, "LEAST_PAGES", least),
        patch.object(ordered_lookup, "MOST_PAGES", most),
    ):
        yield


limits = st.tuples(st.sampled_from([1, 3, 2048]), st.sampled_from([0, 2, 100]), st.sampled_from([0, 3, 1 << 11]))
