"""A watcher refreshes what has changed, tells what fails, and goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import secateur as sec
from secateur.cli import main
from secateur.errors import IndexMissing, InvalidOption
from secateur.maintain import watch as watching
from secateur.maintain.watch import Look, line_of
from tests.support.formats.delta_tables import LoggedTable, numbered
from tests.support.formats.iceberg_rows import SCHEMA, rows
from tests.support.formats.iceberg_tables import catalog_in
from tests.support.profiles import takes_seconds
from tests.support.tables import write_file


def append(root: Path, i: int) -> None:
    write_file(root / f"{i}.parquet", pa.table({"id": range(i * 10, i * 10 + 10)}), row_group_size=5)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    root = tmp_path / "lake"
    root.mkdir()
    append(root, 0)
    sec.build_index(str(root), bloom=["id"])
    return root


def looks(*tables: object, interval: float = 0.05) -> Iterator[Look]:
    """What a watcher yields, for a minute at most: a test that waits in vain fails."""
    stop = threading.Event()
    timer = threading.Timer(60, stop.set)
    timer.daemon = True
    timer.start()
    return sec.watch(*tables, interval=interval, stop=stop)  # type: ignore[arg-type]


def test_what_changes_is_refreshed(lake: Path) -> None:
    seen = looks(str(lake))
    for i in (1, 2, 3):
        append(lake, i)
        look = next(seen)
        assert look.refreshed is not None
        assert (look.refreshed.files_added, look.error) == (1, None)
        assert look.refreshed.index.files == i + 1
        assert "1 new file" in line_of(look)
    write_file(lake / "1.parquet", pa.table({"id": range(70, 77)}))
    look = next(seen)
    assert look.refreshed is not None and look.refreshed.files_changed == 1
    assert sec.prune(str(lake), "id >= 70", strict=True).count() == 7


def test_what_has_not_changed_is_not_yielded(lake: Path) -> None:
    stop = threading.Event()
    threading.Timer(0.4, stop.set).start()
    assert list(sec.watch(str(lake), interval=0.02, stop=stop)) == []
    assert sec.describe_index(str(lake)).number == 1


def test_once_tells_of_every_table(lake: Path, tmp_path: Path) -> None:
    append(lake, 1)
    changed, same = sec.watch(str(lake), str(lake), once=True)
    assert changed.refreshed is not None and changed.refreshed.files_added == 1
    assert same.is_unchanged
    assert (changed.next_seconds, same.error) == (None, None)
    (failed,) = sec.watch(str(tmp_path / "nowhere"), once=True)
    assert isinstance(failed.error, sec.SecateurError)
    assert str(tmp_path / "nowhere") in line_of(failed)


def test_what_fails_is_told_and_tried_again_later_and_later(tmp_path: Path) -> None:
    """A table without an index, until somebody builds one; another table goes on meanwhile."""
    bare, other = tmp_path / "bare", tmp_path / "other"
    for root in (bare, other):
        root.mkdir()
        append(root, 0)
    sec.build_index(str(other))
    seen = looks(str(bare), str(other))
    waits = []
    while len(waits) < 3:
        look = next(seen)
        assert isinstance(look.error, IndexMissing)
        assert "tried again in" in line_of(look)
        assert look.next_seconds is not None
        waits.append(look.next_seconds)
    assert waits[0] < 1.5 * waits[0] < waits[1] < 1.5 * waits[1] < waits[2]
    append(other, 1)
    refreshed = next(look for look in seen if look.error is None)
    assert refreshed.table == str(other)
    sec.build_index(str(bare))
    append(bare, 1)
    recovered = next(look for look in seen if look.error is None)
    assert recovered.refreshed is not None
    assert (recovered.table, recovered.refreshed.files_added) == (str(bare), 1)


def test_a_defect_does_not_end_the_loop(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a defect")

    with monkeypatch.context() as patched:
        patched.setattr(watching, "refresh_index", fails)
        seen = looks(str(lake))
        assert isinstance(next(seen).error, ZeroDivisionError)
    append(lake, 1)
    look = next(seen)
    assert look.refreshed is not None and look.refreshed.files_added == 1


def test_a_table_of_delta_is_watched_by_its_version(tmp_path: Path) -> None:
    made = LoggedTable(tmp_path, numbered(0, 1).schema)
    made.append(numbered(0, 10))
    sec.build_index(str(tmp_path))
    seen = looks(str(tmp_path))
    made.append(numbered(10, 20))
    look = next(seen)
    assert look.refreshed is not None and look.refreshed.files_added == 1


def test_a_table_of_iceberg_is_watched_by_its_snapshot(tmp_path: Path) -> None:
    table = catalog_in(tmp_path).create_table("db.t", SCHEMA)
    table.append(rows(1, 2))
    opened = sec.open_table(table)
    sec.build_index(opened)
    seen = looks(opened)
    table.append(rows(3))
    look = next(seen)
    assert look.refreshed is not None and look.refreshed.files_added == 1
    assert look.refreshed.index.table_snapshot == table.current_snapshot().snapshot_id


def test_what_makes_no_sense_is_refused() -> None:
    for wrong in ({"interval": 0}, {"interval": float("nan")}):
        with pytest.raises(InvalidOption, match="interval"):
            sec.watch("lake", **wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="no table"):
        sec.watch()


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_command_once(lake: Path, tmp_path: Path) -> None:
    append(lake, 1)
    done = CliRunner().invoke(main, ["watch", str(lake), "--once", "--json"])
    assert done.exit_code == 0
    told_as_json = json.loads(done.stdout)
    assert (told_as_json["files_added"], told_as_json["files"], told_as_json["error"]) == (1, 2, None)
    again = CliRunner().invoke(main, ["watch", str(lake), "--once"])
    assert (again.exit_code, "up to date" in again.stdout) == (0, True)
    failed = CliRunner().invoke(main, ["watch", str(tmp_path / "nowhere"), str(lake), "--once"])
    assert failed.exit_code == 2
    assert "failed" in failed.stderr
    assert str(lake) in failed.stdout


@takes_seconds
@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGTERM])
def test_the_command_ends_cleanly(lake: Path, ended_by: signal.Signals) -> None:
    command = [sys.executable, "-m", "secateur", "watch", str(lake), "--interval", "0.1", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    append(lake, 1)
    assert json.loads(process.stdout.readline())["files"] == 2
    append(lake, 2)
    assert json.loads(process.stdout.readline())["files"] == 3
    time.sleep(0.05)
    process.send_signal(ended_by)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "ended\n")
    assert sec.verify_index(str(lake)).sound
