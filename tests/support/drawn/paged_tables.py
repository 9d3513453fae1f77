"""Tables of flat and nested columns, written by pyarrow in pages of a few rows, with many writer options."""

from __future__ import annotations

import io
from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from secateur.io.parquet.chunk_locations import ChunkLocations
from secateur.io.parquet.location_codec import decode_locations
from tests.support.small_tables import TYPES

NESTED = {
    "list": pa.list_(pa.int32()),
    "struct": pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))]),
    "map": pa.map_(pa.string(), pa.int8()),
}


def values(random: np.random.Generator, type_: pa.DataType, n: int) -> pa.Array:
    """Random values, some of them NULL; numbers of few digits, so that dictionaries are kept now and then."""
    mask = random.random(n) < random.choice([0, 0.3])
    numbers = random.integers(0, random.choice([2, 100, 10_000]), n)
    match type_:
        case pa.ListType():
            lengths = np.where(mask, 0, random.integers(0, 4, n))
            offsets = pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32))
            return pa.ListArray.from_arrays(offsets, values(random, type_.value_type, int(lengths.sum())), type_)
        case pa.MapType():
            keys = pa.array([f"k{i}" for i in numbers], pa.string())
            pairs = keys, values(random, type_.item_type, n)
            return pa.MapArray.from_arrays(pa.array(np.arange(n + 1), pa.int32()), *pairs, type=type_)
        case pa.StructType():
            return pa.StructArray.from_arrays([values(random, field.type, n) for field in type_], fields=list(type_))
        case _ if type_ in (pa.string(), pa.binary()):
            return pa.array([f"text {i}" * (i % 3) for i in numbers], pa.string(), mask=mask).cast(type_)
        case _:
            width = {pa.date32(): pa.int32(), TYPES["ts"]: pa.int64()}.get(type_, pa.int8())
            return pa.array(numbers % (2 if type_ == pa.bool_() else 100), width, mask=mask).cast(type_)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """A table of some columns, flat and nested."""
    names = draw(st.lists(st.sampled_from([*TYPES, *NESTED]), min_size=1, max_size=6, unique=True))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.sampled_from([0, 1, 7, 300, 3000]))
    return pa.table({name: values(random, {**TYPES, **NESTED}[name], n) for name in names})


OPTIONS = st.fixed_dictionaries(
    {
        "row_group_size": st.sampled_from([100, 1000, 10_000]),
        "data_page_size": st.sampled_from([1, 200, 4000]),
        "write_batch_size": st.sampled_from([10, 100]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "use_dictionary": st.booleans(),
        "dictionary_pagesize_limit": st.sampled_from([50, 1 << 20]),
        "compression": st.sampled_from(["none", "snappy", "zstd"]),
    }
)


def parquet(table: pa.Table, **options: Any) -> pa.BufferReader:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return pa.BufferReader(sink.getvalue())


def with_pages(data: bytes, file_size: int, leaves: Collection[int]) -> ChunkLocations | None:
    """The page locations of some leaves of a block in an index; None where the pages of one are not known."""
    locations = decode_locations(data, file_size, "it").of(leaves) if data else None
    return locations if locations is not None and locations.has_pages else None
