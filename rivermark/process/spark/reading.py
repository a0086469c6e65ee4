"""One input of a process: its DataFrame's columns on the way in, its events on the other side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DataType, DecimalType, LongType, StructField, StructType

from rivermark.model.contract import INGEST_BATCH
from rivermark.model.errors import DeclarationError
from rivermark.process.api.declaration import InputSpec
from rivermark.process.api.inputs import Arrivals, key_getter
from rivermark.process.engine.keying import arrivals_of
from rivermark.process.errors import DeadLetter, ProcessError
from rivermark.process.spark.buckets import bucket_of
from rivermark.process.spark.decoding import DecodedEvents, decode_events, missing_values
from rivermark.process.spark.wire import (
    Converted,
    Converter,
    EventField,
    fields_of,
    read_as,
    reading,
    takes_positions,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BUCKET: Final = "_bucket"
ORDER: Final = "_order"


@dataclass(frozen=True)
class InputReader:
    """The reader of one input's rows as events: made on the driver, used by the workers.

    `converters` are what Python does to the values of some fields, by place. `positional` says that
    the event's constructor takes the fields as they come.
    """

    process: str
    spec: InputSpec
    rank: int
    fields: tuple[EventField, ...]
    converters: tuple[Converter | None, ...]
    positional: bool
    schema: pa.Schema
    bucketed: bool
    dead_letter: bool

    def arrivals(self, payloads: Iterable[bytes]) -> tuple[Arrivals, list[DeadLetter]]:
        """Events of packed rows, in order; rows without a required field become dead letters."""
        parts = [pa.ipc.read_record_batch(pa.py_buffer(each), self.schema) for each in payloads]
        rows = in_order(pa.Table.from_batches(parts, self.schema))
        return self.events(rows)

    def events(self, rows: pa.Table) -> tuple[Arrivals, list[DeadLetter]]:
        """Events of ordered rows, with their keys and times, column by column."""
        made = self._made(rows)
        dead: list[DeadLetter] = []
        faults = made.faults | missing_values(made.columns, self.fields, self._key_fields)
        if faults:
            dead = [self._fault(made, place, faults[place]) for place in sorted(faults)]
            made = made.without(faults)
        named = self._named(made)
        spec = self.spec
        known = named.get(spec.time) if isinstance(spec.time, str) else None
        times = known if known and type(known[0]) is int else None
        arrivals, unkeyed = arrivals_of(
            self.process,
            spec,
            made.events,
            dead_letter=self.dead_letter,
            keys=self._keys(named),
            times=times,
        )
        return arrivals, dead + unkeyed

    def buckets_of(self, rows: pa.RecordBatch, buckets: int) -> list[int]:
        """The bucket of each row, where the key is a function that Spark cannot evaluate.

        A row without event or key goes to the first bucket, where the failure is reported.
        """
        made = self._made(rows)
        places = [place for place, event in enumerate(made.events) if event is not None]
        events = [made.events[place] for place in places]
        buckets_of_rows = [0] * len(made.events)
        keys = self._keys(self._named(made.without(made.faults)))
        get = key_getter(self.spec.key) if self.spec.key is not None else None
        for n, (place, event) in enumerate(zip(places, events, strict=True)):
            try:
                key = keys[n] if keys is not None else get(event) if get is not None else None
                buckets_of_rows[place] = bucket_of(key, buckets)
            except Exception:  # noqa: S112  # user code; reported where the event is handled
                continue
        return buckets_of_rows

    def _made(self, rows: pa.Table | pa.RecordBatch) -> DecodedEvents:
        make: Callable[..., Any] = self.spec.event.of
        return decode_events(rows, self.fields, self.converters, make, positional=self.positional)

    def _named(self, made: DecodedEvents) -> dict[str, list[Any]]:
        return {each.name: column for each, column in zip(self.fields, made.columns, strict=True)}

    @property
    def _key_fields(self) -> tuple[str, ...]:
        key = self.spec.key
        return (key,) if isinstance(key, str) else key if isinstance(key, tuple) else ()

    def _keys(self, named: dict[str, list[Any]]) -> list[Any] | None:
        """Keys that are fields; None for those that a function gives."""
        key = self.spec.key
        if isinstance(key, str):
            return named[key]
        if isinstance(key, tuple):
            keys = zip(*(named[each] for each in key), strict=True)
            return [None if None in each else each for each in keys]
        return None

    def _fault(self, made: DecodedEvents, place: int, problem: Exception) -> DeadLetter:
        """The dead letter of a row that is no event; raises ProcessError where there are none."""
        spec = self.spec
        named = self._named(made)
        at = named[spec.time][place] if isinstance(spec.time, str) and spec.time in named else 0
        keys = self._keys(named)
        event = made.payload(place, self.fields, spec.event.of)
        key = None if keys is None else keys[place]
        failure = ProcessError(self.process, key, event, at if type(at) is int else 0, problem)
        if not self.dead_letter:
            raise failure from problem
        return DeadLetter.of(failure, problem, spec.name)


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
) -> InputReader:
    """The reader of an input from rows of these columns; DeclarationError where they do not fit."""
    what = f"process '{process}': input '{spec.name}'"
    declared = fields_of(spec.event.of)
    available = {each.name: each.dataType for each in columns.fields}
    fields, converters, wire = [], [], []
    for field in declared:
        if field.name not in available:
            if field.required:
                raise DeclarationError(
                    f"{what}: its events have a field '{field.name}' and the rows no such column; "
                    f"columns are: {', '.join(available)}"
                )
            continue
        fit = read_as(field, available[field.name])
        if fit is None:
            raise DeclarationError(
                f"{what}: field '{field.name}' ({_type_name(field)}) cannot hold what column "
                f"'{field.name}' has ({available[field.name].simpleString()})"
            )
        fields.append(field)
        converters.append(fit[1])
        wire.append(StructField(field.name, fit[0]))
    ordered = INGEST_BATCH in available or isinstance(spec.time, str)
    if ordered:
        wire.append(StructField(ORDER, LongType()))
    names = [each.name for each in fields]
    return InputReader(
        process=process,
        spec=spec,
        rank=rank,
        fields=tuple(fields),
        converters=tuple(converters),
        positional=names == [each.name for each in declared[: len(names)]]
        and takes_positions(spec.event.of),
        schema=to_arrow_schema(StructType(wire)),
        bucketed=_hashable_by_spark(spec, dict(zip(names, converters, strict=True)), available),
        dead_letter=dead_letter,
    )


def _hashable_by_spark(
    spec: InputSpec, converters: dict[str, Converter | None], columns: dict[str, DataType]
) -> bool:
    """True if the key is made of columns whose equal values Spark hashes alike on every input.

    It hashes a decimal by its digits: 1.5 of one input and 1.50 of another would not meet.
    """
    keys = (spec.key,) if isinstance(spec.key, str) else spec.key
    return isinstance(keys, tuple) and not any(
        isinstance(converters[k], Converted) or isinstance(columns[k], DecimalType) for k in keys
    )


def _type_name(field: EventField) -> str:
    return getattr(field.type, "__name__", None) or str(field.type)


def travelling(reader: InputReader, rows: DataFrame, buckets: int) -> DataFrame:
    """The columns of an input that cross over to Python, with their order and bucket."""
    available = {each.name: each.dataType for each in rows.schema.fields}
    read = {f.name: reading(f.name, f, available[f.name]) for f in reader.fields}
    columns: list[Column] = list(read.values())
    spec = reader.spec
    if INGEST_BATCH in available:
        columns.append(F.col(INGEST_BATCH).cast("bigint").alias(ORDER))
    elif isinstance(spec.time, str):
        columns.append(read[spec.time].alias(ORDER))
    if reader.bucketed:
        keys = (spec.key,) if isinstance(spec.key, str) else spec.key
        assert isinstance(keys, tuple)  # noqa: S101  # asked by `bucketed`
        place = F.pmod(F.xxhash64(*(read[each] for each in keys)), F.lit(buckets))
        columns.append(place.cast("smallint").alias(BUCKET))
    return rows.select(*columns)
