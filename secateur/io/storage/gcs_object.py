"""Objects of Google's cloud storage for obstore's client: pyarrow's settings in obstore's words.

Credentials are looked for where pyarrow looks: a file that ``GOOGLE_APPLICATION_CREDENTIALS`` names, that of ``gcloud
auth application-default login``, the machine's metadata service. If they are of a kind that obstore does not support
(an external account, an impersonated one), there is no client.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs

from secateur.io.storage.filesystem_settings import settings_of
from secateur.io.storage.object_client import StoredObject, options_for

_FILE_VARIABLE, _EMULATOR = "GOOGLE_APPLICATION_CREDENTIALS", "CLOUD_STORAGE_EMULATOR_ENDPOINT"
_WELL_KNOWN = Path(".config", "gcloud", "application_default_credentials.json")
_TAKEN = ("service_account", "authorized_user")  # kinds of credentials
_ONLY_OBSTORE = ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_BEARER_TOKEN", "GOOGLE_SKIP_SIGNATURE")  # names begin so
_SERVICE = "https://storage.googleapis.com"


def gcs_object(filesystem: pafs.GcsFileSystem, path: str) -> StoredObject | None:
    """Return a path of pyarrow's GCS filesystem as an object; None for credentials that obstore does not support."""
    settings = settings_of(filesystem)
    credentials = _credentials(settings)
    if credentials is None:
        return None
    endpoint = _endpoint(settings)
    bucket, _, key = path.partition("/")
    return StoredObject("gcs", bucket, key, {"base_url": endpoint, **credentials}, options_for(endpoint))


def _endpoint(settings: Mapping[str, Any]) -> str:
    if override := settings["endpoint_override"]:
        return override if "://" in override else f"{settings['scheme'] or 'https'}://{override}"
    return os.environ.get(_EMULATOR) or _SERVICE


def _credentials(settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what tells obstore where to find the credentials; None if it cannot get them."""
    if settings["target_service_account"]:
        return None
    if settings["anonymous"]:
        return {"skip_signature": True}
    if settings["access_token"]:
        return {"bearer_token": settings["access_token"], "skip_signature": False}
    if any(name.startswith(_ONLY_OBSTORE) for name in os.environ):  # pyarrow does not read these
        return None
    file = os.environ.get(_FILE_VARIABLE) or str(Path.home() / _WELL_KNOWN)
    if not os.path.exists(file):
        return {"skip_signature": False}  # of the machine
    return {"application_credentials": file, "skip_signature": False} if _kind(file) in _TAKEN else None


def _kind(file: str) -> object:
    try:
        return json.loads(Path(file).read_text(encoding="utf-8")).get("type")
    except (OSError, ValueError, AttributeError):
        return None
