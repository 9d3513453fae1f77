"""The account that the S3 server keeps of requests: what benchmarks and tests of round trips rest on."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, pairwise
from urllib.request import urlopen

from hypothesis import given
from hypothesis import strategies as st

from secateur.demo.s3_process import BUCKET, remote_server
from secateur.demo.s3_traffic import Request, Traffic
from tests.support.profiles import examples, takes_seconds
from tests.support.s3_server import S3Server


def traffic(*spans: tuple[float, float]) -> Traffic:
    return Traffic([Request("GET", "name", "", 200, 0, start, stop) for start, stop in spans])


@examples(200)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 8)), max_size=8))
def test_round_trips_are_the_longest_chain(asked: list[tuple[int, int]]) -> None:
    spans = [(start, start + length) for start, length in asked]

    def is_chain(some: tuple[tuple[int, int], ...]) -> bool:
        ordered = sorted(some)
        return all(a[1] <= b[0] for a, b in pairwise(ordered))

    longest = max(n for n in range(len(spans) + 1) if any(map(is_chain, combinations(spans, n))))
    assert traffic(*spans).round_trips == longest


def test_requests_wait_for_the_latency_at_once(s3: S3Server) -> None:
    """So many in parallel are one round trip; one after the other they are as many."""
    client = s3.client
    client.put_object(Bucket=s3.bucket, Key="latency/object", Body=b"0123456789")

    def get(_: int) -> bytes:
        return client.get_object(Bucket=s3.bucket, Key="latency/object", Range="bytes=2-5")["Body"].read()

    try:
        with s3.traffic(latency=0.3) as at_once, ThreadPoolExecutor(4) as threads:
            assert list(threads.map(get, range(4))) == [b"2345"] * 4
        with s3.traffic(latency=0.01) as in_turn:
            assert [get(0), get(1)] == [b"2345"] * 2
            s3.names("latency/")
    finally:
        client.delete_object(Bucket=s3.bucket, Key="latency/object")
    assert (at_once.round_trips, in_turn.round_trips) == (1, 3)
    assert (at_once.counts, in_turn.counts) == ({"GET": 4}, {"GET": 2, "LIST": 1})
    assert at_once.sent == 16
    assert [(request.name, request.range, request.status) for request in at_once.requests] == [
        (f"/{s3.bucket}/latency/object", "2-5", 206)
    ] * 4


@takes_seconds
def test_a_server_of_another_process_has_the_same_clock() -> None:
    """So a page can draw its requests against the seconds of the query that sent them."""
    with remote_server() as server, server.traffic(0.01) as traffic:
        began = time.perf_counter()
        urlopen(f"http://127.0.0.1:{server.port}/{BUCKET}?list-type=2").close()
        ended = time.perf_counter()
    (request,) = traffic.requests
    assert began <= request.start <= request.stop <= ended
