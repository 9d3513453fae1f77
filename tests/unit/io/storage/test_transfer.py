"""What is sent to executors: filesystems without credentials, which are then taken from the environment there."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from pyiceberg.catalog import load_catalog
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import secateur as sec
from secateur.errors import AccessDenied, IndexFault, IndexNotWritable, InvalidOption
from secateur.io.spark.data_source import SecateurDataSource
from secateur.io.storage.index_store import FileStore
from secateur.io.storage.transfer import plain, plain_settings, received, sent
from tests.support.checks.canary import CANARY, leaks
from tests.support.profiles import takes_seconds
from tests.support.s3_server import ACCESS_KEY, REGION, S3Server

ROWS = pa.table({"id": np.arange(1000), "twice": np.arange(1000) * 2})


def test_a_canary_is_found_wherever_it_is() -> None:
    words = b"no secret, but a canary"
    assert leaks(words)
    assert leaks(b"\x78\x01" + zlib.compress(words) + b"behind")
    assert leaks(b"before" + pa.compress(words, codec="zstd", asbytes=True))
    assert leaks(zlib.compress(b"x" + pa.compress(words, codec="zstd", asbytes=True)))
    assert not leaks(b"\x78\x28\xb5\x2f\xfd no secret")


WITH_SECRETS: list[tuple[pafs.FileSystem, dict[str, Any]]] = [
    (
        pafs.S3FileSystem(
            access_key="canary-key", secret_key="canary-secret", session_token="canary-token", region="eu-west-1",
            endpoint_override="http://minio:9000", default_metadata={"ACL": "private", "x-customer-key": "canary-sse"},
            proxy_options="http://canary:canary@proxy:8020",
        ),
        {
            "region": "eu-west-1", "endpoint_override": "http://minio:9000", "default_metadata": {"ACL": "private"},
            "proxy_options": {"scheme": "http", "host": "proxy", "port": 8020}, "anonymous": False,
        },
    ),
    (pafs.S3FileSystem(anonymous=True, region="eu-west-1"), {"anonymous": True, "proxy_options": None}),
    (
        pafs.AzureFileSystem("account", account_key="Y2FuYXJ5Y2FuYXJ5"),
        {"account_name": "account", "blob_storage_scheme": "https"},
    ),
    (pafs.AzureFileSystem("account", sas_token="sig=canary"), {"account_name": "account"}),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(WITH_SECRETS)))
def test_a_filesystem_is_sent_without_credentials(case: int) -> None:
    filesystem, kept = WITH_SECRETS[case]
    assert plain_settings(filesystem).items() >= kept.items()
    assert set(plain_settings(filesystem)).isdisjoint(("access_key", "secret_key", "session_token", "account_key"))
    for original in (filesystem, pafs.SubTreeFileSystem("bucket/part", filesystem)):
        data = cloudpickle.dumps(sent(original))
        assert not leaks(data)
        assert b"Y2FuYXJ5Y2FuYXJ5" not in data
        opened = received(pickle.loads(data))
        assert opened.type_name == original.type_name
        assert sent(opened) == sent(original)


def test_settings_that_are_not_known_stay_here() -> None:
    settings = {
        "host": "namenode",
        "port": 8020,
        "extra_conf": {"dfs.nameservices": "a", "fs.s3a.secret.key": "canary"},
    }
    assert plain("hdfs", settings) == {"host": "namenode", "port": 8020, "extra_conf": {"dfs.nameservices": "a"}}
    assert plain("gcs", {"access_token": "canary", "project_id": "p", "new": "canary"}) == {"project_id": "p"}


def test_local_filesystems_and_own_ones_are_sent_as_they_are() -> None:
    local = pafs.LocalFileSystem()
    assert sent(local) is local
    custom = pafs.PyFileSystem(Own(fsspec.filesystem("file")))
    assert sent(custom) is custom


class Own(pafs.FSSpecHandler):
    """A handler whose class is not known."""


class Keyed(LocalFileSystem):
    """A filesystem of fsspec on the local disk, which takes keys."""

    protocol = "keyed"

    def __init__(self, key: str = "", client_kwargs: dict[str, str] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.given = (key, client_kwargs)


def test_filesystems_of_fsspec_are_sent_without_what_is_called_a_secret(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("here")
    options = {"endpoint_url": "http://u:canary@host", "aws_secret_access_key": "canary"}
    inner = Keyed(key="canary", client_kwargs=options, auto_mkdir=True)
    for fs, path in ((inner, str(tmp_path / "a.txt")), (DirFileSystem(str(tmp_path), inner), "a.txt")):
        data = cloudpickle.dumps(sent(pafs.PyFileSystem(pafs.FSSpecHandler(fs))))
        assert not leaks(data)
        opened = received(pickle.loads(data))
        assert opened.open_input_file(path).read() == b"here"
        handled = opened.handler.fs
        keyed = handled if isinstance(handled, Keyed) else handled.fs
        assert keyed.given == ("", {"endpoint_url": "http://***@host"})
        assert keyed.auto_mkdir


# ---- tables ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def keyed(s3: S3Server, tmp_path: Path) -> Iterator[tuple[pafs.S3FileSystem, str]]:
    """A filesystem with explicit keys, and a table there."""
    filesystem = pafs.S3FileSystem(
        access_key="AKIACANARY", secret_key="canary-secret", session_token="canary-token",
        endpoint_override=s3.endpoint, region=REGION,
    )  # fmt: skip
    root = f"{s3.bucket}/{tmp_path.name}"
    for part in range(4):
        pq.write_table(ROWS.slice(part * 250, 250), f"{root}/{part}.parquet", filesystem=filesystem, row_group_size=50)
    yield filesystem, root
    for name in s3.names(tmp_path.name):
        s3.client.delete_object(Bucket=s3.bucket, Key=name)


@pytest.fixture
def pickled(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """All that is pickled for Spark's executors while a test runs."""
    payloads: list[bytes] = []
    dumps = cloudpickle.dumps

    def watched(*args: Any, **options: Any) -> bytes:
        data = dumps(*args, **options)
        payloads.append(data)
        return data

    monkeypatch.setattr(cloudpickle, "dumps", watched)
    return payloads


