"""Access to S3 objects by the library obstore, which can do what pyarrow's filesystems cannot.

It creates an object conditionally, and reads a range by one request, whose response has the object's size, time and
tag. It gets the settings of a pyarrow filesystem, and takes credentials from where pyarrow takes them. If credentials
or settings are of a kind that obstore does not support (an assumed role, an SSO or process profile, a custom
certificate authority), there is no client, and pyarrow is used.
"""

from __future__ import annotations

import configparser
import datetime as dt
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow.fs as pafs

from secateur.io.storage.byte_ranges import LONGEST
from secateur.io.storage.filesystem_settings import settings_of

if TYPE_CHECKING:
    from obstore.store import S3Store

LEAST_TIMEOUT = 30.0  # seconds for one attempt; obstore's default
BYTES_PER_SECOND = 1e6  # of a slow connection; extends the timeout of an attempt
READ_TIMEOUT = 10.0  # seconds without a byte of a response
RETRIES = 5  # after about 0.1 to 1.6 seconds each
LONGEST_PAUSE = 2.0  # seconds
CLIENTS = 32  # that are cached, with their connections
_NOT_TAKEN = ("role_arn", "tls_ca_file_path")  # settings without a counterpart in obstore
_NOT_TAKEN_PROFILES = ("role_arn", "credential_process", "sso_session", "sso_start_url")
_KEYS = {"access_key": "access_key_id", "secret_key": "secret_access_key", "session_token": "token"}
_PROFILE_KEYS = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "token",
}
_IN_ENVIRONMENT = (  # where obstore finds credentials before it asks the machine
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_PROXY = ("scheme", "host", "port")
_TIMEOUTS = {"connect_timeout": "connect_timeout", "request_timeout": "read_timeout"}
Options: TypeAlias = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class S3Object:
    """An object of a store with S3's interface, and the settings of its client."""

    bucket: str
    key: str
    config: Mapping[str, Any]
    client: Mapping[str, Any]
    credentials: Mapping[str, Any]  # empty if obstore finds them itself
    timeouts: Mapping[str, float]  # of reads, in seconds, if set


class _Process:
    """Whether clients work in this process: obstore's threads do not survive a fork."""

    used = False
    is_cut_off = False


def is_cut_off() -> bool:
    """Return whether this process was forked from one that had clients, which do not work here."""
    return _Process.is_cut_off


def _forked() -> None:
    _Process.is_cut_off = _Process.is_cut_off or _Process.used


os.register_at_fork(after_in_child=_forked)


def reading_client(target: S3Object) -> S3Store:
    """Return the client that reads an object, cached with its connections for others of the bucket."""
    return _client_for(
        target, LEAST_TIMEOUT + LONGEST / BYTES_PER_SECOND, {"read_timeout": READ_TIMEOUT, **target.timeouts}
    )


def writing_client(target: S3Object, size: int) -> S3Store:
    """Return the client for a put of `size` bytes."""
    return _client_for(target, LEAST_TIMEOUT + size / BYTES_PER_SECOND, {})


def _client_for(target: S3Object, timeout: float, timeouts: Mapping[str, float]) -> S3Store:
    _Process.used = True
    seconds = {name: f"{value:.3f}s" for name, value in {**timeouts, "timeout": timeout}.items()}
    environment = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    options = (target.config, {**target.client, **seconds}, target.credentials, environment)
    return _client(target.bucket, *(tuple(sorted(group.items())) for group in options))


@lru_cache(CLIENTS)
def _client(bucket: str, config: Options, client: Options, credentials: Options, environment: Options) -> S3Store:
    """Return a cached client; `environment` holds what obstore reads there itself, so a change makes a new client."""
    from obstore.store import S3Store

    given: Any = {**dict(credentials), "expires_at": None}
    provider = (lambda: given) if credentials else None  # so that no session token of the environment is added
    options: Any = dict(client)
    settings: Any = dict(config)
    backoff: Any = {"max_backoff": dt.timedelta(seconds=LONGEST_PAUSE)}
    return S3Store(
        bucket,
        config=settings,
        client_options=options,
        retry_config={"max_retries": RETRIES, "backoff": backoff},
        credential_provider=provider,
    )


def s3_object(filesystem: pafs.FileSystem, path: str) -> S3Object | None:
    """Return a path of pyarrow's S3 filesystem as an object; None for another filesystem, or unsupported settings."""
    if filesystem.type_name != "s3" or is_cut_off():
        return None
    settings = settings_of(filesystem)
    credentials = _credentials(settings)
    proxy = settings.get("proxy_options") or {}
    if credentials is None or any(settings.get(name) for name in _NOT_TAKEN) or proxy.get("username"):
        return None
    bucket, _, key = path.partition("/")
    region = filesystem.region
    endpoint = _endpoint(settings, region, bucket)
    config = {  # complete, because obstore takes missing settings from the environment
        "region": region,
        "virtual_hosted_style_request": bool(settings["force_virtual_addressing"]),
        "skip_signature": bool(settings["anonymous"]),
        "conditional_put": "etag",
    }
    config |= {} if endpoint is None else {"endpoint": endpoint}
    client: dict[str, Any] = {"allow_http": True} if (endpoint or "").startswith("http://") else {}
    if proxy.get("host"):
        client["proxy_url"] = "{}://{}:{}".format(*(proxy[name] for name in _PROXY))
    timeouts = {option: settings[name] for name, option in _TIMEOUTS.items() if settings.get(name, -1) > 0}
    return S3Object(bucket, key, config, client, credentials, timeouts)


def _endpoint(settings: Mapping[str, Any], region: str, bucket: str) -> str | None:
    """Return the endpoint; None for AWS. The environment's endpoint is pyarrow's only if its settings have it."""
    endpoint = settings["endpoint_override"]
    if not endpoint:
        ending = ".cn" if region.startswith("cn-") else ""
        from_environment = any(name.startswith("AWS_ENDPOINT") for name in os.environ)
        return f"https://s3.{region}.amazonaws.com{ending}" if from_environment else None
    scheme, separator, host = endpoint.partition("://")
    if not separator:
        scheme, host = settings["scheme"], endpoint
    return f"{scheme}://{bucket}.{host}" if settings["force_virtual_addressing"] else f"{scheme}://{host}"


def _credentials(settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return credentials for obstore, empty if it finds them itself; None if it cannot get them."""
    if settings["access_key"]:
        return {name: settings[key] for key, name in _KEYS.items() if settings[key]}
    if settings["anonymous"] or os.environ.get("AWS_ACCESS_KEY_ID"):
        return {}
    profile = _profile()
    if "aws_access_key_id" in profile and "role_arn" not in profile:
        return {name: profile[key] for key, name in _PROFILE_KEYS.items() if key in profile}
    if any(name in profile for name in _NOT_TAKEN_PROFILES):
        return None
    return {} if _may_ask_machine() or any(os.environ.get(name) for name in _IN_ENVIRONMENT) else None


def _may_ask_machine() -> bool:
    """Return whether the machine's metadata service may be asked for credentials; obstore does so regardless."""
    return os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() != "true"


def _profile() -> Mapping[str, str]:
    """Return the environment's profile from the files of AWS's tools: its keys, or how to get them."""
    name = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or "default"
    profile: dict[str, str] = {}
    for variable, file, section in (
        ("AWS_CONFIG_FILE", "config", name if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", name),
    ):
        parser = configparser.RawConfigParser()
        try:
            parser.read(os.environ.get(variable) or Path.home() / ".aws" / file, encoding="utf-8")
        except (configparser.Error, OSError, RuntimeError, UnicodeError):
            continue
        profile |= dict(parser[section]) if parser.has_section(section) else {}
    return profile
