"""Whoever writes an index may die, or be refused, at every step: readers see the old index or the new one, whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from secateur.errors import SecateurError
from secateur.index.segments.snapshot_files import snapshot_name, snapshot_numbers
from tests.support.profiles import NIGHTLY, sweep, takes_seconds
from tests.support.s3_server import S3Server
from tests.support.stores.crash_lake import (
    ACTIONS,
    Action,
    Lake,
    build,
    check_answers,
    check_index,
    check_leftovers,
    lake_on,
)
from tests.support.stores.faulty_store import DEATHS, ERRORS, FAULTS, DiedError, FaultyStore, Script

PLACES = ("disk", "remote")


def filesystem_at(place: str, directory: Path) -> tuple[pafs.FileSystem, str]:
    """A filesystem, and the path of a table there; `remote` is one of which only pyarrow's interface is known."""
    local = pafs.LocalFileSystem()
    return (
        (local, str(directory / "lake")) if place == "disk" else (pafs.SubTreeFileSystem(str(directory), local), "lake")
    )


def operations(lake: Lake, action: Action) -> list[str]:
    """What an action does to the store where nothing goes wrong."""
    script = Script()
    action.do(lake.open(FaultyStore(lake.filesystem, lake.store.root, script)))
    return script.done


def fails(lake: Lake, action: Action, script: Script) -> BaseException | None:
    """How an action ends, when the store fails by a script."""
    try:
        action.do(lake.open(FaultyStore(lake.filesystem, lake.store.root, script)))
    except (SecateurError, KeyboardInterrupt, DiedError) as error:
        return error
    return None


def cases(steps: list[str]) -> Iterator[tuple[int, str]]:
    """The operations at which something goes wrong, and what: all pairs in the nightly run."""
    if NIGHTLY:
        yield from ((at, fault) for at in range(len(steps)) for fault in FAULTS)
        return
    writes = [at for at, step in enumerate(steps) if step.startswith(("put", "delete"))]
    yield from ((at, FAULTS[i % len(FAULTS)]) for i, at in enumerate(writes[::2]))
    yield from ((at, ERRORS[i % len(ERRORS)]) for i, at in enumerate(range(0, len(steps), 9)))
    yield from ((at, fault) for at, step in enumerate(steps) if step.startswith("create") for fault in FAULTS)


@takes_seconds
@pytest.mark.parametrize("place", PLACES if NIGHTLY else PLACES[:1])
@pytest.mark.parametrize("name", ACTIONS)
def test_whoever_writes_may_die_at_every_step(tmp_path: Path, name: str, place: str) -> None:
    """And be refused, or interrupted: every operation of the store in turn, every fault in the nightly run."""
    action = ACTIONS[name]
    lake = lake_on(*filesystem_at(place, tmp_path), action.before)
    saved, numbers = lake.saved(), snapshot_numbers(lake.store)
    steps = operations(lake, action)
    assert any(step.startswith(("create", "delete")) for step in steps)
    for at, fault in sweep(cases(steps), 5):
        lake.restore(saved)
        ended = fails(lake, action, Script(at, fault))
        where = f"{fault} at {steps[at]}: {ended!r}"
        if fault in DEATHS:
            assert isinstance(ended, DiedError), where
        check_old_or_new(lake, saved, numbers, where)
        check_leftovers(lake)
        if NIGHTLY or at % 8 == 0:
            build(lake.open())
            check_answers(lake)


ON_S3 = ACTIONS if NIGHTLY else ("refresh",)


@takes_seconds
@pytest.mark.parametrize("name", ON_S3)
def test_whoever_writes_to_s3_may_die_at_every_step(s3: S3Server, tmp_path: Path, name: str) -> None:
    action = ACTIONS[name]
    filesystem = pafs.FileSystem.from_uri(f"s3://{s3.bucket}")[0]
    lake = lake_on(filesystem, f"{s3.bucket}/{tmp_path.name}", action.before)
    saved, numbers = lake.saved(), snapshot_numbers(lake.store)
    steps = operations(lake, action)
    chosen = [at for at, s in enumerate(steps) if NIGHTLY or s.startswith(("create", "delete")) or at % 16 == 0]
    for at in sweep(chosen, 5):
        lake.restore(saved)
        ended = fails(lake, action, Script(at, DEATHS[at % len(DEATHS)]))
        assert isinstance(ended, DiedError), steps[at]
        check_old_or_new(lake, saved, numbers, steps[at])
        check_leftovers(lake)


def check_old_or_new(lake: Lake, saved: dict[str, bytes], numbers: list[int], where: str) -> None:
    """The index is the one that was there, or the next one, or gone by a drop, and either is whole."""
    now = snapshot_numbers(lake.store)
    current, before = now[-1] if now else 0, numbers[-1] if numbers else 0
    assert current in {0, before, before + 1}, where
    if current == before and now:
        name = snapshot_name(current)
        assert lake.store.read(name, 0, lake.store.size(name)) == saved[name], where
    try:
        check_index(lake)
    except BaseException as error:
        raise AssertionError(where) from error
