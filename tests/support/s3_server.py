"""A local S3 server: moto behind a gate that delays requests, counts them, and fails some of them.

The gate handles requests one after the other: S3 orders conditional puts of one name, moto with several threads
does not.
"""

from __future__ import annotations

import io
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.s3_traffic import Request, Traffic, described

ACCESS_KEY, SECRET_KEY = "AKIATESTONLYTESTONLY", "test-only-secret-of-no-account"
REGION = "eu-central-1"
Start = Callable[..., Any]  # of a WSGI response
Fails = Callable[[str, str], bool]  # of a method and a path

HANGS = 5.0  # seconds, more than clients wait that are told to be quick
SLOW = 1.0  # seconds, less than that
_ERROR = "<?xml version='1.0'?><Error><Code>{}</Code><Message>injected</Message></Error>"
_FAILED = ("500 Internal Server Error", _ERROR.format("InternalError").encode())
_DENIED = ("403 Forbidden", _ERROR.format("AccessDenied").encode())


@dataclass
class Gate:
    """What stands before the server: it delays requests, fails those that a test chooses, and keeps account of all.

    Requests wait for the latency at the same time, and are then decided one after the other. How they fail: ``status``
    with a 500, ``denied`` with a 403; ``hang`` without an answer for a while, and then none at all; ``lost`` as 500,
    but what was asked for is done, and no further request fails; ``slow`` answers after a second; of ``cut`` half of
    the answer comes.
    """

    inner: Any
    fails: Fails = lambda method, path: False
    how: str = "status"
    latency: float = 0.0  # seconds that are added to every request
    failed: int = 0
    access_key: str = ""  # of the last request
    token: str = ""  # the session token of the last request
    seen: set[tuple[str, str, str]] = field(default_factory=set)  # methods and paths of requests, and access keys
    requests: list[Request] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        came, what, status, size = time.perf_counter(), described(environ), 0, 0
        requests = self.requests  # of now: a request that hangs may be answered while others are counted

        def answered(line: str, *rest: Any) -> Any:
            nonlocal status
            status = int(line.partition(" ")[0])
            return start(line, *rest)

        try:
            body = _body(environ)
            environ |= {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
            time.sleep(self.latency)
            answer, parts = self._answer(environ, answered)
            size = 0 if what[0] == "HEAD" else len(answer)
            return parts
        finally:
            requests.append(Request(*what, status, size, came, time.perf_counter()))

    def _answer(self, environ: dict[str, Any], start: Start) -> tuple[bytes, Iterable[bytes]]:
        """The body of the answer, and how it is sent."""
        _, _, signed = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")
        answer = b""
        with self._lock:
            self.access_key = signed.partition("/")[0]
            self.token = environ.get("HTTP_X_AMZ_SECURITY_TOKEN", "")
            self.seen.add((environ["REQUEST_METHOD"], environ["PATH_INFO"], self.access_key))
            failing = self.fails(environ["REQUEST_METHOD"], environ["PATH_INFO"])
            self.failed += failing
            how = self.how if failing else ""
            if how in ("", "slow", "cut"):
                answer = b"".join(self.inner(environ, start))
            elif how == "lost":
                self.fails = lambda method, path: False
                b"".join(self.inner(environ, lambda *answer: None))
        match how:
            case "":
                return answer, [answer]
            case "slow":
                time.sleep(SLOW)
                return answer, [answer]
            case "cut":
                return answer, _half(answer)
            case "hang":
                time.sleep(HANGS)
                raise ConnectionAbortedError("injected")
            case _:
                status, answer = _DENIED if how == "denied" else _FAILED
                start(status, [("Content-Type", "text/xml"), ("Content-Length", str(len(answer)))])
                return answer, [answer]


def _half(answer: bytes) -> Iterator[bytes]:
    yield answer[: len(answer) // 2]
    raise ConnectionAbortedError("injected")


def _body(environ: dict[str, Any]) -> bytes:
    """The whole body of a request. Raises ConnectionAbortedError where it ends too early."""
    if environ.pop("HTTP_TRANSFER_ENCODING", "") == "chunked":
        return bytes(environ["wsgi.input"].read())
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body: bytes = environ["wsgi.input"].read(length)
    if len(body) < length:
        raise ConnectionAbortedError("the request ends within its body")
    return body


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

    def keys_of(self, method: str, root: str, ending: str) -> set[str]:
        """The access keys of all requests so far of a method, for names below a root that have an ending."""
        seen = ((path, key) for own, path, key in self.gate.seen if own == method and path.endswith(ending))
        return {key for path, key in seen if path.startswith(f"/{root}/")}

    @contextmanager
    def traffic(self, latency: float = 0.0) -> Iterator[Traffic]:
        """The requests that come meanwhile; each takes `latency` seconds more than it would."""
        self.gate.requests = found = list[Request]()
        self.gate.latency = latency
        try:
            yield Traffic(found)
        finally:
            self.gate.requests, self.gate.latency = [], 0.0

    def names(self, prefix: str = "") -> list[str]:
        """The keys in the bucket."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        return [item["Key"] for page in pages for item in page.get("Contents", ())]

    @contextmanager
    def failing(self, fails: Fails, how: str = "status") -> Iterator[Gate]:
        """Some requests fail meanwhile."""
        self.gate.fails, self.gate.how, self.gate.failed = fails, how, 0
        try:
            yield self.gate
        finally:
            self.gate.fails = lambda method, path: False

    def send_half_a_put(self, key: str, data: bytes) -> None:
        """A put of a client that dies within it."""
        url = self.client.generate_presigned_url("put_object", {"Bucket": self.bucket, "Key": key})
        path = url.removeprefix(self.endpoint)
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            head = f"PUT {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Length: {len(data)}\r\n\r\n"
            connection.sendall(head.encode() + data[: len(data) // 2])


def every(n: int, *, first: int | None = None) -> Fails:
    """Every n-th request, the first of them the n-th unless another is named."""
    count = n - (n if first is None else first)

    def fails(method: str, path: str) -> bool:
        nonlocal count
        count += 1
        return count % n == 0

    return fails


def once(ending: str) -> Fails:
    """The first request for a name with an ending."""
    done = False

    def fails(method: str, path: str) -> bool:
        nonlocal done
        failing = not done and path.endswith(ending)
        done |= failing
        return failing

    return fails


def reserved_port() -> socket.socket:
    """A socket bound to a free port of this machine."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    return bound


def environment_of(port: int) -> dict[str, str]:
    """What clients of S3 take from the environment."""
    return {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def set_environment(port: int) -> None:
    """Lead clients to a server: the JVM of Spark has to be started after."""
    os.environ.update(environment_of(port))


@contextmanager
def s3_server(bound: socket.socket, bucket: str) -> Iterator[S3Server]:
    """A server at a port that is bound, with a bucket."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
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
