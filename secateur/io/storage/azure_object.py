"""Objects of Azure's blob storage for obstore's client: pyarrow's settings in obstore's words.

Credentials are those of the filesystem, or of a service principal or a workload identity in the environment, where
pyarrow looks too. Others that pyarrow finds (of ``az login``, of the machine) have no client.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Any

import pyarrow.fs as pafs

from secateur.forks import lock_for
from secateur.io.storage.filesystem_settings import settings_of
from secateur.io.storage.object_client import StoredObject, options_for

ACCOUNT_KEY, SAS_TOKEN = "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN"  # as other libraries name them
_PRINCIPAL = {"tenant_id": "AZURE_TENANT_ID", "client_id": "AZURE_CLIENT_ID"}
_CLIENT_SECRET, _TOKEN_FILE = "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE"
_KINDS, _WITHOUT_AZ = "AZURE_TOKEN_CREDENTIALS", "prod"  # which credentials Azure's client tries: not of `az login`
_GIVEN = ("account_key", "sas_token", "client_id", "client_secret", "tenant_id")


def azure_object(filesystem: pafs.AzureFileSystem, path: str) -> StoredObject | None:
    """Return a path of pyarrow's Azure filesystem as an object; None for credentials that obstore does not support."""
    settings = settings_of(filesystem)
    credentials = _credentials(settings)
    if credentials is None:
        return None
    endpoint = _endpoint(settings)
    config = {"account_name": settings["account_name"], "endpoint": endpoint, "skip_signature": False, **credentials}
    container, _, key = path.partition("/")
    return StoredObject("azure", container, key, config, options_for(endpoint))


def with_key_of_environment(filesystem: pafs.FileSystem) -> pafs.FileSystem:
    """Return an Azure filesystem with the account key or token of the environment, if it was given no credentials.

    pyarrow itself does not look there. Other filesystems are returned unchanged.
    """
    if filesystem.type_name != "abfs" or any(settings_of(filesystem)[name] for name in _GIVEN):
        return filesystem
    make, (settings,) = filesystem.__reduce__()
    if key := os.environ.get(ACCOUNT_KEY):
        return make({**settings, "account_key": key})
    token = os.environ.get(SAS_TOKEN)
    return make({**settings, "sas_token": token.lstrip("?")}) if token else filesystem


class _OnlyInstalledCredentials:
    """Keeps Azure's client, if it is created within a `with` block, from running `az` where that is not installed.

    The shell would print that it is not there, once for every attempt, before the error that says what to do. The
    client reads the environment alone, which all threads share: the first of those within sets it, the last resets it.
    """

    def __init__(self) -> None:
        self._lock = lock_for(self, "_lock")
        self._within = 0
        self._is_set = False

    def __enter__(self) -> None:
        with self._lock:
            if self._within == 0 and _KINDS not in os.environ and not shutil.which("az"):
                os.environ[_KINDS] = _WITHOUT_AZ
                self._is_set = True
            self._within += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._within -= 1
            if self._within == 0 and self._is_set:
                self._is_set = False
                if os.environ.get(_KINDS) == _WITHOUT_AZ:
                    del os.environ[_KINDS]


only_installed_credentials = _OnlyInstalledCredentials()


def _endpoint(settings: Mapping[str, Any]) -> str:
    """Return the address of the account: an authority that begins with a dot follows its name, as in pyarrow."""
    scheme, authority, account = (
        settings[name] for name in ("blob_storage_scheme", "blob_storage_authority", "account_name")
    )
    return f"{scheme}://{account}{authority}" if authority.startswith(".") else f"{scheme}://{authority}/{account}"


def _credentials(settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return credentials for obstore, with their kind, so that it looks for no others; None if it cannot get them."""
    if settings["account_key"]:
        return {"account_key": settings["account_key"], "credential_type": "access_key"}
    if settings["sas_token"]:
        return {"sas_key": settings["sas_token"].lstrip("?"), "credential_type": "sas_token"}
    given = {name: settings[name] for name in ("tenant_id", "client_id", "client_secret") if settings[name]}
    if given:
        return {**given, "credential_type": "client_secret"} if len(given) == len(_PRINCIPAL) + 1 else None
    principal = {name: os.environ[variable] for name, variable in _PRINCIPAL.items() if os.environ.get(variable)}
    if len(principal) < len(_PRINCIPAL):
        return None
    if secret := os.environ.get(_CLIENT_SECRET):
        return {**principal, "client_secret": secret, "credential_type": "client_secret"}
    if file := os.environ.get(_TOKEN_FILE):
        return {**principal, "federated_token_file": file, "credential_type": "workload_identity"}
    return None
