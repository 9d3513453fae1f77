"""``spark.read.format("secateur")``: the table as a Spark data source, also in SQL and on Spark Connect.

Spark plans a query in a separate Python process, which lives on between queries, with its open tables and their cached
index. Options, beside ``path`` (or ``load(path)``):

``predicate``       the DataFrame has only rows for which this Spark SQL predicate is TRUE, and is pruned by it
``pushdown``        true: prune by the filters of the query. Safe only for a DataFrame or view that is used once
``index_location``  location of the index, if not beside the data
``catalog``         of an Iceberg table with the path as identifier: a name in PyIceberg's configuration
``snapshot_id``, ``as_of``, ``ref``  the snapshot to read, by id, time, or branch or tag
``version``         that of a Delta table to read
``use_index``       false: read every block that footers do not rule out
``time_zone``       in which the predicate's timestamps are read (UTC)
``ansi``            false: the predicate means what it means without ``spark.sql.ansi.enabled``

Why push-down is not the default: Spark 4.1 to 4.3 keeps the last push-down's plan in the relation
(``PythonDataSourceV2.readInfo``), and uses it for the next query on the same DataFrame or view if that query has no
filter that can be pushed. So ``df.where("id = 1").count()`` makes a later ``df.count()`` count one block.
"""

from __future__ import annotations

import difflib
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from secateur.errors import IncomparableLiteral, InvalidOption, TableNotFound, UnsupportedPredicate, UnsupportedTable
from secateur.io.scan.block_list import BlockList
from secateur.io.scan.block_reader import BlockReader
from secateur.io.scan.opened_table import open_snapshot_of
from secateur.io.scan.planned_scan import PlannedScan, Settings, plan_scan
from secateur.io.scan.read_path import holds_collation
from secateur.io.spark.file_reader import arrow_schema, spark_schema
from secateur.io.spark.to_spark import descriptors
from secateur.io.storage.redaction import ENVIRONMENT, has_secrets, redacted_location
from secateur.io.tables.open import Moment, open_at
from secateur.io.tables.table import Table
from secateur.pruning.functions.zone_names import known_zone
from secateur.pruning.predicate.bind import bind
from secateur.pruning.predicate.bound import is_supported
from secateur.pruning.predicate.nodes import And, Predicate, Truth, quoted_name
from secateur.pruning.predicate.parse import parse
from secateur.pruning.report import Faults

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

MOST_OPEN_TABLES = 32
OPTIONS = (
    *("path", "predicate", "pushdown", "index_location", "catalog", "snapshot_id", "as_of", "ref", "version"),
    *("use_index", "time_zone", "ansi"),
)
READS_ONLY = 'format("secateur") only reads: write by Spark\'s own format, then refresh the index'


@dataclass(frozen=True)
class Location:
    """The location of a table and its index; every process opens it separately."""

    path: str
    catalog: str | None
    moment: Moment
    index_location: str | None


@lru_cache(MOST_OPEN_TABLES)
def _opened(at: Location) -> Table:
    return open_at(
        at.path,
        at.catalog,
        at.moment,
        index_location=at.index_location,
        filesystem=None,
        schema=None,
        freshness=None,
        disk_cache=None,
    )


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
        snapshot_id, version = (
            None if n is None else int(n) for n in map(self.options.get, ("snapshot_id", "version"))
        )
        moment = Moment(snapshot_id, self.options.get("as_of"), self.options.get("ref"), version)
        return Location(path, self.options.get("catalog"), moment, self.options.get("index_location"))

    def schema(self) -> StructType:
        """Return the table's schema. Raises UnsupportedTable for strings with a collation, which would lose it."""
        opened = open_snapshot_of(_opened(self._location), known_zone("UTC"), Faults())
        collated = [field.name for field in opened.schema if holds_collation(field.type)]
        if collated:
            raise UnsupportedTable(
                f'{", ".join(collated)} has a collation, which format("secateur") does not keep: '
                "use secateur.dataframe(), or give a schema without it"
            )
        return spark_schema(opened.schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of one query."""
        kind = PushdownReader if self._flag("pushdown", default=False) else SecateurReader
        if kind is PushdownReader and not hasattr(DataSourceReader, "pushFilters"):
            raise InvalidOption("option pushdown needs Spark 4.1, the first that gives filters to Python data sources")
        return kind(
            location=self._location,
            schema=arrow_schema(schema),
            predicate=self._predicate,
            settings=Settings(
                use_index=self._flag("use_index", default=True),
                session_time_zone=self.options.get("time_zone", "UTC"),
                ansi=self._flag("ansi", default=True),
            ),
        )

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:
        """Refuse to write. Raises UnsupportedTable."""
        raise UnsupportedTable(READS_ONLY)

    def streamWriter(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: N802
        """Refuse to write. Raises UnsupportedTable."""
        raise UnsupportedTable(READS_ONLY)

    def streamReader(self, schema: StructType) -> NoReturn:  # noqa: N802
        """Refuse to read a stream. Raises UnsupportedTable."""
        raise UnsupportedTable('format("secateur") reads no streams: use Spark\'s own format, or prune each batch')

    @property
    def _predicate(self) -> Predicate:
        text = self.options.get("predicate")
        return parse(text) if text else Truth(True)

    def _flag(self, name: str, *, default: bool) -> bool:
        value = str(self.options.get(name, default)).lower()
        if value not in ("true", "false"):
            raise ValueError(f"option {name} is true or false, not {value!r}")
        return value == "true"


def _require_evaluated_here(scan: PlannedScan) -> None:
    """Raises UnsupportedPredicate for an option that only Spark could evaluate, which does not see it."""
    left = scan.left_to_spark
    if left:
        raise UnsupportedPredicate(
            f"only Spark can evaluate {'; '.join(left)}, and it does not see the option predicate: leave that out of "
            'the option, and give it to where(), as spark.read.format("secateur").load(path).where(...)'
        )


def _require_known(options: Iterable[str]) -> None:
    """Raise InvalidOption if one is none of this format's: a misspelt predicate would read the whole table."""
    for name in options:
        if name.lower() not in OPTIONS:
            near = difflib.get_close_matches(name.lower(), OPTIONS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(OPTIONS)}"
            raise InvalidOption(f'format("secateur") has no option {name!r}: {hint}')


def _require_no_secrets(name: str, location: str | None) -> None:
    """Raise InvalidOption for a location with credentials: Spark shows options, and sends them to executors."""
    if location is not None and has_secrets(location):
        raise InvalidOption(
            f"option {name} carries credentials, which Spark would send to executors and show: leave them out of "
            f"{redacted_location(location)}. {ENVIRONMENT}"
        )


@dataclass(frozen=True)
class Task(InputPartition):
    """One task: a reader, and the blocks to read."""

    reader: bytes  # a BlockReader, pickled and compressed once: Spark sends it with every task
    blocks: bytes  # a BlockList


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
        scan = plan_scan(_opened(self.location), self.predicate, self.predicate, self.settings)
        _require_evaluated_here(scan)
        work = descriptors(scan, scan.fields([quoted_name(name) for name in self.schema.names]))
        reader = zlib.compress(cloudpickle.dumps(work.reader))
        return [Task(reader, task) for task in work.tasks]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task, in the types that Spark expects; if nothing survives, Spark passes None."""
        if not isinstance(partition, Task):
            return
        reader: BlockReader = cloudpickle.loads(zlib.decompress(partition.reader))
        for batch in reader.read_all(BlockList.from_bytes(partition.blocks)):
            columns = [batch.column(field.name).cast(field.type) for field in self.schema]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


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
