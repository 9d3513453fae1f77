"""Make an archive of this package for executors that lack it: with its requirements, or alone."""

from __future__ import annotations

import os
import re
import tarfile
import zipfile
from collections.abc import Collection, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from secateur.errors import InvalidOption

_PACKAGE_PATHS = ("secateur", "pyspark_secateur.py")
_THERE = "pyspark"  # comes with Spark
_LEFT_OUT = {"tests", "__pycache__"}
_NAME = re.compile(r"[\w.-]+")


def pack(archive: str | os.PathLike[str], without: Collection[str] = ()) -> list[str]:
    """Write an archive for executors: a ``.tar.gz`` with everything that this package requires, or a ``.zip`` without.

    Compiled packages come from this process: executors need the same platform and the same minor version of Python.

    Parameters
    ----------
    archive
        Where to write. Spark takes a ``.tar.gz`` by ``--archives``, a ``.zip`` by ``--py-files``.
    without
        Required packages that the executors have, such as ``["pandas"]``.

    Returns
    -------
    list[str]
        The names of the packages in the archive.

    Raises
    ------
    InvalidOption
        For another ending, and for a package in `without` that is not required.
    """
    path = Path(archive)
    if not path.name.endswith((".tar.gz", ".zip")):
        raise InvalidOption(f"{path.name}: an archive ends in .tar.gz, for --archives, or in .zip, for --py-files")
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
            for file, name in _package_files():
                zipped.write(file, name)
        return ["secateur"]
    required = _required("secateur", {_THERE})
    if unknown := sorted(set(without) - set(required)):
        raise InvalidOption(f"secateur does not require {', '.join(unknown)}, but {', '.join(required)}")
    packed = [name for name in required if name not in without]
    with tarfile.open(path, "w:gz", compresslevel=6) as tar:
        for file, name in _package_files():
            tar.add(file, name)
        for package in packed:
            for file, name in _installed_files(package):
                tar.add(file, name)
    return ["secateur", *packed]


def _package_files() -> Iterator[tuple[Path, str]]:
    """Yield the files of this package, and their names in an archive."""
    root = Path(__file__).parent.parent
    for path in _PACKAGE_PATHS:
        for file in [root / path] if path.endswith(".py") else sorted((root / path).rglob("*")):
            if file.is_file() and not _LEFT_OUT & set(file.parts):
                yield file, str(file.relative_to(root))


def _installed_files(package: str) -> Iterator[tuple[Path, str]]:
    """Yield the files of an installed package, and their names in an archive; none outside of site-packages."""
    for file in distribution(package).files or ():
        if ".." not in file.parts and not _LEFT_OUT & set(file.parts):
            yield Path(str(file.locate())), str(file)


def _required(package: str, known: set[str]) -> list[str]:
    """Return the installed packages that a package requires, directly or indirectly, without those known."""
    packages = []
    for requirement in distribution(package).requires or ():
        match = _NAME.match(requirement)
        if match is None or "extra ==" in requirement or match[0] in known:
            continue
        known.add(match[0])
        try:
            packages += [match[0], *_required(match[0], known)]
        except PackageNotFoundError:  # is for other platforms or versions of Python
            continue
    return packages
