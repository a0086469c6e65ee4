"""A stream that derives tables from tables: what it reads, how it computes, what it writes."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Literal, Self

from pyspark.sql import Column, DataFrame

from rivermark.model.bounds import check_above_zero, check_not_negative
from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError
from rivermark.model.ingest import Ingest as Ingest
from rivermark.model.names import check_group, check_name, check_owners
from rivermark.model.parameters import Parameter, with_parameters
from rivermark.model.restart_strategy import RestartStrategy
from rivermark.model.sink import Sink
from rivermark.model.source_abilities import MessageSource
from rivermark.model.suite import Suite, check_columns
from rivermark.model.table import Daily, Table
from rivermark.model.time import MILLISECOND
from rivermark.model.watermark import WATERMARK_AFTER

Build = Callable[..., DataFrame]
Condition = Callable[[], Column]

NO_MARGIN: Final = timedelta(0)
"""The margin of a stream that states none; told apart from timedelta(0) by identity."""
FIRST_TABLES: Final = "(that of its first table)"
"""The default name and description of a stream: those of the first table it writes."""


class BindableBuild(ABC):
    """A build that is fitted to its stream, such as a process function, whose rows must fit tables.

    Unlike native operators, which drop rows behind the watermark, it receives them.
    """

    @abstractmethod
    def bound(self, stream: Stream) -> Self:
        """The same build for a stream's tables; raises DeclarationError where they do not fit."""

    @abstractmethod
    def with_parameters(self, values: Mapping[str, Parameter]) -> Self:
        """The same build with other parameters."""

    @abstractmethod
    def __call__(self, *frames: DataFrame) -> DataFrame:
        """The rows of all outputs."""


def name_of_output(values: Mapping[str, Any]) -> object:
    """The name of an output before it is made: its table's."""
    return getattr(values.get("table"), "name", None)


def name_of_stream(values: Mapping[str, Any]) -> object:
    """The name of a stream before it is made: its own, or its first table's."""
    writes = values.get("writes")
    first = writes[0] if isinstance(writes, tuple | list) and writes else writes
    return values.get("name", getattr(getattr(first, "table", first), "name", None))


@declared("output", name_of_output)
@dataclass(frozen=True)
class Output:
    """One table of a stream, and which of the built rows go to it (all, without a condition).

    `suite` holds the expectations of the table; the first table takes the stream's own suite, if it
    has one. `sinks` are where the rows go: to the table in the lake in any case (appended, unless
    one of them writes it in another way), and to what the others write (docs/sinks/index.md).
    """

    table: Table
    where: Condition | None = None
    suite: Suite | None = None
    sinks: tuple[Sink, ...] = ()

    def __post_init__(self) -> None:
        if sum(sink.writes_table for sink in self.sinks) > 1:
            raise DeclarationError(f"table '{self.table.name}': two sinks write the same table")
        for sink in self.sinks:
            sink.check(self.table)
        check_columns(self.suite, self.table.name, self.table.schema)

    @property
    def updates_rows(self) -> bool:
        """True if rows of the table change after they were written, so that no stream follows."""
        return any(sink.writes_table and sink.updates_rows for sink in self.sinks)


