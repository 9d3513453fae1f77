"""What the tests share: one Spark session, which is the oracle, and a way to write tables."""

from __future__ import annotations

import gc
import itertools
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark import SparkContext

from secateur.io.scan.kept import answers
from secateur.io.scan.kept.verdict_memory import BYTES_VARIABLE, DIRECTORY_VARIABLE, MEMORY
from secateur.session import local_session
from tests.support.formats.delta_runtime import CATALOG, DeltaRuntime, delta_runtime
from tests.support.formats.hudi_runtime import CATALOG as HUDI_CATALOG
from tests.support.formats.hudi_runtime import HudiRuntime, hudi_runtime
from tests.support.formats.iceberg_runtime import Runtime, iceberg_runtime
from tests.support.formats.iceberg_tables import catalog_in
from tests.support.older_spark import as_in_spark_4
from tests.support.profiles import FULL, PROFILE
from tests.support.s3_server import S3Server, reserved_port, s3_server, set_environment
from tests.support.tables import WriteTable, write_file

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyspark.sql import SparkSession


def pytest_report_header() -> str:
    """What is told first of a run."""
    return f"profile: {PROFILE}"


MARKS = {
    "spark": "spark",
    "iceberg": "iceberg",
    "delta": "delta",
    "hudi": "hudi",
    "s3": "s3",
}  # fixture -> the mark of the tests that take it
ROOMS = ("house", "life", "laws", "harm", "face")  # by what their modules take, the most first; the others follow


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test by what it needs, which its fixtures tell: ``-m "not spark"`` needs no Java.

    Modules that need Java come first, and then those of the rooms where tests take longest, so that all processes end
    at about the same time.
    """
    for item in items:
        for fixture in MARKS.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARKS[fixture])
    in_java = {item.path for item in items if item.get_closest_marker("spark") is not None}
    items.sort(key=lambda item: (item.path not in in_java, rank_of(item.path)))


def rank_of(path: Path) -> int:
    """The place of a module's room among the rooms."""
    room = path.relative_to(Path(__file__).parent).parts[0]
    return ROOMS.index(room) if room in ROOMS else len(ROOMS)


def pytest_collection_finish() -> None:
    """Leave thousands of collected tests out of every later collection of garbage."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Take them back, for the interpreter to clear when it ends."""
    gc.unfreeze()


@pytest.fixture(scope="session", autouse=True)
def quick_jvms() -> None:
    """Every JVM, those of child processes too, maps its classes from the file that `make test` writes, if it is there.

    In the quick profile it compiles with its first compiler alone. Queries are many and run once each: it halves the
    processor time of Spark (test_tpch_sql: 136 to 69 s). The 48 MB that it then has for compiled code are full after
    some minutes, and what it throws away for more is compiled again. One thread collects garbage: the heaps are small
    (7 % less, 47.7 to 44.6 s). The classes: a start and a first query take 4.7 s of processor time instead of 8.9.
    """
    options = [] if FULL else ["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m", "-XX:+UseSerialGC"]
    options += ["-Xms1g", "-Xmn512m", "-XX:MetaspaceSize=512m"]  # of 325 s they spent 23 collecting garbage
    classes = Path(sys.prefix) / "classes.jsa"
    if classes.exists() and classes.stat().st_size:
        options += [f"-XX:SharedArchiveFile={classes}", "-Xlog:disable"]
    if options:
        os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(options))


