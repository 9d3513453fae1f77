"""Rank the values of a column: the bounds of all blocks, and the values of sampled rows, in one order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from secateur.arrays import present
from secateur.index.advise.look_ups import NULL, BoundedBlocks
from secateur.index.advise.row_orders import spread_ranks
from secateur.index.zones.key_ranks import ranks
from secateur.pruning.predicate.bound import Field
from secateur.pruning.rows.row_values import column
from secateur.pruning.statistics import Blocks
from secateur.values.conversion import keys_of
from secateur.values.keys import Keys
from secateur.values.kinds import Kind

_SIGN = np.uint64(1 << 63)


@dataclass(frozen=True, eq=False)
class RankedColumn:
    """A column: ranks of the blocks' bounds and of the sampled rows' values, and the first words of these values."""

    blocks: BoundedBlocks
    rows: np.ndarray  # NULL has the rank -1
    words: np.ndarray  # uint64: the first 64 bits that order as the values do; 0 for NULL

    @classmethod
    def of(cls, field: Field, rows: pa.RecordBatch, every: Blocks) -> RankedColumn:
        """Rank a column."""
        values = column(rows, field)
        keys, known = keys_of(values), present(values)
        zones = every.zones(field)
        if zones is None:
            lower = upper = np.zeros(len(every), np.int64)
            (in_rows,) = ranks([keys])
            upper = upper + in_rows.max(initial=0)
            holds = np.ones(len(every), bool)
        else:
            lower, upper, in_rows = ranks([zones.lower, zones.numbers_upper, keys])
            holds = zones.value != 0
        lower, upper = np.where(holds, lower, 1), np.where(holds, upper, 0)
        bounded = BoundedBlocks(every.file, every.byte_count, every.row_count, lower, upper)
        return cls(bounded, np.where(known, in_rows, NULL), np.where(known, _first_words(keys), 0).astype(np.uint64))

    def least(self, files: int) -> np.ndarray:
        """Return the rank of the least value of every file."""
        least = np.full(files, np.iinfo(np.int64).max)
        holds = self.blocks.lower <= self.blocks.upper
        np.minimum.at(least, self.blocks.file[holds], self.blocks.lower[holds])
        return least

    def in_curve(self, bits_of_values: bool) -> np.ndarray:
        """Return numbers of 64 bits that a curve interleaves: the first bits of the values, or their ranks."""
        return self.words if bits_of_values else spread_ranks(self.rows + 1, 53) << np.uint64(11)


def _first_words(keys: Keys) -> np.ndarray:
    word = np.ascontiguousarray(keys.words[0])
    return word if keys.kind is Kind.BYTES else word.view(np.uint64) ^ _SIGN
