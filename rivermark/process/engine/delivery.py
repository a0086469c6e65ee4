"""Hands events and due timers to the handlers of a process, one key at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Raw

from rivermark.process.api.context import NO_RECORD, Context, TimerKind
from rivermark.process.api.side_outputs import Outputs
from rivermark.process.engine.binding import Binding
from rivermark.process.engine.bucket import Bucket, Record
from rivermark.process.engine.codec import Codec
from rivermark.process.engine.intake import Run
from rivermark.process.engine.type_checks import Verifier
from rivermark.process.engine.undo import Undo
from rivermark.process.errors import DeadLetter, Misuse, ProcessError
from rivermark.process.instants import Millis
from rivermark.process.timers import Calendar

Handler = Callable[[Any, Context[Any]], None]

_MOST_FIRINGS: Final = 100_000
_MOST_FIRINGS_PER_TIMER: Final = 1_000


class Delivery:
    """One batch's way through the handlers of a bound process, over one bucket."""

    def __init__(self, binding: Binding, codec: Codec, bucket: Bucket, outputs: Outputs) -> None:
        """Open the way; with dead letters, watch what handlers do so that it can be taken back."""
        self._declared = binding.declaration
        self._codec = codec
        self._bucket = bucket
        self._outputs = outputs
        self._context = binding.context
        self._key_classes = self._declared.key.classes or frozenset()
        self._on_timer = binding.process.on_timer
        self._undo: Undo | None = None
        if self._declared.dead_letter:
            self._undo = Undo(bucket, codec, binding.context, outputs)
            self._verify = Verifier(binding, bucket, outputs)
        self._handlers = [
            self._handler(binding, rank) for rank in range(len(self._declared.inputs))
        ]
        binding.context.visit = self._each_key

    def _handler(self, binding: Binding, rank: int) -> Handler:
        spec = self._declared.inputs[rank]
        handle: Handler = getattr(binding.process, spec.handler)
        return self._broadcasting(handle) if spec.broadcast else handle

    def run(self, run: Run) -> None:
        """Hand over events that follow one another."""
        handlers = map(self._handlers.__getitem__, run.ranks)
        events = zip(handlers, run.keys, run.times, run.rows, strict=True)
        if self._undo is not None:
            for each in zip(run.ranks, run.keys, run.times, run.rows, strict=True):
                self.event(*each)
            return
        context = self._context
        context.timer = None
        find = self._bucket.records.get
        open_record = self._open
        key, at, row = None, 0, None
        try:
            for handle, key, at, row in events:
                record = find(key)
                if record.__class__ is not list:
                    record = open_record(key, record)
                context.key = key
                context.timestamp = at
                context.record = record
                handle(row, context)
        except Exception as error:
            raise ProcessError(self._declared.name, key, row, at, error) from error

    def release(self, watermark: Millis) -> None:
        """Hand over waiting events and timers up to the watermark, in one order of time."""
        bucket, context = self._bucket, self._context
        calendar = bucket.event
        find = bucket.records.get
        released = 0
        key, at, row = None, 0, None
        try:
            for at, rank, _, key, stored in bucket.held:  # told when one fails
                if at > watermark:
                    break
                released += 1
                if calendar.next < at:
                    self.timers(calendar, "event", at - 1, clocked=True)
                context.watermark = at - 1
                row = self._read(rank, key, at, stored)
                if row is None:
                    continue
                if self._undo is not None:
                    self.event(rank, key, at, row)
                    continue
                record = find(key)
                if record.__class__ is not list:
                    record = self._open(key, record)
                context.key = key
                context.timestamp = at
                context.record = record
                self._handlers[rank](row, context)
        except ProcessError:
            raise
        except Exception as error:
            raise ProcessError(self._declared.name, key, row, at, error) from error
        del bucket.held[:released]
        self.timers(calendar, "event", watermark, clocked=True)
        context.watermark = watermark

    def _read(self, rank: int, key: Any, at: Millis, stored: Any) -> Any:
        """A waiting event; None for one that its class refuses and that was set aside for it."""
        if type(stored) is not Raw:
            return stored
        try:
            return self._codec.events[rank].decode(stored)
        except msgspec.ValidationError as error:
            plain = msgspec.msgpack.decode(stored)
            source = self._declared.inputs[rank].name
            problem = Misuse(f"it is no event of input '{source}': {error}")
            self._fail(problem, key, plain, at, source, broadcast=False, changed=False)
            return None

    def hold(self, run: Run, watermark: Millis) -> None:
        """Put events aside until the watermark reaches them; late ones are handled at once."""
        bucket = self._bucket
        for rank, key, at, row in zip(run.ranks, run.keys, run.times, run.rows, strict=True):
            if at <= watermark:
                self.event(rank, key, at, row)
                continue
            known = key.__class__ in self._key_classes and key.__class__ is not tuple
            if not known and key is not None:
                try:
                    self._declared.key.verify(key)
                except Misuse as error:
                    source = self._declared.inputs[rank].name
                    self._fail(error, key, row, at, source, broadcast=False, changed=False)
                    continue
            bucket.sequence += 1
            bucket.held.append((at, rank, bucket.sequence, key, row))
        bucket.held.sort()

    def event(self, rank: int, key: Any, at: Millis, row: Any) -> None:
        """Hand over one event."""
        context = self._context
        context.timer = None
        spec = self._declared.inputs[rank]
        undo = self._undo
        try:
            if undo is not None:
                undo.begin(broadcast=spec.broadcast)
            record = self._record(key)
            context.key = key
            context.timestamp = at
            context.record = record
            self._handlers[rank](row, context)
            if undo is not None:
                self._verify(undo)
        except Exception as error:
            self._fail(error, key, row, at, spec.name, broadcast=spec.broadcast)

    def timers(self, calendar: Calendar, kind: TimerKind, limit: Millis, *, clocked: bool) -> None:
        """Fire the timers at or before `limit` in order of time, new ones among them too.

        `clocked` lets the watermark that handlers see go with the timers.
        """
        context = self._context
        if calendar.next > limit:
            return
        left = _MOST_FIRINGS + _MOST_FIRINGS_PER_TIMER * len(calendar.due)
        while (due := calendar.take(limit)) is not None:
            at, keys = due
            if clocked:
                context.watermark = at
            for key in keys:
                left -= 1
                self._fire(key, at, kind, runaway=left < 0)
        context.timer = None

    def _fire(self, key: Any, at: Millis, kind: TimerKind, *, runaway: bool) -> None:
        context = self._context
        context.timer = kind
        try:
            if runaway:
                raise Misuse(
                    "timers register timers without end; ask ctx.ending before registering the "
                    "next one, for at the end of the input every timer is due"
                )
            if self._undo is not None:
                self._undo.begin(broadcast=False)
            context.record = self._record(key)
            context.key = key
            context.timestamp = at
            self._on_timer(at, context)
            if self._undo is not None:
                self._verify(self._undo)
        except Exception as error:
            if runaway:
                raise ProcessError(self._declared.name, key, None, at, error) from error
            self._fail(error, key, None, at, None, broadcast=False, timer=kind)

    def touch(self, key: Any) -> Any:
        """The record of a key, opened if need be."""
        record = self._bucket.records.get(key)
        return record if record.__class__ is list else self._open(key, record)

    def _record(self, key: Any) -> Any:
        record = self.touch(key)
        if self._undo is not None:
            self._undo.remember(key, record)
        return record

    def _open(self, key: Any, stored: Any) -> Any:
        """The record of a key that was not touched before: stored, new, or of no key at all."""
        if key is None:
            return NO_RECORD
        if stored is None:
            if key.__class__ not in self._key_classes or key.__class__ is tuple:
                self._declared.key.verify(key)
            record: Record = self._codec.template.copy()
        else:
            record = self._codec.record(stored)
        self._bucket.records[key] = record
        self._bucket.touched.append(key)
        return record

    def _broadcasting(self, handle: Handler) -> Handler:
        def handle_broadcast(event: Any, context: Context[Any]) -> None:
            context.broadcasting = True
            try:
                handle(event, context)
            finally:
                context.broadcasting = False
                context.key = None
                context.record = NO_RECORD

        return handle_broadcast

    def _each_key(self) -> Iterator[Any]:
        context = self._context
        for key in list(self._bucket.records):
            context.record = self._record(key)
            context.key = key
            yield key
        context.key = None
        context.record = NO_RECORD

    def _fail(
        self,
        error: Exception,
        key: Any,
        row: Any,
        at: Millis,
        source: str | None,
        *,
        broadcast: bool,
        changed: bool = True,
        timer: TimerKind | None = None,
    ) -> None:
        """Set an event aside, and take back what its handler `changed`; or raise."""
        failure = ProcessError(self._declared.name, key, row, at, error)
        if self._undo is None:
            raise failure from error
        if changed:
            self._undo.take_back(broadcast=broadcast)
        self._outputs.dead.append(DeadLetter.of(failure, error, source, timer))
