"""Stored values of an earlier shape, in plain dicts and lists or as values of the present type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import inspect as types

from rivermark.process.evolution.shapes import RECORDS, RecordType, TypeShape
from rivermark.process.evolution.storable import leaf_class

_PLAIN: Final[dict[str, tuple[type, ...]]] = {
    "none": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "bytes": (bytes,),
    "list": (list,),
    "set": (list,),
    "tuple": (list,),
    "dict": (dict,),
}


def named(value: Any, shape: TypeShape, around: Mapping[str, TypeShape] | None = None) -> Any:
    """A stored value of `shape` in plain dicts (records by field name) and lists.

    `around` are the records that enclose it, for shapes that contain themselves.
    """
    if value is None:
        return None
    if shape.kind == "again":
        shape = (around or {})[shape.name]
    match shape.kind:
        case "record":
            return _named_record(value, shape, {**(around or {}), shape.name: shape})
        case "list" | "set":
            return [named(each, shape.inside[0], around) for each in value]
        case "tuple":
            inner = zip(value, shape.inside, strict=True)
            return [named(each, item, around) for each, item in inner]
        case "dict":
            of = shape.inside[1]
            return {key: named(each, of, around) for key, each in value.items()}
        case "union":
            return named(value, _member(value, shape), around)
        case _:
            return value


def revived(value: Any, info: types.Type) -> Any:
    """A plain value with names as a value of the present type that `info` describes.

    Raises msgspec.ValidationError or TypeError when it does not fit.
    """
    if isinstance(info, RECORDS) and isinstance(value, dict):
        return _revived_record(value, info)
    match info:
        case types.UnionType():
            return _revived_member(value, info)
        case types.ListType():
            return [revived(each, info.item_type) for each in value]
        case types.SetType():
            return {revived(each, info.item_type) for each in value}
        case types.FrozenSetType():
            return frozenset(revived(each, info.item_type) for each in value)
        case types.VarTupleType():
            return tuple(revived(each, info.item_type) for each in value)
        case types.TupleType():
            inner = zip(value, info.item_types, strict=True)
            return tuple(revived(each, item) for each, item in inner)
        case types.DictType():
            return {
                msgspec.convert(key, leaf_class(info.key_type)): revived(each, info.value_type)
                for key, each in value.items()
            }
        case _:
            return msgspec.convert(value, leaf_class(info))


def _named_record(value: Any, shape: TypeShape, around: Mapping[str, TypeShape]) -> dict[str, Any]:
    if shape.positional:
        fields = value if shape.tag is None else value[1:]
        value = dict(zip((each.name for each in shape.fields), fields, strict=False))
    fields = {
        each.name: named(value[each.name], each.shape, around)
        for each in shape.fields
        if each.name in value
    }
    return fields if shape.tag_field is None else {shape.tag_field: shape.tag, **fields}


def _member(value: Any, union: TypeShape) -> TypeShape:
    """The part of a union that a stored value belongs to."""
    records = [each for each in union.inside if each.kind in ("record", "again")]
    for each in records:
        if each.tag is None and len(records) == 1 and isinstance(value, dict | list):
            return each
        tag = value[0] if isinstance(value, list) else _tag_of(value, each)
        if each.tag is not None and tag == each.tag:
            return each
    for each in union.inside:
        if isinstance(value, _PLAIN.get(each.kind, (str,))):
            return each
    return TypeShape("any")


def _tag_of(value: Any, record: TypeShape) -> Any:
    return value.get(record.tag_field) if isinstance(value, dict) else None


def _revived_record(value: dict[str, Any], info: RecordType) -> Any:
    fields = {each.encode_name: each for each in info.fields}
    made = {
        fields[name].name: revived(each, fields[name].type)
        for name, each in value.items()
        if name in fields
    }
    return info.cls(**made)


def _revived_member(value: Any, info: types.UnionType) -> Any:
    problem: Exception | None = None
    for each in info.types:
        if (value is None) != isinstance(each, types.NoneType):
            continue
        tag = getattr(each, "tag", None)
        if tag is not None and _other_tag(value, tag, getattr(each, "tag_field", None)):
            continue
        try:
            return revived(value, each)
        except (msgspec.ValidationError, TypeError, ValueError, AttributeError) as error:
            problem = error
    raise msgspec.ValidationError(f"{value!r} fits no part of the union: {problem}")


def _other_tag(value: Any, tag: object, field: str | None) -> bool:
    return not isinstance(value, dict) or value.get(field) != tag
