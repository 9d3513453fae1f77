"""Delta tables as the library `deltalake` writes them, with random histories: what is read is what it reads itself."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pytest

import secateur as sec
from secateur.errors import TableNotFound, UnknownSnapshot
from tests.support.checks import oracle
from tests.support.profiles import by_profile, takes_seconds

SEEDS = by_profile(quick=range(4), full=range(20), nightly=range(200), fast=range(1))
STEPS = 8
WORDS = ["", "a", "b c", "50%", "a/b=c", "äöü", "zzzz", "a" * 80]
PREDICATES = (  # which DuckDB reads as Spark does
    "true",
    "rid % 3 = 0",
    "rid BETWEEN 10 AND 25",
    "k = 3",
    "k IS NULL",
    "NOT (k > 2)",
    "s = 'a/b=c'",
    "s > 'b'",
    "s LIKE 'a%'",
    "x > 1.5",
    "x <= 0.0",
    "day >= DATE '2000-02-29'",
    "day IS NULL OR k = 1",
    "k IN (1, 5) AND x < 2.0",
    "p = 'b c' OR rid = 7",
    "p IS NULL AND k < 4",
)


def rows(draw: random.Random, start: int, n: int) -> pa.Table:
    """Rows with ids, whose other values meet again."""

    def some(values: list[Any]) -> list[Any]:
        return [draw.choice([*values, None]) for _ in range(n)]

    return pa.table(
        {
            "rid": pa.array(range(start, start + n), pa.int64()),
            "k": pa.array(some([-1, 0, 1, 2, 3, 5, 2**31 - 1]), pa.int32()),
            "s": pa.array(some(WORDS), pa.string()),
            "x": pa.array(some([float("nan"), -0.0, 0.0, 1.5, 2.5, float("inf")]), pa.float64()),
            "day": pa.array(some([dt.date(1969, 12, 31), dt.date(2000, 2, 29), dt.date(2026, 1, 1)]), pa.date32()),
            "p": pa.array(some(["one", "b c", "a/b=c%"]), pa.string()),
        }
    )


class History:
    """A table that `deltalake` writes."""

    def __init__(self, path: str, seed: int) -> None:
        self.path, self.draw, self.rid, self.log = path, random.Random(seed), 0, [f"seed {seed}"]
        self.partitioned = self.draw.choice([None, ["p"]])
        self.append()

    @property
    def table(self) -> deltalake.DeltaTable:
        return deltalake.DeltaTable(self.path)

    def append(self) -> None:
        n = self.draw.choice([3, 10, 30])
        properties = deltalake.WriterProperties(max_row_group_size=8)
        mode, by = "append" if self.rid else "error", self.partitioned
        data = rows(self.draw, self.rid, n)
        options = {"schema_mode": "merge"} if self.rid else {}
        deltalake.write_deltalake(self.path, data, mode=mode, partition_by=by, writer_properties=properties, **options)
        self.rid += n

    def evolve(self) -> None:
        """New files have a column more."""
        added = rows(self.draw, self.rid, 5).append_column(f"c{self.rid}", pa.array(range(5), pa.int64()))
        deltalake.write_deltalake(self.path, added, mode="append", schema_mode="merge", partition_by=self.partitioned)
        self.rid += 5

    def delete(self) -> None:
        self.table.delete(self.draw.choice(["rid % 5 = 0", f"rid > {self.rid - 4}", "k = 3"]))

    def update(self) -> None:
        self.table.update(predicate="rid % 4 = 1", updates={"k": "5"})

    def merge(self) -> None:
        source = rows(self.draw, max(0, self.rid - 5), 8)
        merging = self.table.merge(source, "t.rid = u.rid", source_alias="u", target_alias="t")
        merging.when_matched_update({"k": "u.k", "s": "u.s"}).when_not_matched_insert(
            {name: f"u.{name}" for name in source.column_names}
        ).execute()
        self.rid = max(self.rid, source["rid"][-1].as_py() + 1)

    def optimize(self) -> None:
        if self.draw.random() < 0.5:
            self.table.optimize.compact()
        else:
            self.table.optimize.z_order(["rid", "k"])

    def restore(self) -> None:
        if self.table.version() > 2:
            self.table.restore(self.table.version() - 1)

    def checkpoint(self) -> None:
        self.table.create_checkpoint()

    def step(self) -> None:
        name = self.draw.choice(
            ["append", "append", "evolve", "delete", "update", "merge", "optimize", "restore", "checkpoint"]
        )
        self.log.append(name)
        getattr(self, name)()


def agrees(handle: Any, model: pa.Table, about: object, **options: Any) -> None:
    for predicate in PREDICATES:
        expected = oracle.rows(duckdb.from_arrow(model).filter(predicate).to_arrow_table())
        plan = sec.prune(handle, predicate, strict=True, **options)
        arrow = plan.to_arrow()
        assert arrow.schema.names == model.schema.names
        arrow = oracle.rows(arrow)
        lost, more = expected - arrow, arrow - expected
        assert not lost | more, (predicate, f"{lost=}, {more=}", about, plan.explain())
        assert plan.count() == expected.total(), (predicate, about)


@takes_seconds
@pytest.mark.parametrize("seed", SEEDS)
def test_every_state_is_read_as_its_writer_reads_it(tmp_path: Path, seed: int) -> None:
    """Without an index, with a stale one, and with one that is kept in order; now and in the past."""
    path = str(tmp_path / "table")
    history = History(path, seed)
    handles = {name: sec.open_table(path, index_location=str(tmp_path / name)) for name in ("none", "stale", "kept")}
    for name in ("stale", "kept"):
        sec.build_index(handles[name], bloom=["rid", "s"], sort_key=["k"])
    states = {}
    for step in range(STEPS):
        history.step()
        model = history.table.to_pyarrow_table()
        states[history.table.version()] = model
        if step % 4 == 3:
            sec.refresh_index(handles["kept"])
            for name, handle in handles.items():
                agrees(handle, model, (name, history.log), use_index=name != "none")
            agrees(sec.open_table(history.table), model, history.log)
    version = history.draw.choice(sorted(states))
    agrees(sec.open_table(path, version=version), states[version], (version, history.log))
    agrees(sec.open_table(deltalake.DeltaTable(path, version=version)), states[version], (version, history.log))


def test_statistics_prune_files(tmp_path: Path) -> None:
    """Of every type that the log has bounds of."""
    moments = [dt.datetime(2020, 1, 1 + i, tzinfo=dt.UTC) for i in range(4)]
    for i in range(4):
        data = pa.table(
            {"a": [i], "s": [f"s{i}"], "t": pa.array([moments[i]], pa.timestamp("us", "UTC")), "x": [i / 2]}
        )
        deltalake.write_deltalake(str(tmp_path), data, mode="append")
    handle = sec.open_table(tmp_path)
    for predicate in ("a = 2", "s = 's2'", "t = TIMESTAMP '2020-01-03T00:00:00Z'", "x < 0.5", "a IN (1)"):
        plan = sec.prune(handle, predicate)
        assert plan.report.stages[0].name == "files" and plan.report.stages[0].after.files == 1, predicate


@takes_seconds
def test_c8_columns_beyond_those_with_statistics(tmp_path: Path) -> None:
    """A log has statistics of the first 32 columns: of the others bounds and NULL counts are unknown, and not none."""
    for i in range(3):
        data = pa.table({f"c{j:02}": pa.array([i, None if i == 1 else i + 1], pa.int64()) for j in range(34)})
        deltalake.write_deltalake(str(tmp_path), data, mode="append")
    handle = sec.open_table(tmp_path)
    for column, files in (("c00", 1), ("c31", 1), ("c32", 3), ("c33", 3)):
        for predicate, values in ((f"{column} = 0", [0]), (f"{column} IS NULL", [None]), (f"{column} > 2", [3])):
            plan = sec.prune(handle, predicate)
            assert plan.to_arrow([column])[column].to_pylist() == values
            assert plan.report.stages[0].after.files == files, predicate


def test_a_vacuumed_file_is_missed_by_name(tmp_path: Path) -> None:
    for i in range(2):
        deltalake.write_deltalake(str(tmp_path), pa.table({"rid": [i]}), mode="append")
    plan = sec.prune(sec.open_table(tmp_path), "true")
    deltalake.DeltaTable(str(tmp_path)).optimize.compact()
    deltalake.DeltaTable(str(tmp_path)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(sec.errors.StalePlan, match="vanished"):
        plan.to_arrow()
    assert sorted(sec.prune(sec.open_table(tmp_path), "true").to_arrow()["rid"].to_pylist()) == [0, 1]


def test_the_past_before_the_log_begins(tmp_path: Path) -> None:
    deltalake.write_deltalake(str(tmp_path), pa.table({"rid": [0]}))
    with pytest.raises(UnknownSnapshot):
        sec.open_table(tmp_path, as_of="1999-12-31")
    (tmp_path / "empty" / "_delta_log").mkdir(parents=True)
    with pytest.raises(TableNotFound, match="without a commit"):
        sec.open_table(tmp_path / "empty")
