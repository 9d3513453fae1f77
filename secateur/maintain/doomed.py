"""Saying which files are about to be removed, so that no snapshot is published that needs them.

Removing files and publishing a snapshot take many steps each, and no lock. Who removes writes an empty file under the
name of the build, and after that looks which snapshots there are; who publishes creates the snapshot, and after that
looks which builds are doomed. So of two at once one at least sees the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager

from secateur.index.file_names import build_of
from secateur.index.model import Store

FOLDER = "doomed"


@contextmanager
def doomed(store: Store, builds: Set[str]) -> Iterator[None]:
    """While files of some builds are removed. Raises IndexNotWritable.

    Whoever is killed meanwhile leaves the marks behind: they are of builds that are never published again.
    """
    for build in sorted(builds):
        store.put_aside(_mark(build), b"")
    yield
    for build in sorted(builds):
        store.delete(_mark(build))


def doomed_builds(store: Store) -> set[str]:
    """The builds whose files are being removed."""
    return {build for file in store.files(FOLDER) if (build := build_of(file.name)) is not None}


def _mark(build: str) -> str:
    return f"{FOLDER}/{build}.doomed"
