"""Schemas of declarations: given as DDL text, or derived from the record that is stored."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rivermark.model.column_type import ColumnType
from rivermark.model.ddl import data_type
from rivermark.model.errors import DeclarationError
from rivermark.model.place import caller

PLAIN: Final[dict[type, DataType]] = {
    bool: BooleanType(),
    int: LongType(),
    float: DoubleType(),
    str: StringType(),
    bytes: BinaryType(),
    date: DateType(),
    datetime: TimestampType(),
}
LISTS: Final = (list, tuple, set, frozenset)

T = TypeVar("T", bound=DataType)


class TextOr(Generic[T]):
    """A field of a frozen dataclass that may be given as DDL text and is read as the type."""

    also: Final = str
    """What a declaration takes beside the type (rivermark.model.type_check)."""

    def __init__(self, parse: Callable[[str], T]) -> None:
        self._parse = parse

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, declared: Any, owner: type) -> T:
        if declared is None:
            raise AttributeError(self._name)  # by which a dataclass knows that there is no default
        value: T = declared.__dict__[self._name]
        return value

    def __set__(self, declared: Any, value: T | str) -> None:
        if isinstance(value, str):
            try:
                value = self._parse(value)
            except DeclarationError as error:
                kind = type(declared).__name__.lower()
                raise DeclarationError(f"{kind} '{declared.name}': {error}") from error
        declared.__dict__[self._name] = value


def schema_of(record: type[msgspec.Struct]) -> StructType:
    """The columns of a record, one a field, in its order, all nullable.

    int is `long`, float `double`, str (and a Literal of texts) `string`, datetime `timestamp`; a
    list, a dict and a record in a record are `array`, `map` and `struct`. `Annotated` with a
    ColumnType says otherwise, and must for a Decimal; `Annotated` with a text describes the column.

    Raises:
        DeclarationError: It is no Struct's class, or a field's type has no column type; the message
            names the field.
    """
    _check_record(record)
    hints = get_type_hints(record, include_extras=True)
    return StructType(
        [
            StructField(
                name,
                _column(hints[name], f"field '{name}' of {record.__name__}"),
                True,
                _comment(hints[name]),
            )
            for name in record.__struct_fields__
        ]
    )


def described(record: type[msgspec.Struct]) -> str:
    """The first paragraph of a record's docstring, in one line."""
    return " ".join((record.__doc__ or "").split("\n\n")[0].split())


def _comment(hint: Any) -> dict[str, str] | None:
    """The text that describes a field, as a column's metadata."""
    hint, _ = _without_none(hint)
    texts = [each for each in getattr(hint, "__metadata__", ()) if isinstance(each, str)]
    return {"comment": texts[-1]} if texts else None


def _check_record(record: object) -> None:
    """Refuse what is no Struct's class."""
    if isinstance(record, type) and issubclass(record, msgspec.Struct):
        return
    name = getattr(record, "__name__", type(record).__name__)
    fault = f"{name} is no record: write its class as `class {name}(msgspec.Struct, frozen=True)`"
    if isinstance(record, msgspec.Struct):
        fault = f"a table is made of the class {name}, not of an object of it"
    raise DeclarationError(fault).at(caller())


def _column(hint: Any, where: str) -> DataType:
    """The column type of a type hint; `where` begins the error."""
    hint, _ = _without_none(hint)
    if get_origin(hint) is Annotated:
        stored = [each for each in hint.__metadata__ if isinstance(each, ColumnType)]
        return data_type(stored[-1].ddl) if stored else _column(hint.__origin__, where)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal and all(isinstance(each, str) for each in arguments):
        return StringType()
    if origin in LISTS and len({a for a in arguments if a is not Ellipsis}) == 1:
        return ArrayType(_column(arguments[0], where), _without_none(arguments[0])[1])
    if origin is dict:
        return MapType(
            _column(arguments[0], where),
            _column(arguments[1], where),
            _without_none(arguments[1])[1],
        )
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return schema_of(hint)
    if hint in PLAIN:
        return PLAIN[hint]
    name = getattr(hint, "__name__", hint)
    like = "decimal(12,2)" if hint is Decimal else "string"
    raise DeclarationError(
        f"{where}: no column type is known for {name}; name one, as in "
        f"Annotated[{name}, ColumnType('{like}')]"
    )


def _without_none(hint: Any) -> tuple[Any, bool]:
    """A type without None, and whether None was among it."""
    if get_origin(hint) in (Union, UnionType):
        rest = [each for each in get_args(hint) if each is not NoneType]
        if len(rest) == 1:
            return rest[0], True
    return hint, False
