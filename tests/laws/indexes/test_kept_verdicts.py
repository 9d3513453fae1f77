"""Verdicts on local disk: what one process found, others use; and nothing there makes an answer wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import AuditFailed
from secateur.index.model import BuildOptions
from secateur.io.scan.kept import conditions, verdict_files, versions
from secateur.io.scan.kept.fingerprint import fingerprint
from secateur.io.scan.kept.verdict_files import VerdictFiles
from secateur.io.scan.kept.verdict_memory import BYTES_VARIABLE, DIRECTORY_VARIABLE, MEMORY
from secateur.io.scan.kept.verdicts import keeping_verdicts
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.rewrite import rewrite
from secateur.pruning.predicate.sql.parse import parse
from tests.support.profiles import examples, takes_seconds
from tests.support.small_lake import (
    PREDICATES,
    SCHEMA,
    STEPS,
    Lake,
    Step,
    ask_between_changes,
    asked,
    evens,
    ids,
    lake_of_chance,
    lake_of_evens,
    survivors,
)
from tests.support.stores.local_build import index_here
from tests.support.stores.lying_index import element, lie_in_segment
from tests.support.tables import write_file

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

pytestmark = pytest.mark.usefixtures("remembering")
NEVER = "i = 7"  # within the bounds of every block
BLOCKS = 16


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for verdicts."""
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "kept"))
    return tmp_path / "kept"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_of_evens(tmp_path / "lake")


def in_another_process() -> None:
    """Nothing is known but what is on disk."""
    MEMORY.clear()
    verdict_files._files_in.cache_clear()
    conditions._bound.cache_clear()


def entries(kept: Path) -> list[Path]:
    return sorted(kept.glob("??/*.entry"))


@examples(40, shrink=False)
@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.lists(st.tuples(STEPS, st.sampled_from(["same", "another", "another", "harm"])), min_size=3, max_size=9),
)
def test_answers_are_those_of_a_plain_evaluation(seed: int, steps: list[tuple[Step, str]]) -> None:
    """C51, C52, C53: predicates are asked in processes that share a directory, between changes of files, and harm."""
    with tempfile.TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        patch.setenv(DIRECTORY_VARIABLE, f"{root}/kept")
        lake = lake_of_chance(Path(root) / "lake", seed)
        ask_between_changes(lake, in_processes(steps, Path(root) / "kept", lake.rng), repeated=2)


def in_processes(steps: list[tuple[Step, str]], kept: Path, rng: np.random.Generator) -> Iterator[Step]:
    """The steps, each in the process it is to be taken in."""
    for step, process in steps:
        if process != "same":
            in_another_process()
        if process == "harm":
            harm(kept, rng)
        yield step


def harm(kept: Path, rng: np.random.Generator) -> None:
    """One of the files is cut, changed, or put in the place of another."""
    paths = entries(kept)
    if not paths:
        return
    path, other = (paths[int(at)] for at in rng.integers(0, len(paths), 2))
    data = bytearray(path.read_bytes())
    match int(rng.integers(0, 4)):
        case 0:
            path.write_bytes(data[: int(rng.integers(0, len(data)))])
        case 1:
            data[int(rng.integers(0, len(data)))] ^= 1 << int(rng.integers(0, 8))
            path.write_bytes(data)
        case 2:
            path.write_bytes(other.read_bytes())
        case 3:
            path.write_bytes(rng.bytes(200))


@given(sql=PREDICATES)
@examples(200)
def test_a_condition_is_read_as_it_was_written(sql: str) -> None:
    bound = rewrite(bind(parse(sql), SCHEMA, session_time_zone="UTC", case_sensitive=False, ansi=True))
    again = conditions._bound(str(bound), SCHEMA, "UTC", ansi=True)
    assert again == bound
    assert again is not None
    assert fingerprint(again) == fingerprint(bound)


@given(one=PREDICATES, other=PREDICATES)
@examples(200)
def test_conditions_that_differ_have_other_fingerprints(one: str, other: str) -> None:
    a, b = (
        rewrite(bind(parse(sql), SCHEMA, session_time_zone="UTC", case_sensitive=False, ansi=True))
        for sql in (one, other)
    )
    same = (str(a), fingerprint(a)) == (str(b), fingerprint(b))  # a pattern is in the text alone
    assert a == b if same else str(a) != str(b) or a != b


# ---- what other processes use