@declared("stream", name_of_stream)
@dataclass(frozen=True, kw_only=True)
class Stream:
    """A stream that derives tables from tables. The same `build` serves stream, backfill and test.

        HOURLY_TIPS = Stream(
            reads=(FARES,),
            build=tips_per_hour,
            writes=Table(name="taxi/hourly_tips", schema=..., description="Tips per hour (USD)."),
            group="taxi",
        )

    `reads` are streams or tables, which `build` takes as DataFrames in that order. `build` is pure
    and does not depend on how it is run. `writes` is a table, or several with conditions. `name`
    and `description` are those of the first table, unless they are given.

    `kind`:
    - `append`: a streaming query with a watermark of `lateness` on each input's event time; rows
      are final when they appear. `lateness` must be at least the largest of the inputs' (default:
      that); it may be less for a process function, which receives late rows.
    - `refresh`: for dumps without a watermark: each micro-batch determines the days it touches and
      recomputes those days of the output from the whole input. Needs `days` on the written tables,
      and `touches` where the day is not that of the input's event time. Reads one input as a
      stream; further inputs are read whole.

    `volume`: `events` when a batch returns about as many rows as it takes; `results` when it
    returns few, or none for long (an empty batch leaves no commit). Whether the driver or executors
    write a batch follows from its size.
    `margin`: how much more input, before and after, a recomputed day must read (windows, sessions
    and joins across midnight); no result's day lies further from the rows that it was made of.
    `static` are tables read whole in each batch, which `build` takes last: lookups, or tables whose
    declared keys are unique then (KeysNotUnique ends the batch otherwise). `parameters` are values
    that `build` takes by name (a process function's maker likewise), such as a threshold:
    `rivermark reprocess --what-if NAME=VALUE` tries another one over past days.

    Raises:
        DeclarationError: The declaration could not run in any mode; the message names the stream.
    """

    reads: tuple[AnyStream | Table, ...]
    build: Build
    writes: Table | tuple[Output, ...]
    group: str
    name: str = FIRST_TABLES
    description: str = FIRST_TABLES
    kind: Literal["append", "refresh"] = "append"
    volume: Literal["events", "results"] = "results"
    lateness: timedelta | None = None
    margin: timedelta = NO_MARGIN
    touches: Condition | None = None
    static: tuple[AnyStream | Table, ...] = ()
    state_store: Literal["heap", "rocksdb"] = "heap"
    owners: tuple[str, ...] = ()
    fresh_within: timedelta | None = None
    suite: Suite | None = None
    restart: RestartStrategy | None = None
    parameters: Mapping[str, Parameter] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not self.tables:
            called = "this stream" if self.name == FIRST_TABLES else f"stream '{self.name}'"
            raise DeclarationError(f"{called} writes nothing: give `writes` a Table")
        for each in ("name", "description"):
            if getattr(self, each) == FIRST_TABLES:
                self._complete(each, getattr(self.tables[0], each))
        check_name("stream", self.name, like="taxi/hourly_tips")
        check_group(self.name, self.group)
        check_owners(self.name, self.owners)
        check_columns(self.suite, self.tables[0].name, self.tables[0].schema)
        check_not_negative(f"stream '{self.name}'", margin=self.margin)
        check_above_zero(f"stream '{self.name}'", fresh_within=self.fresh_within)
        if not self.reads:
            raise DeclarationError(
                f"stream '{self.name}' reads nothing: give `reads` at least one stream"
            )
        for read in self.reads:
            if isinstance(read, Ingest) and read.kind == "lookup":
                raise DeclarationError(
                    f"stream '{self.name}' reads '{read.name}', which is a lookup, and its "
                    "rows change after they have been read. Join it by static=(...)"
                )
        if self.kind == "append":
            if self.touches is not None:
                raise DeclarationError(
                    f"stream '{self.name}': only kind='refresh' has `touches`; leave it out"
                )
            self._check_watermark()
        elif any(table.days is None for table in self.tables):
            raise DeclarationError(f"stream '{self.name}': a refreshed table needs `days`")
        elif any(output.updates_rows for output in self.outputs):
            raise DeclarationError(
                f"stream '{self.name}': a refreshed table is replaced by whole days, so its rows "
                "cannot be updated by key as well; leave the sink out, or use kind='append'"
            )
        if in_real_time := sum(s.real_time for output in self.outputs for s in output.sinks):
            self._check_real_time(in_real_time)
        self._complete("build", self._bound_build())

    def _complete(self, attribute: str, value: Any) -> None:
        """Set a derived value while the stream is made; the only place that changes a stream."""
        object.__setattr__(self, attribute, value)

    def _bound_build(self) -> Build:
        """The build with its parameters; a bindable one fitted to the stream's tables as well."""
        build = self.build
        try:
            if isinstance(build, BindableBuild):
                return build.with_parameters(self.parameters).bound(self)
            built = with_parameters(build, self.parameters)
        except DeclarationError as error:
            raise DeclarationError(f"stream '{self.name}': {error}") from error
        self._check_inputs(built)
        return built

    def _check_inputs(self, build: Build) -> None:
        """Refuse a build that cannot be called with as many inputs as the stream has."""
        inputs = [table_of(read).name for read in (*self.reads, *self.static)]
        try:
            taken = inspect.signature(build)
        except ValueError:
            return  # Written in C: it is known when it is called.
        try:
            taken.bind(*inputs)
        except TypeError:
            name = getattr(self.build, "__name__", type(self.build).__name__)
            names = [p.replace(annotation=p.empty) for p in taken.parameters.values()]
            taken = inspect.Signature(names)
            inputs_in_words = "1 input" if len(inputs) == 1 else f"{len(inputs)} inputs"
            raise DeclarationError(
                f"stream '{self.name}': its build is {name}{taken}, and is called with "
                f"{inputs_in_words}, `reads` then `static`: {', '.join(inputs)}"
            ) from None

    def _check_real_time(self, sinks: int) -> None:
        """Refuse to send in real time what one query cannot make of each message alone."""
        if sinks > 1:
            raise DeclarationError(
                f"stream '{self.name}' has {sinks} sinks in real time, but only one is "
                "possible: declare a stream for each of them"
            )
        reads = self.reads[0]
        is_messages = isinstance(reads, Ingest) and isinstance(reads.source, MessageSource)
        if len(self.reads) > 1 or not is_messages:
            raise DeclarationError(
                f"stream '{self.name}': in real time it must read one input, an ingest of a "
                "KafkaSource"
            )
        if self.kind != "append" or isinstance(self.build, BindableBuild):
            raise DeclarationError(
                f"stream '{self.name}': real time keeps no state, so neither a refreshed "
                "stream nor a process function can be sent by it; use a KafkaSink"
            )
        for table in self.tables:
            if WATERMARK_AFTER.name in table.schema.names:
                raise DeclarationError(
                    f"stream '{self.name}': in real time no message carries "
                    f"{WATERMARK_AFTER.name}, a column of '{table.name}': give the sink to a "
                    "stream of its own, whose table lacks it"
                )

    def _check_watermark(self) -> None:
        """Refuse inputs without a usable watermark, and a lateness that would drop their rows."""
        for read in self.reads:
            self._check_read(read)
        if self.lateness is None:
            for read in self.reads:
                if isinstance(read, Table):
                    raise DeclarationError(
                        f"stream '{self.name}': it is not known how late rows of '{read.name}' may "
                        "be; give a lateness, or read the stream that writes the table"
                    )
            return
        if self.lateness % MILLISECOND:
            raise DeclarationError(f"stream '{self.name}': give `lateness` in whole milliseconds")
        needed = needed_lateness(self)
        if self.lateness < needed and not isinstance(self.build, BindableBuild):
            raise DeclarationError(
                f"stream '{self.name}': a lateness of {self.lateness} would drop rows that its "
                f"inputs may still bring; give at least {needed}"
            )

    def _check_read(self, read: AnyStream | Table) -> None:
        """Refuse an input whose late rows a watermark could not determine."""
        if table_of(read).event_time is None:
            raise DeclarationError(
                f"stream '{self.name}' reads '{table_of(read).name}', which has no event time; "
                "declare `event_time` on that table"
            )
        if isinstance(read, Stream) and loses_watermark(read):
            raise DeclarationError(
                f"stream '{self.name}' reads '{table_of(read).name}', whose events come from a "
                "source with a watermark per producer and no longer carry it: pass on the column "
                f"{WATERMARK_AFTER.name} timestamp in '{read.name}'"
            )
        dump = isinstance(read, Ingest) and read.lateness is None
        replaced = isinstance(read, Stream) and read.kind == "refresh"
        if dump or replaced:
            raise DeclarationError(
                f"stream '{self.name}' reads '{table_of(read).name}', whose rows come in no "
                "order of time or are replaced by day: declare this stream with "
                "kind='refresh', or join the table whole by static=(...)"
            )

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The written tables with their conditions."""
        return (Output(self.writes),) if isinstance(self.writes, Table) else self.writes

    @property
    def tables(self) -> tuple[Table, ...]:
        """Every table this stream writes."""
        return tuple(o.table for o in self.outputs)

    def output(self, table: Table) -> Output:
        """The output that writes the table."""
        return next(output for output in self.outputs if output.table == table)

    @property
    def days(self) -> Daily | None:
        """The days of its first table: what a backfill page offers."""
        return self.outputs[0].table.days


AnyStream = Ingest | Stream


def table_of(read: AnyStream | Table) -> Table:
    """The table that a reader of `read` reads: the admitted one, or the first one written."""
    if isinstance(read, Table):
        return read
    return read.admitted if isinstance(read, Ingest) else read.outputs[0].table


def lateness_of(stream: Stream) -> timedelta:
    """The watermark delay on a stream's inputs: its own, or the least that loses nothing."""
    return needed_lateness(stream) if stream.lateness is None else stream.lateness


