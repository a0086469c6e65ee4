"""The producers of an ingest: how far each has come in event time, and what follows for all.

The state after a split is a function of the splits before it, in their order: idleness is measured
by the times that the plan has of splits, not by the clock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from rivermark.model.watermark import PerProducer

REMEMBERED: Final = 256
"""How many producers are remembered while some are idle; those that were heard last. They are
recorded with each batch."""


@dataclass(frozen=True)
class Producer:
    """The last sign of a producer, its newest event time, and its latest mark; in UTC.

    `doubted` is as in `Progress`, of this producer alone.
    """

    heard: datetime
    newest: datetime | None = None
    doubted: bool = False
    mark: datetime | None = None

    def to_json(self) -> list[Any]:
        """As it is kept in the metadata of a raw commit."""
        newest = self.newest.isoformat() if self.newest else None
        marks = [self.mark.isoformat()] if self.mark else []
        return [self.heard.isoformat(), newest, self.doubted, *marks]

    @classmethod
    def from_json(cls, values: list[Any]) -> Producer:
        """As `to_json` wrote it."""
        heard, newest, doubted, *marks = values
        moment = datetime.fromisoformat(newest) if newest else None
        return cls(
            datetime.fromisoformat(heard), moment, doubted, *map(datetime.fromisoformat, marks)
        )

    def watermark(self, lateness: timedelta) -> datetime | None:
        """The time (UTC) up to which it is complete, by its events or by what it says itself."""
        moments = (self.newest and self.newest - lateness, self.mark)
        return max((moment for moment in moments if moment is not None), default=None)


@dataclass(frozen=True)
class Producers:
    """The producers that were heard since the time `since` of the first split; `now` is the newest.

    `watermark` is that of the stream; it never goes back. All times are in UTC.
    """

    since: datetime
    now: datetime
    watermark: datetime | None = None
    known: Mapping[str, Producer] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As it is kept in the metadata of a raw commit."""
        return {
            "since": self.since.isoformat(),
            "now": self.now.isoformat(),
            "watermark": self.watermark.isoformat() if self.watermark else None,
            "known": {name: producer.to_json() for name, producer in self.known.items()},
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Producers:
        """As `to_json` wrote it."""
        watermark = values["watermark"]
        return cls(
            datetime.fromisoformat(values["since"]),
            datetime.fromisoformat(values["now"]),
            datetime.fromisoformat(watermark) if watermark else None,
            {name: Producer.from_json(each) for name, each in values["known"].items()},
        )

    def is_idle(self, name: str, idle: timedelta) -> bool:
        """Returns True if a producer has been silent for so long that nothing waits for it."""
        return self.now - self.known[name].heard > idle

    def after(
        self, heard: Mapping[str, Producer], now: datetime, rule: PerProducer, lateness: timedelta
    ) -> Producers:
        """The state at that time, when these producers were heard."""
        known = {**self.known, **heard}
        later = replace(self, now=now, known=known)
        idle = sorted(
            (name for name in known if later.is_idle(name, rule.idle)),
            key=lambda name: (known[name].heard, name),
        )
        own = [each.watermark(lateness) for name, each in known.items() if name not in idle]
        reached = [moment for moment in own if moment is not None]
        if now - self.since > rule.idle and reached and len(reached) == len(own):
            moments = (self.watermark, min(reached))
            later = replace(later, watermark=max(m for m in moments if m is not None))
        forgotten = idle[: max(len(known) - REMEMBERED, 0)]
        kept = {name: each for name, each in known.items() if name not in forgotten}
        return replace(later, known=kept)

    def ahead(self, waiting: Collection[str], now: datetime, rule: PerProducer) -> frozenset[str]:
        """The producers to hold back: farther ahead of the slowest one than the drift allows.

        The slowest is one of those that have records waiting, or may still bring some: an idle one
        is waited for no longer.
        """
        awaited = [
            each.newest
            for name, each in self.known.items()
            if each.newest and (name in waiting or now - each.heard <= rule.idle)
        ]
        if rule.drift is None or not awaited:
            return frozenset()
        bound = min(awaited) + rule.drift
        return frozenset(n for n, each in self.known.items() if each.newest and each.newest > bound)

    def skew(self, idle: timedelta) -> dict[str, timedelta]:
        """The lead of each producer over the slowest; idle and timeless ones are left out."""
        newest = {
            name: each.newest
            for name, each in self.known.items()
            if each.newest and not self.is_idle(name, idle)
        }
        slowest = min(newest.values(), default=self.now)
        return {name: moment - slowest for name, moment in newest.items()}
