"""The command demo on a lake: its progress, its table, its headline."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secateur.cli.output import (
    BAD,
    GOOD,
    QUIET,
    STRONG,
    Cell,
    OutputColumn,
    Sheet,
    count,
    is_terminal,
    print_json,
    print_line,
    say,
    show_sheet,
)
from secateur.cli.spark import Cluster, spark_session, step_progress
from secateur.pruning.report import human_bytes

if TYPE_CHECKING:  # imports pyspark, which is slow
    from secateur.demo.lake import IndexCost, LakeDemo, LakeEvents, LakeTrial, QueryRun
    from secateur.demo.lake_questions import Question

PAGE = "lake.html"
PACKAGES = ("moto", "werkzeug", "flask", "flask_cors", "boto3")  # of the S3 server


def s3_trouble() -> str:
    """Return why the demo cannot have its S3 server or Spark's reader of it; empty if it can."""
    missing = [package for package in PACKAGES if find_spec(package) is None]
    if missing:
        return f"{', '.join(missing)} not installed: pip install 'secateur[demo]'"
    from secateur.demo.s3a import has_s3a, s3a_trouble

    if not has_s3a():
        say("fetching Spark's reader of S3 from Maven Central, 19 MB, once", QUIET)
    trouble = s3a_trouble()
    return trouble and f"Spark's reader of S3 cannot be fetched ({trouble}); without a network it cannot be had"


def show_lake(verbose: bool, directory: Path, files: int, keep: bool, as_json: bool) -> bool:
    """Run and show the demo on a lake. Return whether all answers were equal."""
    from secateur.demo.lake import run_lake

    with step_progress() as on_progress:
        on_file = partial(on_progress, "writing files") if on_progress else None
        events = _events(as_json, on_file)
        outcome = run_lake(
            lambda settings: spark_session(Cluster(settings=settings), verbose),
            directory,
            files=files,
            fresh=not keep,
            events=events,
        )
    from secateur.html.lake_page import lake_page

    path = directory / PAGE
    path.write_text(lake_page(outcome), encoding="utf-8")
    if as_json:
        print_json({**_as_json(outcome), "page": str(path)})
    else:
        _show_end(outcome, path)
    return outcome.sound


def _events(as_json: bool, on_file: Callable[[int, int], None] | None) -> LakeEvents:
    from secateur.demo.lake import LakeEvents

    quiet = LakeEvents(on_step=_say_step)
    if on_file is not None:
        quiet = replace(quiet, on_file=on_file)
    if as_json:
        return quiet
    return replace(quiet, on_table=_show_table, on_spark=_show_spark, on_indexed=_show_cost, on_trial=_show_trial)


def _say_step(text: str) -> None:
    if is_terminal(sys.stderr):
        say(f"{text} ...", QUIET)


def _show_table(files: int, size: int) -> None:
    from secateur.demo.lake import LATENCY, SLOTS

    print_line(
        f"a table of {files:,} files, {human_bytes(size)}, on an S3 server of this machine; {LATENCY * 1000:.0f} ms "
        f"are added to every request; Spark runs {SLOTS} tasks at once\n"
    )
    print_line("plain SQL, Spark's own reader over s3a", STRONG)


def _show_spark(question: Question, run: QueryRun) -> None:
    print_line(f"  {question.name}: {_described(run)}")
    print_line(f"    {question.sql}", QUIET)


def _show_cost(cost: IndexCost) -> None:
    print_line(
        f"\nsec.build_index(table, ...): {cost.seconds:.1f} s, {cost.requests:,} requests, {human_bytes(cost.bytes)} "
        f"read; the index takes {human_bytes(cost.index.index_bytes)}"
    )
    print_line("\nsec.enable(spark), then the same SQL", STRONG)


def _show_trial(trial: LakeTrial) -> None:
    same = "same answer" if trial.equal else "ANSWERS DIFFER"
    print_line(f"  {trial.question.name}: {_described(trial.secateur)}; {same}", GOOD if trial.equal else BAD)


def _described(run: QueryRun) -> str:
    return (
        f"{run.seconds:.2f} s, {run.requests:,} requests ({run.round_trips:,} one after the other), "
        f"{human_bytes(run.bytes)}, {run.files:,} files opened"
    )


def _show_end(outcome: LakeDemo, path: Path) -> None:
    print_line("\nSpark alone -> with the index", STRONG)
    show_sheet(_summary(outcome))
    cost, paid = outcome.cost, outcome.paid_after
    after = "it saves these queries no time" if paid is None else f"it pays for itself after {paid:.1f} such queries"
    print_line(
        f"the index took {cost.seconds:.1f} s and {human_bytes(cost.index.index_bytes)} beside "
        f"{human_bytes(outcome.data_bytes)} of data; {after}"
    )
    print_line(f"done in {outcome.seconds:.0f} s; the page of it, with pictures: {path}\n")
    print_line(outcome.headline, STRONG if outcome.sound else BAD)


def _summary(outcome: LakeDemo) -> Sheet:
    names = ("requests", "in a chain", "bytes", "files", "seconds")
    columns = (OutputColumn("query", right=False), *map(OutputColumn, names), OutputColumn("faster"))
    return Sheet(columns, tuple(map(_summary_row, outcome.trials)))


def _summary_row(trial: LakeTrial) -> tuple[Cell, ...]:
    a, b = trial.spark, trial.secateur
    pairs = (
        (count(a.requests), count(b.requests)),
        (count(a.round_trips), count(b.round_trips)),
        (human_bytes(a.bytes), human_bytes(b.bytes)),
        (count(a.files), count(b.files)),
        (f"{a.seconds:.2f}", f"{b.seconds:.2f}"),
    )
    cells = (Cell(f"{before} -> {after}") for before, after in pairs)
    return (Cell(trial.question.name), *cells, Cell(f"{trial.speed_up:.1f} x", GOOD if trial.speed_up > 1 else BAD))


def _as_json(outcome: LakeDemo) -> dict[str, Any]:
    return {
        "files": outcome.files,
        "data_bytes": outcome.data_bytes,
        "index": {**asdict(outcome.cost), "paid_after": outcome.paid_after},
        "trials": [_trial_as_json(trial) for trial in outcome.trials],
        "sound": outcome.sound,
        "headline": outcome.headline,
        "seconds": outcome.seconds,
    }


def _trial_as_json(trial: LakeTrial) -> dict[str, Any]:
    runs = {"spark": asdict(trial.spark), "secateur": asdict(trial.secateur)}
    return {"question": asdict(trial.question), **runs, "equal": trial.equal, "speed_up": trial.speed_up}
