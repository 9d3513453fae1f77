"""Functions of text: prefixes and other parts, lengths, and changes of case.

Sources: Spark's ``Substring``, ``Length``, ``Lower``, ``Upper`` on ``UTF8String``; Unicode's case mappings.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pyarrow as pa

from secateur.pruning.bounds import rangeset
from secateur.pruning.bounds.outcomes import NULL
from secateur.pruning.bounds.rangeset import RangeSet
from secateur.pruning.functions import text_kernels as kernels
from secateur.pruning.interval import Argument, Function, Interval, OnRows, Rule, keys_of_numbers, strict
from secateur.pruning.predicate.patterns.letter_case import lowered_letters
from secateur.pruning.predicate.patterns.plain_regex import plain_text
from secateur.values.conversion import byte_matrix
from secateur.values.key import Key, prefix_successor
from secateur.values.keys import Keys, constant_keys, greatest_keys
from secateur.values.kinds import Kind

TRIMS = ("trim", "ltrim", "rtrim")  # trim spaces at both ends, at the start, at the end
LONGEST = 2**31 - 1  # characters of a string in Spark
_FOLDED = 3  # characters: each has two or three forms, and all combinations are searched
_SIZES = np.ones(256, np.uint8)  # bytes of a character by its first byte (``UTF8String.numBytesForFirstByte``)
_SIZES[0xC2:0xE0], _SIZES[0xE0:0xF0], _SIZES[0xF0:0xF5] = 2, 3, 4


# ---- prefixes --------------------------------------------------------------------------------------------------------


def _substring(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Return the first n characters: prefixes sort as the texts do."""
    match arguments:
        case [Argument(type=type_), Argument(key=0 | 1), Argument(key=int(length))] if type_ == pa.string():
            pass
        case [Argument(type=type_), Argument(key=int(start)), Argument(key=int(length))] if type_ == pa.string():
            return _part(f"substring[{start}, {length}]", arguments, kernels.slicing(start, length))
        case [Argument(type=type_), Argument(key=int(start))] if type_ == pa.string():
            return _part(f"substring[{start}]", arguments, kernels.slicing(start, LONGEST))
        case _:
            return None
    count = max(0, length)

    def bounds(args: Sequence[Interval]) -> Interval:
        """A prefix is at most the string, and at least the string's first `count` bytes, which it contains."""
        (text, *_) = args
        return strict(pa.string(), args, _first_bytes(text.lower, count), text.upper)

    def inverse(key: Key) -> Key | None:
        assert isinstance(key, bytes), "keys of strings are bytes"
        kept = first_characters(key, count)
        return key if kept == key else prefix_successor(kept)

    on_rows = kernels.slicing(1, count)
    return Function(
        f"substring[{count}]", pa.string(), bounds, (1, 0, 0), exact=False, inverse=inverse, on_rows=on_rows
    )


def first_characters(text: bytes, count: int) -> bytes:
    """Return the first characters of a text as Spark counts them: by each first byte, whatever follows.

    So range bounds that are not UTF-8 are cut at the same place as the texts between them.
    """
    end = 0
    for _ in range(count):
        if end >= len(text):
            break
        end += int(_SIZES[text[end]])
    return text[:end]


def _first_bytes(keys: Keys, count: int) -> Keys:
    *body, length = keys.words
    cut = []
    for i, word in enumerate(body):
        kept = min(max(count - 8 * i, 0), 8)
        mask = np.uint64(2**64 - 2 ** (64 - 8 * kept)) if kept else np.uint64(0)
        cut.append(word & mask)
    return Keys(Kind.BYTES, (*cut, np.minimum(length, np.uint64(count))))


# ---- other parts -----------------------------------------------------------------------------------------------------


def _part(name: str, arguments: Sequence[Argument], on_rows: OnRows) -> Function:
    """Make a function whose value may be any text, whatever the bounds of its arguments."""
    return Function(name, pa.string(), anything, (0,) * len(arguments), exact=False, on_rows=on_rows)


