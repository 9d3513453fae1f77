"""Searches for parts of log messages by n-grams and tokens: blocks left, bytes taken, and the time of a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

import secateur as sec
from benchmarks.building.indexing import filter_bytes
from benchmarks.logs.log_tables import (
    LEAST,
    LINES,
    RARELY,
    LogTable,
    blocks_with,
    distinct_messages,
    log_index,
    log_table,
)
from benchmarks.planning.needle_table import Read, and_of_rows, reads_of
from benchmarks.planning.scale_tables import changing
from benchmarks.planning.synthetic_table import FILE_BLOCKS, SyntheticTable
from benchmarks.results import Kept, Ratio, Result, against, timed
from benchmarks.setting import Setting
from benchmarks.timing import race
from secateur.index.build.options import NGRAM_BYTES
from secateur.index.filters.bloom import positions
from secateur.index.filters.bloom_matrix import BloomMatrices
from secateur.index.filters.ngrams import grams_within, hash_parts, token_key
from secateur.index.filters.size_class import shape_of
from secateur.index.model import NGRAM, TOKEN, BuildOptions, FilterOption
from secateur.pruning.predicate.nodes import Predicate
from secateur.scan import Scan
from tests.support.stores.local_build import index_here

BLOCKS, FILES = 1_000, 10  # of the table of Parquet files
MANY_BLOCKS = 100_000
LEFT = 0.05  # goal: share of the blocks
SECONDS = 0.005
GRAMS = (4, 5, 6)
TRIED = 50  # literals that are timed

Ask = Callable[[str], Predicate]


def ngram_log(setting: Setting) -> Result:
    """Literals of six characters or more that at most one block of a hundred holds; tokens that are as rare."""
    blocks = setting.scaled(BLOCKS, least=4 * FILES)
    logs = log_table(setting, blocks, FILES)
    ratios: list[Ratio] = []
    kept: list[Kept] = []
    options = [FilterOption(NGRAM, "message", gram=n) for n in GRAMS] + [FilterOption(TOKEN, "message")]
    for option in options:
        measured, left = _pruned(logs, option)
        ratios, kept = [*ratios, *measured], [*kept, left]
    many = setting.scaled(MANY_BLOCKS, least=400)
    notes = []
    for option in (FilterOption(NGRAM, "message", gram=NGRAM_BYTES), FilterOption(TOKEN, "message")):
        timings, note = _timed(many, option, setting)
        ratios += timings
        notes.append(note)
    sizes = {"blocks": blocks, "literals": len(logs.literals), "tokens": len(logs.words), "many_blocks": many}
    return Result(sizes, tuple(ratios), tuple(kept), tuple(notes))


def _named(option: FilterOption) -> str:
    return f"{option.gram}-grams" if option.kind == NGRAM else "tokens"


def _asking(option: FilterOption) -> Ask:
    if option.kind == TOKEN:
        return lambda text: sec.has_token("message", text)
    return lambda text: sec.col("message").contains(text)


def _pruned(logs: LogTable, option: FilterOption) -> tuple[list[Ratio], Kept]:
    """The share of blocks that a filter leaves, and its bytes."""
    table, is_indexed = logs.open(option)
    if not is_indexed:
        index_here(table, BuildOptions(filters=(option,)))
    needles, ask = (logs.words if option.kind == TOKEN else logs.literals), _asking(option)
    held = sum(map(len, needles.values()))
    left = 0
    for text, blocks in needles.items():
        survivors = sec.prune(table, ask(text), strict=True).blocks
        numbers_found = _ordinals(survivors, logs.blocks)
        if not set(blocks) <= set(numbers_found):
            raise AssertionError(f"of the blocks that hold {text!r} some are lost")
        left += len(numbers_found)
    total = logs.blocks * len(needles)
    name, size = _named(option), filter_bytes(table) / logs.blocks
    ratios = [
        Ratio(f"blocks left by {name}", left / total, "of all", "the share that is the goal", LEFT, goal=1.0),
        Ratio(f"blocks left by {name}", left / total, "of all", "those that hold a match", held / total),
        Ratio(f"{name}, bytes per block", size, "B", "messages of a block", _message_bytes(logs)),
    ]
    predicate = f"{len(needles)} {'tokens' if option.kind == TOKEN else 'literals'}, {name}"
    return ratios, Kept("logs", predicate, "blocks", total, held, {"secateur": left})


def _ordinals(blocks: pa.Table, total: int) -> list[int]:
    """The numbers of blocks, counted through the table: all files but the last have equally many."""
    per_file = -(-total // FILES)
    files = [int(name.rpartition("-")[2].partition(".")[0]) for name in blocks["file"].to_pylist()]
    return [file * per_file + group for file, group in zip(files, blocks["row_group"].to_pylist(), strict=True)]


def _message_bytes(logs: LogTable) -> float:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(min((logs.directory / "data").glob("*.parquet")))
    return float(file.read_row_group(0, columns=["message"]).nbytes)


def _timed(many: int, option: FilterOption, setting: Setting) -> tuple[list[Ratio], str]:
    """Plans of literals over a table that is all index, against reading the same rows."""
    table, directory = log_index(setting, many, option)
    texts = list(_rare(many, option))
    first = _find(table, _asking(option), texts[0])
    catalog = first.opened.catalog
    assert catalog.snapshot is not None
    bloom_matrices = catalog.snapshot.bloom_matrices(0)
    assert bloom_matrices is not None
    floors = [_reads(bloom_matrices, option, text) for text in texts]
    ask = _asking(option)
    whole, floor = race(
        [
            changing(lambda call: _find(table, ask, texts[call % len(texts)])),
            changing(lambda call: [and_of_rows(directory, ranges) for ranges in floors[call % len(texts)]]),
        ],
        setting.repetitions,
    )
    name = f"{_named(option)}, {len(table.files.size) * FILE_BLOCKS:,} blocks"
    ratios = [
        against(f"prune(), {name}", whole, SECONDS),
        timed(f"prune(), {name}", whole, "os.pread of the same rows, ANDed by numpy", floor),
    ]
    last = _find(table, ask, texts[-1])
    rows = sum(map(len, floors[-1]))
    stages = ", ".join(f"{stage.name} {stage.seconds * 1000:.2f} ms" for stage in last.report.stages)
    return ratios, f"{name}, {texts[-1]!r}: {rows} rows, {last.report.reads.stored_bytes:,} B; {stages}"


def _find(table: SyntheticTable, ask: Ask, text: str) -> Scan:
    return sec.prune(table, ask(text), strict=True, session_time_zone="UTC")


def _rare(many: int, option: FilterOption) -> Mapping[str, Sequence[int]]:
    """Up to :data:`TRIED` texts that few of the distinct blocks hold, each with one of these blocks."""
    messages = distinct_messages(many)
    rng = np.random.default_rng(13)
    rare: dict[str, Sequence[int]] = {}
    for line in rng.integers(0, len(messages), 2 * TRIED).tolist():
        text = messages[line].as_py()
        words = [word for word in text.replace("=", " ").replace("/", " ").split() if len(word) >= LEAST]
        word = words[int(rng.integers(len(words)))]
        if option.kind == TOKEN and not word.isalnum():
            continue
        if len(rare) < TRIED and len(blocks_with(messages, word, LINES)) <= max(1, RARELY * len(messages) / LINES):
            rare[word] = [line // LINES]
    return rare


def _reads(bloom_matrices: BloomMatrices, option: FilterOption, text: str) -> list[list[Read]]:
    """The rows of every matrix that a look-up reads."""
    parts = grams_within(text.encode(), option.gram) if option.kind == NGRAM else [token_key(text.encode())]
    hashes = hash_parts(parts, grams=option.kind == NGRAM)
    shapes = map(shape_of, bloom_matrices.size_class.tolist())
    return [
        reads_of(bloom_matrices, matrix, np.unique(positions(hashes, shape.probes, shape.bits)))
        for matrix, shape in enumerate(shapes)
    ]
