"""Check the sum of a block, added up by Arrow in 256 bits."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context

import pyarrow as pa
import pyarrow.compute as pc

from secateur.index.model import IndexedColumn, name_of
from secateur.index.verify.check_statistics import Contradiction, Unit
from secateur.pruning.predicate.index_paths import summed_path

MOST_DIGITS = 76  # of a decimal of 256 bits
_CONTEXT = Context(prec=MOST_DIGITS)


@dataclass
class SumWitness:
    """Takes all values of one column in one block, and compares their sum with the one that is kept."""

    column: IndexedColumn  # that keeps the sums
    block: Unit
    rows: int = 0
    nulls: int = 0
    total: int = 0  # unscaled

    def add(self, values: pa.Array) -> None:
        """Add the next values of the block."""
        scale = self.column.type.scale
        part = pc.sum(values.cast(pa.decimal256(MOST_DIGITS, scale))).as_py()
        self.total += 0 if part is None else int(part.scaleb(scale, _CONTEXT))
        self.nulls += values.null_count
        self.rows += len(values)

    def end(self) -> list[Contradiction]:
        """Return all contradictions, after all values were added."""
        name, nulls, recorded = name_of(summed_path(self.column.path)), self.block.null_count, self.block.lower
        wrong = []
        if nulls >= 0 and nulls != self.nulls:
            wrong.append(Contradiction(name, "the null count beside the sum", str(nulls), str(self.nulls)))
        is_known = recorded is not None and recorded == self.block.upper and nulls >= 0
        if is_known and self.nulls < self.rows and recorded != self.total:
            wrong.append(Contradiction(name, "the unscaled sum", str(recorded), str(self.total)))
        return wrong
