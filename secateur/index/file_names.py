"""The names of index files (docs/format.md): what they tell, and the check of those that an index file tells.

A store puts a name behind its root. A name of this form has one slash and no dots but that of its ending, so it leads
to a file of its own folder and nowhere else, whoever wrote the index file that tells it.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import IndexFault

_BUILD, _NUMBER = "[0-9a-f]{12}", "[0-9]{6,9}"
SEGMENT_NAME = rf"^segments/{_BUILD}-{_NUMBER}\.segment\z"
FILTER_NAME = rf"^filters/{_BUILD}-{_NUMBER}\.filter\z"
MANIFESTS_NAME = rf"^manifests/{_BUILD}\.manifests\z"
_OF_BUILD = re.compile(rf"{_BUILD}(?=[-.])")


def build_of(name: str) -> str | None:
    """The build that wrote a file, with which its name begins; None where no build did."""
    found = _OF_BUILD.match(name.rpartition("/")[2])
    return None if found is None else found[0]


def require_names(names: pa.Array, form: str, where: str) -> None:
    """Raises IndexFault, which says `where`, unless every name has the form."""
    wrong = pc.index(pc.match_substring_regex(names, form), False).as_py()
    if wrong >= 0:
        raise IndexFault(f"{where}: {names[wrong].as_py()[:80]!r} is no name of an index file there")
