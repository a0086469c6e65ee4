"""Rows that an hour should have: stated by the source itself, or learned from earlier hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import msgspec
import pyarrow as pa

from rivermark.backfill.late.hours import hours_between
from rivermark.lake.sql import query
from rivermark.model.stream import Ingest
from rivermark.quality.volume_profile import DUCKDB_HOURS, WEEKS, profile
from rivermark.settings import Settings

HISTORY: Final = timedelta(weeks=WEEKS)
"""How far back a profile learns."""
DAYS_NEEDED: Final = 2

MISSING_FROM: Final = 10.0
"""An hour that usually has fewer rows may be empty by chance: of hours with 10 at random, one in
twenty thousand is."""
THIN_FROM: Final = 40.0
THIN_BELOW: Final = 0.5


@dataclass(frozen=True)
class Expected:
    """The rows that an hour should have, and the source of that number.

    A profile that is not `weekly` only distinguishes an empty hour from a full one, since a Sunday
    may have half of a Friday's rows.
    """

    rows: float
    by: Literal["manifest", "profile"]
    weekly: bool = True

    def missing(self, seen: int) -> bool:
        """Returns True if an hour without any row should have had some."""
        return seen == 0 and self.rows >= (1 if self.by == "manifest" else MISSING_FROM)

    def short(self, seen: int) -> int:
        """Number of missing rows: by a manifest each one, by a profile only from half on."""
        if self.by == "manifest":
            return max(0, round(self.rows) - seen)
        thin = self.weekly and self.rows >= THIN_FROM and seen < THIN_BELOW * self.rows
        return round(self.rows) - seen if thin or self.missing(seen) else 0


class Announcement(msgspec.Struct):
    """A line of a source's manifest: a file, and how many rows it sends of each hour (UTC)."""

    folder: str = ""
    file: str = ""
    rows: int = 0
    hours: dict[str, int] = {}


def announced(settings: Settings, ingest: Ingest) -> dict[datetime, int]:
    """Rows by hour (UTC) as the manifests in `<home>/manifests` state them; empty without any.

    A manifest is JSON lines; those with `folder` and `hours` count, others are ignored.
    """
    rows_by_hour: dict[datetime, int] = {}
    decoder = msgspec.json.Decoder(Announcement)
    for path in sorted((settings.home / "manifests").glob("*.jsonl")):
        # A line without an end was cut off by a kill, before its file landed.
        for line in path.read_bytes().split(b"\n")[:-1]:
            try:
                entry = decoder.decode(line)
                hours = {datetime.fromisoformat(text): n for text, n in entry.hours.items()}
            except (msgspec.DecodeError, ValueError):
                continue
            if entry.folder != ingest.source.name:
                continue
            for hour, rows in hours.items():
                at = (hour if hour.tzinfo else hour.replace(tzinfo=UTC)).astimezone(UTC)
                rows_by_hour[at] = rows_by_hour.get(at, 0) + rows
    return rows_by_hour


# `counts` has every hour since the first one: an hour without a row is a sample of 0.
USUAL: Final = f"""
WITH counted AS (SELECT timezone($zone, hour) AS slot, n FROM counts),
{profile(DUCKDB_HOURS, days_needed=DAYS_NEEDED)}
SELECT hour, by_week, CASE WHEN by_week THEN of_week ELSE of_days END AS usual
FROM hours JOIN profile ON timezone($zone, hour) = slot WHERE by_week OR by_day
"""  # noqa: S608


def usual_by_hour(
    rows_by_hour: Mapping[datetime, int], hours: Sequence[datetime], *, zone: str = "UTC"
) -> dict[datetime, Expected]:
    """The profile of each of the hours (UTC), from the hours before it.

    By the wall clock of `zone`: the morning rush moves with summer time. Hours for which too few
    are known are left out.
    """
    if not rows_by_hour or not hours:
        return {}
    known = list(hours_between(min(rows_by_hour), max(hours)))
    moment = pa.timestamp("us", "UTC")
    counts = {"hour": pa.array(known, moment), "n": [rows_by_hour.get(h, 0) for h in known]}
    usual = query(
        USUAL,
        {"counts": pa.table(counts), "hours": pa.table({"hour": pa.array(hours, moment)})},
        {"zone": zone},
    )
    return {
        row["hour"].astimezone(UTC): Expected(row["usual"], "profile", weekly=row["by_week"])
        for row in usual
    }


def expected_by_hour(
    settings: Settings,
    ingest: Ingest,
    rows_by_hour: Mapping[datetime, int],
    hours: Sequence[datetime],
) -> dict[datetime, Expected]:
    """The rows that each of the hours should have; those of which nothing is known are left out."""
    stated = announced(settings, ingest)
    first, last = min(stated, default=None), max(stated, default=None)
    by_manifest = {
        hour: Expected(stated.get(hour, 0), "manifest")
        for hour in hours
        if first is not None and last is not None and first <= hour <= last
    }
    others = [hour for hour in hours if hour not in by_manifest]
    zone = ingest.days.zone if ingest.days else "UTC"
    return {**usual_by_hour(rows_by_hour, others, zone=zone), **by_manifest}
