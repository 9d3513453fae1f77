"""Limits that only large tables reach, lowered so that small ones do: above which something is left undone, or is done
in parts. No answer may depend on any of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from random import Random
from unittest.mock import patch

from hypothesis import strategies as st

Values = Sequence[float]
LIMITS: Mapping[str, Mapping[str, Values]] = {  # by module
    "pruning.stages.first_rows": {"FEW_ROWS": [-1, 5], "MOST_GROUPS": [0, 1], "MOST_WAVES": [0, 1], "MOST_ROWS": [3]},
    "pruning.aggregates.in_order": {"MOST_WAVES": [0, 1], "FEW_ENTRIES": [0, 9], "WORTH": [0, 1]},
    "pruning.verdicts": {"MOST_PARTS": [1, 3], "MOST_ALTERNATIVES": [1]},
    "pruning.questions": {"MOST_POINTS": [0, 2]},
    "pruning.stages.pages": {"BLOCKS_AT_ONCE": [1, 2]},
    "pruning.stages.filters": {"SELECTIVE": [0, 1]},
    "pruning.stages.rows": {"MOST_BLOCKS": [0, 2], "MOST_RANGES": [1, 2]},
    "pruning.rows.truth": {"CHUNK": [1, 3], "CHUNK_BYTES": [1, 100]},
    "pruning.bounds.rangeset": {"MOST_ADJACENT_POINTS": [0, 2]},
    "pruning.bounds.set_outcomes": {"CHUNK": [1, 3], "FEW_NEAR": [1], "UNITS_OF_GRID": [0, 1000]},
    "pruning.predicate.key_ranges": {"MOST_INTERVALS": [1, 2], "MOST_ALTERNATIVES": [1]},
    "pruning.predicate.inverse": {"_MOST_STEADY": [0, 1], "_FAN_OUT": [2], "_PROBES": [2]},
    "pruning.predicate.value_lists": {"FEW": [0, 2]},
    "pruning.evaluate": {"CHUNK": [1, 5], "LEAST_CHUNK": [1], "FEW_PARTS": [0]},
    "integers": {"KEPT": [0, 5]},
    "values.keys": {"FEW_TIES": [1], "_MATRIX_BYTES": [1, 64]},
    "io.scan.reading.filtered_read": {"LEAST_GAIN": [0, 2]},
    "io.scan.reading.late_materialization": {"FEW_ROWS": [0, 1000], "LEAST_SHARE": [0, 1], "SAMPLED": [1, 3]},
    "io.scan.reading.opened_rows": {"CELL": [1, 2], "LEAST_SHARE": [0, 1], "SAMPLED": [1, 3], "PAGE_CELL": [1, 4]},
    "io.scan.reading.passed_rows": {"SPARSE": [0, 1000]},
    "io.scan.first_rows": {"PARTS": [1, 5], "SPARE_ROWS": [0, 1]},
    "io.scan.reading.block_reader": {"BATCH_BYTES": [1, 100], "LEAST_PORTION": [1], "MOST_FILES": [1, 2]},
    "io.scan.surviving_blocks": {"MOST_LOCATED": [0, 1]},
    "io.scan.kept.verdict_memory": {"LEAST_MERGED": [0, 1], "FEW_FILES": [0]},
    "io.parquet.row_selection": {"LEAST_SHARE": [0, 1], "MOST_SLICES": [0, 1]},
    "io.parquet.row_group_reader": {"BATCH_ROWS": [1, 7], "MOST_TOGETHER": [0, 200], "MOST_COPIED": [0]},
    "io.parquet.dictionary_texts": {
        "LEAST_ROWS": [1],
        "MOST_BYTES": [100.0],
        "DECODING": [0],
        "TEXT_BYTES": [1, 20],
    },
    "io.parquet.page_reader": {"WINDOW_BYTES": [1, 100]},
    "index.segments.base_file": {"MOST_OWN": [0, 3], "LEAST_USED": [0, 1]},
    "index.compact.increments": {"GROWTH": [1.0, 100.0]},
    "index.compact.merge_filters": {"AT_ONCE": [8, 64]},
    "index.filters.transpose": {"PART_BYTES": [16, 256], "JOINED_SHARE": [0, 10.0], "JOINED_BYTES": [0, 64]},
    "index.filters.bloom_fragment": {"FRAGMENT_BYTES": [1, 256], "FEW": [0, 2]},
    "index.filters.postings": {"PAGE_PAIRS": [1, 5]},
    "index.filters.row_lists": {"PAGE_ROWS": [1, 4], "LONG": [1, 3]},
    "index.filters.probe": {"WORDS": [1], "AT_ONCE": [1], "SPARSE": [0, 1], "MOST_TOLD_APART": [0, 1]},
    "index.filters.probe_together": {"GATHERED": [0, 1]},
    "index.filters.bands": {"NEAR": [-1, 0]},
    "index.build.column_sketch": {"CHUNK_BYTES": [1, 100]},
    "index.read.index_view": {"FEW_RUNS": [0, 1]},
    "index.read.loader": {"BATCH": [1, 2], "FEW": [0, 1]},
    "index.read.lookup": {"MOST_PARTS": [1, 2]},
    "index.read.matrix_columns": {"MOST_ROWS": [0, 10], "MOST_BYTES": [0, 100], "LEAST_TOGETHER": [0, 3]},
    "index.read.row_lookup": {"MOST_SHARE": [0, 0.5, 1]},
    "index.read.posting_rows": {"MOST_KEPT": [0, 1]},
    "index.read.group_arrays": {"GROUP_BLOCKS": [1, 8]},
    "index.zones.zonemap": {"BOUND_BYTES": [1, 8]},
    "index.container.checked_matrix": {"WHOLE_SHARE": [0, 1], "MOST_WASTED": [0]},
}


LOWERED = st.tuples(st.integers(0, 10**6), st.sampled_from([0.0, 0.0, 0.3]))  # a seed, and a share of the limits


@contextmanager
def low_limits(seed: int, share: float) -> Iterator[None]:
    """Lower about a share of all limits to one of their values; each is used in its own module alone."""
    chance = Random(seed)
    with ExitStack() as stack:
        for module, limits in LIMITS.items():
            for name, values in limits.items():
                if chance.random() < share:
                    stack.enter_context(patch.object(import_module(f"secateur.{module}"), name, chance.choice(values)))
        yield
