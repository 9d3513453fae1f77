"""Answers that are kept on local disk are those of the table as it is now, whatever changes between two asks."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from conformance.delta_log import inline_vector
from secateur.errors import AuditFailed, StalePlan, UnknownColumn, UnsupportedPredicate
from secateur.index.model import BuildOptions
from secateur.io.scan.kept import answers, versions
from secateur.io.scan.kept.answers import BYTES_VARIABLE, DIRECTORY_VARIABLE
from secateur.io.scan.reading.block_reader import BlockReader
from tests.support.drawn.row_histories import HISTORIES
from tests.support.formats.delta_tables import LoggedTable, numbered
from tests.support.formats.iceberg_deletes import delete_positions
from tests.support.profiles import by_profile, examples, takes_seconds
from tests.support.small_lake import (
    STEPS,
    Lake,
    Step,
    ask_between_changes,
    asked,
    evens,
    ids,
    lake_of_chance,
    lake_of_evens,
)
from tests.support.stores.local_build import index_here
from tests.support.stores.lying_index import element, lie_in_segment
from tests.support.tables import write_file

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

SOME = "i % 7 = 4"  # which bounds cannot tell
MOST = "10 MB"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for answers."""
    monkeypatch.setenv(BYTES_VARIABLE, MOST)
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "kept"))
    return tmp_path / "kept"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_of_evens(tmp_path / "lake")


def entries(kept: Path) -> list[Path]:
    return sorted(kept.glob("??/*.entry"))


@contextmanager
def nothing_read() -> Iterator[None]:
    """Whoever reads a row group fails."""

    def refuse(*arguments: object) -> None:
        raise AssertionError("a row group is read")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BlockReader, "_opened", refuse)
        yield