def _split_part(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Return the part with a number between separators; an empty text beyond the last."""
    match arguments:
        case [Argument(type=type_), Argument(key=bytes(separator)), Argument(key=int(number))] if number and separator:
            if type_ != pa.string():
                return None
            on_rows = kernels.item(separator.decode(), number - 1 if number > 0 else number, None, "")
            return _part(f"split_part[{separator!r}, {number}]", arguments, on_rows)
        case _:
            return None


def _split_item(beyond: str) -> Rule:
    """Make an element of ``split(text, separator)``, with a limit if given, if the separator is no pattern but a text.

    `beyond` is the result beyond the last element: "error", or "null".
    """

    def rule(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
        match arguments:
            case [Argument(type=type_), Argument(key=bytes(pattern)), Argument(key=int(at))] if at >= 0:
                limit = 0
            case [Argument(type=type_), Argument(key=bytes(pattern)), Argument(key=int(limit)), Argument(key=int(at))]:
                pass
            case _:
                return None
        separator, most = plain_text(pattern.decode()), limit if limit > 0 else None
        if type_ != pa.string() or separator is None or at < 0:
            return None
        part = _part(
            f"split[{pattern!r}, {most}, {at}, {beyond}]", arguments, kernels.item(separator, at, most, beyond)
        )
        return replace(part, bounds=_or_error if beyond == "error" else _or_null)

    return rule


def _or_null(args: Sequence[Interval]) -> Interval:
    interval = anything(args)
    return replace(interval, null=np.where(interval.value != 0, np.uint8(NULL), interval.null))


def _or_error(args: Sequence[Interval]) -> Interval:
    interval = anything(args)
    return replace(interval, fails=interval.fails | (interval.value != 0))


def _split_item_or_null(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    """Return the element without ANSI: NULL where it is an error otherwise."""
    or_null, strictly = (_split_item(beyond)(arguments, zone) for beyond in ("null", "error"))
    return None if or_null is None else replace(or_null, strict=strictly)


def _replace(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    match arguments:
        case [Argument(type=type_), Argument(key=bytes(old)), Argument(key=bytes(new))] if type_ == pa.string():
            on_rows = kernels.replacing(old.decode(), new.decode())
            return _part(f"replace[{old!r}, {new!r}]", arguments, on_rows)
        case _:
            return None


# ---- lengths ---------------------------------------------------------------------------------------------------------


def _length(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
    if len(arguments) != 1 or arguments[0].type not in (pa.string(), pa.binary()):
        return None
    count = _characters if arguments[0].type == pa.string() else _bytes

    def bounds(args: Sequence[Interval]) -> Interval:
        (text,) = args
        counted, certain = count(text.lower)
        known = text.is_point & certain
        lower, upper = np.where(known, counted, 0), np.where(known, counted, LONGEST)
        return strict(pa.int32(), args, keys_of_numbers(lower, pa.int32()), keys_of_numbers(upper, pa.int32()))

    return Function("length", pa.int32(), bounds, (0,), on_rows=kernels.LENGTH)


def _bytes(keys: Keys) -> tuple[np.ndarray, np.ndarray]:
    return keys.words[-1].astype(np.int64), np.ones(len(keys), bool)


def _characters(keys: Keys) -> tuple[np.ndarray, np.ndarray]:
    """Count the characters of every text, and say whether the counts are certain.

    Characters are bytes that continue no character.
    """
    begins, _, certain = characters(keys)
    return begins.sum(axis=1).astype(np.int64), certain


def characters(keys: Keys) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which bytes of texts begin a character, which bytes are of the text, and which texts are certain.

    The first two have the shape (n, bytes of the widest key), the third (n,). A text is certain if all continuation
    bytes are where preceding bytes require them. Other bytes are not UTF-8, and Spark counts them differently.
    """
    matrix, inside = byte_matrix(keys)
    continues, sizes = (matrix & 0xC0) == 0x80, _SIZES[matrix]
    asked = np.zeros_like(inside)
    for distance in (1, 2, 3):
        asked[:, distance:] |= sizes[:, :-distance] > distance
    return ~continues & inside, inside, ((continues == asked) | ~inside).all(axis=1)


# ---- case ------------------------------------------------------------------------------------------------------------


def _case(name: str, on_rows: OnRows) -> Rule:
    """Make ``lower``, ``upper``, ``initcap`` or trimming.

    They preserve no order: only preimages of literals bound the argument.
    """

    def rule(arguments: Sequence[Argument], zone: dt.tzinfo) -> Function | None:
        if len(arguments) != 1 or arguments[0].type != pa.string():
            return None
        return Function(name, pa.string(), anything, (0,), exact=False, on_rows=on_rows)

    return rule


def anything(args: Sequence[Interval]) -> Interval:
    """Return any text, unless an argument is NULL."""
    n = len(args[0])
    return strict(pa.string(), args, constant_keys(b"", Kind.BYTES, n), greatest_keys(Kind.BYTES, n))


def unfolded(name: str, ranges: RangeSet) -> RangeSet | None:
    """Return a superset of the texts whose ``lower``, ``upper`` or ``initcap`` is in `ranges`, or None for all text."""
    starts, stops = ranges.thresholds[::2].tolist(), ranges.thresholds[1::2].tolist()
    if len(starts) != len(stops):
        return None
    of_texts = rangeset.empty(Kind.BYTES)
    for start, stop in zip(starts, stops, strict=True):
        prefix = _shared_prefix(start, stop)
        if not prefix:
            return None
        for text in _unfold(name, prefix) if name != "initcap" else _beginnings(prefix[0]):
            of_texts = rangeset.union(of_texts, rangeset.starting_with(text.encode()))
    return of_texts


def _shared_prefix(start: bytes, stop: bytes) -> str:
    """Return the common ASCII prefix of all texts in [start, stop): beyond ASCII, Java may differ."""
    text = start[:_FOLDED].decode("ascii", "ignore") if start[:_FOLDED].isascii() else ""
    for length in range(len(text), 0, -1):
        after = prefix_successor(start[:length])
        if after is not None and stop <= after:
            return text[:length]
    return ""


def _unfold(name: str, prefix: str) -> Iterator[str]:
    """Yield prefixes of texts whose case mapping begins with `prefix`, or is a prefix of it."""
    for character, mapped in preimages(name).get(prefix[0], [(prefix[0], prefix[0])]):
        if mapped.startswith(prefix):
            yield character
        elif prefix.startswith(mapped):
            yield from (character + rest for rest in _unfold(name, prefix[len(mapped) :]))


def _beginnings(first: str) -> set[str]:
    """Return the first characters of texts whose ``initcap`` begins with one: in upper, lower or title case."""
    return {
        character
        for name in ("upper", "lower", "title")
        for character, _ in preimages(name).get(first, [(first, first)])
    }


@lru_cache
def preimages(name: str) -> dict[str, list[tuple[str, str]]]:
    """Group characters by the first ASCII character of their mapping; Unicode's case pairs end below U+20000."""
    by_first: dict[str, list[tuple[str, str]]] = {}
    for code in range(0x20000):
        if 0xD800 <= code < 0xE000:
            continue
        mapped = getattr(chr(code), name)()
        if mapped[0].isascii():
            by_first.setdefault(mapped[0], []).append((chr(code), mapped))
    match name:  # what other locales add
        case "upper":  # Lithuanian drops a dot above
            for letter in "ij":
                by_first[letter.upper()].append((f"{letter}\u0307", letter.upper()))
        case "lower":  # in Turkish a capital I with a dot becomes a plain i
            for letter, mapped in lowered_letters():
                if mapped[0].isascii() and (letter, mapped) not in by_first[mapped[0]]:
                    by_first[mapped[0]].append((letter, mapped))
    return by_first


RULES: dict[str, Rule] = {
    "substring": _substring,
    "length": _length,
    "split_part": _split_part,
    "split_item": _split_item("error"),
    "get_split_item": _split_item("null"),
    "replace": _replace,
    "lower": _case("lower", kernels.LOWER),
    "upper": _case("upper", kernels.UPPER),
    "initcap": _case("initcap", kernels.INITCAP),
    **{name: _case(name, on_rows) for name, on_rows in kernels.TRIMS.items()},
}

WITHOUT_ANSI: dict[str, Rule] = {"split_item": _split_item_or_null}
