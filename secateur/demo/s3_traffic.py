"""The requests that a server answered: their number, kinds and bytes, and the length of the longest sequence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote


@dataclass(frozen=True)
class Request:
    """One request, from when it came to when its answer was made; seconds of one clock."""

    kind: str  # LIST for a GET of names, else the method
    name: str  # of the object, or the prefix that was listed
    range: str  # the bytes asked for, empty for all
    status: int  # 0: no answer
    sent: int  # bytes of the answer's body
    start: float
    stop: float


@dataclass(frozen=True)
class Traffic:
    """Requests in the order in which they came."""

    requests: Sequence[Request]

    @property
    def counts(self) -> Mapping[str, int]:
        """How many there were of a kind."""
        return Counter(request.kind for request in self.requests)

    @property
    def sent(self) -> int:
        """Bytes of all answers."""
        return sum(request.sent for request in self.requests)

    @property
    def round_trips(self) -> int:
        """The longest chain of requests of which each came after the one before was answered.

        No fewer latencies can have been waited for. It is the most intervals that do not overlap, which taking always
        the one that ends first finds.
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
        """One line per request: when it came and was answered in ms since the first, and what it was."""
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
