"""RLIKE of plain characters is evaluated on rows as a search for them, as a condition and as a value."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.patterns.regular_expressions import is_plain
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.rows.truth import matching_rows
from tests.support.profiles import examples

TEXTS = st.lists(st.none() | st.text("ab1_ \né", max_size=6), max_size=8)


@examples(200)
@given(TEXTS, st.text("ab1_ ", min_size=1, max_size=3))
def test_plain_patterns_are_found_where_their_characters_stand(texts: list[str | None], pattern: str) -> None:
    assert is_plain(pattern)
    batch = pa.record_batch({"s": pa.array(texts, pa.string())})
    holds = [text is not None and pattern in text for text in texts]
    for predicate, expected in (
        (f"s RLIKE '{pattern}'", holds),
        (f"if(s RLIKE '{pattern}', 1, 0) = 1", holds),
        (f"if(s RLIKE '{pattern}', 1, 0) = 0", [not holding for holding in holds]),
    ):
        assert matching_rows(bind(parse(predicate), batch.schema), batch).tolist() == expected


def test_patterns_with_a_meaning_are_not_plain() -> None:
    assert not any(map(is_plain, ("", "a.b", "a|b", "a$", "^a", "a\n", "é", "a-b", "(a)", "[a]", "a{2}", "\\w")))
