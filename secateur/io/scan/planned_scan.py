"""A plan that can be read here: as Arrow, or as a count.

Modules that only reading needs are imported by the functions that read, so that a process that plans starts faster.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import from_numpy
from secateur.errors import InvalidOption, SecateurError, UnsupportedPredicate
from secateur.integers import sorted_distinct
from secateur.io.scan.kept.match_tally import MatchTally
from secateur.io.scan.kept.verdicts import VerdictNotes, keeping_verdicts, leaving_verdicts
from secateur.io.scan.live_rows import live_rows
from secateur.io.scan.opened_table import OpenedTable
from secateur.io.scan.reading.read_ahead import read_ahead
from secateur.io.scan.row_places import place_called
from secateur.io.tables.file_rows import Delivery, FileBlocks
from secateur.io.tables.table import Table
from secateur.pruning.affected import Affected, affected_files
from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.order import OrderItem
from secateur.pruning.plan import ScanPlan
from secateur.pruning.predicate.abbreviation import brief
from secateur.pruning.predicate.binding.bind import bind, bound_by
from secateur.pruning.predicate.binding.resolve import Binder, resolve
from secateur.pruning.predicate.bound import Field, Operand
from secateur.pruning.predicate.bound_walks import left_to_spark
from secateur.pruning.predicate.expressions import split_name
from secateur.pruning.predicate.nodes import Column, Predicate, SemiJoin
from secateur.pruning.report import Faults
from secateur.pruning.stages.survivors import Executors

if TYPE_CHECKING:
    from secateur.io.scan.block_list import BlockList
    from secateur.io.scan.reading.block_reader import BlockReader

ExecutorsFor = Callable[[OpenedTable, Faults], Executors]


@dataclass(frozen=True)
class Settings:
    """How a query is planned; see :func:`secateur.prune`."""

    limit: int | None = None
    order_by: tuple[OrderItem, ...] = ()
    budget_ms: float | None = None
    use_index: bool = True
    use_verdicts: bool = False  # those of earlier reads, and leave new ones
    strict: bool = False
    session_time_zone: str = "UTC"
    case_sensitive: bool = False
    ansi: bool = True
    executors: ExecutorsFor | None = None
    since: int | None = None  # the snapshot after which files came
    semi_join: SemiJoin | None = None  # with the keys, beside every predicate
    value_of: Callable[[str, bool, str], pa.Scalar | None] | None = None
    # computes an expression over constants, in a time zone, with or without ANSI mode

    def whole(self, predicate: Predicate) -> Predicate:
        """Return the predicate together with the semi join."""
        return predicate if self.semi_join is None else predicate & self.semi_join

    def bind(
        self,
        predicate: Predicate,
        schema: pa.Schema,
        indexed: Mapping[Operand, Field] | None = None,
        *,
        variant_values: bool = False,
    ) -> Predicate:
        """Bind the whole predicate to a schema's fields, as the query's session would.

        Expressions in `indexed` become fields, and with `variant_values` the values at paths into VARIANT. Raises as
        :func:`.bind.bind` does.
        """
        return bind(
            self.whole(predicate),
            schema,
            session_time_zone=self.session_time_zone,
            case_sensitive=self.case_sensitive,
            ansi=self.ansi,
            fold=None if self.value_of is None else partial(self.value_of, self.session_time_zone, self.ansi),
            indexed=indexed,
            variant_values=variant_values,
        )


@dataclass(frozen=True)
class Origin:
    """The inputs of a plan, from which the table's current state can be planned again."""

    table: Table
    predicate: Predicate  # as given
    settings: Settings


