"""Decodes columns into events, and finds the rows of which none can be made, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow as pa

from rivermark.process.errors import Misuse
from rivermark.process.spark.wire import Converter, EventField

Columns = list[list[Any]]


@dataclass
class DecodedEvents:
    """Events by place, None where none could be made; `faults` says why, by place.

    `columns` are the values of the fields, as the events hold them; a value that could not be read
    is there as it came.
    """

    events: list[Any]
    columns: Columns
    faults: dict[int, Exception] = field(default_factory=dict)

    def payload(self, place: int, fields: Sequence[EventField], make: Callable[..., Any]) -> Any:
        """A row in a dead letter: its event, or its values in the form of the event's JSON."""
        event = self.events[place]
        if event is not None:
            return event
        values = [column[place] for column in self.columns]
        config = getattr(make, "__struct_config__", None)
        if config is not None and config.array_like:
            return values
        return {each.name: value for each, value in zip(fields, values, strict=True)}

    def without(self, places: Mapping[int, Any]) -> DecodedEvents:
        """The others."""
        kept = [place for place in range(len(self.events)) if place not in places]
        return DecodedEvents(
            [self.events[place] for place in kept],
            [[column[place] for place in kept] for column in self.columns],
        )


def decode_events(
    rows: pa.Table | pa.RecordBatch,
    fields: Sequence[EventField],
    converters: Sequence[Converter | None],
    make: Callable[..., Any],
    *,
    positional: bool,
) -> DecodedEvents:
    """Events of rows, column by column."""
    faults: dict[int, Exception] = {}
    columns: Columns = [rows.column(n).to_pylist() for n in range(len(fields))]
    for n, convert in enumerate(converters):
        if convert is not None:
            columns[n] = converted(columns[n], convert, fields[n].name, faults)
    names = [each.name for each in fields]

    def one(values: Sequence[Any]) -> Any:
        return make(*values) if positional else make(**dict(zip(names, values, strict=True)))

    if not faults:
        try:
            if positional:
                return DecodedEvents(list(map(make, *columns)), columns)
            return DecodedEvents([one(each) for each in zip(*columns, strict=True)], columns)
        except Exception:  # a class that checks its values; reported below by row
            return _one_by_one(columns, one, faults)
    return _one_by_one(columns, one, faults)


def _one_by_one(
    columns: Columns, one: Callable[[Sequence[Any]], Any], faults: dict[int, Exception]
) -> DecodedEvents:
    events: list[Any] = []
    for place, values in enumerate(zip(*columns, strict=True)):
        event = None
        if place not in faults:
            try:
                event = one(values)
            except Exception as error:  # reported with the row
                faults[place] = error
        events.append(event)
    return DecodedEvents(events, columns, faults)


def converted(
    column: list[Any], convert: Converter, name: str, faults: dict[int, Exception]
) -> list[Any]:
    """A column in the form of its field; what does not fit stays as it is, and is a fault."""
    try:
        return [None if each is None else convert(each) for each in column]
    except Exception:  # reported below by row
        values = []
        for place, value in enumerate(column):
            try:
                values.append(None if value is None else convert(value))
            except (msgspec.ValidationError, ArithmeticError, TypeError, ValueError) as error:
                values.append(value)
                faults.setdefault(place, Misuse(f"its field '{name}' cannot be read: {error}"))
        return values


def missing_values(
    columns: Columns, fields: Sequence[EventField], keys: Sequence[str]
) -> dict[int, Exception]:
    """Rows with nothing where a value must be. An empty key is the engine's matter."""
    missing: dict[int, Exception] = {}
    for each, column in zip(fields, columns, strict=True):
        if not each.optional and each.name not in keys and None in column:
            for place, value in enumerate(column):
                if value is None:
                    problem = Misuse(f"its field '{each.name}' is empty and may not be")
                    missing.setdefault(place, problem)
    return missing
