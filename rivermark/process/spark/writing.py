"""Rows that a process writes, on their way back: one wire row for all tags, with a tag column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rivermark.model.errors import DeclarationError
from rivermark.process.api.side_outputs import Outputs
from rivermark.process.errors import DeadLetter, Misuse, shorten
from rivermark.process.event_json import to_json
from rivermark.process.evolution.shapes import RECORDS
from rivermark.process.evolution.storable import classes_of
from rivermark.process.spark.buckets import ROWS
from rivermark.process.spark.wire import Converter, fields_of, write_as, writing

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from rivermark.model.table import Table
    from rivermark.process.api.declaration import Declaration

TAG: Final = "_tag"
MAIN: Final = "main"
DEAD: Final = "dead_letters"

DEAD_LETTER_SCHEMA: Final = StructType(
    [
        StructField("process", StringType()),
        StructField("input", StringType()),
        StructField("key_json", StringType()),
        StructField("event_time", TimestampType()),
        StructField("event_json", StringType()),
        StructField("error", StringType()),
        StructField("message", StringType()),
        StructField("line", StringType()),
    ]
)
"""An event whose handling failed, with the error. `event_json` can be fed to the input again:
`msgspec.json.decode(event_json, type=Event)`; NaN and the infinities, which JSON lacks, are texts
there, and numbers again in a replay. Of a timer `input` is empty, and `event_json` tells the kind
of time: `{"timer":"event"}`."""

_LAST_MICRO: Final = 253_402_300_799_999_999
"""The end of the year 9999: later instants are no timestamps."""


@dataclass(frozen=True)
class Tagged:
    """Condition of an `Output`: the rows that the process wrote under a tag."""

    tag: str

    def __call__(self) -> Column:
        """The condition on a built row."""
        return F.col(TAG) == self.tag


main_rows: Final = Tagged(MAIN)
dead_letters: Final = Tagged(DEAD)


def side_rows(tag: str) -> Tagged:
    """The rows of the side output `tag`."""
    return Tagged(tag)


@dataclass(frozen=True)
class RowForm:
    """The form of one tag's rows on the wire: their fields, and each value's conversion.

    `kinds` are the classes that the values of each field have, None where any may come.
    """

    tag: str
    names: tuple[str, ...]
    converters: tuple[Converter | None, ...]
    kinds: tuple[frozenset[type] | None, ...]
    places: tuple[int, ...]
    width: int

    def turned(self, rows: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Wire rows, the tag first."""
        get = dead_letter_values if self.tag == DEAD else _getter(self.names)
        columns = list(zip(*map(get, rows), strict=True))
        wire: list[Iterable[Any]] = [[None] * len(rows)] * self.width
        wire[0] = [self.tag] * len(rows)
        for n, (place, convert) in enumerate(zip(self.places, self.converters, strict=True)):
            values, kinds = columns[n], self.kinds[n]
            if kinds is not None and not kinds.issuperset(map(type, values)):
                self._check(n, kinds, rows, values)
            wire[place] = (
                values if convert is None else [None if v is None else convert(v) for v in values]
            )
        return list(zip(*wire, strict=True))

    def _check(
        self, n: int, kinds: frozenset[type], rows: Sequence[Any], values: Sequence[Any]
    ) -> None:
        """Raise Misuse for the first value that is not of its field's type."""
        for row, value in zip(rows, values, strict=True):
            if not isinstance(value, tuple(kinds)):
                names = ", ".join(sorted(each.__name__ for each in kinds))
                raise Misuse(
                    f"a row of '{self.tag}' has {value!r} in its field '{self.names[n]}', which "
                    f"holds {names}: {shorten(row)}"
                )


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda row: (get(row),)


def dead_letter_values(dead: DeadLetter) -> tuple[Any, ...]:
    """A dead letter in the order of DEAD_LETTER_SCHEMA, times in microseconds."""
    at = dead.at * 1000
    return (
        dead.process,
        dead.input,
        _json(dead.key),
        at if abs(at) <= _LAST_MICRO else None,
        timer_json(dead.timer) if dead.timer else None if dead.event is None else _json(dead.event),
        dead.error,
        dead.message,
        dead.line,
    )


def timer_json(kind: str) -> str:
    """The JSON in place of an event where a timer failed."""
    return msgspec.json.encode({"timer": kind}).decode()


def _json(value: Any) -> str:
    """A key or event as JSON; what has none, such as a key of a wrong type, as its text."""
    try:
        return to_json(value)
    except (TypeError, ValueError):
        return msgspec.json.encode(repr(value)).decode()


