"""The engine: runs a process over a bucket's state and a batch of events.

What a batch does, in this order:

1. The clocks move to the batch's watermark and processing time. Timers that are due fire in order
   of time, those of processing time first. A process that holds events gets, in the same order of
   time, the waiting events that the watermark has reached: an event before a timer of its time.
2. The events are handled in the declared order. One at or before the watermark is late: it is
   handled like any other, and `ctx.is_late` says so. A process that holds events keeps those
   that are not late, until a later batch's watermark reaches them.
3. Timers that handlers registered at or before the clocks fire.

The watermark END_OF_TIME says that the input is over: all timers fire, of both kinds of time.

The watermark is the one known before the batch's events, as in Spark: it derives from earlier
batches. Every event that is not late lies behind it, so the timers of step 1 come before the events
of step 2 in event time too.

However arrivals are cut into batches, a process that holds events gives the same rows and the same
state in the end, provided that the cut does not change which events are late (rivermark's door
decides that once and for all). Without holding, this is so for processes whose handlers do not mind
whether a timer has fired yet when a later event arrives.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from rivermark.process.api.context import NO_RECORD, Context
from rivermark.process.api.inputs import Arrivals
from rivermark.process.api.side_outputs import Outputs
from rivermark.process.engine.binding import Binding
from rivermark.process.engine.bucket import Bucket
from rivermark.process.engine.codec import Codec
from rivermark.process.engine.delivery import Delivery
from rivermark.process.engine.intake import take_in
from rivermark.process.engine.state_size import Limits, check_sizes
from rivermark.process.errors import Misuse, StateUnreadable
from rivermark.process.instants import END_OF_TIME, Millis
from rivermark.process.keyed import KeyedProcess
from rivermark.process.timers import TimeDomain

Event = TypeVar("Event")
Out = TypeVar("Out")


Timer = tuple[Any, Millis, TimeDomain]
"""A key, the instant for which it is to be woken, and in which kind of time."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of a batch.

    `state` is the bucket's new state, None when it is empty, and the very object that was given
    when nothing changed. So are `pages`, beside which the state of a large bucket is stored: they
    change seldom. `wake_at` and `wake_at_processing` are the watermark and the processing
    time at which the bucket has something to do without new events; they may be a little early.
    `rows` is how many keys have state and how many events wait in it.
    """

    outputs: Outputs
    state: bytes | None
    wake_at: Millis | None
    wake_at_processing: Millis | None
    rows: int = 0
    pages: bytes | None = None


class Engine(Generic[Event, Out]):
    """Runs one process; keeps nothing between batches but what can be made again.

    Buckets of `page_from` bytes and more are stored in pages where a batch touches few of their
    keys; without it they are stored whole.
    """

    def __init__(
        self,
        process: KeyedProcess[Event, Out],
        limits: Limits | None = None,
        *,
        page_from: int | None = None,
    ) -> None:
        self._page_from = page_from
        self.declaration = process.declaration
        self.codec = Codec(self.declaration)
        self._limits = Limits() if limits is None else limits
        self._context: Context[Out] = Context(self.declaration.out)
        self._binding = Binding(process, self._context, self.codec)
        self._tags = tuple(self.declaration.sides)

    def start(self) -> None:
        """Let the process prepare itself; from now on its attributes are fixed."""
        self._binding.process.open()
        object.__setattr__(self._binding.process, "_frozen", True)

    def stop(self) -> None:
        """Let the process release what it prepared."""
        object.__setattr__(self._binding.process, "_frozen", False)
        self._binding.process.close()

    def run(
        self,
        state: bytes | None,
        batch: Sequence[Arrivals],
        watermark: Millis,
        processing_time: Millis,
        timers: Sequence[Timer] = (),
        pages: bytes | None = None,
    ) -> Ran:
        """Run a batch over a bucket's state; `timers` that failed before are set again first.

        `pages` are those that the state was stored beside.

        Raises ProcessError when a handler fails and dead letters are off: nothing was changed then.
        """
        with _collector_paused():
            return self._run(state, batch, watermark, processing_time, timers, pages)

    def _run(
        self,
        state: bytes | None,
        batch: Sequence[Arrivals],
        watermark: Millis,
        processing_time: Millis,
        timers: Sequence[Timer],
        pages: bytes | None,
    ) -> Ran:
        """As `run`; a call of its own, so that the bucket is gone when collection sets in again."""
        bucket = self.open(state, pages)
        for key, at, kind in timers:
            self._context.key = key
            (bucket.event if kind == "event" else bucket.processing).register(at)
        outputs = self.advance(bucket, batch, watermark, processing_time)
        stored, pages = self._stored(bucket, state, pages, self._page_from)
        return Ran(
            outputs=outputs,
            state=stored,
            wake_at=bucket.next_event_time(),
            wake_at_processing=bucket.next_processing_time(),
            rows=(len(bucket.records) if pages is None else bucket.keys) + len(bucket.held),
            pages=pages,
        )

    def open(self, state: bytes | None, pages: bytes | None = None) -> Bucket:
        """A bucket in memory; raises StateUnreadable for state that does not fit the process."""
        return self.codec.decode(state, self._context, pages)

    def advance(
        self,
        bucket: Bucket,
        batch: Sequence[Arrivals],
        watermark: Millis,
        processing_time: Millis,
    ) -> Outputs:
        """Run a batch over an open bucket; `close` makes its state storable again."""
        context = self._context
        outputs = Outputs(self._tags)
        delivery = Delivery(self._binding, self.codec, bucket, outputs)
        self._binding.attach(bucket)
        context.write_to(outputs, self.declaration.sides)
        now = context.watermark = bucket.watermark = max(watermark, bucket.watermark)
        context.processing_time = processing_time
        context.ending = now == END_OF_TIME
        context.timer, context.broadcasting = None, False  # a batch before may have failed midway

        intake = take_in(self.declaration, batch, processing_time)
        outputs.dead.extend(intake.dead)
        outputs.late = sum(sum(map(now.__ge__, each.times)) for each in intake.runs)
        last = END_OF_TIME if context.ending else processing_time
        delivery.timers(bucket.processing, "processing", last, clocked=False)
        if self.declaration.hold:
            delivery.release(now)
        delivery.timers(bucket.event, "event", now, clocked=False)
        for run in intake.runs:
            if self.declaration.hold:
                delivery.hold(run, now)
            else:
                delivery.run(run)
        while bucket.event.next <= now or bucket.processing.next <= last:
            delivery.timers(bucket.event, "event", now, clocked=False)
            delivery.timers(bucket.processing, "processing", last, clocked=False)
        self._sweep(delivery, bucket, "event", now)
        self._sweep(delivery, bucket, "processing", last)
        context.key, context.record = None, NO_RECORD
        return outputs

    def close(self, bucket: Bucket, before: bytes | None = None) -> bytes | None:
        """State of an open bucket, to be stored whole; `before` itself when it is the same.

        Raises Misuse for state that storage would not give back and StateTooLarge beyond the
        limits.
        """
        return self._stored(bucket, before, None, None)[0]

    def _stored(
        self, bucket: Bucket, before: bytes | None, pages: bytes | None, page_from: int | None
    ) -> tuple[bytes | None, bytes | None]:
        """As `close`, and the pages beside which the state is stored."""
        self._binding.settle(bucket)
        try:
            encoded, pages = self.codec.encode_for_store(bucket, pages, page_from)
        except (TypeError, ValueError, OverflowError) as error:
            raise self._unstorable(bucket, error) from error
        if encoded == before:
            return before, pages
        if encoded is not None:
            check_sizes(bucket, len(encoded) + len(pages or b""), self.codec, self._limits)
        return encoded, pages

    def _sweep(self, delivery: Delivery, bucket: Bucket, clock: TimeDomain, now: Millis) -> None:
        """Clear what of the state has ended by `now`."""
        calendar = bucket.expiry[clock]
        while (due := calendar.take(now)) is not None:
            for key in due[1]:
                record = delivery.touch(key)
                self._context.key = key
                self._binding.sweep(record, clock, now)

    def _unstorable(self, bucket: Bucket, error: Exception) -> Exception:
        for key, record in bucket.records.items():
            try:
                self.codec.encode_record(record)
            except (TypeError, ValueError, OverflowError) as found:
                return Misuse(
                    f"process '{self.declaration.name}': the state of key {key!r} cannot be "
                    f"stored: {found}"
                )
        return StateUnreadable(f"process '{self.declaration.name}': {error}")


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Run the body without cycle collection.

    Opening a bucket makes a list for each touched key, and every few hundred of them would set off
    a search for cycles that are not there: long-ride alerts over 200,000 live keys ran at 415,000
    to 443,000 events a CPU second with collection and at 567,000 to 660,000 without.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
