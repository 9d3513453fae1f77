"""A store of index files that fails, or whose process dies, at a chosen operation."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from secateur.errors import IndexFault, IndexNotWritable
from secateur.index.model import StoredFile
from secateur.io.storage.index_store import FileStore

Value = TypeVar("Value")

# When the process dies: before an operation, in the middle of it, when a file has its name but that which it was
# written under too, or after it.
DEATHS = ("before", "half", "linked", "after")
# What else may come of an operation: an error once, or from then on, an interrupt before or after it took effect.
ERRORS = ("error", "errors", "interrupt", "interrupt after")
FAULTS = (*DEATHS, *ERRORS)


class DiedError(BaseException):
    """The process is no more: whatever it still does reaches no file."""


@dataclass
class Script:
    """What goes wrong at which operation, counted from 0; and what was done so far."""

    at: int = -1
    fault: str = "before"
    done: list[str] = field(default_factory=list)
    is_dead: bool = False


@dataclass(frozen=True)
class FaultyStore(FileStore):
    """See :class:`secateur.io.storage.index_store.FileStore`."""

    script: Script = field(default_factory=Script, compare=False)

    @property
    def sound(self) -> FileStore:
        return FileStore(self.filesystem, self.root)

    def _run(
        self,
        what: str,
        work: Callable[[], Value],
        error: Exception,
        half: Callable[[], object] = lambda: None,
        linked: Callable[[], object] | None = None,
    ) -> Value:
        script = self.script
        if script.is_dead:
            raise DiedError(what)
        number = len(script.done)
        script.done.append(what)
        if number != script.at and not (script.fault == "errors" and number > script.at >= 0):
            return work()
        if script.fault in ("error", "errors"):
            raise error
        if script.fault == "interrupt":
            raise KeyboardInterrupt
        if script.fault == "half":
            half()
        elif script.fault == "linked":
            (linked or work)()
        elif script.fault in ("after", "interrupt after"):
            work()
        if script.fault == "interrupt after":
            raise KeyboardInterrupt
        script.is_dead = True
        raise DiedError(what)

    def _reading(self, what: str, work: Callable[[], Value]) -> Value:
        return self._run(what, work, IndexFault(f"{what}: no answer"))

    def _writing(self, what: str, work: Callable[[], Any], name: str, data: bytes, *, aside: bool = False) -> None:
        """An object store shows an object whole or not at all; on a local disk parts of files are left."""
        hidden = name if aside else posixpath.join(posixpath.dirname(name), ".0123456789abcdef.partial")

        def leave(content: bytes) -> None:
            if self.is_local:
                self.sound.put_aside(hidden, content)

        def linked() -> None:
            work()
            if not aside:
                leave(data)

        refused = IndexNotWritable(f"cannot write {name}: no room")
        self._run(f"{what} {name}", work, refused, lambda: leave(data[: len(data) // 2]), linked)

    def files(self, folder: str) -> list[StoredFile]:
        return self._reading(f"list {folder}", lambda: self.sound.files(folder))

    def last(self, folder: str, form: re.Pattern[str]) -> StoredFile | None:
        return self._reading(f"list {folder}", lambda: self.sound.last(folder, form))

    def size(self, name: str) -> int:
        return self._reading(f"size {name}", lambda: self.sound.size(name))

    def read_many(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return self._reading(f"read {name}", lambda: self.sound.read_many(name, ranges))

    def put(self, name: str, data: bytes) -> None:
        self._writing("put", lambda: self.sound.put(name, data), name, data)

    def put_aside(self, name: str, data: bytes) -> None:
        self._writing("put aside", lambda: self.sound.put_aside(name, data), name, data, aside=True)

    def create(self, name: str, data: bytes) -> None:
        self._writing("create", lambda: self.sound.create(name, data), name, data)

    def delete(self, name: str) -> None:
        refused = IndexNotWritable(f"cannot delete {name}")
        self._run(f"delete {name}", lambda: self.sound.delete(name), refused)
