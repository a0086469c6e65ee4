"""Fields of events and rows on their way between Spark's columns and Python.

Times travel as numbers: a datetime costs Python more than the handling of the event. What a column
holds is turned into the form that the field asks for by Spark, in the JVM.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import inspect as types
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampType,
)

from rivermark.model.time import micros_of, moment_of_micros
from rivermark.process.evolution.column_bounds import Bound, bound_of
from rivermark.process.evolution.shapes import RECORDS

if TYPE_CHECKING:
    from pyspark.sql import Column

INTEGRAL: Final = (ByteType, ShortType, IntegerType, LongType)

_OWN_COLUMNS: Final[dict[type[types.Type], type[DataType]]] = {
    types.BoolType: BooleanType,
    types.StrType: StringType,
    types.BytesType: BinaryType,
    types.DateType: DateType,
}
_NUMBERS_AND_TIMES: Final = (
    types.IntType,
    types.FloatType,
    types.DecimalType,
    types.DateTimeType,
)

Converter = Callable[[Any], Any]
WireForm = tuple[DataType, Converter | None]


@dataclass(frozen=True)
class EventField:
    """A field of an event class: its name, its type without None, and what it allows."""

    name: str
    of: types.Type
    type: Any
    optional: bool
    required: bool


def fields_of(cls: Any) -> tuple[EventField, ...]:
    """The fields of a record class in the order of its constructor."""
    info = types.type_info(cls)
    assert isinstance(info, RECORDS)  # noqa: S101  # by Storable
    hints = typing.get_type_hints(getattr(cls, "__origin__", cls))
    fields = []
    for each in info.fields:
        of, optional = each.type, False
        if isinstance(of, types.UnionType):
            rest = tuple(t for t in of.types if not isinstance(t, types.NoneType))
            optional = len(rest) < len(of.types)
            of = rest[0] if len(rest) == 1 else of
        fields.append(EventField(each.name, of, hints[each.name], optional, each.required))
    return tuple(fields)


def takes_positions(cls: Any) -> bool:
    """Returns True if a record's constructor takes all fields by position."""
    parameters = inspect.signature(getattr(cls, "__origin__", cls)).parameters.values()
    return all(each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for each in parameters)


def read_as(field: EventField, column: DataType) -> WireForm | None:
    """The form of a column on its way to a field, and its conversion; None: no way.

    Without a function the value that Arrow gives is the field's.
    """
    match field.of, column:
        case types.IntType(), TimestampType():
            return LongType(), None
        case types.IntType(), _ if isinstance(column, INTEGRAL):
            return LongType(), None
        case types.FloatType(), _ if isinstance(column, FloatType | DoubleType | IntegerType):
            return DoubleType(), None
        case types.DecimalType(), DecimalType():
            return column, None
        case types.DateTimeType(), TimestampType():
            return LongType(), moment_of_micros
        case _:
            return _as_it_is(field, column, Converted(field.type))


def _as_it_is(field: EventField, column: DataType, convert: Converter) -> WireForm | None:
    """A column of the field's own type; others, such as enums and records, by msgspec's rules."""
    own = _OWN_COLUMNS.get(type(field.of))
    if own is not None and isinstance(column, own):
        return column, None
    if own is not None or isinstance(field.of, _NUMBERS_AND_TIMES):
        return None
    return None if isinstance(column, TimestampType | DecimalType) else (column, convert)


@dataclass(frozen=True)
class Converted:
    """A value taken over by msgspec's rules."""

    to: Any

    def __call__(self, value: Any) -> Any:
        """Converter it; raises msgspec.ValidationError for one that does not fit."""
        return msgspec.convert(value, self.to, strict=False)


def reading(name: str, field: EventField, column: DataType) -> Column:
    """The column in the form in which it travels."""
    if isinstance(column, TimestampType):
        as_number = F.unix_millis if isinstance(field.of, types.IntType) else F.unix_micros
        return as_number(F.col(name)).alias(name)
    fit = read_as(field, column)
    assert fit is not None  # noqa: S101  # asked before
    return F.col(name).cast(fit[0]).alias(name)


def write_as(field: EventField, column: DataType) -> WireForm | None:
    """The form of a field on its way to a column, and its conversion; None: no way."""
    match field.of, column:
        case types.IntType(), TimestampType():
            return LongType(), micros_of_millis
        case types.IntType(), _ if isinstance(column, INTEGRAL):
            return LongType(), _bounded(field, column)
        case types.FloatType() | types.IntType(), FloatType() | DoubleType():
            return DoubleType(), None
        case types.DecimalType() | types.IntType(), DecimalType():
            return StringType(), DecimalText(field.name, bound_of(column.simpleString()))
        case types.DateTimeType(), TimestampType():
            return LongType(), micros_of
        case _:
            return _as_it_is(field, column, msgspec.to_builtins)


@dataclass(frozen=True)
class DecimalText:
    """A decimal as the text that it travels as; raises Misuse where its column has no room."""

    name: str
    bound: Bound | None

    def __call__(self, value: Any) -> str:
        """The text."""
        if self.bound is not None:
            self.bound.check(self.name, value)
        return str(value)


@dataclass(frozen=True)
class Bounded:
    """A whole number as it is; raises Misuse where its column has no room."""

    name: str
    bound: Bound

    def __call__(self, value: int) -> int:
        """The number."""
        self.bound.check(self.name, value)
        return value


def _bounded(field: EventField, column: DataType) -> Converter | None:
    bound = bound_of(column.simpleString())
    return None if bound is None else Bounded(field.name, bound)


def writing(name: str, column: DataType) -> Column:
    """A column as a table keeps it, from the form in which it travelled."""
    if isinstance(column, TimestampType):
        return F.timestamp_micros(F.col(name)).alias(name)
    return F.col(name).cast(column).alias(name)


def micros_of_millis(millis: int) -> int:
    """Microseconds of milliseconds since the epoch."""
    return millis * 1000
