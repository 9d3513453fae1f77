"""Decoders under bytes that a fuzzer made: inputs that once went wrong, and random changes of what builds write.

`make fuzz-decoders` looks for more of them, guided by coverage.
"""

from __future__ import annotations

import resource
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from fuzz.frame import file_of, unpacked
from fuzz.seeds import seeds
from fuzz.targets import TARGETS, run
from secateur.errors import IndexFault, InvalidParquet
from secateur.index.container.index_file import SNAPSHOT, as_it_lies, encode_chunk
from secateur.index.segments.snapshot_files import open_snapshot, snapshot_name
from secateur.io.tables.iceberg.delete_files import decoded_vector
from tests.support.checks.limits import within
from tests.support.profiles import examples
from tests.support.stores.memory_store import MemoryStore

CORPUS = Path(__file__).parent.parent / "fuzz_corpus"
MOST_SECONDS = 5
MOST_ADDRESSES = 4 << 30  # bytes that one input may claim beyond what the process has


@pytest.fixture(autouse=True)
def bounded_memory() -> Iterator[None]:
    """What takes more fails at once, instead of taking it."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST_ADDRESSES, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("name", TARGETS)
def test_what_builds_write_is_read(name: str) -> None:
    """And what was found by fuzzing is refused as it should be."""
    stored = [path.read_bytes() for path in sorted(CORPUS.glob(f"{name}-*"))]
    for data in [*seeds(name), *stored]:
        with within(MOST_SECONDS):
            run(name, data)


def repeated(value: int, n: int, dtype: str = "<i8") -> np.ndarray:
    """An array of any length that takes the room of one element."""
    return np.broadcast_to(np.array([value], dtype), n)


def lies(n: int) -> dict[str, dict[str, list[np.ndarray]]]:
    """Chunks of a snapshot whose arrays agree that there are n of something."""
    one, none, letter = np.ones(1, np.int64), np.zeros(0, "u1"), np.array([97], "u1")
    zeros, empty = repeated(0, n), [repeated(0, n + 1), none]
    files = [zeros, zeros, zeros, zeros, zeros, repeated(0, n, "<i4"), zeros]
    return {
        "segments": {"segments": [*empty, zeros, zeros, zeros, zeros]},
        "letters": {"segments": [np.array([0, n]), repeated(97, n, "u1"), one, one, one, one]},
        "paths": {"paths": empty, "files": files},
        "files": {"segments": [np.array([0, 1]), letter, one, one, one, np.array([n])], "paths": empty, "files": files},
        "blocks": {"segments": [np.array([0, 1]), letter, one, np.array([n]), one, one]},
        "bloom matrices": {"bloom-matrices/0": [*empty, *[zeros] * 16]},
        "places": {"where/blocks": [zeros, zeros, repeated(0, n, "<u4")]},
    }


@pytest.mark.parametrize("n", [2**31 + 1, 2**40, 2**59])
@pytest.mark.parametrize("lie", lies(1))
def test_what_claims_more_than_memory_holds_is_refused(lie: str, n: int) -> None:
    """Arrays of one element that stands for many take no room in a file."""
    text, chunks = unpacked(seeds("snapshot")[0])
    for name, arrays in lies(n)[lie].items():
        chunks[name] = encode_chunk(arrays, as_it_lies)
    name = snapshot_name(1)
    store = MemoryStore({name: file_of(SNAPSHOT, text, chunks)})
    snapshot = open_snapshot(store, 1)
    with within(MOST_SECONDS), pytest.raises(IndexFault):
        for ask in (lambda: snapshot.files, snapshot.as_segments, lambda: snapshot.directory("blocks", None)):
            ask()


@st.composite
def changed(draw: st.DrawFn, name: str) -> bytes:
    """A seed with some bytes overwritten, cut out, or doubled."""
    data = bytearray(draw(st.sampled_from(seeds(name))))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        new = draw(
            st.binary(max_size=8) | st.sampled_from([b"\xff" * 8, bytes(8), b"\xff" * 7 + b"\x7f", bytes(7) + b"\x20"])
        )
        end = at + draw(st.sampled_from([0, len(new), len(new), 1, 64]))
        data[at:end] = new
    return bytes(data)


@pytest.mark.parametrize("name", TARGETS)
@examples(15)
@given(data=st.data())
def test_what_is_harmed_is_refused(name: str, data: st.DataObject) -> None:
    harmed = data.draw(changed(name))
    with within(MOST_SECONDS):
        run(name, harmed)


def vector(rows: BitMap64) -> bytes:
    body = bytes.fromhex("d1d33964") + rows.serialize()
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


@examples(30)
@given(st.sets(st.integers(0, 2**63 - 1), max_size=50), st.integers(0, 2**40), st.integers(0, 3000))
def test_vectors_are_unpacked(some: set[int], first: int, count: int) -> None:
    rows = sorted(some | set(range(first, first + count)))
    assert decoded_vector(vector(BitMap64(rows)), "it").tolist() == rows


@pytest.mark.parametrize("rows", [range(2**63, 2**63 + 1), range(2**64 - 1, 2**64), range(2**30 + 1)])
def test_vectors_of_rows_that_no_file_has_are_refused(rows: range) -> None:
    """A few bytes of them can name any number of rows."""
    named = BitMap64()
    named.add_range(rows.start, rows.stop) if rows.stop < 2**64 else named.add(rows.start)
    with within(MOST_SECONDS), pytest.raises(InvalidParquet, match="names"):
        decoded_vector(vector(named), "it")
