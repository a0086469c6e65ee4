"""Streams of a run fail and are started again one by one; the queries are fakes, without Spark."""

from __future__ import annotations

import fcntl
import itertools
import json
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from deltalake import DeltaTable
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from rivermark import Topology
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.delta import read_all
from rivermark.lake.maintenance import compaction
from rivermark.lake.maintenance.compaction import FEWEST
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import append_rows
from rivermark.model.errors import CheckpointIncompatible, StreamAlreadyRunning, StreamFailed
from rivermark.model.restart_strategy import FixedDelay, NoRestart
from rivermark.runtime.batch_metrics import BatchMetrics, BatchResult
from rivermark.runtime.query.base import Watermark
from rivermark.runtime.query.trigger_policy import Trigger
from rivermark.runtime.supervision import lease as leases
from rivermark.runtime.supervision import run as runs
from rivermark.runtime.supervision import supervisor as module
from rivermark.runtime.supervision.heartbeat import FAILURES, WAITING, Heartbeat, HeartbeatStore
from rivermark.runtime.supervision.lease import Lease
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.runtime.supervision.report import Report
from rivermark.runtime.supervision.run import run_bounded, run_continuous
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.unit.model.test_topology import BEST, CLEAN, HOURS, RIDES

SOON = FixedDelay(delay=timedelta(0), attempts=2)
TOPOLOGY = Topology([BEST, HOURS, CLEAN, RIDES])
NAMES = [s.name for s in TOPOLOGY.streams]
SPARK = cast(
    SparkSession,
    SimpleNamespace(
        streams=SimpleNamespace(addListener=lambda _: None, removeListener=lambda _: None)
    ),
)


class FakeQueries:
    """What each stream's queries do, one start after the other; "drain" where a test says nothing.

    "drain" finishes a batch and ends, "go on" finishes a batch and stays, an error ends the query,
    and "refuse" raises one when the host is opened.
    """

    def __init__(self) -> None:
        self.script: dict[str, list[Any]] = {}
        self.starts: list[str] = []
        self.progress: list[dict[str, Any]] = []

    def open(
        self, spark: object, settings: Settings, stream: Any, run_id: str, check: object
    ) -> FakeHost:
        """In place of `host_for`."""
        acts = self.script.get(stream.name, [])
        act = acts.pop(0) if len(acts) > 1 else (acts or ["drain"])[0]
        if act == "refuse":
            raise CheckpointIncompatible(f"stream '{stream.name}' has lost its offsets")
        return FakeHost(self, stream, act)

    def take(self) -> list[dict[str, Any]]:
        """In place of Spark's reports."""
        reports, self.progress = self.progress, []
        return reports


class FakeHost:
    """A host whose query does one thing."""

    batch = itertools.count()

    def __init__(self, queries: FakeQueries, stream: Any, act: Any) -> None:
        self.stream = stream
        self.query = SimpleNamespace(isActive=False, exception=lambda: None)
        self.error: Exception | None = None
        self.backlog = None
        self.busy = False
        self.checkpoint = "a folder"
        self.trigger = Trigger(1.0)
        self.watermark = Watermark()
        self.generation = SimpleNamespace(shuffle_partitions=2)
        self.written: dict[int, BatchResult] = {}
        self._queries = queries
        self._act = act

    def start(self, *, bounded: bool) -> None:
        """Do it."""
        self._queries.starts.append(self.stream.name)
        if isinstance(self._act, Exception):
            self.error = self._act
            return
        number = next(self.batch)
        self.written[number] = BatchResult(rows_in=1)
        self._queries.progress.append({"name": self.stream.name, "batchId": number})
        self.query.isActive = self._act == "go on"

    def metrics(self, progress: dict[str, Any]) -> BatchMetrics:
        """One row in."""
        number = progress["batchId"]
        self.written.pop(number, None)
        at = datetime(2026, 3, 2, tzinfo=UTC)
        return BatchMetrics(
            stream=self.stream.name,
            generation=0,
            run_id="run",
            batch_id=number,
            started_at=at,
            rows_in=1,
        )

    def stop(self) -> None:
        """End."""
        self.query.isActive = False

    def has_looked(self) -> bool:
        """At once."""
        return True


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> FakeQueries:
    fake = FakeQueries()
    monkeypatch.setattr(module, "host_for", fake.open)
    monkeypatch.setattr(module, "Reports", lambda _: fake)
    monkeypatch.setattr(module, "jvm_pid_of", lambda _: None)
    monkeypatch.setattr(runs, "STEP_SECONDS", 0.01)
    loop = SimpleNamespace(
        add=lambda _: None, remove=lambda _: None, stop=lambda: None, unread=lambda _: 0
    )
    monkeypatch.setattr(module, "TriggerLoop", lambda: loop)
    return fake


