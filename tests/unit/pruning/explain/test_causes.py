"""``plan.why`` of every block of random tables, against the pipeline run stage by stage."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.index.model import NGRAM, POSTINGS, FilterOption
from secateur.index.read import row_lookup
from secateur.io.tables.table import Table
from secateur.pruning.stages.survivors import LeftSegments
from secateur.scan import Scan
from tests.support.checks.chosen_stages import only_stages
from tests.support.drawn.deleted_rows import histories, made
from tests.support.drawn.made_tables import MADE, PREDICATES, Made, table_of
from tests.support.profiles import examples, takes_seconds

Place = tuple[str, int]


def places_of(plan: Scan) -> set[Place]:
    """The blocks that a plan reads."""
    return {(block["file"], block["row_group"]) for block in plan.blocks.to_pylist()}


def places_after(stage: str, plan: Scan, segments: dict[Place, int | None]) -> set[Place]:
    """The blocks that the last stage of a plan has left, whether or not it opens blocks."""
    (left,) = (entry for entry in plan.trail if entry.stage == stage)
    files = plan.paths.to_pylist()
    if not isinstance(left, LeftSegments):
        places = zip(left.blocks.file.tolist(), left.blocks.row_group.tolist(), strict=True)
        return {(files[file], row_group) for file, row_group in places}
    alive = {file for at, file in enumerate(files) if left.files is None or left.files[at]}
    into = {None, *left.segments.tolist()}
    return {place for place, segment in segments.items() if place[0] in alive and segment in into}


def check(table: Table, predicate: str, limit: int | None) -> set[str]:
    """Every block of the table; gives the stages that left some out."""
    blocks = sec.inspect.blocks(table).to_pylist()
    segments = {(block["file"], block["row_group"]): block["segment"] for block in blocks}
    plan = sec.prune(table, predicate, limit=limit, strict=True)
    stages = [stage.name for stage in plan.report.stages]
    gone: dict[Place, str] = {}
    for i, stage in enumerate(stages):
        with only_stages(stages[: i + 1]):
            left = places_after(stage, sec.prune(table, predicate, limit=limit, strict=True), segments)
        gone |= dict.fromkeys(set(segments) - left - set(gone), stage)
    assert set(segments) - set(gone) == places_of(plan)
    for file, row_group in segments:
        why = plan.why(file, row_group)
        assert (why.stage, why.survives) == (gone.get((file, row_group)), (file, row_group) not in gone), str(why)
        assert plan.why({"file": file, "row_group": row_group}) == why
        assert why.survives == (why.cause is None)
        if why.cause is not None and why.cause.conjunct is not None and limit is None:
            alone = sec.prune(table, why.cause.conjunct, strict=True)
            assert (file, row_group) not in places_of(alone), str(why)
        assert why.cause is None or "cannot be read again" not in why.cause.statistic, str(why)
    for file in {file for file, _ in segments}:
        of_file = [place for place in sorted(segments) if place[0] == file]
        assert plan.why(file).blocks == tuple(plan.why(*place) for place in of_file)
        assert plan.why(file).survives == any(place not in gone for place in of_file)
        assert file in str(plan.why(file))
    return {*gone.values()}


@examples(25, shrink=False)
@given(MADE, PREDICATES, st.none() | st.integers(0, 9))
def test_why_names_the_stage_after_which_a_block_is_gone(how: Made, predicate: str, limit: int | None) -> None:
    with table_of(how) as table:
        check(table, predicate, limit)


@takes_seconds
def test_every_stage_is_met() -> None:
    """So the property above does not hold of nothing."""
    how = Made(3, 5, 4, True, (FilterOption(POSTINGS, "i"), FilterOption(NGRAM, "text", gram=4)), True)
    with table_of(how) as table:
        stages = set()
        for predicate in ("p = 1", "i = 9", "i > 30 AND text LIKE '%nowhere%'", "n = 500", "i = 7 OR i = 33", "i < n"):
            stages |= check(table, predicate, None)
        stages |= check(table, "i < 30", 1)
    with table_of(Made(8, 2, 2, False, (), False)) as table:
        stages |= {stage for value in (10, 18) for stage in check(table, f"i = {value}", None)}
    by_row = replace(how, filters=tuple(FilterOption(POSTINGS, name, rows=True) for name in ("i", "n")))
    with table_of(by_row) as table, patch.object(row_lookup, "MOST_SHARE", 1):
        stages |= check(table, "i IN (1, 5, 9, 13, 17, 21, 25, 29, 33) AND n = 1", None)
    assert stages == {"files", "segments", "filters", "zone maps", "limit", "pages", "rows"}


@examples(10, shrink=False)
@given(histories(), st.sampled_from([None, -2, 0, 3]), st.booleans())
def test_deleted_blocks(
    history: tuple[list[list[tuple[int | None, str, float]]], list[list[tuple[int, int]]], list[int]],
    least: int | None,
    indexed: bool,
) -> None:
    files, positions, keys = history
    with made(files, positions, keys, indexed=indexed) as made_:
        check(made_.table, "true" if least is None else f"k >= {least}", None)
