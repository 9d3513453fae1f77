"""A small table in a directory, with its rows at hand: asked in every way between changes of its files."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import secateur as sec
from secateur.index.build.options import filter_options
from secateur.index.model import BuildOptions
from secateur.io.tables.table import Table
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.rows.truth import matching_rows
from tests.support.drawn.strategies import connected
from tests.support.stores.local_build import index_here
from tests.support.tables import write_file

SCHEMA = pa.schema([("rid", pa.int64()), ("i", pa.int64()), ("n", pa.float64()), ("s", pa.string())])
WORDS = ["a", "ab", "b", None]
CONDITIONS = st.one_of(
    st.builds("i {} {}".format, st.sampled_from(["=", "<", ">=", "<>"]), st.integers(-1, 21)),
    st.builds("i BETWEEN {} AND {}".format, st.integers(-1, 12), st.integers(8, 21)),
    st.builds("i IN ({}, {})".format, st.integers(-1, 21), st.integers(-1, 21)),
    st.builds("n {} {}".format, st.sampled_from(["=", ">", "<="]), st.sampled_from([0, 1, 3, 7])),
    st.builds("s = '{}'".format, st.sampled_from(["a", "ab", "aa"])),
    st.sampled_from(["i >= 0", "i = 3", "i IN (3, 9)", "i IN (9, 12)"]),  # of some segments, all rows
    st.sampled_from(
        ["s LIKE '%b'", "s IS NULL", "n IS NOT NULL", "i % 7 = 3", "i < n", "i + 1 > 20", "upper(s) = 'B'"]
    ),
)
PREDICATES = connected(CONDITIONS, ["TRUE", "UNKNOWN"], max_leaves=4)
FILTERS = [
    (),
    filter_options(bloom=["i", "s"], postings=["n"]),
    filter_options(postings={"i": "ordered", "n": "ordered"}, ngram=["s"]),
]
Step = tuple[str, list[str], str]  # what to do, what to ask, in which way
FILES = {"write_page_index": True, "max_rows_per_page": 3, "write_batch_size": 1, "row_group_size": 6}


@dataclass
class Lake:
    """A directory, and its rows as they were written."""

    root: Path
    rng: np.random.Generator
    files: dict[str, pa.Table] = field(default_factory=dict)
    names: Iterator[int] = field(default_factory=itertools.count)
    rid: int = 0

    def write(self, name: str, rows: int, i: np.ndarray | None = None) -> None:
        """Write a file, new or in the place of another."""
        n = pa.array(self.rng.choice([0.0, 1.0, 3.0, 9.0], rows), mask=self.rng.random(rows) < 0.2)
        if i is None:
            drawn = self.rng.integers(0, 21, rows)
            i = [drawn, np.sort(drawn), np.repeat(self.rng.choice([3, 9]), rows)][int(self.rng.integers(3))]
        rid, s = np.arange(self.rid, self.rid + rows), self.rng.choice(np.array(WORDS, object), rows)
        self.files[name] = pa.table([rid, i, n, pa.array(s, pa.string())], schema=SCHEMA)
        self.rid += rows
        write_file(self.root / name, self.files[name], **FILES)

    def step(self, what: str, table: Table) -> None:
        """Append, rewrite or delete a file, index the table, or do nothing."""
        name = str(self.rng.choice(list(self.files)))
        match what:
            case "append":
                self.write(f"{next(self.names)}.parquet", int(self.rng.integers(1, 24)))
            case "rewrite":
                self.write(name, self.files[name].num_rows)
            case "delete" if len(self.files) > 1:
                (self.root / name).unlink()
                del self.files[name]
            case "index":
                filters = FILTERS[int(self.rng.integers(len(FILTERS)))]
                index_here(table, BuildOptions(segment_blocks=int(self.rng.integers(1, 5)), fan_out=2, filters=filters))

    def matching(self, sql: str) -> list[int]:
        """The ids of the rows for which a predicate is TRUE, by looking at each."""
        bound = bind(parse(sql), SCHEMA, session_time_zone="UTC", case_sensitive=False, ansi=True)
        of_files = (table.combine_chunks().to_batches() for table in self.files.values())
        ids = [batch["rid"].to_numpy()[matching_rows(bound, batch)] for batches in of_files for batch in batches]
        return sorted(np.concatenate([np.zeros(0, np.int64), *ids]).tolist())


def lake_of_evens(root: Path) -> Lake:
    """Four files of four row groups each, in all of which `i` is even, from 0 to 20."""
    lake = Lake(root, np.random.default_rng(7))
    for number in range(4):
        lake.write(f"{number}.parquet", 24, evens(lake.rng))
    return lake


def lake_of_chance(root: Path, seed: int) -> Lake:
    """Two files with rows by chance."""
    lake = Lake(root, np.random.default_rng(seed))
    for _ in range(2):
        lake.write(f"{next(lake.names)}.parquet", int(lake.rng.integers(1, 24)))
    return lake


def ids(rows: pa.Table) -> list[int]:
    return sorted(rows["rid"].to_pylist())


def survivors(table: Table, sql: str, **settings: object) -> int:
    """The number of blocks that a plan leaves."""
    return len(sec.prune(table, sql, **settings).survivors.blocks)  # type: ignore[arg-type]


def asked(table: Table, sql: str, way: str, expected: Sequence[int], said: object) -> None:
    """One query, read in some way, and its answer compared."""
    match way:
        case "arrow":
            assert ids(sec.prune(table, sql).to_arrow(["rid"])) == expected, said
        case "batches":
            batches = sec.prune(table, sql, strict=False).to_batches()
            assert sorted(rid for batch in batches for rid in batch["rid"].to_pylist()) == expected, said
        case "count":
            assert sec.prune(table, sql).count() == len(expected), said
        case "limit":
            read = ids(sec.prune(table, sql, limit=2).to_arrow(["rid"]))
            assert len(read) == min(2, len(expected)), said
            assert set(read) <= set(expected), said
        case "order":
            first = sec.prune(table, sql, order_by="rid", limit=3).to_arrow(["rid"])
            assert first["rid"].to_pylist() == expected[:3], said
        case "abandoned":
            next(sec.prune(table, sql).to_batches(), None)
        case "keys":
            even = pa.table({"rid": range(0, 400, 2)})
            joined = sec.prune(table, sql, keys=even, on="rid").to_arrow(["rid"])
            assert ids(joined) == [rid for rid in expected if rid % 2 == 0], said
        case "aggregate":
            assert sec.aggregate(table, "count(*) AS n", sql)["n"].to_pylist() == [len(expected)], said
        case "audit":
            assert sec.prune(table, sql, audit=1.0).count() == len(expected), said


def ask_between_changes(lake: Lake, steps: Iterable[Step], repeated: int) -> None:
    """Take steps, and ask new predicates, their parts, one OR an earlier one, and so many of the earlier ones."""
    table, before, taken = sec.open_table(lake.root), list[str](), list[Step]()
    for step, parts, way in steps:
        taken.append((step, parts, way))
        lake.step(step, table)
        new = [" AND ".join(f"({part})" for part in parts), *parts] if parts else []
        if new and before:
            new.append(f"({lake.rng.choice(before)}) OR ({parts[0]})")
        for sql in [*new, *new[:1], *lake.rng.permutation(before)[:repeated].tolist()]:
            asked(table, sql, way, lake.matching(sql), (taken, sql, way))
        before += new


WAYS = ["arrow", "arrow", "batches", "count", "limit", "order", "abandoned", "keys", "aggregate", "audit"]
STEPS = st.one_of(
    st.tuples(st.just("ask"), st.lists(PREDICATES, min_size=1, max_size=3), st.sampled_from(WAYS)),
    st.tuples(st.sampled_from(["append", "rewrite", "delete", "index"]), st.just([]), st.sampled_from(WAYS)),
)


def evens(rng: np.random.Generator) -> np.ndarray:
    return np.concatenate([[0, 20, *(2 * rng.integers(0, 11, 4))] for _ in range(4)])