@pytest.fixture
def settings(tmp_path: Any) -> Settings:
    return Settings(home=tmp_path)


def with_strategy(name: str, strategy: Any) -> Topology:
    return Topology(
        [replace(s, restart=strategy) if s.name == name else s for s in TOPOLOGY.streams]
    )


def drain(settings: Settings, topology: Topology, reports: list[Report] | None = None) -> Any:
    listen = (reports if reports is not None else []).append
    return run_bounded(SPARK, settings, topology, topology.streams, run_id="run", on_report=listen)


def live(
    settings: Settings,
    topology: Topology,
    until: Callable[[], object],
    streams: Sequence[Any] = (),
    reports: list[Report] | None = None,
) -> list[Report]:
    """Run until the condition holds; gives the reports also where the run ends with an error."""
    stop, reports = threading.Event(), [] if reports is None else reports

    def listen(report: Report) -> None:
        reports.append(report)
        if until():
            stop.set()

    run_continuous(
        SPARK,
        settings,
        topology,
        streams or topology.streams,
        run_id="run",
        stop=stop,
        on_report=listen,
        report_every=timedelta(seconds=0.01),
    )
    return reports


def states(settings: Settings) -> dict[str, str]:
    return {name: beat.state for name, beat in HeartbeatStore(settings.state).latest().items()}


def test_a_bounded_run_starts_each_stream_once_in_dependency_order(
    queries: FakeQueries, settings: Settings
) -> None:
    summaries = drain(settings, TOPOLOGY)

    assert queries.starts == NAMES
    assert {s.rows_in for s in summaries.values()} == {1}
    assert set(states(settings).values()) == {"stopped"}


