"""Send filesystems to another process: described without credentials, and opened there with the credentials found
there.

Only settings on a list of known non-secrets are sent, so a setting that a later pyarrow adds is left out until it is
listed here. A receiving process takes credentials as pyarrow does by default: from its environment, a profile, or the
role of its machine. Filesystems of fsspec are sent without options that are named like secrets. A filesystem with a
custom handler is pickled by its own class.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from secateur.errors import AccessDenied
from secateur.io.storage.azure_object import with_key_of_environment
from secateur.io.storage.filesystem_settings import settings_of
from secateur.io.storage.redaction import ENVIRONMENT, without_secrets

_SENT = {
    "s3": {
        "anonymous", "region", "scheme", "connect_timeout", "request_timeout", "endpoint_override", "role_arn",
        "session_name", "external_id", "load_frequency", "background_writes", "allow_delayed_open",
        "allow_bucket_creation", "allow_bucket_deletion", "check_directory_existence_before_creation",
        "default_metadata", "proxy_options", "force_virtual_addressing", "tls_ca_file_path",
    },
    "gcs": {
        "anonymous", "target_service_account", "scheme", "endpoint_override", "default_bucket_location",
        "default_metadata", "retry_time_limit", "project_id",
    },
    "abfs": {
        "account_name", "blob_storage_authority", "blob_storage_scheme", "dfs_storage_authority", "dfs_storage_scheme",
    },
    "hdfs": {"host", "port", "user", "replication", "buffer_size", "default_block_size", "kerb_ticket", "extra_conf"},
}  # fmt: skip
_PROXY = ("scheme", "host", "port")
_METADATA = ("acl", "cache-control", "content-type", "content-language", "expires")  # of objects; others may be keys
_SECRET = re.compile(r"secret|passw|pwd|token|key|credential|sas|auth|sign|connection_string|cookie", re.IGNORECASE)


@dataclass(frozen=True)
class SentFileSystem:
    """A filesystem in the form that is sent."""

    make: Any  # the callable in pyarrow's own pickle
    arguments: tuple[Any, ...]
    kind: str

    def opened(self) -> pafs.FileSystem:
        """Open the filesystem in this process. Raises AccessDenied if the credentials found here are not enough."""
        try:
            opened = self.make(*map(received, self.arguments))
            return with_key_of_environment(opened) if self.kind == "abfs" else opened
        except (OSError, ValueError, pa.ArrowException) as error:
            raise AccessDenied(
                f"cannot open a filesystem of {self.kind} here: {without_secrets(str(error))}. {ENVIRONMENT}"
            ) from None


@dataclass(frozen=True)
class SentOptions:
    """An fsspec filesystem, or a class of filesystems and its options."""

    kind: Any
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]

    def opened(self) -> Any:
        """Open the filesystem in this process."""
        return self.kind(*map(received, self.arguments), **{k: received(v) for k, v in self.options.items()})


def sent(filesystem: pafs.FileSystem) -> Any:
    """Return the form of a filesystem to send to another process; local and unknown ones are sent unchanged."""
    match filesystem:
        case pafs.SubTreeFileSystem():
            return SentFileSystem(
                pafs.SubTreeFileSystem, (filesystem.base_path, sent(filesystem.base_fs)), "part of another"
            )
        case pafs.PyFileSystem() if type(filesystem.handler) is pafs.FSSpecHandler:
            handler = SentFileSystem(pafs.FSSpecHandler, (_without_options(filesystem.handler.fs),), "fsspec")
            return SentFileSystem(pafs.PyFileSystem, (handler,), "fsspec")
        case _ if filesystem.type_name in _SENT:
            make, _ = filesystem.__reduce__()
            return SentFileSystem(make, (plain_settings(filesystem),), filesystem.type_name)
        case _:
            return filesystem


def received(value: Any) -> Any:
    """Return the filesystem that was sent, in the receiving process."""
    return value.opened() if isinstance(value, SentFileSystem | SentOptions) else value


def plain_settings(filesystem: pafs.FileSystem) -> dict[str, Any]:
    """Return the settings of a filesystem without credentials."""
    return plain(filesystem.type_name, settings_of(filesystem))


def plain(kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those settings of a kind of filesystem that are not secret."""
    sent = {name: value for name, value in settings.items() if name in _SENT[kind]}
    if sent.get("endpoint_override"):
        sent["endpoint_override"] = sent["endpoint_override"].rpartition("@")[2]
    if sent.get("proxy_options"):
        proxy = sent["proxy_options"]
        sent["proxy_options"] = {name: proxy[name] for name in _PROXY} if proxy["host"] else None
    if sent.get("default_metadata"):
        metadata = {_text(name): _text(value) for name, value in dict(sent["default_metadata"]).items()}
        sent["default_metadata"] = {name: metadata[name] for name in metadata if name.lower() in _METADATA}
    if sent.get("extra_conf"):
        sent["extra_conf"] = {k: v for k, v in dict(sent["extra_conf"]).items() if not _SECRET.search(_text(k))}
    return sent


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _without_options(filesystem: Any) -> Any:
    """Return an fsspec filesystem by class and options, without options named like secrets."""
    options = {name: _plain_option(value) for name, value in filesystem.storage_options.items() if _is_sent(name)}
    return SentOptions(type(filesystem), tuple(map(_plain_option, filesystem.storage_args)), options)


def _plain_option(value: Any) -> Any:
    if hasattr(value, "storage_options"):
        return _without_options(value)
    if isinstance(value, Mapping):
        return {name: _plain_option(option) for name, option in value.items() if _is_sent(str(name))}
    return without_secrets(value) if isinstance(value, str) else value


def _is_sent(name: str) -> bool:
    return not _SECRET.search(name)
