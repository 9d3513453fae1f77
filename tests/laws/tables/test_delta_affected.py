"""Which files of a Delta table a DELETE leaves, drops or rewrites, by their live rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

import secateur as sec
from conformance.delta_log import inline_vector
from tests.support.formats.delta_tables import LoggedTable, numbered
from tests.support.profiles import examples

FILES, ROWS = 4, 8
HOLDS: dict[str, Callable[[int], bool]] = {
    "rid >= 12": lambda i: i >= 12,
    "rid BETWEEN 8 AND 15": lambda i: 8 <= i <= 15,
    "s = 'text 3'": lambda i: i % 7 == 3,
    "NOT (rid > 20 OR s = 'text 1')": lambda i: not (i > 20 or i % 7 == 1),
    "rid < 0": lambda i: False,
    "rid >= 0": lambda i: True,
}


@examples(40)
@given(gone=st.lists(st.sets(st.integers(0, ROWS - 1)), min_size=FILES, max_size=FILES), is_indexed=st.booleans())
def test_c44_every_file_is_where_its_live_rows_say(gone: list[set[int]], is_indexed: bool) -> None:
    with TemporaryDirectory() as directory:
        logged = LoggedTable(Path(directory) / "t", numbered(0, 0).schema)
        added = logged.append(*(numbered(ROWS * n, ROWS * (n + 1)) for n in range(FILES)))
        for action, positions in zip(added, gone, strict=True):
            if positions:
                logged.delete(action, inline_vector(sorted(positions)))
        table = sec.open_table(str(logged.directory))
        if is_indexed:
            sec.build_index(table, bloom=["rid", "s"])
        live = {
            action["add"]["path"]: [ROWS * n + i for i in range(ROWS) if i not in positions]
            for n, (action, positions) in enumerate(zip(added, gone, strict=True))
        }
        for predicate, holds in HOLDS.items():
            plan = sec.prune(table, predicate, strict=True)
            affected, exact = plan.affected(), plan.affected(exact=True)
            assert sorted([*affected.untouched, *affected.whole, *affected.rewritten]) == sorted(live)
            for path, rows in live.items():
                truth = [holds(row) for row in rows]
                assert not (path in affected.untouched and any(truth)), predicate
                assert not (path in affected.whole and not all(truth)), predicate
                if truth:
                    place = exact.whole if all(truth) else exact.rewritten if any(truth) else exact.untouched
                    assert path in place, (predicate, path, exact)


@pytest.mark.parametrize("version", [1, 2])
def test_versions_have_files_of_their_own(tmp_path: Path, version: int) -> None:
    logged = LoggedTable(tmp_path / "t", numbered(0, 0).schema)
    (first,) = logged.append(numbered(0, 8))
    (second,) = logged.append(numbered(8, 16))
    affected = sec.prune(sec.open_table(str(logged.directory), version=version), "rid >= 4").affected(exact=True)
    assert affected.rewritten == [first["add"]["path"]]
    assert affected.whole == ([second["add"]["path"]] if version == 2 else [])
