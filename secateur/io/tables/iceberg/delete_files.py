"""Read the rows that delete files of an Iceberg snapshot delete: positions in a data file, and keys.

Source: Iceberg's specification, "Row-level Deletes", and "Puffin spec", blob type deletion-vector-v1.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64

from secateur.arrays import from_numpy
from secateur.errors import InvalidParquet, UnsupportedTable
from secateur.io.storage.file_version import vanished
from secateur.io.tables.field_ids import id_of
from secateur.values.kinds import is_float

_MAGIC = bytes.fromhex("d1d33964")
_FRAME = 12  # bytes of a vector besides its bitmap: length, magic, checksum
MOST_POSITIONS = 1 << 30  # per vector: a few bytes can encode any number of consecutive rows
_PATH, _POSITION = "file_path", "pos"

OpenInput = Callable[[str], pa.NativeFile]


# ---- positions -------------------------------------------------------------------------------------------------------


def read_vector(open_input: OpenInput, path: str, offset: int, size: int) -> np.ndarray:
    """Read the positions of a deletion vector: int64, ascending. Raises InvalidParquet if its bytes are invalid."""
    with opened(open_input, path) as file:
        if offset < 0 or not _FRAME <= size <= file.size() - offset:
            raise InvalidParquet(f"{path} has no deletion vector of {size} bytes at {offset}")
        file.seek(offset)
        data = file.read(size)
    return decoded_vector(data, f"the deletion vector at {offset} of {path}")


def decoded_vector(data: bytes, what: str) -> np.ndarray:
    """Decode the positions of a vector. Raises InvalidParquet, naming `what`."""
    length = int.from_bytes(data[:4], "big")
    body, checksum = data[4:-4], int.from_bytes(data[-4:], "big")
    if length != len(body) or body[:4] != _MAGIC or zlib.crc32(body) != checksum:
        raise InvalidParquet(f"{what} is corrupt: its length, magic or checksum is wrong")
    try:
        bitmap = BitMap64.deserialize(body[4:])
    except (ValueError, IndexError, MemoryError) as error:
        raise InvalidParquet(f"{what} is corrupt: {error}") from None
    if len(bitmap) > MOST_POSITIONS or (len(bitmap) and bitmap.max() >> 63):
        raise InvalidParquet(f"{what} names {len(bitmap):,} rows, the last of them {bitmap.max():,}")
    return np.frombuffer(bitmap.to_array(), np.int64)


def read_positions(open_input: OpenInput, path: str, wanted: pa.Array) -> list[np.ndarray]:
    """Read the positions that a delete file names in every wanted data file: int64, in any order."""
    with opened(open_input, path) as file:
        try:
            table = pq.read_table(file, columns=[_PATH, _POSITION], filters=pc.field(_PATH).isin(wanted))
        except (pa.ArrowException, OSError) as error:
            raise InvalidParquet(f"cannot read the delete file {path}: {error}") from None
    if table.schema.names != [_PATH, _POSITION]:
        raise InvalidParquet(f"the delete file {path} has no columns {_PATH} and {_POSITION}")
    ordinal = pc.index_in(table[_PATH].combine_chunks().cast(pa.string()), wanted).to_numpy(zero_copy_only=False)
    positions = table[_POSITION].combine_chunks().to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.argsort(ordinal, kind="stable")
    return np.split(positions[order], np.searchsorted(ordinal[order], np.arange(1, len(wanted))))


def opened(open_input: OpenInput, path: str) -> pa.NativeFile:
    """Open a delete file. Raises StalePlan if it has vanished."""
    try:
        return open_input(path)
    except FileNotFoundError:
        raise vanished(f"the delete file {path}") from None
    except OSError as error:
        raise InvalidParquet(f"cannot open the delete file {path}: {error}") from None


def require_parquet(path: str, format_: str) -> None:
    """Raise UnsupportedTable for a file of another format."""
    if format_.upper() != "PARQUET":
        raise UnsupportedTable(f"{path} is a file of {format_}, and only Parquet is read here: read it through Spark")


# ---- keys ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeletedKeys:
    """Rows that are deleted because they equal one of `keys` in all columns; NULL equals NULL."""

    fields: tuple[pa.Field, ...]  # top-level columns of the data, with ids
    keys: tuple[pa.Array, ...]  # one per column

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(int(column.nbytes) for column in self.keys)

    def survive(self, columns: Sequence[pa.Array]) -> np.ndarray:
        """Return which rows are not deleted: bool of shape (n,)."""
        n = len(columns[0])
        codes = np.zeros(n + len(self.keys[0]), np.int64)
        for column, keys in zip(columns, self.keys, strict=True):
            of_column = equality_codes(pa.concat_arrays([column, keys.cast(column.type)]))
            codes = np.unique(codes * (int(of_column.max(initial=0)) + 1) + of_column, return_inverse=True)[1]
        return ~np.isin(codes[:n], codes[n:])


def equality_codes(values: pa.Array) -> np.ndarray:
    """Number the distinct values. NULL is one value, NaN is one, and 0.0 and -0.0 are two, as in Java."""
    if is_float(values.type):
        bits = np.int32 if values.type == pa.float32() else np.int64
        numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
        as_bits = np.where(np.isnan(numbers), np.array(np.nan, numbers.dtype), numbers).view(bits)
        values = pc.if_else(pc.is_valid(values), from_numpy(as_bits), pa.scalar(None, from_numpy(as_bits).type))
    encoded = values.dictionary_encode(null_encoding="encode")
    codes: np.ndarray = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


@dataclass(frozen=True)
class Deletions:
    """The deletions of one data file."""

    positions: np.ndarray  # ascending
    keys: tuple[DeletedKeys, ...]

    def fields(self, wanted: Sequence[pa.Field]) -> list[pa.Field]:
        """Return the wanted fields, followed by those needed to find deleted rows."""
        known = {id_of(field) for field in wanted}
        compared = {id_of(field): field for keys in self.keys for field in keys.fields}
        return [*wanted, *(field for number, field in compared.items() if number not in known)]

    def alive(self, batch: pa.RecordBatch, rows: np.ndarray, fields: Sequence[pa.Field]) -> np.ndarray:
        """Return which rows of a batch are live, given their ascending positions in the file: bool."""
        place = {id_of(field): i for i, field in enumerate(fields)}
        alive = np.ones(batch.num_rows, bool)
        if len(rows) and len(self.positions):
            near = self.positions[slice(*np.searchsorted(self.positions, [rows[0], rows[-1] + 1]))]
            alive = ~np.isin(rows, near, assume_unique=True)
        for keys in self.keys:
            alive &= keys.survive([batch.column(place[id_of(field)]) for field in keys.fields])
        return alive
