"""Register the location of an index in the table's own metadata, so that every reader of the table finds it.

The location is a blob of a statistics file (Puffin) of the indexed snapshot. The blob is in the file, but not in the
blob list of the table's metadata: PyIceberg up to 0.12 cannot load a table whose list has an unknown blob type. So the
file is recognised by the end of its name.
"""

from __future__ import annotations

import json
import posixpath
import uuid
from collections.abc import Mapping
from typing import Any

from pyiceberg.io import FileIO
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.statistics import StatisticsFile

from secateur.errors import IndexNotWritable
from secateur.io.storage.redaction import explained
from secateur.io.tables.iceberg.puffin import Blob, decode_puffin, encode_puffin

BLOB = "secateur-index-v1"
SUFFIX = "-secateur.stats"


def registered_location(metadata: TableMetadata, io: FileIO) -> str | None:
    """Return the location of the index registered last; None if there is none, or it cannot be read."""
    snapshots = {each.snapshot_id: each.timestamp_ms for each in metadata.snapshots}
    own = [each for each in metadata.statistics if each.statistics_path.endswith(SUFFIX)]
    for file in sorted(own, key=lambda each: -snapshots.get(each.snapshot_id, 0)):
        try:
            for blob in _blobs(io, file.statistics_path):
                if blob.about["type"] == BLOB:
                    return str(json.loads(blob.data)["location"])
        except (OSError, ValueError, KeyError, TypeError):  # then the index is looked for beside the data
            continue
    return None


def register(table: Table, snapshot_id: int, sequence_number: int, location: str) -> str:
    """Add a statistics file with the location of an index to a snapshot, and return the file's path.

    Blobs of the snapshot's existing statistics file are kept. Raises IndexNotWritable.
    """
    before = next((each for each in table.metadata.statistics if each.snapshot_id == snapshot_id), None)
    about: Mapping[str, Any] = {
        "type": BLOB,
        "fields": [],
        "snapshot-id": snapshot_id,
        "sequence-number": sequence_number,
    }
    path = posixpath.join(table.location(), "metadata", f"{snapshot_id}-{uuid.uuid4()}{SUFFIX}")
    try:
        kept = [] if before is None else _blobs(table.io, before.statistics_path)
        others = [blob for blob in kept if blob.about["type"] != BLOB]
        data, footer = encode_puffin([*others, Blob(json.dumps({"location": location}).encode(), about)])
        with table.io.new_output(path).create() as out:
            out.write(data)
        entry = {
            "snapshot-id": snapshot_id,
            "statistics-path": path,
            "file-size-in-bytes": len(data),
            "file-footer-size-in-bytes": footer,
            "blob-metadata": [] if before is None else before.blob_metadata,
        }
        with table.update_statistics() as update:
            update.set_statistics(StatisticsFile.model_validate(entry))
    except (OSError, ValueError, NotImplementedError) as error:
        what = f"cannot register the index in the metadata of {table.location()}"
        raise IndexNotWritable(f"{what}: {explained(error)}") from None
    return path


def _blobs(io: FileIO, path: str) -> list[Blob]:
    with io.new_input(path).open() as file:
        return decode_puffin(file.read())
