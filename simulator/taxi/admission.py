"""What the platform's admission must decide about landed events, in plain Python.

The rules that the pipeline is compared with. A row of a landing file is late when its event time is
at or before the newest event time admitted from earlier files, less the allowed lateness; rows of
one file are never late by each other. Of the other rows the first with its key is admitted and the
rest are duplicates, which are admitted as well and left out by the streams that follow. Because a
copy has the time of its original, a copy whose original could be forgotten is late already: the two
rules leave no gap.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from simulator.disorder import Event

E = TypeVar("E", bound=Event)


@dataclass(frozen=True, slots=True)
class Admission(Generic[E]):
    """The decision about every landed row: each is in one of the three lists, as it arrived.

    The ingest's table holds `admitted` and `duplicates`, the streams behind it `admitted` alone.
    `newest` is the latest admitted event time (UTC), None where nothing was admitted.
    """

    admitted: list[E]
    late: list[E]
    duplicates: list[E]
    newest: datetime | None
    lateness: timedelta

    @property
    def watermark(self) -> datetime | None:
        """What no further admitted event can be as old as: the newest less the lateness."""
        return None if self.newest is None else self.newest - self.lateness


def admit(files: Iterable[Sequence[E]], lateness: timedelta) -> Admission[E]:
    """Decide about the rows of landing files, in the order in which they landed."""
    admitted: list[E] = []
    late: list[E] = []
    duplicates: list[E] = []
    seen: set[tuple[int, ...]] = set()
    newest: datetime | None = None
    for rows in files:
        watermark = None if newest is None else newest - lateness
        for row in rows:
            if watermark is not None and row.event_time <= watermark:
                late.append(row)
            elif row.key in seen:
                duplicates.append(row)
            else:
                seen.add(row.key)
                admitted.append(row)
                if newest is None or row.event_time > newest:
                    newest = row.event_time
    return Admission(admitted, late, duplicates, newest, lateness)
