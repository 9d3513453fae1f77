"""Make the file in tests/data that Spark wrote with bloom filters.

From the root: ``python -m tests.support.programs.make_spark_bloom``.

The file is kept so that tests need no Spark to read it: parquet-java writes most bloom filters in existing files.
Dictionaries are off, because parquet-java writes no filter for a fully dictionary-encoded chunk.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from secateur.session import local_session

FILE = Path(__file__).parents[2] / "data" / "spark-bloom.parquet"
ROWS = 300
COLUMNS = {
    "byte": "CAST(id % 256 - 128 AS TINYINT)",
    "short": "CAST(id * 100 - 15000 AS SMALLINT)",
    "int": "CAST(id * 7 - 1000 AS INT)",
    "long": "id * 10000000000 - 1",
    "float": "CAST(id / 3 AS FLOAT)",
    "double": "id / 7D",
    "zero": "IF(id % 2 = 0, -0D, 0D)",  # all become -0.0: Spark's optimiser takes both for the same
    "string": "IF(id % 10 = 0, NULL, repeat(concat('é', id), CAST(id % 5 AS INT)))",
    "binary": "unhex(hex(id * id))",
    "decimal9": "CAST(id / 8 - 10 AS DECIMAL(9, 2))",
    "decimal18": "CAST(id * 123456.7891 - 1000 AS DECIMAL(18, 4))",
    "decimal30": "CAST(id * 1234567890123456789.01 - 1000 AS DECIMAL(30, 2))",
    "date": "DATE_ADD(DATE'1990-01-01', CAST(id * 50 AS INT))",
    "instant": "timestamp_micros(id * 1234567891011 - 1000)",
    "local": "CAST(timestamp_micros(id * 1234567891011) AS TIMESTAMP_NTZ)",
    "nested": "IF(id % 7 = 0, NULL, named_struct('inner', id))",
    "full": "id * 3",  # in a filter for 10 values
}


def main() -> None:
    spark = local_session(spark_sql_parquet_outputTimestampType="TIMESTAMP_MICROS")
    enabled = {
        f"parquet.bloom.filter.enabled#{name}": "true" for name in ("nested.inner", *COLUMNS) if name != "nested"
    }
    options = {
        **enabled,
        **{key.replace("enabled", "expected.ndv"): str(ROWS) for key in enabled},
        "parquet.bloom.filter.expected.ndv#full": "10",
        "parquet.enable.dictionary": "false",
    }
    frame = spark.range(0, ROWS, 1, 1).selectExpr(*(f"{value} AS `{name}`" for name, value in COLUMNS.items()))
    with tempfile.TemporaryDirectory() as directory:
        frame.write.options(**options).parquet(f"{directory}/written")
        (written,) = Path(directory, "written").glob("*.parquet")
        FILE.parent.mkdir(exist_ok=True)
        shutil.copyfile(written, FILE)
    spark.stop()


if __name__ == "__main__":
    main()
