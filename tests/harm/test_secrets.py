"""No credential reaches a text or a file: a word stands for it, and is looked for wherever the package speaks."""

from __future__ import annotations

import dataclasses
import logging
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyiceberg.catalog import load_catalog

import secateur as sec
from secateur.cli import main
from secateur.errors import AccessDenied, IndexMissing, InvalidOption, SecateurError, TableNotFound, UnknownColumn
from secateur.index.model import BLOOM, BuildOptions, FilterOption
from secateur.io.storage.redaction import has_secrets, redacted_location, without_secrets
from secateur.io.tables.table import Table
from tests.support.checks.canary import CANARY, leaks
from tests.support.profiles import takes_seconds
from tests.support.s3_server import REGION, S3Server
from tests.support.stores.local_build import index_here

ROWS = pa.table({"id": np.arange(200), "s": [f"text {i}" for i in range(200)]})
OPTIONS = BuildOptions(filters=(FilterOption(BLOOM, "id"),))


@pytest.fixture
def place(s3: S3Server, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """URIs with credentials in them, of places in a bucket."""
    query = f"region={REGION}&scheme=http&endpoint_override=127.0.0.1%3A{s3.port}"
    yield lambda name: f"s3://AKIACANARY:canary-secret@{s3.bucket}/{tmp_path.name}/{name}?{query}"
    for name in s3.names(tmp_path.name):
        s3.client.delete_object(Bucket=s3.bucket, Key=name)


@pytest.fixture
def uri(place: Callable[[str], str]) -> str:
    """The URI, with credentials, of a table of two files."""
    filesystem, root = pafs.FileSystem.from_uri(place("table"))
    for part in range(2):
        pq.write_table(ROWS.slice(part * 100, 100), f"{root}/{part}.parquet", filesystem=filesystem, row_group_size=20)
    return place("table")


def silent(*said: object) -> None:
    """Requires that nothing said has the word."""
    for part in said:
        text = part if isinstance(part, str) else repr(part)
        assert CANARY not in text.lower(), text


def values_of(value: Any) -> str:
    """All that an object holds, as text, fields that repr() leaves out too."""
    return repr(dataclasses.asdict(value)) if dataclasses.is_dataclass(value) else repr(value)  # type: ignore[arg-type]


@takes_seconds
def test_nothing_says_what_a_location_carries(
    uri: str, place: Callable[[str], str], s3: S3Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    reports: list[Any] = []
    sec.add_reporter(reports.append)
    try:
        table = sec.open_table(uri, index_location=place("index"))
        index_here(table, OPTIONS)
        table = sec.open_table(uri, index_location=place("index"))
        plan = sec.prune(table, "id = 42 AND s LIKE 'text 4%'")
        rows = plan.to_arrow()
    finally:
        sec.remove_reporter(reports.append)
    assert rows.to_pylist() == [{"id": 42, "s": "text 42"}]
    assert table.location == f"s3://{s3.bucket}/{tmp_path.name}/table"
    silent(table, table.location, table.store, table.store.location, table.snapshot())
    silent(plan, plan.explain(), plan.explain("json"), plan.report, values_of(plan.report), plan.files, reports)
    silent(plan.blocks.to_pylist(), *(plan.why(file, 0) for file in plan.files))
    silent(sec.describe_index(table), sec.verify_index(table), sec.vacuum_index(table, dry_run=True))
    tables = (sec.inspect.snapshots, sec.inspect.manifests, sec.inspect.files, sec.inspect.blocks, sec.inspect.segments)
    silent(*(inspected(table).to_pylist() for inspected in (*tables, sec.inspect.coverage)))
    silent(caplog.text)
    names = s3.names(f"{tmp_path.name}/index")
    assert len(names) >= 3
    for name in names:
        data = s3.client.get_object(Bucket=s3.bucket, Key=name)["Body"].read()
        assert not leaks(data)
        silent(name)


def test_files_are_chosen_by_uris_with_credentials(uri: str) -> None:
    location, mark, options = uri.partition("?")
    for choice in (f"{location}/*.parquet{mark}{options}", [f"{location}/{i}.parquet{mark}{options}" for i in (0, 1)]):
        table = sec.open_table(choice)
        assert sec.prune(table, "id >= 99 AND id < 101").to_arrow().num_rows == 2
        silent(table, table.location)


@pytest.mark.parametrize(
    "arguments",
    [
        ["prune", "id = 42"],
        ["prune", "id = 42", "--json"],
        ["prune", "id = 42", "--count"],
        ["prune", "idd = 42"],
        ["inspect"],
        ["inspect", "files"],
        ["verify"],
        ["vacuum", "--dry-run"],
        ["--verbose", "prune", "id = 42"],
    ],
    ids=" ".join,
)
def test_no_command_says_what_a_location_carries(uri: str, arguments: list[str]) -> None:
    index_here(sec.open_table(uri), OPTIONS)
    before = 2 if arguments[0].startswith("--") else 1
    outcome = CliRunner().invoke(main, [*arguments[:before], uri, *arguments[before:]])
    silent(
        outcome.output,
        outcome.stderr,
        *(["".join(traceback.format_exception(outcome.exception))] if outcome.exception else []),
    )
    assert outcome.output


def test_a_table_that_is_not_indexed_or_not_there(uri: str, place: Callable[[str], str]) -> None:
    for error, ask in (
        (IndexMissing, lambda: sec.describe_index(sec.open_table(uri))),
        (TableNotFound, lambda: sec.open_table(place("nowhere"))),
        (TableNotFound, lambda: sec.open_table(place("table/nowhere.parquet"))),
        (TableNotFound, lambda: sec.open_table(uri.replace("@lake/", "@no-such-bucket/"))),
        (TableNotFound, lambda: sec.open_table(uri.replace("canary-secret", "canary/secret"))),
        (TableNotFound, lambda: sec.open_table(f"{uri}&secret_key=canary")),
        (TableNotFound, lambda: sec.open_table(uri.replace("s3://", "s4://"))),
        (TableNotFound, lambda: sec.open_table(str(uri), index_location=uri.replace("s3://", "s4://"))),
        (ValueError, lambda: sec.open_table(uri, snapshot_id=1)),
        (UnknownColumn, lambda: sec.prune(sec.open_table(uri), "nothing = 1")),
    ):
        silent(said(error, ask))


def test_a_store_that_denies_access(uri: str, s3: S3Server) -> None:
    table = sec.open_table(uri)
    with s3.failing(lambda method, path: True, "denied"):
        for error, ask in (
            (AccessDenied, lambda: sec.open_table(uri)),
            (AccessDenied, lambda: sec.prune(table, "id = 1")),
            (SecateurError, lambda: sec.describe_index(table)),
            (SecateurError, lambda: sec.drop_index(table)),
            (SecateurError, lambda: index_here(table, OPTIONS)),
        ):
            message = said(error, ask)
            silent(message)
            assert "AWS_ACCESS_KEY_ID" in message


def said(error: type[Exception], ask: Callable[[], object]) -> str:
    """The whole traceback of an error that is raised."""
    with pytest.raises(error) as raised:
        ask()
    trace = traceback.TracebackException.from_exception(raised.value, capture_locals=False)
    return str(raised.value) + "".join(trace.format_exception_only())


# ---- Iceberg ---------------------------------------------------------------------------------------------------------


@takes_seconds
def test_the_properties_of_a_catalog_stay_in_it(s3: S3Server, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "secateur")
    properties = {
        "type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"s3://{s3.bucket}/{tmp_path.name}",
        "s3.endpoint": s3.endpoint, "s3.region": REGION, "token": "canary-token", "credential": "canary:canary",
        "s3.access-key-id": "AKIACANARY", "s3.secret-access-key": "canary-secret",
    }  # fmt: skip
    catalog = load_catalog("default", **properties)
    catalog.create_namespace("db")
    catalog.create_table("db.t", schema=ROWS.schema).append(ROWS)
    table: Table = sec.open_table("db.t", catalog=properties)
    index_here(table, BuildOptions())
    plan = sec.prune(sec.open_table("db.t", catalog=properties), "id = 7", strict=True)
    assert plan.to_arrow().to_pylist() == [{"id": 7, "s": "text 7"}]
    silent(table, table.snapshot(), table.location, plan, plan.explain(), plan.explain("json"), plan.report)
    silent(
        sec.describe_index(table), sec.inspect.snapshots(table).to_pylist(), sec.inspect.manifests(table).to_pylist()
    )
    silent(sec.register_index(table), caplog.text)
    for name in s3.names(tmp_path.name):
        assert not leaks(s3.client.get_object(Bucket=s3.bucket, Key=name)["Body"].read())
    silent(said(TableNotFound, lambda: sec.open_table("db.nothing", catalog=properties)))
    silent(said(TypeError, lambda: sec.open_table("db.t", catalog=list(properties.items()))))
    wrong = {"uri": "oracle://user:canary@host/db"}
    silent(said(ValueError, lambda: sec.open_table("db.t", catalog=wrong)))


def test_a_location_of_an_iceberg_table_carries_no_credentials() -> None:
    location = "s3://AKIACANARY:canary-secret@lake/table/metadata/v1.metadata.json"
    silent(said(InvalidOption, lambda: sec.open_table(location)))


# ---- the texts themselves --------------------------------------------------------------------------------------------

SHOWN = [
    ("lake/events", "lake/events"),
    ("/lake/user@example?x=1", "/lake/user@example?x=1"),
    ("file:///lake/a@b?c", "file:///lake/a@b?c"),
    ("s3://bucket/user@example/x", "s3://bucket/user@example/x"),
    ("s3://AK@bucket/x", "s3://bucket/x"),
    ("s3a://AK:SK@bucket/x@y", "s3a://bucket/x@y"),
    ("s3://AK:SK@bucket?region=x", "s3://bucket"),
    ("gs://anonymous@bucket/x?scheme=http", "gs://anonymous@bucket/x"),
    ("abfss://container@account.dfs.core.windows.net/x", "abfss://container@account.dfs.core.windows.net/x"),
    ("abfss://container:key==@account.dfs.core.windows.net/x", "abfss://container@account.dfs.core.windows.net/x"),
    ("abfs://:key@account.blob.core.windows.net/x?sas_token=s", "abfs://account.blob.core.windows.net/x"),
    ("hdfs://user@namenode:8020/x", "hdfs://user@namenode:8020/x"),
]


@pytest.mark.parametrize(("location", "expected"), SHOWN)
def test_locations_are_shown_without_credentials(location: str, expected: str) -> None:
    assert redacted_location(location) == expected
    assert redacted_location(expected) == expected
    assert not has_secrets(expected)


@pytest.mark.parametrize(
    ("location", "tells"),
    [
        ("s3://AK@bucket/x", True),
        ("abfss://c:key@a.dfs.core.windows.net/x", True),
        ("abfss://c@a.dfs.core.windows.net/x", False),
        ("s3://bucket/x?endpoint_override=host&region=r", False),
        ("abfss://c@a/x?sas_token=s", True),
        ("s3://bucket/x?region=r&secret_key=s", True),
        ("lake/a:b@c", False),
    ],
)
def test_locations_that_carry_credentials(location: str, tells: bool) -> None:
    assert has_secrets(location) == tells


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cannot parse 's3://AK:S/K@bucket/x'", "cannot parse 's3://***@bucket/x'"),
        ("cannot parse s3a://AK@bucket/x.", "cannot parse s3a://***@bucket/x."),
        ("bad: postgresql+x://user:pa@ss@host/db here", "bad: postgresql+x://***@host/db here"),
        ("GET https://h/x?sig=abc%3D&sv=2 failed", "GET https://h/x?sig=***&sv=2 failed"),
        ("https://h/x?X-Amz-Signature=abc, then", "https://h/x?X-Amz-Signature=*** then"),
        ("s3://bucket/user@example.parquet is missing", "s3://bucket/user@example.parquet is missing"),
        ("abfss://container@account/x is missing", "abfss://container@account/x is missing"),
    ],
)
def test_texts_are_shown_without_credentials(text: str, expected: str) -> None:
    assert without_secrets(text) == expected
    assert without_secrets(expected) == expected