def test_what_one_process_found_another_uses(lake: Lake, kept: Path) -> None:
    table = sec.open_table(lake.root)
    sec.prune(table, NEVER).to_arrow()
    assert len(entries(kept)) == 2
    in_another_process()
    assert survivors(table, f"{NEVER} AND s = 'a'") == 0
    in_another_process()
    lake.write("more.parquet", 24, evens(lake.rng))
    plan = sec.prune(table, NEVER)
    assert plan.files == ["more.parquet"]
    assert plan.count() == 0
    in_another_process()
    assert survivors(table, NEVER) == 0


ASK = """
import sys, secateur as sec
table = sec.open_table(sys.argv[1])
for sql in sys.argv[2:]:
    plan = sec.prune(table, sql)
    print(len(plan.survivors.blocks), plan.count())
"""


def asking(lake: Lake, predicates: list[str]) -> subprocess.Popen[str]:
    """Another process that asks the table."""
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    command = [sys.executable, "-c", ASK, str(lake.root), *predicates]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


@takes_seconds
def test_really_in_other_processes(lake: Lake, kept: Path) -> None:
    """Two write at once; what a third finds there is true, and the same as here."""
    odd = [f"i = {value}" for value in range(1, 20, 2)]
    for asked_at_once in ([odd[:6], odd[3:]], [odd]):
        processes = [asking(lake, predicates) for predicates in asked_at_once]
        said = [process.communicate()[0].split() for process in processes]
        assert all(set(lines[1::2]) == {"0"} for lines in said), "no row is odd"
    (blocks,) = (lines[::2] for lines in said)
    assert set(blocks) <= {"0", str(BLOCKS)}
    assert blocks.count("0") >= 4, "of those that one wrote over, the other has some"
    assert not [path for path in kept.glob("??/*") if path.suffix != ".entry"]
    assert [survivors(sec.open_table(lake.root), sql) for sql in odd] == [0] * len(odd)


@pytest.mark.parametrize("way", ["arrow", "batches", "count", "exact"])
def test_every_way_to_read_leaves_them(lake: Lake, kept: Path, way: str) -> None:
    table = sec.open_table(lake.root)
    if way == "exact":
        sec.prune(table, NEVER).affected(exact=True)
    else:
        asked(table, NEVER, way, [], way)
    in_another_process()
    assert survivors(table, NEVER) == 0


def test_who_writes_last_takes_over_what_others_wrote(lake: Lake, kept: Path) -> None:
    """Two plans of two processes, made before either has read: each reads some row groups and writes those."""
    table = sec.open_table(lake.root)
    plans = [sec.prune(table, NEVER) for _ in range(2)]
    memories = []
    for plan, half in zip(plans, (slice(0, 9), slice(9, BLOCKS)), strict=True):
        in_another_process()
        reader = plan._reader(())
        with keeping_verdicts(plan.opened):
            for file in plan.blocks_at(plan.order()[half], reader).by_file():
                assert reader.count(file) == 0
        memories.append(MEMORY.nbytes)
    in_another_process()
    assert survivors(table, NEVER) == 0
    assert memories[1] > memories[0], "the other half is known there, too"


def test_c51_another_session_asks_anew(lake: Lake, kept: Path) -> None:
    table = sec.open_table(lake.root)
    sec.prune(table, NEVER).to_arrow()
    for settings in (
        {"session_time_zone": "Asia/Tokyo"},
        {"ansi": False},
        {"use_index": False},
        {"use_verdicts": False},
    ):
        in_another_process()
        assert survivors(table, NEVER, **settings) == BLOCKS
    in_another_process()
    assert survivors(table, NEVER) == 0


def test_c51_a_column_of_another_type_is_another(tmp_path: Path, kept: Path) -> None:
    """The text of the condition is the same, and the file too, but the schema that is declared reads it otherwise."""
    write_file(tmp_path / "t" / "a.parquet", {"i": pa.array([1, 5, 9], pa.int32())})
    narrow, wide = (
        sec.open_table(tmp_path / "t", schema=pa.schema([("i", type_)])) for type_ in (pa.int32(), pa.int64())
    )
    sec.prune(narrow, NEVER).count()
    in_another_process()
    assert survivors(wide, NEVER) == 1
    in_another_process()
    assert survivors(narrow, NEVER) == 0


