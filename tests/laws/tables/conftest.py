"""Texts are read as dictionaries encode them, however short the row groups of these tables are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.always_encoded import always_encoded


@pytest.fixture(scope="module", autouse=True)
def encoded_texts() -> Iterator[None]:
    """Dictionaries pay always."""
    with always_encoded():
        yield
