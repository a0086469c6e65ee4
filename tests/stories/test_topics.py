"""Rides and fares come from a real broker; run, JVM and broker are killed; results go back to it.

Alerts and winners, as a consumer of committed messages and PostgreSQL have them, equal what plain
Python computes of the messages as they were planned, each row once. Files of the same events give
the same tables.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import uuid4

import psutil
import pytest

from rivermark import Ingest
from rivermark.ingest.plan import plan_table, planned_split
from rivermark.lake.delta import dataset_of, delta_table, read_rows
from rivermark.lake.snapshot import row_count
from rivermark.monitor.lag import lag_of
from rivermark.settings import Settings
from rivermark.testing import wait_until
from setup.kafka_broker import Broker
from setup.local_server import free_port
from simulator.disorder import Disorder
from simulator.taxi.drip import drip
from simulator.taxi.drip_plan import EVENTS_A_RIDE, DripPlan
from tests.oracles.rides import MINUTE, TaxiOracle
from tests.spark.conftest import broker_jars  # noqa: F401 - a fixture
from tests.spark.helpers.delta_rows import published_rows
from tests.stories.deployment import ROOT, pause
from tests.stories.taxi_by_topics import SOURCES, TARGETS, ingests, topology
from tests.unit.sinks.conftest import connected, new_schema  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from tests.spark.helpers.kafka import Topics

pytestmark = [
    pytest.mark.story,
    pytest.mark.slow,
    pytest.mark.usefixtures("broker_jars", "new_schema"),
]

Victim = Literal["run", "JVM", "broker"]
Part = tuple[str, list[bytes]]
"""A topic, and messages for it."""
PARTITIONS: Final = 4
BUSY: Final = 3
"""The last partition never gets a message."""
SEED: Final = 20261129
EVENTS: Final = int(os.environ.get("RIVERMARK_STORY_EVENTS", "200000"))


class Host:
    """The process that runs the streams; it is started again whenever it has ended."""

    def __init__(self, home: Path, brokers: str) -> None:
        self._home = home
        self._brokers = brokers
        self._ending = threading.Event()
        self._process = started(home, "live", brokers)
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def _keep(self) -> None:
        while not self._ending.wait(0.5):
            if self._process.poll() is not None:
                self._process = started(self._home, "live", self._brokers)

    def kill(self, victim: Victim) -> None:
        """Kill the run, or its JVM alone."""
        if victim == "run":
            self._process.kill()
            return
        with suppress(psutil.Error):
            for child in psutil.Process(self._process.pid).children(recursive=True):
                if child.name() == "java":
                    child.kill()

    def stop(self) -> None:
        """Stop between two batches, and start no more."""
        self._ending.set()
        self._keeper.join()
        self._process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(120)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


def started(home: Path, mode: str, brokers: str) -> subprocess.Popen[bytes]:
    """A run of the streams."""
    module = (sys.executable, "-m", "tests.stories.taxi_by_topics")
    with home.with_suffix(".log").open("ab") as log:
        return subprocess.Popen(
            [*module, str(home), uuid4().hex, mode, brokers],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def drain(home: Path, brokers: str = "") -> None:
    """Read what is there, in one bounded run."""
    assert started(home, "drain", brokers).wait(900) == 0, home.with_suffix(".log").read_text()[
        -2000:
    ]


@contextmanager
def world(folder: Path) -> Iterator[tuple[Broker, Topics]]:
    """A broker with the topics of the story."""
    from tests.spark.helpers.kafka import Topics

    broker = Broker(folder / "kafka", free_port(), dies_with_parent=True)
    broker.start()
    topics = Topics(broker.address)
    for topic in (*SOURCES, *TARGETS):
        topics.make(topic, partitions=PARTITIONS)
    try:
        yield broker, topics
    finally:
        broker.stop()


def generated(folder: Path, events: int) -> list[Part]:
    """The events in the order in which they come, in small parts."""
    plan = DripPlan(
        rate=None,
        clock="training",
        rides=events // EVENTS_A_RIDE,
        disorder=Disorder(
            delay=timedelta(seconds=30),
            late=0.01,
            late_by=timedelta(minutes=2),
            duplicates=0.01,
            loss=0.005,
            seed=SEED,
        ),
    )
    drip(folder / "events", folder / "manifest.json", plan)
    files = {p: t for t in SOURCES for p in (folder / "events" / "taxi" / t).iterdir()}
    return [
        (files[path], path.read_bytes().splitlines())
        for path in sorted(files, key=lambda path: (path.stat().st_mtime_ns, path.name))
    ]


def send(brokers: str, parts: list[Part], rate: float) -> None:
    """Send the events, so many a second and each once; those of a ride go to one partition."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": brokers, "enable.idempotence": True, "log_level": 0})
    began, sent = time.monotonic(), 0
    for topic, lines in parts:
        for line in lines:
            ride = json.loads(line)["ride_id"]
            producer.produce(topic, line, key=str(ride), partition=ride % BUSY)
            producer.poll(0)
        sent += len(lines)
        time.sleep(max(began + sent / rate - time.monotonic(), 0))
    assert producer.flush(120) == 0


