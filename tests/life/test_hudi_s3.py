"""Hudi tables on S3, and of many files: the rows are those of a copy on the local disk, amid failures too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import secateur as sec
from secateur.errors import SecateurError, TableNotFound
from tests.support.checks import oracle
from tests.support.formats.written_hudi import WrittenTable
from tests.support.profiles import takes_seconds
from tests.support.s3_server import S3Server, every

pytestmark = takes_seconds

GROUPS, PARTITIONS = 14, 4
PREDICATES = ("true", "rid = 25", "rid BETWEEN 10 AND 20", "s = 'text 9' OR rid > 35", "rid < 0")


def written(directory: Path, version: int) -> WrittenTable:
    """A table of partitions, whose groups have been written up to three times, and one of them replaced."""
    table = WrittenTable(directory, version)
    for partition in range(PARTITIONS):
        table.mark(f"p{partition} %41")
    names = [f"p{number % PARTITIONS} %41/g{number}" for number in range(GROUPS)]
    held = {name: [3 * number, 3 * number + 1] for number, name in enumerate(names)}
    table.write(held)
    table.write({name: [*held[name], 3 * number + 2] for number, name in enumerate(names) if number % 3 == 0})
    table.write({name: [3 * number] for number, name in enumerate(names) if number % 5 == 0})
    table.write({f"p0 %41/h{number}": [1000 + number] for number in range(3)}, "replacecommit", replaced=names[:1])
    return table


@pytest.fixture(params=[9, 6, 5])
def lake(request: pytest.FixtureRequest, s3: S3Server, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The same table on the local disk and on S3."""
    directory = written(tmp_path / "t", request.param).directory
    prefix = tmp_path.name
    for file in directory.rglob("*"):
        if file.is_file():
            key = f"{prefix}/{file.relative_to(directory)}"
            s3.client.put_object(Bucket=s3.bucket, Key=key, Body=file.read_bytes())
    yield str(directory), f"s3://{s3.bucket}/{prefix}"
    for name in s3.names(prefix):
        s3.client.delete_object(Bucket=s3.bucket, Key=name)


def test_rows_on_s3_are_those_on_disk(lake: tuple[str, str]) -> None:
    """Without an index, with one beside the table there, and in the past."""
    here, there = (sec.open_table(location) for location in lake)
    instants = here.snapshot().metadata_tables.snapshots()["snapshot_id"].to_pylist()
    assert there.snapshot().metadata_tables.snapshots()["snapshot_id"].to_pylist() == instants
    for is_indexed in (False, True):
        if is_indexed:
            sec.build_index(there, bloom=["rid"], sort_key=["rid"])
            assert len(sec.prune(there, "rid = 25", strict=True).blocks) == 1
        for predicate in PREDICATES:
            wanted = oracle.rows(sec.prune(here, predicate).to_arrow())
            plan = sec.prune(there, predicate, strict=True)
            assert oracle.rows(plan.to_arrow()) == wanted, predicate
            assert plan.count() == wanted.total(), predicate
    for instant in instants:
        past, past_there = (sec.prune(sec.open_table(place, version=instant), "rid >= 0") for place in lake)
        assert oracle.rows(past_there.to_arrow()) == oracle.rows(past.to_arrow())
    assert sec.verify_index(there).sound


def test_failures_now_and_then_lose_no_file(s3: S3Server, lake: tuple[str, str]) -> None:
    """A listing or a commit that cannot be read at once is read again, or is an error: never fewer rows."""
    wanted = oracle.rows(sec.prune(sec.open_table(lake[0]), "rid >= 0").to_arrow())
    with s3.failing(every(3)) as gate:
        assert oracle.rows(sec.prune(sec.open_table(lake[1]), "rid >= 0").to_arrow()) == wanted
        assert gate.failed


def test_a_commit_that_cannot_be_read_is_an_error(s3: S3Server, lake: tuple[str, str]) -> None:
    with s3.failing(lambda method, path: method == "GET" and "commit" in path, "denied"), pytest.raises(SecateurError):
        sec.prune(sec.open_table(lake[1]), "rid >= 0").to_arrow()


def test_a_file_that_the_timeline_names_and_that_is_gone(s3: S3Server, lake: tuple[str, str]) -> None:
    prefix = lake[1].removeprefix(f"s3://{s3.bucket}/")
    newest = max(name for name in s3.names(prefix) if "/g7_" in name)
    s3.client.delete_object(Bucket=s3.bucket, Key=newest)
    with pytest.raises(TableNotFound, match="g7_"):
        sec.prune(sec.open_table(lake[1]), "rid >= 0").to_arrow()


@pytest.mark.parametrize("version", [9, 5])
def test_many_files(tmp_path: Path, version: int) -> None:
    """A thousand file groups, each written twice: the newest of each counts, and one row opens one file."""
    table = WrittenTable(tmp_path / "t", version)
    names = [f"g{number}" for number in range(1_000)]
    table.write({name: [number] for number, name in enumerate(names)})
    table.write({name: [number, number + 1_000] for number, name in enumerate(names) if number % 2})
    opened = sec.open_table(table.directory)
    sec.build_index(opened, bloom=["rid"])
    assert sec.prune(opened, "true").count() == 1_500
    for rid, count in ((7, 1), (8, 1), (1_007, 1), (1_008, 0)):
        plan = sec.prune(opened, f"rid = {rid}", strict=True)
        assert plan.to_arrow()["rid"].to_pylist() == [rid] * count
        assert len(plan.files) == count
