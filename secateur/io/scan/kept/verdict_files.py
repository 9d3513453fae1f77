"""Remembered verdicts on local disk, shared by processes: docs/format.md, "Verdicts on local disk".

They lie in a cache of bytes (`io/storage/disk_cache`), which writes files whole, checks them, and throws away those
used longest ago. A table has one entry with its conditions, and every condition one with its blocks. Processes that
write at once may lose what one of them wrote; then it is found again.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from secateur.arrays import strings, text_parts
from secateur.errors import IndexFault
from secateur.index.container.index_file import decode_chunk, encode_chunk
from secateur.io.scan.kept.conditions import KeptCondition
from secateur.io.scan.kept.verdict_memory import DIRECTORY_VARIABLE, MOST_CONDITIONS, FoundBlocks, most_bytes
from secateur.io.scan.kept.versions import versions
from secateur.io.storage.disk_cache import DiskCache
from secateur.pruning.verdicts import ROW_GROUP_BITS

MOST_TABLES = 256  # whose conditions a process has at hand

_INT64 = np.dtype("<i8")


@dataclass(frozen=True)
class KeptConditions:
    """The conditions of one table, the one written last first, and the marks of their blocks."""

    forgotten: str = ""  # drawn whenever everything about the table is forgotten
    marks: tuple[tuple[KeptCondition, str], ...] = ()


class VerdictFiles:
    """The verdicts in one directory."""

    def __init__(self, directory: str, most: int) -> None:
        self.cache = DiskCache(directory, most)
        self._listed: dict[str, tuple[tuple[int, int], KeptConditions]] = {}

    def conditions(self, table: str) -> KeptConditions:
        """Return the conditions of a table. Where nothing was written since, only the start of one file is read."""
        key = _key("conditions", table)
        state = self.cache.state(key)
        if state is None:
            return KeptConditions()
        latest, listed = self._listed.get(table, (None, KeptConditions()))
        if latest != state:
            listed = _decoded(self.cache.find(key))
            if len(self._listed) >= MOST_TABLES:
                self._listed.clear()
            self._listed[table] = state, listed
        return listed

    def blocks(self, table: str, condition: KeptCondition) -> FoundBlocks | None:
        """Return the blocks of a condition as they were written last; None if they are not here, or damaged."""
        value = self.cache.find(_key("blocks", table, condition.digest))
        try:
            return None if value is None else _blocks(value)
        except (IndexFault, UnicodeDecodeError):
            return None

    def keep(self, table: str, condition: KeptCondition, blocks: FoundBlocks) -> str:
        """Write the blocks of a condition in the place of those that are there, and return their mark."""
        mark = secrets.token_hex(8)
        self.cache.keep(_key("blocks", table, condition.digest), _encoded(blocks))
        listed = self.conditions(table)
        others = [(other, of_other) for other, of_other in listed.marks if other != condition]
        self._write(table, KeptConditions(listed.forgotten, ((condition, mark), *others)[:MOST_CONDITIONS]))
        return mark

    def forget(self, table: str) -> None:
        """Forget a table, in every process that looks."""
        self._write(table, KeptConditions(secrets.token_hex(8)))

    def _write(self, table: str, listed: KeptConditions) -> None:
        conditions = [{**asdict(condition), "blocks": mark} for condition, mark in listed.marks]
        value = {"forgotten": listed.forgotten, "conditions": conditions}
        self.cache.keep(_key("conditions", table), json.dumps(value).encode())


def verdict_files() -> VerdictFiles:
    """Return the verdicts in the directory ``SECATEUR_VERDICT_DIR``. As many bytes are kept there as in memory."""
    return _files_in(os.environ[DIRECTORY_VARIABLE].strip(), most_bytes())


@lru_cache(maxsize=8)
def _files_in(directory: str, most: int) -> VerdictFiles:
    return VerdictFiles(directory, most)


def _key(what: str, *parts: str) -> str:
    return "\n".join(["verdicts", versions(), what, *parts])


# ---- bytes -----------------------------------------------------------------------------------------------------------


def _encoded(blocks: FoundBlocks) -> bytes:
    paths = strings([path for path, *_ in blocks.files]).cast(pa.large_string())
    numbers = np.array([others for _, *others in blocks.files], _INT64).reshape(-1, 3)
    return encode_chunk([*text_parts(paths), *np.ascontiguousarray(numbers.T), blocks.places])


def _blocks(value: bytes) -> FoundBlocks:
    """Decode blocks. Raises IndexFault, UnicodeDecodeError."""
    arrays = decode_chunk(value, "verdicts")
    if [array.dtype for array in arrays] != [_INT64, np.dtype("u1"), *4 * [_INT64]]:
        raise IndexFault("these are not blocks of verdicts")
    offsets, texts, *numbers, places = arrays
    n = len(offsets) - 1
    if n < 0 or offsets[0] != 0 or offsets[-1] != len(texts) or (np.diff(offsets) < 0).any():
        raise IndexFault("the paths of verdicts are malformed")
    if any(len(array) != n for array in numbers) or (np.diff(places) <= 0).any():
        raise IndexFault("the files of verdicts are malformed")
    if len(places) and not 0 <= int(places[0]) <= int(places[-1]) < n << ROW_GROUP_BITS:
        raise IndexFault("the blocks of verdicts are malformed")
    whole = texts.tobytes()
    paths = (whole[begin:end].decode() for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))
    return FoundBlocks(tuple(zip(paths, *(array.tolist() for array in numbers), strict=True)), places)


def _decoded(value: bytes | None) -> KeptConditions:
    """Decode the conditions of a table; none where that fails."""
    try:
        described = json.loads(value or b"{}")
        return KeptConditions(
            str(described.get("forgotten", "")), tuple(map(_condition, described.get("conditions", ())))
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return KeptConditions()


def _condition(described: dict[str, Any]) -> tuple[KeptCondition, str]:
    stored = tuple((tuple(map(str, path)), str(type_)) for path, type_ in described["stored"])
    rests_on = described["rests_on"]
    condition = KeptCondition(
        str(described["sql"]),
        str(described["fingerprint"]),
        tuple(map(str, described["names"])),
        stored,
        str(described["session_time_zone"]),
        bool(described["ansi"]),
        None if rests_on is None else str(rests_on),
    )
    return condition, str(described["blocks"])
