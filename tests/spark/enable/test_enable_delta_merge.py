"""Delta's own MERGE, UPDATE and DELETE: few row groups are read, and the table is the one without ``sec.enable``."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import InheritableThread, SparkContext
from pyspark.sql import SparkSession

from tests.support.enabled_session import enabled, reasons
from tests.support.merged_delta import GROUP, change, make, rows
from tests.support.profiles import examples, one_in, slow

UPDATE = "WHEN MATCHED THEN UPDATE SET name = s.name"
INSERT = "WHEN NOT MATCHED THEN INSERT (id, uid, name, kind) VALUES (s.id, 1, s.name, 0)"
DELETE = "WHEN MATCHED THEN DELETE"
SAME_ID = "MERGE INTO {} t USING s ON t.id = s.id"
REFUSED = ("DELTA_UNSUPPORTED_SUBQUERY", "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE")
FEW = 6 * GROUP  # the file without an entry in the index, and two row groups

STATEMENTS: list[tuple[str, bool | None]] = [  # and whether few row groups are read; None if either is right
    (f"{SAME_ID} {UPDATE} {INSERT}", True),
    (f"{SAME_ID} {UPDATE}", True),
    (f"{SAME_ID} WHEN MATCHED THEN DELETE {INSERT}", True),
    (f"{SAME_ID} {INSERT}", True),
    (f"{SAME_ID} AND t.kind = 0 WHEN MATCHED AND s.name > 'g' THEN DELETE {UPDATE} {INSERT}", True),
    (f"MERGE INTO {{}} t USING (SELECT id * 7919 % 65536 AS id, name FROM s) s ON s.id = t.uid {UPDATE}", True),
    (f"MERGE INTO {{}} t USING (SELECT * FROM s UNION ALL SELECT * FROM s) s ON t.id = s.id {UPDATE}", True),
    (f"MERGE INTO {{}} t USING (SELECT * FROM s UNION ALL SELECT * FROM s) s ON t.id = s.id {DELETE}", True),
    (f"MERGE INTO {{}} t USING (SELECT min(id) AS id FROM {{}} WHERE id > 900) s ON t.id = s.id {DELETE}", True),
    ("MERGE WITH SCHEMA EVOLUTION INTO {} t USING (SELECT id, name, 1 AS extra FROM s) s ON t.id = s.id "
     "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *", None),
    (f"MERGE INTO {{}} t USING (SELECT * FROM s WHERE id < 0) s ON t.id = s.id {UPDATE} {INSERT}", True),
    (f"MERGE INTO {{}} t USING (SELECT 100000L AS id, 'far' AS name) s ON t.id = s.id {UPDATE} {INSERT}", True),
    ("DELETE FROM {} WHERE uid IN (7919, 15838)", True),
    ("UPDATE {} SET name = 'u' WHERE uid = 7919", True),
    ("DELETE FROM {} WHERE id IN (SELECT id FROM s)", True),  # an error of Delta's
    (f"{SAME_ID} AND t.kind = 0 {UPDATE} WHEN NOT MATCHED BY SOURCE AND t.id > 2100 THEN DELETE", None),
    (f"{SAME_ID} {UPDATE} WHEN NOT MATCHED BY SOURCE AND t.id = 9 THEN DELETE", False),
    (f"{SAME_ID} {UPDATE} {INSERT} WHEN NOT MATCHED BY SOURCE AND t.id > 2000 THEN UPDATE SET name = 'gone'", None),
    (f"MERGE INTO {{}} t USING s ON t.id <=> s.id WHEN MATCHED THEN DELETE {INSERT}", False),
    (f"MERGE INTO {{}} t USING s ON t.id > s.id + 2100 {UPDATE}", False),
    (
        "MERGE INTO {} t USING (SELECT * FROM VALUES (double('NaN')), (0.0D) AS v(ratio)) s ON t.ratio = s.ratio "
        f"AND t.id > 30 {DELETE}",
        None,
    ),
    (f"{SAME_ID} WHEN MATCHED THEN UPDATE SET uid = monotonically_increasing_id() * 0", True),
]  # fmt: skip


@pytest.fixture(scope="module", params=["vectors", "rewritten"])
def base(
    delta: SparkSession, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A table to be copied; the view ``s`` of some keys."""
    path = tmp_path_factory.mktemp("delta") / "base"
    make(delta, path, vectors=request.param == "vectors")
    names = {5: "five", 40: "forty", 41: "fine", 1800: "last", 3000: "new", None: "none"}
    columns = {"id": pa.array(names, pa.int64()), "name": pa.array(names.values())}
    delta.createDataFrame(pa.table(columns)).createOrReplaceTempView("s")
    with enabled(delta):
        yield path


@pytest.mark.parametrize(("statement", "few"), one_in(9, STATEMENTS))
def test_c33_few_row_groups_are_read(delta: SparkSession, base: Path, statement: str, few: bool | None) -> None:
    """Where files are written anew, those with a match are read whole once more."""
    with_index, without = change(delta, base, statement)
    assert with_index.error in ("", *REFUSED)
    if few:
        assert with_index.read <= max(without.read - 10 * GROUP, FEW), (statement, reasons(delta))
    elif few is False:
        assert with_index.read >= without.read, (statement, reasons(delta))


@slow
@pytest.mark.parametrize("feature", ["'delta.enableRowTracking' = 'true'", "'delta.columnMapping.mode' = 'name'"])
def test_features_of_delta(delta: SparkSession, base: Path, feature: str) -> None:
    with_index, without = change(delta, base, f"{SAME_ID} {UPDATE} {INSERT}", feature)
    assert with_index.read <= without.read - 10 * GROUP, reasons(delta)


