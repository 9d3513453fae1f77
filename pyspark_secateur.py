"""Lets Spark find the format "secateur" by itself: it imports every module named ``pyspark_*``."""

from secateur.io.spark.data_source import SecateurDataSource as DefaultSource

__all__ = ["DefaultSource"]
