"""Run one query on a random index, and check every step against the data that was written."""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from secateur.index.model import OF_ROWS
from secateur.index.read.blocks import LOOSE, OpenedBlocks
from secateur.index.read.index_view import IndexView
from secateur.pruning.bounds.zones import Zones
from secateur.pruning.predicate.bound import Field
from secateur.pruning.questions import Question, Ranges, Values
from secateur.pruning.report import Counts, Faults
from secateur.pruning.statistics import Run
from tests.support.drawn.random_filters import Asked, asked_of, keys_in, number_of, random_question
from tests.support.drawn.random_index import NUMBER, Block, Index, Zone, zone_list

OTHER = Field(("other",), pa.int64())  # that nothing knows


@dataclass(frozen=True)
class Entry:
    """A block that a query opened; `number` is -1 where its file's footer tells of it."""

    number: int
    file: int
    row_group: int
    segment: int
    block: Block


@dataclass(frozen=True)
class Query:
    """One query of an index, checked at every step.

    `noted` are the segments of which a fault has to be noted, `doubted` those of which one may be.
    """

    index: Index
    catalog: IndexView
    faults: Faults
    random: np.random.Generator
    noted: set[str] = dataclasses.field(default_factory=set)
    doubted: set[str] = dataclasses.field(default_factory=set)

    @property
    def fields(self) -> list[Field]:
        return [*self.index.fields, *(f for f in self.index.live.named if f not in self.index.fields)]

    def run(self) -> None:
        """Every question that a pipeline asks, of some files, segments and blocks."""
        index, files = self.index, self.some_files()
        everywhere = self.catalog.everywhere(files).tolist()
        assert everywhere == [s for s in range(len(index.parts)) if any(self.alive(s, files))]
        segments = self.some(everywhere)
        assert self.catalog.counts(files, np.array(segments, np.int64)) == self.expected_counts(segments, files)
        runs = self.catalog.runs(files, np.array(segments, np.int64))
        for _ in range(4):
            self.check_look_up(random_question(self.random, index.fields), segments)
        numbers = self.check_runs(runs, segments, files)
        loose = self.check_loose_runs(files)
        for _ in range(2):
            self.check_open(self.some(numbers), self.some(loose), files)
        reasons = self.faults.drain()
        named = {part.name for part in index.parts if part.name in " ".join(reasons)}
        assert self.noted <= named <= self.noted | self.doubted, reasons

    def some_files(self) -> np.ndarray | None:
        n = len(self.index.live.files)
        return None if self.random.random() < 0.5 or not n else self.random.random(n) < 0.6

    def some(self, values: Sequence[int]) -> list[int]:
        share = self.random.choice([0.3, 0.8, 1.0])
        return [value for value in values if self.random.random() < share]

    def note(self, segment: int, *chunks: str) -> None:
        """Some chunks of a segment were read: where one is harmed, that has to be noted."""
        part = self.index.parts[segment]
        if part.harmed & set(chunks):
            self.noted.add(part.name)

    # ---- files and segments

    def survives(self, file: int, files: np.ndarray | None) -> bool:
        return file >= 0 and (files is None or bool(files[file]))

    def alive(self, segment: int, files: np.ndarray | None) -> list[bool]:
        """Which files of a segment survive."""
        part = self.index.parts[segment]
        return [self.survives(self.index.live_of[segment, i], files) for i in range(len(part.files))]

    def expected_counts(self, segments: Sequence[int], files: np.ndarray | None) -> Counts:
        chosen = [
            file
            for s in segments
            for file, alive in zip(self.index.parts[s].files, self.alive(s, files), strict=True)
            if alive
        ]
        blocks = [block for file in chosen for block in file.blocks]
        loose = [file for file in self.index.uncovered() if self.survives(file, files)]
        size = sum(block.size for block in blocks) + sum(self.index.live.files[file].size for file in loose)
        unknown = bool(loose)
        return Counts(
            segments=len(segments),
            files=len(chosen) + len(loose),
            blocks=None if unknown else len(blocks),
            rows=None if unknown else sum(block.rows for block in blocks),
            bytes=size,
        )

    # ---- runs

    def check_runs(self, runs: Sequence[Run], segments: Sequence[int], files: np.ndarray | None) -> list[int]:
        """The candidates of some segments, and all that their runs say of them; gives their numbers."""
        expected = []
        for s in segments:
            part, alive = self.index.parts[s], self.alive(s, files)
            undecided = "blocks" in part.harmed and not all(alive)
            if not all(alive):
                self.note(s, "blocks")
            first = self.index.begin[s]
            expected += [first + i for i, (file, _) in enumerate(part.blocks) if undecided or alive[file]]
        positions = [np.arange(len(run)) if run.candidates is None else np.flatnonzero(run.candidates) for run in runs]
        numbers = [run.begin + within for run, within in zip(runs, positions, strict=True)]
        assert [n for found_numbers in numbers for n in found_numbers.tolist()] == expected
        order = self.random.permutation(len(self.fields)).tolist()
        for field in (self.fields[i] for i in order):
            some = [run for run in runs if self.random.random() < 0.7]
            self.catalog.load([field, OTHER], some)
            for run, within, block_numbers in zip(runs, positions, numbers, strict=True):
                zones = [self.index.zone(field, n) for n in block_numbers.tolist()]
                self.check_zones(field, run.zones(field), within, zones)
            self.note_zones(field, segments)
        for run, within, block_numbers in zip(runs, positions, numbers, strict=True):
            assert run.zones(OTHER) is None
            rows = [self.index.block(n).rows if self.readable(n) else -1 for n in block_numbers.tolist()]
            assert run.row_count[within].tolist() == rows
        for s in segments:
            self.note(s, "blocks")
        return expected

    def readable(self, number: int) -> bool:
        return self.index.parts[self.index.places[number][0]].has("blocks")

    def check_zones(
        self, field: Field, zones: Zones | None, within: np.ndarray | slice, expected: Sequence[Zone | None]
    ) -> None:
        assert zones is not None
        assert zone_list(zones.take(within)) == expected, field

    def note_zones(self, field: Field, segments: Sequence[int]) -> None:
        c = NUMBER.get(field.path[0])
        for s in segments:
            if field in self.index.live.named:
                self.note(s, "blocks")
            elif c is not None:
                part = self.index.parts[s]
                self.note(s, f"zone/{c}")
                if part.has(f"zone/{c}") and (part.data.zone_maps[c].null_count > 0).any():
                    self.note(s, "blocks")

    def check_loose_runs(self, files: np.ndarray | None) -> list[int]:
        """Blocks of the files that no segment serves; gives their numbers."""
        runs = self.catalog.loose_runs(files)
        expected = [
            Entry(-1, i, g, LOOSE, block)
            for i in self.index.uncovered()
            if self.survives(i, files)
            for g, block in enumerate(self.index.live.files[i].blocks)
        ]
        assert sum(map(len, runs)) == len(expected)
        for run in runs:
            assert (run.begin, run.candidates) == (self.index.begin[-1], None)
            assert run.row_count.tolist() == [entry.block.rows for entry in expected]
            for field in self.fields:
                self.check_zones(field, run.zones(field), slice(None), [self.zone_of(field, e) for e in expected])
        return [run.begin + i for run in runs for i in range(len(run))]

    def zone_of(self, field: Field, entry: Entry) -> Zone:
        """What is to be known of an opened block."""
        if field in self.index.live.named:
            return self.index.named_zone(field, entry.file)
        if entry.number >= 0:
            return self.index.zone(field, entry.number)
        return self.index.footer_zone(field, entry.file, entry.row_group)

    # ---- blocks

    def check_open(self, numbers: Sequence[int], loose: Sequence[int], files: np.ndarray | None) -> None:
        """Blocks opened by their numbers, those with rows: for those of a harmed block table all of its files'."""
        before = loose_entries(self.index, self.catalog)
        expected = [self.entry(n) for n in numbers if self.readable(n)]
        expected += [before[n - self.index.begin[-1]] for n in loose]
        unread = sorted({self.index.places[n][0] for n in numbers if not self.readable(n)})
        instead = {self.index.live_of[s, i] for s in unread for i, alive in enumerate(self.alive(s, files)) if alive}
        for s in {self.index.places[n][0] for n in numbers}:
            self.note(s, "blocks")
        opened = self.catalog.open(np.array([*numbers, *loose], np.int64), files)
        after = loose_entries(self.index, self.catalog)
        loose_numbers = opened.numbers[opened.numbers >= self.index.begin[-1]] - self.index.begin[-1]
        assert opened.numbers.tolist() == sorted(set(opened.numbers.tolist()))
        indexed = [entry for entry in expected if entry.number >= 0 and entry.block.rows]
        others = [after[i] for i in loose_numbers.tolist()]
        wanted = [entry for entry in expected if entry.number < 0] + [
            Entry(-1, i, g, LOOSE, block) for i in instead for g, block in enumerate(self.index.live.files[i].blocks)
        ]
        assert sorted(others, key=where) == sorted((entry for entry in wanted if entry.block.rows), key=where)
        self.check_blocks(opened, [*indexed, *others])
        chosen = self.some(range(len(opened)))
        self.check_blocks(opened.take(np.array(chosen, np.int64)), [[*indexed, *others][i] for i in chosen])
        for _ in range(2):
            self.check_listed(opened, [*indexed, *others], random_question(self.random, self.index.fields))

    def check_listed(self, opened: OpenedBlocks, expected: Sequence[Entry], question: Question) -> None:
        """The rows that may hold what is asked for, of ordered postings: those with a value in the ranges, and others
        only where values are cut, unknown, or not read.
        """
        if not isinstance(question, Ranges):
            return
        segments = sorted({e.segment for e in expected} - {LOOSE})
        asking = self.asking(question, segments)
        for f, _ in asking:
            self.note_filter(f, segments)
        listed = self.catalog.rows(question, opened)
        assert (listed is None) == (not asking), question
        if listed is None:
            return
        (f, _), *_ = asking
        for i, entry in enumerate(expected):
            part = listed.take(np.array([i]))
            rows = {row for a, b in zip(part.start.tolist(), part.stop.tolist(), strict=True) for row in range(a, b)}
            matching = rows_within(entry.block.values[question.column.path[0]], question)
            assert matching <= rows <= set(range(entry.block.rows)), (question, entry)
            if entry.number >= 0 and self.index.is_sound(f, entry.segment):
                held = self.index.held(f, entry.number)
                is_known = held is not None and held.values is not None
                assert rows == (matching if is_known else set(range(entry.block.rows))), (question, entry)

    def entry(self, number: int) -> Entry:
        index = self.index
        return Entry(
            number, index.file_of(number), index.row_group(number), index.places[number][0], index.block(number)
        )

    def check_places(self, opened: OpenedBlocks, expected: Sequence[Entry]) -> None:
        assert opened.file.tolist() == [e.file for e in expected]
        assert opened.row_group.tolist() == [e.row_group for e in expected]
        assert opened.row_count.tolist() == [e.block.rows for e in expected]
        assert opened.byte_count.tolist() == [e.block.size for e in expected]
        assert opened.segment.tolist() == [e.segment for e in expected]

    def check_blocks(self, opened: OpenedBlocks, expected: Sequence[Entry]) -> None:
        self.check_places(opened, expected)
        counts = opened.counts
        assert (counts.segments, counts.blocks) == (len({e.segment for e in expected} - {LOOSE}), len(expected))
        assert counts.rows == sum(e.block.rows for e in expected)
        assert counts.bytes == sum(e.block.size for e in expected)
        assert counts.files == len({e.file for e in expected})
        for field in [self.fields[i] for i in self.random.permutation(len(self.fields)).tolist()]:
            if expected:
                self.check_zones(field, opened.zones(field), slice(None), [self.zone_of(field, e) for e in expected])
                self.note_zones(field, sorted({e.segment for e in expected} - {LOOSE}))
            if field in self.index.fields:
                self.check_pages(opened, field, expected)

    # ---- look-ups

    def check_look_up(self, question: Question, segments: Sequence[int]) -> None:
        """The blocks that may hold what is asked for: those whose filters say so, and those without, bit by bit.

        Of several values, one by one those that a block may hold by its zone map too. Of a segment whose filter cannot
        be read they may be all.
        """
        holders = self.catalog.holders(question, np.array(segments, np.int64))
        asking = self.asking(question, segments)
        for f, _ in asking:
            self.note_filter(f, segments)
            self.doubt_zones(question, segments)
        assert (holders is None) == (not asking), question
        if holders is None:
            return
        numbers = [n for s in segments for n in range(self.index.begin[s], self.index.begin[s + 1])]
        expected = [n for n in numbers if all(self.may_hold(f, asked, question, n) for f, asked in asking)]
        sound = [s for s in segments if all(self.index.is_sound(f, s) for f, _ in asking)]
        assert holders.dtype == np.int64
        assert (np.diff(holders) > 0).all()
        assert set(expected) <= set(holders.tolist()) <= set(numbers), question
        assert [n for n in holders.tolist() if self.index.places[n][0] in sound] == [
            n for n in expected if self.index.places[n][0] in sound
        ], question

    def asking(self, question: Question, segments: Sequence[int]) -> list[tuple[int, Asked]]:
        """The filters that tell something about a question, and what they are asked."""
        if question.column in self.index.live.named or not segments:
            return []
        pairs = [(f, asked_of(filter_, question)) for f, filter_ in enumerate(self.index.filters)]
        asking = [(f, asked) for f, asked in pairs if asked is not None]
        return [(f, asked) for f, asked in asking if self.tells(f, segments)]

    def tells(self, f: int, segments: Sequence[int]) -> bool:
        """Bloom matrices of whatever segments, or postings of one of these."""
        if self.index.filters[f].kind not in OF_ROWS:
            return f in self.index.segments.bloom_matrices
        number = number_of(self.index.filters[f])
        self.note_filter(f, segments)
        return any(
            self.index.parts[s].has(chunk) for s in segments for chunk in (f"posting/{number}", f"ordered/{number}")
        )

    def note_filter(self, f: int, segments: Sequence[int]) -> None:
        number = number_of(self.index.filters[f])
        for s in segments:
            self.note(s, f"posting/{number}", f"ordered/{number}")
            if self.index.parts[s].harmed & {f"size-class/{number}", f"rows/{number}"}:
                self.doubted.add(self.index.parts[s].name)

    def doubt_zones(self, question: Question, segments: Sequence[int]) -> None:
        """Zone maps are read of blocks that may hold one of several values by their filters."""
        if isinstance(question, Values) and len(question.points) > 1:
            dataclasses.replace(self, noted=self.doubted).note_zones(question.column, segments)

    def may_hold(self, f: int, asked: Asked, question: Question, number: int) -> bool:
        held = self.index.held(f, number)
        if held is None or not held.by_bits(asked):
            return held is None
        alternatives = held.told_apart(asked)
        if alternatives is None or not isinstance(question, Values):
            return True
        zone = self.index.zone(question.column, number)
        points = [asked.alternatives.index(alternative) for alternative in alternatives]
        return any(allows(zone, question.points.tolist()[i]) for i in points)

    def check_pages(self, opened: OpenedBlocks, field: Field, expected: Sequence[Entry]) -> None:
        c = NUMBER.get(field.path[0])
        pages_read = opened.pages(field)
        segments = {e.segment for e in expected} - {LOOSE}
        readable = [s for s in segments if self.index.parts[s].has(f"page/{c}")]
        if field in self.index.live.named or not readable:
            assert pages_read is None
        else:
            assert pages_read is not None
            pages = [self.pages_of(field, e) for e in expected]
            assert np.diff(pages_read.offsets).tolist() == [len(block_pages) for block_pages in pages]
            assert (int(pages_read.offsets[0]), int(pages_read.offsets[-1])) == (0, len(pages_read.first_row))
            assert pages_read.first_row.tolist() == [first for block_pages in pages for first, _ in block_pages]
            assert zone_list(pages_read.zones) == [zone for block_pages in pages for _, zone in block_pages]
        if field not in self.index.live.named:
            for s in segments:
                self.note(s, f"page/{c}")

    def pages_of(self, field: Field, entry: Entry) -> list[tuple[int, Zone]]:
        """First row and zone map of every page of a block; the block itself where no page is known."""
        c = NUMBER[field.path[0]]
        part = self.index.parts[entry.segment] if entry.number >= 0 else None
        if part is None or not part.has(f"page/{c}"):
            return [(0, self.zone_of(field, entry))]
        table, within = part.data.pages[c], self.index.places[entry.number][1]
        pages = slice(int(table.offsets[within]), int(table.offsets[within + 1]))
        first = table.first_row[pages]
        zones = table.zone_map.take(np.arange(pages.start, pages.stop)).zones(np.diff(first, append=entry.block.rows))
        return list(zip(first.tolist(), zone_list(zones), strict=True))

    # ---- reads that fail now and then

    def run_in_doubt(self, all_fail_in_the_end: bool = False) -> None:
        """What a pipeline asks while reads fail."""
        index, files = self.index, self.some_files()
        if self.catalog.snapshot is None:
            self.check_without_index(files)
            return
        segments = self.some(self.catalog.everywhere(files).tolist())
        runs = self.catalog.runs(files, np.array(segments, np.int64))
        numbers: list[int] = []
        for run in runs:
            within = np.arange(len(run)) if run.candidates is None else np.flatnonzero(run.candidates)
            right_numbers = (run.begin + within).tolist()
            numbers += right_numbers
            for field in self.fields:
                self.check_zones_hold(run.zones(field), within, [self.index.zone(field, n) for n in right_numbers])
            rows = zip(run.row_count[within].tolist(), (index.block(n).rows for n in right_numbers), strict=True)
            assert all(place in (-1, right) for place, right in rows)
        due = [n for n, (s, _) in enumerate(index.places) if s in segments and self.survives(index.file_of(n), files)]
        assert set(due) <= set(numbers)
        assert {index.places[n][0] for n in numbers} <= set(segments)
        for _ in range(3):
            self.check_look_up_in_doubt(random_question(self.random, index.fields), segments)
        loose = self.check_loose_runs(files)
        opened = self.catalog.open(np.array([*numbers, *loose], np.int64), files)
        if all_fail_in_the_end:
            index.store.fails = lambda: True
        entries = [self.opened_entry(n) for n in opened.numbers.tolist()]
        self.check_places(opened, entries)
        wanted = {
            *(where(e) for e in map(self.entry, due) if e.block.rows),
            *(where(e) for e in loose_entries(index, self.catalog)[: len(loose)] if e.block.rows),
        }
        place = [where(e) for e in entries]
        assert len(place) == len(set(place))
        assert wanted <= set(place)
        assert all(self.survives(e.file, files) for e in entries)
        for field in self.fields if entries else ():
            self.check_zones_hold(opened.zones(field), slice(None), [self.zone_of(field, e) for e in entries])
        chosen = self.some(range(len(entries)))
        self.check_places(opened.take(np.array(chosen, np.int64)), [entries[i] for i in chosen])

    def check_look_up_in_doubt(self, question: Question, segments: Sequence[int]) -> None:
        """No block is left out that may hold what is asked for, or of which nothing could be read."""
        holders = self.catalog.holders(question, np.array(segments, np.int64))
        if holders is not None:
            asking = self.asking(question, segments)
            numbers = [n for s in segments for n in range(self.index.begin[s], self.index.begin[s + 1])]
            expected = [n for n in numbers if all(self.may_hold(f, asked, question, n) for f, asked in asking)]
            assert set(expected) <= set(holders.tolist()) <= set(numbers), question

    def check_without_index(self, files: np.ndarray | None) -> None:
        """Whatever was known of it before: all blocks come from footers."""
        assert self.catalog.everywhere(files).tolist() == []
        numbers = [run.begin + i for run in self.catalog.loose_runs(files) for i in range(len(run))]
        live = [i for i in range(len(self.index.live.files)) if self.survives(i, files)]
        due = [(i, g) for i in live for g, block in enumerate(self.index.live.files[i].blocks) if block.rows]
        opened = self.catalog.open(np.array(numbers, np.int64), files)
        assert list(zip(opened.file.tolist(), opened.row_group.tolist(), strict=True)) == due

    def opened_entry(self, number: int) -> Entry:
        total = self.index.begin[-1]
        return self.entry(number) if number < total else loose_entries(self.index, self.catalog)[number - total]

    def check_zones_hold(self, zones: Zones | None, within: np.ndarray | slice, expected: Sequence[Zone]) -> None:
        assert zones is not None
        assert all(map(holds, zone_list(zones.take(within)), expected))


