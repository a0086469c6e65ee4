"""Settings shared by the streams of a domain, stated once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from functools import partial
from typing import Any, Final, Literal, TypedDict, Unpack

import msgspec
from pyspark.sql.types import StructType

from rivermark.model.columns import described, schema_of
from rivermark.model.contract import Contract
from rivermark.model.ddl import struct_type
from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError
from rivermark.model.names import check_zone
from rivermark.model.parameters import Parameter
from rivermark.model.restart_strategy import RestartStrategy
from rivermark.model.rule import Expectation
from rivermark.model.sink import Sink
from rivermark.model.source import Source
from rivermark.model.stream import AnyStream, Build, Condition, Ingest, Output, Stream
from rivermark.model.suite import Suite
from rivermark.model.table import Daily, Table, check_first_day
from rivermark.model.watermark import PerProducer

EVENT_TIMES: Final = ("event_time", "window_end")
"""Columns that are the event time of a table for which none is named, the first that it has."""
Row = type[msgspec.Struct] | StructType | str
"""The columns of a table: a record, the columns of a contract, or DDL text."""
Keys = str | tuple[str, ...]


class TableOptions(TypedDict, total=False):
    """Options of `Domain.table` behind its name and its columns."""

    description: str
    keys: Keys
    event_time: str | None
    days: Daily | str | None
    personal: tuple[str, ...]
    retention: timedelta | None
    properties: dict[str, str]


class StreamOptions(TableOptions, total=False):
    """Options of `Domain.stream`, which are those of `Stream` and of the table that it writes."""

    group: str
    owners: tuple[str, ...]
    kind: Literal["append", "refresh"]
    volume: Literal["events", "results"]
    lateness: timedelta | None
    margin: timedelta
    touches: Condition | None
    static: tuple[AnyStream | Table, ...]
    state_store: Literal["heap", "rocksdb"]
    fresh_within: timedelta | None
    suite: Suite | None
    restart: RestartStrategy | None
    parameters: Mapping[str, Parameter]


class IngestOptions(TypedDict, total=False):
    """Options of `Domain.ingest`, which are those of `Ingest`."""

    group: str
    owners: tuple[str, ...]
    lateness: timedelta | None
    watermark: PerProducer | None
    kind: Literal["events", "lookup"]
    personal: tuple[str, ...]
    money: str | None
    late_below: float
    quarantine_below: float
    fresh_within: timedelta | None
    suite: Suite | None
    restart: RestartStrategy | None


@declared("domain", lambda values: values.get("group"))
class Domain:
    """The group, the owners and the days that the declarations of a domain have in common.

        TAXI = Domain("taxi_events", owners=("team:taxi",), first_day=date(2020, 1, 1))

        LONG_RIDES = TAXI.stream(
            "taxi/long_rides",
            LongRide,
            reads=CLEAN_RIDES,
            build=run_process(LongRides),
            keys="ride_id",
            expect=[expect.unique("ride_id")],
        )

    `zone` is that of the days. A declaration that needs another group or owner states it.
    """

    def __init__(
        self, group: str, *, first_day: date, owners: tuple[str, ...] = (), zone: str = "UTC"
    ) -> None:
        check_zone(f"domain '{group}'", zone)
        check_first_day(f"domain '{group}'", first_day)
        # Type checkers know the arguments of a partial, so nothing is listed twice.
        self.days = partial(Daily, start=first_day, zone=zone)
        self._shared: dict[str, Any] = {"group": group, "owners": owners}

    def table(self, name: str, row: Row, **options: Unpack[TableOptions]) -> Table:
        """A table of the domain: what `Table` takes, with less to write.

        `row` is the record that a process function emits, whose docstring is the description, the
        columns of a contract, or DDL text. The event time is the column `event_time`, or
        `window_end`, unless another one is named; the days are those of the event time, and of a
        window those of `window_start`.
        """
        values: dict[str, Any] = {"description": "", **options}
        values["keys"] = _several(options.get("keys", ()))
        if isinstance(row, str):
            with suppress(DeclarationError):  # Which the table says of its schema.
                values["schema"] = struct_type(row)
        elif isinstance(row, StructType):
            values["schema"] = row
        else:
            values["schema"] = schema_of(row)
            values["description"] = options.get("description") or described(row)
        names = values["schema"].names if "schema" in values else []
        if "event_time" not in values:
            values["event_time"] = next((each for each in EVENT_TIMES if each in names), None)
        default = values["event_time"]
        if default == "window_end" and "window_start" in names:
            default = "window_start"
        values["days"] = self._days(values.get("days", default))
        return Table(name=name, **{"schema": row, **values})

    def stream(
        self,
        name: str | None = None,
        row: Row | None = None,
        *,
        reads: AnyStream | Table | tuple[AnyStream | Table, ...],
        build: Build,
        writes: Table | tuple[Output, ...] = (),
        sinks: tuple[Sink, ...] = (),
        expect: Sequence[Expectation] = (),
        may_be_empty: bool = True,
        **options: Unpack[StreamOptions],
    ) -> Stream:
        """A stream of the domain that writes a table of its name with the columns of `row`.

        Or several tables by `writes`. `sinks` are where its rows go beside the table of `row`.
        What is expected of the first table is `expect`; without a row it passes, unless it must not
        be empty. The other options are those of `Domain.table` and of `Stream`.
        """
        values: dict[str, Any] = {**self._shared, **options}
        if name is not None and row is not None:
            of_table = {
                key: values.pop(key) for key in TableOptions.__annotations__ if key in values
            }
            table = self.table(name, row, **of_table)
            writes = (Output(table, sinks=sinks),) if sinks else table
        elif name is not None:
            values["name"] = name
        if expect:
            values["suite"] = Suite(expectations=tuple(expect), may_be_empty=may_be_empty)
        if sinks and (name is None or row is None):
            raise DeclarationError(
                "`sinks` go with a `row`; with `writes`: Output(TABLE, sinks=...)"
            )
        inputs = (reads,) if isinstance(reads, AnyStream | Table) else reads
        return Stream(reads=inputs, build=build, writes=writes, **values)

    def ingest(
        self,
        name: str,
        *,
        source: Source,
        contract: Contract,
        description: str,
        keys: Keys = (),
        days: Daily | str | None = None,
        expect: Sequence[Expectation] = (),
        may_be_empty: bool = True,
        **options: Unpack[IngestOptions],
    ) -> Ingest:
        """An ingest of the domain: what `Ingest` takes; `days` may be the name of their column.

        `expect` is what is expected of the admitted rows, as for `stream`.
        """
        values: dict[str, Any] = {**self._shared, **options}
        if expect:
            values["suite"] = Suite(expectations=tuple(expect), may_be_empty=may_be_empty)
        return Ingest(
            name=name,
            source=source,
            contract=contract,
            description=description,
            keys=_several(keys),
            days=self._days(days),
            **values,
        )

    def _days(self, days: Daily | str | None) -> Daily | None:
        return self.days(days) if isinstance(days, str) else days


def _several(names: Keys) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names
