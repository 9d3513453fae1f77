"""The daemon of Spark's Python workers, which imports what they need before it forks them.

Spark ends a worker that had nothing to do for a minute, and a new one would import it all again: 2 to 3 s of processor
time, for some hundred workers in a run of the tests.
"""

from __future__ import annotations

import gc

import pandas  # noqa: F401
import pyarrow.parquet  # noqa: F401
import pyspark.sql.pandas.types
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import secateur.io.spark.file_reader
import secateur.scan  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # workers collect garbage after every task
    manager()
