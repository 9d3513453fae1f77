"""The requests that a server answered: their number, kinds and bytes, and the length of the longest sequence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote


@dataclass(frozen=True)
class Request:
    """One request, from its arrival until its answer was ready; seconds of one clock."""

    kind: str  # LIST for a GET of names, else the method
    name: str  # of the object, or the prefix that was listed
    range: str  # the bytes asked for, empty for all
    status: int  # 0: no answer
    sent: int  # bytes of the answer's body
    start: float
    stop: float


@dataclass(frozen=True)
class Traffic:
    """Requests in order of arrival."""

    requests: Sequence[Request]

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of requests, by kind."""
        return Counter(request.kind for request in self.requests)

    @property
    def sent(self) -> int:
        """Bytes of all answers."""
        return sum(request.sent for request in self.requests)

    @property
    def round_trips(self) -> int:
        """The length of the longest chain of requests, each sent after the answer to the one before.

        The client waited for at least so many latencies. This is the largest set of intervals that do not overlap,
        found by always taking the one that ends first.
        """
        chain, free = 0, 0.0
        for request in sorted(self.requests, key=lambda request: request.stop):
            if chain == 0 or request.start >= free:
                chain, free = chain + 1, request.stop
        return chain

    def __str__(self) -> str:
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in sorted(self.counts.items()))
        sequence = f"{self.round_trips} round trips in sequence"
        return f"{len(self.requests):,} requests ({kinds}), {self.sent:,} bytes, {sequence}"

    def lines(self) -> Iterable[str]:
        """Yield one line per request: its arrival and answer in ms since the first request, and what it asked."""
        first = self.requests[0].start if self.requests else 0.0
        for request in self.requests:
            start, stop = (1000 * (moment - first) for moment in (request.start, request.stop))
            asked = f"{request.kind:6} {request.name} {request.range}"
            yield f"{start:8.1f} {stop:8.1f} {request.status} {asked} -> {request.sent:,} B"


def described(environ: Mapping[str, str]) -> tuple[str, str, str]:
    """The kind, the name and the range of a request, from its WSGI environment."""
    method, path = environ["REQUEST_METHOD"], unquote(environ["PATH_INFO"])
    asked = parse_qs(environ.get("QUERY_STRING", ""))
    if method == "GET" and ("list-type" in asked or path.strip("/").count("/") == 0):
        return "LIST", "".join(asked.get("prefix", [""])), ""
    return method, path, environ.get("HTTP_RANGE", "").removeprefix("bytes=")
