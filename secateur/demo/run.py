"""Run the demo from data to checks: data, indexes, trials, checks, pictures."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import secateur as sec
from secateur.demo.lineitem import Copy, locked, make_copies
from secateur.demo.questions import DATE_RANGES, LOOK_UP, questions
from secateur.demo.trials import Trial, answer_of, ask, references
from secateur.index.build.build import OnProgress
from secateur.maintain.describe import IndexSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_OF_IDEAL = 1.2  # limit for date ranges on the clustered copy, in multiples of the blocks that hold a match
FEW_MORE = 3  # blocks that bloom filters may wrongly keep in a look-up

Progress = tuple[OnProgress | None, OnProgress | None]


@dataclass(frozen=True)
class Check:
    """A claim of the demo, and whether it held."""

    claim: str
    holds: bool


@dataclass(frozen=True)
class Indexed:
    """A copy, its index, and the time of the build."""

    copy: Copy
    index: IndexSnapshot
    seconds: float


@dataclass(frozen=True)
class Demo:
    """The results of the demo."""

    scale_factor: float
    indexed: tuple[Indexed, ...]
    trials: tuple[Trial, ...]
    checks: tuple[Check, ...]
    pictures: tuple[Path, ...]
    seconds: float

    @property
    def sound(self) -> bool:
        """Whether every check held."""
        return all(check.holds for check in self.checks)


@dataclass(frozen=True)
class Events:
    """Callbacks for the demo's progress; by default they do nothing."""

    on_step: Callable[[str], None] = lambda text: None
    on_indexed: Callable[[Indexed], None] = lambda indexed: None
    on_trial: Callable[[Trial], None] = lambda trial: None
    indexing: Callable[[Copy], AbstractContextManager[Progress]] = lambda copy: nullcontext((None, None))


def run_demo(
    spark: SparkSession,
    directory: Path,
    *,
    scale_factor: float = 1.0,
    fresh: bool = False,
    events: Events | None = None,
) -> Demo:
    """Run the demo in a directory, reusing its data unless `fresh`.

    Raises DemoNotPossible if the data generator or matplotlib is missing.
    """
    from secateur.demo.waterfall import draw_waterfalls, require_matplotlib

    require_matplotlib()
    events = events or Events()
    started = time.perf_counter()
    with locked(directory):
        copies = make_copies(directory, scale_factor, fresh=fresh, on_step=events.on_step)
        indexed = tuple(_index(copy, events) for copy in copies)
        trials = _try_all(spark, copies, scale_factor, events)
        events.on_step("drawing")
        pictures = draw_waterfalls(trials, directory)
    return Demo(scale_factor, indexed, trials, checks_of(trials), pictures, time.perf_counter() - started)


def _index(copy: Copy, events: Events) -> Indexed:
    table = sec.open_table(str(copy.path))
    started = time.perf_counter()
    with events.indexing(copy) as (on_survey, on_progress):
        built = sec.build_index(
            table,
            sort_key=[copy.sort_key],
            bloom=["l_orderkey"],
            on_survey=on_survey,
            on_progress=on_progress,
        )
    indexed = Indexed(copy, built, time.perf_counter() - started)
    sec.vacuum_index(table, grace_seconds=0)  # removes files of earlier runs; nobody else reads this table
    events.on_indexed(indexed)
    return indexed


def _try_all(spark: SparkSession, copies: Sequence[Copy], scale_factor: float, events: Events) -> tuple[Trial, ...]:
    asked = questions(scale_factor)
    tables = [sec.open_table(str(copy.path)) for copy in copies]
    known = []
    for copy, table in zip(copies, tables, strict=True):
        events.on_step(f"computing the reference answers, {copy.name}")
        known.append(references(spark, copy, asked))
        answer_of(sec.prune(table, asked[0].sql, session_time_zone="UTC").to_spark(spark))  # warms up both engines
    trials = []
    for i, question in enumerate(asked):
        for copy, table, reference in zip(copies, tables, known, strict=True):
            events.on_step(f"{question.name}, {copy.name}")
            trial = ask(spark, copy, table, question, reference[i])
            events.on_trial(trial)
            trials.append(trial)
    return tuple(trials)


def checks_of(trials: Sequence[Trial]) -> tuple[Check, ...]:
    """Check the demo's claims against its trials."""
    equal = sum(trial.equal for trial in trials)
    return (
        Check(f"secateur and Spark give the same answers: {equal} of {len(trials)}", equal == len(trials)),
        _same_on_all_copies(trials),
        *map(_close_to_ideal, (t for t in trials if t.copy == "clustered" and t.question.name in DATE_RANGES)),
        *map(_few_blocks, (t for t in trials if t.question.name == LOOK_UP)),
    )


def _same_on_all_copies(trials: Sequence[Trial]) -> Check:
    answers: dict[str, set[object]] = {}
    for trial in trials:
        answers.setdefault(trial.question.name, set()).add(trial.answer)
    same = sum(len(distinct) == 1 for distinct in answers.values())
    return Check(f"both copies give the same answers: {same} of {len(answers)}", same == len(answers))


def _close_to_ideal(trial: Trial) -> Check:
    claim = (
        f"{trial.question.name}, {trial.copy}: {trial.blocks:,} blocks kept, {trial.ideal_blocks:,} hold a match "
        f"(at most {MOST_OF_IDEAL} times as many)"
    )
    return Check(claim, trial.blocks <= MOST_OF_IDEAL * trial.ideal_blocks)


def _few_blocks(trial: Trial) -> Check:
    claim = (
        f"{trial.question.name}, {trial.copy}: {trial.blocks:,} blocks kept, {trial.ideal_blocks:,} hold a match "
        f"(at most {FEW_MORE} more)"
    )
    return Check(claim, trial.blocks <= trial.ideal_blocks + FEW_MORE)
