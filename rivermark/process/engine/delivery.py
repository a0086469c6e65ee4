"""Calls the handlers of a process with events and due timers, one key at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Raw

from rivermark.model.errors import DeclarationError
from rivermark.process.api.context import NO_RECORD, Context
from rivermark.process.api.declaration import InputSpec
from rivermark.process.api.side_outputs import Outputs
from rivermark.process.engine.binding import Binding
from rivermark.process.engine.bucket import Bucket
from rivermark.process.engine.codec import Codec
from rivermark.process.engine.intake import EventRun
from rivermark.process.engine.transaction import Transaction
from rivermark.process.errors import DeadLetter, Misuse, ProcessError
from rivermark.process.instants import Millis
from rivermark.process.keyed import KeyedProcess
from rivermark.process.timers import Calendar, TimeDomain

Handler = Callable[[Any, Context[Any]], None]

Call = tuple[int, Any, Millis, Any]
"""A handler by its rank, the key, the time, and the event (of a timer its instant)."""

_TIMER: Final = -1
"""Rank of `on_timer`, behind those of the inputs."""

_MOST_FIRINGS: Final = 100_000
_MOST_FIRINGS_PER_TIMER: Final = 1_000


class Delivery:
    """Hands one batch to the handlers of a bound process, over one bucket.

    Every event and timer passes `_handle`, the one loop over records. Where they come from is a
    generator: it may fire timers in between, or hold events back.
    """

    def __init__(self, binding: Binding, codec: Codec, bucket: Bucket, outputs: Outputs) -> None:
        self._declared = binding.declaration
        self._codec = codec
        self._bucket = bucket
        self._outputs = outputs
        self._context = binding.context
        self._key_classes = self._declared.key.classes or frozenset()
        inputs = self._declared.inputs
        self._broadcast = [*(each.broadcast for each in inputs), False]
        self._handlers: list[Handler] = [
            *(self._handler(binding.process, each) for each in inputs),
            binding.process.on_timer,
        ]
        self._transaction: Transaction | None = None
        if self._declared.dead_letter:
            self._transaction = Transaction(binding, codec, bucket, outputs)
        binding.context.visit = self._each_key

    def run(self, run: EventRun) -> None:
        """Hand over events that follow one another."""
        self._handle(zip(run.ranks, run.keys, run.times, run.rows, strict=True))

    def hold(self, run: EventRun, watermark: Millis) -> None:
        """Hold events until the watermark reaches them; late ones are handled at once."""
        self._handle(self._late(run, watermark))
        self._bucket.held.sort()

    def release(self, watermark: Millis) -> None:
        """Hand over waiting events and timers up to the watermark, in one order of time."""
        self._handle(self._released(watermark))
        self.timers(self._bucket.event, "event", watermark, clocked=True)
        self._context.watermark = watermark

    def timers(
        self, calendar: Calendar, domain: TimeDomain, limit: Millis, *, clocked: bool
    ) -> None:
        """Fire the timers at or before `limit` in order of time, new ones among them too.

        `clocked` lets the watermark that handlers see go with the timers.
        """
        if calendar.next > limit:
            return
        self._context.timer = domain
        self._handle(self._due(calendar, limit, clocked=clocked))
        self._context.timer = None

    def touch(self, key: Any) -> Any:
        """The record of a key, opened if need be."""
        record = self._bucket.records.get(key)
        return record if record.__class__ is list else self._open(key, record)

    def _handle(self, calls: Iterable[Call]) -> None:
        """Call the handlers, each with its key's record."""
        context, handlers, transaction = self._context, self._handlers, self._transaction
        find, open_record = self._bucket.records.get, self._open
        for rank, key, at, argument in calls:
            try:
                if transaction is not None:
                    transaction.begin(broadcast=self._broadcast[rank])
                record = find(key)
                if record.__class__ is not list:
                    record = open_record(key, record)
                if transaction is not None:
                    transaction.remember(key, record)
                context.key = key
                context.timestamp = at
                context.record = record
                returned = handlers[rank](argument, context)
                if returned is not None:
                    raise _returned(self._declared.name, handlers[rank], returned)
                if transaction is not None:
                    transaction.verify()
            except DeclarationError:
                # Of the class and not of this event, which no dead letter would help.
                raise
            except Exception as error:
                if transaction is not None:
                    transaction.roll_back()
                self._dead_letter(error, rank, key, at, argument)

    def _released(self, watermark: Millis) -> Iterator[Call]:
        """Waiting events up to the watermark; timers between them fire on the way."""
        context, held, calendar = self._context, self._bucket.held, self._bucket.event
        released = 0
        for at, rank, _, key, row in held:
            if at > watermark:
                break
            released += 1
            if calendar.next < at:
                self.timers(calendar, "event", at - 1, clocked=True)
            context.watermark = at - 1
            event = self._read(rank, key, at, row) if row.__class__ is Raw else row
            if event is not None:
                yield rank, key, at, event
        del held[:released]

    def _read(self, rank: int, key: Any, at: Millis, stored: Raw) -> Any:
        """A waiting event; None, and a dead letter, for one that its class refuses."""
        try:
            return self._codec.events[rank].decode(stored)
        except msgspec.ValidationError as error:
            source = self._declared.inputs[rank].name
            problem = Misuse(f"it is no event of input '{source}': {error}")
            self._dead_letter(problem, rank, key, at, msgspec.msgpack.decode(stored))
            return None

    def _late(self, run: EventRun, watermark: Millis) -> Iterator[Call]:
        """Late events; the others are held, once their key is known to be storable."""
        bucket = self._bucket
        for rank, key, at, row in zip(run.ranks, run.keys, run.times, run.rows, strict=True):
            if at <= watermark:
                yield rank, key, at, row
                continue
            try:
                if key is not None:
                    self._verify_key(key)
            except Misuse as error:
                self._dead_letter(error, rank, key, at, row)
                continue
            bucket.sequence += 1
            bucket.held.append((at, rank, bucket.sequence, key, row))

    def _due(self, calendar: Calendar, limit: Millis, *, clocked: bool) -> Iterator[Call]:
        """Timers at or before `limit`, as long as handlers register new ones too."""
        left = _MOST_FIRINGS + _MOST_FIRINGS_PER_TIMER * calendar.instants
        while (due := calendar.take(limit)) is not None:
            at, keys = due
            if clocked:
                self._context.watermark = at
            for key in keys:
                left -= 1
                if left < 0:
                    problem = Misuse(
                        "timers register timers without end; ask ctx.ending before registering "
                        "the next one, for at the end of the input every timer is due"
                    )
                    raise ProcessError(self._declared.name, key, None, at, problem) from problem
                yield _TIMER, key, at, at

    def _verify_key(self, key: Any) -> None:
        """Raise Misuse for a key that storage would not give back."""
        if key.__class__ not in self._key_classes or key.__class__ is tuple:
            self._declared.key.verify(key)

    def _open(self, key: Any, stored: Any) -> Any:
        """The record of a key that was not touched before: stored, new, or of no key at all."""
        if key is None:
            return NO_RECORD
        if stored is None:
            self._verify_key(key)
        stored = self._bucket.stored(key, stored)
        record = self._codec.template.copy() if stored is None else self._codec.record(stored)
        self._bucket.records[key] = record
        self._bucket.touched.append(key)
        return record

    def _handler(self, process: KeyedProcess[Any, Any], spec: InputSpec) -> Handler:
        handle: Handler = getattr(process, spec.handler)
        if not spec.broadcast:
            return handle

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
        self._bucket.read_all()
        for key in list(self._bucket.records):
            context.record = self.touch(key)
            if self._transaction is not None:
                self._transaction.remember(key, context.record)
            context.key = key
            yield key
        context.key = None
        context.record = NO_RECORD

    def _dead_letter(
        self, error: Exception, rank: int, key: Any, at: Millis, argument: Any
    ) -> None:
        """Add a dead letter; where there are none, raise ProcessError."""
        timer = self._context.timer if rank == _TIMER else None
        row = None if rank == _TIMER else argument
        failure = ProcessError(self._declared.name, key, row, at, error)
        if self._transaction is None:
            raise failure from error
        source = None if rank == _TIMER else self._declared.inputs[rank].name
        self._outputs.dead.append(DeadLetter.of(failure, error, source, timer))


def _returned(process: str, handler: Any, returned: object) -> DeclarationError:
    """The error of a handler whose result would be lost."""
    name = getattr(handler, "__name__", "a handler")
    kind = type(returned).__name__
    wrote = "yields its results" if kind == "generator" else f"returns a {kind}"
    return DeclarationError(
        f"process '{process}': {name} {wrote}, which goes nowhere: write ctx.emit(row) for each "
        "row that leaves, and return nothing"
    )
