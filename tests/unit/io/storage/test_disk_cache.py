"""The disk cache gives right bytes or none, keeps its bound, and never lets its own trouble through."""

from __future__ import annotations

import errno
import logging
import os
import pickle
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.io.storage.disk_cache import DiskCache, default_disk_cache, parse_bytes
from secateur.io.storage.disk_cache_eviction import occupied_bytes
from tests.support.profiles import examples
from tests.support.programs import disk_cache_work
from tests.support.programs.disk_cache_work import hammer, value_of

MB = 1_000_000
UNIT = 4096  # what the smallest entry occupies
KEY = "s3://user:secret@bucket/table/_index/segment-7@4096+65536"


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache", MB)


def not_loaded() -> bytes:
    raise AssertionError("loaded what was to be in the cache")


def is_hit(cache: DiskCache, key: str) -> bool:
    """Whether a key is in the cache, which is not changed otherwise."""
    try:
        cache.get(key, not_loaded)
    except AssertionError:
        return False
    return True


def files(cache: DiskCache) -> list[Path]:
    """Entries, and what is being written."""
    return sorted(path for path in cache.directory.glob("??/*") if path.is_file())


def entry_path(cache: DiskCache, key: str, value: bytes) -> Path:
    """The file of a key that is put into an empty cache."""
    cache.get(key, lambda: value)
    (path,) = files(cache)
    return path


