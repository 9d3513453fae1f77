"""This project as an ordinary DataFrame of Spark, whose every query asks the index."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import secateur as sec
from conformance.engine import Hints, Place
from conformance.engines.secateur_scan import SecateurScan
from conformance.engines.spark_reader import SparkReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SecateurFrame(SparkReader):
    """``sec.dataframe(spark, table).where(...)``, with Spark's filter push-down on, as is its default.

    By its own read path, or by the public one, which is there for Spark Connect.
    """

    name = "secateur-dataframe"

    def __init__(self, spark: SparkSession, via: str = "auto") -> None:
        super().__init__(spark)
        self.version = f"secateur {sec.__version__}"
        self._scan, self._via = SecateurScan(spark), via

    def index(self, place: Place, hints: Hints) -> None:
        self._scan.index(place, hints)

    def refresh(self, place: Place) -> None:
        self._scan.refresh(place)

    def drop(self, place: Place) -> None:
        self._scan.drop(place)

    def index_files(self, place: Place) -> Sequence[Path]:
        return self._scan.index_files(place)

    def _frame(self, place: Place) -> DataFrame:
        return sec.dataframe(self.spark, self._scan.table(place), via=self._via)
