"""The place of one text in another: ``instr``, ``locate``, ``position``.

Places are counted in characters from 1; 0 is nowhere. Bounds of texts say nothing about them, so they are known of
single texts only. Sources: Spark's ``StringInstr``, ``StringLocate``; ``UTF8String.indexOf``, which goes by the first
byte of each character.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.pruning.functions.text import LONGEST, characters
from secateur.pruning.interval import Argument, Function, Interval, keys_of_numbers, strict
from secateur.values.conversion import binaries_of
from secateur.values.keys import Keys


def _instr(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    match arguments:
        case [Argument(type=type_), Argument(key=bytes(part))] if type_ == arguments[1].type == pa.string():
            return _place(f"instr[{part!r}]", part, 1, text=0)
        case _:
            return None


def _locate(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Find a part at a place or later; without a place ``locate`` is ``instr``."""
    match arguments:
        case [Argument(key=bytes(part)), Argument(type=type_), Argument(type=whole, key=int(start))] if (
            type_ == arguments[0].type == pa.string() and whole == pa.int32()
        ):
            return _place(f"locate[{part!r}, {start}]", part, start, text=1)
        case _:
            return None


def _place(name: str, part: bytes, start: int, *, text: int) -> Function | None:
    try:
        part.decode()
    except UnicodeDecodeError:  # it could begin within a character
        return None

    def bounds(args: Sequence[Interval]) -> Interval:
        texts = args[text]
        lower, upper = np.zeros(len(texts), np.int64), np.full(len(texts), LONGEST)
        single = np.flatnonzero(texts.is_point)
        if len(single):
            places, certain = _places(texts.lower.take(single), part, start)
            lower[single[certain]] = upper[single[certain]] = places[certain]
        return strict(pa.int32(), args, keys_of_numbers(lower, pa.int32()), keys_of_numbers(upper, pa.int32()))

    return Function(name, pa.int32(), bounds, (0,) * (2 if text == 0 else 3))


def _places(texts: Keys, part: bytes, start: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of a part in each text, from a place on, and whether it is certain: int64 and bool of (n,)."""
    begins, inside, certain = characters(texts)
    if not part or start < 1:
        return np.full(len(texts), int(start >= 1)), np.ones(len(texts), bool)
    asked = inside & (np.cumsum(begins, axis=1) >= start)
    at = pc.find_substring(binaries_of(texts, asked), part).to_numpy()
    before = np.argmax(asked, axis=1) + at  # bytes
    counted = (begins & (np.arange(begins.shape[1]) < before[:, None])).sum(axis=1)
    return np.where(at < 0, 0, counted + 1).astype(np.int64), certain


RULES = {"instr": _instr, "locate": _locate}
