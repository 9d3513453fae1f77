"""Places in a stream, and how far a batch may go from one.

A stream goes from snapshot to snapshot, and with a limit from file to file: the files that were appended between two
snapshots are numbered by their paths, which no later change of the table alters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NotRequired, TypedDict

import numpy as np


class Offset(TypedDict):
    """A place in a stream: after all rows of a snapshot; None: before the first.

    With `files`, after so many of the files that were appended between the snapshots `after` and `snapshot`.
    """

    snapshot: int | None
    identity: str  # see :meth:`secateur.io.tables.history.History.identity_at`
    after: NotRequired[int | None]
    files: NotRequired[int]


@dataclass(frozen=True)
class FileSpan:
    """The files [first, stop) of those that were appended after one snapshot up to another; None: all from `first`."""

    after: int | None
    upto: int | None
    first: int = 0
    stop: int | None = None


@dataclass(frozen=True)
class Limits:
    """How much a batch reads; at least one file."""

    files: int | None = None
    bytes: int | None = None

    def __bool__(self) -> bool:
        return self.files is not None or self.bytes is not None

    def stop(self, sizes: np.ndarray, first: int) -> int:
        """Return the file before which a batch stops that begins at `first`, of files of these bytes."""
        stop = len(sizes)
        if self.files is not None:
            stop = min(stop, first + self.files)
        if self.bytes is not None:
            within = int(np.searchsorted(np.cumsum(sizes[first:]), self.bytes, "right"))
            stop = min(stop, first + max(within, 1))
        return stop


def begun(offset: Offset, newest: Offset) -> tuple[FileSpan, Offset]:
    """Return what a stream at an offset reads next, up to the newest snapshot, and the offset at its end."""
    if "files" not in offset:
        return FileSpan(offset["snapshot"], newest["snapshot"]), newest
    end: Offset = {"snapshot": offset["snapshot"], "identity": offset["identity"]}
    return FileSpan(offset["after"], offset["snapshot"], offset["files"]), end


def limited(span: FileSpan, end: Offset, sizes: np.ndarray, limits: Limits) -> Offset:
    """Return the end of a batch that reads of a span what the limits allow; `sizes` are of all files appended in it."""
    stop = limits.stop(sizes, span.first)
    return end if stop >= len(sizes) else {**end, "after": span.after, "files": stop}


def spans(start: Offset, end: Offset) -> Iterator[FileSpan]:
    """Yield what lies between two offsets of a stream."""
    first = 0
    if "files" in start:
        if "files" in end and (start["after"], start["snapshot"]) == (end["after"], end["snapshot"]):
            first = start["files"]
        else:
            yield FileSpan(start["after"], start["snapshot"], start["files"])
    if "files" in end:
        yield FileSpan(end["after"], end["snapshot"], first, end["files"])
    elif start["snapshot"] != end["snapshot"]:
        yield FileSpan(start["snapshot"], end["snapshot"])
