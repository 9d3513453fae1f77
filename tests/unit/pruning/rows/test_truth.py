"""A condition on a column that a dictionary encodes is evaluated once per entry, and means the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.errors import EvaluationError, UnsupportedPredicate
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.rows import truth
from secateur.pruning.rows.truth import matching_rows, possible_rows
from tests.support.profiles import examples

CONDITIONS = [
    "s = 'b'",
    "s IN ('a', 'ä', '')",
    "s IS NULL",
    "s <=> NULL",
    "s LIKE '%b%'",
    "s RLIKE '^[a-c]+$'",
    "lower(s) = 'ä'",
    "upper(s) LIKE 'İ%'",
    "length(s) > 1",
    "coalesce(s, 'b') = 'b'",
    "CAST(s AS INT) = 7",
    "NOT (s = 'b' OR s = 'c')",
    "(s > 'a') IS UNKNOWN",
    "s = t",
    "s = 'b' AND i > 1",
    "concat(s, t) LIKE '%bb%'",
    "t = x'62'",
    "i = 1",
]
TEXTS = st.sampled_from([None, "", "a", "b", "bb", "c", "ä", "Ä", "İ", "7", "x7"])


@given(
    st.lists(st.tuples(TEXTS, TEXTS, st.integers(0, 3)), max_size=30),
    st.integers(0, 30),
    st.sampled_from(CONDITIONS),
    st.booleans(),
)
@examples(300)
def test_encoded_texts_give_the_truth_of_their_values(
    rows: list[tuple[str | None, str | None, int]], begin: int, condition: str, ansi: bool
) -> None:
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    types = pa.string(), pa.binary() if "x'" in condition else pa.string(), pa.int32()
    encode = (lambda text: None if text is None else text.encode()) if types[1] == pa.binary() else (lambda text: text)
    s, t, i = columns
    plain = pa.record_batch([pa.array(s, types[0]), pa.array(map(encode, t), types[1]), pa.array(i, types[2])], "sti")
    encoded = pa.record_batch([plain["s"].dictionary_encode(), plain["t"].dictionary_encode(), plain["i"]], "sti")
    predicate = bind(parse(condition), plain.schema, ansi=ansi)
    assert possible(predicate, encoded.slice(begin)) == possible(predicate, plain.slice(begin))


def possible(predicate: Predicate, batch: pa.RecordBatch) -> list[int] | str:
    try:
        return truth.truth(predicate, batch).tolist()
    except UnsupportedPredicate:
        return "only Spark knows"


def test_each_entry_is_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated: list[int] = []
    inside = truth.value_outcomes
    monkeypatch.setattr(
        truth, "value_outcomes", lambda ranges, values: evaluated.append(len(values)) or inside(ranges, values)
    )
    texts = pa.array(np.array(["a", "b", "c"])[np.arange(1000) % 3])
    batch = pa.record_batch({"s": texts.dictionary_encode()})
    predicate = bind(parse("s = 'b' OR s = 'z'"), pa.schema({"s": pa.string()}))
    assert matching_rows(predicate, batch).tolist() == (np.arange(1000) % 3 == 1).tolist()
    assert possible_rows(predicate, batch).sum() == 333
    assert set(evaluated) == {4}, "three entries, and NULL"


def test_a_date_that_python_does_not_know_is_named() -> None:
    batch = pa.record_batch({"d": pa.array([0, 2**31 - 1], pa.int32()).cast(pa.date32())})
    predicate = bind(parse("CAST(d AS TIMESTAMP) > TIMESTAMP '2020-01-01 00:00:00'"), batch.schema)
    with pytest.raises(EvaluationError, match=r"d = .*2147483647"):
        matching_rows(predicate, batch)
