"""Functions of text on rows: what they give, and where they say that they do not know."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secateur.pruning.functions import text_kernels as kernels
from secateur.pruning.interval import OnRows

NO_UTF8 = b"a\xff b"


def computed(function: OnRows, *texts: str | bytes | None, locale: str = "") -> list[object]:
    """The values of a function, or "?" where only Spark knows them."""
    binary = pa.array([text.encode() if isinstance(text, str) else text for text in texts], pa.binary())
    answer = function.compute([pa.Array.from_buffers(pa.string(), len(binary), binary.buffers())], locale)
    values = answer.values.cast(pa.binary()).to_pylist()
    return ["?" if u else _text(v) for v, u in zip(values, answer.unknown.tolist(), strict=True)]


def _text(value: bytes | None) -> object:
    """What is not UTF-8 stays bytes."""
    try:
        return value if value is None else value.decode()
    except UnicodeDecodeError:
        return value


def test_case_is_mapped_where_all_libraries_agree() -> None:
    assert computed(kernels.LOWER, "Ab", "ÀB", "ΑΣ", NO_UTF8, None) == ["ab", "àb", "?", "?", None]
    assert computed(kernels.UPPER, "ab", "àb", "ß", "ας", NO_UTF8, None) == ["AB", "ÀB", "?", "?", "?", None]


def test_a_locale_counts_beyond_ascii_only() -> None:
    assert computed(kernels.UPPER, "ib", "ié", locale="tr") == ["IB", "\u0130É"]
    assert computed(kernels.LOWER, "IB", "IÉ", locale="tr") == ["ib", "\u0131é"]
    assert kernels.UPPER.by_locale and not kernels.TRIMS["trim"].by_locale


def test_words_begin_after_spaces_only() -> None:
    texts = ("hELLO wORLD", "a-b c.d", "  x", "", "1a b", "né", None)
    assert computed(kernels.INITCAP, *texts) == ["Hello World", "A-b C.d", "  X", "", "1a B", "?", None]


def test_words_of_a_slice_begin_where_its_texts_do() -> None:
    whole = pa.array(["zz", None, "ab cd", "ef"])
    answer = kernels.INITCAP.compute([whole.slice(1, 2)], "")
    assert answer.values.to_pylist() == [None, "Ab Cd"]


def test_only_spaces_are_trimmed_whatever_the_bytes() -> None:
    assert computed(kernels.TRIMS["trim"], "  a b ", "\ta ", "", None) == ["a b", "\ta", "", None]
    assert computed(kernels.TRIMS["ltrim"], "  a ") == ["a "]
    assert computed(kernels.TRIMS["rtrim"], "  a ") == ["  a"]
    assert computed(kernels.TRIMS["trim"], NO_UTF8) == [NO_UTF8]
    assert computed(kernels.TRIMS["trim"], b" " + NO_UTF8 + b" ") == [NO_UTF8]


@pytest.mark.parametrize(
    ("start", "length", "part"),
    [(1, 2, "hé"), (0, 2, "hé"), (2, 9, "éllo"), (-3, 2, "ll"), (-9, 5, "h"), (-9, 4, ""), (-2, 9, "lo"), (3, -1, "")],
)
def test_substrings_count_characters_from_one_or_from_the_end(start: int, length: int, part: str) -> None:
    assert computed(kernels.slicing(start, length), "héllo", None, NO_UTF8) == [part, None, "?"]


def test_parts_beyond_the_last_are_empty_null_or_errors() -> None:
    texts = ("a b c", "a", "", " ", None, NO_UTF8)
    assert computed(kernels.item(" ", 1, None, ""), *texts) == ["b", "", "", "", None, "?"]
    assert computed(kernels.item(" ", 1, None, "null"), *texts) == ["b", None, None, "", None, "?"]
    assert computed(kernels.item(" ", 1, None, "error"), *texts) == ["b", "?", "?", "", None, "?"]
    assert computed(kernels.item(" ", 1, 2, "null"), *texts) == ["b c", None, None, "", None, "?"]
    assert computed(kernels.item(" ", -2, None, ""), *texts) == ["b", "", "", "", None, "?"]


def test_an_empty_text_is_replaced_nowhere() -> None:
    assert computed(kernels.replacing("aa", "b"), "aaa", None) == ["ba", None]
    assert computed(kernels.replacing("", "b"), "aaa") == ["aaa"]
