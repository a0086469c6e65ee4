"""The reading tables, computed from landed files and recorded series."""

from __future__ import annotations

import csv
import io
import itertools
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from pathlib import Path

from tests.oracles.landed import accept, once, text, window_start

SECONDS_5 = timedelta(seconds=5)
HOUR = timedelta(hours=1)


class SensorOracle:
    """What the generated sensors landed, and what the live tables must hold of it."""

    def __init__(self, landing: Path) -> None:
        self.accepted = accept(landing / "readings/sensors", SECONDS_5)
        self.readings = once(self.accepted.admitted, "sensor_id", "sequence")

    def windows(self, size: timedelta) -> dict[tuple[str, datetime], list[Decimal]]:
        """Temperatures (F) by sensor and end of window, of all windows whether final or not."""
        found: dict[tuple[str, datetime], list[Decimal]] = defaultdict(list)
        for reading in self.readings:
            end = window_start(reading["event_time"], size) + size
            found[reading["sensor_id"], end].append(reading["temperature"])
        return dict(found)


def celsius(fahrenheit: list[Decimal]) -> Decimal:
    """Their average in degrees Celsius, rounded once to four places."""
    mean = sum((Fraction(f) for f in fahrenheit), Fraction(0)) / len(fahrenheit)
    return rounded((mean - 32) * 5 / 9, 4)


def rounded(exact: Fraction, places: int) -> Decimal:
    """A fraction as a decimal, halves away from zero."""
    plain = Decimal(exact.numerator) / Decimal(exact.denominator)
    return plain.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)


def series(file: Path) -> list[tuple[datetime, Decimal]]:
    """A recorded series as its file has it, values to a millionth."""
    rows = csv.DictReader(io.StringIO(text(file)))
    return [
        (
            datetime.fromisoformat(row["timestamp"]).replace(tzinfo=UTC),
            Decimal(row["value"]).quantize(Decimal("0.000001"), ROUND_HALF_UP),
        )
        for row in rows
    ]


def hourly(file: Path) -> dict[datetime, tuple[int, Decimal, Decimal, Decimal]]:
    """Readings, average, lowest and highest by start of hour."""
    hours: dict[datetime, list[Decimal]] = defaultdict(list)
    for at, value in series(file):
        hours[window_start(at, HOUR)].append(value)
    return {
        hour: (
            len(values),
            rounded(sum((Fraction(v) for v in values), Fraction(0)) / len(values), 6),
            min(values),
            max(values),
        )
        for hour, values in hours.items()
    }


def gaps(file: Path, interval: timedelta) -> list[tuple[datetime, datetime, int]]:
    """Each pair of neighbours further apart than the interval, and the readings missing there."""
    times = sorted({at for at, _ in series(file)})
    return [
        (before, after, (after - before) // interval - 1)
        for before, after in itertools.pairwise(times)
        if after - before > interval
    ]
