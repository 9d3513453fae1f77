"""``secateur connect-server`` and ``secateur run``: sessions of others, pruned."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import secateur as sec
from secateur.cli import main
from secateur.cli.serving import serve, settings_of
from tests.support.enabled_session import pruning
from tests.support.s3_server import reserved_port

CLIENT = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
frame = spark.read.parquet(sys.argv[2]).where("id = 5")
frame.explain()
print([row.id for row in frame.collect()])
"""
PROGRAM = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
frame = SparkSession.builder.getOrCreate().read.parquet(sys.argv[1]).where("id = 5")
Path(sys.argv[2]).write_text(frame._jdf.queryExecution().executedPlan().toString())
"""

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    root = tmp_path / "lake"
    root.mkdir()
    pq.write_table(pa.table({"id": range(100)}), root / "a.parquet", row_group_size=10)
    sec.build_index(sec.open_table(str(root)))
    yield str(root)
    sec.disable(spark)


def test_a_remote_client_of_a_connect_server(spark: SparkSession, lake: str) -> None:
    with reserved_port() as bound:
        port = bound.getsockname()[1]
    serve(spark, port)
    try:
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, f"sc://127.0.0.1:{port}", lake], capture_output=True, text=True, timeout=120
        )
        assert "[5]" in done.stdout, done.stderr[-2000:]
        assert "IndexPruning: 1 of 10 row groups" in done.stdout
    finally:
        spark._jvm.org.apache.spark.sql.connect.service.SparkConnectService.stop(
            spark._jvm.scala.Option.empty(), spark._jvm.scala.Option.empty()
        )


def test_a_program_that_knows_nothing_of_it(spark: SparkSession, lake: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(PROGRAM)
    out = tmp_path / "plan.txt"
    done = CliRunner().invoke(main, ["run", str(tmp_path / "app.py"), lake, str(out)])
    assert done.exit_code == 0, done.output
    assert "IndexPruning: 1 of 10 row groups" in out.read_text()
    sec.disable(spark)
    assert pruning(SparkSession.builder.getOrCreate().read.parquet(lake).where("id = 5")) == []


def test_a_program_under_spark_submit(spark: SparkSession, lake: str, tmp_path: Path) -> None:
    """Which takes only files that end in .py."""
    (tmp_path / "command.py").write_text("from secateur.cli import main\nmain()\n")
    (tmp_path / "app.py").write_text(PROGRAM)
    out = tmp_path / "plan.txt"
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
        environment.pop(name, None)
    command = [str(submit), "--master", "local[1]", str(tmp_path / "command.py"), "run", str(tmp_path / "app.py")]
    done = subprocess.run([*command, lake, str(out)], env=environment, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "IndexPruning: 1 of 10 row groups" in out.read_text()


def test_settings_without_a_value_are_refused() -> None:
    assert settings_of(["a=b=c"]) == {"a": "b=c"}
    done = CliRunner().invoke(main, ["connect-server", "--conf", "oops"])
    assert done.exit_code == 2