def rows_within(values: Sequence[Any], question: Ranges) -> set[int]:
    """The rows of a block whose values are in the ranges."""
    thresholds, type_ = question.ranges.thresholds.tolist(), question.column.type
    rows = [(row, key) for row, value in enumerate(values) for key in keys_in([value], type_)]
    return {row for row, key in rows if bisect_right(thresholds, key) % 2}  # type: ignore[type-var]


def allows(zone: Zone, key: Any) -> bool:
    """Whether a zone map allows for a value with a key."""
    low, high, value, _ = zone
    return bool(value) and (low == "least" or low <= key) and (high == "greatest" or key <= high)


def holds(zone: Zone, right: Zone) -> bool:
    """Whether a zone map, as others may be writing it, says no more than the right one."""
    low = zone[0] == "least" or (right[0] != "least" and zone[0] <= right[0])
    high = zone[1] == "greatest" or (right[1] != "greatest" and zone[1] >= right[1])
    return low and high and zone[2] | right[2] == zone[2] and zone[3] | right[3] == zone[3]


def where(entry: Entry) -> tuple[int, int]:
    return entry.file, entry.row_group


def loose_entries(index: Index, catalog: IndexView) -> list[Entry]:
    """The blocks that are open by their footers so far, in their order."""
    if catalog.loose is None:
        return []
    pairs = zip(catalog.loose.blocks.file.tolist(), catalog.loose.blocks.row_group.tolist(), strict=True)
    return [Entry(-1, file, group, LOOSE, index.live.files[file].blocks[group]) for file, group in pairs]
