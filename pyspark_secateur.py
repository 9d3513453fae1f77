"""Lets Spark find the format "secateur" by itself: it imports every module named ``pyspark_*``, and asks for names."""

import sys

try:
    from pyspark.sql.datasource import DataSource
except ModuleNotFoundError:
    raise ImportError(
        'format("secateur") needs Spark 4.0 or newer, as Spark 3.5 has no Python data sources: '
        "use sec.dataframe(spark, table), sec.enable(spark) or sec.prune(...).to_spark(spark)"
    ) from None


class DefaultSource(DataSource):
    """The format "secateur". What reads tables is imported when Spark opens one, in another process."""

    def __new__(cls, options: dict[str, str]) -> DataSource:  # type: ignore[misc]
        """Return the source of one table. Raises ModuleNotFoundError if the Python that Spark runs lacks a module."""
        try:
            from secateur.io.spark.data_source import SecateurDataSource
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"{error}. Spark runs {sys.executable}: set PYSPARK_PYTHON to the Python in which secateur is "
                "installed",
                name=error.name,
            ) from None
        return SecateurDataSource(options)

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "secateur"


__all__ = ["DefaultSource"]
