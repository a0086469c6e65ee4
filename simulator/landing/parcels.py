"""Timed rows in parcels: what lands together as one file."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeVar

from rivermark.model.time import EPOCH


class Timed(Protocol):
    """Something that arrives at an instant (UTC)."""

    @property
    def at(self) -> datetime:
        """The time of its arrival."""
        ...


T = TypeVar("T", bound=Timed)
T_co = TypeVar("T_co", bound=Timed, covariant=True)


@dataclass(frozen=True)
class Parcel(Generic[T_co]):
    """The rows of one landing file; it is due when the last of them can have arrived."""

    due: datetime
    rows: Sequence[T_co]


def cut(rows: Iterable[T], span: timedelta, max_rows: int | None = None) -> Iterator[Parcel[T]]:
    """The rows in parcels of one `span` of their time each, of `max_rows` rows at most.

    Rows come in order of arrival. The borders are multiples of `span` since 1970, so the parcels
    depend on the rows alone and a landing that is begun again cuts them the same way. A span in
    which nothing arrives makes no parcel; a full parcel is due when its last row arrives.
    """
    if span <= timedelta(0) or (max_rows is not None and max_rows < 1):
        raise ValueError(f"parcels of {span} and {max_rows} rows cannot be cut")
    end: datetime | None = None
    held: list[T] = []
    for row in rows:
        if end is None or row.at >= end:
            if held and end is not None:
                yield Parcel(end, held)
                held = []
            end = EPOCH + ((row.at - EPOCH) // span + 1) * span
        held.append(row)
        if len(held) == max_rows:
            yield Parcel(row.at, held)
            held = []
    if held and end is not None:
        yield Parcel(end, held)
