"""Days of a stream that became final, each reported once, also across restarts."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from rivermark.lake.filesystem import write_file
from rivermark.lake.lake import Lake
from rivermark.lake.statistics import smallest
from rivermark.model.stream import AnyStream, Stream
from rivermark.model.table import days_between
from rivermark.model.time import DAY, shifted
from rivermark.runtime.batch_metrics import StreamSummary


class ClosedDays:
    """The first day of each stream, and the last that was reported, in `<state root>/closed`."""

    def __init__(self, lake: Lake, state_root: Path) -> None:
        self._lake = lake
        self._folder = state_root / "closed"

    def newly_closed(self, stream: AnyStream, summary: StreamSummary) -> tuple[date, ...]:
        """Days that the stream finished since the last call, oldest first.

        For a refreshing stream: the days it computed. For others: the days that its watermark has
        passed, from the first one on which it was seen.
        """
        if isinstance(stream, Stream) and stream.kind == "refresh":
            days = tuple(sorted(summary.touched_days))
            summary.touched_days.clear()
            self.note_first(stream, min(days, default=None))
            return days
        if stream.days is None or summary.watermark is None:
            return ()
        # A moment of a row may lie anywhere: no day is finished that the clock has not begun.
        through = min(last_closed(stream, summary.watermark), stream.days.day_of(datetime.now(UTC)))
        reported = self.through(stream.name)
        first = self.first(stream.name)
        if first is None:
            first = first_day(self._lake, stream)
            self.note_first(stream, first)
        if reported is None:
            reported = shifted(first, -DAY) if first else through
        if reported >= through:
            return ()
        self._remember(stream.name, through)
        return tuple(days_between(shifted(reported, DAY), through))

    def through(self, stream: str) -> date | None:
        """The last day that was reported for a stream."""
        try:
            return date.fromisoformat(json.loads(self._path(stream).read_text())["through"])
        except (FileNotFoundError, ValueError, KeyError):
            return None

    def first(self, stream: str) -> date | None:
        """The first day of a stream's rows, without a look at its table; None before any."""
        try:
            return date.fromisoformat(self._first(stream).read_text())
        except (FileNotFoundError, ValueError):
            return None

    def note_first(self, stream: AnyStream, day: date | None) -> None:
        """Take up a day with rows; an earlier one replaces what is known."""
        if day is not None and stream.days is not None:
            day, known = max(day, stream.days.start), self.first(stream.name)
            if known is None or day < known:
                write_file(str(self._first(stream.name)), day.isoformat().encode(), durable=False)

    def forget(self, stream: str) -> None:
        """Report all days of a stream again from the first one on: its tables were reset."""
        self._path(stream).unlink(missing_ok=True)
        self._first(stream).unlink(missing_ok=True)

    def go_back(self, stream: str, through: date | None) -> None:
        """Report the days behind that one again, or all: a savepoint is put in place."""
        self._path(stream).unlink(missing_ok=True)
        if through is not None:
            self._remember(stream, through)

    def _remember(self, stream: str, day: date) -> None:
        content = json.dumps({"through": day.isoformat()})
        write_file(str(self._path(stream)), content.encode())

    def _path(self, stream: str) -> Path:
        return self._folder / f"{stream.replace('/', '.')}.json"

    def _first(self, stream: str) -> Path:
        return self._folder / f"{stream.replace('/', '.')}.first"


def last_closed(stream: AnyStream, watermark: datetime) -> date:
    """The last day that the watermark has passed by the stream's margin, in the zone of the days.

    By the margin, because a session or a join's lone row of that day may end so much later.
    """
    assert stream.days is not None  # noqa: S101 - asked only of streams that have days
    margin = stream.margin if isinstance(stream, Stream) else timedelta(0)
    return shifted(stream.days.day_of(shifted(watermark, -margin)), -DAY)


def first_day(lake: Lake, stream: AnyStream) -> date | None:
    """The first day of which the stream's table holds rows, by the table's own statistics.

    None before the first that it can hold: a row of 1970 would make a list of 20,000 days.
    """
    assert stream.days is not None  # noqa: S101 - asked only of streams that have days
    table = stream.tables[0]
    first = smallest(lake, table, stream.days.column)
    if isinstance(first, datetime):
        first = stream.days.day_of(first)
    return max(first, stream.days.start) if first is not None else None
