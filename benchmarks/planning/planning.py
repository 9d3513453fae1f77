"""A whole prune() over an index that has filters and pages too, against numpy, pyarrow and DuckDB."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import duckdb
import numpy as np

import secateur as sec
from benchmarks.peers import (
    LIKELY,
    Question,
    arrow_keeps,
    bounds_asked,
    duckdb_keeps,
    fragments,
    open_duckdb,
    questions,
    write_duckdb,
    write_row_groups,
)
from benchmarks.planning.synthetic import Blocks, Shape, blocks_of, open_synthetic, write_index
from benchmarks.planning.synthetic_table import FILE_BLOCKS, SyntheticTable
from benchmarks.results import Kept, Ratio, Result, timed, unpaired
from benchmarks.setting import Setting
from benchmarks.timing import Timing, once, race
from secateur.scan import Scan

BLOCKS = 100_000


def plan_synthetic(setting: Setting) -> Result:
    """Plans of five predicates; peers have the same bounds, and no filters, tree or pages."""
    n = setting.scaled(BLOCKS, least=400) // FILE_BLOCKS * FILE_BLOCKS
    directory = setting.prepared_index(f"synthetic-{n}", lambda path: _write(path, n))
    table, blocks = open_synthetic(directory / "index", Shape(n)), blocks_of(Shape(n))
    ratios, kept, notes = [], [], []
    files = fragments(directory / "row_groups")
    with open_duckdb(directory / "bounds.duckdb") as connection:
        for question in questions(n):
            in_arrow, arrow_kept = once(partial(arrow_keeps, files, question.arrow))
            ratios += _warm(question, table, blocks, connection, in_arrow, setting)
            plan = _prune(table, question)
            kept.append(_kept(question, plan, blocks, arrow_kept, duckdb_keeps(connection, question.duckdb)))
            notes.append(_stage_times(question, plan))
    sizes = {
        "blocks": n,
        "files": n // FILE_BLOCKS,
        "segments": len(list((directory / "index/segments").iterdir())),
    }
    return Result(sizes, tuple(ratios), tuple(kept), tuple(notes))


def _write(directory: Path, n: int) -> None:
    for name in ("index", "row_groups"):
        (directory / name).mkdir()
    blocks = blocks_of(Shape(n))
    write_index(directory / "index", Shape(n))
    write_row_groups(directory / "row_groups", bounds_asked(blocks))
    write_duckdb(directory / "bounds.duckdb", bounds_asked(blocks))


def _prune(table: SyntheticTable, question: Question) -> Scan:
    return sec.prune(table, question.sql, strict=True, session_time_zone="UTC")


def _warm(
    question: Question,
    table: SyntheticTable,
    blocks: Blocks,
    connection: duckdb.DuckDBPyConnection,
    in_arrow: Timing,
    setting: Setting,
) -> list[Ratio]:
    """prune() with its cache full against each reference; pyarrow, which takes seconds, was timed once."""
    ours, in_duckdb, in_numpy = race(
        [
            lambda: _prune(table, question),
            lambda: duckdb_keeps(connection, question.duckdb),
            lambda: np.flatnonzero(question.numpy(blocks)),
        ],
        setting.repetitions,
    )
    subject = f"prune(), {question.name}, warm"
    return [
        timed(subject, ours, "numpy over the bounds in memory", in_numpy),
        timed(subject, ours, "DuckDB over a table of the bounds", in_duckdb),
        unpaired(subject, ours, "pyarrow Fragment.subset, footers read", in_arrow),
    ]


def _kept(question: Question, plan: Scan, blocks: Blocks, by_arrow: int, by_duckdb: int) -> Kept:
    by_bounds = int(question.numpy(blocks).sum())
    holds = int((blocks.keys == LIKELY).any(axis=1).sum()) if question.name == "needle" else by_bounds
    kept = {"secateur": len(plan.survivors.fully_matching), "pyarrow": by_arrow, "duckdb": by_duckdb}
    return Kept("synthetic", question.name, "blocks", len(blocks), holds, kept)


def _stage_times(question: Question, plan: Scan) -> str:
    """The time of each stage of one warm plan."""
    stages = ", ".join(f"{stage.name} {stage.seconds * 1000:.1f} ms" for stage in plan.report.stages)
    return f"{question.name}: {stages}"
