"""Plan a literal of 640 kB or more, against an eighth of it: linear work takes eight times as long."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.results import Ratio, Result, unpaired
from benchmarks.setting import Setting
from benchmarks.timing import Contender, race
from tests.support.drawn.long_literals import LONG_LITERALS

CHARACTERS = 640_000
PARTS = 8


def long_literals(setting: Setting) -> Result:
    """Plan over one row group, so that the literal is all the work. Quadratic work would take 64 times as long."""
    characters = setting.scaled(CHARACTERS, least=PARTS * 100)
    path = Path(setting.directory) / "literals"
    path.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"s": ["ab", "b", None]}), path / "rows.parquet")
    table = sec.open_table(str(path))
    ratios = [_ratio(table, name, shape, characters, setting) for name, shape in LONG_LITERALS.items()]
    return Result({"characters": characters}, tuple(ratios))


def _ratio(table: sec.Table, name: str, shape: Callable[[str], str], characters: int, setting: Setting) -> Ratio:
    long, short = (_planned(table, shape("ab" * (count // 2))) for count in (characters, characters // PARTS))
    timing, floor = race([long, short], setting.repetitions)
    return unpaired(name, timing, f"the same of {characters // PARTS} characters", floor)


def _planned(table: sec.Table, predicate: str) -> Contender:
    return lambda: sec.prune(table, predicate)
