"""Taxi days that stream in with 2 % late rows and an outage of the fares, beside live streams."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from assets.taxi.ingest import FARE_EVENTS, RIDE_EVENTS
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.late.days import live_ingests
from rivermark.backfill.late.run import MergeReport, merge_late
from rivermark.model.stream import AnyStream, Stream
from rivermark.model.topology import Topology
from rivermark.monitor.checks.row_checks import rows_dropped
from rivermark.monitor.completeness.days import all_ingest_days
from rivermark.monitor.completeness.ingest_day import Day
from rivermark.runtime.checkpoint.watermarks import last_reached
from rivermark.runtime.supervision.run import run_continuous
from rivermark.settings import Settings
from rivermark.testing import wait_until
from simulator.disorder import Disorder
from simulator.feeds import Feed, drip_feeds
from simulator.taxi.arrivals import rides_by_event_time
from simulator.taxi.clock import RideClock
from simulator.taxi.fares import fares
from tests.oracles.landed import Event
from tests.oracles.rides import TaxiOracle
from tests.spark.helpers.background import Running, running

BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
SPACING = 6 * MINUTE
SETTLED = 90 * MINUTE
"""How far before the newest landed ride every stream has come in the end."""


@dataclass
class World:
    """A platform whose streams run in a thread, and the files that are still to land."""

    spark: SparkSession
    settings: Settings
    topology: Topology
    dripped: Path
    live: Running

    @property
    def landing(self) -> Path:
        """The landing root."""
        return Path(self.settings.landing_root)

    def land(self, through: datetime) -> None:
        """Land what happened before that moment, and wait until every stream has come near it."""
        for ingest in (RIDE_EVENTS, FARE_EVENTS):
            target = self.landing / ingest.source.name
            target.mkdir(parents=True, exist_ok=True)
            for file in sorted(self.dripped.glob(f"{ingest.source.name}/*")):
                if _newest(file) < through:
                    file.rename(target / file.name)
        wait_until(
            lambda: self.passed(through - SETTLED),
            reason="what landed is read",
            alive=self.live.alive,
        )

    def passed(self, moment: datetime) -> bool:
        """Whether every derived stream has written all that lies before a moment."""
        lake, streams = self.settings.lake(), self.topology.streams
        reached = [last_reached(lake, s) for s in streams if isinstance(s, Stream)]
        return all(at is not None and at >= moment for at in reached)

    def fold(self) -> MergeReport:
        """The nightly merge of late rows, beside the streams."""
        context = BackfillContext(
            settings=self.settings,
            topology=self.topology,
            spark=lambda: self.spark,
            run_id="night",
        )
        return merge_late(context, live_ingests(self.topology))

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Rows of a table, sorted, read without Spark."""
        found = DeltaTable(self.settings.lake().path(table)).to_pyarrow_table(columns=[*columns])
        values = ([_utc(v) for v in found[c].to_pylist()] for c in columns)
        return sorted(zip(*values, strict=True), key=repr)

    def days(self, ingest: str) -> dict[date, Day]:
        """The judged days of an ingest."""
        return {d.day: d for d in all_ingest_days(self.settings, self.topology, 5)[ingest]}

    def assert_nothing_dropped(self) -> None:
        """No stream took a folded row for a new one: it would have been late there.

        Ends the streams first: what they counted is written down at the latest then.
        """
        self.live.stop.set()
        self.live.join()
        for stream in self.topology.streams:
            assert rows_dropped(self.settings, stream.name).passed, stream.name


