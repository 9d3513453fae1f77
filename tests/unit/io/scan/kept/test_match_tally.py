"""What reads tell about blocks that held a match is what counting in plain Python tells; deleted rows hold none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.pruning import reporters
from secateur.pruning.report import Report
from secateur.pruning.reporters import Matches
from secateur.scan import Scan
from tests.support.drawn.deleted_rows import GROUP, Place, Row, histories, made
from tests.support.profiles import examples
from tests.support.tables import write_file

Answers = list[Matches | None]

HOLDS: dict[str, Callable[[Row], bool]] = {
    "true": lambda row: True,
    "k % 3 = 1": lambda row: row[0] is not None and row[0] > 0 and row[0] % 3 == 1,
    "k > 0 OR length(s) = 70": lambda row: (row[0] is not None and row[0] > 0) or len(row[1]) == 70,
}
READS: dict[str, Callable[[Scan], object]] = {
    "to_arrow": lambda plan: plan.to_arrow(["k"]),
    "to_batches": lambda plan: list(plan.to_batches(["s"])),
    "count": lambda plan: plan.count(),
}


@contextmanager
def heard() -> Iterator[Answers]:
    """What reads tell."""
    answers: Answers = []

    def listen(report: Report, measure: Callable[[], Matches | None]) -> None:
        answers.append(measure())

    with patch.object(reporters, "_listeners", [listen]):
        yield answers


@examples(150)
@given(histories(), st.sampled_from(sorted(HOLDS)), st.sampled_from(sorted(READS)), st.booleans())
def test_blocks_with_a_match(
    history: tuple[list[list[Row]], list[list[Place]], list[int]], where: str, read: str, indexed: bool
) -> None:
    files, positions, keys = history
    gone = {place for places in positions for place in places}
    with made(files, positions, keys, indexed=indexed) as table, heard() as answers:
        plan = sec.prune(table.table, where)
        READS[read](plan)
        held = {
            (table.paths[f], at // GROUP)
            for f, rows in enumerate(files)
            for at, row in enumerate(rows)
            if HOLDS[where](row) and (f, at) not in gone and (row[0] is None or row[0] not in keys)
        }
        blocks = plan.blocks.to_pylist()
        matched = [block for block in blocks if (block["file"], block["row_group"]) in held]
        if answers == [None]:
            assert read != "count" or keys
            assert positions or keys
            assert plan.survivors.fully_matching.any()
        elif answers:
            size = sum(block["bytes"] for block in matched)
            assert answers == [Matches(len(blocks), sum(block["bytes"] for block in blocks), len(matched), size)]
        else:
            assert read == "count" and indexed, "ordered postings give the count, and not where"


def test_a_row_group_of_deleted_rows() -> None:
    """Where every row matches none is looked at, so whether one is left in each row group is not known."""
    rows: list[Row] = [(k, "a", 1.5) for k in (1, 4, 1, 4, 2, 5, 2, 5)]
    with made([rows], [], [1, 4], indexed=False) as table, heard() as answers:
        assert sec.prune(table.table, "true").to_arrow().num_rows == GROUP
        assert sec.prune(table.table, "k % 3 > 0").to_arrow().num_rows == GROUP
    of_all, by_condition = answers
    assert of_all is None
    assert by_condition is not None and (by_condition.blocks, by_condition.matched_blocks) == (2, 1)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("lake")
    write_file(root / "a.parquet", pa.table({"id": range(100)}), row_group_size=10)
    return str(root)


@pytest.mark.parametrize("read", sorted(READS.keys() - {"to_batches"}))
def test_what_is_known_without_a_read(lake: str, read: str) -> None:
    with heard() as answers:
        plan = sec.prune(lake, "id >= 50")
        plan.count() if read == "count" else plan.to_arrow()
    size = sum(plan.blocks["bytes"].to_pylist())
    assert answers == [Matches(5, size, 5, size)]


def test_reads_that_stop_tell_nothing(lake: str) -> None:
    with heard() as answers:
        sec.prune(lake, "id * 37 % 50 = 9", limit=2).to_arrow()
        sec.prune(lake, "id * 37 % 50 = 9", limit=2).count()
        sec.prune(lake, "id * 37 % 50 = 9", order_by="id", limit=2).to_arrow()
        next(sec.prune(lake, "id * 37 % 50 = 9").to_batches())
    assert answers == []


def test_a_read_that_fails_tells_nothing(tmp_path: Path) -> None:
    for name in "ab":
        write_file(tmp_path / f"{name}.parquet", pa.table({"id": range(20)}), row_group_size=10)
    plan = sec.prune(str(tmp_path), "id * 37 % 50 = 9")
    (tmp_path / "b.parquet").unlink()
    with heard() as answers, pytest.raises(sec.SecateurError):
        plan.to_arrow()
    assert answers == []
