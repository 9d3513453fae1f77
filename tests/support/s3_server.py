"""The local S3 server for tests: behind a gate that fails some requests too."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from secateur.demo.s3_server import ACCESS_KEY, REGION, Gate, LocalS3, Start, reserved_port, serving, set_environment

__all__ = ["ACCESS_KEY", "REGION", "reserved_port", "set_environment"]

Fails = Callable[[str, str], bool]  # of a method and a path

HANGS = 5.0  # seconds, more than clients wait that are told to be quick
SLOW = 1.0  # seconds, less than that
_ERROR = "<?xml version='1.0'?><Error><Code>{}</Code><Message>injected</Message></Error>"
_FAILED = ("500 Internal Server Error", _ERROR.format("InternalError").encode())
_DENIED = ("403 Forbidden", _ERROR.format("AccessDenied").encode())


@dataclass
class FaultyGate(Gate):
    """A gate that fails the requests that a test chooses.

    How they fail: ``status`` with a 500, ``denied`` with a 403; ``hang`` without an answer for a while, and then none
    at all; ``lost`` as 500, but what was asked for is done, and no further request fails; ``slow`` answers after a
    second; of ``cut`` half of the answer comes.
    """

    fails: Fails = lambda method, path: False
    how: str = "status"
    failed: int = 0
    access_key: str = ""  # of the last request
    token: str = ""  # the session token of the last request
    seen: set[tuple[str, str, str]] = field(default_factory=set)  # methods and paths of requests, and access keys

    def answer(self, environ: dict[str, Any], start: Start) -> tuple[bytes, Iterable[bytes]]:
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


@dataclass(frozen=True)
class S3Server(LocalS3):
    """The server with what tests ask of it."""

    gate: FaultyGate

    def keys_of(self, method: str, root: str, ending: str) -> set[str]:
        """The access keys of all requests so far of a method, for names below a root that have an ending."""
        seen = ((path, key) for asked, path, key in self.gate.seen if asked == method and path.endswith(ending))
        return {key for path, key in seen if path.startswith(f"/{root}/")}

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


@contextmanager
def s3_server(bound: socket.socket, bucket: str) -> Iterator[S3Server]:
    """A server at a port that is bound, with a bucket."""
    with serving(bound, bucket, FaultyGate) as running:
        yield S3Server(running.port, running.gate, running.bucket)
