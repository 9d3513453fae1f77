"""What tune() chooses, beside the best of all sets of structures: by the bytes that the logged queries really read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.results import Ratio, Result
from benchmarks.setting import Setting
from secateur.index.advise.choose import best_of_all
from secateur.io.scan.index_coverage import covered
from secateur.io.scan.opened_table import opened_strictly
from secateur.io.scan.planned_scan import PlannedScan
from secateur.io.tables.table import Table
from secateur.plan_log import LITERALS_VARIABLE, log_to
from secateur.pruning.bounds.outcomes import survives
from secateur.pruning.explain.causes import answers_of
from secateur.pruning.explain.explanation import STRUCTURES
from secateur.pruning.explain.replaced_zones import with_gaps
from secateur.pruning.predicate.bound import Leaf
from secateur.pruning.predicate.bound_walks import fields
from secateur.pruning.questions import questions
from secateur.pruning.stages.survivors import evaluate_refuted
from secateur.pruning.statistics import Blocks

FILES, BLOCKS, ROWS = 20, 20, 500  # files of a table, blocks of a file, rows of a block
GOAL = 1.1  # times the bytes that the best set leaves
BUDGETS = (0.02, 0.05, 0.1, 0.2, 0.4)  # of the bytes of all structures together
WORDS = [f"{first}{second}" for first in ("cache", "shard", "queue", "route") for second in ("full", "lost", "late")]

TEXTS = ["trace", "host", "message"]
LOG = "_plans.jsonl"
_PARTS = ("postings", "others")

Structure = tuple[str, str]  # its name, and its column


@dataclass(frozen=True)
class Asked:
    """A table, what is asked of it and how often, and every structure that serves some of that."""

    name: str
    rows: Callable[[np.random.Generator, np.ndarray], pa.Table]  # given the numbers of the rows
    queries: Callable[[np.random.Generator, int], Sequence[tuple[str, int]]]  # given the number of rows
    structures: Mapping[str, list[str]]
    has_literals: bool = False  # whether they are logged as they are


def tune(setting: Setting) -> Result:
    """Three logs of plans, one of them with literals as they are, each within several budgets."""
    files, budgets = setting.scaled(FILES, least=4), BUDGETS[-setting.scaled(len(BUDGETS)) :]
    ratios, notes = [], []
    for asked in WORKLOADS:
        root = setting.prepared_index(f"tune-{asked.name}-{files}", partial(write, asked=asked, files=files))
        log_queries(asked, root, files)
        truth = truth_of(asked, root, files)
        for share in budgets:
            ratio, note = beside_best(asked, root, truth, round(share * sum(truth.sizes.values())))
            ratios.append(ratio)
            notes.append(note)
    return Result(
        {"files": files, "blocks": files * BLOCKS, "rows": files * BLOCKS * ROWS}, tuple(ratios), (), tuple(notes)
    )


def beside_best(asked: Asked, root: Path, truth: Truth, budget: int) -> tuple[Ratio, str]:
    """What all queries read with the structures that tune() chooses, beside the best that a budget allows."""
    tuning = sec.tune(_opened(root, "plain"), budget=budget, log=root / LOG)
    chosen = frozenset((item.structure, item.column) for item in (*tuning.to_build, *tuning.to_keep))
    taken, most = sum(truth.sizes[structure] for structure in chosen), truth.cost(frozenset())
    best = best_of_all(truth.sizes, truth.cost, max(budget, taken))
    name = f"{asked.name}, {budget:,} bytes"
    ratio = Ratio(
        f"{name}: read with what tune() chose", truth.cost(chosen), "B", "the best set", truth.cost(best), goal=GOAL
    )
    share = f"{truth.cost(chosen) / most:.1%} of the bytes that bounds leave"
    return ratio, f"{name}: {share}, with {taken:,} bytes of {_listed(chosen)}; the best set is {_listed(best)}"


def _listed(chosen: frozenset[Structure]) -> str:
    return ", ".join(" of ".join(structure) for structure in sorted(chosen)) or "nothing"


# ---- what queries really read ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Truth:
    """What the logged queries read with any set of structures, and the bytes that these take."""

    sizes: Mapping[Structure, int]
    reads: Sequence[Callable[[frozenset[Structure]], float]]  # of every query, times how often it is asked

    def cost(self, chosen: frozenset[Structure]) -> float:
        """The bytes that all queries read with some structures."""
        return sum(read(chosen) for read in self.reads)


def truth_of(asked: Asked, root: Path, files: int) -> Truth:
    """Ask indexes with all structures for the blocks that each of them leaves."""
    plain, *others = (_bytes(_opened(root, index)) for index in ("plain", *_PARTS))
    sizes: dict[Structure, int] = {}
    for name, columns in asked.structures.items():
        for column in columns:
            key = ("zone map", column) if name == "gaps" else (name, column)
            sizes[name, column] = max(other.get(key, 0) for other in others) - plain.get(key, 0)
    tables = [_opened(root, index) for index in _PARTS]
    queries = _queries(asked, files)
    return Truth(sizes, [_reads([sec.prune(t, text) for t in tables], times) for text, times in queries])


def _bytes(table: Table) -> dict[Structure, int]:
    return {(item.structure, item.column): item.bytes for item in covered(opened_strictly(table))}


def _reads(plans: Sequence[PlannedScan], times: int) -> Callable[[frozenset[Structure]], float]:
    """Return what a query reads, given the structures there are, by all blocks of the table."""
    predicate = plans[0].predicate
    refuted: dict[tuple[Structure, Leaf], np.ndarray] = {}
    for plan in plans:
        catalog = plan.opened.catalog
        blocks, order = _every_block(plan)
        for leaf, hits in answers_of(predicate, catalog, catalog.everywhere(None)).items():
            for question, hit in product(questions(leaf), hits):
                structure = STRUCTURES[hit.kind], str(question.column)
                refuted[structure, leaf] = ~blocks.among(hit.numbers)[order]
    every, order = _every_block(plans[-1])
    every = every.take(order)
    gaps = {("gaps", str(field)): field for field in fields(predicate)}
    serving = frozenset(gaps) | {structure for structure, _ in refuted}

    @cache
    def read(chosen: frozenset[Structure]) -> float:
        flags = {leaf: [f for (s, of), f in refuted.items() if of == leaf and s in chosen] for _, leaf in refuted}
        together = {leaf: np.logical_or.reduce(of_leaf) for leaf, of_leaf in flags.items() if of_leaf}
        units = with_gaps(every, {field: None for structure, field in gaps.items() if structure not in chosen})
        return times * float(every.byte_count[survives(evaluate_refuted(predicate, units, together))].sum())

    return lambda chosen: read(chosen & serving)


def _every_block(plan: PlannedScan) -> tuple[Blocks, np.ndarray]:
    """Return all blocks, and their order by file and row group: indexes number them differently."""
    blocks = plan.opened.catalog.blocks_of(np.ones(len(plan.paths), bool))
    return blocks, np.lexsort((blocks.row_group, blocks.file))


# ---- tables and logs -------------------------------------------------------------------------------------------------


def write(path: Path, asked: Asked, files: int) -> None:
    """Write a table, an index of bounds alone, and two with every structure: beside postings, nothing else is asked."""
    rng = np.random.default_rng(11)
    for i in range(files):
        numbers = np.arange(i * BLOCKS * ROWS, (i + 1) * BLOCKS * ROWS)
        pq.write_table(asked.rows(rng, numbers), path / f"{i:03}.parquet", row_group_size=ROWS)
    sec.build_index(_opened(path, "plain"), sort_key=["ts"])
    kept = asked.structures
    sec.build_index(_opened(path, "postings"), sort_key=["ts"], postings=kept.get("postings", []))
    sec.build_index(
        _opened(path, "others"),
        sort_key=["ts"],
        bloom=kept.get("bloom", []),
        ngram=kept.get("ngram", []),
        tokens=kept.get("tokens", []),
        gaps=kept.get("gaps", []),
    )


def log_queries(asked: Asked, root: Path, files: int) -> None:
    """Log the queries of a table, planned by bounds alone."""
    log = root / LOG
    log.unlink(missing_ok=True)
    log_to(log)
    before = os.environ.get(LITERALS_VARIABLE, "")
    os.environ[LITERALS_VARIABLE] = "1" if asked.has_literals else ""
    try:
        for text, times in _queries(asked, files):
            for _ in range(times):
                sec.prune(_opened(root, "plain"), text)
    finally:
        os.environ[LITERALS_VARIABLE] = before
        log_to(None)


def _opened(root: Path, index: str) -> Table:
    return sec.open_table(str(root), index_location=str(root / f"_{index}"), freshness=float("inf"))


def _queries(asked: Asked, files: int) -> Sequence[tuple[str, int]]:
    return asked.queries(np.random.default_rng(12), files * BLOCKS * ROWS)


def _events(rng: np.random.Generator, numbers: np.ndarray) -> pa.Table:
    n = len(numbers)
    return pa.table(
        {
            "ts": numbers,
            "user": _user(numbers),
            "device": _user(numbers) // 7,
            "shop": rng.integers(0, 3_000, n),
            "price": np.where(np.arange(n) % ROWS == 3, 10**9, rng.integers(0, 100, n) + numbers // ROWS % 97 * 1_000),
        }
    )


def _user(numbers: np.ndarray) -> np.ndarray:
    """A value that few rows share, in no order."""
    return numbers * 2_654_435_761 % 1_000_003


def _user_of(number: int) -> int:
    return int(_user(np.array([number]))[0])


def _of_events(rng: np.random.Generator, rows: int) -> list[tuple[str, int]]:
    users, starts = _user(rng.integers(0, rows, 12)).tolist(), rng.integers(0, rows // 2, 4).tolist()
    return [
        *((f"user = {user}", 4) for user in users[:6]),
        *(
            (f"device = {user // 7} AND ts >= {start} AND ts < {start + rows // 4}", 3)
            for user, start in zip(users[6:10], starts, strict=True)
        ),
        *((f"shop IN ({shop}, {shop + 1})", 1) for shop in rng.integers(0, 2_999, 4).tolist()),
        *((f"price BETWEEN {price} AND {price + 900}", 2) for price in (rng.integers(0, 97, 4) * 1_000).tolist()),
    ]


def _logs(rng: np.random.Generator, numbers: np.ndarray) -> pa.Table:
    n = len(numbers)
    words = np.array(WORDS)[rng.integers(0, len(WORDS), n)]
    traces = [f"{trace:08x}" for trace in _user(numbers).tolist()]
    hosts = rng.integers(0, 800, n)
    return pa.table(
        {
            "ts": numbers,
            "trace": traces,
            "host": [f"host-{host}" for host in hosts.tolist()],
            "message": [
                f"{word} serving {_user(i)}ms0 behind proxy{h}"
                for i, word, h in zip(numbers, words, hosts, strict=True)
            ],
        }
    )


def _of_logs(rng: np.random.Generator, rows: int) -> list[tuple[str, int]]:
    numbers, hosts = rng.integers(0, rows, 8).tolist(), rng.integers(0, 800, 6).tolist()
    return [
        *((f"trace = '{_user_of(i):08x}'", 3) for i in numbers[:4]),
        *((f"host = 'host-{host}'", 2) for host in hosts[:3]),
        *((f"message LIKE '%{_user_of(i)}ms0%'", 2) for i in numbers[4:]),
        *((f"has_token(message, 'proxy{host}')", 2) for host in hosts[3:]),
    ]


def _orders(rng: np.random.Generator, numbers: np.ndarray) -> pa.Table:
    n = len(numbers)
    columns = {name: _user(numbers + shift) for name, shift in (("buyer", 0), ("seller", 10**6), ("parcel", 10**7))}
    return pa.table({"ts": numbers, **columns, "store": rng.integers(0, 400, n), "amount": rng.integers(0, 10**6, n)})


def _of_orders(rng: np.random.Generator, rows: int) -> list[tuple[str, int]]:
    buyers, parcels = _user(rng.integers(0, rows, 8)).tolist(), _user(rng.integers(0, rows, 4) + 10**7).tolist()
    return [
        *((f"buyer = {buyer} OR seller = {buyer}", 3) for buyer in buyers[:4]),
        *((f"parcel = {parcel}", 2) for parcel in parcels),
        *((f"buyer = {buyer} AND store = {store}", 1) for buyer, store in zip(buyers[4:], range(4), strict=True)),
        *((f"store = {store} AND amount > 900000", 1) for store in rng.integers(0, 400, 4).tolist()),
    ]


def _values(*columns: str) -> dict[str, list[str]]:
    return {"bloom": [*columns], "postings": [*columns]}


WORKLOADS = (
    Asked("events", _events, _of_events, {**_values("user", "device", "shop"), "gaps": ["price"]}),
    Asked("logs", _logs, _of_logs, {**_values("trace", "host"), "ngram": TEXTS, "tokens": TEXTS}, has_literals=True),
    Asked("orders", _orders, _of_orders, _values("buyer", "seller", "parcel", "store")),
)