def test_no_read_path_to_executors_carries_credentials(
    spark: SparkSession, keyed: tuple[pafs.S3FileSystem, str], pickled: list[bytes], s3: S3Server
) -> None:
    """Build, prune on executors, and read: what is sent has no secret, and executors use those they find."""
    filesystem, root = keyed
    table = sec.open_table(root, filesystem=filesystem)
    sec.build_index(table, spark=spark, sort_key=["id"], bloom=["twice"], segment_blocks=5)
    plan = sec.prune(table, "twice = 500", spark=spark, strict=True, prune_on="executors")
    assert "pruned by" in plan.explain()
    assert [tuple(row) for row in plan.to_spark(spark, via="blocks").collect()] == [(250, 500)]
    assert any(b"SentFileSystem" in data for data in pickled)
    assert not [leak for data in pickled for leak in leaks(data)]
    assert s3.keys_of("PUT", root, ".segment") == {ACCESS_KEY}
    assert s3.keys_of("GET", root, "/1.parquet") >= {ACCESS_KEY}
    assert s3.keys_of("PUT", root, "0000000001.snapshot") == {"AKIACANARY"}


@takes_seconds
def test_tasks_of_the_data_source_carry_no_credentials(
    keyed: tuple[pafs.S3FileSystem, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tables are opened with what the environment has, and that stays in it."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIACANARY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-secret")
    source = SecateurDataSource({"path": f"s3://{keyed[1]}", "predicate": "id < 300"})
    reader = source.reader(source.schema())
    tasks = reader.partitions()
    read = [batch for task in tasks for batch in reader.read(task)]
    assert pa.Table.from_batches(read).sort_by("id").equals(ROWS.slice(0, 300))
    assert not leaks(cloudpickle.dumps((source, reader, tasks)))


@pytest.mark.parametrize("option", ["path", "index_location"])
def test_the_data_source_takes_no_credentials_in_its_options(option: str) -> None:
    options = {"path": "s3://lake/table", option: "s3://AKIACANARY:canary-secret@lake/table"}
    with pytest.raises(InvalidOption, match=f"option {option} carries credentials") as raised:
        SecateurDataSource(options).schema()
    assert CANARY not in str(raised.value)


def test_the_delivery_of_an_iceberg_table_carries_no_credentials(
    spark: SparkSession, s3: S3Server, tmp_path: Path, pickled: list[bytes]
) -> None:
    properties = {
        "type": "sql", "uri": f"sqlite:///{tmp_path}/canary.db", "warehouse": f"s3://{s3.bucket}/{tmp_path.name}",
        "s3.endpoint": s3.endpoint, "s3.region": REGION, "token": "canary-token",
        "s3.access-key-id": "AKIACANARY", "s3.secret-access-key": "canary-secret",
    }  # fmt: skip
    catalog = load_catalog("keyed", **properties)
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", schema=ROWS.schema)
    for start in (0, 500):
        made.append(ROWS.slice(start, 500))
    table = sec.open_table("db.t", catalog=catalog)
    sec.build_index(table, spark=spark, bloom=["twice"])
    plan = sec.prune(table, "twice = 1200", spark=spark, strict=True, prune_on="executors")
    assert [tuple(row) for row in plan.to_spark(spark, via="blocks").collect()] == [(600, 1200)]
    assert len(plan.blocks) == 1
    assert any(b"SentFileSystem" in data for data in pickled)
    assert not [leak for data in pickled for leak in leaks(data)]
    for text in (repr(table), repr(plan), plan.explain(), plan.explain("json"), repr(sec.describe_index(table))):
        assert "canary-" not in text


def test_an_executor_without_credentials_says_what_to_set(s3: S3Server, keyed: tuple[pafs.S3FileSystem, str]) -> None:
    filesystem, root = keyed
    store = pickle.loads(cloudpickle.dumps(FileStore(filesystem, f"{root}/_secateur")))
    table = pickle.loads(cloudpickle.dumps(sec.open_table(root, filesystem=filesystem)))
    with s3.failing(lambda method, path: True, "denied"):
        with pytest.raises(AccessDenied, match=r"1\.parquet: .*spark\.executorEnv\.AWS_ACCESS_KEY_ID"):
            table.open_file("1.parquet")
        with pytest.raises(IndexFault, match=r"spark\.executorEnv\.AWS_ACCESS_KEY_ID"):
            store.read("segments/x.segment", 0, 1)
        with pytest.raises(IndexNotWritable, match=r"spark\.executorEnv\.AWS_ACCESS_KEY_ID"):
            store.put("segments/x.segment", b"")
