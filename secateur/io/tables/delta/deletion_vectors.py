"""Read the deletion vectors of a Delta table: the positions of deleted rows in a data file.

Source: Delta's protocol, "Deletion Vectors", "Deletion Vector Format", "Deletion Vector File Storage Format".
"""

from __future__ import annotations

import base64
import posixpath
import uuid
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from secateur.concurrency import at_once
from secateur.errors import InvalidParquet, UnsupportedTable
from secateur.io.storage.file_version import vanished
from secateur.io.storage.redaction import trouble

VECTOR_THREADS = 16
MOST_POSITIONS = 1 << 30  # per vector: a few bytes can encode any number of consecutive rows
_MAGIC = (1681511377).to_bytes(4, "little")
_VERSION = 1  # of a file of vectors, its first byte
_UUID_TEXT = 20  # characters of an encoded UUID
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_INTO_B85 = bytes.maketrans(_Z85, _B85)

OpenInput = Callable[[str], pa.NativeFile]  # by a location, or a path below the table


@dataclass(frozen=True)
class Vector:
    """Where the deleted positions of one data file are: in a file, or here."""

    file: str | None  # a location, or a path below the table; None: inline
    inline: bytes
    offset: int
    size: int  # bytes
    cardinality: int
    data_file: str

    @property
    def description(self) -> str:
        """The vector's name in messages."""
        where = "in the log" if self.file is None else f"at {self.offset} of {self.file}"
        return f"the deletion vector {where} of {self.data_file}"


def vector_of(descriptor: Mapping[str, Any], data_file: str) -> Vector:
    """Return the vector that a log describes. Raises UnsupportedTable for an unknown storage, InvalidParquet."""
    kind, text = descriptor["storageType"], descriptor["pathOrInlineDv"]
    offset, size, cardinality = descriptor.get("offset"), descriptor["sizeInBytes"], descriptor["cardinality"]
    if size is None or cardinality is None or text is None:
        raise InvalidParquet(f"the log does not describe the deletion vector of {data_file}")
    sizes = int(offset or 0), int(size), int(cardinality)
    match kind:
        case "u":
            return Vector(relative_path(text, data_file), b"", *sizes, data_file)
        case "i":
            return Vector(None, decoded_base85(text, data_file)[: int(size)], *sizes, data_file)
        case "p":
            return Vector(unquote(text), b"", *sizes, data_file)
    raise UnsupportedTable(f"the deletion vector of {data_file} is stored by {kind!r}, which is not known here")


def relative_path(text: str, data_file: str) -> str:
    """Return the path below the table of a file of vectors, from its UUID, which a random prefix may precede."""
    raw = decoded_base85(text[-_UUID_TEXT:], data_file)
    if len(raw) != 16:
        raise InvalidParquet(f"the deletion vector of {data_file} has no UUID: {text!r}")
    return posixpath.join(text[:-_UUID_TEXT], f"deletion_vector_{uuid.UUID(bytes=raw)}.bin")


def decoded_base85(text: str, data_file: str) -> bytes:
    """Decode ZeroMQ's variant of Base85. Raises InvalidParquet."""
    try:
        plain = text.encode("ascii")
        if plain.translate(None, _Z85) or len(plain) % 5:
            raise ValueError("no Base85")
        return base64.b85decode(plain.translate(_INTO_B85))
    except ValueError as error:
        raise InvalidParquet(f"the deletion vector of {data_file} is not encoded as it should be: {error}") from None


def read_vectors(open_input: OpenInput, vectors: Sequence[Vector]) -> list[np.ndarray]:
    """Read the positions of some vectors: int64, ascending. Files are read in parallel, each opened once.

    Raises InvalidParquet if a vector is corrupt, StalePlan if its file is gone, UnsupportedTable, AccessDenied.
    """
    by_file: dict[str | None, list[int]] = {}
    for i, vector in enumerate(vectors):
        by_file.setdefault(vector.file, []).append(i)

    def read(file: str | None) -> list[np.ndarray]:
        file_vectors = [vectors[i] for i in by_file[file]]
        if file is None:
            return [positions_of(vector.inline, vector) for vector in file_vectors]
        return _from_file(open_input, file, file_vectors)

    positions: list[np.ndarray] = [np.zeros(0, np.int64)] * len(vectors)
    for numbers, parts in zip(by_file.values(), at_once(read, [*by_file], VECTOR_THREADS), strict=True):
        for i, part in zip(numbers, parts, strict=True):
            positions[i] = part
    return positions


def _from_file(open_input: OpenInput, path: str, vectors: Sequence[Vector]) -> list[np.ndarray]:
    try:
        with open_input(path) as file:
            version = file.read(1)
            if version != bytes([_VERSION]):
                raise InvalidParquet(f"{path} is no file of deletion vectors of version {_VERSION}")
            return [positions_of(_stored(file, vector), vector) for vector in vectors]
    except FileNotFoundError:
        raise vanished(f"the file of deletion vectors {path}") from None
    except OSError as error:
        raise trouble(f"cannot read the deletion vectors of {path}", error, InvalidParquet) from None


def _stored(file: pa.NativeFile, vector: Vector) -> bytes:
    """Return the bytes of a stored vector, which lie between its size and its checksum. Raises InvalidParquet."""
    if vector.offset < 1 or vector.size < 0 or vector.offset + vector.size + 8 > file.size():
        raise InvalidParquet(f"{vector.description} does not lie within its file")
    file.seek(vector.offset)
    data = bytes(file.read(vector.size + 8))
    length, body, checksum = data[:4], data[4:-4], data[-4:]
    if int.from_bytes(length, "big") != vector.size or zlib.crc32(body) != int.from_bytes(checksum, "big"):
        raise InvalidParquet(f"{vector.description} is corrupt: its length or its checksum is wrong")
    return body


def positions_of(body: bytes, vector: Vector) -> np.ndarray:
    """Decode positions. Raises InvalidParquet unless they are as many as the log says."""
    if body[:4] != _MAGIC:
        raise InvalidParquet(f"{vector.description} is corrupt, or of a form that is not known here")
    from pyroaring import BitMap64

    try:
        positions = BitMap64.deserialize(body[4:])
    except (ValueError, IndexError, MemoryError) as error:
        raise InvalidParquet(f"{vector.description} is corrupt: {error}") from None
    if (
        len(positions) != vector.cardinality
        or len(positions) > MOST_POSITIONS
        or (len(positions) and positions.max() >> 63)
    ):
        raise InvalidParquet(
            f"{vector.description} has {len(positions):,} rows, and the log says {vector.cardinality:,}"
        )
    return np.frombuffer(positions.to_array(), np.int64)


def require_pyroaring() -> None:
    """Raise UnsupportedTable if the library that decodes vectors is missing."""
    from importlib.util import find_spec

    if find_spec("pyroaring") is None:
        raise UnsupportedTable("deletion vectors are read with pyroaring: pip install 'secateur[delta]'")
