"""Creating an object only where there is none of its name: a put with ``If-None-Match: *``.

pyarrow's filesystems overwrite. The library obstore puts on a condition; it is told here what a filesystem of pyarrow
was made with, and takes credentials from where pyarrow takes them. S3 and stores of its interface are asked so. Of
other stores, and where a filesystem's credentials or settings are of a kind that obstore does not take (an assumed
role, an SSO or process profile, an own certificate authority), nothing is created here.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.fs as pafs

from secateur.io.filesystem_settings import innermost, settings_of

if TYPE_CHECKING:
    from obstore.store import S3Store

LEAST_TIMEOUT = 30.0  # seconds for one attempt, as obstore has it
BYTES_PER_SECOND = 1e6  # of a slow line; an attempt gets as many seconds more as it takes
_NOT_TAKEN = ("role_arn", "tls_ca_file_path")  # settings that obstore has no counterpart of
_NOT_TAKEN_PROFILES = ("role_arn", "credential_process", "sso_session", "sso_start_url")
_KEYS = {"access_key": "access_key_id", "secret_key": "secret_access_key", "session_token": "token"}
_PROFILE_KEYS = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "token",
}
_PROXY = ("scheme", "host", "port")


@dataclass(frozen=True)
class S3Object:
    """An object of a store with S3's interface, and what its client is made with."""

    bucket: str
    key: str
    config: Mapping[str, Any]
    client: Mapping[str, Any]
    credentials: Mapping[str, Any]  # empty where obstore finds them itself


def create_object(filesystem: pafs.FileSystem, path: str, data: bytes) -> bool | None:
    """Create an object whole: True if it was created, False if there is one, None where the store is not asked so.

    An attempt whose answer was lost is made again, and then finds what it had created: False does not say by whom.
    Raises OSError where the store refuses, or is not reached.
    """
    target = s3_object(*innermost(filesystem, path))
    if target is None:
        return None
    import obstore
    from obstore.exceptions import AlreadyExistsError, BaseError

    try:
        store = _s3_store(target, LEAST_TIMEOUT + len(data) / BYTES_PER_SECOND)
        obstore.put(store, target.key, data, mode="create", use_multipart=False)
    except AlreadyExistsError:
        return False
    except BaseError as error:
        raise OSError(str(error).partition("\n")[0]) from None
    return True


def _s3_store(target: S3Object, seconds: float) -> S3Store:
    from obstore.store import S3Store

    client: Any = {**target.client, "timeout": f"{seconds:.0f}s"}
    config: Any = dict(target.config)
    given: Any = {**target.credentials, "expires_at": None}
    provider = (lambda: given) if target.credentials else None  # so that no token of the environment joins its keys
    return S3Store(target.bucket, config=config, client_options=client, credential_provider=provider)


def s3_object(filesystem: pafs.FileSystem, path: str) -> S3Object | None:
    """A path of pyarrow's S3 filesystem as an object; None for another filesystem, or one of untold settings."""
    if filesystem.type_name != "s3":
        return None
    settings = settings_of(filesystem)
    credentials = _credentials(settings)
    proxy = settings.get("proxy_options") or {}
    if credentials is None or any(settings.get(name) for name in _NOT_TAKEN) or proxy.get("username"):
        return None
    bucket, _, key = path.partition("/")
    region = filesystem.region
    endpoint = _endpoint(settings, region, bucket)
    config = {  # told in full, for obstore would take what is not told from the environment
        "region": region,
        "virtual_hosted_style_request": bool(settings["force_virtual_addressing"]),
        "skip_signature": bool(settings["anonymous"]),
        "conditional_put": "etag",
    }
    config |= {} if endpoint is None else {"endpoint": endpoint}
    client: dict[str, Any] = {"allow_http": True} if (endpoint or "").startswith("http://") else {}
    if proxy.get("host"):
        client["proxy_url"] = "{}://{}:{}".format(*(proxy[name] for name in _PROXY))
    return S3Object(bucket, key, config, client, credentials)


def _endpoint(settings: Mapping[str, Any], region: str, bucket: str) -> str | None:
    """Where requests go; None for AWS. The environment's endpoint is pyarrow's only where its settings have it."""
    told = settings["endpoint_override"]
    if not told:
        ending = ".cn" if region.startswith("cn-") else ""
        from_environment = any(name.startswith("AWS_ENDPOINT") for name in os.environ)
        return f"https://s3.{region}.amazonaws.com{ending}" if from_environment else None
    scheme, separator, host = told.partition("://")
    if not separator:
        scheme, host = settings["scheme"], told
    return f"{scheme}://{bucket}.{host}" if settings["force_virtual_addressing"] else f"{scheme}://{host}"


def _credentials(settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Credentials as obstore takes them, nothing where it finds them itself; None where it cannot have them."""
    if settings["access_key"]:
        return {name: settings[own] for own, name in _KEYS.items() if settings[own]}
    if settings["anonymous"] or os.environ.get("AWS_ACCESS_KEY_ID"):
        return {}
    profile = _profile()
    if "aws_access_key_id" in profile and "role_arn" not in profile:
        return {name: profile[own] for own, name in _PROFILE_KEYS.items() if own in profile}
    return None if any(name in profile for name in _NOT_TAKEN_PROFILES) else {}


def _profile() -> Mapping[str, str]:
    """The profile of the environment, as the files of AWS's tools have it: its keys, or how they are had."""
    name = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or "default"
    found: dict[str, str] = {}
    for variable, file, section in (
        ("AWS_CONFIG_FILE", "config", name if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", name),
    ):
        parser = configparser.RawConfigParser()
        try:
            parser.read(os.environ.get(variable) or Path.home() / ".aws" / file, encoding="utf-8")
        except (configparser.Error, OSError, RuntimeError, UnicodeError):
            continue
        found |= dict(parser[section]) if parser.has_section(section) else {}
    return found
