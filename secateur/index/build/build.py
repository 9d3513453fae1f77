"""The build as Spark jobs: executors read footers and columns and write segment files; the driver gets summaries.

Three passes. The survey reads every footer and returns, per file, counts, the schema and where the file begins in the
sort key; the driver then cuts the files, in key order, into segments. The second pass builds the segments and writes
their filters aside as bloom fragments. The third merges the fragments into bloom matrices. Partitions are few and
large: a task takes a list of files and writes as many segments as they make.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from itertools import chain

import numpy as np

from secateur.errors import IndexFault, SecateurError
from secateur.index.build.add_columns import Amendment, amend
from secateur.index.build.assemble import Assembled, Recipe, assemble
from secateur.index.build.source_file import OpenFile
from secateur.index.build.survey import FileSurvey
from secateur.index.build.tasks import RunTasks, read_result
from secateur.index.container import index_file
from secateur.index.container.checked_matrix import Matrix
from secateur.index.container.index_file import Place, Writer
from secateur.index.file_names import build_of
from secateur.index.filters import bloom_fragment, transpose
from secateur.index.filters.bloom_fragment import BloomFragment
from secateur.index.identity import FileIdentity
from secateur.index.model import Store
from secateur.index.segments import base_file
from secateur.index.segments.segment_file import encode_segment, zone_arrays, zone_map_of
from secateur.index.segments.segment_table import SegmentSummary
from secateur.index.segments.snapshot_files import open_snapshot, snapshot_numbers
from secateur.index.zones import zonemap
from secateur.values.kinds import Kind

FOLDER, MANIFESTS_FOLDER = "segments", "manifests"
FOLDERS = (
    FOLDER,
    transpose.FOLDER,
    bloom_fragment.FOLDER,
    MANIFESTS_FOLDER,
    base_file.FOLDER,
)  # every folder that a build writes
POLL_SECONDS = 0.25
_log = logging.getLogger("secateur")

Sizes = tuple[int, int, int]  # files, rows, bytes
OnProgress = Callable[[int, int, int], None]  # the same, done so far


def total(sizes: Iterable[Sizes]) -> Sizes:
    """Add up sizes."""
    files, rows, bytes_ = 0, 0, 0
    for size in sizes:
        files, rows, bytes_ = files + size[0], rows + size[1], bytes_ + size[2]
    return files, rows, bytes_


@contextmanager
def new_build(store: Store) -> Iterator[str]:
    """Yield the name of a build. On an error or interrupt remove its files; always remove its bloom fragments.

    Files that cannot be removed are left to a vacuum. A published build keeps its files.
    """
    build = uuid.uuid4().hex[:12]
    try:
        yield build
    except BaseException:
        if not _is_published(store, build):
            discard(store, build)
        raise
    finally:
        _remove(store, build, (bloom_fragment.FOLDER,))


def discard(store: Store, build: str) -> None:
    """Remove the files of a build that no snapshot names; those that cannot be removed are left to a vacuum."""
    _remove(store, build, FOLDERS)


def _is_published(store: Store, build: str) -> bool:
    """Whether a snapshot names segments, manifests or a base of a build, or cannot be read."""
    try:
        snapshots = [open_snapshot(store, number) for number in snapshot_numbers(store)]
        manifests = [name for snapshot in snapshots if snapshot.made_of is not None for name in snapshot.made_of.names]
        bases = [snapshot.base.name for snapshot in snapshots if snapshot.base is not None]
        return any(build_of(name) == build for name in chain(manifests, bases, *(s.segments.name for s in snapshots)))
    except IndexFault:
        return True


def _remove(store: Store, build: str, folders: Sequence[str]) -> None:
    try:
        for folder in folders:
            for file in store.files(folder):
                if file.name.startswith(f"{folder}/{build}"):
                    store.delete(file.name)
    except SecateurError as error:
        _log.warning("files of the build %s are left over, for a vacuum to remove: %s", build, error)


def write_segments(
    run: RunTasks,
    build: str,
    open_file: OpenFile,
    store: Store,
    segments: Sequence[Sequence[FileSurvey]],
    recipe: Recipe,
    on_progress: OnProgress | None = None,
    amended: Sequence[Amendment] = (),
) -> list[SegmentSummary]:
    """Run the second pass: executors write segments and their bloom fragments. Return the summaries.

    Amended segments follow the new ones; their summaries have zone maps of the amended columns only.
    """
    files = [[item.file for item in segment] for segment in segments]

    def work(numbers: Sequence[int]) -> Iterator[bytes]:
        for i in numbers:
            name = f"{build}-{i:06d}"
            if i < len(files):
                yield _write_segment(i, name, files[i], open_file, store, recipe)
            else:
                yield _write_amended(i, name, amended[i - len(files)], open_file, store, recipe)

    sizes = [_sizes(segment) for segment in segments] + [amendment.sizes for amendment in amended]
    with watching(store, build, sizes, on_progress):
        summaries = dict(decode_summary(data) for data in run(work, len(files) + len(amended)))
    return [summaries[i] for i in range(len(files) + len(amended))]


def _write_segment(
    i: int, name: str, files: Sequence[FileIdentity], open_file: OpenFile, store: Store, recipe: Recipe
) -> bytes:
    assembled = assemble(files, open_file, recipe, store, f"{bloom_fragment.FOLDER}/{name}")
    encoded = encode_segment(assembled.segment)
    store.put(f"{FOLDER}/{name}.segment", encoded.data)
    return encode_summary(i, name, len(encoded.data), assembled, encoded.places, assembled.fragments)


def _write_amended(i: int, name: str, amendment: Amendment, open_file: OpenFile, store: Store, recipe: Recipe) -> bytes:
    done = amend(amendment, name, open_file, store, recipe)
    store.put(f"{FOLDER}/{name}.segment", done.data)
    fragments = {amendment.filters[f]: written for f, written in done.assembled.fragments.items()}
    return encode_summary(i, name, len(done.data), done.assembled, done.places, fragments)


def encode_summary(
    i: int,
    name: str,
    size: int,
    assembled: Assembled,
    places: Mapping[str, Place],
    fragments: Mapping[int, Sequence[BloomFragment]],
) -> bytes:
    """Encode the summary of segment number i, which a task returns to the driver."""
    segment = assembled.segment
    blocks, files = segment.blocks, segment.files
    row_count = int(blocks.row_count.sum())
    per_file = [
        np.bincount(blocks.file, weights, len(files)) for weights in (None, blocks.row_count, blocks.byte_count)
    ]
    meta = {
        "i": i,
        "name": f"{FOLDER}/{name}.segment",
        "size": size,
        "rows": row_count,
        "blocks": len(blocks),
        "files": [astuple(file) for file in files],
        "places": places,
        "kinds": [zone_map.lower.kind.value for zone_map in segment.zone_maps],
        "fragments": fragments,
    }
    writer = Writer(index_file.SUMMARY, meta)
    writer.add("file_counts", [counts.astype(np.int64) for counts in per_file])
    for c, zone_map in enumerate(segment.zone_maps):
        merged = zonemap.merge(zone_map, blocks.row_count, np.zeros(1, np.int64)) if len(blocks) else zone_map
        writer.add(f"zone/{c}", zone_arrays(merged if len(merged) else zonemap.unknown(zone_map.lower.kind, 1)))
    return writer.finish()


def decode_summary(data: bytes) -> tuple[int, SegmentSummary]:
    contents, read = read_result(data)
    meta = contents.meta
    zone_maps = [
        zone_map_of(contents.arrays(f"zone/{c}", read), Kind(kind), 1, "task result")
        for c, kind in enumerate(meta["kinds"])
    ]
    files = [FileIdentity(*item) for item in meta["files"]]
    counts = np.stack(contents.arrays("file_counts", read), axis=1)
    places = {chunk: Place(*place) for chunk, place in meta["places"].items()}
    sizes = (meta["size"], meta["rows"], meta["blocks"])
    fragments = {int(f): [_fragment(*item) for item in stored] for f, stored in meta["fragments"].items()}
    return meta["i"], SegmentSummary(meta["name"], *sizes, files, counts, zone_maps, places, fragments)


def _fragment(name: str, size_class: int, count: int, rows: Sequence[int]) -> BloomFragment:
    return BloomFragment(name, size_class, count, Matrix(*rows))


def _sizes(segment: Sequence[FileSurvey]) -> Sizes:
    return total((1, item.row_count, item.byte_count) for item in segment)


@contextmanager
def watching(store: Store, build: str, sizes: Sequence[Sizes], on_progress: OnProgress | None) -> Iterator[None]:
    """Report progress during a build, judged by the segment files written so far."""
    if on_progress is None:
        yield
        return
    done = threading.Event()

    def report() -> None:
        prefix = f"{FOLDER}/{build}-"
        names = (file.name for file in store.files(FOLDER))
        written = (int(name[len(prefix) :].partition(".")[0]) for name in names if name.startswith(prefix))
        on_progress(*total(sizes[i] for i in written))

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