@examples(20, shrink=False)
@given(
    keys=st.lists(st.none() | st.integers(-5, 2400), unique=True, max_size=12),
    action=st.sampled_from([UPDATE, f"{UPDATE} {INSERT}", INSERT, DELETE]),
    column=st.sampled_from(["id", "uid", "ratio", "name", "kind"]),
)
def test_c61_rows_are_those_without(
    delta: SparkSession, base: Path, keys: list[int | None], action: str, column: str
) -> None:
    """Any keys, also none, and NULL; NaN and both zeros."""
    values = rows(0, 2400).column(column)
    named = [None if key is None or key < 0 else values[key].as_py() for key in keys]
    ids, names = range(5000, 5000 + len(keys)), map(str, keys)
    source = pa.table(
        {"k": pa.array(named, values.type), "id": pa.array(ids, pa.int64()), "name": pa.array(names, pa.string())}
    )
    delta.createDataFrame(source).createOrReplaceTempView("drawn")
    change(delta, base, f"MERGE INTO {{}} t USING drawn s ON t.{column} = s.k {action}")


of_vectors, rewritten = (pytest.mark.parametrize("base", [kind], indirect=True) for kind in ("vectors", "rewritten"))


def commits(path: str, change: str, key: int | None) -> int | None:
    """Change a table, if nobody has since it was copied. Return the key."""
    table = deltalake.DeltaTable(path)
    if "beside" in table.metadata().configuration and table.history(1)[0]["operation"] == "SET TBLPROPERTIES":
        if change.startswith("delete"):
            table.delete(change.removeprefix("delete "))
        else:
            deltalake.write_deltalake(path, rows(int(change), 3), mode="append")
    return key


BETWEEN = ["100", "1500", "delete kind = 0 AND id = 700", "delete kind = 1 AND id = 1700"]


@rewritten
@pytest.mark.parametrize(
    ("condition", "between"), one_in(5, [(when, what) for when in ("", " AND t.kind = 0") for what in BETWEEN])
)
def test_a_commit_beside_it_is_refused_as_without(
    delta: SparkSession, base: Path, condition: str, between: str
) -> None:
    """Keys narrow what is read, not what Delta takes for a conflict. The source commits when Delta first runs it."""
    delta.udf.register("commits", commits, "bigint")
    source = f"(SELECT commits('{{path}}', '{between}', id) AS id, name FROM (SELECT /*+ COALESCE(1) */ * FROM s))"
    statement = f"MERGE INTO {{}} t USING {source} s ON t.id = s.id{condition} {UPDATE} {INSERT}"
    _, without = change(delta, base, statement, "'beside' = 'yes'")
    is_apart = bool(condition) and ("1500" in between or "1700" in between)
    assert bool(without.error) != is_apart, without.error
    assert not without.error or "CONCURRENT" in without.error


@of_vectors
def test_a_source_that_may_differ_is_run_once(delta: SparkSession, base: Path) -> None:
    """Delta keeps the rows of a source, but for a MERGE that only inserts."""
    by_function = delta.sparkContext.parallelize([(40, "x"), (5000, "y")]).map(lambda row: row)
    delta.createDataFrame(by_function, "id bigint, name string").createOrReplaceTempView("mapped")
    with_index, without = change(delta, base, f"MERGE INTO {{}} t USING mapped s ON t.id = s.id {INSERT}")
    assert "an RDD may have other rows when run twice" in reasons(delta)
    assert with_index.read == without.read


@slow
@of_vectors
def test_more_keys_than_are_collected(delta: SparkSession, base: Path) -> None:
    source = "(SELECT id * 3 AS id, 'many' AS name FROM range(262145))"
    with_index, without = change(delta, base, f"MERGE INTO {{}} t USING {source} s ON t.id = s.id {UPDATE}")
    assert any("more than 262,144 keys" in reason for reason in reasons(delta))
    assert with_index.read > without.read


@slow
@of_vectors
def test_a_statement_that_is_cancelled_at_its_keys_ends(delta: SparkSession, base: Path, tmp_path: Path) -> None:
    """Its source is run for the keys first: it does not go on without them."""
    group, context, errors = str(uuid.uuid4()), delta.sparkContext, []
    path = tmp_path / "t"
    shutil.copytree(base, path)
    endless = "(SELECT id % 7 AS id, max(string(id)) AS name FROM range(1000000000000) GROUP BY 1)"

    def run() -> None:
        context.setJobGroup(group, "to be cancelled")
        try:
            delta.sql(f"MERGE INTO delta.`{path}` t USING {endless} s ON t.id = s.id {INSERT}")
        except Exception as error:
            errors.append(str(error))

    thread = InheritableThread(target=run)
    thread.start()
    try:
        while _lasting(context, group) is None:
            assert thread.is_alive(), errors
        context.cancelJobGroup(group)
        thread.join(60)
        assert not thread.is_alive()
        assert "cancel" in errors[0].lower()
    finally:
        while thread.is_alive():
            context.cancelJobGroup(group)
            thread.join(0.5)


def _lasting(context: SparkContext, group: str) -> int | None:
    """A job of a group that has run for two seconds."""
    before = set(context.statusTracker().getActiveJobsIds())
    time.sleep(2)
    of_group = set(context.statusTracker().getJobIdsForGroup(group))
    return next(iter(before & of_group & set(context.statusTracker().getActiveJobsIds())), None)
