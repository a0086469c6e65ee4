"""Number of rows of a table in each hour of event time, and what admission made of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.types import DateType, TimestampType

from rivermark.backfill.late.merged import merged_by_hour, unmerged_by_hour
from rivermark.lake.quoting import quoted
from rivermark.lake.snapshot import once_per_snapshot, open_table
from rivermark.lake.sql import query
from rivermark.model.stream import Ingest
from rivermark.model.table import Daily, Table
from rivermark.model.time import shifted
from rivermark.settings import Settings

if TYPE_CHECKING:
    from pyarrow import dataset

HOUR: Final = timedelta(hours=1)


@dataclass(frozen=True)
class HourOfRows:
    """The rows of an ingest whose event time lies in the hour that begins at `hour` (UTC).

    `admitted` are those that came in time. `merged` of the `late` ones lie beside them in the
    admitted table by now, and `repeats` are rows there whose keys another one of the hour has.
    Quarantined rows count where their event time could be read. `money` is that of all valid rows,
    and `late_money` of those that are not merged, where they were to be counted.
    """

    hour: datetime
    admitted: int = 0
    late: int = 0
    quarantined: int = 0
    repeats: int = 0
    merged: int = 0
    money: Decimal = Decimal(0)
    late_money: Decimal = Decimal(0)

    @property
    def seen(self) -> int:
        """Every row that arrived for the hour."""
        return self.admitted + self.late + self.quarantined


def hours_of(
    settings: Settings,
    ingest: Ingest,
    start: datetime,
    end: datetime,
    repeats_from: datetime | None = None,
) -> list[HourOfRows]:
    """The hours from `start` to before `end` that have rows, in order.

    With `repeats_from` repeated keys and money are looked for from there on alone: hours before are
    counted by the log, where a file is of one hour.
    """
    time = ingest.contract.event_time
    counts: dict[datetime, dict[str, Any]] = {}
    places = (
        ("admitted", ingest.admitted, time, ingest.contract.keys, ingest.money),
        ("late", ingest.late, time, (), None),
        ("quarantined", ingest.quarantine, "event_time", (), None),
    )
    for place, table, column, repeated_by, money in places:
        counted = _count(settings, table, column, repeats_from or start, end, repeated_by, money)
        if repeats_from is not None:
            counted += _count(settings, table, column, start, repeats_from)
        for row in counted:
            hour = counts.setdefault(row.pop("hour").astimezone(UTC), {})
            hour[place] = hour.get(place, 0) + row.pop("n")
            for name, amount in row.items():
                hour[name] = hour.get(name, 0) + (amount or 0)
    for at, merged in merged_by_hour(settings, ingest, start, end).items():
        hour = counts.setdefault(at, {})
        hour["merged"] = merged.rows
        hour["admitted"] = max(0, hour.get("admitted", 0) - merged.rows)
    if ingest.money and repeats_from:
        for at, late in unmerged_by_hour(settings, ingest, (repeats_from, end)).items():
            hour = counts.setdefault(at, {})
            hour["late_money"] = late.money
            hour["money"] = hour.get("money", 0) + late.money
    return [HourOfRows(hour, **counts[hour]) for hour in sorted(counts)]


def rows_by_hour(
    settings: Settings, table: Table, start: datetime, end: datetime
) -> dict[datetime, int]:
    """Rows of any table by the hour of the column that its days go by; of dates, by midnight."""
    if table.days is None:
        return {}
    if isinstance(table.schema[table.days.column].dataType, DateType):
        return _rows_by_date(settings, table, table.days, start, end)
    rows = _count(settings, table, table.days.column, start, end)
    return {row["hour"].astimezone(UTC): row["n"] for row in rows}


def newest_moment(settings: Settings, table: Table, column: str) -> datetime | None:
    """The newest moment of a column, by the rows: statistics may be cut or missing."""
    lake = settings.lake()
    if not lake.exists(table):
        return None
    # A column's declared name, quoted.
    sql = f"SELECT max({quoted(column)}) AS newest FROM rows"  # noqa: S608
    newest = once_per_snapshot(
        ("newest", lake.path(table), column),
        lambda: query(sql, {"rows": open_table(lake, table).newest(column)})[0]["newest"],
    )
    return newest.astimezone(UTC) if isinstance(newest, datetime) else None


def day_of(hour: datetime, days: Daily | None) -> date:
    """The day to which an hour belongs: in the zone of the days, UTC without days.

    Zones whose offset is no whole hour have their day's edge within an hour of UTC, which then
    counts for the day in which it begins.
    """
    return days.day_of(hour) if days else hour.astimezone(UTC).date()


def bounds(first: date, last: date, days: Daily | None) -> tuple[datetime, datetime]:
    """Instants (UTC) of the start of `first` and of the end of `last`, both included."""
    return (days or Daily("", first)).bounds(first, last)


def hours_between(start: datetime, end: datetime) -> Iterable[datetime]:
    """Every hour that begins in [start, end)."""
    hour = start
    while hour < end:
        yield hour
        hour = shifted(hour, HOUR)


def _count(
    settings: Settings,
    table: Table,
    column: str,
    start: datetime,
    end: datetime,
    keys: tuple[str, ...] = (),
    money: str | None = None,
) -> list[dict[str, Any]]:
    """Rows by hour, with the repeated ones among them and their money where these are asked for."""
    lake = settings.lake()
    if not lake.exists(table):
        return []
    rows: dataset.Dataset = open_table(lake, table)
    counts = dict[datetime, int]()
    if not (keys or money) and isinstance(table.schema[column].dataType, TimestampType):
        counts, rows = open_table(lake, table).by_hour(column, start, end)
    more = ""
    if keys:
        by = ", ".join(quoted(key) for key in keys) + ("," if len(keys) == 1 else "")
        more += f", count(*) - count(DISTINCT ({by})) AS repeats"
    if money:
        more += f", sum({quoted(money)}) AS money"
    counted = query(
        # Names are declared in code, and quoted all the same.
        f"SELECT date_trunc('hour', {quoted(column)}) AS hour, count(*) AS n{more} FROM rows"  # noqa: S608
        f" WHERE {quoted(column)} >= $start AND {quoted(column)} < $end GROUP BY 1",
        {"rows": rows},
        {"start": start, "end": end},
    )
    for row in counted:
        row["n"] += counts.pop(row["hour"].astimezone(UTC), 0)
    return [*counted, *({"hour": hour, "n": n} for hour, n in counts.items())]


def _rows_by_date(
    settings: Settings, table: Table, days: Daily, start: datetime, end: datetime
) -> dict[datetime, int]:
    lake = settings.lake()
    if not lake.exists(table):
        return {}
    first, last = days.day_of(start), days.day_of(end - HOUR)
    rows = query(
        f"SELECT {quoted(days.column)} AS day, count(*) AS n FROM rows"  # noqa: S608
        f" WHERE {quoted(days.column)} BETWEEN $first AND $last GROUP BY 1",
        {"rows": open_table(lake, table)},
        {"first": first, "last": last},
    )
    return {days.bounds(row["day"], row["day"])[0]: row["n"] for row in rows}
