"""The plan that users hold: read here or by Spark, explained, and planned again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, overload

from secateur.errors import IndexFault
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.scan.planning import plan_scan

if TYPE_CHECKING:
    import datafusion
    import duckdb
    import pandas
    import polars
    import pyarrow as pa
    from matplotlib.figure import Figure

    from secateur.io.scan.handing_over import FileScanTask, FileSystemDataset
    from secateur.io.spark.to_spark import DataFrame, SparkSession
    from secateur.pruning.explain.explanation import Explanation
    from secateur.pruning.explain.why import FileWhy, Why

_NOT_EXPLAINED = "caution: the index is broken, so what prunes for each conjunct is not known: verify_index(table)"


@dataclass(frozen=True, repr=False)
class Scan(PlannedScan):
    """The plan of one query over one table snapshot.

    On every read path the rows are those that Spark returns for ``table.where(predicate)``, or any `limit` of them.
    """

    @staticmethod
    def of(plan: PlannedScan) -> Scan:
        """Wrap a plan in the public class."""
        return Scan(**{field.name: getattr(plan, field.name) for field in fields(plan)})

    def to_spark(
        self, spark: SparkSession, columns: Sequence[str] | None = None, via: str = "auto", *, replan: bool = False
    ) -> DataFrame:
        """Return the matching rows as a Spark DataFrame, exactly those of ``table.where(predicate)``.

        The first rows of an order are searched for here if that needs few bytes; else Spark finds them in the blocks
        that are left.

        Parameters
        ----------
        columns
            The columns to return; by default all.
        via
            The read path: ``"local"`` (read here), ``"blocks"`` (in Python tasks), ``"native"`` (Spark's own reader, of
            whole files), ``"iceberg"`` (Iceberg's own), or ``"auto"``, the cheapest.
        replan
            Check the files of the plan first; if one is gone or was replaced, plan again with the same settings.

        Raises
        ------
        UnknownColumn
        InvalidOption
            For a column that is named twice.
        ValueError
            For a read path that is unknown or that the table does not have.
        UnsupportedPredicate, UnsupportedTable
            For collations and fields of ``_metadata`` that the read path does not keep.
        StalePlan
            If the session's time zone or ANSI mode gives the predicate another meaning, or Spark's own reader would
            read a file that is gone or replaced. In tasks of ``"blocks"`` the error of the action names it.
        """
        from secateur.io.spark.to_spark import to_spark

        plan = self if not replan or self.is_current() else self.replanned()
        return to_spark(plan, spark, columns, via)

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the matching rows as one table; blocks are read in parallel. Raises as :meth:`to_batches` does.

        With ``SECATEUR_ANSWER_BYTES`` rows of few bytes are kept on local disk, and nothing is read where the same was
        asked before of the same files; see docs/semantics.md, "Answers that are kept".
        """
        from secateur.io.scan.kept.answers import kept_rows

        return kept_rows(self, columns, super().to_arrow)

    def count(self) -> int:
        """Count the matching rows. Reads only blocks of which some rows may not match, and none if the count is kept.

        Returns
        -------
        int
            The exact number, at most the plan's limit. :meth:`to_arrow` says when it is kept.

        Raises
        ------
        UnsupportedPredicate, EvaluationError, StalePlan, InvalidParquet
            From reading blocks, as by :meth:`to_batches`.
        """
        from secateur.io.scan.kept.answers import kept_count

        return kept_count(self, super().count)

    def replanned(self) -> Scan:
        """Plan the same query again over the current table, with the same settings. Raises as planning does."""
        self.origin.table.expire()
        return Scan.of(plan_scan(self.origin.table, self.origin.predicate, self.written, self.origin.settings))

    @overload
    def why(self, block: str) -> FileWhy: ...

    @overload
    def why(self, block: Mapping[str, object]) -> Why: ...

    @overload
    def why(self, block: str, row_group: int) -> Why: ...

    def why(self, block: str | Mapping[str, object], row_group: int | None = None) -> FileWhy | Why:
        """Explain why a file or a block is read or pruned: the deciding stage, conjunct and statistic.

        Parameters
        ----------
        block
            The path of a file as in ``plan.files``, or a row of ``plan.blocks``: a mapping with `file` and `row_group`.
        row_group
            The number of a row group of that file; without it, the whole file is explained.

        Returns
        -------
        FileWhy or Why
            For a file, one answer per block of it that has rows; for a block, its own.

        Raises
        ------
        UnknownBlock
            If the table has no such file or block.
        """
        from secateur.io.scan.explain import why

        return why(self, block, row_group)

    def explain(self, format: str = "text", *, verbose: bool = False) -> str:
        """Return the report as a text table, or as JSON with ``explain("json")``, with the read path to Spark.

        The text begins with conjuncts that prune nothing by themselves, and what would serve them. To know them it
        reads zone maps, filters and pages of the whole index, but opens no data file. Where that is broken, a caution
        says so instead.

        Parameters
        ----------
        verbose
            Also list, for every conjunct, which structures exist, how many of all blocks each leaves if used without
            the others, and what is missing, given as the argument that creates it.
        """
        from secateur.io.scan.read_path import choose_read_path

        report, read_path = super().explain(format), choose_read_path(self)
        if format == "json":
            more = {"explanation": self._explained and asdict(self._explained)} if verbose else {}
            return json.dumps({**json.loads(report), "read_path": asdict(read_path), **more}, indent=2)
        cautions = (_NOT_EXPLAINED,) if self._explained is None else self._explained.cautions
        text = "\n".join([*cautions, report, f"read path: {read_path}"])
        return f"{text}\n\n{self._explained or _NOT_EXPLAINED}" if verbose else text

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the matching rows as a stream of Arrow's C interface, so that ``duckdb.sql("from plan")`` works."""
        from secateur.io.scan.handing_over import MatchingRows

        return MatchingRows(self).__arrow_c_stream__(requested_schema)

    def to_pandas(self, columns: Sequence[str] | None = None) -> pandas.DataFrame:
        """Return the matching rows as a DataFrame of pandas. Raises as :meth:`to_arrow` does."""
        return self.to_arrow(columns).to_pandas()

    def to_polars(self) -> polars.LazyFrame:
        """Return the matching rows as a lazy frame of Polars, which reads only the columns that its query needs.

        Raises PackageMissing without Polars, and as :meth:`to_batches` does, here or when the frame is collected.
        """
        from secateur.io.scan.handing_over import to_polars

        return to_polars(self)

    def to_duckdb(
        self, connection: duckdb.DuckDBPyConnection, columns: Sequence[str] | None = None
    ) -> duckdb.DuckDBPyRelation:
        """Return the matching rows as a relation of a connection to DuckDB; each query on it reads them again.

        Raises PackageMissing without DuckDB, and as :meth:`to_batches` does.
        """
        from secateur.io.scan.handing_over import to_duckdb

        return to_duckdb(self, connection, columns)

    def to_datafusion(
        self, context: datafusion.SessionContext, columns: Sequence[str] | None = None
    ) -> datafusion.DataFrame:
        """Return the matching rows as a DataFrame of a context of DataFusion. They are read now, and held in memory.

        Raises PackageMissing without DataFusion, and as :meth:`to_arrow` does.
        """
        from secateur.io.scan.handing_over import to_datafusion

        return to_datafusion(self, context, columns)

    def to_dataset(self) -> FileSystemDataset:
        """Return the surviving row groups as a dataset of pyarrow, whose rows are still to be filtered.

        See :func:`secateur.io.scan.handing_over.to_dataset`.
        """
        from secateur.io.scan.handing_over import to_dataset

        return to_dataset(self)

    def to_pyiceberg(self) -> list[FileScanTask]:
        """Return the surviving files of an Iceberg table as tasks of PyIceberg, whose rows are still to be filtered.

        See :func:`secateur.io.scan.handing_over.to_pyiceberg`.
        """
        from secateur.io.scan.handing_over import to_pyiceberg

        return to_pyiceberg(self)

    def to_html(self) -> str:
        """Return a self-contained HTML page: what each stage left, where all blocks lie, the bounds of columns.

        This reads the list of all blocks of the table from the index, or from footers, but no data.
        """
        from secateur.html.plan_page import page, plan_parts

        return page(self.report.predicate, plan_parts(self))

    def plot(self) -> Figure:
        """Draw what each stage leaves of the table, as a figure of matplotlib: ``plan.plot().savefig("plan.svg")``.

        Raises PackageMissing without matplotlib.
        """
        from secateur.plotting import plan_figure

        return plan_figure(self.report)

    def _repr_html_(self) -> str:
        """Return the same for a notebook."""
        from secateur.html.plan_page import fragment, plan_parts

        return fragment(plan_parts(self, 3))

    @property
    def _explained(self) -> Explanation | None:
        """The explanation; None if the index is broken in a place that the plan did not need."""
        try:
            return self.explanation
        except IndexFault:
            return None

    @cached_property
    def explanation(self) -> Explanation:
        """Return what prunes for each conjunct of the predicate, and what could; see :meth:`explain`.

        Raises IndexFault if the index cannot be read.
        """
        from secateur.io.scan.explain import explanation

        return explanation(self)
