"""A store of index files in memory, to measure a build without the disk."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from secateur.errors import IndexFault
from secateur.index.model import StoredFile


@dataclass
class MemoryStore:
    """See :class:`secateur.index.model.Store`."""

    data: dict[str, bytes] = field(default_factory=dict)
    location: str = "memory:"
    is_local: bool = True

    def files(self, folder: str) -> list[StoredFile]:
        """The files of a folder by name."""
        return [StoredFile(n, len(d), 0.0) for n, d in sorted(self.data.items()) if n.startswith(folder + "/")]

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Exactly `size` bytes. Raises IndexFault."""
        data = self.data.get(name, b"")[offset : offset + size]
        if offset < 0 or len(data) != size:
            raise IndexFault(f"{name} cannot be read up to byte {offset + size}")
        return data

    def last(self, folder: str, form: re.Pattern[str]) -> StoredFile | None:
        matching = [file for file in self.files(folder) if form.fullmatch(file.name.rpartition("/")[2])]
        return matching[-1] if matching else None

    def read_many(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes of many (offset, size) ranges of one file. Raises IndexFault."""
        return [self.read(name, offset, size) for offset, size in ranges]

    def read_each(self, wanted: Sequence[tuple[str, int, int]]) -> list[bytes | IndexFault]:
        """The bytes of (name, offset, size) ranges of many files, or of each its fault."""
        return [self._read_or_fault(*piece) for piece in wanted]

    def _read_or_fault(self, name: str, offset: int, size: int) -> bytes | IndexFault:
        try:
            return self.read(name, offset, size)
        except IndexFault as fault:
            return fault

    def size(self, name: str) -> int:
        """The size in bytes. Raises IndexFault."""
        if name not in self.data:
            raise IndexFault(f"{name} is missing")
        return len(self.data[name])

    def put(self, name: str, data: bytes) -> None:
        """Keep a file."""
        self.data[name] = data

    create = put

    put_aside = put

    def delete(self, name: str) -> None:
        """Forget a file."""
        self.data.pop(name, None)