def needed_lateness(stream: Stream) -> timedelta:
    """The largest lateness among the ingests whose events reach the stream as they came.

    Results of a derived table are final and in the order of its commits, so reading one needs no
    delay.
    """
    of_ingests = [r.lateness for r in stream.reads if isinstance(r, Ingest) and r.lateness]
    inherited = [lateness_of(r) for r in stream.reads if isinstance(r, Stream) and passes_on(r)]
    return max([*of_ingests, *inherited], default=timedelta(0))


def passes_on(stream: Stream) -> bool:
    """True if a stream writes events as they came, so that its readers need the same lateness."""
    return stream.volume == "events"


def loses_watermark(stream: Stream) -> bool:
    """Returns True if its inputs carry a watermark that the events it writes no longer carry."""
    inputs = [table_of(read) for read in stream.reads]
    carried = any(WATERMARK_AFTER.name in table.schema.names for table in inputs)
    return (
        passes_on(stream) and carried and WATERMARK_AFTER.name not in table_of(stream).schema.names
    )


def inputs_of(stream: AnyStream) -> tuple[Table, ...]:
    """The tables that a stream reads, by stream or whole."""
    if isinstance(stream, Ingest):
        return ()
    return tuple(table_of(read) for read in (*stream.reads, *stream.static))
