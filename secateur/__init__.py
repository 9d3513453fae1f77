"""secateur: a pruning engine for big tables on Spark.

>>> import secateur as sc
>>> table = sc.open_table("lake/events")                              # doctest: +SKIP
>>> sc.build_index(table, spark=spark, sort_key=["ts"], bloom=["user_id"])  # doctest: +SKIP
>>> plan = sc.prune(table, "user_id = 42")                            # doctest: +SKIP
>>> plan.to_spark(spark)                                              # doctest: +SKIP
"""

from secateur.errors import SecateurError
from secateur.index.zone_table import evaluate
from secateur.io.disk_cache import DiskCache
from secateur.maintain import (
    IndexSnapshot,
    Verification,
    build_index,
    describe_index,
    drop_index,
    refresh_index,
    vacuum_index,
    verify_index,
)
from secateur.planning import open_table, prune
from secateur.pruning.predicate.expressions import call_function, col, when

__version__ = "0.1.0"
__all__ = [
    "DiskCache",
    "IndexSnapshot",
    "SecateurError",
    "Verification",
    "build_index",
    "call_function",
    "col",
    "describe_index",
    "drop_index",
    "evaluate",
    "open_table",
    "prune",
    "refresh_index",
    "vacuum_index",
    "verify_index",
    "when",
]
