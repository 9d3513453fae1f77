"""Filters of every kind over random blocks, and their expected answers: by sets, and bit by bit."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from bitarray import bitarray

from secateur.index.build.column_sketch import FilterSketch
from secateur.index.build.row_sketch import ordered_sketch
from secateur.index.filters.bloom_fragment import BloomFragment, BloomFragmentWriter
from secateur.index.filters.ngrams import MOST_TOKEN
from secateur.index.filters.ordered import BlockEntries
from secateur.index.filters.parquet_bloom import Encoding, NativeForm
from secateur.index.filters.size_class import NONE, native_class, shape_of
from secateur.index.model import BLOOM, NGRAM, ORDERED, POSTINGS, TOKEN, Filter, Store
from secateur.pruning.bounds.rangeset import RangeSet, of_thresholds, points
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.patterns.substrings import Substring, tokens_within
from secateur.pruning.questions import Question, Ranges, Texts, Values
from secateur.values.conversion import keys_of
from secateur.values.key import Key, canonical_bytes
from secateur.values.kinds import Kind, kind_of, ordered_kind, same_keys
from tests.support.drawn.strategies import BY_NAME, ColumnKind, array_of
from tests.support.stores.filter_files import (
    OwnShapes,
    bits_of,
    native_positions_of,
    number_hash,
    positions_of,
    text_hash,
)

KINDS: dict[str, ColumnKind] = {name: BY_NAME[name] for name in ("i", "s", "huge", "day")}
TYPES = {name: kind.type for name, kind in KINDS.items()}
FILTERS = [
    Filter(BLOOM, ("i",), TYPES["i"]),
    Filter(BLOOM, ("s",), TYPES["s"]),
    Filter(POSTINGS, ("huge",), TYPES["huge"]),
    Filter(POSTINGS, ("day",), TYPES["day"]),
    Filter(NGRAM, ("s",), TYPES["s"], gram=2),
    Filter(TOKEN, ("s",), TYPES["s"], folded=True),
    *(Filter(ORDERED, (name,), TYPES[name]) for name in ("i", "s", "huge")),
]
# As a later snapshot has them: renumbered, without one, of a wider column, and with one that no segment has.
LATER_FILTERS = [Filter(NGRAM, ("s",), TYPES["s"], gram=4), *FILTERS[:3:-1], *FILTERS[2:0:-1]]
LATER_FILTERS.append(Filter(BLOOM, ("i",), pa.int64()))
NATIVE = [
    Encoding(NativeForm.INT32),
    Encoding(NativeForm.INT64),
]  # of values of i, in files that have filters of their own
_TOKEN = re.compile(rb"[0-9A-Za-z_\x80-\xff]+")


def number_of(wanted: Filter) -> int | None:
    """The number among FILTERS, which is that in every segment; None for the one that no segment has."""
    same = (
        f for f, one in enumerate(FILTERS) if (one.kind, one.path, one.gram) == (wanted.kind, wanted.path, wanted.gram)
    )
    return next(same, None)


def canonical(values: Sequence[Any], type_: pa.DataType) -> list[bytes]:
    """The bytes that are hashed of values that are not NULL."""
    kind = kind_of(type_)
    assert kind is not None
    array = array_of(values, type_).drop_null()
    if kind is Kind.BYTES:
        return [bytes(value) for value in array.cast(pa.binary()).to_pylist()]
    keys = keys_of(array)
    return [canonical_bytes(keys.at(i), kind) for i in range(len(array))]


def contents_of(filter_: Filter, values: Sequence[Any]) -> frozenset[bytes]:
    """What a filter hashes of the values of a block."""
    forms = canonical(values, filter_.type)
    match filter_.kind:
        case "ngram":
            return frozenset(text[i : i + filter_.gram] for text in forms for i in range(len(text) - filter_.gram + 1))
        case "token":
            return frozenset(token.lower()[:MOST_TOKEN] for text in forms for token in _TOKEN.findall(text))
        case _:
            return frozenset(forms)


# ---- what one block has ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Held:
    """What the filter of one block holds: its code, its bits, and by sets; `values` is None where it is not known.

    Ordered postings hold `keys`.
    """

    size_class: int
    values: frozenset[bytes] | None
    bits: bitarray | None = None
    keys: frozenset[Key] = frozenset()

    def by_sets(self, asked: Asked) -> bool:
        """Whether the block may hold what is asked for, by a filter that is never wrong."""
        if asked.thresholds is not None and self.values is not None:
            return any(bisect_right(asked.thresholds, key) % 2 for key in self.keys)  # type: ignore[type-var]
        return self.values is None or any(self.values.issuperset(values) for values in asked.alternatives)

    def by_bits(self, asked: Asked) -> bool:
        """Whether the block may hold what is asked for, by its bits, or in postings, which are not wrong."""
        if self.values is None or self.bits is None:
            return self.by_sets(asked)
        shape = shape_of(self.size_class)
        if shape.encoding is None:
            positions = [
                [p for value in values for p in positions_of(asked.hashed(value), shape.probes, shape.bits)]
                for values in asked.alternatives
            ]
        else:
            forms = asked.native_forms(shape.encoding)
            if forms is None:
                return True
            positions = [native_positions_of(form, shape.bits) for form in forms]
        return any(all(self.bits[p] for p in probes) for probes in positions)

    def told_apart(self, asked: Asked) -> list[Sequence[bytes]] | None:
        """Of several alternatives those that the block may hold by its bits; None where they are not told apart."""
        if self.bits is None or len(asked.alternatives) == 1:
            return None
        encoding = shape_of(self.size_class).encoding
        if encoding is not None:
            forms = asked.native_forms(encoding)
            if forms is None or len(forms) == 1:
                return None
        single = [(values, replace(asked, alternatives=[values])) for values in asked.alternatives]
        return [values for values, alone in single if self.by_bits(alone)]


@dataclass(frozen=True)
class Written:
    """A filter over the blocks of a segment: the codes and fragments that a build makes, and what every block has."""

    size_classes: np.ndarray
    fragments: list[BloomFragment]
    held: list[Held]
    hashes: list[np.ndarray | None]
    entries: list[BlockEntries | None]


def written(
    filter_: Filter, blocks: Sequence[Sequence[Any]], store: Store, prefix: str, fpr: float, random: np.random.Generator
) -> Written:
    """The filter of one kind over some blocks; some are not known, some come with filters of their files."""
    writer, shapes = BloomFragmentWriter(store, prefix, fpr), OwnShapes(fpr)
    held, hashes, entries = [], [], _entries(filter_, blocks, random)
    if filter_.kind == ORDERED:
        held = [
            Held(NONE, None if block is None else frozenset(), keys=keys_in(values, filter_.type))
            for values, block in zip(blocks, entries, strict=True)
        ]
        return Written(np.zeros(0, np.int16), [], held, [], entries)
    for values in blocks:
        contents, value_hashes = contents_of(filter_, values), _hashes(filter_, values)
        is_known, is_native = random.random() < 0.85, filter_ is FILTERS[0] and random.random() < 0.3
        hashes.append(value_hashes if is_known else None)
        if not is_known:
            writer.add(None)
            held.append(Held(NONE, None))
        elif filter_.kind == POSTINGS:
            held.append(Held(NONE, contents))
        elif is_native:
            encoding, log2_bits = NATIVE[int(random.integers(2))], int(random.integers(8, 11))
            forms = [_native_form(value, encoding.code) for value in contents]
            bits = bits_of((native_positions_of(form, 1 << log2_bits) for form in forms), 1 << log2_bits)
            writer.add_native(encoding.code, np.array(bits.tolist(), np.uint8))
            held.append(Held(native_class(encoding.code, log2_bits), contents, bits))
        else:
            writer.add(value_hashes)
            size_class, probes, size = shapes.of(len(contents))
            bits = bits_of((positions_of(hash_of(filter_, value), probes, size) for value in contents), size)
            held.append(Held(size_class, contents, bits))
    if filter_.kind == POSTINGS:
        return Written(np.zeros(0, np.int16), [], held, hashes, [])
    return Written(writer.finish(), writer.fragments, held, hashes, [])


def keys_in(values: Sequence[Any], type_: pa.DataType) -> frozenset[Key]:
    """The keys of values that are not NULL."""
    keys = keys_of(array_of(values, type_).drop_null())
    return frozenset(keys.at(i) for i in range(len(keys)))


def _entries(
    filter_: Filter, blocks: Sequence[Sequence[Any]], random: np.random.Generator
) -> list[BlockEntries | None]:
    """What a build keeps in order; some blocks are not known."""
    entries: list[BlockEntries | None] = []
    if filter_.kind == ORDERED:
        sketch = ordered_sketch(filter_, entries.append)
        for values in blocks:
            sketch.add(array_of(values, filter_.type))
            sketch.end() if random.random() < 0.85 else sketch.give_up()
    return entries


def hash_of(filter_: Filter, value: bytes) -> int:
    """The hash of what a filter hashes."""
    is_text = filter_.kind == TOKEN or (filter_.kind != NGRAM and kind_of(filter_.type) is Kind.BYTES)
    return text_hash(value) if is_text else number_hash(value)


def _hashes(filter_: Filter, values: Sequence[Any]) -> np.ndarray:
    """As a build measures them."""
    per_value: list[np.ndarray | None] = []
    sketch = FilterSketch(filter_, per_value.append)
    sketch.add(array_of(values, filter_.type))
    sketch.end()
    (hashes,) = per_value
    assert hashes is not None
    return hashes


def _native_form(canonical_value: bytes, code: int) -> bytes:
    return canonical_value[: 4 if code == NATIVE[0].code else 8]


# ---- questions -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """A question as one filter is asked it: one of the alternatives, with all that is hashed of it."""

    filter: Filter
    alternatives: Sequence[Sequence[bytes]]
    type: pa.DataType
    thresholds: Sequence[Key] | None = None  # of the ranges that ordered postings are asked for

    def hashed(self, value: bytes) -> int:
        """The hash of a part of an alternative."""
        return hash_of(self.filter, value)

    def native_forms(self, encoding: int) -> list[bytes] | None:
        """What is hashed in filters of files, of integers that fit; None where it cannot be told."""
        if encoding == NATIVE[1].code and self.type != pa.int64():
            return None
        values = [int.from_bytes(form, "little", signed=True) for (form,) in self.alternatives]
        fitting = [v for v in values if encoding == NATIVE[1].code or -(2**31) <= v < 2**31]
        return [_native_form(v.to_bytes(8, "little", signed=True), encoding) for v in fitting]


def asked_of(filter_: Filter, question: Question) -> Asked | None:
    """A question for a filter; None where that tells nothing."""
    match question:
        case Values(column, type_, points):
            kind = kind_of(type_)
            if (
                filter_.kind in (NGRAM, TOKEN, ORDERED)
                or filter_.path != column.path
                or not same_keys(filter_.type, type_)
            ):
                return None
            assert kind is not None
            return Asked(filter_, [[canonical_bytes(key, kind)] for key in points.tolist()], type_)
        case Texts(column, alternatives, folded, tokens):
            if filter_.kind not in (NGRAM, TOKEN) or filter_.path != column.path or (folded and not filter_.folded):
                return None
            parts = [_parts(filter_, substrings, tokens) for substrings in alternatives]
            return Asked(filter_, parts, filter_.type) if all(parts) else None
        case Ranges(column, ranges):
            if filter_.kind != ORDERED or filter_.path != column.path or not same_keys(filter_.type, column.type):
                return None
            return Asked(filter_, [], column.type, ranges.thresholds.tolist())


def _parts(filter_: Filter, substrings: Sequence[Substring], tokens: Sequence[bytes]) -> list[bytes]:
    if filter_.kind == NGRAM:
        texts = [*(substring.text for substring in substrings), *tokens]
        return [text[i : i + filter_.gram] for text in texts for i in range(len(text) - filter_.gram + 1)]
    whole = [*tokens, *(token for substring in substrings for token in tokens_within(substring))]
    return [token.lower()[:MOST_TOKEN] for token in whole]


def random_question(random: np.random.Generator, fields: Sequence[Field]) -> Question:
    """Of values, some of which some block has, of ranges of these, or of parts of texts."""
    field = fields[int(random.integers(len(fields)))]
    values = _random_values(random, field)
    if not isinstance(values, Values) or random.random() < 0.6:
        return values
    return Ranges(field, _random_ranges(random, field, values.points.tolist()))


def _random_ranges(random: np.random.Generator, field: Field, keys: Sequence[Key]) -> RangeSet:
    """The values, or all from one to the next, or from the last on."""
    kind = ordered_kind(field.type)
    if random.random() < 0.5:
        return points(kind, keys)
    return of_thresholds(kind, keys)


def _random_values(random: np.random.Generator, field: Field) -> Question:
    numbers = random.integers(0, 75, random.choice([1, 1, 2, 5, 60])).tolist()
    texts = [b"x" * int(random.choice([0, 0, 1, 7, 20])) + b"%02d" % number for number in numbers]
    if field.path == ("s",) and random.random() < 0.6:
        return _texts(random, field, texts[:3])
    if kind_of(field.type) is Kind.BYTES:
        return Values(field, field.type, np.array(sorted(set(texts)), object))
    scale = {"huge": 10**30, "day": 1}.get(field.path[0], 1)
    first = 19_000 if field.path == ("day",) else 0
    keys = sorted({(first + number) * scale for number in numbers})
    return Values(field, field.type, np.array(keys, object if kind_of(field.type) is Kind.WIDE else np.int64))


def _texts(random: np.random.Generator, field: Field, texts: Sequence[bytes]) -> Texts:
    alternatives = []
    for text in texts:
        cut = int(random.integers(0, len(text)))
        starts, ends = bool(random.random() < 0.5), bool(random.random() < 0.5)
        substrings = [Substring(text[cut:], starts and not cut, ends), Substring(text[: max(cut, 1)], starts, False)]
        alternatives.append(tuple(substrings[: int(random.integers(1, 3))]))
    tokens = tuple(texts[:1]) if random.random() < 0.3 else ()
    return Texts(field, tuple(alternatives), bool(random.random() < 0.3), tokens)
