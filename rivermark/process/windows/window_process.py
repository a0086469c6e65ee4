"""Window processes: over the events themselves, or over a value that each event updates."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Literal, TypeVar

from rivermark.model.errors import DeclarationError
from rivermark.process.api.context import Context
from rivermark.process.api.side_outputs import SideOutput
from rivermark.process.instants import Millis
from rivermark.process.windows.assigners import Assigner
from rivermark.process.windows.evictors import Evictor
from rivermark.process.windows.lifecycle import Windowed, present
from rivermark.process.windows.window import Pane, Scalar, Window

E = TypeVar("E")
Acc = TypeVar("Acc")
Out = TypeVar("Out")
R = TypeVar("R")

FiringMark = Literal["early", "first", "update"]


class WindowContext(Generic[Out]):
    """The context of a window's function.

    - `window`: its start and end; `key`: its key.
    - `mark`: `early` before the window's end, `first` for its result at the end, `update` for each
      later one.
    - `timestamp`: the instant of the firing: that of the timer, or of the event that set it off.
    - `state`: texts, numbers and truth values of this window, gone with it. The process's declared
      states are the key's, shared by all its windows.
    - `replaced`: windows whose results were given before they were merged into this one; a table
      of results should forget them.
    """

    __slots__ = ("_ctx", "count", "mark", "replaced", "state", "window")

    def __init__(
        self, ctx: Context[Out], window: Window, pane: Pane[Any], mark: FiringMark
    ) -> None:
        self._ctx = ctx
        self.window = window
        self.mark = mark
        self.count = pane.count
        self.state: dict[str, Scalar] = pane.state
        self.replaced = tuple(pane.replaced)

    @property
    def key(self) -> Any:
        """The key."""
        return self._ctx.key

    @property
    def timestamp(self) -> Millis:
        """The instant of the firing (milliseconds since the epoch, UTC)."""
        return self._ctx.timestamp

    @property
    def watermark(self) -> Millis:
        """The watermark."""
        return self._ctx.watermark

    @property
    def processing_time(self) -> Millis:
        """The wall clock at the start of the batch."""
        return self._ctx.processing_time

    def emit(self, row: Out) -> None:
        """Write a row to the main output."""
        self._ctx.emit(row)

    def output(self, tag: SideOutput[R] | str, row: R) -> None:
        """Write a row to a side output."""
        self._ctx.output(tag, row)


class WindowProcess(Windowed[E, list[tuple[int, E]], Out], Generic[E, Out]):
    """Windows whose function sees all their events, in order of arrival.

        >>> import msgspec
        >>> from datetime import timedelta
        >>> from rivermark.process.windows import Tumbling
        >>> from rivermark.testing import ProcessHarness
        >>> class Reading(msgspec.Struct):
        ...     sensor: str
        ...     at: int
        ...     degrees: float
        >>> class Ranges(WindowProcess[Reading, float]):
        ...     key = "sensor"
        ...     time = "at"
        ...     windows = Tumbling(timedelta(minutes=1))
        ...     late = None
        ...
        ...     def on_window(self, events, ctx):
        ...         degrees = [each.degrees for each in events]
        ...         ctx.emit(max(degrees) - min(degrees))
        >>> ranges = ProcessHarness(Ranges())
        >>> ranges.feed([Reading("a", 0, 20.5), Reading("a", 59_999, 18.0)])
        []
        >>> ranges.advance_watermark(60_000)
        [2.5]

    Raises:
        DeclarationError: When the class is defined, where it does not say what becomes of late
            events (`late`).
    """

    evictor: ClassVar[Evictor | None] = None

    def on_window(self, events: list[E], ctx: WindowContext[Out]) -> None:
        """Give the result of a window over its events."""
        raise NotImplementedError

    def add(self, pane: Pane[list[tuple[int, E]]], event: E, at: Millis) -> None:
        """Keep the event with its time."""
        if pane.contents is None:
            pane.contents = []
        pane.contents.append((at, event))

    def merge(self, pane: Pane[list[tuple[int, E]]], other: Pane[list[tuple[int, E]]]) -> None:
        """Keep the events of both, those of the earlier window first."""
        pane.contents = [*(pane.contents or ()), *(other.contents or ())]

    def fire(self, window: Window, pane: Pane[list[tuple[int, E]]], ctx: Context[Out]) -> None:
        """Let the evictor choose, call the function, let the evictor choose again."""
        elements = pane.contents or []
        evictor = self.evictor or self.windows.evictor()
        if evictor is not None:
            elements = pane.contents = evictor.before(elements, window)
        mark = mark_of(self.windows, window, pane, ctx)
        self.on_window([event for _, event in elements], WindowContext(ctx, window, pane, mark))
        if evictor is not None:
            pane.contents = evictor.after(elements, window)


class WindowAggregate(Windowed[E, Acc, Out], Generic[E, Acc, Out]):
    """Windows that keep one value, which each event updates: small whatever the window holds.

        >>> import msgspec
        >>> from datetime import timedelta
        >>> from rivermark.process.windows import Sessions
        >>> from rivermark.testing import ProcessHarness
        >>> class Click(msgspec.Struct):
        ...     user: str
        ...     at: int
        >>> class Clicks(WindowAggregate[Click, int, tuple[str, int, int]]):
        ...     key = "user"
        ...     time = "at"
        ...     windows = Sessions(timedelta(seconds=1))
        ...     late = None
        ...
        ...     def update(self, value, event):
        ...         return (value or 0) + 1
        ...
        ...     def combine(self, one, other):
        ...         return one + other
        ...
        ...     def on_window(self, value, ctx):
        ...         ctx.emit((ctx.key, ctx.window.end, value))
        >>> clicks = ProcessHarness(Clicks())
        >>> clicks.feed([Click("ada", 0), Click("ada", 1_000), Click("ada", 5_000)])
        []
        >>> clicks.end_of_input()
        [('ada', 2000, 2), ('ada', 6000, 1)]

    Raises:
        DeclarationError: When the class is defined: no `late`, or an evictor, which needs events.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        assigner = getattr(cls, "windows", None)
        if getattr(cls, "evictor", None) is not None or (assigner and assigner.evictor()):
            raise DeclarationError(
                f"process '{cls.__name__}' keeps one value a window: an evictor needs the events "
                "(WindowProcess)"
            )

    def update(self, value: Acc | None, event: E) -> Acc:
        """The window's value with one more event; None before the first."""
        raise NotImplementedError

    def combine(self, one: Acc, other: Acc) -> Acc:
        """The value of two windows that are merged; only session windows are."""
        raise NotImplementedError

    def on_window(self, value: Acc, ctx: WindowContext[Out]) -> None:
        """Give the result of a window."""
        raise NotImplementedError

    def add(self, pane: Pane[Acc], event: E, at: Millis) -> None:
        """Update the value."""
        pane.contents = self.update(pane.contents, event)

    def merge(self, pane: Pane[Acc], other: Pane[Acc]) -> None:
        """Combine the values."""
        if pane.contents is None:
            pane.contents = other.contents
        elif other.contents is not None:
            pane.contents = self.combine(pane.contents, other.contents)

    def fire(self, window: Window, pane: Pane[Acc], ctx: Context[Out]) -> None:
        """Call the function with the value."""
        if pane.contents is not None:
            mark = mark_of(self.windows, window, pane, ctx)
            self.on_window(pane.contents, WindowContext(ctx, window, pane, mark))


def mark_of(windows: Assigner, window: Window, pane: Pane[Any], ctx: Context[Any]) -> FiringMark:
    """True if a firing comes before the window's end, is the first after it, or a later one.

    Every firing of a window without end is a first one.
    """
    if windows.endless:
        return "first"
    if present(ctx, windows.clock) < window.end:
        return "early"
    return "update" if pane.fired else "first"