def test_a_run_joins_the_many_files_of_what_is_recorded(
    queries: FakeQueries, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch adds one, and every status reads them all."""
    lake = settings.lake()
    monkeypatch.setattr(compaction, "MANY", FEWEST)
    for number in range(FEWEST):
        append_rows(lake, STREAM_PROGRESS, [{"stream": f"test/{number}"}], {})

    drain(settings, TOPOLOGY)

    progress = DeltaTable(lake.path(STREAM_PROGRESS))
    assert progress.get_add_actions().num_rows < 5
    recorded = [f"test/{number}" for number in range(FEWEST)] + NAMES
    assert sorted(read_all(progress)["stream"].to_pylist()) == sorted(recorded)


@pytest.mark.parametrize("taken", [True, False])
def test_batches_have_lineage_events_and_go_on_where_nobody_takes_them(
    queries: FakeQueries, settings: Settings, taken: bool
) -> None:
    """A folder in the place of the file takes none."""
    path = settings.home / "events.jsonl"
    if not taken:
        path.mkdir(parents=True)
    told = settings.model_copy(update={"lineage_to": path.as_uri()})

    summaries = run_bounded(SPARK, told, TOPOLOGY, TOPOLOGY.streams, run_id="r")

    assert all(summary.batches == 1 for summary in summaries.values())
    if taken:
        events = [json.loads(line) for line in path.read_text().splitlines()]
        assert Counter(event["job"]["name"] for event in events) == dict.fromkeys(NAMES, 2)


def test_a_run_goes_on_beside_damaged_records(
    queries: FakeQueries, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    for table in (INGEST_FILES, STREAM_PROGRESS):
        create_table(settings.lake(), table)
        entry = Path(settings.lake().path(table), "_delta_log", f"{0:020d}.json")
        entry.write_bytes(b"")

    drain(settings, TOPOLOGY)

    assert set(states(settings).values()) == {"stopped"}
    assert len(caplog.messages) == 1, "told once, by who cannot write them"


def test_a_declared_strategy_starts_a_stream_again_within_a_bounded_run(
    queries: FakeQueries, settings: Settings
) -> None:
    queries.script[CLEAN.name] = [RuntimeError("full"), RuntimeError("full"), "drain"]

    drain(settings, with_strategy(CLEAN.name, SOON))

    assert queries.starts == [NAMES[0], *[CLEAN.name] * 3, *NAMES[2:]]


def test_when_it_gives_up_the_others_go_on_and_its_error_ends_the_run(
    queries: FakeQueries, settings: Settings
) -> None:
    queries.script[CLEAN.name] = [RuntimeError("no space left on device")]
    reports: list[Report] = []

    with pytest.raises(StreamFailed, match="'test/clean' failed: no space left") as failed:
        drain(settings, with_strategy(CLEAN.name, SOON), reports)

    assert failed.value.stream == CLEAN.name
    assert isinstance(failed.value.__cause__, RuntimeError)
    assert queries.starts == [NAMES[0], *[CLEAN.name] * 3, *NAMES[2:]]
    assert states(settings) == {n: "failed" if n == CLEAN.name else "stopped" for n in NAMES}
    assert [(r.stream, r.failed) for r in reports] == [(n, n == CLEAN.name) for n in NAMES]


def test_each_heartbeat_tells_of_its_own_stream_alone(
    queries: FakeQueries, settings: Settings
) -> None:
    queries.script |= {CLEAN.name: ["refuse"], HOURS.name: [RuntimeError("full")]}

    with pytest.raises(StreamFailed, match="lost its offsets; also failed: 'test/hours'"):
        drain(settings, TOPOLOGY)

    beats = HeartbeatStore(settings.state).latest()
    assert [n for n in NAMES if not beats[n].restartable] == [CLEAN.name]
    assert [n for n in NAMES if beats[n].error] == [CLEAN.name, HOURS.name]


def test_a_live_stream_recovers_while_its_neighbours_go_on(
    queries: FakeQueries, settings: Settings
) -> None:
    queries.script = {n: ["go on"] for n in NAMES}
    queries.script[CLEAN.name] = [RuntimeError("poison"), RuntimeError("poison"), "go on"]
    topology = with_strategy(CLEAN.name, SOON)

    reports = live(settings, topology, lambda: queries.starts.count(CLEAN.name) == 3)

    assert [queries.starts.count(n) for n in NAMES] == [1, 3, 1, 1]
    last = {r.stream: r for r in reports}
    assert (last[CLEAN.name].error, last[CLEAN.name].failed) == (None, False)
    assert "poison" in {r.error for r in reports}
    assert HeartbeatStore(settings.state).latest()[CLEAN.name].numbers[FAILURES] == 0
    assert set(states(settings).values()) == {"stopped"}


def test_b066_a_stream_that_another_host_took_over_ends_and_its_successor_is_left_alone(
    queries: FakeQueries, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries.script = {n: ["go on"] for n in NAMES}
    taken: list[Lease] = []

    def take_over() -> bool:
        if not taken:
            # The other host has locks of its own, and has heard nothing for a while.
            monkeypatch.setattr(leases, "gethostname", lambda: "another")
            monkeypatch.setattr(leases, "FAR_SILENCE", timedelta(0))
            monkeypatch.setattr(fcntl, "flock", lambda *_: None)
            taken.append(Lease(settings.state, CLEAN.name).acquire("successor"))
            beat = Heartbeat(stream=CLEAN.name, group="test", run_id="successor", pid=1)
            HeartbeatStore(settings.state).beat(beat)
        return run_of(CLEAN.name) == "lost"

    def run_of(name: str) -> str:
        lost = [r for r in reports if r.stream == name and r.failed]
        return "lost" if lost else "going on"

    reports: list[Report] = []
    with pytest.raises(StreamFailed, match="has lost its lease to run successor on another"):
        live(settings, TOPOLOGY, take_over, reports=reports)

    assert queries.starts == NAMES, "it is not started again"
    assert taken[0].current
    beats = HeartbeatStore(settings.state).latest()
    assert {n: beat.run_id for n, beat in beats.items()} == {
        n: "successor" if n == CLEAN.name else "run" for n in NAMES
    }


def test_a_live_stream_that_cannot_recover_stays_failed_and_can_be_taken_by_another_run(
    queries: FakeQueries, settings: Settings
) -> None:
    queries.script = {n: ["go on"] for n in NAMES}
    queries.script[CLEAN.name] = ["refuse"]
    seen: list[str] = []

    def taken() -> bool:
        seen.append(states(settings)[CLEAN.name])
        with Lease(settings.state, CLEAN.name).acquire("another"):
            pass
        with pytest.raises(StreamAlreadyRunning):
            Lease(settings.state, HOURS.name).acquire("another")
        return True

    with pytest.raises(StreamFailed, match="lost its offsets"):
        live(settings, TOPOLOGY, taken)

    assert seen[0] == "failed"
    assert states(settings)[HOURS.name] == "stopped"


def test_a_live_run_ends_when_no_stream_is_left(queries: FakeQueries, settings: Settings) -> None:
    queries.script[CLEAN.name] = [RuntimeError("full")]
    topology = with_strategy(CLEAN.name, NoRestart())

    with pytest.raises(StreamFailed, match="full"):
        live(settings, topology, lambda: False, [topology.named(CLEAN.name)])


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (Py4JNetworkError("Connection refused"), "its JVM has ended"),
        (RuntimeError("[DELTA_SCHEMA_CHANGED] x"), "taken up by the next start"),
    ],
)
def test_what_only_a_new_process_mends_ends_the_run_at_once_to_be_started_again(
    queries: FakeQueries, settings: Settings, error: Exception, message: str
) -> None:
    queries.script = {n: ["go on"] for n in NAMES}
    queries.script[HOURS.name] = [error]

    with pytest.raises(StreamFailed, match=message):
        live(settings, TOPOLOGY, lambda: False)

    beats = HeartbeatStore(settings.state).latest()
    assert all(beat.restartable for beat in beats.values())
    assert states(settings) == {n: "failed" if n == HOURS.name else "stopped" for n in NAMES}


def test_streams_are_taken_all_or_none(queries: FakeQueries, settings: Settings) -> None:
    with (
        Lease(settings.state, BEST.name).acquire("another"),
        pytest.raises(StreamAlreadyRunning, match="run another"),
    ):
        drain(settings, TOPOLOGY)

    assert queries.starts == []
    with Lease(settings.state, RIDES.name).acquire("another"):
        pass


def test_the_first_batch_of_what_takes_rows_in_is_waited_for_before_others_are_started(
    queries: FakeQueries, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in NAMES:
        queries.script[name] = ["go on"]
    looks: list[list[str]] = []

    def has_looked(host: FakeHost) -> bool:
        looks.append([*queries.starts])
        return len(looks) > 3

    monkeypatch.setattr(FakeHost, "has_looked", has_looked)
    live(settings, TOPOLOGY, lambda: True)

    sources = [s.name for s in TOPOLOGY.streams if not TOPOLOGY.upstreams(s)]
    assert sources != NAMES
    assert looks[:4] == [sources] * 4
    assert sorted(queries.starts) == sorted(NAMES)


def test_a_stop_is_heard_while_first_batches_are_waited_for(
    queries: FakeQueries, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in NAMES:
        queries.script[name] = ["go on"]
    stop = threading.Event()

    def has_looked(_: FakeHost) -> bool:
        stop.set()
        return False

    monkeypatch.setattr(FakeHost, "has_looked", has_looked)
    run_continuous(SPARK, settings, TOPOLOGY, TOPOLOGY.streams, run_id="run", stop=stop)

    assert queries.starts == [s.name for s in TOPOLOGY.streams if not TOPOLOGY.upstreams(s)]
    assert states(settings) == dict.fromkeys(NAMES, "stopped")


def test_r15_neighbours_beat_while_one_stream_waits_for_its_sink_and_a_stop_is_heard(
    queries: FakeQueries, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that is opened again takes up to a minute, and a report of years of days longer."""
    queries.script = {name: ["go on"] for name in NAMES}
    queries.script[CLEAN.name] = [RuntimeError("lost"), "go on"]
    monkeypatch.setattr(module, "BEAT_SECONDS", 0.01)
    stop, beats = threading.Event(), Counter[str]()
    beat, opened, seen = HeartbeatStore.beat, queries.open, list[int]()

    def noted(store: HeartbeatStore, heartbeat: Heartbeat) -> None:
        beats[heartbeat.stream] += 1
        beat(store, heartbeat)

    def waiting(*given: Any) -> FakeHost:
        if CLEAN.name in queries.starts and given[2].name == CLEAN.name:
            before = beats[NAMES[0]]
            wait_until(lambda: beats[NAMES[0]] > before + 2, 5)
            seen.append(beats[NAMES[0]] - before)
            stop.set()
        return opened(*given)

    monkeypatch.setattr(HeartbeatStore, "beat", noted)
    monkeypatch.setattr(module, "host_for", waiting)
    run_continuous(
        SPARK,
        settings,
        with_strategy(CLEAN.name, SOON),
        with_strategy(CLEAN.name, SOON).streams,
        run_id="run",
        stop=stop,
        report_every=timedelta(seconds=0.01),
    )

    assert seen
    assert set(states(settings).values()) == {"stopped"}


def test_r15_a_run_that_is_starting_beats(
    queries: FakeQueries, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = queries.open

    def slowly(*given: Any) -> FakeHost:
        wait_until(lambda: set(states(settings).values()) == {"starting"}, 5)
        return opened(*given)

    monkeypatch.setattr(module, "host_for", slowly)
    drain(settings, TOPOLOGY)


def test_r12_where_the_jvm_is_gone_no_error_is_taken_for_another(
    queries: FakeQueries, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left of a killed JVM says all kinds of things that would seem to be ours."""
    jvm = subprocess.Popen(["sleep", "600"])
    monkeypatch.setattr(module, "jvm_pid_of", lambda _: jvm.pid)
    queries.script = {name: ["go on"] for name in NAMES}
    queries.script[CLEAN.name] = [RuntimeError("Unable to parse datatype"), "go on"]

    def killed(*given: Any) -> FakeHost:
        jvm.kill()
        return FakeQueries.open(queries, *given)

    monkeypatch.setattr(module, "host_for", killed)
    with pytest.raises(StreamFailed, match="the Spark session is gone"):
        live(settings, TOPOLOGY, lambda: False)

    jvm.wait()
    beat = HeartbeatStore(settings.state).latest()[CLEAN.name]
    assert (beat.state, beat.restartable, beat.given_up) == ("failed", True, False)
    assert beat.cause == "spark session"


def test_r20_a_derived_stream_that_hangs_says_how_many_commits_wait_and_since_when(
    queries: FakeQueries, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries.script = {name: ["go on"] for name in NAMES}
    loop = SimpleNamespace(
        add=lambda _: None,
        remove=lambda _: None,
        stop=lambda: None,
        unread=lambda host: 9 if host.stream.name == CLEAN.name else 0,
    )
    monkeypatch.setattr(module, "TriggerLoop", lambda: loop)
    monkeypatch.setattr(module, "BEAT_SECONDS", 0.01)
    beats = HeartbeatStore(settings.state)

    def waits() -> bool:
        beat = beats.latest().get(CLEAN.name)
        return beat is not None and beat.numbers[WAITING] == 9 and beat.waiting_since is not None

    live(settings, TOPOLOGY, waits)
    assert beats.latest()[NAMES[0]].waiting_since is None
