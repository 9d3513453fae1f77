"""Columns by field id, which is how formats that rename and re-add columns tell them apart.

A table's schema carries the id of every field, nested ones too, in Arrow's field metadata, as Parquet files do. An
index of such a table refers to columns by these ids, so that it survives a rename, and does not mistake a new column
for an old one of the same name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from secateur.errors import IndexFault
from secateur.index.naming import ByFieldId, Path
from secateur.pruning.predicate.variant_paths import is_variant

if TYPE_CHECKING:
    from secateur.io.tables.table import TableSnapshot

FIELD_ID = b"PARQUET:field_id"  # pyarrow's name for it in files that it reads


def with_id(field: pa.Field, field_id: int) -> pa.Field:
    """Return the field with an id."""
    return field.with_metadata({**(field.metadata or {}), FIELD_ID: str(field_id).encode()})


def id_of(field: pa.Field) -> int | None:
    """Return the id of a field; None if it has none."""
    number = (field.metadata or {}).get(FIELD_ID)
    return None if number is None else int(number)


def has_ids(schema: pa.Schema) -> bool:
    """Return whether any field of a schema, at any depth, has an id."""
    return any(map(_has_id, schema))


def _has_id(field: pa.Field) -> bool:
    return id_of(field) is not None or any(map(_has_id, children(field.type)))


def children(type_: pa.DataType) -> list[pa.Field]:
    """Return the fields within a type: those of a struct, the element of a list, the key and value of a map."""
    match type_:
        case pa.MapType():
            return [type_.key_field, type_.item_field]
        case pa.StructType():
            return list(type_)
        case pa.ListType() | pa.LargeListType() | pa.FixedSizeListType():
            return [type_.value_field]
        case _:
            return []


def naming_of(schema: pa.Schema) -> ByFieldId:
    """Return the naming of a schema's columns, and of those nested in structs, by name and id."""
    in_index = {names: tuple(map(str, ids)) for names, ids in paths(schema)}
    return ByFieldId(in_index, {ids: names for names, ids in in_index.items()})


def require_named_as(table: TableSnapshot, schema: pa.Schema) -> None:
    """Raise IndexFault if an index of a schema names columns by name and its table now by id, or the other way round.

    Delta may begin to map the columns of a table, whose files stay as they are. A name may be another column's id.
    """
    if table.id is None or not len(schema):
        return
    by_id = all((field.metadata or {}).get(FIELD_ID) == field.name.encode() for field in schema)
    if by_id != isinstance(table.naming, ByFieldId):
        before, now = ("id", "name") if by_id else ("name", "id")
        raise IndexFault(
            f"the index at {table.store.location} knows columns by {before}, and the table now by {now}: "
            "build the index anew"
        )


def paths(schema: pa.Schema) -> Iterator[tuple[Path, tuple[int, ...]]]:
    """Yield the path of every column, and of those nested in structs, in names and in ids."""
    for field in schema:
        yield from _paths(field, (), ())


def _paths(field: pa.Field, names: Path, ids: tuple[int, ...]) -> Iterator[tuple[Path, tuple[int, ...]]]:
    number = id_of(field)
    assert number is not None, f"{field} has no id"
    names, ids = (*names, field.name), (*ids, number)
    yield names, ids
    if pa.types.is_struct(field.type) and not is_variant(field.type):
        for child in field.type:
            yield from _paths(child, names, ids)


def fields_by_id(schema: pa.Schema) -> dict[int, pa.Field]:
    """Return the columns of a schema, and the fields nested in structs, by id."""
    fields, pending = {}, list(schema)
    while pending:
        field = pending.pop()
        number = id_of(field)
        if number is not None:
            fields[number] = field
        if pa.types.is_struct(field.type):
            pending += list(field.type)
    return fields


def called_by_id(schema: pa.Schema) -> pa.Schema:
    """Return the schema with every column, and those nested in structs, named by its id."""
    return pa.schema([_called_by_id(field) for field in schema])


def _called_by_id(field: pa.Field) -> pa.Field:
    type_ = field.type
    if pa.types.is_struct(type_) and not is_variant(type_):
        type_ = pa.struct([_called_by_id(child) for child in type_])
    return pa.field(str(id_of(field)), type_, metadata=field.metadata)


@dataclass(frozen=True)
class MappedName:
    """The id that a name maps to in files without ids, with the mapping of its children."""

    id: int | None
    within: Mapping[str, MappedName]


def names_by_id(mapping: Mapping[str, MappedName]) -> dict[int, set[str]]:
    """Return the names of every field, nested ones too, by id."""
    names: dict[int, set[str]] = {}
    pending = [mapping]
    while pending:
        for name, mapped in pending.pop().items():
            if mapped.id is not None:
                names.setdefault(mapped.id, set()).add(name)
            pending.append(mapped.within)
    return names


def with_mapped_ids(schema: pa.Schema, mapping: Mapping[str, MappedName]) -> pa.Schema:
    """Return a file's schema with the ids that a name mapping gives its fields; unmapped fields have none.

    Source: Iceberg's specification, "Column Projection" and "Name Mapping Serialization".
    """
    return pa.schema([_mapped(field, field.name, mapping) for field in schema])


def _mapped(field: pa.Field, name: str, mapping: Mapping[str, MappedName]) -> pa.Field:
    mapped = mapping.get(name)
    within = mapped.within if mapped is not None else {}
    match field.type:
        case pa.MapType() as map_:
            type_ = pa.map_(_mapped(map_.key_field, "key", within), _mapped(map_.item_field, "value", within))
        case pa.StructType() as struct:
            type_ = pa.struct([_mapped(child, child.name, within) for child in struct])
        case pa.ListType() | pa.LargeListType() | pa.FixedSizeListType() as list_:
            type_ = pa.list_(_mapped(list_.value_field, "element", within))
        case type_:
            pass
    plain = pa.field(field.name, type_, field.nullable)
    return plain if mapped is None or mapped.id is None else with_id(plain, mapped.id)
