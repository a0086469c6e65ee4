"""The days of ingests with late rows that are not merged yet. Starts no Spark by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from rivermark.backfill.as_of import check_range
from rivermark.backfill.late.hours import bounds, day_of
from rivermark.backfill.late.merge_log import merged_through
from rivermark.backfill.late.merged import LateHour, unmerged_by_hour
from rivermark.ingest.watermark_recovery import admission_watermark
from rivermark.model.errors import WrongUse
from rivermark.model.stream import Ingest
from rivermark.model.topology import Topology
from rivermark.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class LateDay:
    """A day of an ingest with the hours in which late rows are not merged.

    It is `closed` when the ingest's watermark has passed its end: then every further row of it is
    late. An open day is left for later.
    """

    stream: str
    day: date
    closed: bool
    hours: tuple[LateHour, ...]

    @property
    def rows(self) -> int:
        """Late rows that are not merged."""
        return sum(hour.rows for hour in self.hours)

    @property
    def money(self) -> Decimal | None:
        """Their money; None where the ingest declares no money column."""
        amounts = [hour.money for hour in self.hours if hour.money is not None]
        return sum(amounts, Decimal(0)) if amounts else None


def late_days(
    settings: Settings,
    ingest: Ingest,
    *,
    first: date | None = None,
    last: date | None = None,
    spark: Callable[[], SparkSession] | None = None,
) -> list[LateDay]:
    """The ingest's days with late rows to merge, from `first` to `last` where given, in order.

    `spark` may be given for rows that are many.
    """
    check_range(first, last)
    lake = settings.lake()
    if ingest.lateness is None or not lake.exists(ingest.admitted):
        return []
    after = merged_through(lake, ingest)
    hours_by_day: dict[date, list[LateHour]] = {}
    for hour in unmerged_by_hour(settings, ingest, after=after, spark=spark).values():
        hours_by_day.setdefault(day_of(hour.hour, ingest.days), []).append(hour)
    through = admission_watermark(lake, ingest)
    return [
        LateDay(ingest.name, day, _closed(ingest, day, through), tuple(hours))
        for day, hours in sorted(hours_by_day.items())
        if (first is None or day >= first) and (last is None or day <= last)
    ]


def mergeable(
    settings: Settings,
    ingests: Iterable[Ingest],
    spark: Callable[[], SparkSession] | None = None,
    **between: date | None,
) -> dict[str, list[LateDay]]:
    """The closed days with late rows to merge, by ingest; ingests without any are left out."""
    by_ingest = {i.name: late_days(settings, i, spark=spark, **between) for i in ingests}
    closed = {name: [day for day in days if day.closed] for name, days in by_ingest.items()}
    return {name: days for name, days in closed.items() if days}


def live_ingests(topology: Topology) -> list[Ingest]:
    """The ingests whose rows can be late."""
    return [s for s in topology.streams if isinstance(s, Ingest) and s.lateness is not None]


def chosen_ingests(topology: Topology, names: Sequence[str]) -> list[Ingest]:
    """The ingests of those names, all without any; RivermarkError where no row can be late."""
    live = {ingest.name: ingest for ingest in live_ingests(topology)}
    for name in names:
        if topology.named(name).name not in live:
            raise WrongUse(f"no row of '{name}' can be late; choose one of {', '.join(live)}")
    return [live[name] for name in names] or list(live.values())


def _closed(ingest: Ingest, day: date, through: datetime | None) -> bool:
    _, end = bounds(day, day, ingest.days)
    # A row of the day's last instant is late only when the watermark is not before it.
    return through is not None and through >= end
