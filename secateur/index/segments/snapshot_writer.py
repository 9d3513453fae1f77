"""Encode snapshot files: docs/format.md, "Snapshot files"."""

from __future__ import annotations

from dataclasses import asdict

import pyarrow as pa

from secateur.arrays import text_parts
from secateur.index.container.index_file import SNAPSHOT, Writer
from secateur.index.identity import listing_id
from secateur.index.model import BuildOptions, type_name
from secateur.index.segments.base_file import described_base
from secateur.index.segments.file_table import stored_arrays
from secateur.index.segments.segment_file import zone_arrays
from secateur.index.segments.segment_table import Segments, written_name
from secateur.index.segments.snapshot_meta import MadeOf
from secateur.index.zones import segment_tree
from secateur.index.zones.segment_tree import tree_over


def encode_snapshot(
    number: int,
    created: float,
    segments: Segments,
    options: BuildOptions,
    schema: pa.Schema,
    made_of: MadeOf | None = None,
    listing: int | None = None,
) -> bytes:
    """Encode a snapshot file. `listing` is the id of its files; where it is None, it is computed."""
    files = segments.files
    if listing is None:
        order = files.by_path
        identity = (array[order] for array in (files.size, files.stamp, files.witness))
        listing = listing_id(files.path.take(pa.array(order)), *identity)
    meta = {
        "number": number,
        "created": created,
        "listing": f"{listing:032x}",
        "columns": [{"path": list(c.path), "type": type_name(c.type)} for c in segments.columns],
        "filters": [{**asdict(f), "type": type_name(f.type)} for f in segments.filters],
        "options": asdict(options),
        "schema": schema.serialize().to_pybytes().hex(),
        "made_of": None if made_of is None else asdict(made_of),
        "base": None if files.base is None else described_base(files.base),
    }
    writer = Writer(SNAPSHOT, meta)
    names = pa.array(segments.name, pa.large_string())
    writer.add("segments", [*text_parts(names), segments.size, segments.block_count, segments.row_count, files.count])
    if files.base is not None and files.at is not None:
        writer.add("in-base", [files.at])
    writer.add("paths", text_parts(files.own_ordered_paths))
    writer.add("files", [*stored_arrays(files.own_files, files.own_rank), files.own_after])
    for chunk, stored in segments.directory.items():
        writer.add(f"where/{written_name(chunk)}", [stored.at, stored.size, stored.crc])
    for f, bloom_matrices in segments.bloom_matrices.items():
        writer.add(
            f"bloom-matrices/{f}",
            [*text_parts(pa.array(bloom_matrices.file_name, pa.large_string())), *bloom_matrices.arrays()],
        )
    tree = tree_over(segments.row_count, options.fan_out) if len(segments) else None
    for c, zone_map in enumerate(segments.zone_maps):
        if tree is not None:
            writer.add(f"tree/{c}", zone_arrays(segment_tree.merge_up(zone_map, tree)))
    return writer.finish()
