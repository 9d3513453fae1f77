"""Publishing: of many that create one name in one instant, one wins, and the others are told so."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

from secateur.errors import IndexConflict, IndexNotWritable
from secateur.io.storage.conditional_put import create_object
from secateur.io.storage.index_store import FileStore
from secateur.io.storage.s3_object import s3_object
from tests.support.profiles import takes_seconds
from tests.support.s3_server import ACCESS_KEY, S3Server, every

NAME = "snapshots/0000000001.snapshot"
WRITERS, ROUNDS, PROCESSES = 8, 5, 3


@pytest.fixture(params=["local", "s3", "part of s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where an index is published to: a local directory, or a URI."""
    if request.param == "local":
        yield str(tmp_path)
        return
    server: S3Server = request.getfixturevalue("s3")
    prefix = f"{tmp_path.name}-{request.param.replace(' ', '-')}"
    yield f"s3://{server.bucket}/{prefix}"
    for name in server.names(prefix):
        server.client.delete_object(Bucket=server.bucket, Key=name)


def store_at(place: str, folder: object) -> FileStore:
    if not place.startswith("s3://"):
        return FileStore(pafs.LocalFileSystem(), f"{place}/{folder}")
    filesystem, root = pafs.FileSystem.from_uri(place)
    if place.endswith("part-of-s3"):
        return FileStore(pafs.SubTreeFileSystem(root, filesystem), str(folder))
    return FileStore(filesystem, f"{root}/{folder}")


def content(writer: object) -> bytes:
    """What a writer writes: so much that a mixture would show."""
    return f"writer {writer}\n".encode() * 20_000


def outcomes_of(place: str, folder: object, writers: int, start: threading.Barrier) -> list[str]:
    """What becomes of so many writers that create one name at once: they won, or the error."""

    def write(writer: int) -> str:
        store = store_at(place, folder)
        start.wait()
        try:
            store.create(NAME, content(writer))
        except IndexConflict:
            return "conflict"
        return f"{writer}"

    with ThreadPoolExecutor(writers) as threads:
        return list(threads.map(write, range(writers)))


def whole(store: FileStore) -> bytes:
    return store.read(NAME, 0, store.size(NAME))


@takes_seconds
def test_one_of_many_threads_creates_a_name(place: str) -> None:
    for folder in range(ROUNDS):
        outcomes = outcomes_of(place, folder, WRITERS, threading.Barrier(WRITERS))
        winners = [outcome for outcome in outcomes if outcome != "conflict"]
        assert len(winners) == 1
        store = store_at(place, folder)
        assert whole(store) == content(winners[0])
        assert [file.name for file in store.files("snapshots")] == [NAME]


def race(places: list[str], process: int, start: Any, outcomes: Any) -> None:
    """One of several processes: it creates names as fast as it can, and tells which it got."""
    start.wait()
    for place, folder in product(places, range(ROUNDS)):
        try:
            store_at(place, folder).create(NAME, content(process))
            outcomes.put((place, folder, process))
        except IndexConflict:
            outcomes.put((place, folder, None))


@takes_seconds
def test_one_of_many_processes_creates_a_name(s3: S3Server, tmp_path: Path) -> None:
    places = [str(tmp_path), f"s3://{s3.bucket}/{tmp_path.name}"]
    context = multiprocessing.get_context("spawn")
    start, queue = context.Barrier(PROCESSES), context.Queue()
    processes = [context.Process(target=race, args=(places, i, start, queue)) for i in range(PROCESSES)]
    for process in processes:
        process.start()
    outcomes = [queue.get(timeout=60) for _ in range(PROCESSES * ROUNDS * len(places))]
    for process in processes:
        process.join(60)
    won = [(place, folder, process) for place, folder, process in outcomes if process is not None]
    assert sorted((place, folder) for place, folder, _ in won) == sorted(product(places, range(ROUNDS)))
    assert [whole(store_at(place, folder)) for place, folder, _ in won] == [content(process) for *_, process in won]


def test_what_is_there_stays(place: str) -> None:
    store = store_at(place, "index")
    store.create(NAME, b"first")
    with pytest.raises(IndexConflict, match="another build published first"):
        store.create(NAME, b"second")
    assert whole(store) == b"first"


def test_an_answer_that_was_lost_is_no_conflict(s3: S3Server, tmp_path: Path) -> None:
    """The client puts again, and finds its own object."""
    store = store_at(f"s3://{s3.bucket}/{tmp_path.name}", "index")
    with s3.failing(lambda method, path: method == "PUT" and path.endswith(NAME), "lost") as gate:
        store.create(NAME, content("alone"))
    assert gate.failed == 1
    assert whole(store) == content("alone")


def test_a_put_that_fails_now_and_then_is_made_again(s3: S3Server, tmp_path: Path) -> None:
    store = store_at(f"s3://{s3.bucket}/{tmp_path.name}", "index")
    with s3.failing(every(2)) as gate:
        store.create(NAME, content("late"))
    assert gate.failed
    assert whole(store) == content("late")


def test_a_put_that_never_succeeds_shows_nothing(s3: S3Server, tmp_path: Path) -> None:
    store = store_at(f"s3://{s3.bucket}/{tmp_path.name}", "index")
    with (
        s3.failing(lambda method, path: path.endswith(NAME)),
        pytest.raises(IndexNotWritable, match="500 Internal Server Error"),
    ):
        store.create(NAME, content("never"))
    assert store.files("snapshots") == []


