"""Every micro-batch of a stream has the rows that were appended between its offsets, however late it is read."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import secateur as sec
from secateur.errors import TableChanged
from secateur.io.scan.planned_scan import Settings
from secateur.io.spark.source_tasks import Location
from secateur.io.spark.stream_offsets import Limits, Offset, spans
from secateur.io.spark.stream_reader import SecateurStreamReader
from secateur.io.tables.open import Moment
from secateur.pruning.predicate.sql.parse import parse
from tests.support.drawn.row_histories import APPEND, COMPACT, HISTORIES, RowHistory
from tests.support.formats.delta_tables import numbered
from tests.support.profiles import by_profile

SEEDS = by_profile(quick=range(2), full=range(25), nightly=range(250), fast=range(1))
STEPS = 8


def reader_of(history: RowHistory, predicate: str = "true", **options: Any) -> SecateurStreamReader:
    location = Location(history.writer.path, None, Moment(), None)
    skip_changes, limits = bool(options.pop("skip_changes", False)), options.pop("limits", Limits())
    schema = numbered(0, 0).schema
    return SecateurStreamReader(location, schema, parse(predicate), Settings(**options), skip_changes, limits)


def read(reader: SecateurStreamReader, start: Offset, end: Offset) -> list[int]:
    batches = [batch for task in reader.partitions(start, end) for batch in reader.read(task)]
    return sorted(pa.Table.from_batches(batches, reader.schema)["rid"].to_pylist())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_batches_of_a_history(tmp_path: Path, kind: str, seed: int) -> None:
    """Read at once, and again after all later commits, as after a crash: the same rows."""
    history = HISTORIES[kind](tmp_path, random.Random(seed))
    history.step([APPEND])
    reader, skipping = reader_of(history), reader_of(history, "rid % 3 = 0", skip_changes=True)
    offsets = [reader.latestOffset()]
    at = [len(history.snapshots) - 1]
    assert read(reader, reader.initialOffset(), offsets[0]) == history.rids
    for step in range(STEPS):
        if step == 2 and history.live and seed % 2:
            sec.build_index(history.writer.open())
        for _ in range(history.draw.choice([1, 1, 2])):
            history.step([APPEND, APPEND, COMPACT, *history.writer.steps])
        offsets.append(reader.latestOffset())
        at.append(len(history.snapshots) - 1)
    for i in range(len(offsets)):
        assert read(reader, reader.initialOffset(), offsets[i]) == history.states[at[i]], history.log
        for j in range(i, min(i + 3, len(offsets))):
            expected = history.appended(at[i], at[j])
            if set(history.kinds[at[i] + 1 : at[j] + 1]) <= {APPEND, COMPACT}:
                assert read(reader, offsets[i], offsets[j]) == expected, history.log
            else:
                with pytest.raises(TableChanged, match="skip_changes"):
                    read(reader, offsets[i], offsets[j])
            matching = [rid for rid in expected if rid % 3 == 0]
            assert read(skipping, offsets[i], offsets[j]) == matching, history.log


@pytest.mark.parametrize("kind", HISTORIES)
def test_a_stream_of_appends_has_every_row_once(tmp_path: Path, kind: str) -> None:
    """Also from a snapshot on, and of a directory by the snapshots of its index."""
    history = HISTORIES[kind](tmp_path, random.Random(3))
    history.step([APPEND])
    first = len(history.snapshots) - 1
    history.step([APPEND])
    reader = reader_of(history)
    late = reader_of(history, since=history.snapshots[first])
    offset, late_offset = reader.initialOffset(), late.initialOffset()
    seen: list[int] = []
    seen_late: list[int] = []
    for _ in range(3):
        following = reader.latestOffset()
        seen += read(reader, offset, following)
        seen_late += read(late, late_offset, following)
        assert read(reader, following, following) == []
        offset = late_offset = following
        history.step([APPEND])
    assert sorted(seen) == history.states[-2]
    assert sorted(seen_late) == history.appended(first, len(history.snapshots) - 2)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", HISTORIES)
def test_limited_batches_have_every_row_once(tmp_path: Path, kind: str, seed: int) -> None:
    """However the table grows, and is compacted, between them; read at once, and again at the end."""
    draw = random.Random(seed)
    history = HISTORIES[kind](tmp_path, random.Random(seed))
    history.step([APPEND])
    steps = [APPEND] if kind == "directory" else [APPEND, APPEND, COMPACT]
    reader = reader_of(history)
    at = reader.initialOffset()
    read_so_far: list[tuple[Offset, Offset, list[int]]] = []
    for _ in range(4 * STEPS):
        if draw.random() < 0.4 and len(history.snapshots) < 2 * STEPS:
            history.step(steps)
        limit = draw.choice([Limits(1), Limits(2), Limits(bytes=1), Limits(3, 5000), Limits()])
        reader = reader_of(history, limits=limit)  # as after a crash
        following = reader.latestOffset(at, None)
        rows = read(reader, at, following)
        for span in spans(at, following):
            assert span.stop is None or span.stop - span.first <= (limit.files or 1), history.log
        read_so_far.append((at, following, rows))
        at = following
    at_last = reader_of(history)
    seen = [row for _, _, rows in read_so_far for row in rows]
    assert sorted(seen + read(at_last, at, at_last.latestOffset(at, None))) == history.states[-1], history.log
    for start, end, rows in read_so_far:
        assert read(at_last, start, end) == rows, history.log
