"""Builds, refreshes, vacuums, drops and readers at once: answers are exact, no update is lost, conflicts are told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType

import pyarrow.fs as pafs
import pytest

import secateur as sec
from secateur.errors import IndexConflict, IndexFault, IndexMissing, SecateurError
from secateur.index.segments.snapshot_files import snapshot_numbers
from secateur.io.tables.directory.table import ParquetDirectory
from tests.support.profiles import NIGHTLY, by_profile, sweep, takes_seconds
from tests.support.stores.crash_lake import (
    BUILD,
    OTHERWISE,
    QUESTIONS,
    ROWS,
    Lake,
    answers,
    build,
    changed,
    check_index,
    check_leftovers,
    drop,
    grown,
    indexed,
    lake_on,
    matching,
    nothing,
    optimize,
    outgrown,
    rebuild,
    refresh,
    refreshed,
    rows_of,
    vacuum,
)
from tests.support.stores.faulty_store import FaultyStore, Script

Do = Callable[[ParquetDirectory], None]


def lake_in(tmp_path: Path, before: Callable[[Lake], None]) -> Lake:
    return lake_on(pafs.LocalFileSystem(), str(tmp_path / "lake"), before)


# ---- two at once, in every order of their steps ----------------------------------------------------------------------


@dataclass
class Meeting(Script):
    """At one operation another does all that it does: whatever it is, it comes between two steps of the first."""

    meanwhile: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.has_met = False


@dataclass(frozen=True)
class MeetingStore(FaultyStore):
    """A store in which the other gets its turn before the chosen operation."""

    script: Meeting = field(default_factory=Meeting, compare=False)

    def _run(self, what, work, error, half=lambda: None, linked=None):  # type: ignore[no-untyped-def]
        if len(self.script.done) == self.script.at and not self.script.has_met:
            self.script.has_met = True
            self.script.meanwhile()
        self.script.done.append(what)
        return work()


def ending(do: Do, table: ParquetDirectory) -> SecateurError | None:
    try:
        do(table)
    except SecateurError as error:
        return error
    return None


def met(lake: Lake, first: Do, at: int, other: Do) -> tuple[SecateurError | None, SecateurError | None, Meeting]:
    """How two end, of which the other does all that it does before one step of the first."""
    ended: list[SecateurError | None] = []
    script = Meeting(at, meanwhile=lambda: ended.append(ending(other, lake.open())))
    outcome = ending(first, lake.open(MeetingStore(lake.filesystem, lake.store.root, script)))
    return outcome, ended[0] if ended else None, script


PAIRS: list[tuple[Do, Do, Callable[[Lake], None]]] = [
    (build, rebuild, nothing),
    (build, vacuum, nothing),
    (rebuild, build, changed),
    (rebuild, vacuum, changed),
    (rebuild, drop, changed),
    (rebuild, refresh, changed),
    (refresh, refresh, changed),
    (refresh, rebuild, changed),
    (refresh, vacuum, changed),
    (refresh, drop, changed),
    (optimize, refresh, outgrown),
    (optimize, rebuild, grown),
    (optimize, vacuum, grown),
    (optimize, drop, grown),
    (refresh, optimize, outgrown),
    (vacuum, rebuild, refreshed),
    (vacuum, drop, refreshed),
    (vacuum, vacuum, refreshed),
    (vacuum, refresh, changed),
    (drop, rebuild, refreshed),
    (drop, refresh, changed),
    (drop, vacuum, refreshed),
]
MEETING = sweep(PAIRS, 2)


@pytest.mark.parametrize(
    ("first", "other", "before"), MEETING, ids=[f"{first.__name__}-{other.__name__}" for first, other, _ in MEETING]
)
def test_another_comes_between_two_steps(tmp_path: Path, first: Do, other: Do, before: Callable[[Lake], None]) -> None:
    """Between any two: both succeed, or one says why not and succeeds when it tries again; no snapshot lacks a file."""
    lake = lake_in(tmp_path, before)
    saved = lake.saved()
    for at in sweep(steps_that_matter(steps_of(lake, first)), 4):
        lake.restore(saved)
        outcome, others, script = met(lake, first, at, other)
        where = f"before {script.done[at]}: {outcome!r}, {others!r}"
        for error in (outcome, others):
            assert error is None or isinstance(error, told_by(first)), where
        assert others is None or not isinstance(others, IndexConflict), where  # nobody comes between its steps
        try:
            check_index(lake)
        except Exception as error:
            raise AssertionError(where) from error
        if isinstance(outcome, IndexConflict):
            assert "again" in str(outcome), where
            assert isinstance(ending(first, lake.open()), IndexMissing | None), where
        check_leftovers(lake)


def told_by(do: Do) -> type[SecateurError] | UnionType:
    """A refresh or an optimization reads the index that it starts from bit by bit, and may find it gone."""
    both = IndexConflict | IndexMissing
    return both | IndexFault if do in (refresh, optimize) else both


def steps_that_matter(steps: list[str]) -> list[int]:
    """Steps that write, those after them, and those around a look at what there is; in the nightly run all."""
    kinds = ("put", "create", "delete", "list") if NIGHTLY else ("create", "list removals")
    numbers = {i for i, step in enumerate(steps) if step.startswith(kinds)}
    return sorted(
        range(len(steps)) if NIGHTLY else {0, len(steps) - 1} | numbers | {i + 1 for i in numbers if i + 1 < len(steps)}
    )


def test_of_two_full_builds_the_last_number_wins(tmp_path: Path) -> None:
    lake = lake_in(tmp_path, indexed)
    saved = lake.saved()
    steps = steps_of(lake, build)
    created = next(i for i, step in enumerate(steps) if step.startswith("create"))
    for at in (0, created, created + 1):
        lake.restore(saved)
        outcome, others, _ = met(lake, build, at, rebuild)
        assert (outcome, others) == (None, None)
        assert snapshot_numbers(lake.store) == [1, 2, 3]
        assert sec.describe_index(lake.open()).bloom == (("user",) if at <= created else ("word",))
        check_index(lake)


def test_numbers_that_begin_again_are_told_apart(tmp_path: Path) -> None:
    """While a refresh is under way the index is dropped, and built in another way: it is not refreshed as it was."""

    def anew(table: ParquetDirectory) -> None:
        drop(table)
        rebuild(table)

    lake = lake_in(tmp_path, changed)
    for name in sorted(lake.rows):  # of which the refresh keeps nothing
        lake.write(name, rows_of(int(name[0]) * ROWS, salt=9))
    saved = lake.saved()
    steps = steps_of(lake, refresh)
    lake.restore(saved)
    first = next(i for i, step in enumerate(steps) if step.startswith("put segments"))
    outcome, others, _ = met(lake, refresh, first, anew)
    assert isinstance(outcome, IndexConflict)
    assert others is None
    assert snapshot_numbers(lake.store) == [1]
    assert sec.describe_index(lake.open()).bloom == ("word",)
    check_index(lake)


@dataclass
class Gate:
    """Where one waits until the other is done."""

    reached: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> None:
        self.reached.set()
        assert self.opened.wait(30)


def steps_of(lake: Lake, do: Do) -> list[str]:
    """What is done to the store where nobody else is at work."""
    script = Meeting()
    do(lake.open(MeetingStore(lake.filesystem, lake.store.root, script)))
    return script.done


@takes_seconds
@pytest.mark.parametrize("remove", [vacuum, drop])
@pytest.mark.parametrize("publish", [build, refresh])
def test_who_publishes_passes_who_removes(tmp_path: Path, publish: Do, remove: Do) -> None:
    """The build comes to some step, then the other to some step; then the build ends, then the other."""
    lake = lake_in(tmp_path, changed)
    saved = lake.saved()
    steps = steps_of(lake, publish)
    created = next(i for i, step in enumerate(steps) if step.startswith("create"))
    removing = [i for i, step in enumerate(steps_of(lake, remove)) if not step.startswith("read")]
    for at in range(created - 4, created + 4) if NIGHTLY else (created, created + 2):
        for then in removing if NIGHTLY else sweep(removing[at // 2 % 2 :: 2], 4):
            lake.restore(saved)
            gate, ended = Gate(), list[SecateurError | None]()
            script = Meeting(then, meanwhile=gate.wait)
            table = lake.open(MeetingStore(lake.filesystem, lake.store.root, script))
            other = threading.Thread(target=lambda table=table, ended=ended: ended.append(ending(remove, table)))

            def meanwhile(other: threading.Thread = other, gate: Gate = gate) -> None:
                other.start()
                while other.is_alive() and not gate.reached.wait(0.005):
                    pass

            outcome = ending(
                publish, lake.open(MeetingStore(lake.filesystem, lake.store.root, Meeting(at, meanwhile=meanwhile)))
            )
            gate.opened.set()
            other.join()
            where = f"{steps[at]}, {then}: {script.done[then:][:1]}, {outcome!r}"
            assert ended == [None], where
            assert outcome is None or isinstance(outcome, told_by(publish)), where
            try:
                check_index(lake)
            except Exception as error:
                raise AssertionError(where) from error


def test_of_two_refreshes_none_is_lost(tmp_path: Path) -> None:
    """The second knows a file that the first did not see; told of the conflict, it tries again and keeps both."""
    lake = lake_in(tmp_path, changed)

    def meanwhile(table: ParquetDirectory) -> None:
        lake.write("late.parquet", rows_of(9 * ROWS))
        refresh(table)

    steps = steps_of(lake, refresh)
    at = steps.index(next(step for step in steps if step.startswith("create")))
    lake = lake_in(tmp_path / "again", changed)
    outcome, others, _ = met(lake, refresh, at, meanwhile)
    assert isinstance(outcome, IndexConflict)
    assert "refresh again" in str(outcome)
    assert others is None
    refresh(lake.open())
    assert sec.verify_index(lake.open()).files_uncovered == 0
    check_index(lake)


# ---- many at once ----------------------------------------------------------------------------------------------------


@takes_seconds
def test_readers_while_the_index_is_written(tmp_path: Path) -> None:
    """Fresh and shared handles: every answer is exact and undegraded while builds, refreshes and vacuums go on."""
    lake = lake_in(tmp_path, indexed)
    shared, done = lake.open(), threading.Event()
    expected = {sql: matching(lake, holds) for sql, holds in QUESTIONS}

    def read(number: int) -> int:
        count = 0
        while not done.is_set() or not count:
            table = shared if number % 2 else lake.open()
            for sql, rows in expected.items():
                assert answers(table, sql) == rows
            count += 1
        return count

    def write() -> None:
        try:
            for i in range(8):
                build(lake.open(), **(OTHERWISE if i % 2 else BUILD))
                assert all("snapshots" in f.name for f in sec.vacuum_index(lake.open(), grace_seconds=60)) or i > 0
        finally:
            done.set()

    with ThreadPoolExecutor(5) as threads:
        readers = [threads.submit(read, number) for number in range(4)]
        threads.submit(write).result()
        assert all(reader.result() > 0 for reader in readers)
    check_index(lake)


@pytest.mark.parametrize("others", [(refresh, optimize), (rebuild, vacuum), (refresh, drop), (vacuum, vacuum)])
def test_writers_in_threads(tmp_path: Path, others: tuple[Do, ...]) -> None:
    """Whatever the order is: answers are exact afterwards, and the index is whole."""
    for i in range(by_profile(quick=4, full=4, nightly=4, fast=1)):
        lake = lake_in(tmp_path / str(i), changed)
        with ThreadPoolExecutor(4) as threads:
            jobs = [threads.submit(ending, do, lake.open()) for do in (build, *others)]
        errors = [job.result() for job in jobs]
        assert all(error is None or isinstance(error, told_by(refresh)) for error in errors), errors
        check_index(lake)
        check_leftovers(lake)
        change_again(lake)


def change_again(lake: Lake) -> None:
    """The index can be kept up to date, or built."""
    lake.write("5.parquet", rows_of(5 * ROWS))
    try:
        refresh(lake.open())
    except IndexMissing:
        build(lake.open())
    assert sec.verify_index(lake.open()).files_uncovered == 0
    check_index(lake)
