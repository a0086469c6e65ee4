"""How many rows an hour should have: told by the source itself, or learned from earlier hours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Final, Literal
from zoneinfo import ZoneInfo

import msgspec

from rivermark.backfill.late.hours import DAY
from rivermark.model.stream import Ingest
from rivermark.model.table import Daily
from rivermark.settings import Settings

LOOK_BACK: Final = timedelta(weeks=8)
"""How far back a profile learns: long enough for eight of each weekday, short enough to forget."""
WEEKS_NEEDED: Final = 3
DAYS_NEEDED: Final = 2
NEAR: Final = timedelta(days=14)

MISSING_FROM: Final = 10.0
"""An hour that usually has fewer rows may be empty by chance: of hours with 10 at random, one in
twenty thousand is."""
THIN_FROM: Final = 40.0
THIN_BELOW: Final = 0.5


@dataclass(frozen=True)
class Expected:
    """The rows that an hour should have, and who says so.

    A profile of a few days tells an empty hour from a full one; half an hour's rows it cannot
    judge, since a Sunday may have half of a Friday's.
    """

    rows: float
    by: Literal["manifest", "profile"]
    weekly: bool = True

    def missing(self, seen: int) -> bool:
        """Whether an hour without any row should have had some."""
        return seen == 0 and self.rows >= (1 if self.by == "manifest" else MISSING_FROM)

    def short(self, seen: int) -> int:
        """How many rows lack: of a source's own count each one, of a profile only from half on."""
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
    """Rows by hour as the manifests in `<home>/manifests` tell them; empty where none does.

    A manifest is JSON lines; the ones with `folder` and `hours` count, others are left alone.
    """
    found: dict[datetime, int] = {}
    decoder = msgspec.json.Decoder(Announcement)
    for path in sorted((settings.home / "manifests").glob("*.jsonl")):
        # A line without end was cut off by a kill, before its file landed.
        for line in path.read_bytes().split(b"\n")[:-1]:
            try:
                said = decoder.decode(line)
                hours = {datetime.fromisoformat(text): n for text, n in said.hours.items()}
            except (msgspec.DecodeError, ValueError):
                continue
            if said.folder != ingest.source.name:
                continue
            for hour, rows in hours.items():
                at = (hour if hour.tzinfo else hour.replace(tzinfo=UTC)).astimezone(UTC)
                found[at] = found.get(at, 0) + rows
    return found


@dataclass(frozen=True)
class Profile:
    """Rows of earlier hours, from which the rows of an hour are learned.

    `since` is the first hour of the stream: hours before it say nothing, empty ones after it do.
    """

    seen: Mapping[datetime, int]
    since: datetime
    days: Daily | None = None

    def of(self, hour: datetime) -> Expected | None:
        """The median of the same weekday's hour in the weeks before, else of the days before.

        None where too few hours were seen to say anything.
        """
        weeks = self._samples(hour, 7 * DAY, LOOK_BACK)
        if len(weeks) >= WEEKS_NEEDED:
            return Expected(median(weeks), "profile")
        days = self._samples(hour, DAY, NEAR)
        if len(days) < DAYS_NEEDED:
            return None
        return Expected(median(days), "profile", weekly=False)

    def _samples(self, hour: datetime, step: timedelta, back: timedelta) -> list[int]:
        zone = ZoneInfo(self.days.zone) if self.days else ZoneInfo("UTC")
        local = hour.astimezone(zone)
        found = []
        for n in range(1, back // step + 1):
            # By the wall clock: the morning rush moves with summer time.
            earlier = (local - n * step).astimezone(UTC)
            if earlier < self.since:
                break
            found.append(self.seen.get(earlier.replace(minute=0, second=0, microsecond=0), 0))
        return found


def expectations(
    settings: Settings, ingest: Ingest, seen: Mapping[datetime, int], hours: list[datetime]
) -> dict[datetime, Expected]:
    """What each of the hours should have; hours of which nothing is known are left out."""
    told = announced(settings, ingest)
    profile = Profile(seen, min(seen, default=datetime.now(UTC)), ingest.days)
    found: dict[datetime, Expected] = {}
    first, last = min(told, default=None), max(told, default=None)
    for hour in hours:
        if first is not None and last is not None and first <= hour <= last:
            found[hour] = Expected(told.get(hour, 0), "manifest")
            continue
        learned = profile.of(hour)
        if learned is not None:
            found[hour] = learned
    return found
