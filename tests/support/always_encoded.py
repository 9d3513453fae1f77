"""Texts read as dictionaries encode them, however short the row groups are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from secateur.io.parquet import dictionary_texts


@contextmanager
def always_encoded() -> Iterator[None]:
    """Dictionaries pay always."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dictionary_texts, "LEAST_ROWS", 1)
        patch.setattr(dictionary_texts, "MOST_BYTES", float("inf"))
        patch.setattr(dictionary_texts, "DECODING", 0.0)
        yield
