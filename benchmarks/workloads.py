"""The workloads, in the order they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.bloom import needle_bloom
from benchmarks.building import build_read
from benchmarks.expressions import expressions_1m
from benchmarks.footers import footers
from benchmarks.hashing import hashing
from benchmarks.leaves import conjunction_1m, in_list_100k, leaf_int64, leaf_string
from benchmarks.listing import listing
from benchmarks.planning import plan_synthetic
from benchmarks.results import Result
from benchmarks.setting import Setting
from benchmarks.tpch_pruning import tpch_pruning


@dataclass(frozen=True)
class Workload:
    """A named measurement."""

    name: str
    description: str
    run: Callable[[Setting], Result]


WORKLOADS = (
    Workload("leaf_int64", "one comparison over 1M zone maps of bigint", leaf_int64),
    Workload("leaf_string", "one comparison over 1M zone maps of string", leaf_string),
    Workload("conjunction_1m", "three ranges ANDed over 1M zone maps", conjunction_1m),
    Workload("in_list_100k", "an IN list of 100,000 keys: parsed, bound, and over 1M zone maps", in_list_100k),
    Workload("expressions_1m", "functions, arithmetic and casts over 1M zone maps", expressions_1m),
    Workload("needle_bloom", "one value in the bloom filters of 20,000 blocks", needle_bloom),
    Workload("hashing", "MurmurHash3 of 500,000 keys", hashing),
    Workload("footers", "bounds of 4,000 column chunks from a footer", footers),
    Workload("listing", "a directory of 100,000 files listed, flat and in 300 directories", listing),
    Workload("build_read", "a file of 500,000 rows summarised, with filters of two columns", build_read),
    Workload("plan_synthetic", "prune() over an index of 100,000 blocks, warm and cold", plan_synthetic),
    Workload("tpch_pruning", "the pruning rate on TPC-H lineitem, scale factor 0.1 (needs Spark once)", tpch_pruning),
)
