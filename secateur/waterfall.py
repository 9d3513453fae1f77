"""The waterfalls of the demo as a picture: a panel per question, a bar per stage, both copies."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from secateur.demo.lineitem import DemoNotPossible

if TYPE_CHECKING:
    from secateur.demo.trials import Trial


def require_matplotlib() -> None:
    """Raises DemoNotPossible where matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise DemoNotPossible("the picture needs matplotlib: pip install 'secateur[demo]'")


def draw_waterfalls(trials: Sequence[Trial], directory: Path) -> tuple[Path, ...]:
    return ()
