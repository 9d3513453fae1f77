"""Settings of pyarrow's filesystems in the words of obstore; no store is asked."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

from secateur.errors import TableNotFound
from secateur.io.storage.azure_object import only_installed_credentials, with_key_of_environment
from secateur.io.storage.filesystem_settings import settings_of
from secateur.io.storage.locations import resolve_location
from secateur.io.storage.object_client import StoredObject, reading_client
from secateur.io.storage.stored_object import stored_object

KEY = "QUJDREVGR0g="
PRINCIPAL = {"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c"}


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (*PRINCIPAL, "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_STORAGE_ACCOUNT_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AZURE_STORAGE_SAS_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "CLOUD_STORAGE_EMULATOR_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def on_azure(**settings: Any) -> StoredObject | None:
    return stored_object(pafs.AzureFileSystem("acc", **settings), "container/a/b c")


def on_google(**settings: Any) -> StoredObject | None:
    return stored_object(pafs.GcsFileSystem(**settings), "bucket/a/b c")


@pytest.mark.parametrize(("settings", "expected"), [
    ({"account_key": KEY}, {"account_key": KEY, "credential_type": "access_key"}),
    ({"sas_token": "?sv=1&sig=2"}, {"sas_key": "sv=1&sig=2", "credential_type": "sas_token"}),
    ({"tenant_id": "t", "client_id": "c", "client_secret": "s"},
     {"tenant_id": "t", "client_id": "c", "client_secret": "s", "credential_type": "client_secret"}),
])  # fmt: skip
def test_credentials_of_an_azure_filesystem(settings: dict[str, str], expected: dict[str, str]) -> None:
    target = on_azure(**settings)
    assert target is not None
    assert (target.kind, target.bucket, target.key) == ("azure", "container", "a/b c")
    plain = {"account_name": "acc", "endpoint": "https://acc.blob.core.windows.net", "skip_signature": False}
    assert target.config == plain | expected
    assert not target.answers_suffixes
    reading_client(target)  # obstore takes the settings


def test_credentials_of_azure_in_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert on_azure() is None  # pyarrow asks `az`, or the machine
    assert on_azure(client_id="c") is None  # a managed identity
    for name, value in PRINCIPAL.items():
        monkeypatch.setenv(name, value)
    assert on_azure() is None
    monkeypatch.setenv("AZURE_FEDERATED_TOKEN_FILE", str(tmp_path / "token"))
    target = on_azure()
    assert target is not None and target.config["credential_type"] == "workload_identity"
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "s")
    target = on_azure()
    assert target is not None and target.config["credential_type"] == "client_secret"
    reading_client(target)


@pytest.mark.parametrize(("authority", "endpoint"), [
    (".blob.core.chinacloudapi.cn", "http://acc.blob.core.chinacloudapi.cn"),
    ("127.0.0.1:10000", "http://127.0.0.1:10000/acc"),
])  # fmt: skip
def test_the_address_of_an_azure_account(authority: str, endpoint: str) -> None:
    target = on_azure(account_key=KEY, blob_storage_authority=authority, blob_storage_scheme="http")
    assert target is not None
    assert (target.config["endpoint"], target.client) == (endpoint, {"allow_http": True})


@pytest.mark.parametrize(
    ("installed", "chosen", "expected"), [(False, None, "prod"), (True, None, None), (False, "x", "x")]
)
def test_azure_is_not_asked_for_a_program_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: bool, chosen: str | None, expected: str | None
) -> None:
    """Its client would run it by a shell, which prints that it is not there."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("AZURE_TOKEN_CREDENTIALS", raising=False)
    if chosen:
        monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", chosen)
    if installed:
        (tmp_path / "az").touch(0o755)
    with only_installed_credentials:
        assert os.environ.get("AZURE_TOKEN_CREDENTIALS") == expected
        with ThreadPoolExecutor(1) as threads:
            threads.submit(_create_nothing).result()
        assert os.environ.get("AZURE_TOKEN_CREDENTIALS") == expected  # of the thread that is still within
    assert os.environ.get("AZURE_TOKEN_CREDENTIALS") == chosen


