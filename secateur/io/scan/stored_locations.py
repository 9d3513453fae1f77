"""Load the page locations of a plan's blocks from the index, so that readers need no footers.

The index is trusted for the file that it knows: a reader compares the file with the listing first, as it always does,
and every page header with the page locations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from secateur.errors import IndexFault, InvalidParquet
from secateur.index.read.blocks import OpenedBlocks
from secateur.index.zones.page_locations import BlockLocations
from secateur.io.parquet.file_metadata import FileMetadata, known_head
from secateur.io.parquet.known_locations import known_locations
from secateur.io.parquet.location_codec import decode_locations, encode_locations
from secateur.io.parquet.thrift import MalformedThrift
from secateur.io.scan.opened_table import OpenedTable

SHORT = 1 << 10  # bytes of page locations; shortening a smaller one saves hardly anything
Leaves = Collection[int]  # by ordinal
Wanted = Callable[[FileMetadata], Leaves]  # leaves to read of files with this file metadata


@dataclass(frozen=True, eq=False)
class StoredLocations:
    """The encoded page locations of some blocks, in order, for readers in any process."""

    page_locations: BlockLocations
    degraded: tuple[str, ...] = ()  # why some could not be read; those are unknown


def locations_of(opened: OpenedTable, blocks: OpenedBlocks, wanted: Wanted, *, is_sent: bool) -> StoredLocations:
    """Load the page locations and file metadata of some blocks, in one round of exact ranges of index files.

    Ranges read before come from the table's cache. If they are sent to other processes, only the `wanted` leaves of
    long page locations are kept; a leaf that cannot be read by pages may be missing. A block that the index does not
    cover, or whose locations cannot be read, has no bytes, and its reader uses the file's footer. Everything returned
    can be decoded. Raises IndexFault for corrupt data if the plan is strict.
    """
    faults, locations = opened.catalog.faults, blocks.page_locations()
    leaves: list[Leaves | None] = []
    for head in locations.heads:
        leaves.append(None)
        with faults.tolerated():
            leaves[-1] = _leaves(head, wanted)
    kept = []
    sizes = opened.listing.size[blocks.file].tolist()
    part = _shortened if is_sent else _whole
    for data, number, size in zip(locations.blocks, locations.head.tolist(), sizes, strict=True):
        leaves_of_block = leaves[number] if number >= 0 else None
        kept.append(b"")
        with faults.tolerated():
            kept[-1] = part(data, leaves_of_block, size) if data and leaves_of_block is not None else b""
    return StoredLocations(replace(locations, blocks=kept), faults.drain())


def _leaves(head: bytes, wanted: Wanted) -> Leaves:
    """Return the wanted leaves of files with this file metadata. Raises IndexFault."""
    try:
        return wanted(known_head(head))
    except (InvalidParquet, MalformedThrift, KeyError) as error:
        raise IndexFault(f"the head of a file is malformed: {error}") from None


def _shortened(data: bytes, leaves: Leaves, file_size: int) -> bytes:
    """Return page locations with at least the given leaves. Raises IndexFault."""
    part = decode_locations(data, file_size, "page locations", leaves)
    return encode_locations(part) if len(data) > SHORT else data


def _whole(data: bytes, leaves: Leaves, file_size: int) -> bytes:
    """Return page locations as they are, for readers in this process, which find them decoded. Raises IndexFault."""
    known_locations(data, file_size)
    return data
