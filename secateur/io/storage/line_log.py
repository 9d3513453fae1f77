"""A file of lines to which many processes append."""

from __future__ import annotations

import os
from collections.abc import Iterator


def append_line(path: str, line: str) -> None:
    """Append a line by one write, so that lines of other processes stay whole. Raises OSError.

    The file is opened for each line: it may be moved away at any time, and nothing is shared after a fork. A pipe
    without a reader is an error instead of a wait.
    """
    data = line.encode() + b"\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    try:
        count = os.write(descriptor, data)
    finally:
        os.close(descriptor)
    if count < len(data):
        raise OSError(f"only {count} of {len(data)} bytes could be written")


def read_lines(path: str) -> Iterator[str]:
    """Yield the lines of a file; bytes that are not UTF-8 are replaced. Raises OSError."""
    with open(path, encoding="utf-8", errors="replace") as file:
        yield from file