def test_c51_a_column_by_the_name_of_another(kept: Path, catalog: Catalog) -> None:
    """With field ids: the text of the condition is the same, and so are the types, the files and the snapshot."""
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    made = catalog.create_table("db.t", schema)
    made.append(pa.table([[0, 2, 4], [0, 1, 4]], schema=schema))
    assert sec.prune(sec.open_table(catalog.load_table("db.t")), "a = 1").count() == 0
    in_another_process()
    assert survivors(sec.open_table(catalog.load_table("db.t")), "a = 1") == 0
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        with made.update_schema() as update:
            update.rename_column(old, new)
    in_another_process()
    table = sec.open_table(catalog.load_table("db.t"))
    assert sec.prune(table, "a = 1").count() == 1
    assert sec.prune(table, "b = 1").count() == 0


def test_c53_a_name_that_is_used_again(lake: Lake, kept: Path) -> None:
    """A file of the same name, size and time is another."""
    table, path = sec.open_table(lake.root), lake.root / "0.parquet"
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    forty = lake.files["0.parquet"].set_column(1, "i", pa.array([40] * 24))
    write_file(path, forty, **plain)
    sec.prune(table, "i = 77").to_arrow()
    size, then = path.stat().st_size, path.stat().st_mtime_ns
    write_file(path, forty.set_column(1, "i", pa.array([77] * 24)), **plain)
    os.utime(path, ns=(then, then))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (size, then)
    in_another_process()
    assert sec.prune(table, "i = 77").count() == 24


def test_c53_a_table_in_the_place_of_another(lake: Lake, kept: Path) -> None:
    table = sec.open_table(lake.root)
    sec.prune(table, "i = 9").to_arrow()
    shutil.rmtree(lake.root)
    for number in range(4):
        lake.write(f"{number}.parquet", 24, np.array([9, 20] * 12))
    in_another_process()
    assert ids(sec.prune(table, "i = 9").to_arrow(["rid"])) == lake.matching("i = 9") != []


