"""The rows that came after a snapshot are those that were written after it, whatever has become of their files."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.catalog import Catalog

import secateur as sec
from secateur.errors import IncomparableLiteral, MixedRewrite, UnsupportedPredicate
from secateur.io.scan.opened_table import open_snapshot_of
from secateur.io.scan.planned_scan import Settings
from secateur.io.scan.planning import plan_scan
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.report import Faults
from tests.support.drawn.row_histories import APPEND, HISTORIES, RowHistory
from tests.support.formats.iceberg_tables import new_history
from tests.support.profiles import by_profile, takes_seconds

SEEDS = by_profile(quick=range(2), full=range(25), nightly=range(250), fast=range(1))
STEPS = 9
PREDICATES = {
    "true": lambda rid: True,
    "rid % 3 = 0": lambda rid: rid % 3 == 0,
    "rid BETWEEN 5 AND 20": lambda rid: 5 <= rid <= 20,
    "s = 'text 3'": lambda rid: rid % 7 == 3,
}


def a_history(kind: str, at: Path, seed: int) -> RowHistory:
    draw = random.Random(seed)
    history = HISTORIES[kind](at, draw)
    history.step([APPEND])
    return history


def check(history: RowHistory, commit: int, predicate: str) -> None:
    """Every way to the rows after a commit, or the refusal where a compaction has mixed them."""
    table, since, expected = history.writer.open(), history.snapshots[commit], history.after(commit)
    if expected is None:
        with pytest.raises(MixedRewrite, match=f"since={since}"):
            sec.prune(table, predicate, since=since)
        return
    expected = [rid for rid in expected if PREDICATES[predicate](rid)]
    use_index = history.draw.random() < 0.5
    plan = sec.prune(table, predicate, since=since, use_index=use_index, strict=use_index, audit=1.0)
    said = (commit, predicate, history.log, plan.explain())
    assert sorted(plan.to_arrow(["rid"])["rid"].to_pylist()) == expected, said
    assert plan.count() == len(expected), said
    assert plan.snapshot == history.snapshots[-1], said
    first = sec.prune(table, predicate, since=since, order_by="rid DESC", limit=4).to_arrow(["rid"])
    assert first["rid"].to_pylist() == expected[::-1][:4], said
    keys = pa.table({"rid": list(range(0, history.rid, 2))})
    joined = sec.prune(table, predicate, since=since, keys=keys, on="rid")
    assert sorted(joined.to_arrow(["rid"])["rid"].to_pylist()) == [rid for rid in expected if rid % 2 == 0], said
    of_all = sec.prune(table, "true", since=since)
    assert len(of_all.paths) == of_all.report.since.files
    assert of_all.report.since.live_files == len(history.live)
    affected = of_all.affected(exact=True)
    assert not affected.rewritten, said  # every row matches
    assert len(affected.whole) == of_all.report.since.files, said


@takes_seconds
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", HISTORIES)
def test_rows_after_any_snapshot_of_a_history(tmp_path: Path, kind: str, seed: int) -> None:
    """C2, C5: also where the index is of an earlier snapshot, or is given up."""
    history = a_history(kind, tmp_path, seed)
    built = history.draw.randrange(STEPS)
    for step in range(STEPS):
        if step == built and history.live and kind != "directory":
            sec.build_index(history.writer.open(), bloom=["rid"])
        history.step()
    if not history.live:
        history.step([APPEND])
    for commit in range(len(history.snapshots)):
        check(history, commit, history.draw.choice(list(PREDICATES)))


@takes_seconds
@pytest.mark.parametrize("kind", HISTORIES)
def test_of_appends_the_new_rows_are_those_of_now_without_those_of_then(tmp_path: Path, kind: str) -> None:
    """A pipeline that goes on from its plan's snapshot sees every row once."""
    history = a_history(kind, tmp_path, 7)
    seen: list[int] = []
    since = None
    for _ in range(5):
        plan = sec.prune(history.writer.open(), "true", since=since)
        seen += plan.to_arrow(["rid"])["rid"].to_pylist()
        since = plan.snapshot
        history.step([APPEND])
    assert sorted(seen + sec.prune(history.writer.open(), "true", since=since).to_arrow()["rid"].to_pylist()) == (
        history.rids
    )


ASKED = {
    "rid": ["rid % 3 = 0", "rid BETWEEN 10 AND 40"],
    "k": ["k = 3", "k > 1", "k IS NULL"],
    "s": ["s = 'ab'", "s > 'b'"],
    "ts": ["ts >= TIMESTAMP '1970-01-01 12:00:00'"],
    "day": ["day < DATE '1970-01-01'", "day IS NOT NULL"],
    "amount": ["amount > 1000"],
}


@takes_seconds
@pytest.mark.parametrize("seed", SEEDS)
def test_some_files_of_a_table_are_pruned_as_they_are_among_all(catalog: Catalog, seed: int) -> None:
    """C28: with partition values, bounds and specs of the chosen files, none of the others'."""
    history = new_history(catalog, seed)
    for _ in range(10):
        history.step()
    table = sec.open_table(history.table.refresh()).snapshot()
    listing, draw = table.listing(dt.UTC), np.random.default_rng(seed)
    files = table.declared_schema
    assert files is not None
    matches = 0
    for predicate in (text for name in files.names for text in ASKED.get(name, ())):
        try:
            every = sec.prune(table, predicate, use_index=False).to_arrow(["rid", "_file"])
        except (UnsupportedPredicate, IncomparableLiteral):
            continue  # a column of another type took the name
        chosen = np.flatnonzero(draw.random(len(listing.size)) < 0.5)
        some = listing.take(chosen)
        assert some.left_out + some.size.sum() == listing.size.sum()
        opened = open_snapshot_of(table, dt.UTC, Faults(strict=True), listing=some)
        rows = plan_scan(table, parse(predicate), predicate, Settings(), opened).to_arrow(["rid"])
        expected = every.filter(pc.is_in(every["_file"], value_set=some.paths))
        assert sorted(rows["rid"].to_pylist()) == sorted(expected["rid"].to_pylist()), (predicate, history.log)
        matches += len(expected)
    assert matches
