"""Files are cut between blocks that are read and others that are not, where these are known to lie; C59: rows once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import SecateurError
from secateur.index.model import BuildOptions
from secateur.io.spark.iceberg.block_ranges import exact_ranges, in_ranges
from secateur.io.spark.planner.known_aggregates import Rest
from secateur.scan import Scan
from tests.support.drawn.deleted_rows import GROUP, Row, made
from tests.support.profiles import examples
from tests.support.stores.local_build import index_here

ROWS: list[list[Row]] = [[(file * 20 + at, "a", 1.5) for at in range(5 * GROUP)] for file in range(2)]
BLOCKS = 10


def middles(path: str) -> np.ndarray:
    """Where readers of ranges see the middle of every row group of a file."""
    footer = pq.ParquetFile(path.removeprefix("file://")).metadata
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    starts = [min(_begin(group.column(i)) for i in range(group.num_columns)) for group in groups]
    sizes = [sum(group.column(i).total_compressed_size for i in range(group.num_columns)) for group in groups]
    return np.array(starts) + np.array(sizes) // 2


def _begin(chunk: pq.ColumnChunkMetaData) -> int:
    return min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)


def rest_of(plan: Scan, answered: np.ndarray) -> Rest:
    """The blocks that are left to read."""
    left = plan.survivors.take(np.flatnonzero(~answered))
    return Rest(replace(plan, survivors=left), answered=plan.survivors.blocks.file[answered])


@examples(40)
@given(st.lists(st.booleans(), min_size=BLOCKS, max_size=BLOCKS), st.sampled_from(["TRUE", "k >= 12", "k % 8 < 4"]))
def test_ranges_hold_the_blocks_that_are_read_and_no_answered_one(answered: list[bool], where: str) -> None:
    with made(ROWS, [], [], indexed=True) as table:
        plan = Scan.of(sec.prune(table.table, where))
        blocks = plan.survivors.blocks
        asked = np.array(answered[: len(blocks)])
        left_out = in_ranges(plan).left_out(asked)
        assert np.array_equal(left_out, asked), "all places are known"
        ranges = exact_ranges(rest_of(plan, left_out))
        file = blocks.file
        assert set(ranges) == set(np.intersect1d(file[left_out], file[~left_out]).tolist())
        for number, of_file in ranges.items():
            path = plan.opened.listing.paths[number].as_py()
            (name,) = [known for known in table.paths if known.endswith(path)]
            middle = middles(name)[blocks.row_group[file == number]]
            inside = np.array([any(start <= at < start + size for start, size in of_file) for at in middle])
            assert np.array_equal(inside, ~left_out[file == number])


def test_files_without_known_places_are_read_whole_or_not_at_all() -> None:
    with made(ROWS, [], [], indexed=False) as table:
        index_here(table.table, BuildOptions(page_locations=False))
        plan = Scan.of(sec.prune(table.table, "TRUE"))
        asked = np.ones(BLOCKS, bool)
        asked[np.flatnonzero(plan.survivors.blocks.file == 1)[0]] = False
        left_out = in_ranges(plan).left_out(asked)
        assert np.array_equal(left_out, plan.survivors.blocks.file == 0)
        assert exact_ranges(rest_of(plan, left_out)) == {}
        with pytest.raises(SecateurError, match="where row groups begin"):
            exact_ranges(rest_of(plan, asked))