def test_what_another_version_wrote_is_not_used(lake: Lake, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = sec.open_table(lake.root)
    sec.prune(table, NEVER).to_arrow()
    for name, value in (("SEMANTICS", 2), ("FORMAT", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(versions, name, value)
            in_another_process()
            assert survivors(table, NEVER) == BLOCKS
    with monkeypatch.context() as patch:
        patch.setattr(sec, "__version__", "0.0.9")
        in_another_process()
        assert survivors(table, NEVER) == BLOCKS
    in_another_process()
    assert survivors(table, NEVER) == 0


def test_what_rests_on_an_index_goes_with_it(tmp_path: Path, kept: Path) -> None:
    pages = {"write_page_index": True, "max_rows_per_page": 5, "write_batch_size": 1}
    root, sql = tmp_path / "t", "i IN (14, 16)"
    write_file(root / "a.parquet", {"i": [10, 11, 12, 13, 14, 15, 17, 18, 19, 20]}, **pages)
    index_here(sec.open_table(root), BuildOptions())
    lie_in_segment(root / "_secateur", "page/0", element(2, 0, 15))  # the lower bound of the first page
    assert sec.prune(sec.open_table(root), sql).count() == 0
    in_another_process()
    index_here(sec.open_table(root), BuildOptions())
    assert sec.prune(sec.open_table(root), sql).count() == 1


def test_what_an_audit_refutes_is_forgotten_everywhere(lake: Lake, kept: Path) -> None:
    """By processes that learned it before, too."""
    table, sql = sec.open_table(lake.root), "s = 'ab'"
    plan = sec.prune(table, sql)
    reader = plan._reader(())
    for file in plan.blocks_at(plan.order(), reader).by_file():  # a verdict that no read would leave
        assert reader.without_match is not None
        reader.without_match(file, 0, file.row_groups)
    sec.prune(table, NEVER).count()  # writes that, too
    in_another_process()
    assert survivors(table, sql) == 0
    elsewhere = dict(MEMORY._tables)
    in_another_process()
    with pytest.raises(AuditFailed):
        sec.prune(table, sql, audit=1.0)
    in_another_process()
    assert survivors(table, sql) > 0
    MEMORY._tables.update(elsewhere)
    assert ids(sec.prune(table, sql).to_arrow(["rid"])) == lake.matching(sql) != []


# ---- harm, bounds, cost


def cut(kept: Path) -> None:
    for path in entries(kept):
        path.write_bytes(path.read_bytes()[:-3])


def flipped(kept: Path) -> None:
    for path in entries(kept):
        data = path.read_bytes()
        path.write_bytes(data[:-2] + bytes([data[-2] ^ 4]) + data[-1:])


def swapped(kept: Path) -> None:
    one, other = entries(kept)
    one_data, other_data = one.read_bytes(), other.read_bytes()
    one.write_bytes(other_data)
    other.write_bytes(one_data)


def foreign(kept: Path) -> None:
    for path in entries(kept):
        path.write_bytes(b"not ours" * 100)


def gone(kept: Path) -> None:
    shutil.rmtree(kept)


def a_file(kept: Path) -> None:
    shutil.rmtree(kept)
    kept.write_text("a file")


@pytest.mark.parametrize("harm_done", [cut, flipped, swapped, foreign, gone, a_file])
def test_harm_costs_time_alone(lake: Lake, kept: Path, harm_done: Callable[[Path], None]) -> None:
    table = sec.open_table(lake.root)
    sec.prune(table, NEVER).to_arrow()
    harm_done(kept)
    in_another_process()
    assert survivors(table, NEVER) == BLOCKS
    assert sec.prune(table, NEVER).to_arrow().num_rows == 0
    if harm_done is not a_file:
        in_another_process()
        assert survivors(table, NEVER) == 0, "it is written again"


@pytest.mark.parametrize(
    "value",
    [b"", b"[]", b"{", b'{"conditions": [1]}', b'{"conditions": 7}', b'{"conditions": [{"sql": 3}]}', b"[" * 10_000],
)
def test_sound_checksums_of_something_else(lake: Lake, kept: Path, value: bytes) -> None:
    table = sec.open_table(lake.root)
    files = VerdictFiles(str(kept), 1 << 20)
    files.cache.keep(verdict_files._key("conditions", table.location), value)
    assert sec.prune(table, NEVER).to_arrow().num_rows == 0
    in_another_process()
    assert survivors(table, NEVER) == 0


@examples(30)
@given(data=st.data())
def test_blocks_of_any_bytes_are_blocks_or_none(data: st.DataObject) -> None:
    places = np.array([0, 3, (1 << 32) + 1])
    sound = verdict_files._encoded(verdict_files.FoundBlocks((("a", 1, 2, 3), ("é", 4, 5, 6)), places))
    whole = verdict_files._blocks(sound)
    assert (whole.files, whole.places.tolist()) == ((("a", 1, 2, 3), ("é", 4, 5, 6)), places.tolist())
    wrong = bytearray(sound)
    for _ in range(data.draw(st.integers(1, 3))):
        wrong[data.draw(st.integers(0, len(wrong) - 1))] = data.draw(st.integers(0, 255))
    files = VerdictFiles("unused", 1 << 20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.cache, "find", lambda key: bytes(wrong[: data.draw(st.integers(0, len(wrong)))]))
        blocks = files.blocks("t", conditions.KeptCondition("i = 1", "", (), (), "UTC", True, None))
    assert blocks is None or not len(blocks.places) or int(blocks.places[-1]) >> 32 < len(blocks.files)


def test_a_directory_that_cannot_be_written(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "file" / "below"))
    table = sec.open_table(lake.root)
    assert sec.prune(table, NEVER).to_arrow().num_rows == 0
    assert survivors(table, NEVER) == 0, "in memory it is known"
    in_another_process()
    assert survivors(table, NEVER) == BLOCKS


def test_it_is_bounded(lake: Lake, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BYTES_VARIABLE, "128 kB")
    table = sec.open_table(lake.root)
    for rest in range(61, 91):
        sec.prune(table, f"i IN (11, {rest})").to_arrow()
        assert sum(-(-path.stat().st_size // 4096) * 4096 for path in entries(kept)) <= 128_000
    in_another_process()
    assert survivors(table, "i IN (11, 90)") == 0
    monkeypatch.setenv(BYTES_VARIABLE, "0")
    assert survivors(table, "i IN (11, 90)") == BLOCKS


def test_what_is_not_known_of_costs_one_look_up(lake: Lake, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one file the start, for a predicate that no condition tells of, once the conditions have been seen."""
    table = sec.open_table(lake.root)
    sec.prune(table, NEVER).to_arrow()
    in_another_process()
    survivors(table, "n = 5")
    opened, entries_read, os_open = [], [], os.open

    def seeing(path: str, *arguments: int) -> int:
        opened.extend([path] if str(kept) in str(path) else [])
        return os_open(path, *arguments)

    monkeypatch.setattr("secateur.io.storage.disk_cache.read_entry", entries_read.append)
    monkeypatch.setattr(os, "open", seeing)
    assert survivors(table, "n = 5") > 0
    assert (len(opened), entries_read) == (1, [])


def test_nothing_is_written_without_a_directory(lake: Lake, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    sec.prune(sec.open_table(lake.root), NEVER).to_arrow()
    assert sorted(tmp_path.rglob("*")) == before
