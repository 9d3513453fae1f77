"""Mark builds whose files are about to be removed, so that no snapshot is published that needs them.

Removing files and publishing a snapshot both take many steps, without a lock. A remover writes an empty file named
after the build and then lists the snapshots; a publisher creates the snapshot and then lists the marked builds. If both
run at once, at least one sees the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager

from secateur.index.file_names import build_of
from secateur.index.model import Store

FOLDER = "removals"


@contextmanager
def marked_for_removal(store: Store, builds: Set[str]) -> Iterator[None]:
    """Mark some builds while their files are being removed. Raises IndexNotWritable.

    A process that is killed meanwhile leaves its marks: they name builds that are never published again.
    """
    for build in sorted(builds):
        store.put_aside(_mark(build), b"")
    yield
    for build in sorted(builds):
        store.delete(_mark(build))


def builds_marked(store: Store) -> set[str]:
    """Return the builds whose files are being removed."""
    return {build for file in store.files(FOLDER) if (build := build_of(file.name)) is not None}


def _mark(build: str) -> str:
    return f"{FOLDER}/{build}.removal"