def test_a_put_that_is_cut_off_shows_nothing(s3: S3Server, tmp_path: Path) -> None:
    """Half of the bytes that were announced arrive, and the connection closes."""
    store = store_at(f"s3://{s3.bucket}/{tmp_path.name}", "index")
    s3.send_half_a_put(f"{tmp_path.name}/index/{NAME}", content("cut off"))
    assert store.files("snapshots") == []
    store.create(NAME, content("whole"))
    assert whole(store) == content("whole")


# ---- credentials and endpoints as pyarrow takes them -----------------------------------------------------------------


PLAIN = {
    "region": "eu-west-1",
    "virtual_hosted_style_request": False,
    "skip_signature": False,
    "conditional_put": "etag",
}


def target_of(**settings: object) -> tuple[dict[str, object], dict[str, object], dict[str, object]]:
    """What differs from PLAIN in a client's configuration, its options, and its credentials."""
    target = s3_object(pafs.S3FileSystem(region="eu-west-1", **settings), "bucket/index/name")
    assert target is not None
    assert (target.bucket, target.key) == ("bucket", "index/name")
    assert target.config.keys() >= PLAIN.keys()
    differing = {name: value for name, value in target.config.items() if PLAIN.get(name) != value}
    return differing, dict(target.client), dict(target.credentials)


@pytest.fixture
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment without credentials, profiles or endpoint."""
    for name in (
        "ACCESS_KEY_ID",
        "SECRET_ACCESS_KEY",
        "SESSION_TOKEN",
        "PROFILE",
        "ENDPOINT_URL",
        "EC2_METADATA_DISABLED",
    ):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    return monkeypatch


def test_a_client_is_made_as_the_filesystem_was(no_credentials: pytest.MonkeyPatch) -> None:
    keys = {"access_key_id": "AK", "secret_access_key": "SK"}
    assert target_of() == ({}, {}, {})
    assert target_of(anonymous=True) == ({"skip_signature": True}, {}, {})
    assert target_of(access_key="AK", secret_key="SK") == ({}, {}, keys)
    assert target_of(access_key="AK", secret_key="SK", session_token="T") == ({}, {}, keys | {"token": "T"})
    assert target_of(endpoint_override="minio:9000", scheme="http") == (
        {"endpoint": "http://minio:9000"},
        {"allow_http": True},
        {},
    )
    assert target_of(endpoint_override="https://minio:9000") == ({"endpoint": "https://minio:9000"}, {}, {})
    assert target_of(endpoint_override="https://store.example", force_virtual_addressing=True) == (
        {"virtual_hosted_style_request": True, "endpoint": "https://bucket.store.example"},
        {},
        {},
    )
    proxy = target_of(proxy_options={"scheme": "http", "host": "proxy", "port": 8020})
    assert proxy == ({}, {"proxy_url": "http://proxy:8020"}, {})
    no_credentials.setenv("AWS_ENDPOINT_URL", "http://elsewhere")  # which this class of pyarrow does not take
    assert target_of()[0]["endpoint"] == "https://s3.eu-west-1.amazonaws.com"


def test_a_client_has_the_credentials_of_a_profile(no_credentials: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = A1\naws_secret_access_key = S%1\n"
        "[other]\naws_access_key_id = A2\naws_secret_access_key = S2\naws_session_token = T2\n"
    )
    (tmp_path / "config").write_text("[profile third]\nrole_arn = arn\n[default]\nregion = us-east-1\n")
    assert target_of()[2] == {"access_key_id": "A1", "secret_access_key": "S%1"}
    no_credentials.setenv("AWS_PROFILE", "other")
    assert target_of()[2] == {"access_key_id": "A2", "secret_access_key": "S2", "token": "T2"}
    no_credentials.setenv("AWS_PROFILE", "third")
    assert s3_object(pafs.S3FileSystem(region="eu-west-1"), "bucket/x") is None


@pytest.mark.parametrize(
    "settings",
    [{"role_arn": "arn:aws:iam::1:role/x"}, {"proxy_options": "http://user:password@proxy:8020"}],
    ids=["role", "proxy"],
)
def test_what_no_client_is_made_of(settings: dict[str, object]) -> None:
    filesystem = pafs.S3FileSystem(region="eu-west-1", **settings)
    assert s3_object(filesystem, "bucket/index/name") is None
    assert create_object(filesystem, "bucket/index/name", b"") is None


def test_the_keys_that_were_given_are_used(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather than those of the environment, whose token is not theirs."""
    given: list[dict[str, str]] = [{}, {"access_key": "AKIAOTHER", "secret_key": "other"}]
    for name in ("AWS_SESSION_TOKEN", "AWS_SKIP_SIGNATURE", "AWS_CONDITIONAL_PUT"):
        monkeypatch.setenv(name, "disabled" if name == "AWS_CONDITIONAL_PUT" else "true")
    for keys, token in zip(given, ("true", ""), strict=True):
        filesystem = pafs.S3FileSystem(endpoint_override=s3.endpoint, region="eu-central-1", **keys)
        path = f"{s3.bucket}/{tmp_path.name}/{len(keys)}"
        assert create_object(filesystem, path, b"") is True
        assert (s3.gate.access_key, s3.gate.token) == (keys.get("access_key", ACCESS_KEY), token)
        assert create_object(filesystem, path, b"") is False
