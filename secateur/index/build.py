"""The build as Spark jobs: executors read footers and columns and write segment files; the driver gets summaries.

Three passes. The survey reads every footer and returns, per file, counts, the schema and where the file begins in the
sort key; the driver then cuts the files, in key order, into segments. The second pass makes the segments, and writes
their filters aside in pieces. The third lays the pieces side by side. Partitions are few and fat: a task takes a list
of files and writes as many segments as they make.
"""

from __future__ import annotations

import json
import threading
import uuid
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from secateur import errors
from secateur.errors import SecateurError
from secateur.index import codec, interleave, pieces, zonemap
from secateur.index.assemble import FileIdentity, OpenFile, Recipe, assemble
from secateur.index.bitsliced import probes_for
from secateur.index.codec import Place, Writer, read_contents
from secateur.index.interleave import WrittenFile
from secateur.index.matrix import Matrix
from secateur.index.model import Store, indexed_columns
from secateur.index.pieces import Piece
from secateur.index.segment import encode_segment, zone_arrays, zone_map_of
from secateur.index.segments import SegmentSummary
from secateur.index.slabs import Slabs
from secateur.values import Kind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = "segments"
FOLDERS = (FOLDER, interleave.FOLDER, pieces.FOLDER)  # all that a build writes into
MOST_POSTINGS = 1 << 24  # rows of a segment with postings, which are sorted together
LEAST_SEGMENT, MOST_SEGMENT = 64, 4096  # blocks
SEGMENTS = 64  # that a table should have at least: parts of a build, and of what a query leaves out
TASKS_PER_CORE = 4
WIDE = 16  # times as many files as the median reaches over
MOST_WIDE = 0.1  # of the files
POLL_SECONDS = 0.25

OnProgress = Callable[[int, int, int], None]  # files, rows, bytes done so far


@dataclass(frozen=True)
class FileSurvey:
    """What the first pass learns of a file."""

    file: FileIdentity
    block_count: int
    row_count: int
    byte_count: int
    schema: pa.Schema
    begins: tuple[bytes, ...]  # order-preserving bytes of the least value of every column of the sort key
    ends: bytes  # and of the greatest value of its first


def survey(
    spark: SparkSession,
    open_file: OpenFile,
    files: Sequence[FileIdentity],
    sort_key: Sequence[tuple[str, ...]],
) -> list[FileSurvey]:
    """The first pass over the given files, in their order. Raises InvalidParquet, StalePlan."""

    def work(mine: Sequence[int]) -> Iterator[bytes]:
        for i in mine:
            yield _encode_survey(i, files[i][0], open_file, sort_key)

    found: list[FileSurvey | None] = [None] * len(files)
    for data in run_tasks(spark, work, len(files)):
        i, rest = _decode_survey(data)
        found[i] = FileSurvey(files[i], *rest)
    return [item for item in found if item is not None]


def _encode_survey(i: int, path: str, open_file: OpenFile, sort_key: Sequence[tuple[str, ...]]) -> bytes:
    source = open_file(path)
    own = {_folded(column.path): column for column in indexed_columns(source.schema)}
    keys = (own.get(_folded(path)) for path in sort_key)
    zone_maps = [source.zone_map(key.path, key.type) if key else None for key in keys]
    begins = ["" if zone_map is None else _end_of(zone_map, 0).hex() for zone_map in zone_maps]
    ends = "" if not zone_maps or zone_maps[0] is None else _end_of(zone_maps[0], 1).hex()
    meta = {
        "i": i,
        "counts": (len(source.row_count), int(source.row_count.sum()), int(source.byte_count.sum())),
        "schema": source.schema.serialize().to_pybytes().hex(),
        "begins": begins,
        "ends": ends,
    }
    return Writer(codec.SUMMARY, meta).finish()


def _folded(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.lower() for part in path)


