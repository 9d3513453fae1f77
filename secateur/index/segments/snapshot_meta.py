"""What a snapshot file says in its JSON: the options of the build, the filters, and what the index was made of.

docs/format.md, "Snapshot files".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from secateur.errors import IndexFault
from secateur.index.file_names import MANIFESTS_NAME, require_names
from secateur.index.model import BuildOptions, Choice, Filter, FilterOption, type_of_name

MOST_MANIFESTS_FILES = 64  # each holds twice as much as the next one, or more


class ManifestsFile(NamedTuple):
    """An index file that holds some of the table's manifests."""

    name: str
    size: int  # bytes


@dataclass(frozen=True)
class MadeOf:
    """The table snapshot that an index was made of, if the table's format has snapshots."""

    id: int
    manifests: tuple[ManifestsFile, ...]  # the files that hold the table's manifests, which snapshots share

    @property
    def names(self) -> list[str]:
        """The names of these files."""
        return [file.name for file in self.manifests]


def made_of_in(described: dict[str, Any], where: str) -> MadeOf:
    """Decode what an index was made of. Raises IndexFault for an invalid file name, a negative size or many files."""
    files = tuple(ManifestsFile(str(name), int(size)) for name, size in described["manifests"])
    made_of = MadeOf(int(described["id"]), files)
    require_names(pa.array(made_of.names, pa.string()), MANIFESTS_NAME, where)
    if len(files) > MOST_MANIFESTS_FILES or any(file.size < 0 for file in files):
        raise IndexFault(f"{where}: the files of manifests are malformed")
    return made_of


def filter_of(meta: dict[str, Any]) -> Filter:
    """Decode a filter."""
    path = tuple(map(str, meta["path"]))
    flags = bool(meta["folded"]), bool(meta["rows"])
    return Filter(str(meta["kind"]), path, type_of_name(meta["type"]), int(meta["gram"]), *flags)


def options_of(meta: dict[str, Any]) -> BuildOptions:
    """Decode the options of a build."""
    blocks, fpr = meta["segment_blocks"], meta["fpr"]
    return BuildOptions(
        sort_key=tuple(map(str, meta["sort_key"])),
        filters=tuple(_filter_option(described) for described in meta["filters"]),
        gaps=tuple(map(str, meta["gaps"])),
        fpr=None if fpr is None else float(fpr),
        pages=bool(meta["pages"]),
        segment_blocks=None if blocks is None else int(blocks),
        fan_out=int(meta["fan_out"]),
        choices=tuple(_choice(described) for described in meta["choices"]),
        page_locations=bool(meta.get("page_locations", False)),  # absent in snapshots of the first release
        expressions=tuple(map(str, meta.get("expressions", ()))),  # absent in snapshots before there were any
        sums=tuple(map(str, meta.get("sums", ()))),  # likewise
        glob=None if meta.get("glob") is None else str(meta["glob"]),
    )


def _filter_option(meta: dict[str, Any]) -> FilterOption:
    kind, column = str(meta["kind"]), str(meta["column"])
    return FilterOption(kind, column, int(meta["gram"]), *(bool(meta[name]) for name in ("folded", "native", "rows")))


def _choice(meta: dict[str, Any]) -> Choice:
    sizes = {str(name): int(size) for name, size in meta["bytes"].items()}
    return Choice(str(meta["column"]), str(meta["structure"]), str(meta["why"]), sizes)
