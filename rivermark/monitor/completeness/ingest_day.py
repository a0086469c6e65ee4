"""Is a day of event time complete and right: answered from the tables, with the number.

A day of an ingest holds:  rows that came = admitted (repeats among them) + late + set aside.
It is complete when that adds up, when no hour lacks rows that the source announced or usually
sends, when what came late has been folded in, and when the watermark has reached its end. Starts no
JVM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final, Literal

from rivermark.backfill.late.hours import (
    HOUR,
    HourOfRows,
    bounds,
    day_of,
    hours_between,
    hours_of,
    newest_moment,
)
from rivermark.model.stream import Ingest
from rivermark.model.table import days_between
from rivermark.model.topology import Topology
from rivermark.monitor.completeness.expected_volume import LOOK_BACK, Expected, expectations
from rivermark.monitor.completeness.missing_rows import unaccounted_by_day
from rivermark.monitor.late_statistics import late_money
from rivermark.monitor.watermarks import Mark, inputs_with_marks
from rivermark.settings import Settings

State = Literal["complete", "open", "warn", "fail"]
NO_ROWS: Final = HourOfRows(datetime.min.replace(tzinfo=UTC))


@dataclass(frozen=True, kw_only=True)
class Day:
    """A day of an ingest in figures.

    `unaccounted` are rows that landed and are nowhere, or twice. `expected` and `short` are rows
    over the hours of which anything is known (None: of none); `missing_hours` begin (UTC) where
    rows should be and none is. `folded` of the `late` rows were taken into the admitted table
    since. `late_money` is the sum of those that were not, and `money` of all valid rows, where the
    ingest declares a money column.
    """

    stream: str
    day: date
    state: State
    admitted: int = 0
    late: int = 0
    folded: int = 0
    set_aside: int = 0
    repeats: int = 0
    unaccounted: int = 0
    expected: int | None = None
    expected_by: str = ""
    short: int = 0
    missing_hours: tuple[datetime, ...] = ()
    short_hours: tuple[datetime, ...] = ()
    late_money: Decimal | None = None
    money: Decimal | None = None
    marks: tuple[Mark, ...] = ()
    hours: Mapping[datetime, HourOfRows] = field(default_factory=dict)

    @property
    def seen(self) -> int:
        """Every row that came for the day."""
        return self.admitted + self.late + self.set_aside

    @property
    def unfolded(self) -> int:
        """Late rows that the admitted table lacks."""
        return self.late - self.folded

    @property
    def late_share(self) -> float:
        """Late rows that were not folded among the valid ones."""
        return self.unfolded / max(1, self.admitted + self.late)

    @property
    def money_share(self) -> float | None:
        """Their money as a share of all; None where no money is declared or there is none."""
        if self.late_money is None or not self.money:
            return None
        return float(self.late_money / self.money)

    @property
    def sentence(self) -> str:
        """What is so, in words."""
        told = [f"{self.seen:,} rows = {self.admitted:,} admitted"]
        told[0] += f" ({self.repeats:,} repeats)" if self.repeats else ""
        told[0] += f" + {self.late:,} late + {self.set_aside:,} set aside"
        if self.unaccounted:
            told.append(f"{self.unaccounted:,} rows do not add up")
        if self.missing_hours:
            hours = ", ".join(f"{hour:%H:%M}" for hour in self.missing_hours)
            told.append(f"{len(self.missing_hours)} hours without a row (UTC): {hours}")
        if self.short and self.expected is not None:
            told.append(
                f"{self.short:,} of {self.expected:,} expected rows lack (by {self.expected_by})"
            )
        if self.unfolded:
            money = f", {self.money_share:.1%} of the money" if self.money_share else ""
            told.append(f"{self.unfolded:,} late rows not folded ({self.late_share:.1%}{money})")
        if self.folded:
            told.append(f"{self.folded:,} late rows folded")
        if self.state == "open":
            waits = [m.stream for m in self.marks if m.at is None or day_open(self, m)]
            told.append(f"still open: {', '.join(waits)} has not passed it")
        return "; ".join(told)


def day_open(day: Day, mark: Mark) -> bool:
    """Whether the day may still get rows from this input."""
    end = max(day.hours, default=None)
    return mark.at is None or end is None or mark.at < end + HOUR


def days_of_ingest(
    settings: Settings,
    topology: Topology,
    ingest: Ingest,
    first: date,
    last: date,
    reached: Mapping[str, datetime],
) -> list[Day]:
    """Every day from `first` to `last` that has rows, or should have.

    `reached` are the watermarks (rivermark.monitor.watermarks). A day before the stream's first row
    is not among them.
    """
    start, end = bounds(first, last, ingest.days)
    history = hours_of(settings, ingest, start - LOOK_BACK, end)
    if not history:
        return []
    by_hour = {h.hour: h for h in history}
    seen = {h.hour: h.seen for h in history}
    money = late_money(settings, ingest, start, end)
    wrong = unaccounted_by_day(settings, ingest)
    marked = inputs_with_marks(topology, ingest, dict(reached))
    over = [h for h in hours_between(start, end) if _over(h, ingest, reached)]
    expected = expectations(settings, ingest, seen, over)
    found = []
    for day in days_between(first, last):
        day_start, day_end = bounds(day, day, ingest.days)
        if day_end <= min(seen):
            continue
        hours = list(hours_between(day_start, day_end))
        found.append(
            _day(
                ingest,
                day,
                {h: by_hour.get(h, NO_ROWS) for h in hours},
                {h: expected[h] for h in hours if h in expected},
                money.get(day, (None, None)),
                wrong.get(day, 0),
                marked,
                closed=all(m.at is not None and m.at >= day_end for m in marked),
            )
        )
    return found


def newest_day(settings: Settings, ingest: Ingest) -> date | None:
    """The newest day of which the ingest has admitted a row."""
    newest = newest_moment(settings, ingest.admitted, ingest.contract.event_time)
    return day_of(newest, ingest.days) if newest else None


def _over(hour: datetime, ingest: Ingest, reached: Mapping[str, datetime]) -> bool:
    """Whether nothing more is due for the hour: a dump is complete in itself."""
    if ingest.lateness is None:
        return True
    at = reached.get(ingest.name)
    return at is not None and hour + HOUR <= at


def _day(
    ingest: Ingest,
    day: date,
    hours: Mapping[datetime, HourOfRows],
    expected: Mapping[datetime, Expected],
    money: tuple[Decimal | None, Decimal | None],
    unaccounted: int,
    marked: tuple[Mark, ...],
    *,
    closed: bool,
) -> Day:
    short = {h: e.short(hours[h].seen) for h, e in expected.items()}
    late, folded = (sum(h.late for h in hours.values()), sum(h.merged for h in hours.values()))
    by = sorted({e.by for e in expected.values()})
    state: State = "complete" if closed else "open"
    announced = sum(n for h, n in short.items() if expected[h].by == "manifest")
    if unaccounted or announced:
        # What the source itself says it sent is known; a profile is a guess.
        state = "fail"
    elif sum(short.values()) or (late > folded and closed):
        state = "warn"
    return Day(
        stream=ingest.name,
        day=day,
        state=state,
        admitted=sum(h.admitted for h in hours.values()),
        late=late,
        folded=folded,
        set_aside=sum(h.quarantined for h in hours.values()),
        repeats=sum(h.repeats for h in hours.values()),
        unaccounted=unaccounted,
        expected=round(sum(e.rows for e in expected.values())) if expected else None,
        expected_by=" and ".join(by),
        short=sum(short.values()),
        missing_hours=tuple(h for h, e in expected.items() if e.missing(hours[h].seen)),
        short_hours=tuple(h for h, n in short.items() if n),
        late_money=money[0],
        money=money[1],
        marks=marked,
        hours=hours,
    )
