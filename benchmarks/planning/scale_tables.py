"""The tables of the workloads at scale, and ranges of three unclustered columns in the language of every engine.

Every range keeps about 11 % of the blocks, wherever they lie. Its literals depend on the number of the call, so that no
engine can answer from memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from itertools import count
from operator import and_
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

import secateur as sec
from benchmarks.peers import write_duckdb
from benchmarks.planning.synthetic import SCATTERED, SPACE, WIDTH, Bounds, Shape, bounds_of, open_synthetic, write_index
from benchmarks.planning.synthetic_table import FILE_BLOCKS, SyntheticTable
from benchmarks.setting import Setting
from benchmarks.timing import Contender
from secateur.pruning.predicate.nodes import Predicate
from secateur.scan import Scan

BLOCKS, MANY_BLOCKS = 1_000_000, 20_000_000
FIRST = dict(zip(SCATTERED, (200_000, 400_000, 600_000), strict=True))  # where the ranges begin
REACH = 54_500  # of a range, beside blocks that are 50,000 wide and begin anywhere in 950,000 values
CALLS = 10_000  # before literals repeat

Windows = Mapping[str, tuple[int, int]]  # ranges by column, both ends included


def ranges(call: int) -> Windows:
    """Three ranges that keep about a tenth of the blocks each."""
    return {name: (first + call % CALLS, first + call % CALLS + REACH) for name, first in FIRST.items()}


def nearly_all(call: int) -> Windows:
    """Three ranges that overlap every block but do not enclose all: each block has to be decided."""
    return dict.fromkeys(SCATTERED, (WIDTH - call % CALLS, SPACE - WIDTH + call % CALLS))


def all_values(call: int) -> Windows:
    """Three ranges that hold all values."""
    return dict.fromkeys(SCATTERED, (-call, SPACE + call))


def in_sql(windows: Windows) -> str:
    """The ranges as Spark SQL."""
    return " AND ".join(f"{name} BETWEEN {low} AND {high}" for name, (low, high) in windows.items())


def in_python(windows: Windows) -> Predicate:
    """The ranges as an expression on ``sec.col``."""
    return reduce(and_, (sec.col(name).between(low, high) for name, (low, high) in windows.items()))


def in_duckdb(windows: Windows) -> str:
    """The ranges as a condition on the table of bounds."""
    return " AND ".join(f"{name}_upper >= {low} AND {name}_lower <= {high}" for name, (low, high) in windows.items())


def in_arrow(windows: Windows) -> pc.Expression:
    """The ranges as a filter of pyarrow."""
    return reduce(and_, ((pc.field(name) >= low) & (pc.field(name) <= high) for name, (low, high) in windows.items()))


def in_iceberg(windows: Windows) -> str:
    """The ranges as a row filter of pyiceberg."""
    return " and ".join(f"{name} >= {low} and {name} <= {high}" for name, (low, high) in windows.items())


def by_numpy(bounds: Mapping[str, Bounds], windows: Windows) -> np.ndarray:
    """The numbers of the blocks that reach into all the ranges: the floor, two comparisons of arrays per column."""
    sides = ((bounds[name][1] >= low) & (bounds[name][0] <= high) for name, (low, high) in windows.items())
    return np.flatnonzero(reduce(and_, sides))


def changing(ask: Callable[[int], object]) -> Contender:
    """A contender that gets the number of its call."""
    calls = count()
    return lambda: ask(next(calls))


@dataclass(frozen=True)
class ScaleTable:
    """A table of so many blocks without filters and pages, and the directory of its index."""

    table: SyntheticTable
    shape: Shape
    directory: Path

    def __len__(self) -> int:
        return self.shape.blocks

    def prune(self, predicate: str | Predicate) -> Scan:
        """Prune by a predicate: the call that is measured."""
        return sec.prune(self.table, predicate, strict=True, session_time_zone="UTC")

    def bounds(self, *names: str) -> dict[str, Bounds]:
        """The bounds of some columns; of the three unclustered ones where none is named."""
        return bounds_of(self.shape, names or SCATTERED)


def scale_table(setting: Setting, blocks: int, others: int = 0) -> ScaleTable:
    """The table of so many blocks at the scale of the setting, its index written where it is missing."""
    n = setting.scaled(blocks, least=400) // FILE_BLOCKS * FILE_BLOCKS
    shape = Shape(n, others, has_filters=False, has_pages=False)
    directory = setting.prepared_index(f"scale-{shape.blocks}-{others}", partial(write_index, shape=shape))
    return ScaleTable(open_synthetic(directory, shape), shape, directory)


def duckdb_of(setting: Setting, bounds: Mapping[str, Bounds]) -> Path:
    """The DuckDB file with a table of these bounds, written where it is missing."""
    n = len(next(iter(bounds.values()))[0])

    def write(path: Path) -> None:
        write_duckdb(path / "bounds.duckdb", bounds)

    return setting.prepared(f"scale-bounds-{n}", write) / "bounds.duckdb"


def numbers(plan: Scan) -> np.ndarray:
    """The numbers of the blocks that a plan keeps, ascending: files are listed in the order of their blocks."""
    blocks = plan.survivors.blocks
    return blocks.file * FILE_BLOCKS + blocks.row_group


def require_equal(kept: np.ndarray, expected: np.ndarray, what: str) -> None:
    """Raises AssertionError where other blocks are kept than the bounds ask for."""
    if not np.array_equal(kept, expected):
        lost = len(np.setdiff1d(expected, kept))
        raise AssertionError(f"{what}: {len(kept):,} blocks instead of {len(expected):,}, {lost:,} are lost")
