"""How thorough a test run is: ``HYPOTHESIS_PROFILE`` is fast, quick (the default), full or nightly.

Fast runs tests that take less than a second, with few examples and few steps of a sweep, for the loop in which one
works; quick is for what is about to be merged; full is for releases. All three use the same examples every time, so a
failure means that the code has changed. Nightly draws new examples every time, ten times as many as full.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "quick")
NIGHTLY = PROFILE == "nightly"
FAST = PROFILE == "fast"
FULL = NIGHTLY or PROFILE == "full"
SHARE = {"fast": 1 / 40, "quick": 1 / 20, "full": 1, "nightly": 10}[PROFILE]  # of the examples that a test names
FEWEST = 2  # the first example that is drawn is the simplest there is

Amount = TypeVar("Amount")

slow = pytest.mark.skipif(not FULL, reason="takes long beside what it adds to others: it runs in make test-full")

takes_seconds = pytest.mark.skipif(FAST, reason="takes a second of processor time or more: it runs in make test")

_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
settings.register_profile("full", derandomize=True, deadline=None, suppress_health_check=_FINE, database=None)
for _few in ("fast", "quick"):
    settings.register_profile(_few, settings.get_profile("full"), max_examples=round(100 * SHARE))
settings.register_profile(
    "nightly", settings.get_profile("full"), derandomize=False, max_examples=1000, print_blob=True
)
settings.load_profile(PROFILE)


def by_profile(quick: Amount, full: Amount, nightly: Amount, fast: Amount | None = None) -> Amount:
    """What is tried in the profile in use; in fast the same as in quick, unless it says otherwise."""
    return {"fast": quick if fast is None else fast, "quick": quick, "full": full, "nightly": nightly}[PROFILE]


def one_in(stride: int, cases: Iterable[Amount]) -> list[Amount]:
    """Cases that are much alike: all in full, each `stride`-th in fast and quick, from the first on."""
    return list(cases)[:: 1 if FULL else stride]


def some(n: int) -> int:
    """How many things that are much alike an example has: `n` in full, a third of them in fast and quick."""
    return n if FULL else max(1, n // 3)


def sweep(steps: Iterable[Amount], stride: int) -> list[Amount]:
    """The steps of a sweep: every one, but in fast only each `stride`-th, from the first on."""
    return list(steps)[:: stride if FAST else 1]


def examples(n: int, *, shrink: bool = True) -> settings:
    """The number of examples of a test: `n` of them in the full profile.

    A test whose examples take seconds does not shrink a failing one: its message has to name what failed.
    """
    phases = tuple(Phase) if shrink else (Phase.explicit, Phase.generate)
    return settings(max_examples=max(FEWEST, round(n * SHARE)), phases=phases, report_multiple_bugs=shrink)