def files_of_plan(settings: Settings, topics: Topics, landing: Path) -> None:
    """Land files that hold what each planned batch took of its topic."""
    from rivermark.ingest.source.kafka.position import Range
    from tests.spark.helpers.kafka import committed_messages

    for topic, ingest in zip(SOURCES, ingests(topics.brokers), strict=True):
        messages = {
            (m.partition(), m.offset()): m.value() or b"" for m in committed_messages(topics, topic)
        }
        folder = landing / "taxi" / topic
        folder.mkdir(parents=True)
        plan = read_rows(dataset_of(delta_table(settings.lake().path(plan_table(ingest)))))
        batches: dict[int, list[bytes]] = {}
        for split in map(planned_split, plan.to_pylist()):
            read = Range.of_split(split)
            places = ((read.partition, offset) for offset in range(read.start, read.end))
            batches.setdefault(split.batch, []).extend(messages.pop(place) for place in places)
        assert not messages, "every message is planned once"
        for number, lines in sorted(batches.items()):
            if lines:
                path = folder / f"{number:06}.json"
                path.write_bytes(b"\n".join(lines))
                os.utime(path, (number, number))


def received(topics: Topics, topic: str) -> list[dict[str, Any]]:
    """The rows of a topic, as a consumer of committed messages reads them."""
    from tests.spark.helpers.kafka import committed_messages

    return [json.loads(message.value() or b"") for message in committed_messages(topics, topic)]


def stored(table: str) -> list[dict[str, Any]]:
    """The rows of a table of PostgreSQL."""
    from psycopg.sql import SQL, Identifier

    query = SQL("SELECT to_jsonb(r) FROM {} AS r").format(Identifier(table))
    with connected() as connection:
        rows = connection.execute(query).fetchall()
    return [row for (row,) in rows]


