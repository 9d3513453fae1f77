"""The plan: what a query has to read, as a plain value."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import pyarrow as pa

from secateur.arrays import flags, from_numpy
from secateur.pruning.order import Order
from secateur.pruning.predicate.nodes import Predicate, Sql
from secateur.pruning.report import Report
from secateur.pruning.residual import Residuals, residuals_of
from secateur.pruning.row_ranges import whole_blocks
from secateur.pruning.stages.survivors import Left, Survivors


@dataclass(frozen=True)
class ScanPlan:
    """The blocks that can hold a match, with their row ranges and the residual predicate.

    Sound: every matching row of the table snapshot lies in one of `blocks`, within its row ranges; with a limit, as
    many as it asks for, and with an order some choice of the first ones.
    """

    predicate: Predicate  # bound
    written: Sql  # the predicate as it was given
    named: tuple[str, ...]  # top-level columns in `sql`; `predicate` may need fewer
    paths: pa.Array  # of all live files
    survivors: Survivors
    trail: tuple[Left, ...]  # what each stage left, in pipeline order
    report: Report
    limit: int | None
    order_by: Order | None  # of which the first `limit` rows are asked for
    session_time_zone: str
    ansi: bool

    def __getstate__(self) -> dict[str, object]:
        """Pickle the plan as plain arrays, with blocks, outcomes and residuals computed, and without the index."""
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        trail = tuple(left.detached for left in self.trail)
        return {**state, "survivors": self.survivors.detached, "trail": trail, "residuals": self.residuals}

    @cached_property
    def sql(self) -> str:
        """The predicate as Spark SQL."""
        return str(self.written)

    @cached_property
    def blocks(self) -> pa.Table:
        """One row per block: file (a dictionary), row_group, row_count, row_ranges, bytes, fully_matching."""
        blocks = self.survivors.blocks
        ranges = self.survivors.row_ranges or whole_blocks(blocks.row_count)
        spans = pa.StructArray.from_arrays([from_numpy(ranges.start), from_numpy(ranges.stop)], ["start", "stop"])
        return pa.table(
            {
                "file": pa.DictionaryArray.from_arrays(
                    from_numpy(np.searchsorted(self.file_ordinals, blocks.file).astype(np.int32)),
                    self._surviving_paths,
                ),
                "row_group": from_numpy(blocks.row_group),
                "row_count": from_numpy(blocks.row_count),
                "row_ranges": pa.ListArray.from_arrays(from_numpy(ranges.offsets.astype(np.int32)), spans),
                "bytes": from_numpy(blocks.byte_count),
                "fully_matching": flags(self.survivors.fully_matching),
            }
        )

    @property
    def files(self) -> list[str]:
        """The files with a surviving block, by path below the table, in order."""
        return self._surviving_paths.to_pylist()

    @cached_property
    def file_ordinals(self) -> np.ndarray:
        """The positions in `paths` of files with a surviving block, ascending."""
        return np.flatnonzero(np.bincount(self.survivors.blocks.file))

    @property
    def _surviving_paths(self) -> pa.Array:
        return self.paths.take(from_numpy(self.file_ordinals))

    @cached_property
    def residuals(self) -> Residuals:
        """What must still be checked on the rows of each block, as bound predicates."""
        return residuals_of(self.predicate, self.survivors.blocks, self.survivors.fully_matching)

    @property
    def residual(self) -> str | None:
        """The predicate still to check on the blocks' rows, or None if all of them match."""
        return None if self.residuals.whole is None else str(self.residuals.whole)

    @property
    def residual_by_block(self) -> pa.DictionaryArray:
        """The predicate still to check on each block's rows, null if all of them match; parallel to ``blocks``."""
        texts = [None if residual is None else str(residual) for residual in self.residuals.distinct]
        return pa.array(texts, pa.string()).dictionary_encode().take(pa.array(self.residuals.of_block))

    def explain(self, format: str = "text") -> str:
        """Return the report as a text table, or as JSON with ``explain("json")``."""
        if format not in ("text", "json"):
            raise ValueError(f"explain gives 'text' or 'json', not {format!r}")
        return self.report.to_json() if format == "json" else self.report.to_text()
