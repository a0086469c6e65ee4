"""What a stream is: a value that says what is read, how it is turned, and what is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Literal

from pyspark.sql.types import DecimalType

from rivermark.model.contract import QUARANTINE_SCHEMA, RAW_SCHEMA, Contract
from rivermark.model.errors import DeclarationError
from rivermark.model.file_source import FileSource
from rivermark.model.parameters import Parameter, with_parameters
from rivermark.model.table import NAME, Daily, Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from rivermark.model.restart_strategy import RestartStrategy
    from rivermark.model.suite import Suite

    Build = Callable[..., DataFrame]
    Condition = Callable[[], Column]

MILLI: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, kw_only=True)
class Ingest:
    """A stream that brings events in: files -> raw -> the door -> admitted, late, set aside.

    `lateness` is how far an event's time may lie behind the newest admitted in earlier files before
    the event counts as late; None is for dumps (a month's file is complete in itself and nothing in
    it is late). `late_below` is the highest share of late rows that its check lets pass. `money`
    names a decimal field whose sum says how much is at stake in late rows.
    """

    name: str
    source: FileSource
    contract: Contract
    lateness: timedelta | None
    description: str
    group: str
    days: Daily | None = None
    personal: tuple[str, ...] = ()
    money: str | None = None
    owners: tuple[str, ...] = ()
    late_below: float = 0.05
    quarantine_below: float = 0.05
    fresh_within: timedelta | None = None
    suite: Suite | None = None
    restart: RestartStrategy | None = None

    def __post_init__(self) -> None:
        """Refuse a lateness below Spark's grain: an event as new as the newest would be late."""
        if not NAME.fullmatch(self.name):
            raise DeclarationError(f"stream name {self.name!r}: expected like 'taxi/rides'")
        if self.lateness is not None and (self.lateness < MILLI or self.lateness % MILLI):
            raise DeclarationError(
                f"stream '{self.name}': a lateness of {self.lateness} would call an event late "
                "that is as new as the newest one of the file before, or is finer than Spark's; "
                "give whole milliseconds, at least one, or None for dumps"
            )
        amounts = {f.name for f in self.contract.fields if isinstance(f.type, DecimalType)}
        if self.money is not None and self.money not in amounts:
            raise DeclarationError(f"stream '{self.name}': no decimal field '{self.money}'")

    @property
    def raw(self) -> Table:
        """What came, row by row, as text: the log from which everything else can be rebuilt."""
        return Table(
            name=f"{self.name}_raw",
            schema=RAW_SCHEMA,
            description=f"What landed for '{self.name}', untouched, with its file and line.",
            personal=("payload",) if self.personal else (),
        )

    @property
    def admitted(self) -> Table:
        """The typed events that passed the door, in commit order."""
        return Table(
            name=self.name,
            schema=self.contract.admitted_schema(),
            description=self.description,
            event_time=self.contract.event_time,
            keys=self.contract.keys,
            days=self.days,
            personal=self.personal,
        )

    @property
    def late(self) -> Table:
        """Valid events that came too late, with the watermark they missed."""
        return Table(
            name=f"{self.name}_late",
            schema=self.contract.late_schema(),
            description=f"Events of '{self.name}' behind the watermark when they arrived.",
            event_time=self.contract.event_time,
            personal=self.personal,
        )

    @property
    def quarantine(self) -> Table:
        """What was set aside, with its reasons and its raw text."""
        return Table(
            name=f"{self.name}_quarantine",
            schema=QUARANTINE_SCHEMA,
            description=f"Rows and files of '{self.name}' that were set aside, with their reasons.",
            personal=("payload", "details") if self.personal else (),
        )

    @property
    def tables(self) -> tuple[Table, ...]:
        """Every table this stream writes."""
        return (self.admitted, self.raw, self.late, self.quarantine)