def _decode_survey(data: bytes) -> tuple[int, tuple[int, int, int, pa.Schema, tuple[bytes, ...], bytes]]:
    meta = _read_summary(data).meta
    schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(meta["schema"])))
    blocks, rows, size = meta["counts"]
    begins = tuple(map(bytes.fromhex, meta["begins"]))
    return meta["i"], (blocks, rows, size, schema, begins, bytes.fromhex(meta["ends"]))


def _end_of(zone_map: zonemap.ZoneMap, side: int) -> bytes:
    """The least lower bound of a file (or the greatest upper) as bytes that order as the keys do."""
    if not len(zone_map):
        return b""
    merged = zonemap.merge(zone_map, np.full(len(zone_map), -1), np.zeros(1, np.int64))
    bound = (merged.lower, merged.upper)[side]
    match bound.kind:
        case Kind.BYTES:
            return b"".join(int(word[0]).to_bytes(8, "big") for word in bound.words[:-1])
        case _:
            first, *rest = (int(word[0]) for word in bound.words)
            return (first + 2**63).to_bytes(8, "big") + b"".join(word.to_bytes(8, "big") for word in rest)


def segment_size(blocks: int) -> int:
    """The blocks of a segment in a table of so many."""
    return min(max(blocks // SEGMENTS, LEAST_SEGMENT), MOST_SEGMENT)


def cut(
    surveys: Sequence[FileSurvey], segment_blocks: int | None, *, has_postings: bool = False
) -> list[list[FileSurvey]]:
    """The files in key order, cut into segments of about `segment_blocks` blocks; wide files apart, behind the others.

    By default a 64th of all blocks, within :data:`LEAST_SEGMENT` and :data:`MOST_SEGMENT`; with postings no more than
    have about :data:`MOST_POSTINGS` rows.
    """
    blocks, rows = sum(s.block_count for s in surveys), sum(s.row_count for s in surveys)
    target = segment_blocks or segment_size(blocks)
    if has_postings:
        target = min(target, max(1, MOST_POSTINGS * blocks // max(rows, 1)))
    in_order = sorted(surveys, key=lambda s: (s.begins, s.file))
    wide = _wide(in_order)
    narrow = [item for item, is_wide in zip(in_order, wide, strict=True) if not is_wide]
    return _filled(narrow, target) + _filled([s for s, is_wide in zip(in_order, wide, strict=True) if is_wide], target)


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
    """Which files, in key order, reach over so many others that a segment with one of them would span those too.

    None of them where many do: then the data is not clustered, and nothing is gained.
    """
    begins = [item.begins[:1] for item in files]
    reach = np.array([bisect_left(begins, (item.ends,)) - i for i, item in enumerate(files)], np.int64)
    wide = reach > WIDE * (np.median(reach) + 1) if len(files) else np.zeros(0, bool)
    return wide if wide.sum() <= MOST_WIDE * len(files) else np.zeros(len(files), bool)


@contextmanager
def new_build(store: Store) -> Iterator[str]:
    """The name of a build. On an error or an interrupt what it wrote is removed, and its pieces always."""
    build = uuid.uuid4().hex[:12]
    folders = [FOLDER, interleave.FOLDER]
    try:
        yield build
        folders = []
    finally:
        for folder in (pieces.FOLDER, *folders):
            for file in store.files(folder):
                if file.name.startswith(f"{folder}/{build}-"):
                    store.delete(file.name)


def write_segments(
    spark: SparkSession,
    build: str,
    open_file: OpenFile,
    store: Store,
    segments: Sequence[Sequence[FileSurvey]],
    recipe: Recipe,
    on_progress: OnProgress | None = None,
) -> list[SegmentSummary]:
    """The second pass: every segment and the pieces of its filters written by an executor, its summary here."""
    files = [[item.file for item in segment] for segment in segments]

    def work(mine: Sequence[int]) -> Iterator[bytes]:
        for i in mine:
            yield _write_segment(i, f"{build}-{i:06d}", files[i], open_file, store, recipe)

    with _watching(store, build, segments, on_progress):
        found = dict(_decode_summary(data) for data in run_tasks(spark, work, len(segments)))
    return [found[i] for i in range(len(segments))]


def _write_segment(
    i: int, name: str, files: Sequence[FileIdentity], open_file: OpenFile, store: Store, recipe: Recipe
) -> bytes:
    assembled = assemble(files, open_file, recipe, store, f"{pieces.FOLDER}/{name}")
    segment = assembled.segment
    encoded = encode_segment(segment)
    store.put(f"{FOLDER}/{name}.segment", encoded.data)
    blocks = segment.blocks
    row_count = int(blocks.row_count.sum())
    per_file = [
        np.bincount(blocks.file, weights, len(files)) for weights in (None, blocks.row_count, blocks.byte_count)
    ]
    meta = {
        "i": i,
        "name": f"{FOLDER}/{name}.segment",
        "size": len(encoded.data),
        "rows": row_count,
        "blocks": len(blocks),
        "files": files,
        "places": encoded.places,
        "kinds": [zone_map.lower.kind.value for zone_map in segment.zone_maps],
        "pieces": assembled.pieces,
    }
    writer = Writer(codec.SUMMARY, meta)
    writer.add("file_counts", [each.astype(np.int64) for each in per_file])
    for c, zone_map in enumerate(segment.zone_maps):
        merged = zonemap.merge(zone_map, blocks.row_count, np.zeros(1, np.int64)) if len(blocks) else zone_map
        writer.add(f"zone/{c}", zone_arrays(merged if len(merged) else zonemap.unknown(zone_map.lower.kind, 1)))
    return writer.finish()


def _decode_summary(data: bytes) -> tuple[int, SegmentSummary]:
    contents, read = _read_summary(data), _reader(data)
    meta = contents.meta
    zone_maps = [
        zone_map_of(contents.arrays(f"zone/{c}", read), Kind(kind), 1, "task result")
        for c, kind in enumerate(meta["kinds"])
    ]
    files = [(str(path), int(size), int(modified)) for path, size, modified in meta["files"]]
    counts = np.stack(contents.arrays("file_counts", read), axis=1)
    places = {chunk: Place(*place) for chunk, place in meta["places"].items()}
    sizes = (meta["size"], meta["rows"], meta["blocks"])
    own = {int(f): [_piece(*each) for each in found] for f, found in meta["pieces"].items()}
    return meta["i"], SegmentSummary(meta["name"], *sizes, files, counts, zone_maps, places, own)


def _piece(name: str, code: int, count: int, rows: Sequence[int]) -> Piece:
    return Piece(name, code, count, Matrix(*rows))


def write_slabs(
    spark: SparkSession, build: str, store: Store, summaries: Sequence[SegmentSummary], recipe: Recipe
) -> dict[int, Slabs]:
    """The third pass: the pieces of all segments laid side by side, filter by filter.

    What fits into one file per filter is written here: starting a job would take longer.
    """
    plans = {}
    for f in sorted({f for summary in summaries for f in summary.pieces}):
        plans[f] = interleave.plan_matrices([summary.pieces.get(f, ()) for summary in summaries])
    files = [(f, parts) for f, matrices in plans.items() for parts in interleave.plan_files(matrices)]

    def write(i: int) -> WrittenFile:
        f, parts = files[i]
        return interleave.write_file(store, f"{interleave.FOLDER}/{build}-{i:06d}.filter", plans[f], parts)

    is_little = len(files) == len(plans)
    written = [write(i) for i in range(len(files))] if is_little else _written(spark, write, len(files))
    return {
        f: interleave.slabs_written(
            matrices,
            probes_for(recipe.rates[f]),
            [(parts, done) for (g, parts), done in zip(files, written, strict=True) if g == f],
        )
        for f, matrices in plans.items()
        if matrices
    }


def _written(spark: SparkSession, write: Callable[[int], WrittenFile], count: int) -> list[WrittenFile]:
    """Files that tasks write."""

    def work(mine: Sequence[int]) -> Iterator[bytes]:
        for i in mine:
            yield json.dumps((i, write(i))).encode()

    found = dict(map(json.loads, run_tasks(spark, work, count)))
    return [_written_file(*found[i]) for i in range(count)]


def _written_file(name: str, size: int, parts: Sequence[Sequence[int]]) -> WrittenFile:
    return WrittenFile(name, size, [Matrix(*part) for part in parts])


def _read_summary(data: bytes) -> codec.Contents:
    return read_contents("task result", codec.SUMMARY, len(data), _reader(data))


def _reader(data: bytes) -> codec.ReadRange:
    return lambda offset, size: data[offset : offset + size]


def run_tasks(spark: SparkSession, work: Callable[[Sequence[int]], Iterator[bytes]], n: int) -> Iterator[bytes]:
    """Run `work` over the numbers below n, spread over Spark tasks in runs; its results in any order."""
    if not n:
        return
    tasks = task_count(spark, n)
    shares = [share.tolist() for share in np.array_split(np.arange(n), tasks)]

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for share in batch.column(0).to_pylist():
                yield from _results(work(shares[share]))

    tag = f"secateur-{uuid.uuid4().hex[:8]}"
    spark.addTag(tag)
    try:
        results = (
            spark.range(0, tasks, 1, tasks).mapInArrow(task, "result binary, error string, message string").toArrow()
        )
    except BaseException:
        spark.interruptTag(tag)
        raise
    finally:
        spark.removeTag(tag)
    for error, message in zip(results["error"].to_pylist(), results["message"].to_pylist(), strict=True):
        if error:
            raise getattr(errors, error)(message)
    yield from results["result"].to_pylist()


def _results(found: Iterator[bytes]) -> Iterator[pa.RecordBatch]:
    """Results as batches; a mistake in the data travels as a row, so that the driver raises it as it was."""
    names = ["result", "error", "message"]
    types = (pa.binary(), pa.string(), pa.string())
    try:
        for result in found:
            yield pa.RecordBatch.from_arrays(
                [pa.array([v], t) for v, t in zip((result, None, None), types, strict=True)], names
            )
    except SecateurError as error:
        row = (None, type(error).__name__, str(error))
        yield pa.RecordBatch.from_arrays([pa.array([v], t) for v, t in zip(row, types, strict=True)], names)


def task_count(spark: SparkSession, n: int) -> int:
    """The tasks over which n pieces of work are spread."""
    return min(n, _parallelism(spark) * TASKS_PER_CORE)


def _parallelism(spark: SparkSession) -> int:
    from pyspark.errors import PySparkException

    try:
        return int(spark.sparkContext.defaultParallelism)
    except PySparkException:  # Spark Connect has no SparkContext
        return int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)


@contextmanager
def _watching(
    store: Store, build: str, segments: Sequence[Sequence[FileSurvey]], on_progress: OnProgress | None
) -> Iterator[None]:
    """Report progress while a build runs: the segment files that are there say what is done."""
    if on_progress is None:
        yield
        return
    done = threading.Event()

    def report() -> None:
        prefix = f"{FOLDER}/{build}-"
        written = [int(f.name[len(prefix) :][:6]) for f in store.files(FOLDER) if f.name.startswith(prefix)]
        items = [item for i in written for item in segments[i]]
        on_progress(len(items), sum(s.row_count for s in items), sum(s.byte_count for s in items))

    def poll() -> None:
        while not done.wait(POLL_SECONDS):
            report()

    watcher = threading.Thread(target=poll, daemon=True)
    watcher.start()
    try:
        yield
        report()
    finally:
        done.set()
        watcher.join()
