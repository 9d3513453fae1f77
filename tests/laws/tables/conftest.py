"""Texts are read as dictionaries encode them, however short the row groups of these tables are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from secateur.io.parquet import dictionary_texts


@pytest.fixture(scope="module", autouse=True)
def encoded_texts() -> Iterator[None]:
    """Dictionaries pay always."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dictionary_texts, "LEAST_ROWS", 1)
        patch.setattr(dictionary_texts, "MOST_BYTES", float("inf"))
        patch.setattr(dictionary_texts, "DECODING", 0.0)
        yield
