"""An ingest: the stream that brings records of a source into the lake as typed events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, Literal

from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, StructType, TimestampType

from rivermark.model.bounds import check_above_zero, check_share
from rivermark.model.contract import (
    FIRST_WATERMARK,
    LANDED_AT,
    QUARANTINE_SCHEMA,
    RAW_SCHEMA,
    Contract,
    Rule,
)
from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError
from rivermark.model.names import check_group, check_name, check_owners
from rivermark.model.restart_strategy import RestartStrategy
from rivermark.model.source import Source
from rivermark.model.suite import Suite, check_columns
from rivermark.model.table import Daily, Table
from rivermark.model.time import MILLISECOND
from rivermark.model.watermark import WATERMARK_AFTER, PerProducer

MARK_AHEAD: Final = "mark_ahead"
"""The reason of a row whose mark would move the watermark of its producer beyond all bounds."""
UNDECLARED: Final = timedelta.min
"""The lateness of an ingest that does not state one, which only a lookup may leave out."""


@declared("stream")
@dataclass(frozen=True, kw_only=True)
class Ingest:
    """A stream that brings events in: source, raw rows, admission; admitted, late, quarantined.

        RIDE_EVENTS = Ingest(
            name="taxi/ride_events",
            source=FileSource(folder="taxi/rides"),
            contract=RIDE_EVENT,
            lateness=timedelta(seconds=60),
            description="The START and the END of each ride as they came.",
            group="taxi_events",
        )

    `lateness` is how far an event's time may be behind the newest one admitted from earlier files
    before the event counts as late; None is for dumps (a month's file is complete in itself and
    nothing in it is late). `watermark=PerProducer(...)` is for sources with several producers, of
    which the slowest then decides. `late_below` and `quarantine_below` are the highest shares of
    late and quarantined rows that the checks let pass. `money` names a decimal field whose sum
    shows how much is at stake in late rows. `personal` columns never appear as samples on pages.

    `kind`:
    - `events`: each admitted row is an event of its own.
    - `lookup`: facts about a thing (a store, a zone). The table holds one row for each of its
      `keys`: the one with the newest event time and, if times are equal, the one that landed last.
      Every version is in `versions`. No row is late and the table has no days. Streams take a
      lookup by `static`: whole, as it is at that moment, or by `static=(LOOKUP.versions,)` as of
      the event's time (rivermark.operators.join_as_of).

    Raises:
        DeclarationError: The name is no table's name, the lateness is below one millisecond or
            finer than that, the contract begins before 1970 although there is a lateness, `money`
            is no decimal field of the contract, the keys of a lookup are no required fields,
            it declares what only events have, or a watermark per producer without a lateness, of
            a source that does not tell producers apart, or with a mark that is no timestamp field.
    """

    name: str
    source: Source
    contract: Contract
    lateness: timedelta | None = UNDECLARED
    watermark: PerProducer | None = None
    description: str
    group: str
    kind: Literal["events", "lookup"] = "events"
    keys: tuple[str, ...] = ()
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
        check_name("stream", self.name, like="taxi/rides")
        check_group(self.name, self.group)
        check_owners(self.name, self.owners)
        if self.kind == "lookup":
            self._check_lookup()
        elif self.keys:
            raise DeclarationError(
                f"stream '{self.name}': only a lookup has `keys`; declare kind='lookup', or "
                "give the keys of events to the contract"
            )
        elif self.source.read_whole:
            raise DeclarationError(
                f"stream '{self.name}': its source returns all rows at each reading; declare "
                "kind='lookup' with `keys`, which keeps the newest row of each"
            )
        elif self.contract.by_landing:
            raise DeclarationError(
                f"stream '{self.name}': its contract names no event time, which only a lookup "
                "may leave out: write event_time=... with one of its timestamp "
                f"fields{self._times()}"
            )
        elif self.lateness == UNDECLARED:
            raise DeclarationError(
                f"stream '{self.name}': give a lateness, or None for dumps; only a lookup has none"
            )
        # Below Spark's grain an event as new as the newest one would be late.
        if self.lateness is not None and (
            self.lateness < MILLISECOND or self.lateness % MILLISECOND
        ):
            raise DeclarationError(
                f"stream '{self.name}': a lateness of {self.lateness} is too short or finer "
                "than Spark's milliseconds; give whole milliseconds, at least one, or None for "
                "dumps"
            )
        if self.lateness is not None and self.contract.earliest < FIRST_WATERMARK:
            raise DeclarationError(
                f"stream '{self.name}': a watermark cannot lie before {FIRST_WATERMARK:%Y}, so "
                "earlier events would be dropped as late; give a later `earliest`, or no "
                "lateness"
            )
        if self.watermark is not None and self.lateness is None:
            raise DeclarationError(
                f"stream '{self.name}': its rows cannot be late, so it has no watermark per "
                "producer; leave `watermark` out"
            )
        if self.watermark is not None and not self.source.tells_producers:
            raise DeclarationError(
                f"stream '{self.name}': its source does not tell producers apart, so there is "
                "only one watermark; for files, name them by FileSource(producers=...)"
            )
        if self.watermark is not None and self.watermark.mark is not None:
            self._check_mark(self.watermark.mark)
        amounts = {f.name for f in self.contract.fields if isinstance(f.type, DecimalType)}
        if self.money is not None and self.money not in amounts:
            raise DeclarationError(
                f"stream '{self.name}': there is no decimal field '{self.money}' for `money`"
            )
        stream = f"stream '{self.name}'"
        check_share(stream, late_below=self.late_below, quarantine_below=self.quarantine_below)
        check_above_zero(stream, fresh_within=self.fresh_within)
        # Its table refuses days, keys and personal columns that it does not have.
        check_columns(self.suite, self.name, self.admitted.schema)

    def _times(self) -> str:
        """The timestamp fields of its contract that may be its event time, for an error."""
        times = [
            f.name
            for f in self.contract.fields
            if isinstance(f.type, TimestampType) and f.name != LANDED_AT
        ]
        return f" ({', '.join(times)})" if times else ""

    def _check_mark(self, mark: str) -> None:
        """Refuse a mark that is no time of its own, and have wild ones quarantined."""
        times = {f.name for f in self.contract.fields if isinstance(f.type, TimestampType)}
        if mark not in times - {self.contract.event_time}:
            raise DeclarationError(
                f"stream '{self.name}': the mark '{mark}' of its watermark must be a timestamp "
                f"field other than its event time{self._times()}"
            )
        if all(rule.name != MARK_AHEAD for rule in self.contract.rules):
            ahead = self.contract.max_ahead
            wild = Rule(
                MARK_AHEAD,
                lambda: F.col(mark) > F.col("_landed_at") + F.lit(ahead),
                "quarantine",
                f"Says that its producer is complete more than {ahead} beyond its landing.",
            )
            contract = replace(self.contract, rules=(*self.contract.rules, wild))
            object.__setattr__(self, "contract", contract)

    def _check_lookup(self) -> None:
        """Refuse keys that cannot identify a row, and what only events have."""
        if not self.keys:
            raise DeclarationError(
                f"lookup '{self.name}' needs `keys`: it keeps one row for each of their values"
            )
        if len(set(self.keys)) != len(self.keys):
            raise DeclarationError(
                f"lookup '{self.name}': a key occurs twice in {self.keys}; name each once"
            )
        required = [f.name for f in self.contract.fields if f.required]
        for key in self.keys:
            if key not in required:
                raise DeclarationError(
                    f"lookup '{self.name}': key '{key}' must be a required field of its contract; "
                    f"required are {', '.join(required)}"
                )
        if self.contract.event_time in self.keys:
            raise DeclarationError(
                f"lookup '{self.name}': '{self.contract.event_time}' is the event time, which "
                "decides the newest row of a key; leave it out of the keys"
            )
        if self.lateness not in (None, UNDECLARED):
            raise DeclarationError(
                f"lookup '{self.name}': rows of a lookup are never late; leave `lateness` out"
            )
        object.__setattr__(self, "lateness", None)
        for what, value in (("days", self.days), ("money", self.money)):
            if value is not None:
                raise DeclarationError(
                    f"lookup '{self.name}': only ingests of events have `{what}`; leave it out"
                )

    def _carrying(self, schema: StructType) -> StructType:
        """The columns of rows that carry the watermark, where there is one per producer."""
        return StructType([*schema.fields, WATERMARK_AFTER]) if self.watermark else schema

    @property
    def raw(self) -> Table:
        """Every row as it came, as text: the log from which everything else can be rebuilt."""
        return Table(
            name=f"{self.name}_raw",
            schema=RAW_SCHEMA,
            description=f"What landed for '{self.name}', untouched, with its file and line.",
            personal=("payload",) if self.personal else (),
        )

    @property
    def admitted(self) -> Table:
        """The typed events that were admitted, in commit order; of a lookup the newest by key."""
        return Table(
            name=self.name,
            schema=self._carrying(self.contract.admitted_schema()),
            description=self.description,
            event_time=self.contract.event_time,
            keys=self.keys or self.contract.keys,
            days=self.days,
            personal=self.personal,
        )

    @property
    def versions(self) -> Table:
        """Every admitted row in commit order: of a lookup all versions, of events the events."""
        if self.kind == "events":
            return self.admitted
        return Table(
            name=f"{self.name}_versions",
            schema=self._carrying(self.contract.admitted_schema()),
            description=f"Every version of each row of '{self.name}', as they came.",
            event_time=self.contract.event_time,
            personal=self.personal,
        )

    @property
    def late(self) -> Table:
        """Valid events that came too late, with the watermark they missed."""
        return Table(
            name=f"{self.name}_late",
            schema=self._carrying(self.contract.late_schema()),
            description=f"Events of '{self.name}' behind the watermark when they arrived.",
            event_time=self.contract.event_time,
            personal=self.personal,
        )

    @property
    def quarantine(self) -> Table:
        """Quarantined rows and files, with their reasons and their raw text."""
        return Table(
            name=f"{self.name}_quarantine",
            schema=QUARANTINE_SCHEMA,
            description=f"Quarantined rows and files of '{self.name}', with their reasons.",
            personal=("payload", "details") if self.personal else (),
        )

    @property
    def tables(self) -> tuple[Table, ...]:
        """Every table this stream writes."""
        versions = (self.versions,) if self.kind == "lookup" else ()
        return (self.admitted, self.raw, self.late, self.quarantine, *versions)
