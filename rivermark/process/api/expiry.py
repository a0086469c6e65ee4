"""State with a life: values, lists and maps whose elements vanish some time after their write.

Each element is stored with the instant at which it ends. Reading compares that with the clock, so
no element is seen too long; the bucket's expiry calendar, one entry per key, removes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, MutableSequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rivermark.process.api.state import TTL, ValueState

if TYPE_CHECKING:
    from rivermark.process.api.context import Context
    from rivermark.process.instants import Millis

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

Mortal = tuple[Any, "Millis"]
"""A stored element and the instant at which its life ends."""


class TtlClock:
    """The clock of one state with a life, and the slot that knows when its key is swept next."""

    __slots__ = ("_context", "_mark", "clock", "millis")

    def __init__(self, context: Context[Any], ttl: TTL, mark: int) -> None:
        self._context = context
        self._mark = mark
        self.clock = ttl.clock
        self.millis = ttl.millis

    def now(self) -> Millis:
        """The clock's present: for an event its own time, or the watermark if it is late."""
        context = self._context
        if self.clock == "processing":
            return context.processing_time
        if context.timer is not None:
            return context.timestamp
        return max(context.timestamp, context.watermark)

    def end(self) -> Millis:
        """The end of an element that is written now; sees to it that the key is swept then."""
        end = self.now() + self.millis
        record = self._context.record
        if record[self._mark] is None:
            record[self._mark] = end
            self._context.expiry[self.clock].register(end)
        return end


class ExpiringValue(ValueState[T]):
    """A value with a life: None once it is over."""

    __slots__ = ("_life",)

    def with_life(self, life: TtlClock) -> ExpiringValue[T]:
        """Take the clock to live by (called by the engine)."""
        self._life = life
        return self

    @property
    def value(self) -> T | None:
        """The current key's value, or None."""
        stored: Mortal | None = self._context.record[self._slot]
        if stored is None or stored[1] <= self._life.now():
            return None
        value: T = stored[0]
        return value

    @value.setter
    def value(self, value: T | None) -> None:
        if self._classes is not None and value.__class__ not in self._classes:
            self._storable.verify(value)
        record = self._context.record
        record[self._slot] = None if value is None else (value, self._life.end())


class ExpiringMap(MutableMapping[K, V], Generic[K, V]):
    """A map whose entries end one by one."""

    def __init__(self, context: Context[Any], slot: int, life: TtlClock) -> None:
        self._context = context
        self._slot = slot
        self._life = life

    def _stored(self) -> dict[K, tuple[V, Millis]]:
        record = self._context.record
        entries: dict[K, tuple[V, Millis]] | None = record[self._slot]
        if entries is None:
            entries = record[self._slot] = {}
        return entries

    def __getitem__(self, key: K) -> V:
        """The entry of `key`; KeyError when there is none or its life is over."""
        value, end = self._stored()[key]
        if end <= self._life.now():
            raise KeyError(key)
        return value

    def __setitem__(self, key: K, value: V) -> None:
        self._stored()[key] = (value, self._life.end())

    def __delitem__(self, key: K) -> None:
        """Remove the entry of `key`; KeyError when there is none or its life is over."""
        self[key]
        del self._stored()[key]

    def clear(self) -> None:
        """Remove all entries, those whose life is over too."""
        self._stored().clear()

    def __iter__(self) -> Iterator[K]:
        now = self._life.now()
        return iter([key for key, (_, end) in self._stored().items() if end > now])

    def __len__(self) -> int:
        return sum(1 for _ in self)


class ExpiringList(MutableSequence[T], Generic[T]):
    """A list whose elements end one by one; positions count those that live.

    An element whose life is over stays where it is until it is swept: an event of an earlier time
    may still see it, as in a map.
    """

    def __init__(self, context: Context[Any], slot: int, life: TtlClock) -> None:
        self._context = context
        self._slot = slot
        self._life = life

    def _stored(self) -> list[tuple[T, Millis]]:
        record = self._context.record
        elements: list[tuple[T, Millis]] | None = record[self._slot]
        if elements is None:
            elements = record[self._slot] = []
        return elements

    def _living(self) -> list[int]:
        """Positions in storage of the elements that live."""
        now = self._life.now()
        return [place for place, (_, end) in enumerate(self._stored()) if end > now]

    def __getitem__(self, index: Any) -> Any:
        """The element at `index`, or those of a slice."""
        now = self._life.now()
        return [value for value, end in self._stored() if end > now][index]

    def __setitem__(self, index: Any, value: Any) -> None:
        end = self._life.end()
        if isinstance(index, slice):
            stored, now = self._stored(), self._life.now()
            living = [each for each in stored if each[1] > now]
            living[index] = [(each, end) for each in value]
            # What has ended comes first: only an event of an earlier time can still see it.
            stored[:] = [*(each for each in stored if each[1] <= now), *living]
        else:
            self._stored()[self._living()[index]] = (value, end)

    def __delitem__(self, index: int | slice) -> None:
        if isinstance(index, slice):
            for place in sorted(self._living()[index], reverse=True):
                del self._stored()[place]
        else:
            del self._stored()[self._living()[index]]

    def __len__(self) -> int:
        return len(self._living())

    def insert(self, index: int, value: T) -> None:
        """Insert an element that lives from now."""
        stored = self._stored()
        behind = self._living()[index:]
        stored.insert(behind[0] if behind else len(stored), (value, self._life.end()))

    def clear(self) -> None:
        """Remove all elements, those whose life is over too."""
        self._stored().clear()


def sweep(stored: Any, now: Millis) -> tuple[Any, Millis | None]:
    """Removes what ended by `now` from a stored state; returns when the next element ends."""
    if stored is None:
        return None, None
    if isinstance(stored, tuple):
        return (None, None) if stored[1] <= now else (stored, stored[1])
    if isinstance(stored, dict):
        living = {key: each for key, each in stored.items() if each[1] > now}
        return living or None, _first_end(living.values())
    rest = [each for each in stored if each[1] > now]
    return rest or None, _first_end(rest)


def _first_end(elements: Iterable[Mortal]) -> Millis | None:
    return min((end for _, end in elements), default=None)
