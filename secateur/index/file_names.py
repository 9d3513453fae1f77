"""The names of index files (docs/format.md): what they mean, and how names found in index files are checked.

A store appends a name to its root. A valid name has one slash and no dot except in its ending, so it leads to a file of
its own folder and nowhere else, whoever wrote the index file that contains it.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import truths
from secateur.errors import IndexFault

_BUILD, _NUMBER = "[0-9a-f]{12}", "[0-9]{6,9}"
SEGMENT_NAME = rf"^segments/{_BUILD}-{_NUMBER}\.segment\z"
FILTER_NAME = rf"^filters/{_BUILD}-{_NUMBER}\.filter\z"
MANIFESTS_NAME = rf"^manifests/{_BUILD}\.manifests\z"
BASE_NAME = rf"^bases/{_BUILD}\.base\z"
_OF_BUILD = re.compile(rf"{_BUILD}(?=[-.])")


def build_of(name: str) -> str | None:
    """Return the build that wrote a file, from the start of its name; None where no build wrote it."""
    match = _OF_BUILD.match(name.rpartition("/")[2])
    return None if match is None else match[0]


def require_names(names: pa.Array, form: str, where: str) -> None:
    """Check that every name has the form. Raises IndexFault, prefixed by `where`."""
    wrong = np.flatnonzero(~truths(pc.match_substring_regex(names, form)))
    if len(wrong):
        name = str(names[int(wrong[0])])
        raise IndexFault(f"{where}: {name[:80]!r} is not the name of an index file there")
