"""What a build needs of an open file of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from secateur.index.filters.parquet_bloom import NativeFilters
    from secateur.index.model import IndexedColumn
    from secateur.index.zones.page_locations import FileLocations
    from secateur.index.zones.page_statistics import PageTable
    from secateur.index.zones.zonemap import ZoneMap
    from secateur.pruning.interval import RowValues


class SourceFile(Protocol):
    """An open file of the table, as the build uses it."""

    @property
    def row_count(self) -> np.ndarray: ...

    @property
    def byte_count(self) -> np.ndarray: ...

    @property
    def schema(self) -> pa.Schema: ...

    def zone_map(self, path: tuple[str, ...], type_: pa.DataType) -> ZoneMap: ...

    def native_filters(self, path: tuple[str, ...], type_: pa.DataType, fpr: float) -> NativeFilters: ...

    def pages(self, zone_maps: Mapping[IndexedColumn, ZoneMap]) -> dict[IndexedColumn, PageTable]: ...

    def page_locations(self) -> FileLocations: ...

    def end(self) -> int: ...  # checksum of its last bytes; 0 if nothing needs it

    def read(self, row_group: int, fields: Sequence[pa.Field]) -> Iterator[pa.RecordBatch]: ...

    def values_at_path(self, row_group: int, path: tuple[str, ...]) -> Iterator[RowValues]: ...  # into VARIANT


OpenFile = Callable[[str], SourceFile]