@pytest.fixture(scope="session", autouse=True)
def disk_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A cache on disk for the tests, instead of that of whoever runs them."""
    os.environ["SECATEUR_CACHE_DIR"] = str(tmp_path_factory.mktemp("disk-cache"))


@pytest.fixture(autouse=True)
def forgetting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads leave no verdicts, which would hide what statistics prune, but in tests that take `remembering`.

    Nothing is kept for other processes either, whatever the environment says.
    """
    monkeypatch.setenv(BYTES_VARIABLE, "0")
    for name in (DIRECTORY_VARIABLE, answers.BYTES_VARIABLE, answers.DIRECTORY_VARIABLE):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def remembering(forgetting: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads leave verdicts as they do by default; there are none at first."""
    monkeypatch.delenv(BYTES_VARIABLE)
    MEMORY.clear()


@pytest.fixture(scope="session")
def runtime(request: pytest.FixtureRequest) -> Runtime:
    """Iceberg's Spark runtime, which is looked for where a test asks for it."""
    return iceberg_runtime() if is_asked(request, "iceberg") else Runtime(None, "no test asks for it")


@pytest.fixture(scope="session")
def delta_jars(request: pytest.FixtureRequest) -> DeltaRuntime:
    """Delta's jars, which are looked for where a test asks for them."""
    return delta_runtime() if is_asked(request, "delta") else DeltaRuntime((), "no test asks for it")


@pytest.fixture(scope="session")
def hudi_bundle(request: pytest.FixtureRequest) -> HudiRuntime:
    """Hudi's bundle, which is looked for where a test asks for it."""
    return hudi_runtime() if is_asked(request, "hudi") else HudiRuntime(None, "no test asks for it")


def is_asked(request: pytest.FixtureRequest, name: str) -> bool:
    """Whether some test of this run takes a fixture."""
    return any(name in getattr(item, "fixturenames", ()) for item in request.session.items)


@pytest.fixture(scope="session")
def s3_port() -> Iterator[socket.socket]:
    """A port for an S3 server, and the environment that leads clients there; Spark's processes inherit it."""
    with reserved_port() as bound:
        set_environment(bound.getsockname()[1])
        yield bound


@pytest.fixture(scope="session")
def s3(s3_port: socket.socket) -> Iterator[S3Server]:
    """An S3 server on this machine, with a bucket; credentials and endpoint are in the environment."""
    with s3_server(s3_port, "lake") as running:
        yield running


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory,
    runtime: Runtime,
    delta_jars: DeltaRuntime,
    hudi_bundle: HudiRuntime,
    s3_port: socket.socket,
) -> Iterator[SparkSession]:
    """The oracle, without two of its optimisations that lose rows.

    Its push-down prunes by Parquet's bounds, which leave NaN out. Its elimination of common subexpressions takes
    ``x = 0.0`` and ``x = -0.0`` in one projection for the same and then uses the result before it is computed.
    """
    of_formats = delta_jars.with_settings(runtime.settings(str(tmp_path_factory.mktemp("lake"))))
    of_formats = hudi_bundle.with_settings(of_formats)
    session = local_session(
        spark_driver_memory="2g",  # several run side by side
        spark_sql_parquet_filterPushdown="false",
        spark_sql_subexpressionElimination_enabled="false",
        spark_sql_files_openCostInBytes="1048576",
        spark_sql_parquet_datetimeRebaseModeInRead="CORRECTED",  # as is Spark 4's default: 3.5 refuses old dates
        spark_sql_parquet_int96RebaseModeInRead="CORRECTED",
        spark_sql_parquet_datetimeRebaseModeInWrite="CORRECTED",
        spark_sql_parquet_int96RebaseModeInWrite="CORRECTED",
        spark_default_parallelism="2",
        spark_python_daemon_module="tests.support.programs.warm_daemon",
        spark_sql_warehouse_dir=str(tmp_path_factory.mktemp("warehouse")),
        **of_formats,
    )
    session.sparkContext.setLogLevel("OFF")  # errors are the answers of some tests
    as_in_spark_4()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def iceberg(spark: SparkSession, runtime: Runtime) -> SparkSession:
    """The session, with Iceberg's SQL and a catalog of Hadoop tables, ``lake``."""
    if runtime.jar is None:
        pytest.skip(runtime.reason)
    return spark


@pytest.fixture(scope="session")
def delta(spark: SparkSession, delta_jars: DeltaRuntime) -> SparkSession:
    """A session of the same Spark with Delta's SQL and its catalog."""
    if not delta_jars.jars:
        pytest.skip(delta_jars.reason)
    session = spark.newSession()
    session.conf.set(*CATALOG)
    for name in ("databricks.delta.snapshotPartitions", "sql.sources.parallelPartitionDiscovery.parallelism"):
        session.conf.set(f"spark.{name}", "2")  # tables are small
    for name in ("spark.sql.parquet.filterPushdown", "spark.sql.subexpressionElimination.enabled"):
        session.conf.set(name, "false")
    return session


@pytest.fixture(scope="session")
def hudi(spark: SparkSession, hudi_bundle: HudiRuntime) -> SparkSession:
    """A session of the same Spark with Hudi's SQL and its catalog."""
    if hudi_bundle.jar is None:
        pytest.skip(hudi_bundle.reason)
    session = spark.newSession()
    session.conf.set(*HUDI_CATALOG)
    for name in ("spark.sql.parquet.filterPushdown", "spark.sql.subexpressionElimination.enabled"):
        session.conf.set(name, "false")
    return session


@pytest.fixture(autouse=True)
def no_java(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests without the mark ``spark`` start no JVM in this process."""
    if request.node.get_closest_marker("spark") is None:
        monkeypatch.setattr(f"{SparkContext.__module__}.launch_gateway", refuse_java)


def refuse_java(*arguments: object) -> None:
    """Stand in the way of a JVM."""
    raise AssertionError("this test starts a JVM: let it take the fixture `spark`, or mark it pytest.mark.spark")


@pytest.fixture(autouse=True)
def utc(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests that use Spark start and end in UTC and in ANSI mode."""
    yield
    if "spark" in request.fixturenames:
        conf = request.getfixturevalue("spark").conf
        conf.set("spark.sql.session.timeZone", "UTC")
        conf.unset("spark.sql.ansi.enabled")


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """A catalog of PyIceberg without tables."""
    return catalog_in(tmp_path)


@pytest.fixture
def write_table(tmp_path: Path) -> WriteTable:
    """Writes the files of a new table and returns its directory: ``write_table({"a.parquet": data}, options...)``.

    A value is an Arrow table, or a mapping of columns. Options are those of ``pyarrow.parquet.write_table``.
    """
    numbers = itertools.count()

    def write(files: Mapping[str, pa.Table | Mapping[str, Any]], **options: Any) -> Path:
        root = tmp_path / f"table-{next(numbers)}"
        root.mkdir()
        for name, data in files.items():
            write_file(root / name, data, **options)
        return root

    return write
