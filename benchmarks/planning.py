"""A whole prune() over a big synthetic index, warm and cold, against numpy, pyarrow and DuckDB."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import duckdb
import numpy as np

import secateur as sc
from benchmarks.cold import ColdStart, start_cold
from benchmarks.peers import (
    LIKELY,
    Question,
    arrow_keeps,
    duckdb_keeps,
    fragments,
    open_duckdb,
    questions,
    write_duckdb,
    write_row_groups,
)
from benchmarks.results import Kept, Ratio, Result, timed
from benchmarks.setting import Setting
from benchmarks.synthetic import FILE_BLOCKS, Blocks, Shape, SyntheticTable, blocks_of, open_synthetic, write_index
from benchmarks.timing import Timing, once, race
from secateur.io.scan import Scan

BLOCKS = 100_000
COLD_QUESTIONS = ("clustered range", "unclustered range")
COLD_STARTS = 3  # at most, per engine and question


def plan_synthetic(setting: Setting) -> Result:
    """Plans of five predicates; peers have the same bounds, and no filters, tree or pages."""
    n = setting.scaled(BLOCKS, least=400) // FILE_BLOCKS * FILE_BLOCKS
    directory = setting.prepared_index(f"synthetic-{n}", lambda path: _write(path, n))
    table, blocks = open_synthetic(directory / "index", Shape(n)), blocks_of(Shape(n))
    asked = questions(n)
    ratios, kept, notes = [], [], []
    files = fragments(directory / "row_groups")
    with open_duckdb(directory / "bounds.duckdb") as connection:
        for question in asked:
            in_arrow, arrow_kept = once(partial(arrow_keeps, files, question.arrow))
            ratios += _warm(question, table, blocks, connection, in_arrow, setting)
            plan = _prune(table, question)
            kept.append(_kept(question, plan, blocks, arrow_kept, duckdb_keeps(connection, question.duckdb)))
            notes.append(_stage_times(question, plan))
    for i, question in enumerate(asked):
        if question.name in COLD_QUESTIONS:
            ratios += _cold(question, i, directory, n, min(COLD_STARTS, setting.repetitions))
    sizes = {"blocks": n, "files": n // FILE_BLOCKS, "segments": len(list((directory / "index/segments").iterdir()))}
    return Result(sizes, tuple(ratios), tuple(kept), tuple(notes))


def _write(directory: Path, n: int) -> None:
    for name in ("index", "row_groups"):
        (directory / name).mkdir()
    blocks = blocks_of(Shape(n))
    write_index(directory / "index", Shape(n))
    write_row_groups(directory / "row_groups", blocks)
    write_duckdb(directory / "bounds.duckdb", blocks)


def _prune(table: SyntheticTable, question: Question) -> Scan:
    return sc.prune(table, question.sql, strict=True, session_time_zone="UTC")


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
        _unpaired(subject, ours, "pyarrow Fragment.subset, footers read", in_arrow),
    ]


def _unpaired(subject: str, timing: Timing, reference: str, peer: Timing) -> Ratio:
    return Ratio(subject, timing.seconds, "s", reference, peer.seconds)


def _cold(question: Question, i: int, directory: Path, n: int, starts: int) -> list[Ratio]:
    """First answers of new processes, in turn; pyarrow, which reads its footers for seconds, starts once."""
    ours, in_duckdb = [], []
    for _ in range(starts):
        ours.append(start_cold("secateur", directory, n, i))
        in_duckdb.append(start_cold("duckdb", directory, n, i))
    in_arrow = start_cold("pyarrow", directory, n, i)
    answering, importing = _answering(ours), Timing(tuple(run.importing for run in ours))
    subject = f"prune(), {question.name}, new process"
    return [
        timed(subject, answering, "DuckDB, its file opened", _answering(in_duckdb)),
        _unpaired(subject, answering, "pyarrow, footers read", _answering([in_arrow])),
        _unpaired("import secateur", importing, "import pyarrow.dataset", Timing((in_arrow.importing,))),
    ]


def _answering(runs: list[ColdStart]) -> Timing:
    return Timing(tuple(run.answering for run in runs))


def _kept(question: Question, plan: Scan, blocks: Blocks, by_arrow: int, by_duckdb: int) -> Kept:
    by_bounds = int(question.numpy(blocks).sum())
    holds = int((blocks.keys == LIKELY).any(axis=1).sum()) if question.name == "needle" else by_bounds
    kept = {"secateur": len(plan.survivors.fully_matching), "pyarrow": by_arrow, "duckdb": by_duckdb}
    return Kept("synthetic", question.name, "blocks", len(blocks), holds, kept)


def _stage_times(question: Question, plan: Scan) -> str:
    """Where the time of one warm plan went."""
    stages = ", ".join(f"{stage.name} {stage.seconds * 1000:.1f} ms" for stage in plan.report.stages)
    return f"{question.name}: {stages}"
