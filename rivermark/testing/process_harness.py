"""A process without a stream: feed it events, move its clocks, look at what it did and keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec

from rivermark.process.api.declaration import StateSpec
from rivermark.process.api.inputs import Arrivals
from rivermark.process.api.side_outputs import Outputs
from rivermark.process.engine.bucket import Bucket
from rivermark.process.engine.codec import Codec
from rivermark.process.engine.engine import Engine
from rivermark.process.engine.keying import arrivals_of
from rivermark.process.engine.state_size import Limits
from rivermark.process.errors import DeadLetter, Misuse, StateUnreadable
from rivermark.process.instants import BEGINNING, END_OF_TIME, Millis, instant
from rivermark.process.keyed import KeyedProcess

Event = TypeVar("Event")
Out = TypeVar("Out")


@dataclass(frozen=True)
class SetTimers:
    """Timers of one key, ascending, in milliseconds since the epoch (UTC)."""

    event: tuple[Millis, ...] = ()
    processing: tuple[Millis, ...] = ()


class ProcessHarness(Generic[Event, Out]):
    """Runs a process in a test, without a JVM, as the engine does in a stream.

    Each call is one batch: state is stored and read back in between, so what would not survive a
    restart does not survive here, and every row and state is checked to the last field. Instants
    are aware datetimes or milliseconds since the epoch (UTC). `KeyedProcess` has an example.

    Raises:
        ProcessError: From any call that runs a batch: a handler failed; nothing was changed.
        Misuse: State or rows that are not of the declared types, or an unknown input or output.
    """

    def __init__(
        self,
        process: KeyedProcess[Event, Out],
        *,
        processing_time: datetime | Millis = 0,
        limits: Limits | None = None,
    ) -> None:
        self._engine = Engine(process, limits)
        self._engine.start()
        self._declared = process.declaration
        self._state: bytes | None = None
        self._watermark = BEGINNING
        self._now = instant(processing_time)
        self._written = Outputs(tuple(self._declared.sides))
        self._unkeyed: list[DeadLetter] = []

    def feed(
        self,
        events: Any,
        input: str | None = None,  # noqa: A002
        *,
        watermark: datetime | Millis | None = None,
    ) -> list[Out]:
        """Hand over one event or several as a batch; returns the main rows that it gave.

        A `watermark` comes with the batch, as it does in Spark: timers that it reaches fire first.
        """
        if watermark is not None:
            self._watermark = max(self._watermark, instant(watermark))
        rows = list(events) if isinstance(events, Iterable) else [events]
        return self._run([self._arrivals(input, rows)])

    def feed_together(self, events: Mapping[str, Sequence[Any]]) -> list[Out]:
        """Hand over events of several inputs, by input, as one batch."""
        return self._run([self._arrivals(name, list(rows)) for name, rows in events.items()])

    def feed_columns(self, *arrivals: Arrivals) -> list[Out]:
        """Hand over a batch whose keys and times do not stand in the events."""
        return self._run(arrivals)

    def advance_watermark(self, to: datetime | Millis) -> list[Out]:
        """Let the watermark rise to `to`; returns the main rows that this gave."""
        self._watermark = max(self._watermark, instant(to))
        return self._run([])

    def advance_processing_time(self, to: datetime | Millis) -> list[Out]:
        """Let the wall clock go on to `to`; returns the main rows that this gave."""
        self._now = max(self._now, instant(to))
        return self._run([])

    def end_of_input(self) -> list[Out]:
        """Let the input be over: waiting events are released, timers of both kinds fire."""
        self._watermark = END_OF_TIME
        return self._run([])

    @property
    def watermark(self) -> Millis:
        """The watermark that the next batch will see."""
        return self._watermark

    @property
    def state(self) -> bytes | None:
        """The stored value, None when there is none."""
        return self._state

    def restore(self, state: bytes | None) -> None:
        """Go on from stored state, such as that of an earlier version of the process."""
        self._state = state
        self._check(self._bucket())

    def outputs(self) -> list[Out]:
        """Main rows since the start."""
        return list(self._written.main)

    def side(self, tag: str) -> list[Any]:
        """Rows of a side output since the start."""
        if tag not in self._written.sides:
            known = ", ".join(self._written.sides) or "none"
            raise Misuse(f"'{tag}' is not a side output of the process; declared are: {known}")
        return list(self._written.sides[tag])

    def counters(self) -> dict[str, int]:
        """The process's counters since the start."""
        return dict(self._written.counters)

    def gauges(self) -> dict[str, float]:
        """The latest values of the process's gauges."""
        return dict(self._written.gauges)

    def dead_letters(self) -> list[DeadLetter]:
        """Events whose handler raised, with the error."""
        return list(self._written.dead)

    def state_of(self, key: Any) -> KeyState:
        """The states of a key by name: values (None where there is none), lists and dicts."""
        return state_of(self._bucket(), self._engine.codec, key)

    def timers_of(self, key: Any) -> SetTimers:
        """The timers that are set for a key."""
        bucket = self._bucket()
        return SetTimers(*timers_of(bucket, key))

    def all_keys(self) -> list[Any]:
        """Keys that have state."""
        return list(self._bucket().records)

    def waiting(self) -> int:
        """Number of events that wait for the watermark."""
        return len(self._bucket().held)

    def is_empty(self) -> bool:
        """Returns True if nothing is stored: no state, no timer, no waiting event."""
        return self._state is None

    def close(self) -> None:
        """Stop the process."""
        self._engine.stop()

    def _arrivals(self, name: str | None, rows: list[Any]) -> Arrivals:
        declared, spec = self._declared, self._declared.input(name)

        def taken() -> tuple[Arrivals, list[DeadLetter]]:
            return arrivals_of(declared.name, spec, rows, dead_letter=declared.dead_letter)

        arrivals, unkeyed = taken()
        if arrivals.keys != taken()[0].keys:
            raise Misuse(
                f"process '{declared.name}': the key of input '{spec.name}' is not "
                "deterministic, two readings of the same events differ"
            )
        self._unkeyed.extend(unkeyed)
        return arrivals

    def _run(self, batch: Sequence[Arrivals]) -> list[Out]:
        ran = self._engine.run(self._state, batch, self._watermark, self._now)
        self._check(self._engine.open(ran.state))
        out = self._declared.out
        for row in ran.outputs.main:
            if out is not None:
                out.verify_deeply(row)
        for tag, rows in ran.outputs.sides.items():
            for row in rows:
                self._declared.sides[tag].row.verify_deeply(row)
        self._state = ran.state
        ran.outputs.dead.extend(self._unkeyed)
        self._unkeyed.clear()
        self._written.extend(ran.outputs)
        return ran.outputs.main

    def _bucket(self) -> Bucket:
        return self._engine.open(self._state)

    def _check(self, bucket: Bucket) -> None:
        for key in bucket.records:
            state_of(bucket, self._engine.codec, key)


