"""Keyed state: one value, list or map for each key, declared on the process's class."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rivermark.model.errors import DeclarationError
from rivermark.process.instants import Millis, span
from rivermark.process.timers import TimeDomain

if TYPE_CHECKING:
    from rivermark.process.api.context import Context
    from rivermark.process.evolution.storable import Storable

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class TTL:
    """The lifetime of a state after its last write, on the `clock` of events or processing.

    On the event clock an event sees what was written less than `after` before its own time (or
    before the watermark, for a late one), and the watermark clears what no event can see any
    more. In a list or a map each element has its own life.

        >>> TTL(timedelta(hours=1)).millis, TTL(timedelta(days=1), clock="processing").clock
        (3600000, 'processing')

    Raises:
        DeclarationError: `after` is not a whole number of milliseconds above 0, or the clock is
            unknown.
    """

    after: timedelta
    clock: TimeDomain = "event"

    def __post_init__(self) -> None:
        span(self.after, "a TTL")
        if self.clock not in ("event", "processing"):
            raise DeclarationError(f"a TTL's clock is 'event' or 'processing', not {self.clock!r}")

    @property
    def millis(self) -> Millis:
        """The life in milliseconds."""
        return span(self.after, "a TTL")


class ValueState(Generic[T]):
    """One value for each key, None where there is none.

    Declare it as `ride: ValueState[RideEvent]`, or with a life: `= ValueState(ttl=TTL(hours))`.
    Read and write `self.ride.value`; setting None or calling `clear` removes it. A value that is
    changed in place needs no setting again.

    Raises:
        Misuse: A value of another type is set, or there is no current key.
    """

    __slots__ = ("_classes", "_context", "_slot", "_storable", "ttl")

    _context: Context[Any]
    _slot: int

    def __init__(self, *, ttl: TTL | None = None) -> None:
        self.ttl = ttl

    def bind(self, context: Context[Any], slot: int, storable: Storable) -> None:
        """Let this be the view of `slot` in the current key's record (called by the engine)."""
        self._context = context
        self._slot = slot
        self._storable = storable
        classes = storable.classes
        self._classes = None if classes is None else classes | {type(None)}

    @property
    def value(self) -> T | None:
        """The current key's value, or None."""
        value: T | None = self._context.record[self._slot]
        return value

    @value.setter
    def value(self, value: T | None) -> None:
        if self._classes is not None and value.__class__ not in self._classes:
            self._storable.verify(value)
        self._context.record[self._slot] = value

    def get(self, default: T) -> T:
        """The current key's value, or `default` where there is none."""
        value = self.value
        return default if value is None else value

    def clear(self) -> None:
        """Remove the current key's value."""
        self._context.record[self._slot] = None


class ListState(list[T]):
    """A list for each key, empty at first; declared as `tips: ListState[int]`.

    Within a handler `self.tips` is the current key's own list, with all that a list can do.
    """

    def __init__(self, *, ttl: TTL | None = None) -> None:
        super().__init__()
        self.ttl = ttl


class MapState(dict[K, V]):
    """A map for each key, empty at first; declared as `tips: MapState[datetime, Decimal]`.

    Within a handler `self.tips` is the current key's own dict, in order of insertion.
    """

    def __init__(self, *, ttl: TTL | None = None) -> None:
        super().__init__()
        self.ttl = ttl


class Collection:
    """The attribute behind a list or map state: finds the current key's own, or makes it."""

    __slots__ = ("_make", "_name", "_slot")

    def __init__(self, name: str, slot: int, make: type[list[Any]] | type[dict[Any, Any]]) -> None:
        self._name = name
        self._slot = slot
        self._make = make

    def __get__(self, process: Any, owner: type | None = None) -> Any:
        """The current key's collection; the declaration itself when asked of the class."""
        if process is None:
            return self
        record = process._context.record
        collection = record[self._slot]
        if collection is None:
            collection = record[self._slot] = self._make()
        return collection

    def __set__(self, process: Any, value: Any) -> None:
        raise AttributeError(
            f"'{self._name}' is the current key's own collection: change it (append, update, "
            "clear, item assignment) instead of assigning another one"
        )
