"""The class that a rule is written as: keyed state, timers and side outputs over typed events."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar

from rivermark.process.api.context import NO_RECORD, Context
from rivermark.process.api.declaration import Declaration, EventOrder, Migration
from rivermark.process.api.inputs import KeyOf, TimeOf
from rivermark.process.declaration.declare import declare, is_open
from rivermark.process.instants import Millis

Event = TypeVar("Event")
Out = TypeVar("Out")


class _Idle:
    """Stands where the engine's context is while the process does not run."""

    record = NO_RECORD


class KeyedProcess(Generic[Event, Out]):
    """A rule over keyed events. Subclass it once per rule and declare on the class what it keeps.

        >>> import msgspec
        >>> from rivermark.process import ValueState
        >>> from rivermark.testing import ProcessHarness
        >>> class Ride(msgspec.Struct):
        ...     ride_id: int
        ...     at: int
        >>> class Forgotten(KeyedProcess[Ride, int]):
        ...     # Emits a ride of which nothing was heard for ten milliseconds.
        ...     key = "ride_id"
        ...     time = "at"
        ...     hold = True
        ...     last: ValueState[int]
        ...
        ...     def on_event(self, event, ctx):
        ...         self.last.value = event.at
        ...         ctx.timers.event.register(event.at + 10)
        ...
        ...     def on_timer(self, at, ctx):
        ...         if at == self.last.value + 10:
        ...             ctx.emit(ctx.key)
        ...             self.last.clear()
        >>> rides = ProcessHarness(Forgotten())
        >>> rides.feed([Ride(1, 100), Ride(2, 100), Ride(1, 108)])
        []
        >>> rides.advance_watermark(115)
        [2]

    On Spark (`run_process`) the fields of the event class are the columns that go in, and the
    fields of the output class those that come out.

    - `key`, `time`: fields of the event that give its key and its event time, or functions of it
      (`key = staticmethod(shard_of)`). With several inputs these stand in `Input(...)` attributes
      instead, and the input called `rides` is handled by `on_rides`.
    - `order`: within a batch events are handled in order of `arrival`, or of `event_time` (ties:
      broadcast and control inputs first, then arrival).
    - `hold`: events wait until the watermark reaches their time, and events and timers are then
      handled in one order of time (`order` is "event_time" then). Results are the same however the
      arrivals were cut into batches. `hold = False` is for a rule whose results do not depend on
      the cut, or may. A class that says neither is refused when it sets a timer in event time.
    - `dead_letter`: an event whose handler raises becomes a `DeadLetter` with its error, and its
      effects on state, timers and outputs are rolled back; otherwise the batch fails.
    - `version`, `migrations`, `forgets`: how state stored by an earlier declaration is taken over.

    Attributes may be set in `__init__` and `open`; while events are handled, attributes that are
    not declared state would be lost at a restart and are refused.

    Raises:
        DeclarationError: When the class is defined: a key, time, state, input, output or migration
            that cannot work, with the name of the process and what to write instead.
        ProcessError: In a batch, for a handler that raises where `dead_letter` is off.
    """

    key: ClassVar[KeyOf | None] = None
    time: ClassVar[TimeOf | None] = None
    order: ClassVar[EventOrder] = "arrival"
    hold: ClassVar[bool] = False
    dead_letter: ClassVar[bool] = False
    version: ClassVar[int] = 1
    migrations: ClassVar[dict[str, Migration]] = {}
    forgets: ClassVar[tuple[str, ...]] = ()

    declaration: ClassVar[Declaration]

    _context: Any = _Idle()
    _frozen: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Read the declaration, unless the class leaves its event or output type open."""
        super().__init_subclass__(**options)
        if not is_open(cls, KeyedProcess):
            cls.declaration = declare(cls, KeyedProcess)

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse attributes set while events are handled."""
        if self._frozen:
            raise AttributeError(
                f"'{name}' of process '{type(self).__name__}' would be lost at a restart: declare "
                f"it as state and set its value, as in self.{name}.value = ..."
            )
        object.__setattr__(self, name, value)

    def open(self) -> None:
        """Prepare what a task needs, once in each task of each batch; nothing by default.

        In a stream that is once for each part of the state, over a table for each bucket. What is
        dear, such as a client, a function of a module with `functools.cache` makes once, and keeps
        for as long as its worker lives.
        """

    def close(self) -> None:
        """Release what `open` prepared; nothing by default."""

    def on_event(self, event: Event, ctx: Context[Out]) -> None:
        """Handle one event of the current key."""
        raise NotImplementedError

    def on_timer(self, at: Millis, ctx: Context[Out]) -> None:
        """Handle a timer of the current key; `ctx.timer` says of which kind of time."""
        raise NotImplementedError
