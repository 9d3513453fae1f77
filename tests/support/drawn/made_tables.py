"""Random tables with an index of every kind, and predicates over them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import secateur as sec
from secateur.index.model import BLOOM, NGRAM, POSTINGS, TOKEN, BuildOptions, FilterOption
from secateur.io.tables.table import Table
from tests.support.drawn.strategies import connected
from tests.support.stores.local_build import index_here
from tests.support.tables import write_file

WORDS = ["error", "errors", "timeout", "ok", "all fine here", "disk error at night"]


CONDITIONS = st.one_of(
    st.builds("i {} {}".format, st.sampled_from(["=", "<", ">="]), st.integers(-2, 45)),
    st.builds("i IN ({}, {})".format, st.integers(-2, 45), st.integers(-2, 45)),
    st.builds("n {} {}".format, st.sampled_from(["=", ">", "<>"]), st.sampled_from([0, 3, 500, 1000])),
    st.builds("p = {}".format, st.integers(0, 3)),
    st.builds("text LIKE '%{}%'".format, st.sampled_from(["error", "err", "timeout", "nowhere"])),
    st.builds("text = '{}'".format, st.sampled_from([*WORDS, "none"])),
    st.sampled_from(["i + 1 > 20", "n IS NULL", "n IS NOT NULL", "i % 2 = 0", "i < n"]),
)


PREDICATES = connected(CONDITIONS, max_leaves=4)


FILTERS = st.lists(
    st.sampled_from(
        [
            FilterOption(BLOOM, "i"),
            FilterOption(POSTINGS, "i"),
            FilterOption(POSTINGS, "n"),
            FilterOption(BLOOM, "text"),
            FilterOption(NGRAM, "text", gram=4),
            FilterOption(TOKEN, "text"),
        ]
    ),
    unique=True,
    max_size=3,
)


@dataclass(frozen=True)
class Made:
    """How a table is made: `indexed` of its files, and the rest later."""

    seed: int
    files: int
    indexed: int
    clustered: bool
    filters: tuple[FilterOption, ...]
    gaps: bool


MADE = st.builds(
    Made,
    seed=st.integers(0, 2**32 - 1),
    files=st.integers(1, 5),
    indexed=st.integers(0, 5),
    clustered=st.booleans(),
    filters=FILTERS.map(tuple),
    gaps=st.booleans(),
)


@contextmanager
def table_of(how: Made) -> Iterator[Table]:
    rng = np.random.default_rng(how.seed)
    with tempfile.TemporaryDirectory() as root:
        for number in range(how.files):
            if number == how.indexed and number:
                _index(root, how)
            rows = int(rng.integers(1, 24))
            i = (
                rng.integers(0, 40, rows)
                if not how.clustered
                else np.sort(rng.integers(8 * number, 8 * number + 9, rows))
            )
            n = pa.array(rng.choice([0, 1, 3, 1000], rows), mask=rng.random(rows) < 0.2)
            data = pa.table({"i": i, "n": n, "text": rng.choice(WORDS, rows)})
            options = {"write_page_index": True, "max_rows_per_page": 3, "write_batch_size": 1}
            write_file(Path(root) / f"p={number % 3}/{number}.parquet", data, row_group_size=6, **options)
        if how.indexed >= how.files:
            _index(root, how)
        yield sec.open_table(root)


def _index(root: str, how: Made) -> None:
    gaps = ("n",) if how.gaps else ()
    index_here(sec.open_table(root), BuildOptions(filters=how.filters, gaps=gaps, segment_blocks=4, fan_out=2))
