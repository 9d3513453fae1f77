"""Files whose names match a glob, as Spark's option ``pathGlobFilter`` chooses them.

The name alone counts, without its directories, and the whole of it. Source: Spark's ``PathFilterFactory``, and Hadoop's
``GlobFilter`` and ``GlobPattern``, whose translation to RE2 this is.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.arrays import from_numpy
from secateur.errors import InvalidOption
from secateur.io.storage.list_files import FileSystem, ListedFiles
from secateur.io.tables.directory.layout import FoundFiles, Layout
from secateur.io.tables.partitions import Partitions

_DIRECTORIES = r"\A(?s:.*)/"


@dataclass(frozen=True)
class Globbed:
    """The layout of a table of those files of another layout whose names match a glob."""

    layout: Layout
    glob: str

    def __call__(self, filesystem: FileSystem, root: str) -> GlobbedFiles:
        """List the files that match now. Raises as the other layout."""
        return GlobbedFiles(self.layout(filesystem, root), regex_of(self.glob))


@dataclass(frozen=True, eq=False)
class GlobbedFiles:
    """Those files of another listing whose names match.

    As in Spark, the names of the other files' directories still count when the types of partition columns are inferred.
    """

    whole: FoundFiles
    regex: str

    @cached_property
    def _matching(self) -> np.ndarray:
        names = pc.replace_substring_regex(self.whole.files.paths, _DIRECTORIES, "")
        return np.flatnonzero(pc.match_substring_regex(names, self.regex).to_numpy(zero_copy_only=False))

    @cached_property
    def files(self) -> ListedFiles:
        """The files that match."""
        return self.whole.files.take(self._matching)

    def partitions(self, zone: dt.tzinfo) -> Partitions:
        """Return their partition values. Raises as the other listing."""
        return self.whole.partitions(zone).take(from_numpy(self._matching))

    def equals(self, other: object) -> bool:
        """Return whether another listing has the same files, of all and so of those that match."""
        return isinstance(other, GlobbedFiles) and self.regex == other.regex and self.whole.equals(other.whole)


def require_glob(glob: str) -> None:
    """Raise InvalidOption for a glob that Hadoop refuses."""
    try:
        pc.match_substring_regex(pa.array([""]), regex_of(glob))
    except pa.ArrowInvalid:
        raise InvalidOption(f"{glob!r} is not a glob") from None


def regex_of(glob: str) -> str:
    """Return the regular expression of RE2 that matches the same names. Raises InvalidOption."""
    parts: list[str] = []
    set_open, groups = False, 0
    characters = iter(enumerate(glob))
    for at, character in characters:
        match character:
            case "\\":
                _, escaped = next(characters, (at, ""))
                if not escaped:
                    raise InvalidOption(f"the glob {glob!r} ends with a backslash")
                parts.append("\\" + escaped)
                continue
            case "." | "$" | "(" | ")" | "|" | "+":
                parts.append("\\")
            case "*":
                parts.append(".")
            case "?":
                character = "."
            case "{":
                groups += 1
                character = "(?:"
            case "," if groups:
                character = "|"
            case "}" if groups:
                groups -= 1
                character = ")"
            case "[":
                if set_open:
                    raise InvalidOption(f"the glob {glob!r} has a [ between [ and ]")
                set_open = True
            case "^" if not set_open:
                parts.append("\\")
            case "!" if set_open and glob[at - 1] == "[":
                character = "^"
            case "]":
                set_open = False
        parts.append(character)
    if set_open or groups:
        raise InvalidOption(f"the glob {glob!r} has a [ or {{ that is not closed")
    return rf"\A(?s:{''.join(parts)})\z"
