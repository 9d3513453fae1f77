"""Engines that can be held to the cases, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from conformance.engine import Engine
from conformance.engines.pyiceberg_scan import PyIcebergScan
from conformance.engines.secateur_frame import SecateurFrame
from conformance.engines.secateur_scan import SecateurScan
from conformance.engines.spark_reader import SparkReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINES: dict[str, Callable[[SparkSession], Engine]] = {
    "secateur": SecateurScan,
    "secateur-spark": lambda spark: SecateurScan(spark, through_spark=True),
    "secateur-dataframe": SecateurFrame,
    "spark": SparkReader,
    "pyiceberg": lambda spark: PyIcebergScan(),
}
