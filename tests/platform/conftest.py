"""Dagster in this process, over a small deployment, with a runtime that only pretends to stream."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.schedule_definition import ScheduleExecutionData

import rivermark.backfill.recompute
import rivermark.runtime.supervision.run
from rivermark import Topology
from rivermark.backfill.difference import HIDDEN, Difference, Sample
from rivermark.backfill.recompute import Order
from rivermark.backfill.registry import Kind
from rivermark.backfill.result import Reprocessing
from rivermark.dagster.declared import definitions_of
from rivermark.dagster.jobs.names import table_key
from rivermark.dagster.jobs.rehearsal import rehearsal_job
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.dagster.resources.spark import SparkResource
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.checkpoint.closed_days import ClosedDays
from rivermark.runtime.supervision.report import Report
from rivermark.settings import Settings
from tests.oracles.reprocessings import reprocessing
from tests.platform.small_topology import SMALL

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


def definitions_in(topology: Topology, home: Path) -> dg.Definitions:
    """What Dagster is told of a topology, in a home of its own."""
    return definitions_of(topology, SettingsResource(overrides={"home": str(home)}))


def note_rows_since_the_first_day(topology: Topology, home: Path) -> None:
    """As a run does it that has seen rows of each stream's first day."""
    settings = Settings(home=home)
    for stream in topology.streams:
        if stream.days is not None:
            ClosedDays(settings.lake(), settings.state).note_first(stream, stream.days.start)


@pytest.fixture(scope="session")
def small_definitions(tmp_path_factory: pytest.TempPathFactory) -> dg.Definitions:
    """Made once: it takes a third of a second, as long as a test that uses it."""
    home = tmp_path_factory.mktemp("seen")
    note_rows_since_the_first_day(SMALL, home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RIVERMARK_HOME", str(home))
        return dg.Definitions.merge(
            definitions_of(SMALL, SettingsResource()), dg.Definitions(jobs=[rehearsal_job(SMALL)])
        )


@pytest.fixture
def defs(
    small_definitions: dg.Definitions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dg.Definitions:
    """The definitions of the small deployment, whose home is the test's own."""
    monkeypatch.setenv("RIVERMARK_HOME", str(tmp_path))
    return small_definitions


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("an engine was started")

    monkeypatch.setattr(SparkResource, "_init_session", refuse)


def tick(
    defs: dg.Definitions, instance: dg.DagsterInstance, home: Path, schedule: str
) -> ScheduleExecutionData:
    """A tick of a schedule as the daemon has it evaluated, at noon."""
    with dg.build_schedule_context(
        instance=instance,
        scheduled_execution_time=NOON,
        resources={"rivermark_settings": SettingsResource(overrides={"home": str(home)})},
        repository_def=defs.get_repository_def(),
    ) as context:
        return defs.resolve_schedule_def(schedule).evaluate_tick(context)


def failure(result: dg.ExecuteInProcessResult) -> str:
    """What the one step that failed says: its description, then the errors behind it."""
    (event,) = [e for e in result.all_events if e.is_step_failure]
    data = event.step_failure_data
    told = data.user_failure_data.description if data.user_failure_data else None
    error = data.error
    causes = []
    while error:
        causes.append(error.message)
        error = error.cause
    return "\n".join([told or "", *causes])


def shown(instance: dg.DagsterInstance, table: str) -> dict[str, Any]:
    """The metadata of a table's latest materialization."""
    event = instance.get_latest_materialization_event(table_key(table))
    assert event is not None
    assert event.asset_materialization is not None
    return {name: value.value for name, value in event.asset_materialization.metadata.items()}


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as found:
        yield found


@dataclass
class FakeRuntime:
    """Notes what it was asked to run, and reports what the test tells it to report."""

    hosted: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    settings: list[Settings] = field(default_factory=list)
    recomputed: list[tuple[str, date, date, Any]] = field(default_factory=list)
    rows: int = 10
    late: int = 1
    closed: tuple[date, ...] = ()
    error: Exception | None = None
    failed: str = ""
    before_end: Callable[[Any], None] = lambda stop: None
    report_to: Callable[[Report], None] = lambda report: None

    def bounded(
        self,
        spark: object,
        settings: Settings,
        topology: Topology,
        streams: Sequence[Any],
        **given: Any,
    ) -> dict[str, StreamSummary]:
        return self._host("bounded", settings, streams, given)

    def continuous(
        self,
        spark: object,
        settings: Settings,
        topology: Topology,
        streams: Sequence[Any],
        **given: Any,
    ) -> dict[str, StreamSummary]:
        return self._host("continuous", settings, streams, given)

    def replace(self, spark: object, settings: Settings, order: Order) -> Reprocessing:
        return self._reprocessed("replaced", order)

    def rehearse(self, spark: object, settings: Settings, order: Order) -> Reprocessing:
        return self._reprocessed("rehearsed", order)

    def _reprocessed(self, kind: Kind, order: Order) -> Reprocessing:
        self.recomputed.append((order.stream.name, order.first, order.last, order.as_of))
        if self.error:
            raise self.error
        days = {order.first: {"added": 14, "removed": 4, "changed": 0, "unchanged": 86}}
        found = Difference(
            added=14,
            removed=4,
            unchanged=86,
            days=days,
            samples=(Sample("added", {"ride_id": 1}, {"driver": HIDDEN}),),
        )
        return reprocessing(
            order.stream.name,
            order.first,
            order.last,
            found,
            tables=tuple(t.name for t in order.stream.tables),
            before=2,
            after=3 if kind == "replaced" else None,
            kind=kind,
            run_id=order.run_id,
            inputs={"taxi/rides": 7},
        )

    def _host(
        self, mode: str, settings: Settings, streams: Sequence[Any], given: dict[str, Any]
    ) -> dict[str, StreamSummary]:
        self.hosted.append((mode, tuple(s.name for s in streams)))
        self.settings.append(settings)
        summaries = {s.name: StreamSummary(s.name, rows_in=self.rows) for s in streams}
        if given.get("on_report"):
            self.report_to = given["on_report"]
            for stream in streams:
                given["on_report"](self.report(stream.name))
        self.before_end(given.get("stop"))
        if self.error:
            raise self.error
        return summaries

    def report(self, stream: str) -> Report:
        return Report(
            stream=stream,
            at=NOON,
            kind="progress",
            numbers={"rows_in": self.rows, "rows_out": self.rows - self.late, "late": self.late},
            watermark=NOON,
            closed_days=self.closed,
            error="no space left on device" if stream == self.failed else None,
            failed=stream == self.failed,
        )


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> FakeRuntime:
    fake = FakeRuntime()
    monkeypatch.setattr(rivermark.runtime.supervision.run, "run_bounded", fake.bounded)
    monkeypatch.setattr(rivermark.runtime.supervision.run, "run_continuous", fake.continuous)
    monkeypatch.setattr("rivermark.dagster.jobs.rehearsal.run_bounded", fake.bounded)
    monkeypatch.setattr("rivermark.dagster.jobs.recompute.replace", fake.replace)
    monkeypatch.setattr(rivermark.backfill.recompute, "replace", fake.replace)
    monkeypatch.setattr(rivermark.backfill.recompute, "rehearse", fake.rehearse)
    monkeypatch.setattr(SparkResource, "spark_session", property(lambda _: "no engine"))
    return fake
