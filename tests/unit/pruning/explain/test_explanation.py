"""``plan.explain(verbose=True)``: what serves every conjunct, what each structure leaves, and what is missing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from secateur.cli import main
from secateur.cli.status import on_the_command_line
from secateur.index.model import BLOOM, NGRAM, POSTINGS, TOKEN, BuildOptions, FilterOption
from secateur.io.scan.opened_table import FooterBlocks
from secateur.pruning.explain.explanation import CONSULTED, Conjunct, Structure
from tests.support.checks.chosen_stages import only_stages
from tests.support.drawn.made_tables import CONDITIONS, MADE, Made, table_of
from tests.support.profiles import examples
from tests.support.stores.local_build import index_here
from tests.support.tables import write_file

FILES, ROWS, BLOCK = 6, 400, 50
BLOCKS = FILES * ROWS // BLOCK
STAGE_OF = {
    "zone map": "zone maps",
    "gaps": "zone maps",
    "bloom": "filters",
    "postings": "filters",
    "ngram": "filters",
    "tokens": "filters",
    "partition values": "files",
}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """`ts` is clustered, `user` is not; `far` is but for one outlier in every block; `text` is of a few words."""
    rng = np.random.default_rng(5)
    for file in range(FILES):
        ts = np.arange(file * ROWS, (file + 1) * ROWS)
        data = pa.table(
            {
                "ts": ts,
                "user": rng.integers(0, 10**9, ROWS),
                "far": np.where(ts % BLOCK == BLOCK - 1, 10**6 + ts, ts),
                "text": [f"line {at} of node{at // BLOCK}" for at in ts.tolist()],
            }
        )
        write_file(tmp_path / f"half={file % 2}/{file}.parquet", data, row_group_size=BLOCK, write_page_index=True)
    return tmp_path


def indexed(lake: Path, *filters: FilterOption, gaps: tuple[str, ...] = ()) -> sec.planning.Table:
    table = sec.open_table(str(lake))
    index_here(table, BuildOptions(filters=filters, gaps=gaps, fpr=1e-6, segment_blocks=16))
    return table


def only(table: sec.planning.Table, predicate: str) -> Conjunct:
    """The one conjunct of a predicate."""
    explanation = sec.prune(table, predicate, strict=True).explanation
    (conjunct,) = explanation.conjuncts
    assert explanation.blocks == BLOCKS
    return conjunct


def structures(conjunct: Conjunct) -> dict[str, Structure]:
    return {structure.structure: structure for structure in conjunct.structures}


@examples(20, shrink=False)
@given(MADE, st.lists(CONDITIONS, min_size=1, max_size=2, unique=True))
def test_a_conjunct_leaves_what_its_own_plan_leaves(how: Made, conditions: list[str]) -> None:
    """And no structure rules out by itself what all together keep."""
    with table_of(replace(how, indexed=how.files)) as table:
        plan = sec.prune(table, " AND ".join(conditions), strict=True)
        explanation = plan.explanation
        assert explanation.blocks_left == len(plan.blocks)
        assert explanation.files_not_known == 0
        assert explanation.blocks == len(sec.inspect.blocks(table))
        for conjunct in explanation.conjuncts:
            assert conjunct.blocks_left == len(sec.prune(table, conjunct.sql, strict=True).blocks)
            for structure in conjunct.structures:
                if structure.state == CONSULTED:
                    assert structure.blocks_left is not None
                    assert conjunct.blocks_left <= structure.blocks_left <= explanation.blocks


@pytest.mark.parametrize(
    ("predicate", "structure"),
    [
        ("ts < 75", "zone map"),
        ("far BETWEEN 5000 AND 900000", "gaps"),
        ("user = 42", "bloom"),
        ("text LIKE '%node7%'", "ngram"),
        ("half = 1", "partition values"),
    ],
)
def test_what_a_structure_leaves_by_itself(lake: Path, predicate: str, structure: str) -> None:
    """As many blocks as the pipeline leaves with its stage alone."""
    filters = (FilterOption(BLOOM, "user"), FilterOption(NGRAM, "text", gram=5))
    table = indexed(lake, *filters, gaps=("far",))
    alone = structures(only(table, predicate))[structure]
    with only_stages([STAGE_OF[structure]]):
        stages = sec.prune(table, predicate, strict=True).report.stages
    (left,) = (stage.after.blocks for stage in stages if stage.name == STAGE_OF[structure])
    assert (alone.state, alone.blocks_left) == (CONSULTED, left)
    assert left is not None and left < BLOCKS


def test_bounds_without_gaps_are_counted_apart(lake: Path) -> None:
    by_name = structures(only(indexed(lake, gaps=("far",)), "far BETWEEN 5000 AND 900000"))
    assert (by_name["zone map"].blocks_left, by_name["gaps"].blocks_left) == (BLOCKS, 0)


@pytest.mark.parametrize(
    ("predicate", "arguments"),
    [
        ("user = 42", {"bloom=['user']", "postings=['user']", "gaps=['user']"}),
        ("user < 42", {"gaps=['user']"}),
        ("text LIKE '%node7%'", {"ngram=['text']"}),
        ("text LIKE '%de7%'", {"ngram={'text': 3}"}),
        ("text ILIKE '%node7%'", {"ngram={'text': {'n': 5, 'fold': True}}"}),
        ("text LIKE '% node7 %'", {"ngram=['text']", "tokens=['text']"}),
        ("text LIKE '%7%'", set()),
        ("half = 1", set()),
    ],
)
def test_what_is_missing(lake: Path, predicate: str, arguments: set[str]) -> None:
    conjunct = only(indexed(lake), predicate)
    assert {structure.argument for structure in conjunct.structures if structure.argument} == arguments
    for structure in conjunct.structures:
        if structure.argument:
            assert str(structure).endswith(f": add {structure.argument}")


def test_what_is_kept_is_not_missing(lake: Path) -> None:
    table = indexed(lake, FilterOption(BLOOM, "user"), FilterOption(POSTINGS, "user"), FilterOption(TOKEN, "text"))
    users = structures(only(table, "user = 42"))
    assert users["postings"].state == CONSULTED
    assert str(users["bloom"]) == "bloom filter of user: not consulted, as postings are exact"
    assert "tokens" not in structures(only(table, "text LIKE '%node7%'")), "no whole word follows from it"


def test_clustered_or_not(lake: Path) -> None:
    table = indexed(lake)
    assert structures(only(table, "ts = 7"))["zone map"].note == (
        f"ts is clustered, its bounds overlap those of 1 of {BLOCKS} blocks"
    )
    assert structures(only(table, "user = 7"))["zone map"].note == (
        f"user is not clustered, its bounds overlap those of {BLOCKS} of {BLOCKS} blocks"
    )


def test_what_is_covered_partly(lake: Path) -> None:
    """A file that is left out by its name is not opened, and said not to be counted."""
    table = indexed(lake, FilterOption(BLOOM, "user"))
    write_file(lake / "half=2/new.parquet", {"ts": [1], "user": [1], "far": [1], "text": ["a"]})
    plan = sec.prune(table, "user = 42 AND half < 2", strict=True)
    with patch.object(FooterBlocks, "open", side_effect=AssertionError("a data file is opened")):
        text = plan.explain(verbose=True)
    assert "files without an index entry that were not opened: 1; refresh_index(table, spark=spark)" in text
    assert "bloom filter of user: leaves 0; 1 file not in the index: refresh_index(table, spark=spark)" in text
    assert f"`half` < 2: {BLOCKS} -> {BLOCKS}" in text


def test_without_an_index(lake: Path) -> None:
    explanation = sec.prune(sec.open_table(str(lake)), "user = 42 AND rand() > 0.5").explanation
    assert "there is no index: build_index(table, spark=spark)" in explanation.conjuncts[0].structures[0].note
    assert explanation.conjuncts[1].structures == ()
    assert "rand() > 0.5" in explanation.conjuncts[1].unsupported[0]


@pytest.mark.parametrize("share", [0.0, 0.35, 0.8])
@pytest.mark.parametrize("folder", ["segments", "filters"])
def test_a_broken_index_is_explained_too(lake: Path, folder: str, share: float) -> None:
    """As far as it can be read; blocks of which it cannot are kept, and said to be."""
    table = indexed(lake, FilterOption(BLOOM, "user"), FilterOption(POSTINGS, "text"), gaps=("far",))
    for file in (lake / "_secateur" / folder).iterdir():
        data = bytearray(file.read_bytes())
        data[16 + int((len(data) - 64) * share)] ^= 0x10
        file.write_bytes(bytes(data))
    predicate = "user = 42 AND far BETWEEN 5000 AND 900000 AND half = 1 AND text = 'none'"
    plan = sec.prune(sec.open_table(table.location), predicate)
    assert plan.explanation.blocks <= BLOCKS
    kept = {(block["file"], block["row_group"]) for block in plan.blocks.to_pylist()}
    for file in plan.paths.to_pylist():
        why = plan.why(file)
        assert len(why.blocks) == ROWS // BLOCK
        assert all(block.survives == ((file, block.row_group) in kept) for block in why.blocks)
    assert sec.advise(sec.open_table(table.location), [predicate]).questions[0].now.blocks == len(kept)


def test_a_broken_snapshot_leaves_a_caution_in_the_place_of_the_explanation(lake: Path) -> None:
    indexed(lake, FilterOption(BLOOM, "user"), FilterOption(POSTINGS, "text"))
    (file,) = (lake / "_secateur" / "snapshots").iterdir()
    data, texts, parts = file.read_bytes(), [], set()
    for at in range(100, len(data), 97):
        file.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        plan = sec.prune(sec.open_table(str(lake)), "user = 42 AND text = 'none'")
        assert plan.to_arrow().num_rows == 0
        texts.append(plan.explain(verbose=True))
        parts.add(json.loads(plan.explain("json", verbose=True))["explanation"] is None)
    assert any("caution: the index is broken" in text for text in texts)
    assert parts == {False, True}


def test_as_json_and_on_the_command_line(lake: Path) -> None:
    table = indexed(lake)
    plan = sec.prune(table, "user = 42")
    as_json = json.loads(plan.explain("json", verbose=True))
    assert as_json["predicate"] == "user = 42"
    missing = [structure["argument"] for structure in as_json["explanation"]["conjuncts"][0]["structures"]]
    assert "bloom=['user']" in missing
    printed = CliRunner().invoke(main, ["prune", str(lake), "user = 42", "--explain"])
    assert on_the_command_line(str(plan.explanation)) in printed.output
    printed_json = CliRunner().invoke(main, ["prune", str(lake), "user = 42", "--explain", "--json"])
    assert json.loads(printed_json.stdout)["explanation"] == as_json["explanation"]
    assert str(plan.explanation) not in plan.explain()
