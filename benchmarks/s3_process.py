"""The S3 server as a process of its own; see :mod:`benchmarks.partners`.

Asked for ``"port"`` it tells where it is; for a number of seconds, it adds these to every request from then on, and
tells the requests that came since it was asked last.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.partners import Partner, answer_all
from tests.support.s3_server import S3Server, reserved_port, s3_server, set_environment
from tests.support.s3_traffic import Request, Traffic

BUCKET = "lake"


@dataclass(frozen=True)
class RemoteServer:
    """The server as its partner sees it."""

    partner: Partner

    @property
    def port(self) -> int:
        return int(self.partner.ask("port"))

    @contextmanager
    def traffic(self, latency: float) -> Iterator[Traffic]:
        """The requests that come meanwhile, known at the end; each takes `latency` seconds more than it would."""
        found: list[Request] = []
        self.partner.ask(latency)
        try:
            yield Traffic(found)
        finally:
            found += [Request(**each) for each in self.partner.ask(0.0)]


def _answer(server: S3Server, asked: Any) -> Any:
    if asked == "port":
        return server.port
    requests, server.gate.requests, server.gate.latency = server.gate.requests, [], float(asked)
    return [asdict(request) for request in requests]


if __name__ == "__main__":
    with reserved_port() as bound:
        set_environment(bound.getsockname()[1])
        with s3_server(bound, BUCKET) as running:
            answer_all(lambda asked: _answer(running, asked))