@dataclass(frozen=True)
class PlannedScan(ScanPlan):
    """The plan of one query over one table snapshot.

    Whichever read path is used, the rows are those of ``table.where(predicate)`` in Spark, or any `limit` of them, or
    the first `limit` of an order; which of equal rows come first is left open, as in Spark.
    """

    opened: OpenedTable
    origin: Origin
    is_part: bool = False  # whether live blocks that can hold a match are not in it

    def part(self, positions: np.ndarray) -> Self:
        """Return the plan of some of its blocks, by their ascending positions."""
        return replace(self, survivors=self.survivors.take(positions), is_part=True)

    def __repr__(self) -> str:
        blocks = self.survivors.blocks
        return (
            f"{type(self).__name__}({brief(self.written)}: {len(blocks):,} blocks of {len(self.file_ordinals):,} files)"
        )

    def __getstate__(self) -> dict[str, object]:
        """Return the state of :class:`ScanPlan`. Reading or planning elsewhere uses no Spark of this process."""
        settings = replace(self.origin.settings, executors=None)
        return {**super().__getstate__(), "origin": replace(self.origin, settings=settings)}

    def to_batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Return the matching rows as record batches, streamed block by block; the first rows of an order at once.

        Raises
        ------
        UnsupportedPredicate
            If only Spark can evaluate the predicate.
        UnknownColumn, InvalidOption, StalePlan, InvalidParquet
        """
        if self.order_by is not None:
            yield from self._first_rows(columns).to_batches()
            return
        self.require_supported()
        tally = MatchTally(self)
        reader = self._reader(self.fields(columns), tally)
        left = self.limit
        with keeping_verdicts(self.opened):
            for batch in reader.read_all(self.blocks_at(self.order(), reader)):
                if left is not None:
                    batch = batch.slice(0, left)
                    left -= batch.num_rows
                yield batch
                if left == 0:
                    return
        tally.finish()

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the matching rows as one table; blocks are read in parallel. Raises as :meth:`to_batches` does."""
        if self.order_by is not None:
            return self._first_rows(columns)
        fields = self.fields(columns)
        schema = pa.schema(fields)
        if self.limit is not None:
            return pa.Table.from_batches(self.to_batches(columns), schema).combine_chunks()
        self.require_supported()
        tally = MatchTally(self)
        reader = self._reader(fields, tally)
        files = reader.portions(self.blocks_at(self.order(), reader))
        with keeping_verdicts(self.opened):
            parts = read_ahead(lambda portion: list(reader.read(*portion)), files, reader.at_once)
            rows = pa.Table.from_batches([batch for part in parts for batch in part], schema)
        tally.finish()
        return rows

    def _first_rows(self, columns: Sequence[str] | None) -> pa.Table:
        """Return the first rows of the plan's order, in that order."""
        from secateur.io.scan.first_rows import first_rows

        return first_rows(self, self.fields(columns))

    def count(self) -> int:
        """Count the matching rows.

        Reads blocks that are neither dead nor fully matching, or have rows deleted by value, unless ordered postings
        tell their rows; and deleted positions.
        """
        live, tally = live_rows(self), MatchTally(self)
        known, counted = live >= 0, np.zeros(0, np.int64)
        total = int(live[known].sum())
        if not known.all() and (self.limit is None or total < self.limit):
            counted, others = self._counted_in_order(np.flatnonzero(~known))
            known[counted] = True
            total += others
        if not known.all() and (self.limit is None or total < self.limit):
            self.require_supported(in_order=False)
            reader = self._reader((), tally)
            order = self.order()
            incomplete = self.blocks_at(order[~known[order]], reader)
            with keeping_verdicts(self.opened):
                files = reader.portions(incomplete)
                total += sum(read_ahead(lambda portion: reader.count(*portion), files, reader.at_once))
        if not len(counted):
            tally.finish(live)
        return total if self.limit is None else min(total, self.limit)

    def _counted_in_order(self, positions: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the blocks among some whose matching rows ordered postings tell, and the number of these rows."""
        if not self.opened.catalog.keeps_order:
            return positions[:0], 0
        from secateur.io.scan.in_order import ROWS, answered_in_order

        counted, results = answered_in_order(self, [ROWS], positions)
        return counted, sum(count for count in results if isinstance(count, int))

    @property
    def complete_blocks(self) -> np.ndarray:
        """Which blocks hold only rows of the plan: fully matching and without deletes, bool of shape (n_blocks,)."""
        blocks, touched = self.survivors.blocks, self.opened.listing.touched
        matching = self.survivors.fully_matching
        return matching if touched is None else matching & ~touched[blocks.file]

    def affected(self, *, exact: bool = False) -> Affected:
        """Return the files that a DELETE, an UPDATE or a MERGE of the matching rows keeps, drops, or rewrites.

        By metadata only, a file may be listed as rewritten even if all or none of its rows match. If `exact`, blocks in
        doubt are read, in the columns of the predicate and the keys alone. Rows for which the predicate is NULL do not
        match. Raises ValueError for a plan with a limit, which leaves out blocks that match; with `exact` also as
        :meth:`to_arrow` does.
        """
        if self.limit is not None:
            raise ValueError(f"a plan with limit={self.limit} does not say which files hold matching rows")
        blocks = self.survivors.blocks
        rows, deleted = self.opened.catalog.file_rows, self.survivors.deleted_rows
        live = rows if deleted is None else np.where(rows >= 0, rows - deleted, rows)
        if not exact:
            return affected_files(self.paths, live, blocks, self.survivors.fully_matching)
        matching, alive = self._counted()
        gone = alive == 0
        live = live - np.bincount(blocks.file[gone], blocks.row_count[gone], len(live)).astype(np.int64)
        with_matches = np.flatnonzero(matching)
        return affected_files(self.paths, live, blocks.take(with_matches), (matching == alive)[with_matches])

    def _counted(self) -> tuple[np.ndarray, np.ndarray]:
        """Count the matching and the live rows of every surviving block; reads those that are in doubt."""
        self.require_supported()
        reader, order = self._reader(()), self.order()
        incomplete = order[~self.complete_blocks[order]]
        files = self.blocks_at(incomplete, reader).by_file()
        with keeping_verdicts(self.opened):
            counts = list(read_ahead(lambda file: list(reader.counts(file)), files, reader.at_once))
        matching, alive = (self.survivors.blocks.row_count.astype(np.int64) for _ in range(2))
        matching[incomplete], alive[incomplete] = np.array([pair for file in counts for pair in file]).reshape(-1, 2).T
        return matching, alive

    @cached_property
    def snapshot(self) -> int | None:
        """The snapshot that the plan has read, which is `since` of the next plan: for a directory, that of its index.

        None for a table that has no snapshot and no row: the next plan asks for all. The files of a directory that
        were there before its index snapshot and are gone are looked for once more.

        Raises
        ------
        UnknownSnapshot
            If the index of a directory does not have exactly the files that the plan has seen.
        """
        from secateur.io.tables.formats import history_of

        return history_of(self.opened.table).snapshot_of(self.opened.whole)

    def is_current(self) -> bool:
        """Return whether all files of the plan are still live and unchanged, by one listing or the table's current
        metadata.

        If rows were added to or deleted from the table since, the plan still returns those of its own snapshot.
        """
        zone = known_zone(self.session_time_zone)
        now, then, files = self.origin.table.snapshot(fresh=True).fresh_listing(zone), self.opened.listing, self._files
        places = pc.index_in(then.paths.take(files), value_set=now.paths)
        if places.null_count:
            return False
        at, in_plan = places.to_numpy(), files.to_numpy()
        pairs = ((now.size, then.size), (now.stamp, then.stamp), (now.witness, then.witness))
        return all(bool((new[at] == old[in_plan]).all()) for new, old in pairs)

    def means_the_same(self, *, ansi: bool, session_time_zone: str) -> bool:
        """Return whether the predicate has the plan's meaning also in a session of this mode and time zone."""
        settings, now = self.origin.settings, dt.datetime.now(dt.UTC)

        def meaning(zone: str, ansi: bool) -> Predicate:
            fold = None if settings.value_of is None else partial(settings.value_of, zone, ansi)
            schema, case_sensitive = self.opened.binding_schema, settings.case_sensitive
            return bound_by(
                self.origin.predicate, Binder(schema, known_zone(zone), case_sensitive, ansi, now=now, fold=fold)
            )

        try:
            return meaning(self.session_time_zone, self.ansi) == meaning(session_time_zone, ansi)
        except SecateurError:  # the predicate is rejected there
            return False

    @property
    def _files(self) -> pa.Array:
        return from_numpy(self.file_ordinals)

    def fields(self, columns: Sequence[str] | None = None) -> list[pa.Field]:
        """Return the table's fields of the given names, or all; `_file`, `_pos` and `_row_id` are the places and ids
        of rows.

        Raises UnknownColumn, InvalidOption for a single text or a column that is named twice, and UnsupportedTable for
        row ids of a table that has none.
        """
        schema = self.opened.schema
        if isinstance(columns, str):
            raise InvalidOption(f"{columns!r} is one text; write a list of columns: [{columns!r}]")
        if columns is None:
            return list(schema)
        binder = Binder(schema, known_zone(self.session_time_zone), self.origin.settings.case_sensitive)

        def field(name: str) -> pa.Field:
            place = place_called(name, schema, self.opened.listing)
            return schema.field(resolve(Column(split_name(name)), binder).path[0]) if place is None else place

        fields = [field(name) for name in columns]
        names = [field.name for field in fields]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidOption(f"columns has {twice} twice, by the same or another spelling: name every column once")
        return fields

    def order(self) -> np.ndarray:
        """The positions of the surviving blocks, ordered by file, then row group."""
        from secateur.io.scan.block_list import reading_order

        blocks = self.survivors.blocks
        return reading_order(blocks.file, blocks.row_group)

    def blocks_at(self, positions: np.ndarray, reader: BlockReader, *, is_sent: bool = False) -> BlockList:
        """Return the reader's description of surviving blocks, given their positions in :meth:`order`, for this process
        or to be sent to others.
        """
        from secateur.io.scan.surviving_blocks import surviving_blocks

        files = sorted_distinct(self.survivors.blocks.file[positions])
        options = self.delivery.options.take(from_numpy(np.searchsorted(self.file_ordinals, files)))
        return surviving_blocks(self, positions, reader, options, is_sent=is_sent)

    @cached_property
    def delivery(self) -> Delivery:
        """Return how the rows of the surviving files are read; applicable delete files are read once."""
        return self.opened.table.delivery(self.opened.listing, self.file_ordinals)

    def _reader(self, fields: Sequence[pa.Field], tally: MatchTally | None = None) -> BlockReader:
        from secateur.io.scan.reading.block_reader import block_reader

        reader = block_reader(self.opened, self.delivery, fields, self.residuals, gains=self.expected_gains)
        verdicts = self.verdict_notes
        if tally is None:
            return replace(reader, without_match=verdicts)

        def note(file: FileBlocks, residual: int, row_groups: Sequence[int]) -> None:
            tally.without_match(file, residual, row_groups)
            if verdicts is not None:
                verdicts(file, residual, row_groups)

        return replace(reader, without_match=note)

    @cached_property
    def expected_gains(self) -> tuple[float, ...]:
        """What reading the columns of each residual first is expected to spare of the others."""
        from secateur.io.scan.reading.expected_gain import expected_gains

        return expected_gains(self.residuals, self.survivors.blocks)

    @cached_property
    def verdict_notes(self) -> VerdictNotes | None:
        """Where readers leave what they find; None if they must not, because others would not find the same."""
        settings = self.origin.settings
        if self.limit is not None or settings.semi_join is not None or not settings.use_verdicts:
            return None
        return leaving_verdicts(self.residuals, self.opened, self.session_time_zone, ansi=self.ansi)

    def require_supported(self, *, in_order: bool = True) -> None:
        """Raise UnsupportedPredicate if some block needs what only Spark can evaluate: the predicate, or the order."""
        if left := [*self._predicate_left_to_spark, *(self._order_left_to_spark if in_order else ())]:
            raise UnsupportedPredicate(f"only Spark can evaluate {'; '.join(left)}: use plan.to_spark(spark)")

    @property
    def left_to_spark(self) -> list[str]:
        """The parts of the query that only Spark can evaluate and some block needs, each with the reason."""
        return [*self._predicate_left_to_spark, *self._order_left_to_spark]

    @property
    def _predicate_left_to_spark(self) -> list[str]:
        left = self.residuals.whole
        return [] if left is None else list(left_to_spark(left))

    @property
    def _order_left_to_spark(self) -> list[str]:
        return [] if self.order_by is None or not len(self.residuals.of_block) else self.order_by.left_to_spark
