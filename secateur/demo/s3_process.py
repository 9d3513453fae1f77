"""The S3 server as a process of its own; see :mod:`secateur.demo.partners`.

The question ``"port"`` is answered with the server's port. A prefix and a directory make it serve that directory's
files as objects. A number of seconds is added to every later request; the answer is the requests since the last
question of this kind.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from secateur.demo.limits import within
from secateur.demo.partners import Partner, answer_all, partner
from secateur.demo.s3_server import LakeGate, LocalS3, environment_of, reserved_port, serving, set_environment
from secateur.demo.s3_traffic import Request, Traffic

BUCKET = "lake"
MOST_SECONDS_TO_START = 60


@dataclass(frozen=True)
class RemoteServer:
    """The server, as seen from the process that started it."""

    partner: Partner

    @property
    def port(self) -> int:
        return int(self.partner.ask("port"))

    def put_files(self, prefix: str, directory: Path) -> None:
        """Put the Parquet files of a directory into the bucket, without requests."""
        self.partner.ask([prefix, str(directory.resolve())])  # the server works in another directory

    @contextmanager
    def traffic(self, latency: float) -> Iterator[Traffic]:
        """Yield the requests that arrive meanwhile, complete at the end; each takes `latency` seconds more."""
        requests: list[Request] = []
        self.partner.ask(latency)
        try:
            yield Traffic(requests)
        finally:
            requests += [Request(**fields) for fields in self.partner.ask(0.0)]


@contextmanager
def remote_server() -> Iterator[RemoteServer]:
    """Yield a server in a process of its own, with the environment variables that point clients to it.

    Raises DemoNotPossible if it does not start in time.
    """
    with partner("secateur.demo.s3_process", environment=os.environ) as process:
        server = RemoteServer(process)
        port = within(MOST_SECONDS_TO_START, "starting the S3 server", lambda: server.port)
        with patch.dict(os.environ, environment_of(port)):
            yield server


def _answer(server: LocalS3, asked: Any) -> Any:
    match asked:
        case "port":
            return server.port
        case [prefix, directory]:
            return server.gate.put_files(server.bucket, prefix, Path(directory))
        case latency:
            requests, server.gate.requests, server.gate.latency = server.gate.requests, [], float(latency)
            return [asdict(request) for request in requests]


if __name__ == "__main__":
    with reserved_port() as bound:
        set_environment(bound.getsockname()[1])
        with serving(bound, BUCKET, LakeGate) as running:
            answer_all(lambda asked: _answer(running, asked))
