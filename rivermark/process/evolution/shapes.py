"""Shapes of stored types: plain descriptions that outlive the classes they were taken from."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import inspect as types

from rivermark.model.errors import DeclarationError

_SCALARS: Final[dict[type[types.Type], str]] = {
    types.AnyType: "any",
    types.NoneType: "none",
    types.BoolType: "bool",
    types.IntType: "int",
    types.FloatType: "float",
    types.StrType: "str",
    types.BytesType: "bytes",
    types.DateTimeType: "datetime",
    types.DateType: "date",
    types.TimeType: "time",
    types.TimeDeltaType: "timedelta",
    types.UUIDType: "uuid",
    types.DecimalType: "decimal",
}

RecordType = types.StructType | types.DataclassType | types.NamedTupleType | types.TypedDictType
RECORDS: Final = (types.StructType, types.DataclassType, types.NamedTupleType, types.TypedDictType)


class TypeShape(msgspec.Struct, frozen=True, array_like=True):
    """The shape of a stored value: its kind, the kinds inside, and the fields of a record.

    `positional` says that a record's fields are stored by position, without their names; `tag` and
    `tag_field` are those of a tagged msgspec.Struct. A record within itself is `again`.
    """

    kind: str
    name: str = ""
    inside: tuple[TypeShape, ...] = ()
    fields: tuple[FieldShape, ...] = ()
    positional: bool = False
    values: tuple[bool | str | int | None, ...] = ()
    tag: str | int | None = None
    tag_field: str | None = None

    def __str__(self) -> str:
        if self.kind == "union":
            return " | ".join(map(str, self.inside))
        inside = f"[{', '.join(map(str, self.inside))}]" if self.inside else ""
        return f"{self.name or self.kind}{inside}"


class FieldShape(msgspec.Struct, frozen=True, array_like=True):
    """One field of a record; a required one has no default."""

    name: str
    shape: TypeShape
    required: bool


def type_info(of: Any, what: str) -> types.Type:
    """The type information of msgspec; `what` names the declaration in the error."""
    try:
        info = types.type_info(of)
        msgspec.msgpack.Decoder(of)
    except (TypeError, NameError) as error:
        raise DeclarationError(f"{what}: {of!r} cannot be stored: {error}") from error
    return info


def shape_of(info: types.Type, what: str, within: tuple[str, ...] = ()) -> TypeShape:
    """Shape of a type; raises DeclarationError for one that would not come back from storage."""
    scalar = _SCALARS.get(type(info))
    if scalar is not None:
        return TypeShape(scalar)
    if isinstance(info, RECORDS):
        return _shape_of_record(info, what, within)
    match info:
        case types.UnionType():
            inside = (shape_of(each, what, within) for each in info.types)
            return TypeShape("union", inside=tuple(sorted(inside, key=str)))
        case types.EnumType():
            values = tuple(member.value for member in info.cls)
            return TypeShape("enum", name=info.cls.__name__, values=values)
        case types.LiteralType():
            return TypeShape("literal", values=info.values)
        case types.DictType():
            inside = (shape_of(each, what, within) for each in (info.key_type, info.value_type))
            return TypeShape("dict", inside=tuple(inside))
        case types.TupleType():
            inside = (shape_of(each, what, within) for each in info.item_types)
            return TypeShape("tuple", inside=tuple(inside))
        case types.ListType() | types.VarTupleType():
            return TypeShape("list", inside=(shape_of(info.item_type, what, within),))
        case types.SetType() | types.FrozenSetType():
            return TypeShape("set", inside=(shape_of(info.item_type, what, within),))
        case _:
            named = getattr(getattr(info, "cls", None), "__name__", info)
            raise DeclarationError(
                f"{what}: {named} cannot be stored; make it a msgspec.Struct or a dataclass"
            )


def _shape_of_record(info: RecordType, what: str, within: tuple[str, ...]) -> TypeShape:
    name = getattr(info.cls, "__name__", str(info.cls))
    if name in within:
        return TypeShape("again", name=name)
    inner = (*within, name)
    fields = tuple(
        FieldShape(each.encode_name, shape_of(each.type, what, inner), each.required)
        for each in info.fields
    )
    positional = isinstance(info, types.NamedTupleType) or getattr(info, "array_like", False)
    return TypeShape(
        "record",
        name=name,
        fields=fields,
        positional=positional,
        tag=getattr(info, "tag", None),
        tag_field=getattr(info, "tag_field", None),
    )
