"""Age of the newest event of each commit, by stream, from the tables' logs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from prometheus_client import CollectorRegistry, Histogram

from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.statistics import newest_added
from rivermark.model.stream import AnyStream, Ingest

SECONDS: Final = (0.25, 0.5, 1, 2, 3, 5, 10, 30, 60, 300, 3600, 86_400)
"""Upper bounds of the histogram: beyond them lies what is read long after it happened."""


@dataclass
class _Followed:
    log: CommitLog
    column: str
    following: int | None = None
    """The first version that was not looked at."""


class EventAges:
    """A histogram of the seconds from the newest event of a commit to the commit itself.

    Of an ingest that is its event to its row; of windows, whose event time is their end, it is what
    passes until they are published, with the lateness for which they wait. Commits are counted that
    are made from the first look on.
    """

    def __init__(
        self, lake: Lake, streams: Iterable[AnyStream], registry: CollectorRegistry
    ) -> None:
        self._seconds = Histogram(
            "rivermark_event_to_table_seconds",
            "Age of the newest event of a commit when it is committed.",
            ["stream"],
            buckets=SECONDS,
            registry=registry,
        )
        self._followed: dict[str, _Followed] = {}
        for stream in streams:
            table = stream.admitted if isinstance(stream, Ingest) else stream.tables[0]
            if table.event_time is not None:
                log = CommitLog(lake.path(table))
                self._followed[stream.name] = _Followed(log, table.event_time)
                self._seconds.labels(stream.name)

    def count_new(self) -> None:
        """Observe the commits since the last call. Raises TableDamaged."""
        for name, each in self._followed.items():
            if each.following is None:
                newest = each.log.latest()
                each.following = 0 if newest is None else newest.version + 1
            for actions in each.log.following(each.following):
                each.following += 1
                info: dict[str, Any] = next(
                    (action["commitInfo"] for action in actions if "commitInfo" in action), {}
                )
                try:
                    event = newest_added(actions, each.column)
                except ValueError:
                    continue  # A table of before has no bounds of it.
                if event is not None and "timestamp" in info:
                    age = info["timestamp"] / 1000 - event.timestamp()
                    self._seconds.labels(name).observe(max(age, 0.0))