def _create_nothing() -> None:
    with only_installed_credentials:
        pass


@pytest.mark.parametrize(("scheme", "expected"), [("abfss", "prod"), ("s3", None), ("s3a", None), ("gs", None)])
def test_only_where_azure_is_opened_does_the_environment_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, expected: str | None
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("AZURE_TOKEN_CREDENTIALS", raising=False)
    seen: list[str | None] = []

    class Opened:
        @staticmethod
        def from_uri(location: str) -> tuple[pafs.FileSystem, str]:
            seen.append(os.environ.get("AZURE_TOKEN_CREDENTIALS"))
            return pafs.LocalFileSystem(), location

    monkeypatch.setattr(pafs, "FileSystem", Opened)
    resolve_location(f"{scheme}://container@acc.dfs.core.windows.net/lake", None)
    assert seen == [expected]


def test_the_key_of_the_environment_is_for_those_without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "?sig=2")
    bare, given = pafs.AzureFileSystem("acc"), pafs.AzureFileSystem("acc", account_key=KEY)
    assert settings_of(with_key_of_environment(bare))["sas_token"] == "sig=2"
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "SUpL")
    assert settings_of(with_key_of_environment(bare))["account_key"] == "SUpL"
    assert settings_of(with_key_of_environment(given))["account_key"] == KEY
    local = pafs.LocalFileSystem()
    assert with_key_of_environment(local) is local
    _, filesystem, path = resolve_location("abfss://container@acc.dfs.core.windows.net/lake/events/", None)
    assert (settings_of(filesystem)["account_key"], path) == ("SUpL", "container/lake/events")


def test_credentials_of_google(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    anonymous = on_google(anonymous=True)
    assert anonymous is not None
    assert (anonymous.kind, anonymous.bucket, anonymous.key) == ("gcs", "bucket", "a/b c")
    assert anonymous.config == {"base_url": "https://storage.googleapis.com", "skip_signature": True}
    reading_client(anonymous)
    machine = on_google()
    assert machine is not None and machine.config["skip_signature"] is False
    assert on_google(target_service_account="other@project") is None
    file = tmp_path / "key.json"
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    for kind, has_client in (("service_account", True), ("authorized_user", True), ("external_account", False)):
        file.write_text(json.dumps({"type": kind}))
        target = on_google()
        assert (target is not None) == has_client, kind
        assert target is None or target.config["application_credentials"] == str(file)
    file.write_text("no JSON")
    assert on_google() is None
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", "{}")  # which pyarrow does not read
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    assert on_google() is None


def test_the_address_of_google(monkeypatch: pytest.MonkeyPatch) -> None:
    target = on_google(anonymous=True, endpoint_override="127.0.0.1:4443", scheme="http")
    assert target is not None
    assert (target.config["base_url"], target.client) == ("http://127.0.0.1:4443", {"allow_http": True})
    monkeypatch.setenv("CLOUD_STORAGE_EMULATOR_ENDPOINT", "http://localhost:9")
    target = on_google(anonymous=True)
    assert target is not None and target.config["base_url"] == "http://localhost:9"


@pytest.mark.parametrize(
    "location", ["wasbs://container@acc.blob.core.windows.net/x", "az://container/x", "abfs://container/x"]
)
def test_names_of_azure_that_need_another_form(location: str) -> None:
    with pytest.raises(TableNotFound, match=r"Write abfss://CONTAINER@ACCOUNT\.dfs\.core\.windows\.net/PATH"):
        resolve_location(location, None)


def test_another_filesystem_has_no_objects(tmp_path: Path) -> None:
    assert stored_object(pafs.LocalFileSystem(), str(tmp_path)) is None