@contextmanager
def kept_in(directory: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(BYTES_VARIABLE, MOST)
        patch.setenv(DIRECTORY_VARIABLE, directory)
        yield


@pytest.mark.usefixtures("remembering")
@examples(50, shrink=False)
@given(seed=st.integers(0, 2**32 - 1), steps=st.lists(STEPS, min_size=3, max_size=9))
def test_answers_are_those_of_a_plain_evaluation(seed: int, steps: list[Step]) -> None:
    """C51, C52, C53: predicates are asked again in all ways, between changes of the files."""
    with tempfile.TemporaryDirectory() as root, kept_in(f"{root}/kept"):
        ask_between_changes(lake_of_chance(Path(root) / "lake", seed), steps, repeated=3)


@takes_seconds
@pytest.mark.parametrize("seed", by_profile(quick=range(2), full=range(20), nightly=range(200), fast=range(1)))
@pytest.mark.parametrize("kind", HISTORIES)
def test_tables_with_deletes_and_snapshots(tmp_path: Path, kept: Path, kind: str, seed: int) -> None:
    """C53: deletes by files and vectors change no data file, and older snapshots are asked between."""
    draw = random.Random(seed)
    history = HISTORIES[kind](tmp_path, draw)
    predicates = {"rid % 5 = 4": 4, "rid % 5 = 2 AND rid >= 0": 2}
    for _ in range(8):
        history.step()
        for table, rids in history.now_and_before(kind):
            for sql, rest in predicates.items():
                expected = [rid for rid in rids if rid % 5 == rest]
                for way in ("arrow", "count", "arrow"):
                    asked(table, sql, way, expected, (history.log, sql, way))
    assert entries(kept)


FOURS = "rid % 5 = 4"


def test_c53_a_deletion_vector_and_another_of_the_same_version(tmp_path: Path, kept: Path) -> None:
    """Deletes leave the file as it was; a log that was restored from a copy numbers its versions again."""
    table = LoggedTable(tmp_path / "t", numbered(0, 1).schema)
    (add,) = table.append(numbered(0, 20))
    latest = tmp_path / "t" / "_delta_log" / f"{2:020}.json"

    def answers_now() -> list[int]:
        opened = sec.open_table(tmp_path / "t")
        rows = ids(sec.prune(opened, FOURS).to_arrow(["rid"]))
        assert sec.prune(opened, FOURS).count() == len(rows)
        return rows

    assert answers_now() == [4, 9, 14, 19]
    for gone in ([4], [9], [14]):
        table.delete(add, inline_vector(gone))
        assert answers_now() == [rid for rid in (4, 9, 14, 19) if rid not in gone]
        with nothing_read():
            answers_now()
        latest.unlink()
        table.log.version = 1
    assert answers_now() == [4, 9, 14, 19]


def test_c53_position_deletes(tmp_path: Path, kept: Path, catalog: Catalog) -> None:
    made = catalog.create_table("db.t", numbered(0, 1).schema)
    made.append(numbered(0, 20))
    (path,) = (task.file.file_path for task in made.scan().plan_files())
    for gone in ([], [4], [4, 14]):
        if gone:
            delete_positions(made, path, gone[-1:])
        table = sec.open_table(catalog.load_table("db.t"))
        rest = [rid for rid in (4, 9, 14, 19) if rid not in gone]
        assert ids(sec.prune(table, FOURS).to_arrow(["rid"])) == rest
        with nothing_read():
            assert ids(sec.prune(table, FOURS).to_arrow(["rid"])) == rest
        assert sec.prune(table, FOURS).count() == len(rest)


def test_c53_columns_that_swap_their_names(kept: Path, catalog: Catalog) -> None:
    """Which is a change of metadata alone: neither files nor the snapshot are others."""
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    made = catalog.create_table("db.t", schema)
    made.append(pa.table([list(range(20)), list(range(100, 120))], schema=schema))
    for _ in range(2):
        table = sec.open_table(catalog.load_table("db.t"))
        first = sec.prune(table, "a % 10 = 3").to_arrow(["a"])["a"].to_pylist()
        assert first == [3, 13] if made.schema().find_field(1).name == "a" else first == [103, 113]
        for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
            with made.update_schema() as update:
                update.rename_column(old, new)


# ---- what is kept


@pytest.mark.parametrize("settings", [{}, {"limit": 3}, {"order_by": "rid DESC", "limit": 3}, {"ansi": False}])
def test_the_same_again_reads_nothing(lake: Lake, kept: Path, settings: dict[str, object]) -> None:
    table = sec.open_table(lake.root)
    first = sec.prune(table, SOME, **settings)  # type: ignore[arg-type]
    rows, count = first.to_arrow(["rid", "s"]), first.count()
    assert rows.num_rows == count > 0
    with nothing_read():
        again = sec.prune(sec.open_table(lake.root), SOME, **settings)  # type: ignore[arg-type]
        assert again.to_arrow(["rid", "s"]).equals(rows)
        assert again.to_arrow(["rid", "s"]).schema == rows.schema
        assert again.count() == count
        assert again.to_pandas is not None
        for other in (["s", "rid"], ["rid"], None):
            with pytest.raises(AssertionError, match="is read"):
                again.to_arrow(other)
        with pytest.raises(UnknownColumn):
            again.to_arrow(["nothing"])


def test_every_part_of_the_question_counts(lake: Lake, kept: Path) -> None:
    """C51: limit, order, zone, ANSI mode, the literals; and of `since` the files."""
    table = sec.open_table(lake.root)
    index_here(table, BuildOptions())
    sec.prune(table, SOME).to_arrow()
    since = sec.prune(table, SOME).snapshot
    with nothing_read():
        sec.prune(table, SOME).to_arrow()
        for settings in (
            {"limit": 3},
            {"limit": 3, "order_by": "rid"},
            {"session_time_zone": "Asia/Tokyo"},
            {"ansi": False},
            {"use_index": False},
            {"use_verdicts": False},
            {"audit": 1.0},
        ):
            plan = sec.prune(table, SOME, **settings)  # type: ignore[arg-type]
            if "audit" in settings:
                continue
            with pytest.raises(AssertionError, match="is read"):
                plan.to_arrow()
        with pytest.raises(AssertionError, match="is read"):
            sec.prune(table, "i % 7 = 3").to_arrow()
    lake.write("new.parquet", 24, evens(lake.rng))
    assert ids(sec.prune(table, SOME).to_arrow(["rid"])) == lake.matching(SOME)
    new = lake.files["new.parquet"]["rid"].to_pylist()
    assert ids(sec.prune(table, SOME, since=since).to_arrow()) == [rid for rid in lake.matching(SOME) if rid in new]


def test_c52_a_part_of_a_plan_is_another_question(lake: Lake, kept: Path) -> None:
    plan = sec.prune(sec.open_table(lake.root), SOME)
    whole, part = plan.count(), plan.part(np.array([0]))
    assert plan.to_arrow().num_rows == whole > part.count() == part.to_arrow().num_rows


def test_literals_in_a_zone(tmp_path: Path, kept: Path) -> None:
    """C51: a text of a time is another time in another session."""
    hours = pa.array([0, 3_600_000_000 * 5, 3_600_000_000 * 12], pa.timestamp("us", "UTC"))
    write_file(tmp_path / "t" / "a.parquet", {"ts": hours})
    table, sql = sec.open_table(tmp_path / "t"), "ts < TIMESTAMP '1970-01-01 06:00:00' AND ts IS NOT NULL"
    counts = [sec.prune(table, sql, session_time_zone=zone).count() for zone in ("UTC", "Asia/Tokyo", "UTC") * 2]
    assert counts == [2, 0, 2] * 2


@pytest.mark.parametrize("step", ["append", "rewrite", "delete"])
def test_a_table_that_changed_is_read(lake: Lake, kept: Path, step: str) -> None:
    table = sec.open_table(lake.root)
    for _ in range(4):
        assert ids(sec.prune(table, SOME).to_arrow(["rid"])) == lake.matching(SOME)
        assert sec.prune(table, SOME).count() == len(lake.matching(SOME))
        lake.step(step, table)


def test_c53_a_file_of_the_same_name_size_and_time(lake: Lake, kept: Path) -> None:
    table, path = sec.open_table(lake.root), lake.root / "0.parquet"
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    write_file(path, lake.files["0.parquet"].set_column(1, "i", pa.array([40] * 24)), **plain)
    assert sec.prune(table, "i = 77").count() == 0
    size, then = path.stat().st_size, path.stat().st_mtime_ns
    write_file(path, lake.files["0.parquet"].set_column(1, "i", pa.array([77] * 24)), **plain)
    os.utime(path, ns=(then, then))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (size, then)
    assert sec.prune(table, "i = 77").count() == 24
    assert sec.prune(table, "i = 77").to_arrow().num_rows == 24


def test_the_time_and_chance_are_not_kept(tmp_path: Path, kept: Path) -> None:
    write_file(tmp_path / "t" / "a.parquet", {"i": list(range(10)), "d": pa.array([0] * 9 + [99999], pa.date32())})
    table = sec.open_table(tmp_path / "t")
    for sql in ("d < current_date() AND i % 2 = 1", "rand() < 0.5", "i > 3 AND d < date(now())"):
        with pytest.raises(UnsupportedPredicate):
            sec.prune(table, sql).to_arrow()
    assert sec.prune(table, "rand() < 0.5 AND i = 99").to_arrow().num_rows == 0
    assert sec.prune(table, "i > 3", keys=[5, 6], on="i").to_arrow().num_rows == 2
    assert entries(kept) == []


def test_what_failed_or_was_cancelled_is_not_kept(lake: Lake, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = sec.open_table(lake.root, freshness=60)
    plan = sec.prune(table, SOME)
    lake.write("0.parquet", 24, evens(lake.rng))
    with pytest.raises(StalePlan):
        plan.to_arrow()
    with pytest.raises(StalePlan):
        plan.count()

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(BlockReader, "_opened", interrupt)
        with pytest.raises(KeyboardInterrupt):
            sec.prune(sec.open_table(lake.root), SOME).to_arrow()
    next(sec.prune(sec.open_table(lake.root), SOME).to_batches())
    assert entries(kept) == []


def test_what_rests_on_a_wrong_index_goes_with_it(tmp_path: Path, kept: Path) -> None:
    pages = {"write_page_index": True, "max_rows_per_page": 5, "write_batch_size": 1}
    root, sql = tmp_path / "t", "i IN (14, 17)"
    write_file(root / "a.parquet", {"i": [10, 11, 12, 13, 14, 15, 17, 18, 19, 20]}, **pages)
    index_here(sec.open_table(root), BuildOptions())
    lie_in_segment(root / "_secateur", "page/0", element(2, 0, 15))  # the lower bound of the first page
    assert sec.prune(sec.open_table(root), sql).count() == 1
    with pytest.raises(AuditFailed):
        sec.prune(sec.open_table(root), sql, audit=1.0)
    assert entries(kept) == []
    assert sec.prune(sec.open_table(root), sql).count() == 1
    sec.drop_index(sec.open_table(root))
    assert sec.prune(sec.open_table(root), sql).count() == 2
    index_here(sec.open_table(root), BuildOptions())
    assert sec.prune(sec.open_table(root), sql).count() == 2


@pytest.mark.parametrize("names", [("SEMANTICS",), ("FORMAT",)])
def test_what_another_version_wrote_is_not_used(
    lake: Lake, kept: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str]
) -> None:
    table = sec.open_table(lake.root)
    sec.prune(table, SOME).to_arrow()
    monkeypatch.setattr(versions, names[0], 99)
    with nothing_read(), pytest.raises(AssertionError, match="is read"):
        sec.prune(table, SOME).to_arrow()


# ---- harm, bounds


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def flipped(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:50] + bytes([data[50] ^ 4]) + data[51:])


