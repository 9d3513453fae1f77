"""Store the manifests of a table's snapshot beside its index: the live files they list, as arrays.

A process that opens the table reads these few files, and only those manifests that were written later. The bounds of
data files are left out: the index has better ones. Format: docs/format.md, "Manifest files".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from secateur.errors import IndexFault
from secateur.index.container.index_file import MANIFESTS, Contents, ReadRange, Writer, read_contents
from secateur.io.tables.iceberg.manifest_arrays import FILES, ByField, Manifest

_MALFORMED = (KeyError, IndexError, TypeError, ValueError, OverflowError, OSError, MemoryError, pa.ArrowException)
LEAST_USED = 1 / 2  # share of a file's manifests, by bytes, for which it is kept
_BY_FIELD = ("null_counts", "nan_counts", "lower", "upper")


class ManifestKey(NamedTuple):
    """The fields that identify one manifest."""

    path: str
    length: int
    sequence: int
    is_deletes: bool
    first_row_id: int | None = None  # set once, with the first commit after a table has row ids


def encode_manifests(manifests: Mapping[ManifestKey, Manifest]) -> bytes:
    """Encode manifests to the bytes of a file."""
    writer = Writer(MANIFESTS, {"manifests": [list(key) for key in manifests]})
    for number, (key, manifest) in enumerate(manifests.items()):
        parts = [_message(_with_partition(manifest))]
        if key.is_deletes:
            parts += [_message(_columns(getattr(manifest, name))) for name in _BY_FIELD]
        writer.add(str(number), [np.frombuffer(part, np.uint8) for part in parts])
    return writer.finish()


def manifest_bytes(name: str, size: int, read: ReadRange) -> dict[ManifestKey, int]:
    """Return the manifests that a file holds, and the bytes of each there; none if it is gone or broken."""
    try:
        contents = read_contents(name, MANIFESTS, size, read)
        return {key: contents.chunks[str(i)].size for key, i in _known(contents).items()}
    except (IndexFault, *_MALFORMED):
        return {}


def shared_manifests(
    in_files: Sequence[Mapping[ManifestKey, int]], manifests: Mapping[ManifestKey, Manifest]
) -> tuple[list[int], bytes | None]:
    """Return which files of manifests to keep, and the bytes of one more with all manifests that these do not hold.

    `in_files` says for each file, in the order in which they were written, how many bytes each manifest takes there. A
    file is kept where half of it is of use, and where what is written is at most half as much as that. So each file
    holds twice as much as the next one, few are read, and a manifest is written again a logarithmic number of times.
    """
    new, useful = set(manifests), []
    for of_file in in_files:
        useful.append({key: size for key, size in of_file.items() if key in new})
        new -= useful[-1].keys()
    used = [sum(of_file.values()) for of_file in useful]
    kept = [i for i, of_file in enumerate(in_files) if used[i] and used[i] >= LEAST_USED * sum(of_file.values())]
    data = _encoded_some(manifests, new)
    written = (len(data) if data else 0) + sum(used[i] for i in range(len(in_files)) if i not in kept)
    while kept and used[kept[-1]] < 2 * written:
        written += used[kept.pop()]
    again = {key for i, of_file in enumerate(useful) if i not in kept for key in of_file}
    return kept, _encoded_some(manifests, new | again) if again else data


def _encoded_some(manifests: Mapping[ManifestKey, Manifest], chosen: Set[ManifestKey]) -> bytes | None:
    some = {key: manifest for key, manifest in manifests.items() if key in chosen}
    return encode_manifests(some) if some else None


def decode_manifests(
    name: str, size: int, read: ReadRange, wanted: Iterable[ManifestKey]
) -> dict[ManifestKey, Manifest]:
    """Decode the wanted manifests that a file holds. Raises IndexFault."""
    contents = read_contents(name, MANIFESTS, size, read)
    try:
        known = _known(contents)
        return {key: _manifest(key, contents.arrays(str(known[key]), read)) for key in wanted if key in known}
    except _MALFORMED as error:
        raise IndexFault(f"{name}: the manifests are malformed: {error}") from None


def _known(contents: Contents) -> dict[ManifestKey, int]:
    """Return the number of every manifest that a file holds. Raises what :data:`_MALFORMED` has."""
    return {
        ManifestKey(str(p), int(n), int(s), bool(d), None if f is None else int(f)): i
        for i, (p, n, s, d, f) in enumerate(contents.meta["manifests"])
    }


def _with_partition(manifest: Manifest) -> pa.RecordBatch:
    """Return the files with their partition values appended, named by partition field id."""
    arrays = [*manifest.files.columns, *manifest.partition.values()]
    return pa.RecordBatch.from_arrays(arrays, names=[*FILES.names, *map(str, manifest.partition)])


def _columns(by_field: ByField) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array(by_field.row), pa.array(by_field.id), by_field.value], ["row", "id", "value"]
    )


def _message(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _batch(message: np.ndarray) -> pa.RecordBatch:
    """Read the rows of a message. Raises ValueError if it claims more rows than bytes (columns of nulls have none)."""
    table = pa.ipc.open_stream(pa.py_buffer(message)).read_all()
    if table.num_rows > len(message):
        raise ValueError(f"{len(message)} bytes claim {table.num_rows} rows")
    batches = table.combine_chunks().to_batches()
    batch = batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)
    batch.validate(full=True)
    return batch


def _manifest(key: ManifestKey, messages: list[np.ndarray]) -> Manifest:
    batches = [_batch(message) for message in messages]
    files = batches[0]
    if files.schema.names[: len(FILES)] != FILES.names or len(batches) != (5 if key.is_deletes else 1):
        raise ValueError(f"{key.path} has other columns")
    partition = {int(name): files.column(name) for name in files.schema.names[len(FILES) :]}
    nothing = ByField(np.zeros(0, np.int32), np.zeros(0, np.int32), pa.nulls(0, pa.int64()))
    binary = ByField(nothing.row, nothing.id, pa.nulls(0, pa.binary()))
    by_field = [_by_field(batch) for batch in batches[1:]] or [nothing, nothing, binary, binary]
    return Manifest(files.select(FILES.names).cast(FILES), partition, *by_field)


def _by_field(batch: pa.RecordBatch) -> ByField:
    return ByField(batch.column("row").to_numpy(), batch.column("id").to_numpy(), batch.column("value"))
