"""The layouts of a plan's blocks out of the index: what a reader needs to read single pages without a look at footers.

The index is believed of the file that it knows: a reader holds the file against the listing first, as it does anyway,
and every page's header against the layout.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from secateur.errors import IndexFault, InvalidParquet
from secateur.index.read.blocks import OpenedBlocks
from secateur.index.zones.page_locations import Layouts
from secateur.io.parquet.file_metadata import FileMetadata, known_head
from secateur.io.parquet.location_codec import decode_layout, encode_layout
from secateur.io.parquet.thrift import MalformedThrift
from secateur.io.scan.opened_table import OpenedTable

SHORT = 1 << 10  # bytes of a layout; of what is less, a part takes hardly less
Leaves = Collection[int]  # their ordinals
Wanted = Callable[[FileMetadata], Leaves]  # what is read of files with a head


@dataclass(frozen=True, eq=False)
class StoredLayouts:
    """What the index has of some blocks, in their order: encoded, for readers wherever they are."""

    layouts: Layouts
    degraded: tuple[str, ...] = ()  # why not all of them could be read; those are unknown


def layouts_of(opened: OpenedTable, blocks: OpenedBlocks, wanted: Wanted) -> StoredLayouts:
    """The layouts of some blocks with the heads of their files, by one round of exact ranges of index files.

    What was read before comes from the table's cache. Of a long layout only the leaves that are `wanted` are kept, so
    that no more is sent elsewhere; one that cannot be read by pages may not be in it. Of a block that the index does
    not cover, or whose layout cannot be read, there are no bytes, and its reader looks at the file's footer. What is
    here can be decoded. Raises IndexFault for what is broken where the plan is strict.
    """
    faults, found = opened.catalog.faults, blocks.layouts()
    leaves: list[Leaves | None] = []
    for head in found.heads:
        leaves.append(None)
        with faults.tolerated():
            leaves[-1] = _leaves(head, wanted)
    kept = []
    sizes = opened.listing.size[blocks.file].tolist()
    for data, number, size in zip(found.blocks, found.head.tolist(), sizes, strict=True):
        mine = leaves[number] if number >= 0 else None
        kept.append(b"")
        with faults.tolerated():
            kept[-1] = _part(data, mine, size) if data and mine is not None else b""
    return StoredLayouts(replace(found, blocks=kept), faults.drain())


def _leaves(head: bytes, wanted: Wanted) -> Leaves:
    """The wanted leaves of files with a head. Raises IndexFault."""
    try:
        return wanted(known_head(head))
    except (InvalidParquet, MalformedThrift, KeyError) as error:
        raise IndexFault(f"the head of a file is malformed: {error}") from None


def _part(data: bytes, leaves: Leaves, file_size: int) -> bytes:
    """The layout of some leaves at least. Raises IndexFault."""
    part = decode_layout(data, file_size, "a layout", leaves)
    return encode_layout(part) if len(data) > SHORT else data
