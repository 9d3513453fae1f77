"""Files are found in a listing by their whole identity, and only there."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.io.scan.kept.verdict_memory import ordinals_in
from secateur.io.tables.listing import Listing
from secateur.io.tables.partitions import Partitions

NAMES = st.text(st.sampled_from("ab/é\U0001f600"), min_size=1, max_size=5)
FILES = st.dictionaries(NAMES, st.tuples(*[st.integers(0, 2)] * 3), max_size=30)


def listing_of(files: dict[str, tuple[int, int, int]], type_: pa.DataType) -> Listing:
    paths = sorted(files, key=str.encode)
    numbers = np.array([files[path] for path in paths], np.int64).reshape(-1, 3)
    return Listing(pa.array(paths, type_), *numbers.T, Partitions((), ()))


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string()])
@given(files=FILES, others=FILES)
def test_a_file_is_found_by_all_of_its_identity(
    files: dict[str, tuple[int, int, int]], others: dict[str, tuple[int, int, int]], type_: pa.DataType
) -> None:
    listing = listing_of(files, type_)
    wanted = [(path, *numbers) for path, numbers in {**files, **others}.items()]
    paths = listing.paths.to_pylist()
    expected = [paths.index(path) if files.get(path) == tuple(numbers) else -1 for path, *numbers in wanted]
    assert ordinals_in(listing, wanted).tolist() == expected
