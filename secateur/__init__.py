"""secateur: a pruning engine for big tables on Spark.

>>> import secateur as sec
>>> table = sec.open_table("lake/events")                              # doctest: +SKIP
>>> sec.build_index(table, spark=spark, sort_key=["ts"], bloom=["user_id"])  # doctest: +SKIP
>>> plan = sec.prune(table, "user_id = 42")                            # doctest: +SKIP
>>> plan.to_spark(spark)                                              # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from secateur.io.tables.openers import add_opener

if TYPE_CHECKING:
    from secateur import inspect
    from secateur.advising import advise
    from secateur.api import aggregate, open_table, prune
    from secateur.enabling import QueryPlan, disable, enable, last_plans
    from secateur.errors import SecateurError
    from secateur.index.zones.zone_table import evaluate
    from secateur.io.storage.disk_cache import DiskCache
    from secateur.io.tables.table import Table
    from secateur.maintain.build import build_index
    from secateur.maintain.describe import IndexSnapshot, describe_index
    from secateur.maintain.optimize import Optimized, optimize_index
    from secateur.maintain.refresh import Refreshed, refresh_index
    from secateur.maintain.register import register_index
    from secateur.maintain.stream_listener import stream_listener
    from secateur.maintain.vacuum import drop_index, vacuum_index
    from secateur.maintain.verify import Verification, verify_index
    from secateur.maintain.watch import Look, watch
    from secateur.maintain.written import index_written
    from secateur.pruning.explain.advice import Advice
    from secateur.pruning.explain.reclustering import Reclustering
    from secateur.pruning.explain.tuning import Tuning
    from secateur.pruning.predicate.expressions import call_function, col, has_token, when
    from secateur.pruning.report import Report
    from secateur.pruning.reporters import add_reporter, remove_reporter
    from secateur.reclustering import plan_recluster
    from secateur.reporting import IndexReport, report_index
    from secateur.scan import Scan
    from secateur.transparent import dataframe
    from secateur.tuning import tune
    from secateur.workloads import Workload, workload

__version__ = "0.1.0"
__all__ = [
    "Advice",
    "DiskCache",
    "IndexReport",
    "IndexSnapshot",
    "Look",
    "Optimized",
    "QueryPlan",
    "Reclustering",
    "Refreshed",
    "Report",
    "Scan",
    "SecateurError",
    "Table",
    "Tuning",
    "Verification",
    "Workload",
    "add_reporter",
    "advise",
    "aggregate",
    "build_index",
    "call_function",
    "col",
    "dataframe",
    "describe_index",
    "disable",
    "drop_index",
    "enable",
    "evaluate",
    "has_token",
    "index_written",
    "inspect",
    "last_plans",
    "open_table",
    "optimize_index",
    "plan_recluster",
    "prune",
    "refresh_index",
    "register_index",
    "remove_reporter",
    "report_index",
    "stream_listener",
    "tune",
    "vacuum_index",
    "verify_index",
    "watch",
    "when",
    "workload",
]

_NAMES = {  # by module, which is imported when one of them is asked for: a first look-up needs few
    "secateur.advising": ("advise",),
    "secateur.api": ("aggregate", "open_table", "prune"),
    "secateur.errors": ("SecateurError",),
    "secateur.pruning.predicate.expressions": ("call_function", "col", "has_token", "when"),
    "secateur.pruning.reporters": ("add_reporter", "remove_reporter"),
    "secateur.reporting": ("IndexReport", "report_index"),
    "secateur.enabling": ("QueryPlan", "disable", "enable", "last_plans"),
    "secateur.transparent": ("dataframe",),
    "secateur.tuning": ("tune",),
    "secateur.reclustering": ("plan_recluster",),
    "secateur.workloads": ("Workload", "workload"),
    "secateur.pruning.explain.reclustering": ("Reclustering",),
    "secateur.pruning.explain.tuning": ("Tuning",),
    "secateur.pruning.explain.advice": ("Advice",),
    "secateur.index.zones.zone_table": ("evaluate",),
    "secateur.io.storage.disk_cache": ("DiskCache",),
    "secateur.io.tables.table": ("Table",),
    "secateur.pruning.report": ("Report",),
    "secateur.scan": ("Scan",),
    "secateur.maintain.build": ("build_index",),
    "secateur.maintain.describe": ("IndexSnapshot", "describe_index"),
    "secateur.maintain.optimize": ("Optimized", "optimize_index"),
    "secateur.maintain.refresh": ("Refreshed", "refresh_index"),
    "secateur.maintain.register": ("register_index",),
    "secateur.maintain.vacuum": ("drop_index", "vacuum_index"),
    "secateur.maintain.verify": ("Verification", "verify_index"),
    "secateur.maintain.stream_listener": ("stream_listener",),
    "secateur.maintain.watch": ("Look", "watch"),
    "secateur.maintain.written": ("index_written",),
}


_MODULES = ("inspect",)


def _open_frame(frame: Any, **settings: Any) -> Any:
    from secateur.io.spark.frame_table import open_frame

    return open_frame(frame, **settings)


add_opener("pyspark", "DataFrame", _open_frame)

if not TYPE_CHECKING:  # type checkers know the names above, and report any other

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return import_module(f"secateur.{name}")
        for module, names in _NAMES.items():
            if name in names:
                value: object = getattr(import_module(module), name)
                globals()[name] = value
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