@dataclass(frozen=True)
class WireWriter:
    """Turns a batch's outputs into wire rows; made on the driver, used by the workers."""

    forms: tuple[RowForm, ...]
    schema: StructType
    arrow: pa.StructType

    def rows(self, outputs: Outputs) -> list[tuple[Any, ...]]:
        """Wire rows of all tags."""
        wire_rows: list[tuple[Any, ...]] = []
        for form in self.forms:
            rows = (
                outputs.main if form.tag == MAIN
                else outputs.dead if form.tag == DEAD
                else outputs.sides[form.tag]
            )  # fmt: skip
            if rows:
                wire_rows.extend(form.turned(rows))
        return wire_rows

    @property
    def packed(self) -> StructType:
        """The output of a stateful operator: the rows of a bucket in one value."""
        return StructType([StructField(ROWS, ArrayType(self.schema, False), False)])


def writer_for(declared: Declaration, tables: dict[str, Table]) -> tuple[WireWriter, StructType]:
    """The writer for a process whose tags go to these tables, and the columns that it gives.

    Raises DeclarationError for a tag without table, a column without field, or types that do not
    fit.
    """
    columns = _merged(declared.name, tables)
    wire: dict[str, DataType] = {TAG: StringType()}
    places = {name: place + 1 for place, name in enumerate(columns)}
    forms = []
    for tag, table in tables.items():
        names, converters, kinds = [], [], []
        for name, fit, kind in _fits(declared, tag, table):
            if wire.setdefault(name, fit[0]) != fit[0]:
                raise DeclarationError(
                    f"process '{declared.name}': column '{name}' of table '{table.name}' comes in "
                    "another form than the same column of its other tables; give all one type"
                )
            names.append(name)
            converters.append(fit[1])
            kinds.append(kind)
        at = tuple(places[name] for name in names)
        forms.append(
            RowForm(tag, tuple(names), tuple(converters), tuple(kinds), at, len(columns) + 1)
        )
    schema = StructType([StructField(n, wire[n]) for n in (TAG, *columns)])
    built = StructType([StructField(n, t) for n, t in columns.items()])
    return WireWriter(tuple(forms), schema, to_arrow_type(schema, timezone="UTC")), built


def _merged(process: str, tables: dict[str, Table]) -> dict[str, DataType]:
    columns: dict[str, DataType] = {}
    for table in tables.values():
        for each in table.schema.fields:
            if columns.setdefault(each.name, each.dataType) != each.dataType:
                raise DeclarationError(
                    f"process '{process}': its tables have columns '{each.name}' of different "
                    f"types ({columns[each.name].simpleString()}, {each.dataType.simpleString()} "
                    f"in '{table.name}'); rename one"
                )
    return columns


def _fits(
    declared: Declaration, tag: str, table: Table
) -> list[tuple[str, tuple[DataType, Converter | None], frozenset[type] | None]]:
    """The sources of a table's columns in the rows of a tag, and the classes of values."""
    if tag == DEAD:
        if table.schema != DEAD_LETTER_SCHEMA:
            raise DeclarationError(
                f"process '{declared.name}': table '{table.name}' takes dead letters: give it the "
                "schema DEAD_LETTER_SCHEMA"
            )
        return [
            (each.name, (_wire_of(each.dataType), None), None) for each in DEAD_LETTER_SCHEMA.fields
        ]
    storable = declared.out if tag == MAIN else declared.sides[tag].row
    assert storable is not None  # noqa: S101  # a tag has rows
    if not isinstance(storable.info, RECORDS):
        raise DeclarationError(
            f"process '{declared.name}': rows of table '{table.name}' are {storable.shape}; make "
            "them a msgspec.Struct or a dataclass, whose fields are its columns"
        )
    fields = {each.name: each for each in fields_of(storable.of)}
    fits = []
    for column in table.schema.fields:
        field = fields.get(column.name)
        if field is None:
            raise DeclarationError(
                f"process '{declared.name}': table '{table.name}' has a column '{column.name}', "
                f"and its rows ({storable.shape}) no such field; fields are: {', '.join(fields)}"
            )
        fit = write_as(field, column.dataType)
        if fit is None:
            raise DeclarationError(
                f"process '{declared.name}': field '{column.name}' of {storable.shape} does not "
                f"fit column '{column.name}' ({column.dataType.simpleString()}) of table "
                f"'{table.name}'"
            )
        kinds = classes_of(field.of)
        if kinds is not None and field.optional:
            kinds |= {type(None)}
        fits.append((column.name, fit, kinds))
    return fits


def _wire_of(column: DataType) -> DataType:
    return LongType() if isinstance(column, TimestampType) else column


def unpacked(rows: DataFrame, built: StructType) -> DataFrame:
    """Wire rows as the tables keep them, with the tag."""
    return rows.select(F.col(TAG), *(writing(f.name, f.dataType) for f in built.fields))
