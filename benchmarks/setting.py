"""The settings of a workload, and the data that it keeps from run to run."""

from __future__ import annotations

import shutil
import uuid
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import secateur


@dataclass(frozen=True)
class Setting:
    """Where generated data is kept, what sizes are multiplied by, and the least number of repetitions."""

    directory: Path
    scale: float = 1.0
    repetitions: int = 5

    def scaled(self, size: int, least: int = 1) -> int:
        """A size at this scale."""
        return max(least, round(size * self.scale))

    def prepared(self, name: str, make: Callable[[Path], None]) -> Path:
        """The directory of generated data, made where it is missing; the name says everything that the data depends on.

        It appears whole or not at all, so data of an interrupted run is not taken for finished.
        """
        path = self.directory / name
        if not path.exists():
            aside = self.directory / f".{name}-{uuid.uuid4().hex}"
            aside.mkdir(parents=True)
            try:
                make(aside)
                aside.rename(path)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
        return path

    def prepared_index(self, name: str, make: Callable[[Path], None]) -> Path:
        """As :meth:`prepared`, for data that index code writes: made anew where that code has changed."""
        path = self.directory / f"{name}-{index_code()}"
        if not path.exists():
            for old in self.directory.glob(f"{name}-*"):
                shutil.rmtree(old)
        return self.prepared(path.name, make)


@cache
def index_code() -> str:
    """A digest of the code that writes an index: bytes of other code may mean something else."""
    package = Path(secateur.__file__).parent
    sources = sorted([*(package / "index").rglob("*.py"), *(package / "values").rglob("*.py")])
    return f"{zlib.crc32(b''.join(source.read_bytes() for source in sources)):08x}"
