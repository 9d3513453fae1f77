"""The tables of the lake demo: events of a web shop, in many files in order of arrival, and the shop's accounts.

Only times are sorted, because events arrive in order: a file holds those of one minute, and some files also events of
the hour before. A user's events are all over the table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

BLOCKS_OF_FILE, ROWS_OF_BLOCK = 2, 2_000
ROWS_OF_FILE = BLOCKS_OF_FILE * ROWS_OF_BLOCK
USERS = 1_000_000
ACCOUNTS = 5_000
EPOCH = 1_767_225_600_000_000  # 2026-01-01 in microseconds
MINUTE = 60_000_000
LATE_EVERY = 20  # files
LATE = 0.002  # the share of a file's events that are up to an hour late
MULTIPLIER = 7_368_787  # a prime: it scatters users over the rows
RARE = "deadlock detected"
RARE_EVERY = 50  # files
LEVELS = {"INFO": 0.9, "WARN": 0.08, "ERROR": 0.02}
ACTIONS = (
    "viewed",
    "added to basket",
    "removed from basket",
    "paid for",
    "returned",
    "searched for",
    "rated",
    "shared",
)
TIERS = ("free", "basic", "plus")
BEST = "founder"  # the tier of few accounts
BEST_ACCOUNTS = 3

EVENTS, PEOPLE = "events", "accounts"


def write_lake(directory: Path, files: int, on_file: Callable[[int], None]) -> None:
    """Write the events and the accounts, each into a directory of that name; report how many files are done."""
    done = count(1)
    for name in (EVENTS, PEOPLE):
        (directory / name).mkdir(parents=True)

    def write(number: int) -> None:
        path = directory / EVENTS / f"part-{number:05d}.parquet"
        written = {"row_group_size": ROWS_OF_BLOCK, "compression": "zstd", "write_page_index": True}
        pq.write_table(events_of(number), path, **written)
        on_file(next(done))

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(write, range(files)))
    pq.write_table(accounts(files), directory / PEOPLE / "accounts.parquet")


def events_of(file: int) -> pa.Table:
    """Return the rows of one file."""
    rng, n = np.random.default_rng((29, file)), ROWS_OF_FILE
    row = np.arange(file * n, (file + 1) * n)
    is_late = (rng.random(n) < LATE) & (file % LATE_EVERY == 0)
    late = np.where(is_late, rng.integers(0, 60 * MINUTE, n), 0)
    at = EPOCH + file * MINUTE + rng.integers(0, MINUTE, n) - late
    return pa.table(
        {
            "ts": pa.array(np.sort(at), pa.timestamp("us", "UTC")),
            "event_id": row,
            "user_id": row * MULTIPLIER % USERS,
            "level": _picked(rng, list(LEVELS), list(LEVELS.values())),
            "amount": pa.array(np.round(rng.pareto(2.5, n) * 20, 2)),
            "message": _messages(rng, file),
        }
    )


def _messages(rng: np.random.Generator, file: int) -> pa.Array:
    n = ROWS_OF_FILE
    text = pc.binary_join_element_wise(
        "customer",
        _picked(rng, ACTIONS),
        _number(rng, "product-", 80_000),
        _number(rng, "in ", 900),
        _number(rng, "ms, page ", 60),
        " ",
    )
    if file % RARE_EVERY != RARE_EVERY // 5:
        return text
    is_rare = pa.array(np.arange(n) == int(rng.integers(n)))
    return pc.if_else(is_rare, pc.binary_join_element_wise(text, RARE, ": "), text)


def _picked(rng: np.random.Generator, choices: Sequence[str], shares: Sequence[float] | None = None) -> pa.Array:
    return pa.array(choices).take(pa.array(rng.choice(len(choices), ROWS_OF_FILE, p=shares)))


def _number(rng: np.random.Generator, before: str, most: int) -> pa.Array:
    return pc.binary_join_element_wise(before, pa.array(rng.integers(0, most, ROWS_OF_FILE)).cast(pa.string()), "")


def accounts(files: int) -> pa.Table:
    """Return the accounts of some users. Few have the best tier, and those have events."""
    step = USERS // ACCOUNTS
    users = np.arange(ACCOUNTS) * step
    tiers = [TIERS[i % len(TIERS)] for i in range(ACCOUNTS)]
    rows = (files * ROWS_OF_FILE * (2 * i + 1) // (2 * BEST_ACCOUNTS) for i in range(BEST_ACCOUNTS))
    best = [row * MULTIPLIER % USERS for row in rows]
    return pa.table({"user_id": [*users, *best], "tier": [*tiers, *([BEST] * BEST_ACCOUNTS)]})
