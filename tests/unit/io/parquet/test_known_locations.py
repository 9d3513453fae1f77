"""Page locations that are decoded once."""

from __future__ import annotations

import numpy as np
import pytest

from secateur.errors import IndexFault
from secateur.io.parquet.chunk_locations import ChunkLocations, ColumnLocations
from secateur.io.parquet.known_locations import known_locations
from secateur.io.parquet.location_codec import encode_locations
from secateur.io.parquet.page_index import PageLocations


def encoded(pages: int) -> bytes:
    rows = np.full(pages, 3)
    of_chunk = PageLocations(4 + np.arange(pages) * 10, np.full(pages, 10), np.arange(pages) * 3, rows)
    chunk = ColumnLocations(4, 10 * pages, 0, 3 * pages, 10 * pages, 0, 0, of_chunk)
    return encode_locations(ChunkLocations(3 * pages, {0: chunk}))


def test_the_same_bytes_are_decoded_once() -> None:
    data = encoded(100)
    first = known_locations(data, 2000)
    assert known_locations(bytes(bytearray(data)), 2000) is first
    assert first.nbytes == 4 * 100 * 8


def test_bytes_that_are_believed_of_one_file_are_checked_for_another() -> None:
    data = encoded(50)
    known_locations(data, 504)
    with pytest.raises(IndexFault, match="outside of its file"):
        known_locations(data, 503)