def occupied(cache: DiskCache) -> int:
    return sum(-(-path.stat().st_size // UNIT) * UNIT for path in files(cache))


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


@contextmanager
def listings(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The directories listed meanwhile."""
    seen: list[str] = []
    scandir = os.scandir

    def seeing(path: str) -> Iterator[os.DirEntry[str]]:
        seen.append(path)
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", seeing)
        yield seen


# --- what is kept


def test_a_value_is_loaded_once(cache: DiskCache) -> None:
    assert cache.get(KEY, lambda: b"abc") == b"abc"
    assert cache.get(KEY, not_loaded) == b"abc"
    assert DiskCache(cache.directory, MB).get(KEY, not_loaded) == b"abc"  # as another process would
    counters = cache.counters
    assert (counters.hits, counters.misses, counters.bytes_read, counters.bytes_written) == (1, 1, 3, 3)


def test_finding_and_keeping_are_apart(cache: DiskCache) -> None:
    assert cache.find(KEY) is None
    cache.keep(KEY, b"abc")
    assert cache.find(KEY) == b"abc"
    assert cache.find(KEY + "2") is None


def test_the_state_of_a_key_tells_another_value(cache: DiskCache) -> None:
    states = [cache.state(KEY)]
    for value in (b"abc", b"abd", b"abcd"):
        cache.keep(KEY, value)
        states.append(cache.state(KEY))
        assert cache.find(KEY) == value
        assert cache.state(KEY) == states[-1]
    assert DiskCache(cache.directory, MB).state(KEY) == states[-1]
    files(cache)[0].write_bytes(b"cut")
    assert cache.state(KEY) is None
    cache.clear()
    assert states[0] is cache.state(KEY) is None
    assert len(set(states)) == 4


def test_errors_of_load_pass_through_and_nothing_is_kept(cache: DiskCache) -> None:
    def fail() -> bytes:
        raise OSError(errno.ENOSPC, "mine")

    with pytest.raises(OSError, match="mine"):
        cache.get(KEY, fail)
    assert not is_hit(cache, KEY)


@examples(50)
@given(st.dictionaries(st.text(), st.binary(max_size=9000), max_size=8), st.data())
def test_it_is_a_mapping(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, bytes], data: st.DataObject
) -> None:
    """A cache too small for the values still answers right."""
    cache = DiskCache(tmp_path_factory.mktemp("cache"), data.draw(st.sampled_from([0, UNIT, 5 * UNIT, MB])))
    keys = data.draw(st.lists(st.sampled_from(sorted(values)), max_size=30)) if values else []
    for key in keys:
        assert cache.get(key, lambda key=key: values[key]) == values[key]
    assert all(cache.find(key) in (None, values[key]) for key in keys)
    assert occupied(cache) <= cache.most_bytes
    if cache.most_bytes == MB:
        assert cache.counters.misses == len(set(keys))


@pytest.mark.parametrize("key", ["", "\0", "../../etc", "a/b", "\udcff", "x" * 100_000])
def test_any_text_is_a_key(cache: DiskCache, key: str) -> None:
    assert cache.get(key, lambda: b"abc") == b"abc"
    assert cache.get(key, not_loaded) == b"abc"
    assert len(files(cache)) == 1


def test_no_text_of_keys_and_no_one_else_may_read(cache: DiskCache) -> None:
    path = entry_path(cache, KEY, b"value")
    assert b"secret" not in path.read_bytes()
    assert not any("secret" in str(path) for path in cache.directory.rglob("*"))
    assert stat.S_IMODE(cache.directory.stat().st_mode) == 0o700


def test_it_pickles_as_its_settings(cache: DiskCache) -> None:
    cache.get(KEY, lambda: b"abc")
    other = pickle.loads(pickle.dumps(cache))
    assert (other.directory, other.most_bytes, other.counters.misses) == (cache.directory, MB, 0)
    assert other.get(KEY, not_loaded) == b"abc"


# --- wrong bytes


@examples(10)
@given(value=st.binary(max_size=100), mask=st.integers(1, 255))
def test_every_flip_and_every_length_is_a_miss(
    tmp_path_factory: pytest.TempPathFactory, value: bytes, mask: int
) -> None:
    cache = DiskCache(tmp_path_factory.mktemp("cache"), MB)
    path = entry_path(cache, KEY, value)
    whole = path.read_bytes()
    flipped = [whole[:i] + bytes([whole[i] ^ mask]) + whole[i + 1 :] for i in range(len(whole))]
    for wrong in [*flipped, *(whole[:n] for n in range(len(whole))), whole + b"\0", whole + whole]:
        path.write_bytes(wrong)
        assert not is_hit(cache, KEY), wrong
    assert cache.get(KEY, lambda: value) == value  # and it is mended
    assert cache.get(KEY, not_loaded) == value
    assert path.read_bytes() == whole


def test_an_entry_of_another_key_is_a_miss(cache: DiskCache) -> None:
    path = entry_path(cache, "a", b"of a")
    other = DiskCache(cache.directory.parent / "other", MB)
    entry_path(other, "b", b"of b").write_bytes(path.read_bytes())
    assert not is_hit(other, "b")


# --- the bound


def fill(cache: DiskCache, keys: range, length: int = 3000) -> None:
    for i in keys:
        cache.get(str(i), lambda i=i: i.to_bytes(4) * (length // 4))


def test_the_least_recently_used_go_first_down_to_the_low_water(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 80 * UNIT)
    for i in range(80):
        before = set(files(cache))
        fill(cache, range(i, i + 1))
        (new,) = set(files(cache)) - before
        age(new, 10_000 - 100 * i)
    assert cache.counters.evictions == 0
    assert occupied(cache) == 80 * UNIT
    assert is_hit(cache, "3")  # now the most recently used
    fill(cache, range(80, 81))
    assert cache.counters.evictions == 11
    assert occupied(cache) == occupied_bytes(str(tmp_path)) == 70 * UNIT
    assert [i for i in range(81) if not is_hit(cache, str(i))] == [0, 1, 2, *range(4, 12)]


def test_a_value_too_large_evicts_nothing(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 80 * UNIT)
    fill(cache, range(70))
    large = bytes(71 * UNIT)
    assert cache.get(KEY, lambda: large) == large
    assert not is_hit(cache, KEY)
    assert cache.counters.evictions == 0


def test_hits_seldom_write(cache: DiskCache) -> None:
    path = entry_path(cache, KEY, b"abc")
    age(path, 30)
    before = path.stat().st_mtime_ns
    assert is_hit(cache, KEY)
    assert path.stat().st_mtime_ns == before
    age(path, -9999)  # a clock that was wrong
    assert is_hit(cache, KEY)
    assert abs(path.stat().st_mtime - time.time()) < 60


@examples(30)
@given(
    lengths=st.lists(st.integers(0, 70_000), max_size=60),
    most_bytes=st.integers(0, 400_000),
    processes=st.integers(1, 3),
)
def test_the_bound_holds_after_every_put(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], most_bytes: int, processes: int
) -> None:
    root = tmp_path_factory.mktemp("cache")
    caches = [DiskCache(root, most_bytes) for _ in range(processes)]
    for i, length in enumerate(lengths):
        cache = caches[i % processes]
        cache.get(f"{i}", lambda length=length: bytes(length))
        assert occupied(cache) <= most_bytes
        assert occupied_bytes(str(root)) >= occupied(cache)
        assert is_hit(cache, f"{i}") or length > most_bytes * 7 // 8 - 4 * UNIT


def test_a_put_lists_nothing_until_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(DiskCache(tmp_path, 1000 * UNIT), range(1))  # the count begins with a listing
    with listings(monkeypatch) as seen:
        for first in range(1, 1000, 111):  # as several processes
            fill(DiskCache(tmp_path, 1000 * UNIT), range(first, first + 111))
        assert seen == []
        cache = DiskCache(tmp_path, 1000 * UNIT)
        fill(cache, range(1000, 1125))
    assert seen.count(str(tmp_path)) == 1
    assert cache.counters.evictions == 126


def test_a_lost_count_is_taken_anew(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 80 * UNIT)
    fill(cache, range(80))
    (tmp_path / "occupied").unlink()
    fill(cache, range(80, 81))
    assert occupied(cache) == occupied_bytes(str(tmp_path)) == 70 * UNIT
    (tmp_path / "occupied").write_bytes(bytes(1000))  # or is far too high
    fill(cache, range(81, 82))
    assert occupied(cache) == occupied_bytes(str(tmp_path)) == 71 * UNIT


def test_clear_removes_entries_and_nothing_else(cache: DiskCache, caplog: pytest.LogCaptureFixture) -> None:
    cache.clear()  # where there is no directory yet
    assert warnings(caplog) == []
    fill(cache, range(20))
    alien = cache.directory / "00" / "alien.entry"
    alien.parent.mkdir(exist_ok=True)
    alien.write_text("mine")
    cache.clear()
    assert files(cache) == [alien]
    assert occupied_bytes(str(cache.directory)) == 0
    fill(cache, range(20))
    assert cache.counters.misses == 40


def test_what_others_keep_meanwhile_stays_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, other = DiskCache(tmp_path, MB), DiskCache(tmp_path, MB)
    fill(cache, range(100))
    scandir, folders = os.scandir, len(list(tmp_path.glob("??")))
    calls = iter(range(999))

    def busy(path: str) -> Iterator[os.DirEntry[str]]:
        if next(calls) == folders:  # the last to be listed: the others are no longer looked into
            fill(other, range(100, 140))
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", busy)
        cache.clear()
    assert 20 * UNIT < occupied(cache) <= occupied_bytes(str(tmp_path)) == 40 * UNIT


def test_what_cannot_be_removed_is_not_added_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault that root cannot have otherwise: entries of another user in a sticky directory."""

    def refuse(path: str) -> None:
        raise PermissionError(errno.EPERM, "not yours", path)

    cache = DiskCache(tmp_path, 80 * UNIT)
    fill(cache, range(80))
    with listings(monkeypatch) as seen, monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refuse)
        fill(cache, range(80, 100))
    assert occupied(cache) == 80 * UNIT
    assert seen.count(str(tmp_path)) == 1


# --- threads, processes, crashes


def test_threads(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, MB)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda seed: hammer(cache, seed), range(8)))
    counters = cache.counters
    assert counters.hits and counters.misses and counters.evictions
    assert occupied(cache) <= MB + 8 * 5 * 64 * 1024  # and what the threads were writing
    assert not [path for path in files(cache) if path.suffix != ".entry"]


