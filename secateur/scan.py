"""The plan that users hold: read here or by Spark, explained, and made anew."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, overload

from secateur.io.scan.planned_scan import PlannedScan, plan_scan
from secateur.io.scan.read_path import choose_read_path

if TYPE_CHECKING:
    from secateur.io.spark.to_spark import DataFrame, SparkSession
    from secateur.pruning.explain.explanation import Explanation
    from secateur.pruning.explain.why import FileWhy, Why


@dataclass(frozen=True, repr=False)
class Scan(PlannedScan):
    """The plan of one query over one table snapshot.

    Whatever road the rows take, they are those of ``table.where(predicate)`` as Spark answers it, or any
    `limit` of them.
    """

    @staticmethod
    def of(plan: PlannedScan) -> Scan:
        """The same plan, as users hold it."""
        return Scan(**{field.name: getattr(plan, field.name) for field in fields(plan)})

    def to_spark(
        self, spark: SparkSession, columns: Sequence[str] | None = None, via: str = "auto", *, replan: bool = False
    ) -> DataFrame:
        """The matching rows as a Spark DataFrame; see :func:`secateur.io.spark.to_spark.to_spark`.

        With `replan`, the table is looked at once more: where a file of the plan is gone or another one, the rows are
        those of a new plan, with the same settings.
        """
        from secateur.io.spark.to_spark import to_spark

        plan = self if not replan or self.is_current() else self.replanned()
        return to_spark(plan, spark, columns, via)

    def replanned(self) -> Scan:
        """The same query planned anew, over the table as it is now, with the same settings. Raises as planning does."""
        self.origin.table.expire()
        return Scan.of(plan_scan(self.origin.table, self.origin.predicate, self.written, self.origin.settings))

    @overload
    def why(self, block: str) -> FileWhy: ...

    @overload
    def why(self, block: Mapping[str, object]) -> Why: ...

    @overload
    def why(self, block: str, row_group: int) -> Why: ...

    def why(self, block: str | Mapping[str, object], row_group: int | None = None) -> FileWhy | Why:
        """Why a file, or one block, is read or left out: the stage, the conjunct and the statistic that decide.

        `block` is the path of a file as in ``plan.files``, alone or with the number of a row group, or a row of
        ``plan.blocks``, a mapping with `file` and `row_group`. Raises UnknownBlock for what the table does not have.
        """
        from secateur.io.scan.explain import why

        return why(self, block, row_group)

    def explain(self, format: str = "text", *, verbose: bool = False) -> str:
        """The report as a text table, or as JSON with ``explain("json")``, and the road that rows take to Spark.

        `verbose` adds what could serve every conjunct: which structures there are, how many of all blocks each alone
        leaves, and what is missing, as the argument that makes it. For that zone maps, filters and pages are read over
        the whole index, and no data file is opened.
        """
        report, road = super().explain(format), choose_read_path(self)
        if format == "json":
            more = {"explanation": asdict(self.explanation)} if verbose else {}
            return json.dumps({**json.loads(report), "road": asdict(road), **more}, indent=2)
        told = f"{report}\nroad to Spark: {road}"
        return f"{told}\n\n{self.explanation}" if verbose else told

    @cached_property
    def explanation(self) -> Explanation:
        """What serves every conjunct of the predicate, and what could; see :meth:`explain`."""
        from secateur.io.scan.explain import explanation

        return explanation(self)
