"""A store of index files in memory: what a build costs without the disk that it writes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from secateur.errors import IndexFault
from secateur.index.model import StoredFile


@dataclass(frozen=True)
class MemoryStore:
    """See :class:`secateur.index.model.Store`."""

    held: dict[str, bytes] = field(default_factory=dict)
    location: str = "memory"

    def files(self, folder: str) -> list[StoredFile]:
        """The files of a folder by name."""
        found = sorted(name for name in self.held if name.startswith(f"{folder}/"))
        return [StoredFile(name, len(self.held[name]), 0.0) for name in found]

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Exactly `size` bytes."""
        return self.held[name][offset : offset + size]

    def read_many(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes of many (offset, size) ranges of one file."""
        return [self.read(name, offset, size) for offset, size in ranges]

    def read_each(self, wanted: Sequence[tuple[str, int, int]]) -> list[bytes | IndexFault]:
        """The bytes of (name, offset, size) ranges of many files."""
        return [self.read(*each) for each in wanted]

    def size(self, name: str) -> int:
        """The size in bytes."""
        return len(self.held[name])

    def put(self, name: str, data: bytes) -> None:
        """Keep a file."""
        self.held[name] = data

    create = put

    put_aside = put

    def delete(self, name: str) -> None:
        """Forget a file."""
        self.held.pop(name, None)
