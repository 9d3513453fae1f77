"""N-grams and tokens of texts: those of every text alone, as a loop finds them, in whatever slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from secateur.errors import IndexFault
from secateur.index.filters import folding, hashing, ngrams
from secateur.index.filters.folding import fold, foldable
from secateur.index.filters.hashing import DistinctHashes
from secateur.index.filters.ngrams import MOST_TOKEN, add_grams, add_tokens, grams_within, token_key
from secateur.pruning.predicate.patterns.substrings import CASE_TRICKY, Substring, tokens_within
from secateur.pruning.predicate.patterns.substrings import fold as fold_bytes
from tests.support.checks.naive_filters import naive_tokens
from tests.support.drawn.strategies import TEXTS
from tests.support.stores.filter_files import number_hash, text_hash

Add = Callable[[DistinctHashes, pa.Array, bool], None]


@pytest.fixture(params=[1, 3, 16, None], ids="slices of {}".format)
def slices(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts read in slices, and grams in chunks, of so many bytes, or of as many as always; each text, or once each."""
    if request.param is not None:
        monkeypatch.setattr(ngrams, "_SLICE", request.param)
        monkeypatch.setattr(ngrams, "_CHUNK", max(1, request.param // 2))
        monkeypatch.setattr(folding, "_SLICE", request.param)
        monkeypatch.setattr(hashing, "_SAMPLE", 2)


def of_grams(values: set[bytes]) -> list[int]:
    """The hashes of the reference."""
    return sorted(map(number_hash, values))


def of_tokens(values: set[bytes]) -> list[int]:
    return sorted(map(text_hash, values))


def collected(add: Callable[[DistinctHashes], None]) -> list[int] | None:
    """The hashes that are added to an empty set; each once."""
    hashes = DistinctHashes()
    add(hashes)
    distinct = hashes.distinct()
    return None if distinct is None else sorted(distinct.tolist())


def naive_grams(text: bytes, n: int) -> set[bytes]:
    return {text[i : i + n] for i in range(len(text) - n + 1)}


words = st.sampled_from(
    ["", "a", "Ab", "ABC", "_", "a_b", "é", "É", "😀", "9", "日本", "\0", "x" * 63, "X" * 64, "y" * 65]
)
separators = st.sampled_from(["", " ", "-", ".", "\0", "@", "[", "`", "{", "/", ":"])
texts = (
    st.lists(st.tuples(words, separators), max_size=6).map(lambda parts: "".join(map("".join, parts)))
    | st.text(st.characters(codec="utf-8"), max_size=20)
    | st.sampled_from(TEXTS)
)
columns = st.lists(st.none() | texts, max_size=12)
LAYOUTS = (
    lambda values: pa.array(values, pa.string()),
    lambda values: pa.array(values, pa.large_string()),
    lambda values: pa.array([None if value is None else value.encode() for value in values], pa.binary()),
    lambda values: pa.array(values, pa.string()).dictionary_encode(),
    lambda values: pa.array(["before", None, *values, "behind"], pa.string()).slice(2, len(values)),
    lambda values: _null_with_bytes(values),
)
layouts = st.sampled_from(LAYOUTS)


def _null_with_bytes(values: Sequence[str | None]) -> pa.Array:
    """Null slots that have bytes, which are of no text."""
    array = pa.array(["nothing" if value is None else value for value in values], pa.string())
    if not values:
        return array
    valid = np.packbits([value is not None for value in values], bitorder="little")
    return pa.Array.from_buffers(array.type, len(array), [pa.py_buffer(valid), *array.buffers()[1:]])


def encoded(values: Sequence[str | None], fold_them: bool) -> list[bytes] | None:
    """The bytes of the texts, or None where one cannot be folded."""
    there = [value.encode() for value in values if value is not None]
    if not fold_them:
        return there
    if any(character in CASE_TRICKY for value in values if value is not None for character in value):
        return None
    return [fold_bytes(value) for value in there]


@pytest.mark.usefixtures("slices")
@given(columns, st.integers(2, 8), st.booleans(), layouts)
@example(["ab", "abc", "", "", "a", None, "abcd"], 3, False, LAYOUTS[0])
@example(["a", None, "b"], 2, False, LAYOUTS[-1])
def test_grams_are_those_of_every_text(
    values: list[str | None], n: int, fold_them: bool, layout: Callable[[list[str | None]], pa.Array]
) -> None:
    """As the reference hashes n bytes, each once, and none across two texts; all or nothing when folded."""
    expected = encoded(values, fold_them)
    gram_hashes = collected(lambda hashes: add_grams(hashes, layout(values), n, folded=fold_them))
    assert gram_hashes == (
        None if expected is None else of_grams({gram for text in expected for gram in naive_grams(text, n)})
    )


@pytest.mark.usefixtures("slices")
@given(columns, st.booleans(), layouts)
@example(["a", "a b", "", "b", "c c", " ", "x" * 200, "y" * 64 + "z"], False, LAYOUTS[0])
@example(["a", None, "b"], False, LAYOUTS[-1])
def test_tokens_are_those_of_every_text(
    values: list[str | None], fold_them: bool, layout: Callable[[list[str | None]], pa.Array]
) -> None:
    """As above; a long token by its first bytes."""
    expected = encoded(values, fold_them)
    token_hashes = collected(lambda hashes: add_tokens(hashes, layout(values), folded=fold_them))
    tokens = None if expected is None else {token_key(token) for text in expected for token in naive_tokens(text)}
    assert token_hashes == (None if tokens is None else of_tokens(tokens))


def tokens_of(text: bytes) -> tuple[bytes, ...]:
    return tokens_within(Substring(text, starts=True, ends=True))


@given(st.binary(max_size=80), st.integers(2, 8))
def test_what_is_asked_of_a_needle(text: bytes, n: int) -> None:
    """Grams and tokens of a needle, and that a filter of any bytes, UTF-8 or not, holds them."""
    needles = grams_within(text, n)
    assert len(needles) == len(set(needles))
    assert set(needles) == naive_grams(text, n)
    assert list(tokens_of(text)) == naive_tokens(text)
    column = pa.array([text])
    assert collected(lambda hashes: add_grams(hashes, column, n, folded=False)) == of_grams(set(needles))
    keys = {token_key(token) for token in tokens_of(text)}
    assert all(len(key) <= MOST_TOKEN for key in keys)
    assert collected(lambda hashes: add_tokens(hashes, column, folded=False)) == of_tokens(keys)


@given(texts, st.integers(0, 30), st.integers(0, 30), st.integers(2, 8))
def test_a_folded_filter_answers_for_lower_case(text: str, start: int, length: int, n: int) -> None:
    """Whatever the text contains, as it is or in lower case: its ASCII grams, folded, and its ASCII tokens."""
    column = pa.array([text])
    in_grams = collected(lambda hashes: add_grams(hashes, column, n, folded=True))
    in_tokens = collected(lambda hashes: add_tokens(hashes, column, folded=True))
    assert (in_grams is None) == (in_tokens is None) == any(character in CASE_TRICKY for character in text)
    if in_grams is None or in_tokens is None:
        return
    for cased in (text.lower(), text):
        needle = fold_bytes(cased[start : start + length].encode())
        assert set(of_grams({gram for gram in grams_within(needle, n) if gram.isascii()})) <= set(in_grams)
        asked = {token_key(token) for token in tokens_of(fold_bytes(cased.encode())) if token.isascii()}
        assert set(of_tokens(asked)) <= set(in_tokens)


@pytest.mark.parametrize("n", [3, 8])
def test_many_texts_in_several_slices(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough to drive grams out of the table of recent ones, repeated and not."""
    monkeypatch.setattr(ngrams, "_SLICE", 1 << 17)
    random = np.random.default_rng(9)
    values = [f"{number:x} {number % 7} user={number % 100}" for number in random.integers(0, 2**60, 8_000).tolist()]
    for column in (pa.array(values), pa.array([value for value in values[:2_000] for _ in range(4)])):
        texts_ = [text.encode() for text in set(column.to_pylist())]
        expected = of_grams({gram for text in texts_ for gram in naive_grams(text, n)})
        assert collected(lambda hashes, c=column: add_grams(hashes, c, n, folded=False)) == expected
        expected = of_tokens({token for text in texts_ for token in naive_tokens(text)})
        assert collected(lambda hashes, c=column: add_tokens(hashes, c, folded=False)) == expected


def test_a_text_of_several_slices() -> None:
    """Grams and a token across the border of two slices of one text."""
    text = b"." * (ngrams._SLICE - 5) + b"0123456789" + b"." * ngrams._SLICE
    expected = {b"." * 6, *naive_grams(b"....." + b"0123456789" + b".....", 6)}
    assert collected(lambda hashes: add_grams(hashes, pa.array([text]), 6, folded=True)) == of_grams(expected)
    assert collected(lambda hashes: add_tokens(hashes, pa.array([text]), folded=True)) == of_tokens({b"0123456789"})


@pytest.mark.parametrize("gram", [b"\0" * 8, b"\1" + b"\0" * 7, b"\xff" * 8])
def test_a_gram_is_never_taken_for_one_that_came_before(gram: bytes) -> None:
    """Also where it looks like an empty place of the table."""
    gram_hashes = collected(lambda hashes: add_grams(hashes, pa.array([gram]), 8, folded=False))
    assert gram_hashes == of_grams({gram})


@pytest.mark.parametrize("n", [1, 9])
def test_grams_fit_a_word(n: int) -> None:
    with pytest.raises(ValueError, match=f"2 to 8 bytes, not {n}"):
        add_grams(DistinctHashes(), pa.array(["text"]), n, folded=False)


def test_numbers_are_no_texts() -> None:
    with pytest.raises(IndexFault, match="int64"):
        add_tokens(DistinctHashes(), pa.array([1]), folded=False)


def test_too_many_grams_give_up() -> None:
    column = pa.array([f"{i:08}" for i in range(1_000)])
    hashes = DistinctHashes(most=50)
    add_grams(hashes, column, 8, folded=False)
    assert hashes.distinct() is None
    assert hashes.overflowed


# ---- folding -------------------------------------------------------------------------------------------------------


def reached(character: str) -> set[str]:
    """All characters that lower and upper case, in whatever turn, lead to."""
    seen, left = {character}, [character]
    while left:
        now = left.pop()
        new = {*now.lower(), *now.upper()} - seen
        seen |= new
        left += new
    return seen


@pytest.mark.usefixtures("slices")
@given(texts, st.sampled_from(["", *sorted(CASE_TRICKY)]), texts)
def test_an_unfoldable_character_is_found_wherever_it_is(before: str, character: str, after: str) -> None:
    text = before + character + after
    expected = not any(c in CASE_TRICKY for c in text)
    assert foldable(np.frombuffer(text.encode(), np.uint8)) == expected


@given(st.binary(max_size=300))
def test_folding_is_of_ascii_alone(text: bytes) -> None:
    expected = bytes(byte + 32 if ord("A") <= byte <= ord("Z") else byte for byte in text)
    assert fold_bytes(text) == expected == fold(np.frombuffer(text, np.uint8)).tobytes()
