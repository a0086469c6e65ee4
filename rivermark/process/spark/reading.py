"""One input of a process: its DataFrame's columns on the way in, its events on the other side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from rivermark.errors import DeclarationError
from rivermark.process.declaration import InputSpec
from rivermark.process.failures import DeadLetter, Misuse, ProcessError
from rivermark.process.inputs import Arrivals, instants_of, key_getter
from rivermark.process.spark.buckets import bucket_of
from rivermark.process.spark.wire import (
    Converted,
    Field,
    Turn,
    fields_of,
    read_as,
    reading,
    takes_positions,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ARRIVAL: Final = "_ingest_batch"
"""The column of admitted rows that tells in which order they came; within it, files keep it."""
BUCKET: Final = "_bucket"
ORDER: Final = "_order"


@dataclass(frozen=True)
class Reader:
    """How the rows of one input become events: made on the driver, used by the workers.

    `turns` are what Python does to the values of some fields, by place. `positional` says that the
    event's constructor takes the fields as they come.
    """

    process: str
    spec: InputSpec
    rank: int
    fields: tuple[Field, ...]
    turns: tuple[Turn | None, ...]
    positional: bool
    schema: pa.Schema
    bucketed: bool
    dead_letter: bool

    def arrivals(self, payloads: Iterable[bytes]) -> tuple[Arrivals, list[DeadLetter]]:
        """Events of packed rows, in order; those with a hole where none may be are set aside."""
        parts = [pa.ipc.read_record_batch(pa.py_buffer(each), self.schema) for each in payloads]
        rows = in_order(pa.Table.from_batches(parts, self.schema))
        return self.events(rows)

    def events(self, rows: pa.Table) -> tuple[Arrivals, list[DeadLetter]]:
        """Events of ordered rows, with their keys and times, column by column."""
        dead: list[DeadLetter] = []
        columns = self._columns(rows)
        events = self._made(columns)
        spec = self.spec
        holes = self._holes(columns)
        if holes:
            events, columns = self._without(holes, events, columns, dead)
        named = {each.name: column for each, column in zip(self.fields, columns, strict=True)}
        times = None
        if spec.time is not None:
            known = named.get(spec.time) if isinstance(spec.time, str) else None
            first = known[0] if known else None
            times = known if type(first) is int else instants_of(events, spec.time)
        return Arrivals(spec.name, events, self._keys(named, events), times), dead

    def buckets_of(self, rows: pa.RecordBatch, buckets: int) -> list[int]:
        """The bucket of each row, where the key is a function that Spark cannot evaluate."""
        columns = self._columns(rows)
        named = {each.name: column for each, column in zip(self.fields, columns, strict=True)}
        keys = self._keys(named, self._made(columns))
        return [bucket_of(key, buckets) for key in keys or ()]

    def _columns(self, rows: pa.Table | pa.RecordBatch) -> list[list[Any]]:
        """The values of each field."""
        columns: list[list[Any]] = [rows.column(n).to_pylist() for n in range(len(self.fields))]
        for place, turn in enumerate(self.turns):
            if turn is not None:
                columns[place] = [None if each is None else turn(each) for each in columns[place]]
        return columns

    def _keys(self, named: dict[str, list[Any]], events: list[Any]) -> list[Any] | None:
        key = self.spec.key
        if key is None:
            return None
        if isinstance(key, str):
            return named[key]
        if isinstance(key, tuple):
            keys = zip(*(named[each] for each in key), strict=True)
            return [None if None in each else each for each in keys]
        return list(map(key_getter(key), events))

    def _made(self, columns: list[list[Any]]) -> list[Any]:
        make: Callable[..., Any] = self.spec.event.of
        if self.positional:
            return list(map(make, *columns))
        names = [each.name for each in self.fields]
        values = zip(*columns, strict=True)
        return [make(**dict(zip(names, each, strict=True))) for each in values]

    def _holes(self, columns: Sequence[list[Any]]) -> dict[int, str]:
        """Rows with nothing where a value must be, and the field. A key is the engine's matter."""
        key = self.spec.key
        keys = (key,) if isinstance(key, str) else key if isinstance(key, tuple) else ()
        found: dict[int, str] = {}
        for field, column in zip(self.fields, columns, strict=True):
            if not field.optional and field.name not in keys and None in column:
                for place, value in enumerate(column):
                    if value is None:
                        found.setdefault(place, field.name)
        return found

    def _without(
        self, holes: dict[int, str], events: list[Any], columns: list[list[Any]],
        dead: list[DeadLetter],
    ) -> tuple[list[Any], list[list[Any]]]:  # fmt: skip
        for place, field in holes.items():
            problem = Misuse(f"its field '{field}' is empty and may not be")
            at = getattr(events[place], self.spec.time, 0) if isinstance(self.spec.time, str) else 0
            known = at if type(at) is int else 0
            failure = ProcessError(self.process, None, events[place], known, problem)
            if not self.dead_letter:
                raise failure
            dead.append(DeadLetter.of(failure, problem, self.spec.name))
        kept = [place for place in range(len(events)) if place not in holes]
        return (
            [events[place] for place in kept],
            [[column[place] for place in kept] for column in columns],
        )


