"""Sample columns of some blocks as a Spark job, to choose how to index them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from secateur.index.build.auto_index import SAMPLED_BLOCKS, ColumnSample, choose, sample_of
from secateur.index.build.column_sketch import ColumnReading, ValuesSketch, measure
from secateur.index.build.source_file import OpenFile
from secateur.index.build.survey import FileSurvey, segment_size
from secateur.index.build.tasks import RunTasks, read_result
from secateur.index.container import index_file
from secateur.index.container.index_file import Writer
from secateur.index.model import Choice, IndexedColumn
from secateur.values.keys import Keys
from secateur.values.kinds import ordered_kind


def choices(
    run: RunTasks,
    open_file: OpenFile,
    surveys: Sequence[FileSurvey],
    schema: pa.Schema,
    columns: Sequence[IndexedColumn],
    segment_blocks: int | None,
    fpr: float,
) -> list[Choice]:
    """Choose what serves look-ups in every column, from a sample of blocks spread over all files.

    Raises InvalidParquet, StalePlan.
    """
    blocks = [(survey.file.path, group) for survey in surveys for group in range(survey.block_count)]
    chosen = [blocks[i] for i in np.unique(np.linspace(0, len(blocks) - 1, SAMPLED_BLOCKS).astype(int)).tolist()]

    def work(numbers: Sequence[int]) -> Iterator[bytes]:
        for i in numbers:
            yield _sampled(chosen[i], open_file, schema, columns)

    samples: list[list[ColumnSample]] = [[] for _ in columns]
    for data in run(work, len(chosen)):
        for c, sample in _decoded(data, columns):
            samples[c].append(sample)
    size = segment_blocks or segment_size(len(blocks))
    names = [".".join(column.path) for column in columns]
    return [
        choose(name, of_column, len(blocks), size, fpr)
        for name, of_column in zip(names, samples, strict=True)
        if of_column
    ]


def _sampled(block: tuple[str, int], open_file: OpenFile, schema: pa.Schema, columns: Sequence[IndexedColumn]) -> bytes:
    """Sample one block, column by column; only one column's values are held at a time."""
    path, row_group = block
    source, writer = open_file(path), Writer(index_file.SUMMARY, {})
    for c, column in enumerate(columns):
        sketch = ValuesSketch()
        measure(source.read, row_group, [ColumnReading(column.path, sketch)], schema)
        sample = None if sketch.values is None else sample_of(sketch.values)
        if sample is not None:
            counts = np.array([sample.distinct], np.int64)
            writer.add(str(c), [counts, sample.hashes, *sample.gaps, *sample.keys.words])
    return writer.finish()


def _decoded(data: bytes, columns: Sequence[IndexedColumn]) -> Iterator[tuple[int, ColumnSample]]:
    contents, read = read_result(data)
    for name in contents.chunks:
        (counts, hashes, low, high, *words), c = contents.arrays(name, read), int(name)
        kind = ordered_kind(columns[c].type)
        yield c, ColumnSample(int(counts[0]), hashes, Keys(kind, tuple(words)), np.stack([low, high]))
