"""Draw literals for the shape of a predicate from rows of a table, where its log has only hashes.

All literals of a query come from one row, so that a conjunction asks for a row that is there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.io.scan.advise.block_samples import Place
from secateur.pruning.explain.filled_shapes import LIKE, Slot
from secateur.pruning.predicate.bound import Field
from secateur.pruning.predicate.expressions import operand
from secateur.pruning.rows.row_values import column
from secateur.values.kinds import is_float, kind_of

FROM, UNTIL = (">", ">="), ("<", "<=")
MOST_ORDERED = 1 << 16  # values of a column that are sorted, to cut ranges
MOST_TEXTS = 1 << 12  # whose words are counted
TRIES = 20  # rows
_WORD = re.compile("[0-9A-Za-z_\x80-\U0010ffff]+")  # a token


@dataclass(frozen=True)
class Drawn:
    """Literals as SQL, for patterns as text, and the block of their row."""

    literals: tuple[str, ...]
    source: Place


@dataclass(frozen=True)
class ComparedColumn:
    """A slot with the field that its column is."""

    field: Field
    slot: Slot


@dataclass(frozen=True, eq=False)
class SampledRows:
    """The rows of some blocks."""

    batches: Mapping[Place, pa.RecordBatch]
    ordered: Mapping[Field, pa.Array]  # values of the columns that ranges are of, ascending
    words: Mapping[Field, Mapping[str, int]]  # of the texts that patterns are of, with how many rows have each

    def draw(self, compared: Sequence[ComparedColumn], share: float, rng: np.random.Generator) -> Drawn | None:
        """Draw literals of a row whose values they match; None if no row has literals for all.

        Ranges hold `share` of the rows together: of two ends on one column they lie about the row's value. If few rows
        lie in a range of one end, the row may be one that does not.
        """
        places = [place for place, batch in self.batches.items() if batch.num_rows]
        outside = None
        for _ in range(TRIES if places else 0):
            place = places[int(rng.integers(len(places)))]
            row = int(rng.integers(self.batches[place].num_rows))
            literals, is_match = self._literals(self.batches[place], row, compared, share, rng)
            if literals is not None and is_match:
                return Drawn(literals, place)
            outside = outside if literals is None else Drawn(literals, place)
        return outside

    def _literals(
        self,
        batch: pa.RecordBatch,
        row: int,
        compared: Sequence[ComparedColumn],
        share: float,
        rng: np.random.Generator,
    ) -> tuple[tuple[str, ...] | None, bool]:
        """Return literals for a row, None if it has none, and whether it lies in all ranges."""
        ranged = list(dict.fromkeys(item.field for item in compared if item.slot.test in (*FROM, *UNTIL)))
        ends: dict[Field, tuple[pa.Scalar, pa.Scalar]] = {}
        for field in ranged:
            value, ordered = column(batch, field)[row], self.ordered.get(field, ())
            if not value.is_valid or not len(ordered):
                return None, False
            tests = {item.slot.test for item in compared if item.field == field}
            ends[field] = _range(ordered, value, tests, share ** (1 / len(ranged)), rng)
        literals = [
            _literal(ends[item.field][item.slot.test in UNTIL])
            if item.slot.test in (*FROM, *UNTIL)
            else _of_value(item.slot, column(batch, item.field)[row], self.words.get(item.field, {}))
            for item in compared
        ]
        known = [literal for literal in literals if literal is not None]
        is_match = all(_is_between(column(batch, field)[row], *ends[field]) for field in ranged)
        return (tuple(known), is_match) if len(known) == len(literals) else (None, False)


def _range(
    ordered: pa.Array, value: pa.Scalar, tests: set[str], share: float, rng: np.random.Generator
) -> tuple[pa.Scalar, pa.Scalar]:
    """Return both ends of a range that holds a share of ordered values, and if both are asked for, this value."""
    n = len(ordered)
    at, width = pc.sum(pc.less(ordered, value)).as_py(), min(n - 1, round(share * n))
    match bool(tests & {*FROM}), bool(tests & {*UNTIL}):
        case True, True:
            first = int(np.clip(at - int(rng.integers(width + 1)), 0, n - 1 - width))
        case True, False:
            first = n - 1 - width
        case _:
            first = 0
    return ordered[first], ordered[first + width]


def _is_between(value: pa.Scalar, low: pa.Scalar, high: pa.Scalar) -> bool:
    return bool(pc.and_(pc.less_equal(low, value), pc.less_equal(value, high)).as_py())


def sampled_rows(batches: Mapping[Place, pa.RecordBatch], compared: Iterable[ComparedColumn]) -> SampledRows:
    """Prepare the rows of some blocks for slots of predicates."""
    compared = list(compared)
    ranged = {item.field for item in compared if item.slot.test in (*FROM, *UNTIL) and _is_ordered(item.field)}
    texts = {item.field for item in compared if item.slot.test == LIKE and pa.types.is_string(item.field.type)}
    parts = {field: [column(batch, field) for batch in batches.values()] for field in ranged | texts}
    return SampledRows(
        batches,
        {field: _sorted(parts[field]) for field in ranged if parts[field]},
        {field: _words(parts[field]) for field in texts if parts[field]},
    )


def _is_ordered(field: Field) -> bool:
    return kind_of(field.type) is not None and not pa.types.is_boolean(field.type)


def _sorted(parts: Sequence[pa.Array]) -> pa.Array:
    values = _some(parts, MOST_ORDERED)
    if is_float(values.type):
        values = values.filter(pc.invert(pc.is_nan(values)))
    return values.take(pc.sort_indices(values))


def _words(parts: Sequence[pa.Array]) -> Counter[str]:
    return Counter(word for text in _some(parts, MOST_TEXTS).to_pylist() for word in {*_WORD.findall(text)})


def _some(parts: Sequence[pa.Array], most: int) -> pa.Array:
    """Return at most so many values of some arrays, evenly from each."""
    return pa.concat_arrays([part.take(pa.array(_spread(len(part), most // len(parts)))) for part in parts]).drop_null()


def _spread(n: int, most: int) -> np.ndarray:
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64)) if n else np.zeros(0, np.int64)


def _of_value(slot: Slot, value: pa.Scalar, common: Mapping[str, int]) -> str | None:
    if not value.is_valid:
        return None
    if slot.test == LIKE:
        return pattern_in(value.as_py(), slot.mask, common) if pa.types.is_string(value.type) else None
    return _literal(value)


def _literal(value: pa.Scalar) -> str | None:
    """Return a value as a literal of SQL; None for what has none."""
    try:
        return str(operand(value.as_py()))
    except (TypeError, ValueError, OverflowError):  # a type without literals, or a time that Python cannot hold
        return None


def pattern_in(text: str, mask: str, common: Mapping[str, int]) -> str | None:
    """Return a pattern of LIKE that matches a text: the `?` of its mask become the least common words of the text.

    None if the text has too few words, or the mask wildcards for single characters.
    """
    wildcards = mask.split("?")
    count = len(wildcards) - 1
    words = list(_WORD.finditer(text))
    if not count:
        return mask
    if "_" in mask or len(words) < count:
        return None
    starts, ends = not wildcards[0], not wildcards[-1]
    if count == 1 and starts and ends:
        return _escaped(text)
    edges = {*([0] if starts else []), *([len(words) - 1] if ends else [])}
    inner = sorted(set(range(len(words))) - edges, key=lambda i: (common.get(words[i][0], 0), i))
    chosen = sorted([*edges, *inner[: max(0, count - len(edges))]])
    if len(chosen) != count:  # one word is both the first and the last
        return None
    begins, stops = [words[i].start() for i in chosen], [words[i].end() for i in chosen]
    begins[0], stops[-1] = 0 if starts else begins[0], len(text) if ends else stops[-1]
    pieces = [_escaped(text[begin:stop]) for begin, stop in zip(begins, stops, strict=True)]
    return "".join(part for pair in zip(wildcards, [*pieces, ""], strict=True) for part in pair)


def _escaped(text: str) -> str:
    return re.sub(r"([%_\\])", r"\\\1", text)
