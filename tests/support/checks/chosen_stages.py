"""Pipelines of some stages only."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from secateur.pruning import pipeline
from secateur.pruning.pipeline import STAGES, Stages

ALL_STAGES = tuple(stage.name for stage in (*STAGES.of_segments, STAGES.opening, *STAGES.of_blocks))


@contextmanager
def only_stages(names: Collection[str]) -> Iterator[None]:
    """Prune by the stages of these names, and by the one that opens blocks."""
    of_segments = tuple(stage for stage in STAGES.of_segments if stage.name in names)
    of_blocks = tuple(stage for stage in STAGES.of_blocks if stage.name in names)
    with patch.object(pipeline, "STAGES", Stages(of_segments, STAGES.opening, of_blocks)):
        yield