def run_the_story(folder: Path, events: int, rate: float, victims: list[Victim]) -> None:
    """Send while victims are killed, drain, and compare."""
    from tests.spark.helpers.kafka import committed_messages

    dice = random.Random(SEED)  # seeded: the moments are the same each time
    settings, files = Settings(home=folder / "home"), Settings(home=folder / "files")
    parts = generated(folder, events)
    sent = {t: sorted(x for name, lines in parts if name == t for x in lines) for t in SOURCES}
    middle = len(parts) // 2
    late = parts.pop(middle + [topic for topic, _ in parts[middle:]].index("rides"))
    with world(folder) as (broker, topics):
        declared = ingests(topics.brokers)
        host = Host(settings.home, topics.brokers)
        try:
            # A share of the events for each kill, and one after the last.
            share = len(parts) // (len(victims) + 1) + 1
            for number, victim in enumerate((*victims, None)):
                before = admitted(settings, declared)
                own = parts[number * share : (number + 1) * share]
                sending = threading.Thread(
                    target=send, args=(topics.brokers, own, rate), daemon=True
                )
                sending.start()
                if victim:
                    wait_for_more(settings, declared, before)
                    pause(dice, 0, 3)
                    kill(victim, host, broker)
                sending.join(600)
                assert not sending.is_alive()
            wait_for_all(settings, declared)
            # However slow the machine: what comes now is late.
            send(topics.brokers, [late], rate)
            wait_for_all(settings, declared)
        finally:
            host.stop()
        drain(settings.home, topics.brokers)
        for topic in SOURCES:
            messages = committed_messages(topics, topic)
            assert sorted(m.value() or b"" for m in messages) == sent[topic]
        files_of_plan(settings, topics, Path(files.landing_root))
        oracle = TaxiOracle(Path(files.landing_root))
        alerts, winners = received(topics, "alerts"), received(topics, "winners")
    compare(oracle, alerts, winners)
    compare(oracle, stored("alerts"), stored("winners"))
    drain(files.home)
    by_topics = topology(topics.brokers).streams
    tables = [t for s in by_topics for t in s.tables if not t.name.endswith("_raw")]
    expected = published_rows(files.lake(), tables)
    for table, rows in published_rows(settings.lake(), tables).items():
        assert rows == expected[table], table


def admitted(settings: Settings, declared: list[Ingest]) -> int:
    """How many rows the ingests have admitted."""
    lake = settings.lake()
    return sum(row_count(lake, i.admitted) for i in declared if lake.exists(i.admitted))


def wait_for_more(settings: Settings, declared: list[Ingest], than: int) -> None:
    """Wait until the ingests have admitted more rows than so many."""
    wait_until(lambda: admitted(settings, declared) > than, 300, reason="further rows are admitted")


def wait_for_all(settings: Settings, declared: list[Ingest]) -> None:
    """Wait until every message is in a table."""

    def are_in() -> bool:
        lags = [lag_of(settings, ingest) for ingest in declared]
        return not any(lag.records or lag.problem for lag in lags)

    wait_until(are_in, 900, reason="all messages are in the tables")


def kill(victim: Victim, host: Host, broker: Broker) -> None:
    """Kill a victim with signal 9; a broker is started again."""
    if victim != "broker":
        host.kill(victim)
        return
    process = broker.process()
    assert process is not None
    process.kill()
    process.wait(30)
    broker.start()


def compare(
    oracle: TaxiOracle, alerts: list[dict[str, Any]], winners: list[dict[str, Any]]
) -> None:
    """Each row that must be there is there once, and no other."""
    assert oracle.rides.late, "a story without late events proves less than it says"
    ended = {r["ride_id"] for r in oracle.clean_rides if not r["is_start"]}
    seen = max(r["event_time"] for r in oracle.clean_rides) - MINUTE
    due = [(i, at) for i, at in oracle.long_rides().items() if at <= seen or i in ended]
    closed = max(f["event_time"] for f in oracle.clean_fares) - MINUTE
    best = [(end, *row) for end, row in oracle.winners().items() if end <= closed]
    assert due
    assert best
    alerted = [(r["ride_id"], datetime.fromisoformat(r["alert_time"])) for r in alerts]
    won = [
        (datetime.fromisoformat(r["window_end"]), r["driver_id"], Decimal(str(r["tips"])))
        for r in winners
    ]
    assert sorted(alerted) == sorted(due)
    assert sorted(won) == sorted(best)


def test_a_kill_each_of_run_jvm_and_broker_leaves_each_alert_and_winner_once(
    tmp_path: Path,
) -> None:
    run_the_story(tmp_path, min(EVENTS, 20_000), rate=400, victims=["run", "broker", "JVM"])


@pytest.mark.timeout(3_000)
def test_twelve_kills_among_200_000_events_leave_each_alert_and_winner_once(
    tmp_path: Path,
) -> None:
    victims: list[Victim] = ["run", "JVM", "broker"] * 4
    random.Random(SEED).shuffle(victims)
    run_the_story(tmp_path, EVENTS, rate=800, victims=victims)
