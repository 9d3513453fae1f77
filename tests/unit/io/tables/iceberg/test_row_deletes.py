"""Aggregates, counts and affected files of Iceberg tables with deleted rows, without Spark."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.errors import StalePlan
from secateur.io.tables.iceberg import row_deletes
from tests.support.drawn.deleted_rows import Place, Row, histories, made
from tests.support.profiles import examples


def least_and_greatest(values: list[Any]) -> list[Any]:
    def key(value: Any) -> Any:
        return (value != value, 0 if value != value else value)

    present = [value for value in values if value is not None]
    return [None, None] if not present else [min(present, key=key), max(present, key=key)]


def different(values: list[Any]) -> int:
    return len({"NaN" if value != value else value for value in values if value is not None})


@examples(60)
@given(histories(), st.sampled_from([None, -2, 0, 3]), st.booleans())
def test_what_is_told_is_told_of_the_rows_that_live(
    history: tuple[list[list[Row]], list[list[Place]], list[int]], least: int | None, indexed: bool
) -> None:
    calls = ["count(*)", "count(k)", *(f"{function}({name})" for name in "ksf" for function in ("min", "max"))]
    calls += [f"count(DISTINCT {name})" for name in "ksf"] + ["sum(k)"]
    where = "true" if least is None else f"k >= {least}"

    def holds(row: Row) -> bool:
        return least is None or (row[0] is not None and row[0] >= least)

    with made(*history, indexed=indexed) as made_:
        for some in (calls, calls[2:4], calls[4:6], calls[8:]):
            result = sec.aggregate(made_.table, ", ".join(some), where, strict=True).to_pylist()[0]
            rows = [row for row in made_.rows if holds(row)]
            expected = [len(rows), sum(row[0] is not None for row in rows)]
            expected += [value for i in range(3) for value in least_and_greatest([row[i] for row in rows])]
            expected += [different([row[i] for row in rows]) for i in range(3)]
            numbers = [row[0] for row in rows if row[0] is not None]
            expected.append(sum(numbers) if numbers else None)
            assert repr(list(result.values())) == repr([v for c, v in zip(calls, expected, strict=True) if c in some])
        plan = sec.prune(made_.table, where, strict=True)
        assert plan.count() == plan.to_arrow().num_rows == len(rows)
        assert sec.prune(made_.table, where, limit=3).to_arrow().num_rows == min(3, len(rows))
        affected, exact = plan.affected(), plan.affected(exact=True)
        for path, live in zip(made_.paths, made_.live, strict=True):
            truth = [holds(row) for row in live]
            assert not (path in affected.untouched and any(truth))
            assert not (path in affected.whole and not all(truth))
            assert (path in exact.untouched) == (not any(truth))
            assert not (path in exact.whole and not all(truth))
            assert (path in exact.whole) >= (path in affected.whole and any(truth))


def blocks_of(plan: Any) -> list[tuple[str, int]]:
    return [(row["file"], row["row_group"]) for row in plan.blocks.to_pylist()]


def reads_of(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The delete files that are opened from now on."""
    opened: list[str] = []
    real = row_deletes.read_positions

    def noted(open_input: Any, path: str, wanted: Any) -> Any:
        opened.append(path)
        return real(open_input, path, wanted)

    monkeypatch.setattr(row_deletes, "read_positions", noted)
    return opened


