"""Bases: index files that hold the files of many segments, for as many snapshots as name them.

docs/format.md, "Bases". A snapshot records where both chunks of its base lie, so they are read without the table of
contents, and proven by checksums of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from secateur.arrays import from_numpy, text_parts
from secateur.errors import IndexFault
from secateur.index.container.index_file import BASE, Place, Writer, check, decode_chunk
from secateur.index.file_names import BASE_NAME, require_names
from secateur.index.model import Store
from secateur.index.segments.file_table import COLUMNS, INT64, TEXTS, Base, StoredFiles, stored_arrays, texts_of
from secateur.index.segments.segment_files import SegmentFiles

FOLDER = "bases"
MOST_FILES = 1 << 31  # of all segments; bounds what is allocated for them
MOST_OWN = 1 << 13  # files in a snapshot itself, which every refresh writes again
LEAST_USED = 1 / 2  # share of its files for which a base is kept

KeepBase = Callable[[Hashable, Callable[[], Base]], Base]  # returns what is kept under a key, else what is loaded


def read_anew(key: Hashable, load: Callable[[], Base]) -> Base:
    """Keep nothing."""
    return load()


def is_base_due(files: SegmentFiles) -> bool:
    """Whether a new base should be written: too many files are in none, or too few of the base's are used."""
    if len(files) - files.of_base > MOST_OWN:
        return True
    return files.base is not None and files.of_base < LEAST_USED * len(files.base.files)


def write_base(store: Store, build: str, files: SegmentFiles) -> SegmentFiles:
    """Write all files as a base, and return them as that base's. Raises IndexNotWritable."""
    writer = Writer(BASE, {})
    writer.add("paths", text_parts(files.path.take(from_numpy(files.by_path))))
    writer.add("files", stored_arrays(files.table, files.rank))
    data, name = writer.finish(), f"{FOLDER}/{build}.base"
    store.put(name, data)
    return files.in_base(_opened(store, name, len(data), len(files), writer.chunks))


def described_base(base: Base) -> dict[str, object]:
    """Describe a base for the snapshots that name it."""
    places = {chunk: list(place) for chunk, place in base.places.items()}
    return {"name": base.name, "size": base.size, "files": len(base.files), "chunks": places}


def base_described(meta: Mapping[str, Any], store: Store, where: str, keep: KeepBase = read_anew) -> Base:
    """Return the base that a snapshot describes. Raises IndexFault for an invalid name, place or number."""
    name, size, count = str(meta["name"]), int(meta["size"]), int(meta["files"])
    places = {chunk: Place(*map(int, meta["chunks"][chunk])) for chunk in ("paths", "files")}
    require_names(pa.array([name]), BASE_NAME, where)
    if not 0 <= count <= MOST_FILES or any(min(place) < 0 or place.at + place.size > size for place in places.values()):
        raise IndexFault(f"{where}: the place of its base is malformed")
    key = (store.location, name, size, count, *places.values())
    return keep(key, lambda: _opened(store, name, size, count, places))


def _opened(store: Store, name: str, size: int, count: int, places: Mapping[str, Place]) -> Base:
    def arrays(chunk: str, dtypes: Sequence[np.dtype]) -> list[np.ndarray]:
        place, where = places[chunk], f"{name}: chunk {chunk}"
        decoded = decode_chunk(check(store.read(name, place.at, place.size), place, where), where)
        if [array.dtype for array in decoded] != [*dtypes]:
            raise IndexFault(f"{where} is not that of a base")
        return decoded

    def paths() -> pa.Array:
        return texts_of(arrays("paths", TEXTS), f"{name}: the file paths")

    numbers = partial(arrays, "files", (len(COLUMNS) + 1) * (INT64,))
    return Base(name, size, dict(places), StoredFiles(count, paths, numbers, name))