@dataclass(frozen=True)
class Output:
    """One table of a stream, and which of the built rows go to it (all, without a condition).

    `suite` is what is expected of the table; of the first one the stream's own, where it has one.
    """

    table: Table
    where: Condition | None = None
    suite: Suite | None = None


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A stream that derives tables from tables. The same `build` serves stream, backfill and test.

    `reads` are streams or tables, given to `build` as DataFrames in that order. `build` is pure and
    never asks how it is run. `writes` is a table, or several with conditions.

    `kind`:
    - `append`: a streaming query with a watermark of `lateness` on each input's event time; rows
    are
      final when they appear. `lateness` must be at least the largest of the inputs' (default:
      that); it may be less for a process function, which is handed the rows that come late.
    - `refresh`: for dumps without a watermark: each micro-batch finds the days it touches and
      recomputes those days of the output from the whole input. Needs `days` on the written tables
      and `touches` where the day is not simply that of the input's event time. Reads one input by
      stream; further inputs are looked up whole.

    `volume`: `events` when a batch gives about as many rows as it takes (executors write them);
    `results` when it gives few (the driver commits them; an empty batch leaves no commit).
    `parameters` are values that `build` takes by name (a process function's maker likewise), such
    as a threshold: `rivermark reprocess --what-if NAME=VALUE` tries another one over past days.
    `margin`: how much more input, before and after, a recomputed day must see (windows, sessions
    and joins across midnight); no result's day lies further from the rows that it was made of.
    `static` are tables looked up whole in each batch, given to `build`
    last.
    """

    name: str
    reads: tuple[AnyStream | Table, ...]
    build: Build
    writes: Table | tuple[Output, ...]
    description: str
    group: str
    kind: Literal["append", "refresh"] = "append"
    volume: Literal["events", "results"] = "results"
    lateness: timedelta | None = None
    margin: timedelta = timedelta(0)
    touches: Condition | None = None
    static: tuple[AnyStream | Table, ...] = ()
    state_store: Literal["heap", "rocksdb"] = "heap"
    owners: tuple[str, ...] = ()
    fresh_within: timedelta | None = None
    suite: Suite | None = None
    restart: RestartStrategy | None = None
    parameters: Mapping[str, Parameter] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Refuse a declaration that no mode could run."""
        if not NAME.fullmatch(self.name):
            raise DeclarationError(f"stream name {self.name!r}: expected like 'taxi/hourly_tips'")
        if not self.reads:
            raise DeclarationError(f"stream '{self.name}' reads nothing")
        if self.kind == "append":
            for read in self.reads:
                self._check_read(read)
            bare = [read.name for read in self.reads if isinstance(read, Table)]
            if bare and self.lateness is None:
                raise DeclarationError(
                    f"stream '{self.name}': nothing tells how late rows of '{bare[0]}' may be; "
                    "give a lateness, or the stream that writes the table"
                )
            if self.lateness is not None and self.lateness % MILLI:
                raise DeclarationError(f"stream '{self.name}': lateness in whole milliseconds")
            needed = needed_lateness(self)
            # A process function is handed what comes late; native operators drop it.
            drops = not hasattr(self.build, "bound")
            if drops and self.lateness is not None and self.lateness < needed:
                raise DeclarationError(
                    f"stream '{self.name}': a lateness of {self.lateness} would drop rows that its "
                    f"inputs may still bring; give at least {needed}"
                )
        if self.kind == "refresh" and any(o.table.days is None for o in self.outputs):
            raise DeclarationError(f"stream '{self.name}': a refreshed table needs its days")
        if self.parameters:
            try:
                object.__setattr__(self, "build", with_parameters(self.build, self.parameters))
            except DeclarationError as error:
                raise DeclarationError(f"stream '{self.name}': {error}") from error
        bound = getattr(self.build, "bound", None)
        if bound is not None:
            # A process function fits its rows to the tables; it says here where they do not.
            object.__setattr__(self, "build", bound(self))

    def _check_read(self, read: AnyStream | Table) -> None:
        """Refuse an input of which a watermark could not tell what is late."""
        if table_of(read).event_time is None:
            raise DeclarationError(
                f"stream '{self.name}' reads '{table_of(read).name}', which has no event time"
            )
        dump = isinstance(read, Ingest) and read.lateness is None
        replaced = isinstance(read, Stream) and read.kind == "refresh"
        if dump or replaced:
            raise DeclarationError(
                f"stream '{self.name}' reads '{table_of(read).name}', whose rows come in no order "
                "of time or are replaced by day: declare it with kind='refresh'"
            )

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The written tables with their conditions."""
        return (Output(self.writes),) if isinstance(self.writes, Table) else self.writes

    @property
    def tables(self) -> tuple[Table, ...]:
        """Every table this stream writes."""
        return tuple(o.table for o in self.outputs)

    @property
    def days(self) -> Daily | None:
        """The days of its first table: what a backfill page offers."""
        return self.outputs[0].table.days


AnyStream = Ingest | Stream


def table_of(read: AnyStream | Table) -> Table:
    """The table that a reader of `read` sees: the admitted one, or the first one written."""
    if isinstance(read, Table):
        return read
    return read.admitted if isinstance(read, Ingest) else read.outputs[0].table


def lateness_of(stream: Stream) -> timedelta:
    """The watermark delay on a stream's inputs: its own, or the least that loses nothing."""
    return needed_lateness(stream) if stream.lateness is None else stream.lateness


def needed_lateness(stream: Stream) -> timedelta:
    """The largest lateness among the ingests from which the stream's events come as they came.

    What a derived table of results holds is final and in the order of its commits, so reading one
    needs no delay.
    """
    found = [r.lateness for r in stream.reads if isinstance(r, Ingest) and r.lateness is not None]
    inherited = [lateness_of(r) for r in stream.reads if isinstance(r, Stream) and passes_on(r)]
    return max([*found, *inherited], default=timedelta(0))


def passes_on(stream: Stream) -> bool:
    """Whether a stream gives events on as they came, so that its readers need the same lateness."""
    return stream.volume == "events"


def inputs_of(stream: AnyStream) -> tuple[Table, ...]:
    """The tables that a stream reads, by stream or whole."""
    if isinstance(stream, Ingest):
        return ()
    return tuple(table_of(read) for read in (*stream.reads, *stream.static))