def foreign(path: Path) -> None:
    path.write_bytes(b"not ours" * 100)


def a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("harm", [cut, flipped, foreign, a_directory, Path.unlink])
def test_harm_costs_time_alone(lake: Lake, kept: Path, harm: Callable[[Path], None]) -> None:
    table = sec.open_table(lake.root)
    sec.prune(table, SOME).count()
    rows = sec.prune(table, SOME).to_arrow()
    for path in entries(kept):
        harm(path)
    assert sec.prune(table, SOME).to_arrow().equals(rows)
    assert sec.prune(table, SOME).count() == rows.num_rows


@pytest.mark.parametrize("value", [b"", b"1234567", b"\xff" * 60, pa.table({"x": [1]}).to_batches()[0].serialize()])
def test_sound_checksums_of_something_else(lake: Lake, kept: Path, value: object) -> None:
    table = sec.open_table(lake.root)
    plan = sec.prune(table, SOME)
    rows, count = plan.to_arrow(), plan.count()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("secateur.io.storage.disk_cache.read_entry", lambda name: bytes(memoryview(value)))  # type: ignore[call-overload]
        assert plan.to_arrow().equals(rows)
        assert plan.count() == count


def test_a_directory_that_cannot_be_written(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(BYTES_VARIABLE, MOST)
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "file" / "below"))
    table = sec.open_table(lake.root)
    for _ in range(2):
        assert ids(sec.prune(table, SOME).to_arrow(["rid"])) == lake.matching(SOME)


