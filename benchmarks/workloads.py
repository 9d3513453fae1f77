"""The workloads, in the order they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.building.appends import appends
from benchmarks.building.building import build_filters, build_read
from benchmarks.building.one_append import one_append
from benchmarks.formats.delta import open_delta, plan_delta
from benchmarks.formats.iceberg_planning import plan_iceberg
from benchmarks.kernels.expressions import expressions_1m
from benchmarks.kernels.footers import footers
from benchmarks.kernels.hashing import hashing
from benchmarks.kernels.leaves import conjunction_1m, in_list_100k, leaf_int64, leaf_string
from benchmarks.kernels.literals import long_literals
from benchmarks.logs.log_search import ngram_log
from benchmarks.planning.inverted import postings
from benchmarks.planning.keys import keys_1m, keys_merge
from benchmarks.planning.listing import listing
from benchmarks.planning.needle_peers import needle_beside
from benchmarks.planning.needles import false_blocks, needle_cold, needle_in_1000, needle_warm
from benchmarks.planning.outliers import outliers
from benchmarks.planning.planning import plan_synthetic
from benchmarks.planning.repeat import repeat
from benchmarks.planning.scale import plan_nothing_pruned, plan_range
from benchmarks.planning.scale_cold import plan_cold, plan_memory
from benchmarks.planning.scale_shapes import plan_clustered, plan_in_100k
from benchmarks.planning.threads import plan_threads
from benchmarks.planning.top_n import topn_clustered, topn_filtered, topn_unclustered
from benchmarks.planning.tune import tune
from benchmarks.pruning_rates import pruning_rates
from benchmarks.reading.encoded_texts import read_encoded_texts
from benchmarks.reading.late_reads import read_late
from benchmarks.reading.one_row import one_row
from benchmarks.reading.ordered_answers import ordered_answers
from benchmarks.reading.ordered_postings import ordered_postings
from benchmarks.reading.page_reads import read_10k_contiguous, read_everything, read_one_row
from benchmarks.reading.read_peers import read_peers
from benchmarks.reading.read_sweep import read_sweep, read_sweep_s3
from benchmarks.reading.row_postings import row_postings
from benchmarks.reading.s3_lookup import lookup_s3
from benchmarks.results import Result
from benchmarks.setting import Setting
from benchmarks.spark.delta_lookup import lookup_delta
from benchmarks.spark.delta_merge import keys_delta
from benchmarks.spark.enabled_sql import lookup_sql
from benchmarks.spark.first_query import first_query
from benchmarks.spark.merge_sql import keys_spark
from benchmarks.spark.metadata_sql import count_sql, limit_sql
from benchmarks.spark.session_overhead import session_overhead
from benchmarks.spark.source_lookup import lookup_source
from benchmarks.spark.spark_scans import join_small_side, lookup_spark, scan_spark
from benchmarks.tpch.tpch_needles import tpch_needles
from benchmarks.tpch.tpch_pruning import tpch_pruning


@dataclass(frozen=True)
class Workload:
    """A named measurement."""

    name: str
    description: str
    run: Callable[[Setting], Result]
    has_jars: bool = False  # in its session: it gets a process of its own where others run before it


WORKLOADS = (
    Workload("leaf_int64", "one comparison over 1M zone maps of bigint", leaf_int64),
    Workload("leaf_string", "one comparison over 1M zone maps of string", leaf_string),
    Workload("conjunction_1m", "three ranges ANDed over 1M zone maps", conjunction_1m),
    Workload("in_list_100k", "an IN list of 100,000 keys: parsed, bound, and over 1M zone maps", in_list_100k),
    Workload("expressions_1m", "functions, arithmetic and casts over 1M zone maps", expressions_1m),
    Workload("long_literals", "prune(): a literal of 640 kB, against an eighth of it", long_literals),
    Workload("needle_warm", "prune(): one value that one of 1M blocks holds, by filters, warm", needle_warm),
    Workload("needle_cold", "the same, nothing of the index in memory but its snapshot", needle_cold),
    Workload("needle_in_1000", "prune(): an IN list of 1,000 such values", needle_in_1000),
    Workload("false_blocks", "blocks of 1M that filters leave for an absent value", false_blocks),
    Workload(
        "needle_beside", "against filters block by block, in memory and in Parquet files (needs Spark)", needle_beside
    ),
    Workload("postings", "prune(): one of 100M keys by postings, which are exact", postings),
    Workload(
        "ngram_log", "parts of log messages by n-grams and tokens: blocks left, bytes, plans over 100,000", ngram_log
    ),
    Workload("plan_iceberg", "prune() of an Iceberg table of 100,000 files, against its own planners", plan_iceberg),
    Workload("hashing", "MurmurHash3 of 500,000 keys, and of grams and tokens of as many lines", hashing),
    Workload("outliers", "blocks left by bounds and by the widest gaps, with outliers and several modes", outliers),
    Workload("footers", "bounds of 4,000 column chunks from a footer", footers),
    Workload("read_one_row", "one of 1M rows of 20 columns by its pages (beside DataFusion)", read_one_row),
    Workload("read_10k_contiguous", "10,000 rows of 1M in a row by their pages", read_10k_contiguous),
    Workload("read_everything", "all rows, and k scattered ones, by their pages", read_everything),
    Workload("read_late", "plans that keep from nothing to nearly all of 1M rows, read late", read_late),
    Workload("read_encoded_texts", "texts that dictionaries encode, against pyarrow's whole read", read_encoded_texts),
    Workload("read_sweep", "surviving row groups of 1,000 to 500,000 rows, against pyarrow's whole read", read_sweep),
    Workload("read_sweep_s3", "the same on a loopback S3, 15 ms a request", read_sweep_s3),
    Workload("read_peers", "questions planned and read, against DuckDB, DataFusion and Polars", read_peers),
    Workload("one_row", "prune() and read one of 1M rows by an unclustered key, on disk and on S3", one_row),
    Workload("row_postings", "postings of rows against postings of blocks: time, bytes read, size", row_postings),
    Workload("ordered_answers", "counts, ends and first rows by an unordered double, beside bounds", ordered_answers),
    Workload("ordered_postings", "ranges of an unordered double, beside bounds and pyarrow's scan", ordered_postings),
    Workload("open_delta", "the log of a Delta table of 100,000 files read, against deltalake", open_delta),
    Workload("plan_delta", "prune() of a Delta table of 100,000 files, against deltalake and Delta", plan_delta, True),
    Workload("repeat", "a predicate asked again, in other processes too, and after a tenth was appended", repeat),
    Workload("listing", "a directory of 100,000 files listed, flat and in 300 directories", listing),
    Workload("build_read", "a file of 500,000 rows summarised, with filters of two columns", build_read),
    Workload("build_filters", "filters of 4M keys and 400,000 log lines, column by column", build_filters),
    Workload("appends", "an index that grew by 1,000 appends, optimized, beside one that was built at once", appends),
    Workload("one_append", "one file appended to a table of 10M blocks, and its index refreshed", one_append),
    Workload("tune", "bytes read with what tune() chooses, beside the best of all sets of structures", tune),
    Workload("plan_synthetic", "prune() over 100,000 blocks with filters and pages, warm", plan_synthetic),
    Workload("plan_range", "prune(): three unclustered ranges over 1M and 20M blocks, warm", plan_range),
    Workload("plan_clustered", "prune(): a range on the sort key over 1M and 20M blocks, warm", plan_clustered),
    Workload("plan_nothing_pruned", "prune(): three ranges that keep all of 1M blocks, warm", plan_nothing_pruned),
    Workload("plan_in_100k", "prune(): an IN list of 100,000 keys against 1M blocks, warm", plan_in_100k),
    Workload("keys_1m", "prune(): a million join keys, and as many pairs, against 1M blocks, warm", keys_1m),
    Workload("keys_merge", "prune(): 100,000 join keys against 20M blocks, clustered and not, warm", keys_merge),
    Workload("plan_threads", "prune(): 1, 2, 4 threads and 2 processes, 1M and 2,000 blocks", plan_threads),
    Workload("topn_clustered", "prune(): the newest ten rows of 20M blocks by the sort key, warm", topn_clustered),
    Workload("topn_unclustered", "prune(): the ten greatest of an unclustered column, 1M blocks", topn_unclustered),
    Workload("topn_filtered", "the newest ten log lines of a kind, beside DuckDB, DataFusion and Spark", topn_filtered),
    Workload("plan_cold", "prune() in a new process: two columns of 50 over 1M blocks", plan_cold),
    Workload("plan_memory", "prune(): what two columns of 20M blocks take of memory", plan_memory),
    Workload("lookup_spark", "a value of an unclustered column in Spark, 200 files of 10 row groups", lookup_spark),
    Workload("lookup_source", 'the same by format("secateur"), beside a Python data source of one row', lookup_source),
    Workload("first_query", "the first query of a session in Spark, beside Spark alone", first_query),
    Workload("lookup_sql", "the same by plain SQL with enable(), on a directory and on Iceberg", lookup_sql, True),
    Workload("lookup_delta", "the same on Delta, by SQL and by a plan, beside Delta's own reader", lookup_delta, True),
    Workload("keys_spark", "MERGE of 1,000 keys into 20M rows of Iceberg with enable()", keys_spark, True),
    Workload("keys_delta", "the same into Delta, with deletion vectors and without", keys_delta, True),
    Workload("limit_sql", "LIMIT, with ORDER BY and without, by plain SQL with enable()", limit_sql, True),
    Workload("count_sql", "count, min, max, sum and avg with a filter by plain SQL with enable()", count_sql, True),
    Workload("session_overhead", "planning with enable(): no index; an index of 100k files", session_overhead, True),
    Workload("scan_spark", "queries in Spark that need all of 20M rows", scan_spark),
    Workload("join_small_side", "20M rows in Spark joined with a few on an unclustered column", join_small_side),
    Workload("tpch_needles", "order keys and parts of comments in TPC-H, scale factor 0.1: blocks kept", tpch_needles),
    Workload("lookup_s3", "prune() and read one of 4M rows on S3 with 15 ms latency (needs Spark and s3a)", lookup_s3),
    Workload("tpch_pruning", "the pruning rate on TPC-H lineitem, scale factor 0.1 (needs Spark once)", tpch_pruning),
    Workload(
        "pruning_rates",
        "scans of events, logs, TPC-H, TPC-DS: kept beside the ideal (needs Spark)",
        pruning_rates,
    ),
)
