"""Completeness of a day of event time of an ingest, by the tables, without a JVM.

A day of an ingest holds:  rows that arrived = admitted (repeats among them) + late + quarantined.
It is complete when that adds up, when no hour lacks rows that the source announced or usually
sends, when its late rows have been merged, and when the watermark has reached its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final, Literal

from rivermark.backfill.late.hours import (
    HOUR,
    HourOfRows,
    bounds,
    day_of,
    hours_between,
    hours_of,
    newest_moment,
)
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.quoting import quoted
from rivermark.lake.snapshot import once_per_snapshot, open_table
from rivermark.lake.sql import query
from rivermark.model.source import LOST
from rivermark.model.stream import Ingest
from rivermark.model.table import days_between
from rivermark.model.time import LAST, shifted
from rivermark.model.topology import Topology
from rivermark.monitor.checks.row_conservation import unaccounted_by_day
from rivermark.monitor.completeness.expected_volume import HISTORY, Expected, expected_by_hour
from rivermark.monitor.watermarks import StreamWatermark, awaited_watermarks
from rivermark.settings import Settings

State = Literal["complete", "open", "warn", "fail"]
NO_ROWS: Final = HourOfRows(datetime.min.replace(tzinfo=UTC))


@dataclass(frozen=True, kw_only=True)
class Day:
    """A day of an ingest in figures.

    `unaccounted` are rows that landed and are in no table, or twice. `gaps` of the source were
    accepted, by which the day may have lost records. `expected` and `short` are rows over the hours
    of which anything is known (None: of none); `missing_hours` start (UTC) where rows should be and
    none is. `merged` of the `late` rows are in the admitted table by now. `late_money` is the sum
    of those that are not, and `money` of all valid rows, where the ingest declares a money column.
    """

    stream: str
    day: date
    state: State
    admitted: int = 0
    late: int = 0
    merged: int = 0
    quarantined: int = 0
    repeats: int = 0
    unaccounted: int = 0
    gaps: int = 0
    expected: int | None = None
    expected_by: str = ""
    short: int = 0
    missing_hours: tuple[datetime, ...] = ()
    short_hours: tuple[datetime, ...] = ()
    late_money: Decimal | None = None
    money: Decimal | None = None
    watermarks: tuple[StreamWatermark, ...] = ()
    hours: Mapping[datetime, HourOfRows] = field(default_factory=dict)

    @property
    def seen(self) -> int:
        """Every row that arrived for the day."""
        return self.admitted + self.late + self.quarantined

    @property
    def unmerged(self) -> int:
        """Late rows that the admitted table lacks."""
        return self.late - self.merged

    @property
    def late_share(self) -> float:
        """Late rows that are not merged among the valid ones."""
        return self.unmerged / max(1, self.admitted + self.late)

    @property
    def money_share(self) -> float | None:
        """Their money as a share of all; None where no money is declared or there is none."""
        if self.late_money is None or not self.money:
            return None
        return float(self.late_money / self.money)

    @property
    def sentence(self) -> str:
        """The figures in words."""
        repeats = f" ({self.repeats:,} repeats)" if self.repeats else ""
        parts = [
            f"{self.seen:,} rows = {self.admitted:,} admitted{repeats} + {self.late:,} late"
            f" + {self.quarantined:,} quarantined"
        ]
        if self.unaccounted:
            parts.append(f"{self.unaccounted:,} rows do not add up")
        if self.gaps:
            parts.append(f"records were gone before they were read ({self.gaps:,} accepted gaps)")
        if self.missing_hours:
            hours = ", ".join(spans_of(self.missing_hours))
            parts.append(f"{len(self.missing_hours)} hours without a row (UTC): {hours}")
        if self.short and self.expected is not None:
            parts.append(
                f"{self.short:,} of {self.expected:,} expected rows are missing "
                f"(by {self.expected_by})"
            )
        if self.unmerged:
            money = f", {self.money_share:.1%} of the money" if self.money_share else ""
            parts.append(f"{self.unmerged:,} late rows not merged ({self.late_share:.1%}{money})")
        if self.merged:
            parts.append(f"{self.merged:,} late rows merged")
        if self.state == "open":
            end = shifted(max(self.hours), HOUR) if self.hours else LAST
            behind = [w.stream for w in self.watermarks if w.at is None or w.at < end]
            parts.append(f"still open: {', '.join(behind)} has not passed it")
        return "; ".join(parts)


def spans_of(hours: Iterable[datetime]) -> list[str]:
    """Hours, each by its start and in their order, as spans in words: '00:00 to 12:00'."""
    spans: list[tuple[datetime, datetime]] = []
    for hour in hours:
        first = spans.pop()[0] if spans and spans[-1][1] == hour else hour
        spans.append((first, hour + HOUR))
    return [f"{first:%H:%M} to {end:%H:%M}" for first, end in spans]


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
    is left out. Within a snapshot they are computed once.
    """
    watermarks = awaited_watermarks(topology, ingest, reached)
    return once_per_snapshot(
        ("days", settings.lake_root, ingest.name, first, last, watermarks),
        lambda: _days_of_ingest(settings, ingest, first, last, watermarks),
    )


