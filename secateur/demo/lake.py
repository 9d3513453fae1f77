"""The lake demo: plain Spark over s3a, then one line, then the same SQL again, with requests and bytes counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import secateur as sec
from secateur.demo.events import EVENTS, PEOPLE, write_lake
from secateur.demo.lake_questions import Question, lake_questions
from secateur.demo.limits import within
from secateur.demo.lineitem import DemoNotPossible, locked, whole_directory
from secateur.demo.s3_process import BUCKET, RemoteServer, remote_server
from secateur.demo.s3_traffic import Traffic
from secateur.demo.s3a import session_settings
from secateur.maintain.describe import IndexSnapshot
from secateur.scan import Scan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LATENCY = 0.015  # seconds added to every request
FILES = 2_000
SLOTS = 32  # tasks at once: they wait more than they compute
MOST_SECONDS_OF_QUERY, MOST_SECONDS_OF_STEP = 90, 180


@dataclass(frozen=True)
class QueryRun:
    """One run of a query: its rows in a canonical order, and its requests to the lake."""

    rows: tuple[str, ...]
    seconds: float
    requests: int
    bytes: int
    round_trips: int  # the longest chain of requests, each sent after the answer to the one before
    files: int  # data files that were opened
    arrivals: tuple[float, ...]  # of the requests, in seconds since the query began, ascending


@dataclass(frozen=True)
class LakeTrial:
    """One question, by Spark alone and with the index."""

    question: Question
    spark: QueryRun
    secateur: QueryRun
    plan: Scan | None  # None where the query was not pruned

    @property
    def equal(self) -> bool:
        """Whether both runs gave the same rows."""
        return self.spark.rows == self.secateur.rows

    @property
    def speed_up(self) -> float:
        return self.spark.seconds / self.secateur.seconds


@dataclass(frozen=True)
class IndexCost:
    """The cost of the index: of its build over the same S3, and of its storage."""

    index: IndexSnapshot
    seconds: float
    requests: int
    bytes: int


@dataclass(frozen=True)
class LakeDemo:
    """The results of the demo on a lake."""

    files: int
    data_bytes: int
    cost: IndexCost
    trials: tuple[LakeTrial, ...]
    seconds: float

    @property
    def sound(self) -> bool:
        """Whether all answers are equal."""
        return all(trial.equal for trial in self.trials)

    @property
    def paid_after(self) -> float | None:
        """The number of queries after which the index has saved the time of its build; None if it saves none."""
        saved = sum(trial.spark.seconds - trial.secateur.seconds for trial in self.trials) / len(self.trials)
        return self.cost.seconds / saved if saved > 0 else None

    @property
    def headline(self) -> str:
        """The result in one line: first the queries that open fewer files, then all of them."""
        pruned = [trial for trial in self.trials if trial.secateur.files < trial.spark.files]
        same = "same answers" if self.sound else "BUT ANSWERS DIFFER"
        whole = f"{_times(self.trials, 'seconds')} times faster with those that have to read everything"
        return (
            f"{len(pruned)} of {len(self.trials)} queries together: {_times(pruned, 'requests')} times fewer requests, "
            f"{_times(pruned, 'bytes')} times fewer bytes, {_times(pruned, 'seconds')} times faster; {whole}; {same}."
        )


def _times(trials: Sequence[LakeTrial], unit: str) -> str:
    """Return the ratio of a unit, such as requests or seconds, without and with the index, over all trials."""
    alone, indexed = (sum(getattr(run, unit) for run in runs) for runs in zip(*map(_runs, trials), strict=True))
    ratio = alone / max(indexed, 1e-9)
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"


def _runs(trial: LakeTrial) -> tuple[QueryRun, QueryRun]:
    return trial.spark, trial.secateur


@dataclass(frozen=True)
class LakeEvents:
    """Callbacks for the demo's progress; by default they do nothing."""

    on_step: Callable[[str], None] = lambda text: None
    on_file: Callable[[int, int], None] = lambda done, total: None  # files written, of all
    on_table: Callable[[int, int], None] = lambda files, size: None
    on_spark: Callable[[Question, QueryRun], None] = lambda question, run: None
    on_indexed: Callable[[IndexCost], None] = lambda cost: None
    on_trial: Callable[[LakeTrial], None] = lambda trial: None


SessionOf = Callable[[dict[str, str]], Any]  # a context manager that gives a session with settings


