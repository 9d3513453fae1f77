"""Verify an index against the data: read blocks again, and compare their values with everything recorded for them.

The work is spread over executors. Each opens the index snapshot by number, and reads from the index only the records of
its own blocks, and from the table only these blocks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from secateur.arrays import flags
from secateur.errors import IndexFault, InvalidParquet, NotInFile, OldCalendar, StalePlan
from secateur.index.build.column_sketch import nested
from secateur.index.build.tasks import RunTasks
from secateur.index.model import ORDERED, BlockTable, Filter, IndexedColumn, is_derived, is_tuple_column
from secateur.index.read.chunk_reader import ChunkReader
from secateur.index.read.group_arrays import segment_groups
from secateur.index.read.loader import IndexMemory
from secateur.index.read.memory_cache import ByteCache
from secateur.index.segments.named_columns import expressions_of
from secateur.index.segments.snapshot import open_snapshot
from secateur.index.segments.stored_segment import stored_segment
from secateur.index.verify.check_filters import lost, wanted
from secateur.index.verify.check_rows import RowWitness, SegmentRows, segment_rows
from secateur.index.verify.check_statistics import ColumnWitness, Contradiction, Unit, tuple_contradictions
from secateur.index.verify.check_sums import SumWitness
from secateur.index.zones.page_statistics import PageTable
from secateur.index.zones.sort_key import SortColumn, parse_sort_key
from secateur.index.zones.zonemap import ZoneMap
from secateur.io.scan.block_list import BlockList
from secateur.io.storage.index_store import FileStore
from secateur.io.tables.file_rows import FileBlocks, FileRows
from secateur.pruning.predicate.bound import Field, is_sum, summed_path
from secateur.pruning.predicate.indexed.indexed_expressions import IndexedExpression
from secateur.pruning.report import Faults, Reads
from secateur.pruning.row_values import Rows, UnknownValue, other_texts
from secateur.values import Key, keys_of

MOST_DRAWN = 4  # values of a column that a block contributes to random predicates
LONGEST_DRAWN = 64  # bytes of such a value
MEMORY = 1 << 28  # bytes of an index that a task holds in memory


@dataclass(frozen=True)
class AuditPart:
    """Some blocks of one segment: the description of a task."""

    segment: int
    blocks: bytes  # a BlockList; a block's residual is its position in the segment


@dataclass(frozen=True)
class AuditFault:
    """A statistic that the data contradicts, for a block or a whole file (then the row group is -1)."""

    file: str
    row_group: int
    column: str
    statistic: str
    recorded: str
    actual: str

    def __str__(self) -> str:
        block = self.file if self.row_group < 0 else f"{self.file}, row group {self.row_group}"
        of = f" of {self.column}" if self.column else ""
        return f"{block}: {self.statistic}{of} is recorded as {self.recorded}, and {self.actual} was found"


@dataclass
class AuditFindings:
    """The findings of tasks."""

    blocks: int = 0
    rows: int = 0
    values: int = 0
    faults: list[AuditFault] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    drawn: dict[int, list[Key]] = field(default_factory=dict)  # values by column number

    def to_bytes(self) -> bytes:
        """Encode as JSON, with bytes keys in hexadecimal."""
        drawn = {c: [key.hex() if isinstance(key, bytes) else key for key in keys] for c, keys in self.drawn.items()}
        return json.dumps({**asdict(self), "drawn": drawn}).encode()

    def add(self, data: bytes) -> None:
        """Add the findings of another process."""
        findings = json.loads(data)
        self.blocks += findings["blocks"]
        self.rows += findings["rows"]
        self.values += findings["values"]
        self.faults += [AuditFault(**fault) for fault in findings["faults"]]
        self.skipped += findings["skipped"]
        for c, keys in findings["drawn"].items():
            keys_of_column = self.drawn.setdefault(int(c), [])
            keys_of_column += [bytes.fromhex(key) if isinstance(key, str) else key for key in keys]


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
            auditor = SegmentAuditor(memory, part.segment, np.random.default_rng([self.seed, part.segment]))
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

    memory: IndexMemory
    segment: int
    draw: np.random.Generator
    findings: AuditFindings = field(default_factory=AuditFindings)

    def look_at(self, file: FileBlocks, rows: FileRows) -> None:
        """Check some blocks of one file, and the number of its row groups."""
        within = file.residual  # the positions of the blocks in the segment
        table = self._blocks
        recorded = np.sort(table.row_group[table.file == table.file[within[0]]]).tolist()
        if recorded != list(range(len(rows.row_count))):
            self._note(file.path, -1, Contradiction("", "row groups", str(recorded)[:200], str(len(rows.row_count))))
        total = int(self.memory.snapshot.segments.row_count[self.segment])
        if int(table.row_count.sum()) != total:
            self._note(file.path, -1, Contradiction("", "rows of its segment", str(total), str(table.row_count.sum())))
        for row_group, block in zip(file.row_groups, within, strict=True):
            if row_group < len(rows.row_count):
                self._block(file.path, rows, row_group, block)

    def _block(self, path: str, rows: FileRows, row_group: int, block: int) -> None:
        self.findings.blocks += 1
        self.findings.rows += int(rows.row_count[row_group])
        if int(self._blocks.row_count[block]) != int(rows.row_count[row_group]):
            counts = str(self._blocks.row_count[block]), str(rows.row_count[row_group])
            self._note(path, row_group, Contradiction("", "the row count", *counts))
        for root in self._roots:
            try:
                self._column(path, rows, row_group, block, root)
            except (OldCalendar, NotInFile) as error:
                self.findings.skipped.append(str(error))
        for expression in self._expressions:
            try:
                self._expression(path, rows, row_group, block, expression)
            except (OldCalendar, NotInFile) as error:
                self.findings.skipped.append(str(error))
        with self.memory.faults.tolerated():
            self._tuples(path, rows, row_group, block)

    def _column(self, path: str, rows: FileRows, row_group: int, block: int, root: str) -> None:
        """Check one top-level column of a block, and everything nested in it."""
        witnesses = [w for c in self._columns if c.path[0] == root and (w := self._witness(c, block)) is not None]
        filters = {f: filter_ for f, filter_ in enumerate(self.memory.snapshot.filters) if filter_.path[0] == root}
        looked_up: dict[int, pa.Array] = {}
        row_witnesses, sums = self._row_witnesses(block, filters), self._sum_witnesses(root, block)
        for _, batch in rows.positioned((row_group,), [self.memory.snapshot.schema.field(root)]):
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

    def _sum_witnesses(self, root: str, block: int) -> list[SumWitness]:
        """Return a witness for every sum that is kept of a top-level column; none for those that cannot be read."""
        witnesses = []
        for column in self.memory.snapshot.columns:
            if is_sum(column.path) and summed_path(column.path)[0] == root:
                with self.memory.faults.tolerated():
                    zone_map = self._zone_map(column)
                    if zone_map is not None:
                        witnesses.append(SumWitness(column, Unit.of(zone_map, block)))
        return witnesses

    def _row_witnesses(self, block: int, filters: Mapping[int, Filter]) -> list[RowWitness[Any]]:
        """Return a witness for every filter that says rows; none for those that cannot be read."""
        witnesses: list[RowWitness[Any]] = []
        for f in (f for f, filter_ in filters.items() if filter_.rows or filter_.kind == ORDERED):
            with self.memory.faults.tolerated():
                if f not in self._row_lists:
                    stored = stored_segment(self.memory.store, self.memory.snapshot, self.segment)
                    self._row_lists[f] = segment_rows(stored, f)
                witnesses.append(RowWitness(self._row_lists[f], block))
        return witnesses

    def _look_up(self, path: str, row_group: int, block: int, looked_up: Mapping[int, pa.Array]) -> None:
        """Check that filters hold some values of a block."""
        for f, values in looked_up.items():
            with self.memory.faults.tolerated():
                wrong = lost(self.memory, f, self.segment, block, values)
                self.findings.values += len(values)
                self._note(path, row_group, *([] if wrong is None else [wrong]))

    def _expression(self, path: str, rows: FileRows, row_group: int, block: int, expression: IndexedExpression) -> None:
        """Check an indexed expression in a block, by its values that are known."""
        column = IndexedColumn(expression.field.path, expression.field.type)
        witness = self._witness(column, block)
        filters = {f: filter_ for f, filter_ in enumerate(self.memory.snapshot.filters) if filter_.path == column.path}
        row_witnesses = self._row_witnesses(block, filters)
        looked_up: dict[int, pa.Array] = {}
        complete = True
        schema = self.memory.snapshot.schema
        roots = [schema.field(root) for root in dict.fromkeys(field.path[0] for field in expression.fields)]
        for _, batch in rows.positioned((row_group,), roots):
            read = pa.RecordBatch.from_arrays(batch.columns, schema=pa.schema(roots))
            evaluated = Rows(read).values(expression.operand)
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

    def _gather(self, looked_up: dict[int, pa.Array], f: int, filter_: Filter, values: pa.Array) -> None:
        if filter_.kind == ORDERED:  # which are compared whole
            return
        new = wanted(filter_, values, self.draw)
        both = [looked_up[f], new] if f in looked_up else [new]
        looked_up[f] = wanted(filter_, pa.concat_arrays(both), self.draw)

    def _witness(self, column: IndexedColumn, block: int) -> ColumnWitness | None:
        with self.memory.faults.tolerated():
            zone_map = self._zone_map(column)
            if zone_map is None:
                return None
            first_row, pages = self._pages_of(column, block)
            rows = int(self.memory.snapshot.segments.row_count[self.segment])
            count = int(self._blocks.row_count[block])
            leaf = self._leaves.get(column)
            return ColumnWitness(column, Unit.of(zone_map, block), count, leaf, rows, first_row, pages)
        return None

    def _pages_of(self, column: IndexedColumn, block: int) -> tuple[np.ndarray, list[Unit]]:
        table = self._pages[column]
        if table is None:
            return np.zeros(0, np.int64), []
        begin, end = table.offsets[block : block + 2].tolist()
        return table.first_row[begin:end], [Unit.of(table.zone_map, page) for page in range(begin, end)]

    def _tuples(self, path: str, rows: FileRows, row_group: int, block: int) -> None:
        """Check the bounds of the sort key's tuples, if they are stored."""
        columns = [c for c in self.memory.snapshot.columns if is_tuple_column(c.path)]
        zone_map = self._zone_map(columns[0]) if columns else None
        if zone_map is None:
            return
        key, schema = self._sort_key, self.memory.snapshot.schema
        roots = list(dict.fromkeys(column.path[0] for column in key))
        leaf = self._leaves.get(columns[0])
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
        number = self.memory.snapshot.columns.index(column)
        chosen = present.take(pa.array(self.draw.integers(0, len(present), MOST_DRAWN)))
        keys = [keys_of(chosen).at(i) for i in range(len(chosen))]
        short = [key for key in keys if not isinstance(key, bytes) or len(key) <= LONGEST_DRAWN]
        self.findings.drawn.setdefault(number, []).extend(short)

    def _note(self, path: str, row_group: int, *contradictions: Contradiction) -> None:
        self.findings.faults += [
            AuditFault(path, row_group, fault.column, fault.statistic, fault.recorded, fault.actual)
            for fault in contradictions
        ]

    # ---- index records

    @cached_property
    def _blocks(self) -> BlockTable:
        """The block table of the segment. Raises IndexFault."""
        self.memory.row_count(self.segment)
        group, within = self.memory.groups.place(self.segment)
        (resident,) = self.memory.blocks([(group, np.array([self.segment]))])
        return resident.of(within)

    @cached_property
    def _columns(self) -> list[IndexedColumn]:
        return [c for c in self.memory.snapshot.columns if not is_derived(c.path)]

    @cached_property
    def _expressions(self) -> list[IndexedExpression]:
        return expressions_of(self.memory.snapshot.options, self.memory.snapshot.schema)

    @cached_property
    def _roots(self) -> list[str]:
        """The top-level columns that have any record."""
        paths = [*(c.path for c in self._columns), *(f.path for f in self.memory.snapshot.filters)]
        return list(dict.fromkeys(path[0] for path in paths if not is_derived(path)))

    @cached_property
    def _sort_key(self) -> Sequence[SortColumn]:
        return parse_sort_key(self.memory.snapshot.options.sort_key)

    @cached_property
    def _row_lists(self) -> dict[int, SegmentRows[Any]]:
        return {}

    @cached_property
    def _zones(self) -> dict[IndexedColumn, ZoneMap | None]:
        return {}

    def _zone_map(self, column: IndexedColumn) -> ZoneMap | None:
        """Return the zone maps of a column over the segment; None if there are none. Raises IndexFault."""
        if column not in self._zones:
            stored = stored_segment(self.memory.store, self.memory.snapshot, self.segment)
            self._zones[column] = stored.known_zone_map(self.memory.snapshot.columns.index(column))
        return self._zones[column]

    @cached_property
    def _leaves(self) -> Mapping[IndexedColumn, Unit]:
        """The tree's statistics of this segment. Raises IndexFault."""
        zones = {c: self.memory.snapshot.tree_zones(_field(c)) for c in self.memory.snapshot.columns}
        return {c: Unit.of(nodes, self.segment) for c, nodes in zones.items() if nodes is not None}

    @cached_property
    def _pages(self) -> Mapping[IndexedColumn, PageTable | None]:
        segment = np.array([self.segment])
        columns = [c for c in self.memory.snapshot.columns if not is_tuple_column(c.path)]
        return {c: self.memory.pages(_field(c), segment)[0] for c in columns}


def _field(column: IndexedColumn) -> Field:
    return Field(column.path, column.type)
