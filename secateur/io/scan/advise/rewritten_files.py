"""Describe files to rewrite: their partition, what they hold, and the statement that rewrites them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from secateur.arrays import from_numpy
from secateur.index.advise.rewrite_groups import RewriteGroup
from secateur.io.scan.opened_table import OpenedTable
from secateur.io.tables.rewriter import Rewriter, RewrittenFiles, can_be_written
from secateur.pruning.explain.reclustering import FileGroup
from secateur.pruning.statistics import Blocks


@dataclass(frozen=True, eq=False)
class TableFiles:
    """The live files of a table and their blocks, and what rewrites them."""

    opened: OpenedTable
    rewriter: Rewriter
    every: Blocks

    @property
    def count(self) -> int:
        """The number of live files."""
        return len(self.opened.listing.size)

    @property
    def blocks(self) -> np.ndarray:
        """The blocks of every file."""
        return np.bincount(self.every.file, minlength=self.count)

    @property
    def partition(self) -> np.ndarray:
        """The number of every file's partition."""
        return self._partitions[0]

    @cached_property
    def _partitions(self) -> tuple[np.ndarray, list[str]]:
        """The number of every file's partition, and the partitions as text."""
        known = self.opened.table.metadata_tables.files(self.opened.listing).slice(0, self.count)
        struct = known["partition"].combine_chunks()
        parts = [known["spec_id"].combine_chunks(), *(struct.field(i) for i in range(struct.type.num_fields))]
        codes = [part.dictionary_encode("encode").indices.to_numpy(zero_copy_only=False) for part in parts]
        _, first, number = np.unique(np.stack(codes), axis=1, return_index=True, return_inverse=True)
        names = [field.name for field in struct.type]
        texts = [
            ", ".join(f"{name}={struct.field(i)[int(at)].as_py()}" for i, name in enumerate(names)) for at in first
        ]
        return number.reshape(-1), texts

    def rewritten(self, files: np.ndarray) -> RewrittenFiles:
        """Return files of one partition, with the values that they have in common."""
        listing, first = self.opened.listing, int(files[0])
        constant = [one for one in listing.constant_columns if one.known[first] and can_be_written(one.values[first])]
        alike = np.ones(self.count, bool)
        for one in constant:
            codes = one.values.dictionary_encode("encode").indices.to_numpy(zero_copy_only=False)
            alike &= (codes == codes[first]) | ~one.known
        paths = [self.opened.table.full_path(path) for path in listing.paths.take(from_numpy(files)).to_pylist()]
        values = [(one.path, one.values[first]) for one in constant]
        return RewrittenFiles(paths, values, int(alike.sum()) == len(files))

    def described(self, group: RewriteGroup, statement: str) -> FileGroup:
        """Describe a group of files, with the statement that rewrites them."""
        listing, first = self.opened.listing, int(group.files[0])
        return FileGroup(
            partition=self._partitions[1][int(self.partition[first])],
            files=tuple(listing.paths.take(from_numpy(group.files)).to_pylist()),
            bytes=int(listing.size[group.files].sum()),
            blocks=int(np.isin(self.every.file, group.files).sum()),
            bytes_now=group.bytes_now,
            bytes_then=group.bytes_then,
            statement=statement,
        )
