"""The survey, a build's first pass: read every footer, then cut the files, in key order, into segments."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from secateur.index.build.source_file import OpenFile
from secateur.index.build.tasks import RunTasks, read_result
from secateur.index.container import index_file
from secateur.index.container.index_file import Writer
from secateur.index.identity import FileIdentity
from secateur.index.model import indexed_columns
from secateur.index.zones import zonemap
from secateur.values.keys import Keys
from secateur.values.kinds import Kind

LEAST_SEGMENT, MOST_SEGMENT = 64, 4096  # blocks
SEGMENTS = 64  # least number for a table: units of work of a build, and of what a query prunes
MOST_POSTINGS = 1 << 23  # rows of a segment with postings, which are sorted together
WIDE = 16  # times as many files as the median file spans
MOST_WIDE = 0.1  # share of the files


@dataclass(frozen=True)
class FileSurvey:
    """What the first pass learns about a file."""

    file: FileIdentity
    block_count: int
    row_count: int
    byte_count: int
    schema: pa.Schema
    begins: tuple[bytes, ...]  # order-preserving bytes of the least value of every sort key column
    ends: bytes  # the same of the greatest value of the first column


def survey(
    run: RunTasks,
    open_file: OpenFile,
    files: Sequence[FileIdentity],
    sort_key: Sequence[tuple[str, ...]],
) -> list[FileSurvey]:
    """Survey the given files, in their order. Raises InvalidParquet, StalePlan."""

    def work(numbers: Sequence[int]) -> Iterator[bytes]:
        for i in numbers:
            yield _encode_survey(i, files[i].path, open_file, sort_key)

    surveys: list[FileSurvey | None] = [None] * len(files)
    for data in run(work, len(files)):
        i, end, rest = _decode_survey(data)
        surveys[i] = FileSurvey(replace(files[i], end=end), *rest)
    return [item for item in surveys if item is not None]


def _encode_survey(i: int, path: str, open_file: OpenFile, sort_key: Sequence[tuple[str, ...]]) -> bytes:
    source = open_file(path)
    columns = {_folded(column.path): column for column in indexed_columns(source.schema)}
    keys = (columns.get(_folded(path)) for path in sort_key)
    zone_maps = [source.zone_map(key.path, key.type) if key else None for key in keys]
    begins = ["" if zone_map is None else _end_of(zone_map, 0).hex() for zone_map in zone_maps]
    ends = "" if not zone_maps or zone_maps[0] is None else _end_of(zone_maps[0], 1).hex()
    meta = {
        "i": i,
        "end": source.end(),
        "counts": (len(source.row_count), int(source.row_count.sum()), int(source.byte_count.sum())),
        "schema": source.schema.serialize().to_pybytes().hex(),
        "begins": begins,
        "ends": ends,
    }
    return Writer(index_file.SUMMARY, meta).finish()


def _folded(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.lower() for part in path)


def _decode_survey(data: bytes) -> tuple[int, int, tuple[int, int, int, pa.Schema, tuple[bytes, ...], bytes]]:
    meta = read_result(data)[0].meta
    schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(meta["schema"])))
    blocks, rows, size = meta["counts"]
    begins = tuple(map(bytes.fromhex, meta["begins"]))
    return meta["i"], meta["end"], (blocks, rows, size, schema, begins, bytes.fromhex(meta["ends"]))


def _end_of(zone_map: zonemap.ZoneMap, side: int) -> bytes:
    """Return the least lower bound of a file (or the greatest upper) as bytes that order as the keys do."""
    if not len(zone_map):
        return b""
    merged = zonemap.merge(zone_map, np.full(len(zone_map), -1), np.zeros(1, np.int64))
    return as_bytes((merged.lower, merged.upper)[side])[0]


def as_bytes(bounds: Keys) -> list[bytes]:
    """Return keys as bytes that order alike; byte strings that differ only in trailing zeros become equal."""
    if bounds.kind is Kind.BYTES:
        words = list(bounds.words[:-1])
    else:
        words = [bounds.words[0].view(np.uint64) ^ np.uint64(1 << 63), *bounds.words[1:]]
    return [row.tobytes() for row in np.stack(words, axis=1).astype(">u8")]


def segment_size(blocks: int) -> int:
    """Return the blocks per segment for a table of `blocks` blocks."""
    return min(max(blocks // SEGMENTS, LEAST_SEGMENT), MOST_SEGMENT)


def cut(
    surveys: Sequence[FileSurvey], segment_blocks: int | None, *, has_postings: bool = False
) -> list[list[FileSurvey]]:
    """Cut the files, in key order, into segments of about `segment_blocks` blocks; wide files come last, separately.

    By default a 64th of all blocks, within :data:`LEAST_SEGMENT` and :data:`MOST_SEGMENT`; with postings at most as
    many blocks as have about :data:`MOST_POSTINGS` rows.
    """
    blocks, rows = sum(s.block_count for s in surveys), sum(s.row_count for s in surveys)
    target = target_blocks(blocks, rows, segment_blocks, has_postings=has_postings)
    return [segment for part in in_key_order(surveys) for segment in _filled(part, target)]


def target_blocks(blocks: int, rows: int, segment_blocks: int | None, *, has_postings: bool) -> int:
    """Return how many blocks a segment should have in a table with these blocks and rows."""
    target = segment_blocks or segment_size(blocks)
    return min(target, max(1, MOST_POSTINGS * blocks // max(rows, 1))) if has_postings else target


def in_key_order(surveys: Sequence[FileSurvey]) -> tuple[list[FileSurvey], list[FileSurvey]]:
    """Return the files in key order: those that span few others, and separately the wide ones."""
    in_order = sorted(surveys, key=lambda s: (s.begins, s.file.path))
    wide = _wide(in_order).tolist()
    narrow = [item for item, is_wide in zip(in_order, wide, strict=True) if not is_wide]
    return narrow, [item for item, is_wide in zip(in_order, wide, strict=True) if is_wide]


def _filled(files: Sequence[FileSurvey], target: int) -> list[list[FileSurvey]]:
    segments: list[list[FileSurvey]] = []
    room = 0
    for item in files:
        if room < item.block_count or not segments:
            segments.append([])
            room = target
        segments[-1].append(item)
        room -= item.block_count
    return segments


def _wide(files: Sequence[FileSurvey]) -> np.ndarray:
    """Mark the files, in key order, that span so many others that a segment with one would span those too.

    No file is wide if many span so far: then the data is not clustered, and separating files gains nothing.
    """
    begins = [item.begins[:1] for item in files]
    reach = np.array([bisect_left(begins, (item.ends,)) - i for i, item in enumerate(files)], np.int64)
    wide = reach > WIDE * (np.median(reach) + 1) if len(files) else np.zeros(0, bool)
    return wide if wide.sum() <= MOST_WIDE * len(files) else np.zeros(len(files), bool)
