"""The versions on which what is kept for other processes depends."""

from __future__ import annotations

import sys

import pyarrow as pa

FORMAT = 1  # of what is written on local disk
SEMANTICS = 1  # one more whenever a predicate comes to be TRUE on other rows than it was before


def versions() -> str:
    """Return the part of a key that another version of this package, or of what it computes with, has otherwise."""
    return f"{FORMAT} {SEMANTICS} {sys.modules['secateur'].__version__} {pa.__version__}"
