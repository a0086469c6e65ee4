"""The day on which the demo's generated events happen: the day before its first landing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Final

OF_EARLIER_RELEASES: Final = date(2020, 1, 1)
"""The day of files whose names tell none."""
NOON: Final = time(12, tzinfo=UTC)


@dataclass(frozen=True)
class DemoDay:
    """A day, and what the names of the files that hold its events begin with."""

    day: date
    stem: str

    @property
    def noon(self) -> datetime:
        """When the events begin (UTC)."""
        return datetime.combine(self.day, NOON)

    @classmethod
    def of(cls, folders: Sequence[Path], stem: str, now: datetime) -> DemoDay:
        """The day of the files that landed in one of the folders before, else yesterday.

        A live stream that follows finds no gap of years then, and a demo that is run again another
        day the files that are there.
        """
        name = re.compile(rf"{stem}(?:-(\d{{8}}))?-\d{{4}}\.")
        landed = (file.name for folder in folders if folder.is_dir() for file in folder.iterdir())
        for match in filter(None, map(name.match, sorted(landed))):
            if match[1] is None:
                return cls(OF_EARLIER_RELEASES, stem)
            return cls(date.fromisoformat(match[1]), f"{stem}-{match[1]}")
        yesterday = now.astimezone(UTC).date() - timedelta(days=1)
        return cls(yesterday, f"{stem}-{yesterday:%Y%m%d}")