@pytest.mark.parametrize("indexed", [False, True])
def test_blocks_without_a_row_are_left_out(indexed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two delete files, which overlap, take the second block of the first file; another takes most of the second's."""
    files = [[(at, "a", 1.5) for at in range(11)], [(at, "b", 1.5) for at in range(6)]]
    positions = [[(0, 4), (0, 5), (0, 6)], [(0, 6), (0, 7), (0, 10)], [(1, 0), (1, 1), (1, 2), (1, 4)]]
    with made(files, positions, [], indexed=indexed) as made_:
        read = reads_of(monkeypatch)
        plan = sec.prune(made_.table, "s >= ''", strict=True)
        first, second = made_.paths
        assert sorted(blocks_of(plan)) == sorted([(first, 0), (first, 2), (second, 0), (second, 1)])
        assert plan.count() == plan.to_arrow().num_rows == 11 - 5 + 6 - 4
        assert len(read) == len(set(read)) == 3
        assert plan.affected().whole == sorted(made_.paths)
        assert plan.why(first, 1).stage == "deletes"
        assert sec.prune(made_.table, "k >= 0", limit=3, strict=True).to_arrow().num_rows == 3
        (stage,) = [stage_report for stage_report in plan.report.stages if stage_report.name == "deletes"]
        assert (stage.before.blocks, stage.after.blocks) == (5, 4)
        assert stage.notes == ("deleted positions of 2 files looked at",)


@pytest.mark.parametrize("indexed", [False, True])
def test_delete_files_that_cannot_cover_a_block_are_not_read(indexed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [[(at, "a", 1.5) for at in range(8)]]
    with made(files, [[(0, 0), (0, 1), (0, 2)]], [7], indexed=indexed) as made_:
        read = reads_of(monkeypatch)
        assert len(sec.prune(made_.table, "k >= 0", strict=True).blocks) == 2
        assert not read


def test_a_delete_file_that_cannot_be_read_is_trouble_of_readers() -> None:
    files = [[(at, "a", 1.5) for at in range(4)]]
    with made(files, [[(0, at) for at in range(4)]], [], indexed=False) as made_:
        (path,) = made_.table.snapshot().listing(dt.UTC).deletes.files.column("path").to_pylist()
        Path(path.removeprefix("file://")).unlink()
        plan = sec.prune(made_.table, "k >= 0", strict=True)
        assert len(plan.blocks) == 1
        with pytest.raises(StalePlan):
            plan.count()


@pytest.mark.parametrize("indexed", [False, True])
def test_deleted_rows_are_no_answers(indexed: bool) -> None:
    """The bounds of a file with deletes hold and are no values, which ordered postings tell; else it alone is read."""
    files = [[(at, "a", 1.5) for at in range(8)], [(at, "a", 1.5) for at in range(10, 18)]]
    with made(files, [[(0, 0), (0, 7)]], [], indexed=indexed) as made_:
        result = sec.aggregate(made_.table, "min(k), max(k)", strict=True)
        assert result.to_pylist() == [{"min(k)": 1, "max(k)": 17}]
        assert result.schema.metadata[b"blocks_read"] == (b"0" if indexed else b"1")
        assert sec.prune(made_.table, "k >= 10").affected().whole == [made_.paths[1]]
        assert sec.prune(made_.table, "k >= 0").affected().whole == sorted(made_.paths)


@pytest.mark.parametrize("indexed", [False, True])
def test_equality_deletes_are_read_once(indexed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the plan, its count, its rows, aggregates that read in several goes, and the next plan."""
    files = [[(at + 20 * part, "a", float(at)) for at in range(20)] for part in range(2)]
    with made(files, [], [3, 25], indexed=indexed) as made_:
        opened: list[str] = []
        real = row_deletes.open_parquet

        def noted(filesystem: Any, path: str, redacted: str, **more: Any) -> Any:
            opened.append(redacted)
            return real(filesystem, path, redacted, **more)

        monkeypatch.setattr(row_deletes, "open_parquet", noted)
        plan = sec.prune(made_.table, "k >= 0", strict=True)
        assert plan.count() == plan.to_arrow().num_rows == 38
        answer = sec.aggregate(made_.table, "count(*) AS n, min(s) AS s, max(f) AS f", "k >= 0")
        assert answer.to_pylist() == [{"n": 38, "s": "a", "f": 19.0}]
        assert sec.prune(made_.table, "k = 3 OR k = 25 OR k = 4", strict=True).count() == 1
        deletes = [path for path in opened if path.endswith("-deletes.parquet")]
        assert len(deletes) == 1
