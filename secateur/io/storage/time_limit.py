"""A limit on the time in which a store answers for the first time: some libraries try for minutes without a word."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow.fs as pafs

from secateur.errors import StoreUnreachable
from secateur.io.storage.list_files import FileSystem

VARIABLE, SECONDS = "SECATEUR_OPEN_SECONDS", 60.0

T = TypeVar("T")


def in_time(ask: Callable[[], T], filesystem: FileSystem, shown: str) -> T:
    """Return what a store answers. Raises StoreUnreachable if it does not within a minute, and what `ask` raises.

    The thread that waits on is left behind; it does not keep the process from ending. A local disk has no limit.
    """
    if isinstance(filesystem, pafs.LocalFileSystem):
        return ask()
    answer: dict[str, Any] = {}

    def work() -> None:
        try:
            answer["value"] = ask()
        except BaseException as error:
            answer["error"] = error

    seconds = float(os.environ.get(VARIABLE, SECONDS))
    thread = threading.Thread(target=work, name="secateur-open", daemon=True)
    thread.start()
    thread.join(seconds)
    if not answer:
        raise StoreUnreachable(
            f"{shown} did not answer within {seconds:g} s: the store is out of reach of this machine, or there are no "
            f"credentials for it. {VARIABLE} sets the limit"
        )
    if "error" in answer:
        raise answer["error"]
    return answer["value"]
