"""Checking an index: its checksums, its structure, and what it covers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from secateur.errors import IndexFault
from secateur.index.codec import FILTERS, MANIFESTS, SEGMENT, Place, read_contents
from secateur.index.snapshot import Snapshot
from secateur.io.store import FileStore
from secateur.io.table import Table
from secateur.maintain.describe import filter_files
from secateur.maintain.entries import indexed_files, live_files, require_snapshot


@dataclass(frozen=True)
class Verification:
    """What was checked, and every fault found."""

    snapshot: int
    segments: int
    files_covered: int
    files_uncovered: int
    faults: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Whether no fault was found."""
        return not self.faults


def verify_index(table: Table) -> Verification:
    """Read every byte of the current index and check it: checksums, structure, and which live files it covers.

    Raises IndexMissing. A fault is a value here, never an exception.
    """
    faults: list[str] = []
    try:
        snapshot = require_snapshot(table)
        files = snapshot.files
        filters = filter_files(snapshot)
    except IndexFault as fault:
        return Verification(0, 0, 0, len(live_files(table.snapshot(fresh=True))), (str(fault),))
    faults += snapshot.verify()
    made_of = [] if snapshot.made_of is None else [(snapshot.made_of.manifests, snapshot.made_of.size)]
    sizes = [*zip(snapshot.segments.name, snapshot.segments.size.tolist(), strict=True), *filters.items(), *made_of]
    faults += _verify_sizes(table.store, sizes)
    faults += [fault for i in range(len(snapshot.segments)) for fault in _verify_segment(table, snapshot, i)]
    faults += [fault for name, size in filters.items() for fault in _verify_file(table, name, FILTERS, size)]
    faults += [fault for name, size in made_of for fault in _verify_file(table, name, MANIFESTS, size)]
    covered = set(indexed_files(files))
    live = live_files(table.snapshot(fresh=True))
    known = sum(file in covered for file in live)
    return Verification(snapshot.number, len(snapshot.segments), known, len(live) - known, tuple(faults))


def _verify_sizes(store: FileStore, sizes: Sequence[tuple[str, int]]) -> list[str]:
    """The files that are longer than the snapshot says; what is shorter, or missing, its content tells."""
    folders = {name.partition("/")[0] for name, _ in sizes}
    try:
        found = {file.name: file.size for folder in sorted(folders) for file in store.files(folder)}
    except IndexFault as fault:
        return [str(fault)]
    return [
        f"{name}: has {found[name]:,} bytes instead of {size:,}" for name, size in sizes if found.get(name, 0) > size
    ]


def _verify_segment(table: Table, snapshot: Snapshot, segment: int) -> list[str]:
    """The faults of one segment file, its chunks being where the snapshot says and what it says."""
    name, size = snapshot.segments.name[segment], int(snapshot.segments.size[segment])
    read = partial(table.store.read, name)
    try:
        contents = read_contents(name, SEGMENT, size, read)
        own = set(contents.chunks.values())
        directories = snapshot.as_segments().directory.values()
        named = [Place(int(d.at[segment]), int(d.size[segment]), int(d.crc[segment])) for d in directories]
        lost = [f"{name}: no chunk is {place}" for place in named if place.size and place not in own]
        return lost + contents.verify(read)
    except IndexFault as fault:
        return [str(fault)]


def _verify_file(table: Table, name: str, kind: int, size: int) -> list[str]:
    """The faults of one file of filters, or of manifests."""
    read = partial(table.store.read, name)
    try:
        return read_contents(name, kind, size, read).verify(read)
    except IndexFault as fault:
        return [str(fault)]