def _days_of_ingest(
    settings: Settings,
    ingest: Ingest,
    first: date,
    last: date,
    watermarks: tuple[StreamWatermark, ...],
) -> list[Day]:
    start, end = bounds(first, last, ingest.days)
    by_hour = {h.hour: h for h in hours_of(settings, ingest, shifted(start, -HISTORY), end, start)}
    if not by_hour:
        return []
    seen = {hour: rows.seen for hour, rows in by_hour.items()}
    unaccounted = unaccounted_by_day(settings, ingest)
    gaps = gaps_by_day(settings, ingest)
    finished = [h for h in hours_between(start, end) if _finished(h, watermarks)]
    expected = expected_by_hour(settings, ingest, seen, finished)
    days = []
    for day in days_between(first, last):
        day_start, day_end = bounds(day, day, ingest.days)
        if day_end <= min(seen):
            continue
        hours = list(hours_between(day_start, day_end))
        days.append(
            _day(
                ingest,
                day,
                {h: by_hour.get(h, NO_ROWS) for h in hours},
                {h: expected[h] for h in hours if h in expected},
                unaccounted.get(day, 0),
                gaps.get(day, 0),
                watermarks,
                closed=all(w.at is not None and w.at >= day_end for w in watermarks),
            )
        )
    return days


def newest_day(settings: Settings, ingest: Ingest) -> date | None:
    """The newest day of which the ingest has admitted a row."""
    newest = newest_moment(settings, ingest.admitted, ingest.contract.event_time)
    return day_of(newest, ingest.days) if newest else None


def _finished(hour: datetime, watermarks: Iterable[StreamWatermark]) -> bool:
    """Returns True if no more rows of the hour are expected: a dump is complete in itself."""
    return all(w.at is not None and hour + HOUR <= w.at for w in watermarks)


def _day(
    ingest: Ingest,
    day: date,
    hours: Mapping[datetime, HourOfRows],
    expected: Mapping[datetime, Expected],
    unaccounted: int,
    gaps: int,
    watermarks: tuple[StreamWatermark, ...],
    *,
    closed: bool,
) -> Day:
    short = {h: e.short(hours[h].seen) for h, e in expected.items()}
    late, merged = (sum(h.late for h in hours.values()), sum(h.merged for h in hours.values()))
    by = sorted({e.by for e in expected.values()})
    money = ingest.money and any(h.admitted or h.late for h in hours.values())
    state: State = "complete" if closed else "open"
    announced = sum(n for h, n in short.items() if expected[h].by == "manifest")
    if unaccounted or gaps or announced:
        # What the source itself states is known; a profile is a guess.
        state = "fail"
    elif sum(short.values()) or (late > merged and closed):
        state = "warn"
    return Day(
        stream=ingest.name,
        day=day,
        state=state,
        admitted=sum(h.admitted for h in hours.values()),
        late=late,
        merged=merged,
        quarantined=sum(h.quarantined for h in hours.values()),
        repeats=sum(h.repeats for h in hours.values()),
        unaccounted=unaccounted,
        gaps=gaps,
        expected=round(sum(e.rows for e in expected.values())) if expected else None,
        expected_by=" and ".join(by),
        short=sum(short.values()),
        missing_hours=tuple(h for h, e in expected.items() if e.missing(hours[h].seen)),
        short_hours=tuple(h for h, n in short.items() if n),
        late_money=sum((h.late_money for h in hours.values()), Decimal(0)) if money else None,
        money=sum((h.money for h in hours.values()), Decimal(0)) if money else None,
        watermarks=watermarks,
        hours=hours,
    )


BATCHES: Final = """
SELECT DISTINCT ingest_batch AS batch FROM outcomes WHERE stream = $stream AND status = $lost
"""
AROUND: Final = """
SELECT max({time}) FILTER (_ingest_batch < $batch) AS before,
       min({time}) FILTER (_ingest_batch > $batch) AS after
FROM admitted_rows
"""


def gaps_by_day(settings: Settings, ingest: Ingest) -> dict[date, int]:
    """Number of accepted gaps to which each day may have lost records.

    What is gone has no event time any more. It lay between what was admitted before and after it,
    so every day from the one to the other is concerned.
    """
    lake = settings.lake()
    if not all(lake.exists(table) for table in (INGEST_FILES, ingest.versions)):
        return {}
    own = {"stream": ingest.name, "lost": LOST}
    batches = query(BATCHES, {"outcomes": open_table(lake, INGEST_FILES)}, own)
    gaps: Counter[date] = Counter()
    for batch in batches:
        [row] = query(
            AROUND.format(time=quoted(ingest.contract.event_time)),
            {"admitted_rows": open_table(lake, ingest.versions)},
            batch,
        )
        gaps.update(_days(ingest, row))
    return dict(gaps)


def _days(ingest: Ingest, row: dict[str, Any]) -> list[date]:
    ends: list[datetime] = [m.astimezone(UTC) for m in (row["before"], row["after"]) if m]
    if not ends:
        return []
    return [*days_between(day_of(min(ends), ingest.days), day_of(max(ends), ingest.days))]
