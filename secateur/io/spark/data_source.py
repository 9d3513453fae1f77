"""``spark.read.format("secateur")``: the table as a Spark data source, also in SQL and on Spark Connect.

``spark.readStream.format("secateur")`` gives the rows that are appended to it (:mod:`.stream_reader`).

Spark plans a query in a separate Python process, which lives on between queries, with its open tables and their cached
index. Options, beside ``path`` (or ``load(path)``):

``predicate``       the DataFrame has only rows for which this Spark SQL predicate is TRUE, and is pruned by it
``pushdown``        true: prune by the filters of the query. Safe only for a DataFrame or view that is used once
``index_location``  location of the index, if not beside the data
``pathGlobFilter``  of a table of Parquet files, only those whose names match; ``glob`` is the same
``catalog``         of an Iceberg table with the path as identifier: a name in PyIceberg's configuration
``snapshot_id``, ``as_of``, ``ref``  the snapshot to read, by id, time, or branch or tag
``version``         that of a Delta table to read, or an instant of a Hudi table
``read_optimized``  true: of a Hudi table the base files alone, as of the last compactions
``since``           only rows of files that came after this snapshot; a stream begins after it
``skip_changes``    of a stream, true: go on without the rows of snapshots that change or remove rows
``maxFilesPerTrigger``, ``maxBytesPerTrigger``  of a stream: the most files, or bytes of files, of a batch; one file at
                    least
``use_index``       false: read every block that footers do not rule out
``time_zone``       in which the predicate's timestamps are read (UTC)
``ansi``            false: the predicate means what it means without ``spark.sql.ansi.enabled``

Why push-down is not the default: Spark 4.1 to 4.3 keeps the last push-down's plan in the relation
(``PythonDataSourceV2.readInfo``), and uses it for the next query on the same DataFrame or view if that query has no
filter that can be pushed. So ``df.where("id = 1").count()`` makes a later ``df.count()`` count one block.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from secateur.errors import IncomparableLiteral, InvalidOption, TableNotFound, UnsupportedPredicate, UnsupportedTable
from secateur.io.scan.opened_table import open_snapshot_of
from secateur.io.scan.planned_scan import Settings
from secateur.io.scan.planning import plan_scan
from secateur.io.scan.read_path import only_spark_keeps
from secateur.io.spark.file_reader import arrow_schema, spark_schema
from secateur.io.spark.source_tasks import Location, opened, rows_of, tasks_of
from secateur.io.spark.stream_offsets import Limits
from secateur.io.spark.stream_reader import KNOWS_LIMITS, SecateurStreamReader
from secateur.io.storage.disk_cache import parse_bytes
from secateur.io.storage.redaction import ENVIRONMENT, has_secrets, redacted_location
from secateur.io.tables.open import Moment
from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.predicate.binding.bind import bind
from secateur.pruning.predicate.bound_walks import is_supported
from secateur.pruning.predicate.nodes import And, Predicate, Truth
from secateur.pruning.predicate.sql.parse import parse
from secateur.pruning.report import Faults

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

MOMENT_OPTIONS = ("snapshot_id", "as_of", "version", "read_optimized")
GLOBS = ("glob", "pathGlobFilter")
OPTIONS = (
    *("path", "predicate", "pushdown", "index_location", *GLOBS, "catalog", *MOMENT_OPTIONS, "ref", "since"),
    *("skip_changes", "use_index", "time_zone", "ansi"),
)
LIMITS = ("maxFilesPerTrigger", "maxBytesPerTrigger")  # of a batch of a stream
READS_ONLY = 'format("secateur") only reads: write by Spark\'s own format, then refresh the index'


class SecateurDataSource(DataSource):
    """The format "secateur"; the options are those of this module."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "secateur"

    @property
    def _location(self) -> Location:
        _require_known(self.options)
        path = self.options.get("path")
        if not path:
            raise TableNotFound("format(\"secateur\") needs a path: load(path), or OPTIONS (path '...') in SQL")
        for name in ("path", "index_location"):
            _require_no_secrets(name, self.options.get(name))
        snapshot_id, version = self._number("snapshot_id"), self._number("version")
        read_optimized = self._flag("read_optimized", default=False)
        moment = Moment(snapshot_id, self.options.get("as_of"), self.options.get("ref"), version, read_optimized)
        return Location(path, self.options.get("catalog"), moment, self.options.get("index_location"), self._glob)

    @property
    def _glob(self) -> str | None:
        """The glob of the names of files. Raises InvalidOption for two of them."""
        given = {self.options[name] for name in GLOBS if name in self.options}
        if len(given) > 1:
            raise InvalidOption("glob and pathGlobFilter are one option: give one of them")
        return next(iter(given), None)

    def schema(self) -> StructType:
        """Return the table's schema. Raises UnsupportedTable for strings with a collation, which would lose it."""
        table = open_snapshot_of(opened(self._location), known_zone("UTC"), Faults())
        collated = [field.name for field in table.schema if only_spark_keeps(field.type)]
        if collated:
            raise UnsupportedTable(
                f'{", ".join(collated)} has a collation or is VARIANT, which format("secateur") does not keep: '
                "use secateur.dataframe(), or give a schema without it"
            )
        return spark_schema(table.schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of one query."""
        for name in ("skip_changes", *LIMITS):
            if name in self.options:
                raise InvalidOption(f"{name} is an option of streams: leave it out of spark.read")
        kind = PushdownReader if self._flag("pushdown", default=False) else SecateurReader
        if kind is PushdownReader and not hasattr(DataSourceReader, "pushFilters"):
            raise InvalidOption("option pushdown needs Spark 4.1, the first that gives filters to Python data sources")
        return kind(
            location=self._location,
            schema=arrow_schema(schema),
            predicate=self._predicate,
            settings=self._settings,
        )

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:
        """Refuse to write. Raises UnsupportedTable."""
        raise UnsupportedTable(READS_ONLY)

    def streamWriter(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: N802
        """Refuse to write. Raises UnsupportedTable."""
        raise UnsupportedTable(READS_ONLY)

    def streamReader(self, schema: StructType) -> SecateurStreamReader:  # noqa: N802
        """Return the reader of a stream of appended rows. Raises InvalidOption for options of a batch."""
        for name in (*MOMENT_OPTIONS, "pushdown"):
            if name in self.options:
                raise InvalidOption(f"a stream has no option {name!r}: it reads what is appended to the table of now")
        return SecateurStreamReader(
            location=self._location,
            schema=arrow_schema(schema),
            predicate=self._predicate,
            settings=self._settings,
            skip_changes=self._flag("skip_changes", default=False),
            limits=self._limits,
        )

    @property
    def _limits(self) -> Limits:
        """The limits of a batch. Raises InvalidOption."""
        files, size = (self.options.get(name) for name in LIMITS)
        if (files is not None or size is not None) and not KNOWS_LIMITS:
            raise InvalidOption(
                f"{' and '.join(LIMITS)} need Spark 4.2, the first that says to a Python source where a batch begins: "
                "leave them out, and a batch reads all that was appended"
            )
        if files is not None and not (files.isascii() and files.isdigit() and int(files)):
            raise InvalidOption(f"maxFilesPerTrigger is a number of files, at least 1, not {files!r}")
        try:
            most_bytes = None if size is None else parse_bytes(size, "maxBytesPerTrigger")
        except ValueError as error:
            raise InvalidOption(str(error)) from None
        if most_bytes == 0:
            raise InvalidOption("maxBytesPerTrigger is at least 1 byte")
        return Limits(None if files is None else int(files), most_bytes)

    @property
    def _settings(self) -> Settings:
        return Settings(
            since=self._number("since"),
            use_index=self._flag("use_index", default=True),
            session_time_zone=self.options.get("time_zone", "UTC"),
            ansi=self._flag("ansi", default=True),
        )

    @property
    def _predicate(self) -> Predicate:
        text = self.options.get("predicate")
        return parse(text) if text else Truth(True)

    def _number(self, name: str) -> int | None:
        value = self.options.get(name)
        return None if value is None else int(value)

    def _flag(self, name: str, *, default: bool) -> bool:
        value = str(self.options.get(name, default)).lower()
        if value not in ("true", "false"):
            raise ValueError(f"option {name} is true or false, not {value!r}")
        return value == "true"


def _require_known(options: Iterable[str]) -> None:
    """Raise InvalidOption if one is none of this format's: a misspelt predicate would read the whole table."""
    for name in options:
        known = {option.lower(): option for option in (*OPTIONS, *LIMITS)}
        if name.lower() not in known:
            near = difflib.get_close_matches(name.lower(), known, n=1)
            hint = f"did you mean {known[near[0]]!r}?" if near else f"it has {', '.join(known.values())}"
            raise InvalidOption(f'format("secateur") has no option {name!r}: {hint}')


def _require_no_secrets(name: str, location: str | None) -> None:
    """Raise InvalidOption for a location with credentials: Spark shows options, and sends them to executors."""
    if location is not None and has_secrets(location):
        raise InvalidOption(
            f"option {name} carries credentials, which Spark would send to executors and show: leave them out of "
            f"{redacted_location(location)}. {ENVIRONMENT}"
        )


@dataclass
class SecateurReader(DataSourceReader):
    """Plans one read of a table, optionally of only the rows for which a predicate is TRUE."""

    location: Location
    schema: pa.Schema
    predicate: Predicate
    settings: Settings

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks that read the surviving blocks. Raises UnsupportedPredicate, and as
        :func:`secateur.prune`.
        """
        return tasks_of(plan_scan(opened(self.location), self.predicate, self.predicate, self.settings), self.schema)

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task."""
        return rows_of(partition, self.schema)


@dataclass
class PushdownReader(SecateurReader):
    """Prunes by the filters of the query as well. Spark keeps them all, so the answer does not depend on them."""

    def pushFilters(self, filters: list[Filter]) -> list[Filter]:  # noqa: N802, Spark's name
        """Remember the filters that can prune, and return all of them to Spark."""
        from secateur.io.spark.source_filters import predicate_of  # Spark 4.0 has no filters

        nodes = [node for item in filters if (node := predicate_of(item)) is not None and self._binds(node)]
        self.predicate = And((self.predicate, *nodes))
        return filters

    def _binds(self, node: Predicate) -> bool:
        """Return whether a filter can be used here; one that binding refuses is left to Spark."""
        try:
            return is_supported(bind(node, self.schema))
        except (IncomparableLiteral, UnsupportedPredicate):
            return False