def in_order(rows: pa.Table) -> pa.Table:
    """Rows by their order of arrival; of equals those that come first stay first."""
    if ORDER not in rows.column_names or rows.num_rows < 2:
        return rows
    order = rows.column(ORDER).to_numpy()
    if (order[1:] >= order[:-1]).all():
        return rows
    return rows.take(pa.array(order.argsort(kind="stable")))


def reader_for(
    process: str, spec: InputSpec, rank: int, columns: StructType, *, dead_letter: bool
) -> Reader:
    """The reader of an input from rows of these columns; DeclarationError where they do not fit."""
    what = f"process '{process}': input '{spec.name}'"
    declared = fields_of(spec.event.of)
    there = {each.name: each.dataType for each in columns.fields}
    fields, turns, wire = [], [], []
    for field in declared:
        if field.name not in there:
            if field.required:
                raise DeclarationError(
                    f"{what}: its events have a field '{field.name}' and the rows no such column; "
                    f"columns are: {', '.join(there)}"
                )
            continue
        fit = read_as(field, there[field.name])
        if fit is None:
            raise DeclarationError(
                f"{what}: field '{field.name}' ({_type_name(field)}) cannot hold what column "
                f"'{field.name}' has ({there[field.name].simpleString()})"
            )
        fields.append(field)
        turns.append(fit[1])
        wire.append(StructField(field.name, fit[0]))
    ordered = ARRIVAL in there or isinstance(spec.time, str)
    if ordered:
        wire.append(StructField(ORDER, LongType()))
    names = [each.name for each in fields]
    return Reader(
        process=process,
        spec=spec,
        rank=rank,
        fields=tuple(fields),
        turns=tuple(turns),
        positional=names == [each.name for each in declared[: len(names)]]
        and takes_positions(spec.event.of),
        schema=to_arrow_schema(StructType(wire)),
        bucketed=_hashable_by_spark(spec, dict(zip(names, turns, strict=True))),
        dead_letter=dead_letter,
    )


def _hashable_by_spark(spec: InputSpec, turns: dict[str, Turn | None]) -> bool:
    """Whether the key is made of columns that travel as they are."""
    keys = (spec.key,) if isinstance(spec.key, str) else spec.key
    return isinstance(keys, tuple) and not any(isinstance(turns[k], Converted) for k in keys)


def _type_name(field: Field) -> str:
    return getattr(field.type, "__name__", None) or str(field.type)


def travelling(reader: Reader, rows: DataFrame, buckets: int) -> DataFrame:
    """The columns of an input that cross over to Python, with their order and bucket."""
    there = {each.name: each.dataType for each in rows.schema.fields}
    read = {f.name: reading(f.name, f, there[f.name]) for f in reader.fields}
    columns: list[Column] = list(read.values())
    spec = reader.spec
    if ARRIVAL in there:
        columns.append(F.col(ARRIVAL).cast("bigint").alias(ORDER))
    elif isinstance(spec.time, str):
        columns.append(read[spec.time].alias(ORDER))
    if reader.bucketed:
        keys = (spec.key,) if isinstance(spec.key, str) else spec.key
        assert isinstance(keys, tuple)  # noqa: S101  # asked by `bucketed`
        place = F.pmod(F.xxhash64(*(read[each] for each in keys)), F.lit(buckets))
        columns.append(place.cast("smallint").alias(BUCKET))
    return rows.select(*columns)
