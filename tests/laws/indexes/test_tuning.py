"""A tuned index gives the same answers as none: random tables, logs and budgets."""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur import plan_log
from secateur.errors import IndexMissing
from tests.support.drawn.made_tables import MADE, PREDICATES, Made, table_of
from tests.support.profiles import examples
from tests.support.tables import write_file

ORDER = [("p", "ascending"), ("i", "ascending"), ("n", "ascending"), ("text", "ascending")]


@examples(60)
@given(
    how=MADE,
    predicates=st.lists(PREDICATES, min_size=1, max_size=4),
    budget=st.sampled_from([0, 100, 400, "20%", "1000%"]),
    with_literals=st.booleans(),
)
def test_a_tuned_index_loses_no_row(how: Made, predicates: list[str], budget: int | str, with_literals: bool) -> None:
    literals = {plan_log.LITERALS_VARIABLE: "1" if with_literals else ""}
    with table_of(how) as table, tempfile.TemporaryDirectory() as folder, patch.dict("os.environ", literals):
        log = Path(folder) / "plans.jsonl"
        plan_log.log_to(log)
        try:
            before = [sec.prune(table, predicate, use_index=False).to_arrow() for predicate in predicates]
        finally:
            plan_log.log_to(None)
        try:
            tuning = sec.tune(table, budget=budget, log=log, apply=True)
        except IndexMissing:
            return
        assert tuning.bytes_then <= tuning.bytes_now or tuning.to_drop
        for predicate, rows in zip(predicates, before, strict=True):
            plan = sec.prune(table, predicate, strict=True)
            assert plan.to_arrow().sort_by(ORDER) == rows.sort_by(ORDER)
        assert sec.verify_index(table).sound


def test_a_table_without_rows_has_nothing_to_tune(tmp_path: Path) -> None:
    write_file(tmp_path / "lake" / "0.parquet", pa.table({"i": pa.array([], pa.int64())}))
    table = str(tmp_path / "lake")
    sec.build_index(table, bloom=["i"])
    plan_log.log_to(tmp_path / "plans.jsonl")
    try:
        sec.prune(table, "i = 1")
    finally:
        plan_log.log_to(None)
    tuning = sec.tune(table, budget="5%", log=tmp_path / "plans.jsonl", apply=True)
    assert tuning.plans == 0
    assert [item.column for item in tuning.to_keep] == ["i"]
    assert sec.prune(table, "i = 1").count() == 0