def run_lake(
    session: SessionOf, directory: Path, *, files: int = FILES, fresh: bool = False, events: LakeEvents | None = None
) -> LakeDemo:
    """Run the demo with the data in a directory, reusing it unless `fresh`.

    `session` makes the session of Spark, which has to start after the server. Raises DemoNotPossible where a step
    takes too long.
    """
    events, started = events or LakeEvents(), time.perf_counter()
    with locked(directory):
        home = directory / f"lake-{files}"
        if fresh or not home.is_dir():
            events.on_step(f"writing {files:,} files")
            whole_directory(home, lambda path: write_lake(path, files, lambda done: events.on_file(done, files)))
        with remote_server() as server:
            events.on_step("filling the S3 server")
            for name in (EVENTS, PEOPLE):
                within(MOST_SECONDS_OF_STEP, "filling the S3 server", partial(server.put_files, name, home / name))
            size = sum(file.stat().st_size for file in (home / EVENTS).glob("*.parquet"))
            events.on_table(files, size)
            settings = {**session_settings(f"http://127.0.0.1:{server.port}"), "spark.master": f"local[{SLOTS}]"}
            with session(settings) as spark:
                cost, trials = _measured(spark, server, files, events)
    return LakeDemo(files, size, cost, trials, time.perf_counter() - started)


def _measured(
    spark: SparkSession, server: RemoteServer, files: int, events: LakeEvents
) -> tuple[IndexCost, tuple[LakeTrial, ...]]:
    events.on_step("opening the table")
    within(MOST_SECONDS_OF_STEP, "opening the table", lambda: _open(spark))
    asked, alone = lake_questions(files), []
    for question in asked:
        events.on_step(f"{question.name}: Spark alone")
        alone.append(_run(spark, server, question))
        events.on_spark(question, alone[-1])
    events.on_step("building the index, over S3")
    cost = within(MOST_SECONDS_OF_STEP, "building the index", lambda: _build(spark, server))
    events.on_indexed(cost)
    sec.enable(spark)
    trials = []
    for question, before in zip(asked, alone, strict=True):
        events.on_step(f"{question.name}: with the index")
        seen = len(sec.last_plans(spark))
        after = _run(spark, server, question)
        plans = [plan.plan for plan in sec.last_plans(spark)[seen:] if plan.location.endswith(EVENTS)]
        trials.append(LakeTrial(question, before, after, plans[-1] if plans else None))
        events.on_trial(trials[-1])
    sec.disable(spark)
    return cost, tuple(trials)


def _open(spark: SparkSession) -> None:
    """Create the views, and run a first query, because the first one is slow in any JVM."""
    for name in (EVENTS, PEOPLE):
        spark.read.parquet(f"s3a://{BUCKET}/{name}").createOrReplaceTempView(name)
    spark.sql(f"SELECT max(tier), count(*) FROM {PEOPLE} GROUP BY user_id % 2").collect()


def _run(spark: SparkSession, server: RemoteServer, question: Question) -> QueryRun:
    with server.traffic(LATENCY) as traffic:
        started = time.perf_counter()
        with _cancelled_if_late(spark):
            rows = within(MOST_SECONDS_OF_QUERY, question.name, lambda: spark.sql(question.sql).collect())
        seconds = time.perf_counter() - started
    arrivals = sorted(max(request.start - started, 0.0) for request in traffic.requests)
    return QueryRun(tuple(sorted(map(str, rows))), seconds, *_counted(traffic), _files_of(traffic), tuple(arrivals))


@contextmanager
def _cancelled_if_late(spark: SparkSession) -> Iterator[None]:
    try:
        yield
    except DemoNotPossible:
        spark.sparkContext.cancelAllJobs()
        raise


def _build(spark: SparkSession, server: RemoteServer) -> IndexCost:
    table = sec.open_table(f"s3://{BUCKET}/{EVENTS}")
    with server.traffic(LATENCY) as traffic:
        started = time.perf_counter()
        built = sec.build_index(table, spark=spark, bloom=["user_id"], tokens=["message"])
        seconds = time.perf_counter() - started
    requests, size, _ = _counted(traffic)
    return IndexCost(built, seconds, requests, size)


def _counted(traffic: Traffic) -> tuple[int, int, int]:
    return len(traffic.requests), traffic.sent, traffic.round_trips


def _files_of(traffic: Traffic) -> int:
    read = {request.name for request in traffic.requests if request.kind == "GET" and request.name.endswith(".parquet")}
    return sum(name.startswith(f"/{BUCKET}/{EVENTS}/") for name in read)
