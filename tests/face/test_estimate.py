"""What an index would cost, against the index that is then built."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import secateur as sec
from secateur.errors import InvalidOption
from secateur.maintain import estimate
from tests.support.tables import write_file

ROWS = 4000


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Eight files of two row groups, with a random id, users and a text."""
    drawn = np.random.default_rng(7)
    for i in range(8):
        columns = {
            "ts": list(range(i * ROWS, (i + 1) * ROWS)),
            "id": drawn.integers(0, 1 << 40, ROWS).tolist(),
            "user": drawn.integers(0, 5000, ROWS).tolist(),
            "text": [f"event {n} of {n % 89}" for n in drawn.integers(0, 1 << 20, ROWS).tolist()],
        }
        write_file(tmp_path / "lake" / f"{i}.parquet", columns, row_group_size=ROWS // 2)
    return tmp_path / "lake"


ASKED = {"sort_key": ["ts"], "bloom": ["id"], "postings": ["user"], "tokens": ["text"]}


@pytest.mark.parametrize("most_sampled", [estimate.MOST_SAMPLED, 200_000])
def test_a_dry_run_writes_nothing_and_comes_close(
    lake: Path, monkeypatch: pytest.MonkeyPatch, most_sampled: int
) -> None:
    monkeypatch.setattr(estimate, "MOST_SAMPLED", most_sampled)
    table = sec.open_table(lake)
    dry = sec.build_index(table, dry_run=True, **ASKED)  # type: ignore[arg-type]
    assert dry.estimate is not None
    assert (dry.estimate.sampled_files < 8) == (most_sampled == 200_000)
    assert not (lake / "_secateur").exists()
    built = sec.build_index(table, **ASKED)  # type: ignore[arg-type]
    for count in ("files", "blocks", "rows", "data_bytes", "sort_key", "bloom", "postings", "tokens", "columns"):
        assert getattr(dry, count) == getattr(built, count)
    measured = {(one.column, one.structure): one.bytes for one in built.coverage}
    expected = {(one.column, one.structure): one.bytes for one in dry.estimate.structures}
    for structure in (("id", "bloom"), ("text", "tokens")):
        assert expected[structure] == pytest.approx(measured[structure], rel=0.1)
    postings = measured["user", "postings"], expected["user", "postings"]
    assert postings[0] <= 1.1 * postings[1]  # values recur beyond a sample
    assert dry.index_bytes - postings[1] == pytest.approx(built.index_bytes - postings[0], rel=0.3)
    assert dry.is_large
    assert dry.is_large == built.is_large


def test_a_dry_run_says_how_often_n_grams_err(lake: Path) -> None:
    table = sec.open_table(lake)
    said = "n-grams keep 0.1 of all row groups if a text is one gram, 0.01 if it has a byte more"
    assert said in str(sec.build_index(table, ngram=["text"], dry_run=True).estimate)
    assert "keep 0.5 " in str(sec.build_index(table, ngram=["text"], fpr=0.5, dry_run=True).estimate)
    assert "n-grams" not in str(sec.build_index(table, tokens=["text"], dry_run=True).estimate)


def test_an_index_that_would_be_too_large_is_not_built(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = sec.open_table(lake)
    sec.build_index(table, max_bytes="90%", **ASKED)  # type: ignore[arg-type]
    before = sorted((lake / "_secateur").rglob("*"))
    with pytest.raises(InvalidOption, match=r"max_bytes allows 20.0 kB: (?s:.)* tokens of text"):
        sec.build_index(table, max_bytes="20kB", **ASKED)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match=r"max_bytes allows 1.0 kB: "):
        sec.build_index(table, max_bytes=1000, dry_run=True)
    monkeypatch.setattr(estimate.BuildEstimate, "index_bytes", 0)  # a sample that was far too small
    with pytest.raises(InvalidOption, match="allow more; nothing is published"):
        sec.build_index(table, max_bytes=20_000, **ASKED)  # type: ignore[arg-type]
    assert sorted((lake / "_secateur").rglob("*")) == before
    assert sec.describe_index(table).number == 1
    with pytest.raises(InvalidOption, match="max_bytes is 'much'"):
        sec.build_index(table, max_bytes="much")


def test_what_it_would_save(lake: Path) -> None:
    table = sec.open_table(lake)
    some = sec.prune(table, "ts = 9").to_arrow(columns=["id"])["id"][0].as_py()
    predicates = [f"id = {some}", "user = 7"]
    dry = sec.build_index(table, bloom=["id"], dry_run=True)
    assert dry.estimate is not None
    by_id, by_user = dry.estimate.savings(sec.advise(table, predicates))
    assert by_id.bytes_then < by_id.bytes_now / 4
    assert by_id.queries is not None
    assert 1 <= by_id.queries <= 2
    assert (by_user.bytes_then, by_user.queries) == (by_user.bytes_now, None)
