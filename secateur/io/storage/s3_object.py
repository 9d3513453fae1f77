"""Objects of S3, and of stores with its interface, for obstore's client: pyarrow's settings in obstore's words.

Credentials are taken from where pyarrow takes them. If credentials or settings are of a kind that obstore does not
support (an assumed role, an SSO or process profile, a custom certificate authority), there is no client.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs

from secateur.io.storage.filesystem_settings import settings_of
from secateur.io.storage.object_client import StoredObject, options_for

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


def s3_object(filesystem: pafs.S3FileSystem, path: str) -> StoredObject | None:
    """Return a path of pyarrow's S3 filesystem as an object; None for settings that obstore does not support."""
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
    client = options_for(endpoint or "")
    if proxy.get("host"):
        client["proxy_url"] = "{}://{}:{}".format(*(proxy[name] for name in _PROXY))
    timeouts = {option: settings[name] for name, option in _TIMEOUTS.items() if settings.get(name, -1) > 0}
    return StoredObject("s3", bucket, key, config, client, credentials, timeouts)


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
    import configparser  # takes milliseconds, which other tables need not spend

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
