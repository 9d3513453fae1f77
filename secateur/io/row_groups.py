"""Reading surviving blocks: row groups in, batches of the wanted columns with only matching rows out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from secateur.io.block_list import BlockList, FileBlocks
from secateur.io.catalog import OpenedTable
from secateur.io.partitions import constant
from secateur.io.table import METADATA, Delivery, FileRows
from secateur.pruning.predicate.bound import columns, is_supported
from secateur.pruning.predicate.nodes import Predicate
from secateur.pruning.residual import Residuals
from secateur.pruning.rows import matching_rows


@dataclass(frozen=True)
class BlockReader:
    """How to read blocks of a table: which columns come out, and which rows."""

    open: Callable[[FileBlocks], FileRows]
    fields: tuple[pa.Field, ...]  # of the batches that come out
    needed: tuple[pa.Field, ...]  # these, and those of the predicate
    residuals: tuple[Predicate | None, ...]  # what rows have to satisfy; None: every row comes out
    own: frozenset[str] = frozenset()  # columns of the files that have the name of one that Spark hides
    rows: Callable[[Predicate, pa.RecordBatch], np.ndarray] = matching_rows  # or possible_rows, where Spark looks again

    def read(self, blocks: FileBlocks) -> Iterator[pa.RecordBatch]:
        """The batches of some row groups of one file, with exactly the rows that match."""
        names = [field.name for field in self.fields]
        return (batch.select(names) for batch in self._matching(blocks))

    def read_all(self, blocks: BlockList) -> Iterator[pa.RecordBatch]:
        """The batches of a list of blocks, file by file."""
        for file in blocks.by_file():
            yield from self.read(file)

    def count(self, blocks: FileBlocks) -> int:
        """The number of rows that match in some row groups of one file."""
        return sum(batch.num_rows for batch in self._matching(blocks))

    def positioned(self, blocks: FileBlocks) -> Iterator[tuple[int, np.ndarray, pa.RecordBatch]]:
        """All rows of some row groups of one file, whatever residuals say: the needed columns, batch by batch.

        With the row group of every batch, and the positions of its rows within that.
        """
        source = self.open(blocks)
        constants = self._constants(source)
        inside = [field for field in self.needed if field.name not in constants]
        for row_group in blocks.row_groups:
            for positions, batch in source.positioned(row_group, inside):
                yield row_group, positions, self._complete(batch, constants)

    def _constants(self, source: FileRows) -> dict[str, pa.Scalar]:
        return {name: value for name, value in source.constants.items() if name not in self.own}

    def _matching(self, blocks: FileBlocks) -> Iterator[pa.RecordBatch]:
        for batches, residual in zip(self.read_whole(blocks), blocks.residual, strict=True):
            predicate = self.residuals[residual]
            for batch in batches:
                rows = batch if predicate is None else batch.filter(pa.array(self.rows(predicate, batch)))
                if rows.num_rows:
                    yield rows

    def read_whole(self, blocks: FileBlocks) -> Iterator[Iterator[pa.RecordBatch]]:
        """Of some row groups of one file, which is opened once, the batches of each, with all of its rows."""
        source = self.open(blocks)
        constants = self._constants(source)
        for row_group in blocks.row_groups:
            yield self._batches(source, row_group, constants)

    def _batches(
        self, source: FileRows, row_group: int, constants: Mapping[str, pa.Scalar]
    ) -> Iterator[pa.RecordBatch]:
        """The needed columns of one row group, those in the file and those that are constant there."""
        inside = [field for field in self.needed if field.name not in constants]
        return (self._complete(batch, constants) for batch in source.read(row_group, inside))

    def _complete(self, batch: pa.RecordBatch, constants: Mapping[str, pa.Scalar]) -> pa.RecordBatch:
        """The batch with its partition values, in the order of `needed`."""
        arrays = [
            constant(constants[field.name], batch.num_rows) if field.name in constants else batch.column(field.name)
            for field in self.needed
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(self.needed)) if arrays else batch


def block_reader(
    opened: OpenedTable,
    delivery: Delivery,
    fields: Sequence[pa.Field],
    residuals: Residuals,
    names: Iterable[str] = (),
) -> BlockReader:
    """The reader of chosen columns, and of the columns that residuals and `names` ask for besides.

    A residual that only Spark can evaluate filters nothing here.
    """
    available, known = opened.binding_schema, {field.name for field in fields}
    used = [] if residuals.whole is None else columns(residuals.whole)
    extra = [available.field(name) for name in dict.fromkeys([*used, *names]) if name not in known]
    checked = tuple(each if each is not None and is_supported(each) else None for each in residuals.distinct)
    own = frozenset({METADATA} if opened.listing.own_metadata else ())
    return BlockReader(delivery.open, tuple(fields), (*fields, *extra), checked, own)
