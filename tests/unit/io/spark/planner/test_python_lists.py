from __future__ import annotations

from pyspark.sql import SparkSession

from secateur.io.spark.planner.python_lists import unchanging


def test_a_pair_differs_in_the_bytes_of_a_size_alone(spark: SparkSession) -> None:
    pairs = unchanging(spark.sparkContext)
    assert [len(small) - len(large) for small, large in pairs] == [0, 0]
    assert [sum(a != b for a, b in zip(small, large, strict=True)) for small, large in pairs] == [1, 2]
