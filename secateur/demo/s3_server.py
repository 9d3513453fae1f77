"""An S3 server on this machine: moto behind a gate that delays and records requests.

The gate passes requests to moto one at a time, because S3 orders conditional puts of one name, and moto with several
threads does not.
"""

from __future__ import annotations

import io
import logging
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from secateur.demo.s3_traffic import Request, Traffic, described

ACCESS_KEY, SECRET_KEY = "AKIATESTONLYTESTONLY", "test-only-secret-of-no-account"
REGION = "eu-central-1"
WAITING = 128  # connections
Start = Callable[..., Any]  # of a WSGI response


@dataclass
class Gate:
    """Delays requests to a server: they wait for the latency in parallel, then are answered one at a time."""

    inner: Any
    latency: float = 0.0  # seconds that are added to every request
    requests: list[Request] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        came, description, status, size = time.perf_counter(), described(environ), 0, 0
        requests = self.requests  # the current list: a request that hangs may be answered during the next measurement

        def answered(line: str, *rest: Any) -> Any:
            nonlocal status
            status = int(line.partition(" ")[0])
            return start(line, *rest)

        try:
            body = _body(environ)
            environ |= {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
            time.sleep(self.latency)
            answer, parts = self.answer(environ, answered)
            size = 0 if description[0] == "HEAD" else len(answer)
            return parts
        finally:
            requests.append(Request(*description, status, size, came, time.perf_counter()))

    def answer(self, environ: dict[str, Any], start: Start) -> tuple[bytes, Iterable[bytes]]:
        """Return the body of the answer, and how it is sent."""
        with self._lock:
            answer = b"".join(self.inner(environ, start))
        return answer, [answer]


def _body(environ: dict[str, Any]) -> bytes:
    """Return the whole body of a request. Raises ConnectionAbortedError if it ends too early."""
    if environ.pop("HTTP_TRANSFER_ENCODING", "") == "chunked":
        return bytes(environ["wsgi.input"].read())
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body: bytes = environ["wsgi.input"].read(length)
    if len(body) < length:
        raise ConnectionAbortedError("the request ends within its body")
    return body


@dataclass
class LakeGate(Gate):
    """A gate that serves the objects of a fixed table itself, several at once: moto takes some 5 ms for each."""

    objects: dict[str, bytes] = field(default_factory=dict)  # by path: /bucket/key
    headers: dict[str, dict[str, str]] = field(default_factory=dict)

    def answer(self, environ: dict[str, Any], start: Start) -> tuple[bytes, Iterable[bytes]]:
        """Return the body of the answer, and how it is sent."""
        data = self.objects.get(environ["PATH_INFO"]) if environ["REQUEST_METHOD"] == "GET" else None
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", environ.get("HTTP_RANGE", ""))
        if data is None or asked is None or environ.get("QUERY_STRING"):
            return super().answer(environ, start)
        first, last = asked.groups()
        begin = int(first) if first else max(len(data) - int(last), 0)
        end = min(int(last) + 1, len(data)) if first and last else len(data)
        part = data[begin:end]
        headers = {
            "Content-Length": str(len(part)),
            "Content-Range": f"bytes {begin}-{end - 1}/{len(data)}",
            **self.headers[environ["PATH_INFO"]],
        }
        start("206 Partial Content", list(headers.items()))
        return part, [part]

    def put_files(self, bucket: str, prefix: str, directory: Path) -> None:
        """Put the Parquet files of a directory into moto, without requests."""
        from moto.core.models import DEFAULT_ACCOUNT_ID
        from moto.s3.models import s3_backends

        backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        for file in sorted(directory.glob("*.parquet")):
            data, path = file.read_bytes(), f"/{bucket}/{prefix}/{file.name}"
            put = backend.put_object(bucket, path.removeprefix(f"/{bucket}/"), data)
            self.objects[path] = data
            self.headers[path] = {
                "ETag": put.etag,
                "Last-Modified": put.last_modified_RFC1123,
                "Accept-Ranges": "bytes",
            }


@dataclass(frozen=True)
class LocalS3:
    """A running server, and an existing bucket on it."""

    port: int
    gate: Any
    bucket: str

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def client(self) -> Any:
        """A boto3 client with the server's credentials."""
        import boto3

        keys = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY}
        return boto3.client("s3", endpoint_url=self.endpoint, region_name=REGION, **keys)

    @contextmanager
    def traffic(self, latency: float = 0.0) -> Iterator[Traffic]:
        """Yield the requests that arrive meanwhile; each takes `latency` seconds more."""
        self.gate.requests = requests = list[Request]()
        self.gate.latency = latency
        try:
            yield Traffic(requests)
        finally:
            self.gate.requests, self.gate.latency = [], 0.0


def reserved_port() -> socket.socket:
    """Return a socket bound to a free port of this machine."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    return bound


def environment_of(port: int) -> dict[str, str]:
    """Return the environment variables that S3 clients read."""
    return {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def set_environment(port: int) -> None:
    """Point clients to a server. Spark's JVM has to be started after this."""
    os.environ.update(environment_of(port))


@contextmanager
def serving(bound: socket.socket, bucket: str, gate: Callable[[Any], Gate] = Gate) -> Iterator[LocalS3]:
    """Yield a server at a port that is bound, with a bucket, behind a gate."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it logs every request
    bound.listen(WAITING)
    port = bound.getsockname()[1]
    before = gate(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", port, before, threaded=True, fd=bound.fileno())
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    running = LocalS3(port, before, bucket)
    try:
        running.client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        yield running
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
