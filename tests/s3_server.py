"""An S3 server on this machine: moto's, behind a gate that decides one request after the other and fails some of them.

S3 itself decides conditional puts of one name one after the other; moto, asked by many threads, does not.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

ACCESS_KEY, SECRET_KEY = "AKIATESTONLYTESTONLY", "test-only-secret-of-no-account"
REGION = "eu-central-1"
Start = Callable[..., Any]  # of a WSGI response
Fails = Callable[[str, str], bool]  # of a method and a path

_ERROR = b"<?xml version='1.0'?><Error><Code>InternalError</Code><Message>injected</Message></Error>"


@dataclass
class Gate:
    """What stands before the server: it counts requests, and fails those that a test chooses."""

    inner: Any
    fails: Fails = lambda method, path: False
    hangs: float = 0.0  # seconds that a failing request waits, and is then answered by nothing
    failed: int = 0
    puts: dict[str, int] = field(default_factory=dict)  # conditional ones, by name
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        with self._lock:
            if "HTTP_IF_NONE_MATCH" in environ:
                self.puts[path] = self.puts.get(path, 0) + 1
            if not self.fails(method, path):
                return [b"".join(self.inner(environ, start))]
            self.failed += 1
        if self.hangs:
            time.sleep(self.hangs)
            raise ConnectionAbortedError("injected")
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        start("500 Internal Server Error", [("Content-Type", "text/xml"), ("Content-Length", str(len(_ERROR)))])
        return [_ERROR]


@dataclass(frozen=True)
class S3Server:
    """A server that runs, and a bucket of it that is there."""

    port: int
    gate: Gate
    bucket: str

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def client(self) -> Any:
        """A client of boto3, whose credentials are those of the server."""
        import boto3

        keys = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY}
        return boto3.client("s3", endpoint_url=self.endpoint, region_name=REGION, **keys)

    def names(self, prefix: str = "") -> list[str]:
        """The keys in the bucket."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        return [item["Key"] for page in pages for item in page.get("Contents", ())]

    @contextmanager
    def failing(self, fails: Fails, *, hangs: float = 0.0) -> Iterator[Gate]:
        """Some requests fail meanwhile: with status 500, or with `hangs` after so many seconds without an answer."""
        self.gate.fails, self.gate.hangs, self.gate.failed = fails, hangs, 0
        try:
            yield self.gate
        finally:
            self.gate.fails, self.gate.hangs = (lambda method, path: False), 0.0


def every(n: int) -> Fails:
    """Every n-th request."""
    count = 0

    def fails(method: str, path: str) -> bool:
        nonlocal count
        count += 1
        return count % n == 0

    return fails


def reserved_port() -> socket.socket:
    """A socket bound to a free port of this machine."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    return bound


def set_environment(port: int) -> None:
    """What clients of S3 take from the environment: the JVM of Spark has to be started after."""
    os.environ.update(
        AWS_ACCESS_KEY_ID=ACCESS_KEY,
        AWS_SECRET_ACCESS_KEY=SECRET_KEY,
        AWS_REGION=REGION,
        AWS_DEFAULT_REGION=REGION,
        AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}",
        AWS_EC2_METADATA_DISABLED="true",
    )


@contextmanager
def s3_server(bound: socket.socket, bucket: str) -> Iterator[S3Server]:
    """A server at a port that is bound, with a bucket."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it says every request
    bound.listen(128)
    port = bound.getsockname()[1]
    gate = Gate(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", port, gate, threaded=True, fd=bound.fileno())
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    running = S3Server(port, gate, bucket)
    try:
        running.client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        yield running
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
