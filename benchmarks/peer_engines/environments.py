"""The Python of a peer: in an environment of its own, made once by its pins."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from hashlib import sha256
from pathlib import Path

from benchmarks.peer_engines.peers import Peer

ROOT = Path(__file__).parents[2]


class NotAvailable(Exception):
    """A peer's environment cannot be had here."""


def python_of(peer: Peer, home: Path) -> Path:
    """Return the Python of a peer, with its environment in `home`. Raises NotAvailable with the reason."""
    return _environment(peer, home) if peer.pins else Path(sys.executable)


def _environment(peer: Peer, home: Path) -> Path:
    digest = sha256("\n".join((*peer.pins, sys.version)).encode()).hexdigest()[:8]
    directory = home / f"{peer.name}-{digest}"
    if not (directory / ".installed").exists():
        shutil.rmtree(directory, ignore_errors=True)
        venv.create(directory, with_pip=True)
        install = [str(directory / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run([*install, *peer.pins], capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotAvailable(f"{' '.join(peer.pins)} cannot be installed: {_last(done.stderr)}")
        (directory / ".installed").touch()
    return directory / "bin" / "python"


def _last(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no reason was given"
