"""A Hudi table's properties: what kind of table it is, and whether it can be read here.

Source: Hudi's ``HoodieTableConfig``, and "Table Properties" in its technical specification.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from secateur.errors import TableNotFound, UnsupportedTable
from secateur.io.storage.list_files import FileSystem
from secateur.io.storage.redaction import trouble

HOODIE = ".hoodie"
FILES = ("hoodie.properties", "hoodie.properties.backup")  # the second is there while a writer replaces the first
VERSIONS = {5: 1, 6: 1, 8: 2, 9: 2}  # known table versions: the layout of their timeline
_ESCAPED = re.compile(r"\\(.)")
_PATH_KEYS = {"", "SIMPLE", "COMPLEX", "NON_PARTITION"}  # key generators whose paths are the values of columns


@dataclass(frozen=True)
class TableProperties:
    """What the properties say that matters to a reader."""

    version: int
    merges_on_read: bool
    timeline: str  # its directory below the table
    partition_columns: tuple[str, ...]
    partitions_dropped: bool  # files lack the partition columns: only paths have their values
    has_meta_columns: bool
    created_schema: str | None  # in Avro's JSON
    is_utc: bool  # instants are in UTC, else in the time zone of the writers

    @property
    def log_names_base(self) -> bool:
        """Whether the name of a log file has the instant of the base file before it, and not that of its own commit."""
        return self.version < 8


def read_properties(filesystem: FileSystem, root: str, redacted: str) -> TableProperties:
    """Read the properties of a table. Raises TableNotFound, and UnsupportedTable naming what cannot be read here."""
    for name in FILES:
        place = f"{redacted}/{HOODIE}/{name}"
        try:
            with filesystem.open_input_file(posixpath.join(root, HOODIE, name)) as file:
                text = bytes(file.read()).decode()
        except FileNotFoundError:
            continue
        except (OSError, UnicodeError, pa.ArrowException) as error:
            raise trouble(f"cannot read {place}", error, TableNotFound) from None
        if text.strip():
            return properties_of(parsed(text), place, redacted)
    raise TableNotFound(f"{redacted} has a directory {HOODIE} without {FILES[0]}: it is no whole Hudi table")


def parsed(text: str) -> dict[str, str]:
    """Parse properties as Java writes them."""
    pairs = (line.partition("=") for line in text.splitlines() if line.strip() and line.lstrip()[0] not in "#!")
    return {_unescaped(key.strip()): _unescaped(value.strip()) for key, _, value in pairs}


def _unescaped(text: str) -> str:
    """Undo the escapes of Java's properties."""
    return _ESCAPED.sub(lambda match: {"n": "\n", "t": "\t", "r": "\r"}.get(match[1], match[1]), text)


def properties_of(values: Mapping[str, str], place: str, redacted: str) -> TableProperties:
    """Return what properties say. Raises TableNotFound if some are missing, UnsupportedTable."""

    def is_true(name: str, default: bool) -> bool:
        return values.get(name, str(default)).lower() == "true"

    version = _number(values.get("hoodie.table.version"), f"hoodie.table.version in {place}")
    if version not in VERSIONS:
        known = ", ".join(map(str, VERSIONS))
        raise UnsupportedTable(f"{redacted} is a Hudi table of version {version}; versions {known} are known here")
    layout = _number(
        values.get("hoodie.timeline.layout.version") or VERSIONS[version], f"hoodie.timeline.layout.version in {place}"
    )
    if layout != VERSIONS[version]:
        raise UnsupportedTable(f"{redacted} has a timeline of layout {layout}, which version {version} has not")
    kind = values.get("hoodie.table.type", "")
    if kind not in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        raise TableNotFound(f"{place} says that the table's type is {kind!r}, which is none of Hudi")
    _require_readable(values, redacted)
    fields = [field.strip() for field in values.get("hoodie.table.partition.fields", "").split(",")]
    dropped = is_true("hoodie.datasource.write.drop.partition.columns", False) and any(fields)
    if dropped and (generator := values.get("hoodie.table.keygenerator.type", "")).upper() not in _PATH_KEYS:
        raise UnsupportedTable(
            f"the files of {redacted} lack its partition columns, and {generator} does not write their values in paths"
        )
    return TableProperties(
        version,
        kind == "MERGE_ON_READ",
        HOODIE if layout == 1 else posixpath.join(HOODIE, values.get("hoodie.timeline.path") or "timeline"),
        tuple(field.partition(":")[0] for field in fields if field),
        dropped,
        is_true("hoodie.populate.meta.fields", True),
        values.get("hoodie.table.create.schema") or None,
        values.get("hoodie.table.timeline.timezone", "LOCAL").upper() == "UTC",
    )


def _require_readable(values: Mapping[str, str], redacted: str) -> None:
    """Raise UnsupportedTable for what is not read here."""
    formats = values.get("hoodie.table.base.file.format", "PARQUET").upper()
    if formats != "PARQUET" or values.get("hoodie.table.multiple.base.file.formats.enable", "").lower() == "true":
        raise UnsupportedTable(f"{redacted} holds base files of {formats}, or of several formats; only Parquet is read")
    if (keeper := values.get("hoodie.table.format", "native")) != "native":
        raise UnsupportedTable(f"{redacted} keeps its metadata as {keeper} does, and not as Hudi itself")
    if values.get("hoodie.bootstrap.base.path"):
        raise UnsupportedTable(
            f"{redacted} was bootstrapped from another table, whose files may hold part of its columns: "
            "rewrite it, or read it by Hudi"
        )


def _number(text: Any, what: str) -> int:
    try:
        return int(text)
    except (TypeError, ValueError):
        raise TableNotFound(f"{what} is {text!r}, and should be a number") from None
