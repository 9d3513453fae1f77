"""prune() over a million blocks and twenty million, warm: ranges against numpy, DuckDB, pyarrow and pyiceberg.

A time is that of the whole call, from the caller's predicate to the plan. The listing comes from memory; making it is
not timed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.formats.iceberg import iceberg_keeps, open_iceberg, write_iceberg
from benchmarks.peers import arrow_keeps, duckdb_keeps, fragments, open_duckdb, write_row_groups
from benchmarks.planning.scale_tables import (
    BLOCKS,
    MANY_BLOCKS,
    ScaleTable,
    Windows,
    all_values,
    by_numpy,
    changing,
    duckdb_of,
    in_arrow,
    in_duckdb,
    in_iceberg,
    in_python,
    in_sql,
    nearly_all,
    numbers,
    ranges,
    require_equal,
    scale_table,
)
from benchmarks.planning.synthetic import Bounds
from benchmarks.results import Kept, Ratio, Result, against, timed, unpaired
from benchmarks.setting import Setting
from benchmarks.timing import Contender, once, race

READERS_BLOCKS = 100_000  # for peers that look at every file in Python or read its footer
RANGE_GOAL = 3.0  # times numpy
RANGE_SECONDS = {BLOCKS: 0.005, MANY_BLOCKS: 0.1}
NOTHING_GOAL = 1.5  # times a plan that prunes
NUMPY = "numpy: & of six comparisons, flatnonzero"


def plan_range(setting: Setting) -> Result:
    """Three ranges over unclustered columns; literals change from call to call."""
    ratios: list[Ratio] = []
    kept: list[Kept] = []
    sizes: dict[str, int | float] = {}
    for what, blocks in (("blocks", BLOCKS), ("many_blocks", MANY_BLOCKS)):
        table = scale_table(setting, blocks)
        measured, left = _ranges(table, RANGE_SECONDS[blocks], setting)
        ratios, kept, sizes = ratios + measured, [*kept, left], {**sizes, what: len(table)}
    table = scale_table(setting, READERS_BLOCKS)
    measured, left = _beside_readers(table, setting)
    sizes["blocks_beside_readers_of_files"] = len(table)
    note = "DuckDB runs on all cores, with its table in a file; pyiceberg's first plan_files() reads its manifests"
    return Result(sizes, (*ratios, *measured), (*kept, left), (note,))


def _ranges(table: ScaleTable, seconds: float, setting: Setting) -> tuple[list[Ratio], Kept]:
    bounds = table.bounds()
    name = f"three ranges, {len(table):,} blocks"
    expected = by_numpy(bounds, ranges(0))
    require_equal(numbers(table.prune(in_sql(ranges(0)))), expected, name)
    with open_duckdb(duckdb_of(setting, bounds)) as connection:
        by_duckdb = duckdb_keeps(connection, in_duckdb(ranges(0)))
        in_text, as_object, as_blocks, floor, duckdb = race(
            [
                changing(lambda call: table.prune(in_sql(ranges(call)))),
                changing(lambda call: table.prune(in_python(ranges(call)))),
                changing(lambda call: table.prune(in_sql(ranges(call))).blocks),
                changing(lambda call: by_numpy(bounds, ranges(call))),
                changing(lambda call: duckdb_keeps(connection, in_duckdb(ranges(call)))),
            ],
            setting.repetitions,
        )
    ratios = [
        timed(f"prune(), {name}", in_text, NUMPY, floor, RANGE_GOAL),
        against(f"prune(), {name}", in_text, seconds),
        timed(f"prune(), {name}, on sec.col", as_object, NUMPY, floor, RANGE_GOAL),
        against(f"prune(), {name}, on sec.col", as_object, seconds),
        timed(f"prune(), {name}", in_text, "DuckDB over a table of the bounds", duckdb),
        timed(f"prune().blocks, {name}", as_blocks, "prune() alone", in_text),
    ]
    kept = {"secateur": len(expected), "duckdb": by_duckdb}
    return ratios, Kept("scale", name, "blocks", len(table), len(expected), kept)


def _beside_readers(table: ScaleTable, setting: Setting) -> tuple[list[Ratio], Kept]:
    """prune() against peers that take seconds, and are timed once."""
    bounds, windows = table.bounds(), ranges(0)
    directory = setting.prepared(
        f"scale-files-{len(table)}", partial(_write_files, bounds=bounds, at=setting.directory)
    )
    name = f"three ranges, {len(table):,} blocks"
    files = fragments(directory / "row_groups")
    arrow, by_arrow = once(lambda: arrow_keeps(files, in_arrow(windows)))
    iceberg, by_iceberg = once(lambda: iceberg_keeps(open_iceberg(directory / "iceberg"), in_iceberg(windows)))
    expected = by_numpy(bounds, windows)
    require_equal(numbers(table.prune(in_sql(windows))), expected, name)
    (ours,) = race([changing(lambda call: table.prune(in_sql(ranges(call))))], setting.repetitions)
    kept = {"secateur": len(expected), "pyarrow": by_arrow, "pyiceberg": by_iceberg}
    ratios = [
        unpaired(f"prune(), {name}", ours, "pyarrow Fragment.subset, footers read", arrow),
        unpaired(f"prune(), {name}", ours, "pyiceberg scan().plan_files()", iceberg),
    ]
    return ratios, Kept("scale", f"{name}, beside readers of files", "blocks", len(table), len(expected), kept)


def _write_files(directory: Path, bounds: dict[str, Bounds], at: Path) -> None:
    n = len(next(iter(bounds.values()))[0])
    for name in ("row_groups", "iceberg"):
        (directory / name).mkdir()
    write_row_groups(directory / "row_groups", bounds)
    write_iceberg(directory / "iceberg", bounds, at / f"scale-files-{n}" / "iceberg")


def plan_nothing_pruned(setting: Setting) -> Result:
    """Ranges of the same three columns that keep every block, block by block or by the tree alone."""
    table = scale_table(setting, BLOCKS)
    bounds, everything = table.bounds(), np.arange(len(table))
    require_equal(by_numpy(bounds, nearly_all(0)), everything, "numpy")
    for windows in (nearly_all(0), all_values(0)):
        require_equal(numbers(table.prune(in_sql(windows))), everything, in_sql(windows))

    def asked(windows_of: Callable[[int], Windows]) -> Contender:
        return changing(lambda call: table.prune(in_sql(windows_of(call))))

    floor_of = changing(lambda call: by_numpy(bounds, nearly_all(call)))
    pruned, one_by_one, by_tree, floor = race(
        [asked(ranges), asked(nearly_all), asked(all_values), floor_of], setting.repetitions
    )
    reference = "prune(), three ranges that keep a tenth each"
    ratios = (
        timed("prune(), all kept, decided block by block", one_by_one, reference, pruned, NOTHING_GOAL),
        timed("prune(), all kept, decided by the tree", by_tree, reference, pruned, NOTHING_GOAL),
        timed("prune(), all kept, decided block by block", one_by_one, NUMPY, floor),
    )
    return Result({"blocks": len(table)}, ratios)
