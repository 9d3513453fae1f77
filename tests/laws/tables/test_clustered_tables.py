"""Tables clustered by several columns: the tuples of the sort key rule out blocks, and never one that holds a match."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import secateur as sec
from secateur.index.build.survey import FileSurvey, cut
from secateur.index.identity import FileIdentity
from secateur.io.tables.directory.table import ParquetDirectory
from tests.support.profiles import examples

DAYS, USERS, FILES = 20, 300, 6
SORT_KEY = ("day", "user DESC NULLS LAST", "word")


def rows() -> pa.Table:
    """Six thousand rows in the order of the sort key, every eleventh user NULL."""
    day, user = (axis.ravel() for axis in np.meshgrid(np.arange(DAYS), np.arange(USERS), indexing="ij"))
    table = pa.table(
        {
            "day": day.astype(np.int32),
            "user": pa.array([None if u % 11 == 0 else u for u in user.tolist()], pa.int64()),
            "word": pa.array([f"w{(d * 7 + u) % 13}" for d, u in zip(day.tolist(), user.tolist(), strict=True)]),
            "id": np.arange(len(day)),
        }
    )
    return table.sort_by([("day", "ascending"), ("user", "descending"), ("word", "ascending")])


def build(root: Path, spark: SparkSession, sort_key: tuple[str, ...]) -> ParquetDirectory:
    root.mkdir()
    data = rows()
    for i in range(FILES):
        part = data.slice(i * len(data) // FILES, len(data) // FILES)
        pq.write_table(part, root / f"{i}.parquet", row_group_size=90)
    table = sec.open_table(str(root))
    sec.build_index(table, sort_key=sort_key, segment_blocks=5, pages=False)
    return table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> ParquetDirectory:
    return build(tmp_path_factory.mktemp("clustered") / "lake", spark, SORT_KEY)


def ids(predicate: str, table: ParquetDirectory) -> list[int]:
    return sorted(sec.prune(table, predicate, strict=True).to_arrow(columns=["id"])["id"].to_pylist())


CONDITIONS = st.one_of(
    st.builds("day = {}".format, st.integers(-1, DAYS)),
    st.builds("day IN ({}, {})".format, st.integers(0, DAYS), st.integers(0, DAYS)),
    st.builds("day BETWEEN {} AND {}".format, st.integers(0, DAYS), st.integers(0, DAYS)),
    st.builds("user = {}".format, st.integers(0, USERS)),
    st.builds("user >= {}".format, st.integers(0, USERS)),
    st.builds("NOT (user > {})".format, st.integers(0, USERS)),
    st.sampled_from(["user IS NULL", "user IS NOT NULL", "word = 'w3'", "word LIKE 'w1%'", "id % 2 = 0"]),
)


@examples(60)
@given(st.lists(CONDITIONS, min_size=1, max_size=3), st.sampled_from([" AND ", " OR "]))
def test_rows_are_those_without_an_index(table: ParquetDirectory, conditions: list[str], connective: str) -> None:
    predicate = connective.join(f"({condition})" for condition in conditions)
    read = sec.prune(table, predicate, use_index=False).to_arrow(columns=["id"])["id"].to_pylist()
    assert ids(predicate, table) == sorted(read)


@pytest.mark.parametrize(
    ("predicate", "blocks"),
    [("day = 5 AND user = 150", 1), ("day = 5 AND user = 299", 1), ("day IN (3, 9) AND user = 7", 2), ("day = 5", 4)],
)
def test_tuples_find_the_block(table: ParquetDirectory, predicate: str, blocks: int) -> None:
    plan = sec.prune(table, predicate, strict=True)
    assert len(plan.blocks) == blocks
    assert "`user`" in str(plan.residual) or "user" not in predicate


def test_zone_maps_alone_keep_more(table: ParquetDirectory) -> None:
    """Blocks do not end where a day does: one that ends a day and begins the next spans nearly all users."""
    predicate = f"day IN ({', '.join(map(str, range(DAYS)))}) AND user = 150"
    by_tuples, by_zone_maps = (sec.prune(table, predicate, use_index=used) for used in (True, False))
    assert len(by_tuples.blocks) == DAYS
    assert len(by_zone_maps.blocks) > DAYS + DAYS // 2


def test_a_block_matches_whole_as_without_a_sort_key(table: ParquetDirectory) -> None:
    plan = sec.prune(table, "day = 5 AND id >= 0", strict=True)
    assert plan.survivors.fully_matching.tolist() == [False, True, True, False], "days begin and end within blocks"


def places(predicate: str, table: ParquetDirectory, *, use_index: bool) -> set[tuple[str, int]]:
    """File and row group of the blocks that are kept."""
    kept = sec.prune(table, predicate, use_index=use_index).blocks.select(["file", "row_group"]).to_pylist()
    return {(block["file"], block["row_group"]) for block in kept}


def test_why_a_block_is_ruled_out_by_tuples(table: ParquetDirectory) -> None:
    """By nothing that a condition says of it: its own bounds keep the block in which a day ends."""
    predicate = "day = 5 AND user = 150"
    by_tuples, by_zone_maps = (places(predicate, table, use_index=used) for used in (True, False))
    assert by_tuples < by_zone_maps
    plan = sec.prune(table, predicate, strict=True)
    assert {plan.why(*place).stage for place in by_zone_maps - by_tuples} == {"zone maps"}
    assert all(plan.why(*place).survives for place in by_tuples)
    because = {str(plan.why(*place).cause) for place in by_zone_maps - by_tuples}
    assert because == {"no tuple of (day, user, word) between the least and the greatest of its tuples satisfies it"}, (
        because
    )
    explanation = plan.explanation
    assert explanation.blocks_left == len(by_tuples)
    causes = [(cause.structure, cause.columns, cause.blocks_left) for cause in explanation.together]
    assert causes == [("sort key", ("day", "user", "word"), len(by_tuples))]


def test_the_fan_out_of_the_tree(spark: SparkSession, table: ParquetDirectory, tmp_path: Path) -> None:
    other = sec.open_table(table.location, index_location=str(tmp_path / "index"))
    sec.build_index(other, sort_key=["day"], segment_blocks=2, fan_out=3)
    for predicate in ("day = 5", "day > 17 OR user = 3", "id >= 0"):
        assert ids(predicate, other) == ids(predicate, table)
    assert "tree of fan-out 3" in sec.prune(other, "day = 5").explain()
    with pytest.raises(ValueError, match="fan_out is 1"):
        sec.build_index(other, fan_out=1)


def test_the_key_is_kept_as_it_is_spelled(table: ParquetDirectory, spark: SparkSession) -> None:
    described = sec.describe_index(table)
    assert described.sort_key == ("day", "user DESC", "word")
    assert described.columns == ("day", "user", "word", "id")


def test_a_refresh_keeps_the_order_of_keys(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path / "lake", spark, SORT_KEY)
    early = rows().slice(0, 300)
    early = early.set_column(0, "day", pa.array(np.full(300, -4), pa.int32()))
    pq.write_table(early, tmp_path / "lake/9.parquet", row_group_size=100)
    before = sec.prune(table, "day = -4 AND user = 40", strict=True)
    assert before.count() == 1, "nothing is known of the tuples of a file without an entry"
    assert before.why("9.parquet", 2).stage in (None, "zone maps")
    sec.refresh_index(table)
    plan = sec.prune(table, "day = -4 AND user = 40", strict=True)
    assert len(plan.blocks) == 1
    assert plan.survivors.blocks.segment.tolist() == [0], "the segment with the least keys is the first"
    assert ids("day = 5 AND user = 150", table) == ids("day = 5 AND user = 150", sec.open_table(table.location))


@pytest.mark.parametrize("text", ["day DOWN", "", "day ASC NULLS", "no_such_column"])
def test_what_is_no_sort_key(spark: SparkSession, tmp_path: Path, text: str) -> None:
    with pytest.raises((ValueError, sec.SecateurError), match=r"sort column|no_such_column"):
        build(tmp_path / "lake", spark, ("day", text))


def survey_of(name: str, begin: int, end: int) -> FileSurvey:
    """A file of two blocks with values from `begin` to `end`."""
    ends = (value.to_bytes(8, "big") for value in (begin, end))
    least, greatest = ends
    return FileSurvey(FileIdentity(name, 1, 1, 1), 2, 10, 100, pa.schema([]), (least,), greatest)


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), max_size=60), st.integers(1, 20))
def test_every_file_is_in_one_segment(spans: list[tuple[int, int]], target: int) -> None:
    files = [survey_of(f"{i:03d}", low, low + width) for i, (low, width) in enumerate(spans)]
    segments = cut(files, target)
    assert sorted(item.file for segment in segments for item in segment) == sorted(item.file for item in files)
    assert all(segment for segment in segments)


def test_wide_files_are_kept_apart() -> None:
    """One file that spans everything would make its segment's bounds useless for the others in it."""
    files = [survey_of(f"{i:03d}", i * 10, i * 10 + 9) for i in range(100)]
    wide = [survey_of("wide", 5, 990), survey_of("wider", 305, 2000)]
    *narrow, last = cut([*files, *wide], 8)
    assert [item.file.path for item in last] == ["wide", "wider"]
    assert all(not item.file.path.startswith("wide") for segment in narrow for item in segment)


def test_data_that_is_not_clustered_has_no_wide_files() -> None:
    files = [survey_of(f"{i:03d}", i, 1000 if i % 2 else i + 1) for i in range(100)]
    assert [item.file.path for segment in cut(files, 8) for item in segment] == [item.file.path for item in files]
