"""Expect, before anything is read, what reading the predicate's columns first will spare of the others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from secateur.io.scan.reading.opened_rows import PAGE_CELL
from secateur.pruning.match_share import match_shares
from secateur.pruning.residual import Residuals
from secateur.pruning.statistics import Blocks

SAMPLE = 8  # blocks


def expected_gains(residuals: Residuals, blocks: Blocks) -> tuple[float, ...]:
    """Return for each distinct residual the share of pages, of a sample of its blocks, in which no row will match.

    It is 1 where bounds tell nothing. Row groups that are smaller than a page are taken for one.
    """
    return tuple(_gains(residuals, blocks))


def _gains(residuals: Residuals, blocks: Blocks) -> Iterator[float]:
    for i, residual in enumerate(residuals.distinct):
        places = np.flatnonzero(residuals.of_block == i)
        if residual is None or not len(places):
            yield 1.0
            continue
        sample = blocks.take(np.unique(places[np.linspace(0, len(places) - 1, SAMPLE).astype(np.int64)]))
        in_page = np.minimum(sample.row_count, PAGE_CELL)
        # Of n rows none matches with a probability of (1 - share)^n, which is below exp(-n share).
        yield float(np.exp(-match_shares(residual, sample) * in_page).mean())
