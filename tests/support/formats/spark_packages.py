"""Where the tests keep what they fetch: peers, and runtimes of other formats."""

from __future__ import annotations

import os
from pathlib import Path


def packages_home() -> Path:
    """Where packages are kept; their jars are in a folder of it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "secateur-tests" / "packages"
