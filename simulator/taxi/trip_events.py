"""TLC trips as START and END events, in the order in which they would have happened."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from hashlib import blake2b
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from simulator.taxi.new_york_time import instant, instants_of
from simulator.taxi.tlc_file import TlcFile

# ISO with a blank or a T, and the format of New York's open data portal.
TIME_FORMATS: Final = [
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M:%S.%f",
    "%m/%d/%Y %I:%M:%S %p",
]
CENT: Final = Decimal("0.01")
TURNED_TOGETHER: Final = 20_000


@dataclass(frozen=True, slots=True)
class TripEvent:
    """The start or the end of one TLC trip; `at` is its event time (UTC).

    Zones are TLC's numbers, None where the file has none. Money is US dollars with two places,
    known at the END only.
    """

    trip_id: str
    is_start: bool
    at: datetime
    pickup_zone: int | None
    dropoff_zone: int | None
    passenger_count: int | None
    vendor: int | None
    fare: Decimal | None = None
    tip: Decimal | None = None
    total: Decimal | None = None


class TripEvents:
    """The events of one file; iterate for the events; `skipped` and `unread` count the rest.

    Events at the same instant come by row, a START before its END. `skipped` counts trips that
    cannot be replayed, by reason; `unread` counts values that an event lacks because their text is
    no number, or that had more than two places and were rounded, by column.
    """

    def __init__(self, file: TlcFile) -> None:
        self._file = file
        self.unread: Counter[str] = Counter()
        pickup, no_pickup, bad_pickup = _instants(file.trips.column("pickup"))
        dropoff, no_dropoff, bad_dropoff = _instants(file.trips.column("dropoff"))
        reasons = {
            "no_pickup_time": no_pickup,
            "unparsable_pickup_time": bad_pickup,
            "no_dropoff_time": no_dropoff,
            "unparsable_dropoff_time": bad_dropoff,
            "dropoff_before_pickup": dropoff < pickup,
        }
        left = np.ones(len(pickup), dtype=np.bool_)
        self.skipped: dict[str, int] = {"malformed_line": file.malformed} if file.malformed else {}
        for reason, applies in reasons.items():
            # A trip counts under the first reason that applies.
            if count := int((applies & left).sum()):
                self.skipped[reason] = count
            left &= ~applies
        self._rows = np.flatnonzero(left)
        self._pickup, self._dropoff = pickup[self._rows], dropoff[self._rows]

    @property
    def trips(self) -> int:
        """How many trips are replayed."""
        return len(self._rows)

    def __iter__(self) -> Iterator[TripEvent]:
        times = np.concatenate([self._pickup, self._dropoff])
        rows = np.concatenate([self._rows, self._rows])
        is_end = np.arange(len(times)) >= self.trips
        order = np.lexsort((is_end, rows, times))
        for begin in range(0, len(order), TURNED_TOGETHER):
            part = order[begin : begin + TURNED_TOGETHER]
            yield from self._turn(rows[part], times[part], is_end[part])

    def _turn(
        self, rows: NDArray[np.int64], times: NDArray[np.int64], is_end: NDArray[np.bool_]
    ) -> Iterator[TripEvent]:
        trips = self._file.trips.take(pa.array(rows)).to_pylist()
        for row, time, ends, trip in zip(
            rows.tolist(), times.tolist(), is_end.tolist(), trips, strict=True
        ):
            yield TripEvent(
                trip_id=trip_id(self._file.name, row),
                is_start=not ends,
                at=instant(time),
                pickup_zone=self._whole("pickup_zone", trip, ends),
                dropoff_zone=self._whole("dropoff_zone", trip, ends),
                passenger_count=self._whole("passenger_count", trip, ends),
                vendor=self._whole("vendor", trip, ends),
                fare=self._money("fare", trip) if ends else None,
                tip=self._money("tip", trip) if ends else None,
                total=self._money("total", trip) if ends else None,
            )

    def _whole(self, column: str, trip: dict[str, str | float | None], count: bool) -> int | None:
        """A whole number; files of some years write it as 2.0."""
        number = _decimal(trip[column])
        if number is None:
            return None
        if not number.is_finite() or number != number.to_integral_value():
            self.unread[column] += count
            return None
        return int(number)

    def _money(self, column: str, trip: dict[str, str | float | None]) -> Decimal | None:
        amount = _decimal(trip[column])
        if amount is None:
            return None
        if not amount.is_finite():
            self.unread[column] += 1
            return None
        cents = amount.quantize(CENT)
        self.unread[f"{column}_rounded"] += int(cents != amount)
        return cents


def trip_id(file_name: str, row: int) -> str:
    """The id of the trip in a row (from 0) of a file: the same whenever the file is replayed."""
    return blake2b(f"{file_name}#{row}".encode(), digest_size=8).hexdigest()


def _instants(
    column: pa.ChunkedArray,
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Microseconds since 1970 in UTC, and masks of the missing and of the unparsable times."""
    is_missing = np.asarray(pc.is_null(column))
    is_instant = False
    if pa.types.is_timestamp(column.type):
        # Adjusted to UTC already, where the file says so.
        is_instant = column.type.tz is not None
        parsed = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    else:
        parsed = _parsed(column.cast(pa.string()))
    is_unparsable = np.asarray(pc.is_null(parsed)) & ~is_missing
    walls = np.asarray(pc.fill_null(parsed.cast(pa.int64()), 0), dtype=np.int64)
    return walls if is_instant else instants_of(walls), is_missing, is_unparsable


def _parsed(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Wall-clock times; null for a text that is none. Arrow's own parser takes 30 February."""
    with duckdb.connect() as connection:
        times = connection.from_arrow(pa.table({"text": text}))
        return times.project(f"try_strptime(text, {TIME_FORMATS}) AS time").to_arrow_table()["time"]


def _decimal(value: str | float | None) -> Decimal | None:
    """The number as the file writes it: a double stands for its shortest text, 17.16 for 17.16."""
    if value is None:
        return None
    try:
        return Decimal(str(value).strip())
    except InvalidOperation:
        return Decimal("NaN")
