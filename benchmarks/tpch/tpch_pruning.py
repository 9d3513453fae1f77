"""The pruning rate on TPC-H's lineitem, beside the ideal and pyarrow's row-group filter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import secateur as sec
from benchmarks.results import Kept, Ratio, Result, timed
from benchmarks.setting import Setting, index_code
from benchmarks.spark.sessions import spark_session
from benchmarks.timing import race
from benchmarks.tpch.tpch import BLOOM, LAYOUTS, QUESTIONS, SCALE_FACTOR, Layout, Question, write_tables
from secateur.errors import IndexMissing
from secateur.io.tables.directory.table import ParquetDirectory, open_directory
from secateur.scan import Scan


@dataclass(frozen=True)
class Rows:
    """All rows of a table, with the block of each."""

    data: pa.Table
    block: np.ndarray


def tpch_pruning(setting: Setting) -> Result:
    """Blocks, pages and rows kept by every predicate on either layout."""
    factor = SCALE_FACTOR * setting.scale
    directory = setting.prepared(f"tpch-lineitem-{factor:g}", lambda path: write_tables(path, factor))
    tables = {layout: _open(directory, layout) for layout in LAYOUTS}
    _require_indexes(tables)
    ratios, kept = [], []
    for layout, table in tables.items():
        fragments = _fragments(directory / layout.name)
        rows = _rows(fragments)
        pages = _pages_by_column(table)
        for question in QUESTIONS:
            kept += _kept(layout, question, _prune(table, question), rows, pages, fragments)
        ratios.append(_speed(layout, table, fragments, setting))
    blocks = int(rows.block[-1]) + 1
    return Result({"scale_factor": factor, "rows": rows.data.num_rows, "blocks": blocks}, tuple(ratios), tuple(kept))


def _prune(table: ParquetDirectory, question: Question) -> Scan:
    return sec.prune(table, question.sql, strict=True, session_time_zone="UTC")


def _kept(
    layout: Layout,
    question: Question,
    plan: Scan,
    rows: Rows,
    pages: dict[str, int],
    fragments: list[ds.ParquetFileFragment],
) -> list[Kept]:
    matching = _matching(rows, question)
    ideal = len(np.unique(rows.block[matching]))
    last = plan.report.stages[-1].after
    by_zone_maps = next(stage for stage in plan.report.stages if stage.name == "zone maps").after
    blocks = {
        "secateur": last.blocks or 0,
        "secateur, zone maps alone": by_zone_maps.blocks or 0,
        "pyarrow": sum(len(fragment.subset(question.arrow).row_groups) for fragment in fragments),
    }
    total_pages = sum(pages[column] for column in question.columns)
    kept = [Kept(layout.name, question.sql, "blocks", int(rows.block[-1]) + 1, ideal, blocks)]
    if last.pages is not None:
        kept.append(Kept(layout.name, question.sql, "pages", total_pages, None, {"secateur": last.pages}))
    kept_rows = {"secateur": last.rows or 0}
    return [*kept, Kept(layout.name, question.sql, "rows", rows.data.num_rows, len(matching), kept_rows)]


def _matching(rows: Rows, question: Question) -> np.ndarray:
    """The positions of the matching rows, as pyarrow finds them by reading everything."""
    numbered = rows.data.select(question.columns).append_column("position", pa.array(np.arange(len(rows.block))))
    return np.asarray(numbered.filter(question.arrow)["position"].to_numpy())


def _speed(layout: Layout, table: ParquetDirectory, fragments: list[ds.ParquetFileFragment], setting: Setting) -> Ratio:
    """All predicates planned, the index cached, against all of pyarrow's, the footers read."""
    ours, arrow = race(
        [
            lambda: [_prune(table, question) for question in QUESTIONS],
            lambda: [fragment.subset(question.arrow) for question in QUESTIONS for fragment in fragments],
        ],
        setting.repetitions,
    )
    return timed(f"prune() of all predicates, {layout.name}, warm", ours, "pyarrow Fragment.subset", arrow)


def _fragments(directory: Path) -> list[ds.ParquetFileFragment]:
    paths = [str(path) for path in sorted(directory.glob("*.parquet"))]
    fragments = list(ds.dataset(paths, format="parquet").get_fragments())
    for fragment in fragments:
        fragment.ensure_complete_metadata()
    return fragments


def _rows(fragments: list[ds.ParquetFileFragment]) -> Rows:
    counts = [group.num_rows for fragment in fragments for group in fragment.row_groups]
    data = pa.concat_tables([pq.read_table(fragment.path) for fragment in fragments])
    return Rows(data, np.repeat(np.arange(len(counts)), counts))


def _pages_by_column(table: ParquetDirectory) -> dict[str, int]:
    """How many pages every column has over the whole table."""
    from secateur.io.parquet.footer import read_page_index

    counts: dict[str, int] = {}
    for path in sorted(Path(table.location).glob("*.parquet")):
        source = table.open_file(path.name)
        indexes = read_page_index(source.file, source.footer, source.footer.leaves)
        for (name,), index in indexes.items():
            counts[name] = counts.get(name, 0) + len(index.first_row)
    return counts


def _open(directory: Path, layout: Layout) -> ParquetDirectory:
    """A layout's table, with the index that the present code built of it."""
    index = directory / f"index-{index_code()}" / layout.name
    return open_directory(str(directory / layout.name), index_location=str(index))


def _require_indexes(tables: Mapping[Layout, ParquetDirectory]) -> None:
    """Build the indexes that are missing or cannot be used as they are."""
    missing = [layout for layout, table in tables.items() if not _is_indexed(table)]
    if not missing:
        return
    with spark_session() as spark:
        for layout in missing:
            sec.drop_index(tables[layout])
            sec.build_index(tables[layout], spark=spark, sort_key=layout.order_by or ("l_orderkey",), bloom=BLOOM)


def _is_indexed(table: ParquetDirectory) -> bool:
    try:
        report = sec.verify_index(table)
    except IndexMissing:
        return False
    return report.sound and not report.files_uncovered
