"""Limits that tests lower are those of the code."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.support.drawn.low_limits import LIMITS


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in LIMITS.items() for name in names])
def test_a_limit_is_in_its_module(module: str, name: str) -> None:
    assert hasattr(import_module(f"secateur.{module}"), name)
