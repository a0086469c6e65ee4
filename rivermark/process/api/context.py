"""The context of a handler: the current key and times, timers, outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar

from rivermark.model.errors import DeclarationError
from rivermark.process.api.side_outputs import Outputs, SideOutput
from rivermark.process.errors import Misuse
from rivermark.process.instants import BEGINNING, Millis, moment
from rivermark.process.timers import Calendar, Keyed, TimeDomain

if TYPE_CHECKING:
    from rivermark.process.api.side_outputs import SideSpec
    from rivermark.process.evolution.storable import Storable

Out = TypeVar("Out")
R = TypeVar("R")


class NoRecord:
    """Stands where a key's record would be while there is no key."""

    def __getitem__(self, slot: int) -> NoReturn:
        raise Misuse(
            "there is no current key here, so no keyed state: a broadcast handler reaches the keys "
            "by 'for key in ctx.each_key()'"
        )

    def __setitem__(self, slot: int, value: object) -> NoReturn:
        self.__getitem__(slot)


NO_RECORD: Final = NoRecord()


class UnhandledTimers(Calendar):
    """The timers of a process that does not handle any."""

    __slots__ = ()

    def register(self, at: Millis | datetime) -> None:
        """Refuse."""
        raise Misuse("a timer was registered, but the process has no method on_timer")


class UndecidedTimers(Calendar):
    """The timers in event time of a process that does not say whether events wait for them."""

    __slots__ = ("_process",)

    def __init__(self, context: Keyed, process: str) -> None:
        super().__init__(context)
        self._process = process

    def register(self, at: Millis | datetime) -> None:
        """Refuse."""
        raise DeclarationError(
            f"process '{self._process}' sets a timer in event time and does not say whether events "
            "wait for it: write hold = True in the class, so that events and timers come in one "
            "order of time however the input is cut into batches, or hold = False where results "
            "may depend on that cut"
        )


class Timers:
    """The current key's timers, by kind of time."""

    __slots__ = ("event", "processing")

    event: Calendar
    processing: Calendar


class Context(Generic[Out]):
    """The context of a handler. One object serves all events: never keep it.

    - `key`: the current key.
    - `timestamp`: the event's time; in `on_timer` the timer's (milliseconds since the epoch, UTC).
    - `watermark`: no event at or before it is expected any more.
    - `processing_time`: the wall clock at the start of the batch.
    - `timer`: which kind of timer is firing; None while an event is handled.
    - `ending`: the input is over; no event will come, timers fire one last time.
    - `timers.event`, `timers.processing`: register, delete and list the key's timers.

    `record`, `broadcasting`, `expiry`, `visit` and `write_to` are the engine's.
    """

    __slots__ = (
        "_main",
        "_out",
        "_outputs",
        "_sides",
        "broadcasting",
        "ending",
        "expiry",
        "key",
        "processing_time",
        "record",
        "timer",
        "timers",
        "timestamp",
        "visit",
        "watermark",
    )

    key: Any
    record: Any
    expiry: dict[TimeDomain, Calendar]

    def __init__(self, out: Storable | None) -> None:
        self.key = None
        self.record = NO_RECORD
        self.timestamp: Millis = BEGINNING
        self.watermark: Millis = BEGINNING
        self.processing_time: Millis = BEGINNING
        self.timer: TimeDomain | None = None
        self.broadcasting = False
        self.ending = False
        self.timers = Timers()
        self._out = frozenset() if out is None else out.classes
        self._outputs = Outputs(())
        self._main = self._outputs.main
        self._sides: dict[Any, tuple[list[Any], frozenset[type] | None]] = {}
        self.visit: Callable[[], Iterator[Any]] = lambda: iter(())

    @property
    def is_late(self) -> bool:
        """True if the event's time was already at or before the watermark when it came."""
        return self.timer is None and self.timestamp <= self.watermark

    @property
    def time(self) -> datetime:
        """The event's or timer's time as a datetime (UTC)."""
        return moment(self.timestamp)

    def emit(self, row: Out) -> None:
        """Write a row to the main output.

        Raises:
            Misuse: The row is not of the process's output class.
        """
        if self._out is not None and row.__class__ not in self._out:
            names = ", ".join(sorted(each.__name__ for each in self._out)) or "no rows"
            raise Misuse(f"the main output takes {names}, not {row!r}")
        self._main.append(row)

    def output(self, tag: SideOutput[R] | str, row: R) -> None:
        """Write a row to a side output, given by its declaration or its tag.

        Raises:
            Misuse: The process does not declare that output, or the row is not of its class.
        """
        side = self._sides.get(tag)
        if side is None:
            known = ", ".join(sorted(each for each in self._sides if isinstance(each, str)))
            raise Misuse(
                f"{tag!r} is not a side output of the process; declared are: {known or 'none'}"
            )
        rows, classes = side
        if classes is not None and row.__class__ not in classes:
            names = ", ".join(sorted(each.__name__ for each in classes))
            raise Misuse(f"side output {tag!r} takes {names}, not {row!r}")
        rows.append(row)

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter of the stream, which is reported with each batch.

        An event that becomes a dead letter has been counted.

        Raises:
            Misuse: `by` is not a whole number.
        """
        if type(by) is not int:
            raise Misuse(f"counter {name!r} counts by whole numbers, not by {by!r}")
        counters = self._outputs.counters
        counters[name] = counters.get(name, 0) + by

    def gauge(self, name: str, value: float) -> None:
        """Set a number of the stream to its present value.

        Of a batch the last one of each bucket counts, and the largest of the buckets is reported.

        Raises:
            Misuse: `value` is not a number.
        """
        if not isinstance(value, int | float):
            raise Misuse(f"gauge {name!r} is set to a number, not {value!r}")
        self._outputs.gauges[name] = value

    def each_key(self) -> Iterator[Any]:
        """Visit every key of the bucket that has state; state and timers are then those of the key.

        For broadcast handlers, as in 'apply the new threshold to all that is stored'. Keys come in
        no particular order.

        Raises:
            Misuse: Called by another handler.
        """
        if not self.broadcasting:
            raise Misuse("only the handler of a broadcast input may visit all keys")
        return self.visit()

    def write_to(self, outputs: Outputs, sides: Mapping[str, SideSpec]) -> None:
        """Let rows go to `outputs` from now on (called by the engine for each batch)."""
        self._outputs = outputs
        self._main = outputs.main
        self._sides = {}
        for tag, spec in sides.items():
            rows = outputs.sides[tag], spec.row.classes
            self._sides[tag] = self._sides[spec.side] = rows