KeyState = dict[str, Any]
"""The states of a key by name: a value or None, a list, a dict."""


def state_of(bucket: Bucket, codec: Codec, key: Any) -> KeyState:
    """The states of a key; all of them empty for a key that has none.

    Elements with a life are shown without it, and until the sweep that removes them. Raises
    StateUnreadable, with the key, for a record that storage does not give back.
    """
    stored = bucket.records.get(key)
    if stored is None:
        record = codec.template
    elif isinstance(stored, list):
        record = stored
    else:
        try:
            record = codec.record(stored)
        except (msgspec.DecodeError, ValueError) as error:
            raise StateUnreadable(
                f"process '{codec.declaration.name}': the state of key {key!r} cannot be read "
                f"back, its values are not of the declared types: {error}"
            ) from error
    slots = zip(codec.declaration.states, record, strict=False)
    return {spec.name: _plain(spec, each) for spec, each in slots}


def timers_of(bucket: Bucket, key: Any) -> tuple[tuple[Millis, ...], tuple[Millis, ...]]:
    """The timers of a key in event time and in processing time."""
    return bucket.event.of(key), bucket.processing.of(key)


def _plain(spec: StateSpec, stored: Any) -> Any:
    if stored is None:
        return {"value": None, "list": [], "map": {}}[spec.kind]
    if spec.ttl is None:
        return stored
    if spec.kind == "value":
        return stored[0]
    if spec.kind == "list":
        return [each[0] for each in stored]
    return {key: each[0] for key, each in stored.items()}
