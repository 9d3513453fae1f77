"""The greatest of the numbered names in a local directory, which is listed again only when it has changed.

Every query asks for the last snapshot of an index, and a thousand refreshes leave a thousand snapshots. A change of a
directory changes its time. So where that time was over when the directory was listed, and is the same now, so are the
names. Some filesystems in user space keep no such times: there the name with the next number tells, which a writer
takes.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection

SETTLED = 3 * 10**9  # nanoseconds; filesystems count time in steps of up to two seconds
MOST_KEPT = 1 << 10  # directories

_Stamp = tuple[int, int, int, int]
_kept: dict[tuple[str, re.Pattern[str]], tuple[_Stamp, str]] = {}
_NUMBER = re.compile(r"\d+")


def greatest_name(directory: str, form: re.Pattern[str], others: Collection[str] = ()) -> str | None:
    """Return the greatest name of a directory that matches, except some others; None if there is none.

    Raises OSError.
    """
    now = time.time_ns()
    status = os.stat(directory)
    stamp = status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev
    before = _kept.get((directory, form))
    if before is not None and before[0] == stamp and before[1] not in others and _is_last(directory, before[1]):
        return before[1]
    names = [name for name in os.listdir(directory) if name not in others]
    name = max(names, default=None)
    if name is not None and not form.fullmatch(name):
        name = max(filter(form.fullmatch, names), default=None)
    if name is not None and not others and max(stamp[:2]) <= now - SETTLED:
        if len(_kept) >= MOST_KEPT:
            _kept.clear()
        _kept[directory, form] = stamp, name
    return name


def _is_last(directory: str, name: str) -> bool:
    """Whether no file has the next number."""
    following = _NUMBER.sub(lambda number: f"{int(number[0]) + 1:0{len(number[0])}d}", name, count=1)
    return not os.path.lexists(os.path.join(directory, following))
