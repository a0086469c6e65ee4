"""Types of stored values, checked when they are declared and when a value is set."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, Literal
from uuid import UUID

import msgspec
from msgspec import inspect as types

from rivermark.model.errors import DeclarationError
from rivermark.process.errors import Misuse
from rivermark.process.evolution.column_bounds import bounds_of
from rivermark.process.evolution.shapes import RECORDS, shape_of, type_info

_CLASSES: Final[dict[type[types.Type], tuple[type, ...]]] = {
    types.NoneType: (type(None),),
    types.BoolType: (bool,),
    types.IntType: (int,),
    types.FloatType: (float, int),
    types.StrType: (str,),
    types.BytesType: (bytes,),
    types.DateTimeType: (datetime,),
    types.DateType: (date,),
    types.TimeType: (time,),
    types.TimeDeltaType: (timedelta,),
    types.UUIDType: (UUID,),
    types.DecimalType: (Decimal,),
    types.ListType: (list,),
    types.VarTupleType: (tuple,),
    types.TupleType: (tuple,),
    types.SetType: (set,),
    types.FrozenSetType: (frozenset,),
    types.DictType: (dict,),
}

_PLAIN: Final = frozenset(_CLASSES) - {
    types.ListType, types.VarTupleType, types.TupleType, types.SetType, types.FrozenSetType,
    types.DictType,
}  # fmt: skip
"""Without constraints, which is how they are made without arguments."""

_KEY_KINDS: Final = frozenset(
    ["bool", "int", "str", "bytes", "date", "datetime", "uuid", "decimal", "enum", "literal"]
)


class Storable:
    """A type whose values can be stored and come back equal.

    `classes` are the classes that its values have; None where that is not known in advance.
    """

    __slots__ = ("_bounds", "_decoder", "classes", "info", "of", "shape", "what")

    def __init__(self, of: Any, what: str) -> None:
        self.of = of
        self.what = what
        self.info = type_info(of, what)
        self.shape = shape_of(self.info, what)
        self.classes = classes_of(self.info)
        self._decoder = msgspec.msgpack.Decoder(of)
        self._bounds = bounds_of(of) if isinstance(self.info, RECORDS) else ()

    def __reduce__(self) -> tuple[type[Storable], tuple[Any, str]]:
        """Made again from the type where it is sent to: decoders do not travel."""
        return Storable, (self.of, self.what)

    @property
    def plain(self) -> bool:
        """True if a value of one of the classes always comes back: nothing lies inside it."""
        return isinstance(self.info, types.EnumType) or (
            type(self.info) in _PLAIN and self.info == type(self.info)()
        )

    def verify(self, value: Any) -> None:
        """Raise Misuse unless storage gives `value` back; for values not of the usual classes."""
        if self.classes is not None and not isinstance(value, tuple(self.classes)):
            raise Misuse(f"{self.what} holds {self.shape}, not {value!r}")
        self.verify_deeply(value)

    def verify_deeply(self, value: Any) -> None:
        """Raise Misuse unless every field of `value` has its declared type, and room in it."""
        try:
            self._decoder.decode(msgspec.msgpack.encode(value))
        except (TypeError, ValueError, OverflowError) as error:
            raise Misuse(f"{self.what} holds {self.shape}, not {value!r}: {error}") from error
        for name, bound in self._bounds:
            bound.check(name, getattr(value, name, None))

    def verify_all(self, values: Iterable[Any]) -> None:
        """Raise Misuse for the first of `values` whose class is not one of the declared type's."""
        if self.classes is None or set(map(type, values)) <= self.classes:
            return
        for value in values:
            if value.__class__ not in self.classes:
                self.verify(value)


def classes_of(info: types.Type) -> frozenset[type] | None:
    """Classes of a type's values, or None when any class may appear."""
    known = _CLASSES.get(type(info))
    if known is not None:
        return frozenset(known)
    if isinstance(info, RECORDS):
        cls = getattr(info.cls, "__origin__", info.cls)
        return frozenset([dict if isinstance(info, types.TypedDictType) else cls])
    match info:
        case types.EnumType():
            return frozenset([info.cls])
        case types.LiteralType():
            return frozenset(map(type, info.values))
        case types.UnionType():
            parts = [classes_of(each) for each in info.types]
            known_parts = [part for part in parts if part is not None]
            return frozenset().union(*known_parts) if len(known_parts) == len(parts) else None
        case _:
            return None


def leaf_class(info: types.Type) -> Any:
    """The type of a scalar, enum or literal that `info` describes."""
    if isinstance(info, types.EnumType):
        return info.cls
    if isinstance(info, types.LiteralType):
        return Literal[info.values]
    return _CLASSES.get(type(info), (Any,))[0]


def check_key_type(key: Storable) -> None:
    """Refuse a key type whose values may be missing, unequal to themselves, or not hashable."""
    parts = key.shape.inside if key.shape.kind == "tuple" else (key.shape,)
    for part in parts:
        if part.kind not in _KEY_KINDS and not _is_hashable_record(key):
            raise DeclarationError(
                f"{key.what}: a key of type {key.shape} is not allowed; keys are never null, never "
                "floats, and come back from storage equal: use int, str, bytes, bool, date, "
                "datetime, Decimal, UUID, an enum, or a tuple of these"
            )


def _is_hashable_record(key: Storable) -> bool:
    return (
        key.shape.kind == "record"
        and getattr(key.of, "__hash__", None) is not None
        and all(each.shape.kind in _KEY_KINDS for each in key.shape.fields)
    )
