"""Axes of charts: round numbers, shares, spans of time and dates, a handful of ticks each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from math import ceil, floor, log10
from typing import Final, Literal, NamedTuple

Unit = Literal["number", "share", "seconds"]
MOST_VALUES: Final = 4
MOST_TIMES: Final = 6
MONTH: Final = 30.4
"""Days of a month, of which ticks are counted and not placed by."""

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
SPANS: Final = (
    *(1, 2, 5, 10, 30),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 7, 14)),
)
"""Seconds that people count in."""
MONTHS: Final = (1, 2, 3, 6, 12, 24, 60, 120, 600, 1200, 6000, 24_000)
YEARS: Final = (
    datetime(1, 1, 1, tzinfo=UTC).timestamp(),
    datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp(),
)
LARGEST: Final = 1e300
"""What is drawn of larger numbers, so that sums and differences of them are numbers."""
CLOSE: Final = 1e-9
"""Values that differ by so small a part of them are drawn as one."""


class Tick(NamedTuple):
    """A text at a place of an axis, from 0 (its start) to 1."""

    at: float
    text: str


class Axis(NamedTuple):
    """The values at both ends of an axis, and its ticks."""

    low: float
    high: float
    ticks: Sequence[Tick]

    def at(self, value: float) -> float:
        """The place of a value, from 0 to 1; of one beyond an end, that end."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def within(value: float) -> float:
    """A number that can be drawn: not beyond LARGEST on either side."""
    return max(-LARGEST, min(LARGEST, value))


def value_axis(low: float, high: float, unit: Unit = "number") -> Axis:
    """An axis from a round value at or below `low` to one at or above `high`."""
    low, high = within(low), within(high)
    if high - low <= max(abs(low), abs(high)) * CLOSE or high - low < 1 / LARGEST:
        # Values that are one, but for what floats lose: a line at the bottom, without an axis of
        # its noise.
        high = low + max(1.0, abs(low) / 10)
    step = _step(high - low, unit)
    first, last = floor(low / step), ceil(high / step)
    text = _TEXTS[unit]
    return Axis(
        first * step,
        last * step,
        [Tick((n - first) / (last - first), text(n * step)) for n in range(first, last + 1)],
    )


def time_axis(start: datetime, end: datetime) -> Axis:
    """An axis of instants (UTC) as seconds since 1970."""
    low, high = start.timestamp(), end.timestamp()
    span = high - low
    step = next((s for s in SPANS if span / s <= MOST_TIMES), None)
    if step is None:
        ticks = _months(start, end)
    else:
        ticks = [float(n * step) for n in range(ceil(low / step), floor(high / step) + 1)]
    form = _time_form(step, span)
    return Axis(
        low,
        high,
        [Tick((at - low) / span, f"{instant(at):{form}}") for at in ticks],
    )


def instant(seconds: float) -> datetime:
    """A moment by its seconds since 1970; one that no calendar has is the nearest that it has."""
    return datetime.fromtimestamp(max(YEARS[0], min(YEARS[1], seconds)), UTC)


def bucket_of(span: timedelta, most: int) -> timedelta:
    """The shortest span that people count in, of which at most so many cover `span`."""
    seconds = span.total_seconds()
    return timedelta(seconds=next((s for s in SPANS if seconds / s <= most), ceil(seconds / most)))


def _step(span: float, unit: Unit) -> float:
    if unit == "seconds" and span > _DAY * MOST_VALUES:
        return _DAY * _step(span / _DAY, "number")
    if unit == "seconds" and span >= MOST_VALUES:
        return next(s for s in SPANS if span / s <= MOST_VALUES)
    size = 10.0 ** floor(log10(span / MOST_VALUES))
    return next(m * size for m in (1, 2, 5, 10) if span / (m * size) <= MOST_VALUES)


def _months(start: datetime, end: datetime) -> list[float]:
    """The first days of months, so many apart that few are in the span."""
    months = (end - start).days / MONTH
    step = next((m for m in MONTHS if months / m <= MOST_TIMES), MONTHS[-1])
    first = start.year * 12 + start.month
    last = end.year * 12 + end.month - 1
    return [
        datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC).timestamp()
        for month in range(first + -first % step, last + 1, step)
    ]


def _time_form(step: int | None, span: float) -> str:
    if step is None:
        return "%b %Y"
    if step >= _DAY:
        return "%-d %b"
    if span > _DAY:
        return "%-d %b %H:%M"
    return "%H:%M" if step >= _MINUTE else "%H:%M:%S"


def number_text(value: float) -> str:
    """A number as an axis shows it: 1,500 or 2.5M."""
    for size, name in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if name == 'k' else size):,.4g}{name}"
    return f"{value:,.6g}"


def share_text(value: float) -> str:
    """A share from 0 to 1 as a percentage."""
    return f"{100 * value:.3g} %"


def seconds_text(value: float) -> str:
    """A span of seconds in its largest unit: 90 s is 1.5 min."""
    for size, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if abs(value) >= size:
            return f"{value / size:,.4g} {name}"
    return f"{value:.3g} s"


_TEXTS: Final[dict[Unit, Callable[[float], str]]] = {
    "number": number_text,
    "share": share_text,
    "seconds": seconds_text,
}


def text_of(value: float, unit: Unit) -> str:
    """A value in words, as the axis of its unit shows it."""
    return _TEXTS[unit](value)
