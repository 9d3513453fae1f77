"""Verify an index against the data: read blocks again, and compare their values with everything recorded for them.

The work is spread over executors. Each opens the index snapshot by number, and reads from the index only the records of
its own blocks, and from the table only these blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from secateur.arrays import flags
from secateur.errors import IndexFault, InvalidParquet, NotInFile, OldCalendar, StalePlan
from secateur.index.build.column_sketch import nested
from secateur.index.build.tasks import RunTasks
from secateur.index.model import ORDERED, Filter, IndexedColumn, is_tuple_column
from secateur.index.read.chunk_reader import ChunkReader
from secateur.index.read.group_arrays import segment_groups
from secateur.index.read.loader import IndexMemory
from secateur.index.read.memory_cache import ByteCache
from secateur.index.segments.snapshot_files import open_snapshot
from secateur.index.verify.check_filters import lost, wanted
from secateur.index.verify.check_statistics import Contradiction, Unit, tuple_contradictions
from secateur.io.scan.audit_findings import AuditFault, AuditFindings
from secateur.io.scan.block_list import BlockList
from secateur.io.scan.segment_records import SegmentRecords
from secateur.io.storage.index_store import FileStore
from secateur.io.tables.file_rows import FileBlocks, FileRows
from secateur.pruning.interval import RowValues
from secateur.pruning.predicate.index_paths import summed_path
from secateur.pruning.predicate.indexed.indexed_expressions import IndexedExpression
from secateur.pruning.report import Faults, Reads
from secateur.pruning.rows.row_values import Rows, UnknownValue, other_texts
from secateur.values.conversion import keys_of

MOST_DRAWN = 4  # values of a column that a block contributes to random predicates
LONGEST_DRAWN = 64  # bytes of such a value
MEMORY = 1 << 28  # bytes of an index that a task holds in memory


@dataclass(frozen=True)
class AuditPart:
    """Some blocks of one segment: the description of a task."""

    segment: int
    blocks: bytes  # a BlockList; a block's residual is its position in the segment


@dataclass(frozen=True)
class StatisticsAudit:
    """The audit of an index snapshot, as sent to tasks."""

    store: FileStore
    number: int  # of the snapshot
    created: float
    open: Callable[[FileBlocks], FileRows]  # all rows, deleted ones included
    parts: Sequence[AuditPart]
    seed: int

    def run(self, run: RunTasks) -> Iterator[bytes]:
        """Yield the findings of every task, for :meth:`AuditFindings.add`. Raises IndexFault."""
        return run(self._work, len(self.parts))

    def _work(self, numbers: Sequence[int]) -> Iterator[bytes]:
        snapshot = open_snapshot(self.store, self.number)
        if snapshot.created != self.created:
            raise IndexFault(f"{snapshot.name} has been replaced since the audit began")
        faults, cache = Faults(), ByteCache(MEMORY)
        chunks = ChunkReader(self.store, None, Reads())
        memory = IndexMemory(self.store, cache, chunks, faults, snapshot, segment_groups(snapshot.segments))
        for i in numbers:
            part = self.parts[i]
            auditor = SegmentAuditor(
                SegmentRecords(memory, part.segment), np.random.default_rng([self.seed, part.segment])
            )
            for file in BlockList.from_bytes(part.blocks).by_file():
                try:
                    with faults.tolerated():
                        auditor.look_at(file, self.open(file))
                except (StalePlan, InvalidParquet) as error:
                    auditor.findings.skipped.append(str(error))
            auditor.findings.skipped += faults.drain()
            yield auditor.findings.to_bytes()


@dataclass
class SegmentAuditor:
    """Compares the blocks of one segment with their records in the index."""

    records: SegmentRecords
    draw: np.random.Generator
    findings: AuditFindings = field(default_factory=AuditFindings)

    def look_at(self, file: FileBlocks, rows: FileRows) -> None:
        """Check some blocks of one file, and the number of its row groups."""
        within = file.residual  # the positions of the blocks in the segment
        table = self.records.blocks
        recorded = np.sort(table.row_group[table.file == table.file[within[0]]]).tolist()
        if recorded != list(range(len(rows.row_count))):
            self._note(file.path, -1, Contradiction("", "row groups", str(recorded)[:200], str(len(rows.row_count))))
        total = int(self.records.snapshot.segments.row_count[self.records.segment])
        if int(table.row_count.sum()) != total:
            self._note(file.path, -1, Contradiction("", "rows of its segment", str(total), str(table.row_count.sum())))
        for row_group, block in zip(file.row_groups, within, strict=True):
            if row_group < len(rows.row_count):
                self._block(file.path, rows, row_group, block)

    def _block(self, path: str, rows: FileRows, row_group: int, block: int) -> None:
        self.findings.blocks += 1
        self.findings.rows += int(rows.row_count[row_group])
        if int(self.records.blocks.row_count[block]) != int(rows.row_count[row_group]):
            counts = str(self.records.blocks.row_count[block]), str(rows.row_count[row_group])
            self._note(path, row_group, Contradiction("", "the row count", *counts))
        for root in self.records.roots:
            try:
                self._column(path, rows, row_group, block, root)
            except (OldCalendar, NotInFile) as error:
                self.findings.skipped.append(str(error))
        for expression in self.records.expressions:
            try:
                self._expression(path, rows, row_group, block, expression)
            except (OldCalendar, NotInFile) as error:
                self.findings.skipped.append(str(error))
        with self.records.memory.faults.tolerated():
            self._tuples(path, rows, row_group, block)

    def _column(self, path: str, rows: FileRows, row_group: int, block: int, root: str) -> None:
        """Check one top-level column of a block, and everything nested in it."""
        witnesses = [
            w for c in self.records.columns if c.path[0] == root and (w := self.records.witness(c, block)) is not None
        ]
        filters = {f: filter_ for f, filter_ in enumerate(self.records.snapshot.filters) if filter_.path[0] == root}
        looked_up: dict[int, pa.Array] = {}
        row_witnesses, sums = self.records.row_witnesses(block, filters), self.records.sum_witnesses(root, block)
        for _, batch in rows.positioned((row_group,), [self.records.snapshot.schema.field(root)]):
            values = batch.column(0)
            for witness in witnesses:
                column_values = nested(values, witness.column.path[1:])
                self._draw(witness.column, column_values, first=not witness.rows)
                witness.add(column_values)
            for f, filter_ in filters.items():
                self._gather(looked_up, f, filter_, nested(values, filter_.path[1:]))
            for row_witness in row_witnesses:
                row_witness.add(nested(values, row_witness.segment.filter.path[1:]))
            for witness_of_sum in sums:
                witness_of_sum.add(nested(values, summed_path(witness_of_sum.column.path)[1:]))
        for witness_of_sum in sums:
            self._note(path, row_group, *witness_of_sum.end())
        for row_witness in row_witnesses:
            self._note(path, row_group, *row_witness.end())
        for witness in witnesses:
            self.findings.values += witness.rows
            self._note(path, row_group, *witness.end())
        self._look_up(path, row_group, block, looked_up)

    def _look_up(self, path: str, row_group: int, block: int, looked_up: Mapping[int, pa.Array]) -> None:
        """Check that filters hold some values of a block."""
        for f, values in looked_up.items():
            with self.records.memory.faults.tolerated():
                wrong = lost(self.records.memory, f, self.records.segment, block, values)
                self.findings.values += len(values)
                self._note(path, row_group, *([] if wrong is None else [wrong]))

    def _expression(self, path: str, rows: FileRows, row_group: int, block: int, expression: IndexedExpression) -> None:
        """Check an indexed expression in a block, by its values that are known."""
        column = IndexedColumn(expression.field.path, expression.field.type)
        witness = self.records.witness(column, block)
        filters = {f: filter_ for f, filter_ in enumerate(self.records.snapshot.filters) if filter_.path == column.path}
        row_witnesses = self.records.row_witnesses(block, filters)
        looked_up: dict[int, pa.Array] = {}
        complete = True
        for read, evaluated in self._evaluated(rows, row_group, expression):
            known = evaluated.values.filter(flags(~evaluated.unknown))
            complete = complete and len(known) == len(evaluated.values)
            if witness is not None:
                witness.add(known)
            for row_witness in row_witnesses:
                row_witness.add(known)
            try:
                others = list(other_texts(expression.operand, read, known)) if complete else []
            except UnknownValue:
                complete, others = False, []
            for texts in others:
                for row_witness in row_witnesses:
                    row_witness.add_others(*texts)
            for f, filter_ in filters.items():
                for values in (known, *(texts.values for texts in others)):
                    self._gather(looked_up, f, filter_, values)
        if complete:  # a block with an unknown value has no statistics
            for row_witness in row_witnesses:
                self._note(path, row_group, *row_witness.end())
            if witness is not None:
                self.findings.values += witness.rows
                self._note(path, row_group, *witness.end())
        self._look_up(path, row_group, block, looked_up)

    def _evaluated(
        self, rows: FileRows, row_group: int, expression: IndexedExpression
    ) -> Iterator[tuple[pa.RecordBatch, RowValues]]:
        """Yield the rows of a block, as far as an expression is computed from their columns, and its values on them."""
        if expression.at_path is not None:
            for values in rows.reader.opened.values_at_path(row_group, expression.at_path.path):
                yield pa.RecordBatch.from_arrays([values.values], names=[""]), values
            return
        schema = self.records.snapshot.schema
        roots = [schema.field(root) for root in dict.fromkeys(field.path[0] for field in expression.fields)]
        for _, batch in rows.positioned((row_group,), roots):
            read = pa.RecordBatch.from_arrays(batch.columns, schema=pa.schema(roots))
            yield read, Rows(read).values(expression.operand)

    def _gather(self, looked_up: dict[int, pa.Array], f: int, filter_: Filter, values: pa.Array) -> None:
        if filter_.kind == ORDERED:  # which are compared whole
            return
        new = wanted(filter_, values, self.draw)
        both = [looked_up[f], new] if f in looked_up else [new]
        looked_up[f] = wanted(filter_, pa.concat_arrays(both), self.draw)

    def _tuples(self, path: str, rows: FileRows, row_group: int, block: int) -> None:
        """Check the bounds of the sort key's tuples, if they are stored."""
        columns = [c for c in self.records.snapshot.columns if is_tuple_column(c.path)]
        zone_map = self.records.zone_map(columns[0]) if columns else None
        if zone_map is None:
            return
        key, schema = self.records.sort_key, self.records.snapshot.schema
        roots = list(dict.fromkeys(column.path[0] for column in key))
        leaf = self.records.leaves.get(columns[0])
        units = [Unit.of(zone_map, block), *([leaf] if leaf is not None else [])]
        for _, batch in rows.positioned((row_group,), [schema.field(root) for root in roots]):
            arrays = [nested(batch.column(roots.index(item.path[0])), item.path[1:]) for item in key]
            wrong = [fault for unit in units for fault in tuple_contradictions(arrays, key, unit)]
            if wrong:
                self._note(path, row_group, *wrong)
                return

    def _draw(self, column: IndexedColumn, values: pa.Array, *, first: bool) -> None:
        """Draw values for random predicates from the first batch of a block."""
        present = values.drop_null() if first else values.slice(0, 0)
        if not len(present):
            return
        number = self.records.snapshot.columns.index(column)
        chosen = present.take(pa.array(self.draw.integers(0, len(present), MOST_DRAWN)))
        keys = [keys_of(chosen).at(i) for i in range(len(chosen))]
        short = [key for key in keys if not isinstance(key, bytes) or len(key) <= LONGEST_DRAWN]
        self.findings.drawn.setdefault(number, []).extend(short)

    def _note(self, path: str, row_group: int, *contradictions: Contradiction) -> None:
        self.findings.faults += [
            AuditFault(path, row_group, fault.column, fault.statistic, fault.recorded, fault.actual)
            for fault in contradictions
        ]