@contextmanager
def late_world(
    spark: SparkSession,
    settings: Settings,
    folder: Path,
    streams: Sequence[AnyStream],
    *,
    until_moment: datetime,
    outage: tuple[datetime, datetime] | None = None,
) -> Iterator[World]:
    """Drip everything up to a moment into a folder of its own, and run the streams."""
    _drip(settings, folder, streams, (until_moment - BEGIN) // SPACING, outage)
    topology = Topology(streams)

    def body(stop: threading.Event) -> object:
        return run_continuous(spark, settings, topology, streams, run_id="live", stop=stop)

    with running(body) as live:
        yield World(spark, settings, topology, folder, live)


def _drip(
    settings: Settings,
    folder: Path,
    streams: Sequence[AnyStream],
    rides: int,
    outage: tuple[datetime, datetime] | None,
) -> None:
    """One file an hour, and the sources' manifest, which knows of the fares that never came."""
    clock = RideClock(BEGIN, SPACING)
    disorder = Disorder(delay=timedelta(seconds=20), late=0.02, late_by=3 * HOUR, seed=7)
    events: dict[str, list[Any]] = {
        RIDE_EVENTS.name: list(rides_by_event_time(1, rides, clock)),
        FARE_EVENTS.name: list(fares(1, rides, clock)),
    }
    ingests = [i for i in (RIDE_EVENTS, FARE_EVENTS) if i in streams]
    feeds = []
    manifest = settings.home / "manifests" / "story.jsonl"
    manifest.parent.mkdir(parents=True)
    with manifest.open("w") as file:
        for ingest in ingests:
            sent = events[ingest.name]
            hours = Counter(f"{e.event_time:%Y-%m-%dT%H:00Z}" for e in sent)
            said = {"folder": ingest.source.name, "file": "all", "hours": hours}
            file.write(json.dumps(said) + "\n")
            if outage is not None and ingest is FARE_EVENTS:
                sent = [e for e in sent if not outage[0] <= e.event_time < outage[1]]
            feeds.append(Feed(ingest, sent, disorder))
    drip_feeds(folder, feeds, every=HOUR)


def assert_fares_equal(world: World, oracle: TaxiOracle, end: datetime) -> None:
    """The tables of fares equal an oracle for all days before `end`."""
    _assert_ids(world, "taxi/fare_events", oracle.fares.admitted, end)
    _assert_ids(world, "taxi/clean_fares", oracle.clean_fares, end)
    tips = _before(
        world, end, "taxi/driver_tips", "window_start", "window_end", "driver_id", "tips"
    )
    expected = [(*key, tip) for key, tip in oracle.driver_tips().items() if key[0] <= end]
    assert sorted(tips) == sorted(expected)
    winners = _before(
        world, end, "taxi/hourly_winners", "window_start", "window_end", "driver_id", "tips"
    )
    assert sorted(winners) == sorted((e, *best) for e, best in oracle.winners().items() if e <= end)


def assert_rides_equal(world: World, oracle: TaxiOracle, end: datetime) -> None:
    """The tables of rides, of their joins with fares and of alerts equal an oracle before `end`."""
    _assert_ids(world, "taxi/ride_events", oracle.rides.admitted, end)
    _assert_ids(world, "taxi/clean_rides", oracle.clean_rides, end)
    starts = {r["ride_id"]: r["event_time"] for r in oracle.clean_rides if r["is_start"]}
    paid = {f["ride_id"]: f["event_time"] for f in oracle.clean_fares}
    pairs, lone_rides, lone_fares = oracle.partners()
    for table, time, moments in (
        ("taxi/rides_with_fares", "event_time", {i: starts[i] for i in pairs}),
        ("taxi/unmatched_rides", "event_time", {i: starts[i] for i in lone_rides}),
        ("taxi/unmatched_fares", "event_time", {i: paid[i] for i in lone_fares}),
        ("taxi/long_rides", "alert_time", oracle.long_rides()),
    ):
        found = [i for (i,) in _before(world, end, table, time, "ride_id")]
        assert sorted(found) == sorted(i for i, at in moments.items() if at < end), table


def assert_longest_equal(world: World, oracle: TaxiOracle, end: datetime) -> None:
    """The longest rides of each cell and day, which a process function tells, equal an oracle."""
    found = world.rows("taxi/longest_rides", "event_time", "start_cell", "minutes")
    expected = [row for row in oracle.longest_rides(end) if row[0] < end]
    assert sorted(row for row in found if row[0] < end) == expected


def _assert_ids(world: World, table: str, events: list[Event], end: datetime) -> None:
    found = [i for (i,) in _before(world, end, table, "event_time", "ride_id")]
    assert sorted(found) == sorted(e["ride_id"] for e in events if e["event_time"] < end), table


def _before(world: World, end: datetime, table: str, time: str, *columns: str) -> list[Any]:
    return [row[1:] for row in world.rows(table, time, *columns) if row[0] < end]


def _newest(file: Path) -> datetime:
    lines = map(json.loads, file.read_text().splitlines())
    return max(datetime.fromisoformat(line["event_time"].replace("Z", "+00:00")) for line in lines)


def _utc(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) else value
