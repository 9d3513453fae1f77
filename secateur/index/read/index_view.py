"""The index of a table restricted to its live files: what the pipeline prunes with.

Blocks of segments are numbered across the snapshot; blocks of files without a segment come from their footers and
follow. Candidates are evaluated in runs: long contiguous arrays in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from secateur.concurrency import Result, Wanted
from secateur.index.model import ORDERED, BlockTable
from secateur.index.read.blocks import LOOSE, LooseBlocks, OpenedBlocks
from secateur.index.read.coverage import Coverage, CoveredFiles, LiveFiles, is_survivor, uncovered
from secateur.index.read.loader import IndexMemory
from secateur.index.read.location_reader import locations_at, placed_at
from secateur.index.read.lookup import ZonesOf, answers, holders
from secateur.index.read.ordered_lookup import rows_within
from secateur.index.read.ordered_values import SegmentValues, segment_values
from secateur.index.read.row_lookup import rows_with
from secateur.index.read.runs import LooseRun, SegmentRun
from secateur.index.segments.snapshot import Snapshot
from secateur.index.zones import segment_tree
from secateur.index.zones.page_locations import BlockLocations
from secateur.index.zones.page_statistics import PageTable
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.questions import FilterHits, Question, Ranges, Values
from secateur.pruning.report import Counts, Faults, counted
from secateur.pruning.row_ranges import RowRanges, joined_ranges, whole_blocks
from secateur.pruning.statistics import Blocks, Descent, Run, Statistics
from secateur.ragged import elements_of

FooterReader = Callable[[np.ndarray], LooseBlocks]
FEW_RUNS = 8  # of neighbouring segments in a group; with more, the whole group is evaluated
_NOTHING = np.zeros(0, np.int64)


class IndexView:
    """The index of a table for one query; see :class:`secateur.pruning.statistics.Catalog`."""

    def __init__(
        self,
        live: LiveFiles,
        coverage: Coverage,
        memory: IndexMemory,
        read_footers: FooterReader,
        faults: Faults,
    ) -> None:
        self.coverage, self.memory = coverage, memory
        self._live, self._read_footers, self._faults = live, read_footers, faults
        self.reads = memory.chunks.reads
        self.loose: LooseBlocks | None = None
        self._undecided: set[int] = set()  # segments whose blocks were all taken as candidates

    @property
    def snapshot(self) -> Snapshot | None:
        """The index snapshot; None if there is none or it is unreadable."""
        return self.memory.snapshot if self.memory.snapshot.number else None  # 0 is that of no index

    @property
    def files(self) -> CoveredFiles:
        """The live files."""
        return CoveredFiles(self._live, self.coverage)

    @property
    def file_rows(self) -> np.ndarray:
        """The rows of every live file, from its index entry or its footer; -1 where neither has been read."""
        rows = np.full(len(self.files), -1)
        if self.coverage.counts_of is not None:
            entries = np.flatnonzero(self.coverage.live >= 0)
            rows[self.coverage.live[entries]] = self.coverage.counts_of.row_count[entries]
        if self.loose is not None:
            blocks = self.loose.blocks
            rows[blocks.file] = 0
            np.add.at(rows, blocks.file, blocks.row_count)
        return rows

    def everywhere(self, files: np.ndarray | None) -> np.ndarray:
        """Return the segments that hold a block of a surviving file (None: all files survive), ascending."""
        return self.coverage.segments(files)

    def counts(self, files: np.ndarray | None, segments: np.ndarray) -> Counts:
        """Count what the surviving files hold in the given segments and outside all segments."""
        return self.coverage.counts(files, segments)

    def descend(self, predicate: Predicate, implied: Predicate | None) -> Descent:
        """Return the segments that may hold a match, by the tree above them; `implied` only rules out more."""
        snapshot = self.memory.snapshot
        if not len(snapshot.segments):
            return Descent(_NOTHING, _NOTHING, "no index")
        descent = segment_tree.descend(predicate, snapshot.tree, self._tree_zones, implied)
        note = f"tree of fan-out {snapshot.tree.fan_out}, {counted(descent.visited, 'node')} visited"
        whole = f", all rows of {counted(len(descent.whole), 'segment')} match" if len(descent.whole) else ""
        return Descent(descent.segments, descent.whole, note + whole)

    def _tree_zones(self, column: Field) -> Zones | None:
        if self.file_zones(column) is not None:  # these are exact, even where files have a column of that name too
            return None
        with self._faults.tolerated():
            zone_map = self.memory.tree_zones(column)
            return None if zone_map is None else zone_map.zones(self.memory.snapshot.tree.row_count)
        return None

    def merged(self, segments: np.ndarray) -> Statistics:
        """Return the merged zone maps of some segments, on which the tree decides."""
        return segment_tree.Nodes(self.memory.snapshot.tree.row_count[segments], segments, self._tree_zones)

    def merged_nulls(self, column: Field, segments: np.ndarray) -> np.ndarray:
        """Return the most NULLs that some segments may hold in a column, dead files included; -1 if unknown."""
        zone_map = None
        if self.memory is not None and self.file_zones(column) is None:
            with self._faults.tolerated():
                zone_map = self.memory.tree_zones(column)
        return np.full(len(segments), -1) if zone_map is None else zone_map.null_count[segments]

    def segment_of_file(self, file: int) -> int:
        """Return the segment that holds the blocks of a live file; LOOSE where none does."""
        entries = np.flatnonzero(self.coverage.live == file)
        return int(np.searchsorted(self.coverage.begin, entries[0], "right")) - 1 if len(entries) else LOOSE

    # ---- candidates

    def runs(self, files: np.ndarray | None, segments: np.ndarray) -> Sequence[Run]:
        """Return the blocks of the surviving files in the given segments."""
        runs: list[Run] = []
        if len(segments):
            complete = self.coverage.complete_under(files)
            for group, of_group in self.memory.by_group(segments):
                runs += self._runs_of(group, of_group, files, complete)
        return runs

    def loose_runs(self, files: np.ndarray | None) -> Sequence[Run]:
        """Return the blocks of surviving files that no segment covers, read from their footers."""
        self._open_loose(self.coverage.loose(files))
        return [] if self.loose is None else [LooseRun(self.total, self.loose, self._live)]

    def _runs_of(
        self, group: int, segments: np.ndarray, files: np.ndarray | None, complete: np.ndarray
    ) -> Iterator[SegmentRun]:
        """Yield runs of neighbouring segments of a group; a single run over all of them if there are many."""
        begin = self.memory.groups.block_begin
        cuts = np.flatnonzero(np.diff(segments) != 1) + 1
        for part in np.split(segments, cuts) if len(cuts) < FEW_RUNS else (segments,):
            first, end = int(begin[part[0]]), int(begin[part[-1] + 1])
            candidates = None
            if not complete[part].all() or len(part) <= part[-1] - part[0]:
                candidates = self._candidates(first, end, part, files, complete)
            yield SegmentRun(self.memory, self.coverage.live, self._live, group, part, first, end, candidates)

    def _candidates(
        self, first: int, end: int, segments: np.ndarray, files: np.ndarray | None, complete: np.ndarray
    ) -> np.ndarray:
        """Mark which of the blocks [first, end) are in the segments and of surviving files."""
        begin = self.memory.groups.block_begin
        candidates = np.zeros(end - first, bool)
        for segment in segments.tolist():
            here = slice(int(begin[segment]) - first, int(begin[segment + 1]) - first)
            candidates[here] = True if complete[segment] else self._survive(segment, files)
        return candidates

    def _survive(self, segment: int, files: np.ndarray | None) -> np.ndarray | bool:
        """Mark the blocks of a segment that belong to surviving files; all if unreadable: opening them decides."""
        group, within = self.memory.groups.place(segment)
        (resident,) = self.memory.blocks([(group, np.array([segment]))])
        if not resident.loaded[within]:
            self._undecided.add(segment)
            return True
        live = self.live_of(group, resident.of(within).file)
        return live >= 0 if files is None else is_survivor(files, live)

    def load(self, columns: Sequence[Field], runs: Sequence[Run]) -> None:
        """Load the zone maps of columns over some runs into memory, all at once."""
        of_segments = [run for run in runs if isinstance(run, SegmentRun)]
        for column in columns:
            if self.file_zones(column) is None and self.is_indexed(column):
                new = [run for run in of_segments if column not in run.columns]
                residents = self.memory.zones(column, [(run.group, run.segments) for run in new])
                for run, resident in zip(new, residents, strict=True):
                    run.columns[column] = resident.zones.take(run.within)

    def expect(self, columns: Sequence[Field]) -> None:
        """Announce the columns of a query: if it touches few segments, their chunks are read together."""
        known = (stored for column in columns if (stored := self.memory.called(column)) is not None)
        self.memory.expected[:] = dict.fromkeys(known)

    # ---- look-ups

    def block_count(self, segments: np.ndarray) -> int:
        """Return the number of blocks in the given segments."""
        return int(np.diff(self.memory.groups.block_begin)[segments].sum())

    def row_counts(self, files: np.ndarray | None, segments: np.ndarray) -> np.ndarray:
        """Return the rows that some live files (None: all) hold in each of some segments: int64 of shape (n,)."""
        return self.coverage.row_counts(files)[segments]

    def holders(self, question: Question, segments: np.ndarray) -> np.ndarray | None:
        """Return the blocks of some segments, ascending, that may hold a match; None where no filter answers."""
        asked = self._asked_of_index(question, segments)
        if asked is None:
            return None
        return holders(self.memory, asked, segments, self._zones_of(question))

    def answers(self, question: Question, segments: np.ndarray) -> list[FilterHits]:
        """Return one answer per filter that covers any of `segments`."""
        asked = self._asked_of_index(question, segments)
        if asked is None:
            return []
        return answers(self.memory, asked, segments, self._zones_of(question))

    @property
    def lists_rows(self) -> bool:
        """Whether some postings say which rows of a block hold a value."""
        return any(filter_.rows or filter_.kind == ORDERED for filter_ in self.memory.snapshot.filters)

    @property
    def keeps_order(self) -> bool:
        """Whether the values of some column are kept in order."""
        return any(filter_.kind == ORDERED for filter_ in self.memory.snapshot.filters)

    def rows(self, question: Values | Ranges, blocks: Blocks) -> RowRanges | None:
        """Return the rows of some blocks that may hold what is asked for; None where no postings say it."""
        if not isinstance(blocks, OpenedBlocks):  # those that were pruned elsewhere have no numbers
            return None
        numbers, row_count = blocks.numbers, blocks.row_count
        indexed = int(np.searchsorted(numbers, self.total))
        asked = self._asked_of_index(question, self.segments_of(numbers[:indexed]))
        match asked:
            case Values():
                known = rows_with(self.memory, asked, numbers[:indexed], row_count[:indexed])
            case Ranges():
                known = rows_within(self.memory, asked, numbers[:indexed], row_count[:indexed])
            case _:
                return None
        return None if known is None else joined_ranges([known, whole_blocks(row_count[indexed:])])

    def ordered(self, column: Field, blocks: Blocks) -> Sequence[SegmentValues]:
        """Return the values of a column in some blocks, in order, for the segments that have them."""
        stored = self.memory.called(column) if self.file_zones(column) is None else None
        if stored is None or not isinstance(blocks, OpenedBlocks):
            return ()
        indexed = int(np.searchsorted(blocks.numbers, self.total))
        numbers, row_count = blocks.numbers[:indexed], blocks.row_count[:indexed]
        return segment_values(self.memory, stored, numbers, row_count, self.coverage.complete)

    def concurrently(self, read: Callable[[Wanted], Result], wanted: Sequence[Wanted]) -> list[Result]:
        """Return `read` of everything wanted, as :meth:`ChunkReader.concurrently` does."""
        return self.memory.chunks.concurrently(read, wanted)

    def _zones_of(self, question: Question) -> ZonesOf:
        return lambda numbers: OpenedBlocks(self, numbers).zones(question.column)

    def _asked_of_index(self, question: Question, segments: np.ndarray) -> Question | None:
        """Return the question with the index's own name for its column; None where filters cannot answer."""
        if self.file_zones(question.column) is not None or not len(segments):
            return None
        column = self.memory.called(question.column)
        return None if column is None else replace(question, column=column)

    def choose(self, numbers: np.ndarray, whole: np.ndarray, files: np.ndarray | None) -> OpenedBlocks:
        """Return the blocks of surviving files among these numbers, those of whole segments, and the loose blocks."""
        begin = self.memory.groups.block_begin
        chosen = np.union1d(numbers, elements_of(begin, whole)) if len(whole) else numbers
        loose = [np.arange(run.begin, run.begin + len(run)) for run in self.loose_runs(files)]
        blocks = self.open(np.concatenate([chosen, *loose]), files)
        live = blocks.file
        return blocks.take(np.flatnonzero(live >= 0 if files is None else is_survivor(files, live)))

    # ---- blocks

    def blocks_of(self, files: np.ndarray) -> OpenedBlocks:
        """Return all non-empty blocks of the files in a mask, regardless of pruning."""
        runs = [*self.runs(files, self.everywhere(files)), *self.loose_runs(files)]
        blocks = self.open(np.concatenate([_NOTHING, *(run.begin + np.arange(len(run)) for run in runs)]), files)
        live = blocks.file
        return blocks.take(np.flatnonzero(is_survivor(files, live)))

    def known(self) -> tuple[list[OpenedBlocks], int]:
        """Return all non-empty blocks of live files that are known without opening a data file, and the number of other
        files.

        Blocks of segments come first, then those whose footers a query has read.
        """
        wanted = list(self.memory.by_group(self.coverage.everywhere))
        begin, blocks = self.memory.groups.group_begin, self.memory.groups.block_begin
        loaded = [
            of_group[resident.loaded[of_group - begin[group]]]
            for resident, (group, of_group) in zip(self.memory.blocks(wanted), wanted, strict=True)
        ]
        opened = OpenedBlocks(self, elements_of(blocks, np.concatenate([_NOTHING, *loaded])))
        parts = [opened.take(np.flatnonzero((opened.file >= 0) & (opened.row_count > 0)))]
        if self.loose is not None:
            opened = OpenedBlocks(self, self.total + np.arange(len(self.loose.blocks)))
            parts.append(opened.take(np.flatnonzero(opened.row_count)))
        read = _NOTHING if self.loose is None else self.loose.blocks.file
        return [part for part in parts if len(part)], len(np.setdiff1d(self.coverage.uncovered, read))

    @property
    def total(self) -> int:
        """The number of blocks in segments; loose blocks follow."""
        return int(self.memory.groups.block_begin[-1])

    def by_footers(self, files: np.ndarray | None) -> OpenedBlocks:
        """Return all blocks of the surviving files from their footers; the index is given up."""
        self.memory, self.coverage, self.loose = self.memory.without_segments(), uncovered(self._live), None
        self._undecided.clear()
        runs = self.loose_runs(files)
        return self.open(np.arange(sum(map(len, runs))), files)

    def open(self, numbers: np.ndarray, files: np.ndarray | None) -> OpenedBlocks:
        """Return the non-empty blocks with these numbers; an unreadable block table is replaced by all blocks of its
        files.
        """
        wanted = list(self.memory.by_group(self.segments_of(numbers)))
        residents = self.memory.blocks(wanted)
        begin = self.memory.groups.group_begin
        unread = [
            of_group[~resident.loaded[of_group - begin[group]]]
            for resident, (group, of_group) in zip(residents, wanted, strict=True)
        ]
        if any(map(len, unread)) or self._undecided:
            numbers = self._replaced(numbers, np.concatenate([_NOTHING, *unread]), files)
        has_empty = any(resident.has_empty for resident in residents)
        blocks = OpenedBlocks(self, numbers)
        return blocks.take(np.flatnonzero(blocks.row_count)) if has_empty or self.loose is not None else blocks

    def _replaced(self, numbers: np.ndarray, unread: np.ndarray, files: np.ndarray | None) -> np.ndarray:
        """Drop blocks of `unread` segments in favour of loose blocks of their files, and blocks of dead files."""
        indexed = numbers[numbers < self.total]
        loose = numbers[len(indexed) :] - self.total
        if len(unread):
            indexed = indexed[~np.isin(self.segment_of(indexed), unread)]
            loose = np.union1d(loose, self._blocks_instead(unread, files))
        return np.concatenate([self._alive(indexed, files), self.total + loose])

    def _blocks_instead(self, unread: np.ndarray, files: np.ndarray | None) -> np.ndarray:
        """Return the loose blocks that replace segments: those of their surviving files, from their footers."""
        live = self.coverage.live[elements_of(self.coverage.begin, unread)]
        ordinals = live[live >= 0 if files is None else is_survivor(files, live)]
        self._open_loose(ordinals)
        return _NOTHING if self.loose is None else np.flatnonzero(np.isin(self.loose.blocks.file, ordinals))

    def _alive(self, numbers: np.ndarray, files: np.ndarray | None) -> np.ndarray:
        """Drop blocks of dead files where a block table became readable only now."""
        late = np.flatnonzero(np.isin(self.segment_of(numbers), list(self._undecided)))
        live = OpenedBlocks(self, numbers[late]).file
        return np.delete(numbers, late[live < 0 if files is None else ~is_survivor(files, live)])

    def _open_loose(self, files: np.ndarray) -> None:
        """Read the blocks of live files from their footers and append them, except those already open."""
        have = _NOTHING if self.loose is None else self.loose.blocks.file
        new = np.setdiff1d(files, have) if len(files) else files
        if len(new):
            footers = self._read_footers(new)
            self.loose = footers if self.loose is None else self.loose.followed_by(footers)

    def segments_of(self, numbers: np.ndarray) -> np.ndarray:
        """Return the segments that hold any of the blocks, which ascend."""
        first, counts = self._counts_by_segment(numbers)
        return first + np.flatnonzero(counts)

    def _counts_by_segment(self, numbers: np.ndarray) -> tuple[int, np.ndarray]:
        """Return the first segment that holds any of the blocks, and how many each holds from there to the last."""
        if not len(numbers):
            return 0, np.zeros(0, np.int64)
        begin = self.memory.groups.block_begin
        first, last = np.searchsorted(begin, numbers[[0, -1]], "right").tolist()
        return first - 1, np.diff(np.searchsorted(numbers, begin[first - 1 : last + 1]))

    def file_zones(self, column: Field) -> Zones | None:
        """Return the zone maps of a column that come from the names of the live files."""
        return self._live.zones(column)

    def is_indexed(self, column: Field) -> bool:
        """Whether segments may have zone maps of a column."""
        return self.memory.knows(column)

    def has(self, kind: str, column: Field) -> bool:
        """Whether some segment has a chunk of a kind for a column."""
        return self.memory.has(kind, column)

    def segment_of(self, numbers: np.ndarray) -> np.ndarray:
        """Return the segment of every block in `numbers`, which ascend and lie in segments."""
        first, counts = self._counts_by_segment(numbers)
        return first + np.repeat(np.arange(len(counts)), counts)

    def tables_at(self, numbers: np.ndarray) -> list[tuple[int, BlockTable, np.ndarray | slice]]:
        """Return the block tables of the given blocks of segments: (group, its table, positions in the table)."""
        if not len(numbers):
            return []
        wanted = list(self.memory.by_group(self.segments_of(numbers)))
        tables = [resident.table for resident in self.memory.blocks(wanted)]
        groups = [group for group, _ in wanted]
        return list(zip(groups, tables, self._within_groups(numbers), strict=True))

    def live_of(self, group: int, file: np.ndarray) -> np.ndarray:
        """Return the live files of files of a group."""
        return self.coverage.live[int(self.memory.groups.files_of(group)[0]) + file.astype(np.int64)]

    def zones_at(self, column: Field, numbers: np.ndarray) -> list[Zones]:
        """Return the zone maps of an indexed column for the given blocks of segments, in parts."""
        residents = self.memory.zones(column, list(self.memory.by_group(self.segments_of(numbers))))
        within = self._within_groups(numbers)
        return [resident.zones.take(positions) for resident, positions in zip(residents, within, strict=True)]

    def null_counts(self, column: Field, segments: np.ndarray) -> Sequence[np.ndarray | None]:
        """Return an indexed column's NULL counts in the blocks of every segment; None where unreadable."""
        return self.memory.null_counts(column, segments)

    def pages(self, column: Field, segments: np.ndarray) -> Sequence[PageTable | None]:
        """Return the pages of a column in the given segments; None where absent or unreadable."""
        return self.memory.pages(column, segments)

    def page_locations(self, segments: Sequence[tuple[int, np.ndarray]]) -> BlockLocations:
        """Return the page locations of chosen blocks of some segments; unknown where absent or unreadable."""
        return locations_at(self.memory, segments)

    def placed(self, segments: Sequence[tuple[int, np.ndarray]]) -> np.ndarray:
        """Return where split readers see chosen blocks of some segments begin, and their bytes; -1 = unknown."""
        return placed_at(self.memory, segments)

    @property
    def faults(self) -> Faults:
        """The index faults of the query."""
        return self._faults

    def block_begin(self, segment: int) -> int:
        """Return the number of the first block of a segment."""
        return int(self.memory.groups.block_begin[segment])

    def _within_groups(self, numbers: np.ndarray) -> list[np.ndarray | slice]:
        """Return the positions of the blocks within their groups, group by group, ascending."""
        begin = self.memory.groups.group_block_begin
        cuts = np.searchsorted(numbers, begin)
        groups = np.flatnonzero(np.diff(cuts)).tolist()
        return [_as_slice(numbers[cuts[group] : cuts[group + 1]] - begin[group]) for group in groups]


def _as_slice(positions: np.ndarray) -> np.ndarray | slice:
    """Return ascending positions as a slice if they are contiguous."""
    first, last = int(positions[0]), int(positions[-1])
    return slice(first, last + 1) if last - first + 1 == len(positions) else positions
