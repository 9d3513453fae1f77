"""Files of an index become what no builder leaves: the answers stay exact, degraded just where `strict` raises."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog import Catalog

import secateur as sec
from tests.support.checks.limits import within
from tests.support.profiles import NIGHTLY, examples, sweep, takes_seconds
from tests.support.programs.make_golden import GOLDEN, stamp
from tests.support.stores.crash_lake import build
from tests.support.stores.index_faults import IDS, PREDICATE, TEXTS, ask, index_files, is_refused

MOST_SECONDS = 20


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("golden") / "golden"
    shutil.copytree(GOLDEN / "v1", root)
    stamp(root)
    return root


@pytest.fixture
def golden(pristine: Path) -> Iterator[Path]:
    """The golden table; its index is whole again afterwards."""
    yield pristine
    shutil.rmtree(pristine / "_secateur")
    shutil.copytree(GOLDEN / "v1" / "_secateur", pristine / "_secateur")


FILES = [*(f"segment {i}" for i in range(2)), *(f"filter {i}" for i in range(5)), "snapshot 0"]


NAMED = f"name = 'name-031{'é' * 40}'"  # reads the bloom filter of names
QUESTIONS = IDS | {NAMED: [31]}
FOR = {"filter 1": (NAMED,)}  # which the others do not read


def check(root: Path, predicates: Iterable[str] = (PREDICATE, TEXTS)) -> bool:
    """Answers are right, and degraded just where `strict` raises; whether any was."""
    noticed = False
    with within(MOST_SECONDS):
        for predicate in predicates:
            ids, degraded = ask(root, predicate)
            assert ids == QUESTIONS[predicate]
            assert bool(degraded) == is_refused(root, predicate)
            noticed |= bool(degraded)
    return noticed


def instead(make: Callable[[Path], None]) -> Callable[[Path], None]:
    def harm(file: Path) -> None:
        file.unlink()
        make(file)

    return harm


HARMS: dict[str, Callable[[Path], None]] = {
    "emptied": lambda file: file.write_bytes(b""),
    "one byte": lambda file: file.write_bytes(b"S"),
    "doubled": lambda file: file.write_bytes(file.read_bytes() * 2),
    "zeros": lambda file: file.write_bytes(bytes(file.stat().st_size)),
    "reversed": lambda file: file.write_bytes(file.read_bytes()[::-1]),
    "huge": lambda file: os.truncate(file, 1 << 40),  # holes, which take no room
    "removed": lambda file: file.unlink(),
    "a directory": instead(Path.mkdir),
    "a link to itself": instead(lambda file: file.symlink_to(file)),
    "a link to nothing": instead(lambda file: file.symlink_to("nowhere")),
    "a pipe": instead(lambda file: os.mkfifo(file)),
}
NOT_READ = ("doubled", "huge")  # of other files: what follows on what is asked for
NOT_SEEN = ("removed", "a directory", "a link to nothing", "a link to itself", "a pipe")  # of a snapshot: is no file


@pytest.mark.parametrize(("name", "harm"), sweep(itertools.product(FILES, HARMS), 4))
def test_every_file_may_become_anything(golden: Path, name: str, harm: str) -> None:
    HARMS[harm](index_files(golden)[name])
    unseen = NOT_SEEN if name == "snapshot 0" else NOT_READ
    assert check(golden, FOR.get(name, (PREDICATE, TEXTS))) == (harm not in unseen)
    if harm not in NOT_SEEN or name != "snapshot 0":
        assert not sec.verify_index(sec.open_table(str(golden))).sound


def test_every_file_may_be_swapped_with_every_other(golden: Path) -> None:
    files = {name: index_files(golden)[name] for name in FILES}
    data = {name: file.read_bytes() for name, file in files.items()}
    for one, other in sweep(itertools.combinations(FILES, 2), 4):
        files[one].write_bytes(data[other])
        files[other].write_bytes(data[one])
        assert check(golden), (one, other)
        files[one].write_bytes(data[one])
        files[other].write_bytes(data[other])
    assert not check(golden)


@pytest.mark.parametrize("name", FILES)
def test_a_file_may_be_unreadable(golden: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file, opened = str(index_files(golden)[name]), os.open

    def refuse(path: str, *args: int, **kwargs: int) -> int:
        if path == file:
            raise PermissionError(13, "Permission denied", path)
        return opened(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", refuse)
    assert check(golden, FOR.get(name, (PREDICATE, TEXTS)))


@pytest.mark.parametrize("folder", ["segments", "filters", "snapshots", ""])
@pytest.mark.parametrize("become", ["gone", "a file", "a link to itself"])
def test_a_folder_may_become_anything(golden: Path, folder: str, become: str) -> None:
    place = golden / "_secateur" / folder
    shutil.rmtree(place)
    if become == "a file":
        place.write_bytes(b"no folder")
    elif become == "a link to itself":
        place.symlink_to(place)
    try:
        check(golden)
    finally:
        if become != "gone":
            place.unlink()
        (golden / "_secateur").mkdir(exist_ok=True)


CHANGES = st.tuples(
    st.sampled_from(FILES),
    st.one_of(
        st.sampled_from(sorted(HARMS)),
        st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)),
        st.floats(0, 1, exclude_max=True),
        st.binary(max_size=64),
    ),
)


@examples(25)
@given(st.lists(CHANGES, min_size=1, max_size=5, unique_by=lambda change: change[0]))
def test_several_files_may_be_harmed_at_once(
    pristine: Path, changes: list[tuple[str, str | tuple[float, int] | float | bytes]]
) -> None:
    shutil.rmtree(pristine / "_secateur")
    shutil.copytree(GOLDEN / "v1" / "_secateur", pristine / "_secateur")
    files = index_files(pristine)
    for name, change in changes:
        file, data = files[name], files[name].read_bytes()
        match change:
            case str():
                HARMS[change](file)
            case (share, mask):
                at = int(share * len(data))
                file.write_bytes(data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :])
            case float():
                file.write_bytes(data[: int(change * len(data))])
            case bytes():
                file.write_bytes(change)
    check(pristine)


# ---- of an Iceberg table ---------------------------------------------------------------------------------------------


@takes_seconds
def test_what_is_kept_of_manifests_may_be_harmed(catalog: Catalog) -> None:
    """It saves time; without it the manifests themselves are read, and nothing is degraded."""
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("word", pa.string())])
    table = catalog.create_table("db.t", schema)
    for first in (0, 20):
        ids = range(first, first + 20)
        table.append(pa.table({"id": ids, "word": [f"w{i % 7}" for i in ids]}, schema))
    build(sec.open_table(table), bloom=["id"], postings=["word"])  # type: ignore[arg-type]
    root = Path(sec.open_table(table).store.root)
    (kept,) = (root / "manifests").iterdir()
    data = kept.read_bytes()

    def found() -> list[int]:
        opened = sec.open_table(catalog.load_table("db.t"))
        plan = sec.prune(opened, "word = 'w3' AND id > 5", strict=True)
        assert plan.report.degraded == ()
        assert len(plan.blocks) == 2
        return sorted(plan.to_arrow(columns=["id"])["id"].to_pylist())

    with within(10 * MOST_SECONDS):
        assert found() == [10, 17, 24, 31, 38]
        for at in range(0, len(data), 1 if NIGHTLY else len(data) // 25):
            kept.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
            assert found() == [10, 17, 24, 31, 38], at
        for harm in HARMS.values():
            kept.rmdir() if kept.is_dir() else kept.unlink(missing_ok=True)
            kept.write_bytes(data)
            harm(kept)
            assert found() == [10, 17, 24, 31, 38]
