"""Access to objects of stores by the library obstore, which can do what pyarrow's filesystems cannot.

It creates an object conditionally, and reads a range by one request, whose response has the object's size, time and
tag. It gets the settings of a pyarrow filesystem (:mod:`secateur.io.storage.stored_object`).
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from secateur.io.storage.byte_ranges import LONGEST

if TYPE_CHECKING:
    from obstore.store import AzureStore, GCSStore, S3Store

    Client: TypeAlias = S3Store | AzureStore | GCSStore

LEAST_TIMEOUT = 30.0  # seconds for one attempt; obstore's default
BYTES_PER_SECOND = 1e6  # of a slow connection; extends the timeout of an attempt
READ_TIMEOUT = 10.0  # seconds without a byte of a response
RETRIES = 5  # after about 0.1 to 1.6 seconds each
LONGEST_PAUSE = 2.0  # seconds
CLIENTS = 32  # that are cached, with their connections
_VARIABLES = {"s3": "AWS_", "azure": "AZURE_", "gcs": "GOOGLE_"}  # begin the names that obstore reads itself
Kind: TypeAlias = Literal["s3", "azure", "gcs"]
Options: TypeAlias = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class StoredObject:
    """An object of a store, and the settings of its client."""

    kind: Kind
    bucket: str  # on Azure the container
    key: str
    config: Mapping[str, Any]
    client: Mapping[str, Any]
    credentials: Mapping[str, Any] = field(default_factory=dict)  # of S3; empty if obstore finds them itself
    timeouts: Mapping[str, float] = field(default_factory=dict)  # of reads, in seconds, if set

    @property
    def answers_suffixes(self) -> bool:
        """Whether the store answers a request for the last bytes. Azure does not."""
        return self.kind != "azure"


def options_for(endpoint: str) -> dict[str, Any]:
    """Return the options of a client of an endpoint: only a test server, or one of a private network, has no TLS."""
    return {"allow_http": True} if endpoint.startswith("http://") else {}


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


def reading_client(target: StoredObject) -> Client:
    """Return the client that reads an object, cached with its connections for others of the bucket."""
    return _client_for(
        target, LEAST_TIMEOUT + LONGEST / BYTES_PER_SECOND, {"read_timeout": READ_TIMEOUT, **target.timeouts}
    )


def writing_client(target: StoredObject, size: int) -> Client:
    """Return the client for a put of `size` bytes."""
    return _client_for(target, LEAST_TIMEOUT + size / BYTES_PER_SECOND, {})


def _client_for(target: StoredObject, timeout: float, timeouts: Mapping[str, float]) -> Client:
    _Process.used = True
    seconds = {name: f"{value:.3f}s" for name, value in {**timeouts, "timeout": timeout}.items()}
    environment = {name: value for name, value in os.environ.items() if name.startswith(_VARIABLES[target.kind])}
    options = (target.config, {**target.client, **seconds}, target.credentials, environment)
    return _client(target.kind, target.bucket, *(tuple(sorted(group.items())) for group in options))


@lru_cache(CLIENTS)
def _client(
    kind: Kind, bucket: str, config: Options, client: Options, credentials: Options, environment: Options
) -> Client:
    """Return a cached client; `environment` holds what obstore reads there itself, so a change makes a new client."""
    from obstore.store import AzureStore, GCSStore, S3Store

    backoff: Any = {"max_backoff": dt.timedelta(seconds=LONGEST_PAUSE)}
    settings: Any = dict(config)
    options: dict[str, Any] = {
        "client_options": dict(client),
        "retry_config": {"max_retries": RETRIES, "backoff": backoff},
    }
    match kind:
        case "azure":
            return AzureStore(bucket, config=settings, **options)
        case "gcs":
            return GCSStore(bucket, config=settings, **options)
        case _:
            given: Any = {**dict(credentials), "expires_at": None}
            provider = (lambda: given) if credentials else None  # so that no session token of the environment is added
            return S3Store(bucket, config=settings, credential_provider=provider, **options)