def work(what: str, cache: DiskCache, seed: int) -> subprocess.Popen[str]:
    root = Path(__file__).parents[4]
    command = [sys.executable, disk_cache_work.__file__, what, str(cache.directory), str(cache.most_bytes), str(seed)]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_processes(cache: DiskCache) -> None:
    workers = [work("hammer", cache, seed) for seed in range(4)]
    outputs = [worker.communicate()[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 4
    hits, evictions = zip(*(map(int, output.split()) for output in outputs), strict=True)
    assert all(hits) and any(evictions)
    assert not [path for path in files(cache) if path.suffix != ".entry"]
    assert occupied(cache) <= MB + 4 * 5 * 64 * 1024
    assert all(cache.get(f"key {i}", lambda i=i: value_of(f"key {i}")) == value_of(f"key {i}") for i in range(60))


def test_a_crash_leaves_only_a_file_aside_which_goes_once_it_is_old(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 80 * UNIT)
    assert work("die", cache, 0).wait() == -9
    (aside,) = files(cache)
    assert aside.suffix != ".entry"
    assert not is_hit(cache, "never")
    fill(cache, range(90))
    assert cache.counters.evictions and aside.exists()  # its writer may live
    assert occupied_bytes(str(tmp_path)) == occupied(cache) <= 80 * UNIT
    age(aside, 4000)
    fill(cache, range(100, 190))
    assert not aside.exists()


def test_a_reader_that_has_the_file_open_reads_it_whole(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.get(KEY, lambda: b"abc" * 1000)
    fstat = os.fstat

    def evicting_first(file: int) -> os.stat_result:
        monkeypatch.undo()
        DiskCache(cache.directory, MB).clear()
        return fstat(file)

    monkeypatch.setattr(os, "fstat", evicting_first)
    assert cache.get(KEY, not_loaded) == b"abc" * 1000
    assert not is_hit(cache, KEY)


def test_no_lock_is_held_while_loading(cache: DiskCache) -> None:
    both = threading.Barrier(2, timeout=20)

    def load() -> bytes:
        both.wait()
        return b"abc"

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(lambda _: cache.get(KEY, load), range(2))) == [b"abc"] * 2
    assert is_hit(cache, KEY)


# --- trouble


def file_as_root(cache: DiskCache) -> None:
    shutil.rmtree(cache.directory)
    cache.directory.write_text("a file")


def file_as_folder(cache: DiskCache) -> None:
    (path,) = files(cache)
    shutil.rmtree(path.parent)
    path.parent.write_text("a file")


def directory_as_entry(cache: DiskCache) -> None:
    (path,) = files(cache)
    path.unlink()
    path.mkdir()


def directory_as_count(cache: DiskCache) -> None:
    files(cache)[0].unlink()
    (cache.directory / "occupied").unlink()
    (cache.directory / "occupied").mkdir()


def link_in_a_circle(cache: DiskCache) -> None:
    shutil.rmtree(cache.directory)
    cache.directory.symlink_to(cache.directory)


REAL_TROUBLE = [file_as_root, file_as_folder, directory_as_entry, directory_as_count, link_in_a_circle]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


@pytest.mark.parametrize("trouble", REAL_TROUBLE)
def test_trouble_is_a_miss_and_said_once(
    cache: DiskCache, caplog: pytest.LogCaptureFixture, trouble: Callable[[DiskCache], None]
) -> None:
    entry_path(cache, KEY, b"old")
    trouble(cache)
    for value in (b"1", b"2", b"3"):
        assert cache.get(KEY, lambda value=value: value) == value
    cache.clear()
    said = warnings(caplog)
    assert 1 <= len(said) == len(set(said)) <= 3
    assert all(str(cache.directory) in text and "secret" not in text for text in said)


def test_a_pipe_in_place_of_an_entry_is_not_waited_for(cache: DiskCache) -> None:
    path = entry_path(cache, KEY, b"old")
    path.unlink()
    os.mkfifo(path)
    assert cache.get(KEY, lambda: b"new") == b"new"
    assert is_hit(cache, KEY)


def test_a_directory_that_may_not_be_entered(cache: DiskCache, caplog: pytest.LogCaptureFixture) -> None:
    entry_path(cache, KEY, b"old")
    cache.directory.chmod(0)
    user = os.geteuid()
    if user == 0:  # whom modes do not bind
        os.seteuid(65534)
    try:
        assert cache.get(KEY, lambda: b"new") == b"new"
        cache.clear()
    finally:
        os.seteuid(user)
        cache.directory.chmod(0o700)
    assert cache.get(KEY, not_loaded) == b"old"
    assert len(warnings(caplog)) == 3


def test_a_directory_that_vanishes_is_made_again(cache: DiskCache, caplog: pytest.LogCaptureFixture) -> None:
    entry_path(cache, KEY, b"old")
    shutil.rmtree(cache.directory)
    assert cache.get(KEY, lambda: b"new") == b"new"
    assert is_hit(cache, KEY)
    assert warnings(caplog) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("nth", range(3))  # the count, the header, the value
def test_a_full_disk(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int, nth: int
) -> None:
    cache.get("before", lambda: b"kept")
    write, calls = os.write, iter(range(99))

    def full(file: int, data: bytes) -> int:
        if next(calls) < nth:
            return write(file, data)
        write(file, data[: len(data) // 2])
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        assert cache.get(KEY, lambda: b"abc" * 100) == b"abc" * 100
        assert cache.get(KEY, lambda: b"abc" * 100) == b"abc" * 100
    assert len(files(cache)) == 1
    assert is_hit(cache, "before")
    assert len(warnings(caplog)) == 1
    cache.get(KEY, lambda: b"abc" * 100)
    assert is_hit(cache, KEY)


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.EMFILE, errno.ESTALE])
def test_files_that_cannot_be_opened(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    """Faults that root, on a disk in order, cannot have otherwise."""
    cache.get(KEY, lambda: b"old")

    def refuse(path: str, flags: int, mode: int = 0o777) -> int:
        raise OSError(code, os.strerror(code), path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        assert cache.get(KEY, lambda: b"new") == b"new"
    assert cache.get(KEY, not_loaded) == b"old"
    assert len(warnings(caplog)) == 2


def test_writes_in_parts(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: write(file, data[:7]))
        cache.get(KEY, lambda: bytes(range(256)))
    assert cache.get(KEY, not_loaded) == bytes(range(256))


# --- settings


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    for name in ("SECATEUR_CACHE_DIR", "SECATEUR_CACHE_BYTES", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return monkeypatch


def test_the_directory_is_that_of_the_environment(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def directory() -> Path:
        cache = default_disk_cache()
        assert cache is not None
        return cache.directory

    assert directory() == tmp_path / ".cache" / "secateur"
    environment.setenv("XDG_CACHE_HOME", "not/absolute")
    assert directory() == tmp_path / ".cache" / "secateur"
    environment.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert directory() == tmp_path / "xdg" / "secateur"
    environment.setenv("SECATEUR_CACHE_DIR", "~/mine")
    assert directory() == tmp_path / "mine"
    assert not (tmp_path / "mine").exists()  # until something is kept


def test_the_size_is_that_of_the_environment(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cache = default_disk_cache()
    assert cache is not None
    assert 0 < cache.most_bytes <= 10**10
    assert cache.most_bytes <= shutil.disk_usage(tmp_path).total // 10
    environment.setenv("SECATEUR_CACHE_BYTES", "2.5 GB")
    cache = default_disk_cache()
    assert cache is not None
    assert cache.most_bytes == 2_500_000_000
    environment.setenv("SECATEUR_CACHE_BYTES", "0")
    assert default_disk_cache() is None
    environment.setenv("SECATEUR_CACHE_BYTES", "plenty")
    with pytest.raises(ValueError, match=r"SECATEUR_CACHE_BYTES is a number of bytes .* not 'plenty'"):
        default_disk_cache()


AMOUNTS = {
    "0": 0,
    "123456789012345678": 123456789012345678,
    "7 B": 7,
    "64kB": 64_000,
    "64KiB": 65_536,
    "20m": 20_000_000,
    "10GB": 10**10,
    "10 gib": 10 * 2**30,
    "1.5TiB": 3 * 2**39,
    " 1tb ": 10**12,
}


@pytest.mark.parametrize(("text", "size"), AMOUNTS.items())
def test_amounts(text: str, size: int) -> None:
    assert parse_bytes(text, "SECATEUR_CACHE_BYTES") == size


@pytest.mark.parametrize("text", ["-1", "1e9", "GB", "10 i", "10GBps", "1,000", "0x10", "1_000"])
def test_no_amounts(text: str) -> None:
    with pytest.raises(ValueError, match="number of bytes"):
        parse_bytes(text, "SECATEUR_CACHE_BYTES")
