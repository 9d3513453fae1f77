"""The rule of a JVM is made once."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import MagicMock

import pytest

from secateur.io.spark.planner import session_rule
from secateur.io.spark.planner.session_rule import SessionRule


def test_sessions_that_are_enabled_at_once_share_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else `last_plans` and `disable` ask another rule than the session has."""
    rules: list[SessionRule] = []

    def registered(context: Any, uses_index: Callable[[], bool]) -> SessionRule:
        time.sleep(0.05)
        rules.append(SessionRule(MagicMock(), MagicMock()))
        session_rule._rules[context._gateway] = rules[-1]
        return rules[-1]

    monkeypatch.setattr(session_rule, "_registered", registered)
    monkeypatch.setattr(session_rule, "_rules", {})
    spark = MagicMock()
    with ThreadPoolExecutor(4) as threads:
        assert [*threads.map(lambda _: session_rule.enable(spark, [], lambda: True), range(4))] == [None] * 4
    assert len(rules) == 1
    assert rules[0].java.enable.call_count == 4
    assert rules[0].java.enableLater.call_count == 1