def test_large_answers_are_not_kept_and_all_are_bounded(
    lake: Lake, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BYTES_VARIABLE, "64 kB")
    table = sec.open_table(lake.root)
    lake.write("large.parquet", 900)
    sec.prune(table, "i >= 0").to_arrow()
    assert entries(kept) == []
    for number in range(24):
        sec.prune(table, f"rid % 97 = {number}").to_arrow()
        assert sum(-(-path.stat().st_size // 4096) * 4096 for path in entries(kept)) <= 64_000
    with nothing_read():
        sec.prune(table, "rid % 97 = 23").to_arrow()


def test_nothing_is_kept_unless_asked_for(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECATEUR_CACHE_DIR", str(tmp_path / "cache"))
    for setting in ("", "0"):
        monkeypatch.setenv(BYTES_VARIABLE, setting)
        sec.prune(sec.open_table(lake.root), SOME).to_arrow()
        assert not (tmp_path / "cache").exists()
    monkeypatch.setenv(BYTES_VARIABLE, MOST)
    sec.prune(sec.open_table(lake.root), SOME).to_arrow()
    assert len(entries(tmp_path / "cache" / "answers")) == 1
    assert (tmp_path / "cache" / "answers").stat().st_mode & 0o77 == 0
    monkeypatch.setenv(BYTES_VARIABLE, "many")
    with pytest.raises(ValueError, match=BYTES_VARIABLE):
        sec.prune(sec.open_table(lake.root), SOME).to_arrow()
    answers._cache_in.cache_clear()
