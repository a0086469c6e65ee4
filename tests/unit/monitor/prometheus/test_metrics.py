"""What Prometheus is told: each batch once, the streams' life, and what cannot be read."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.delta import delta_table
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import rows_of
from rivermark.model.sink import Origin
from rivermark.model.stream import Ingest
from rivermark.monitor.prometheus.metrics import DeploymentMetrics
from rivermark.monitor.prometheus.server import MetricsServer
from rivermark.runtime.batch_metrics import BatchMetrics
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.runtime.supervision.heartbeat import Heartbeat, HeartbeatStore
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS, ProgressLog
from rivermark.settings import Settings

NOW = datetime.now(UTC)
Record = Callable[..., None]


@pytest.fixture
def record(settings: Settings, rides: Ingest) -> Record:
    """Batches of the ingest as its run records them, in one commit; each with such numbers."""

    def write(*batches: dict[str, Any]) -> None:
        log = ProgressLog(settings.lake())
        for number, batch in enumerate(batches):
            known: Any = {"stream": rides.name, "generation": 1, "run_id": "r", "batch_id": number}
            log.add(BatchMetrics(**{**known, "started_at": NOW, **batch}))
        log.flush()

    return write


@pytest.fixture
def metrics(settings: Settings, rides: Ingest) -> DeploymentMetrics:
    return DeploymentMetrics(settings, [rides])


def samples(metrics: DeploymentMetrics) -> dict[tuple[str, ...], float]:
    """Values by name and labels, as Prometheus reads them."""
    return {
        (each.name, *(v for k, v in sorted(each.labels.items()) if k != "group")): each.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for each in family.samples
    }


def test_a_stream_counts_from_its_first_batch(
    metrics: DeploymentMetrics, rides: Ingest, record: Record
) -> None:
    before = samples(metrics)
    record({"rows_in": 5, "admitted": 3, "late": 1, "quarantined": 1, "duration_ms": 700})
    after = samples(metrics)

    assert before["rivermark_rows_in_total", rides.name] == 0
    assert after["rivermark_rows_in_total", rides.name] == 5
    assert after["rivermark_admitted_total", rides.name] == 3
    assert after["rivermark_late_total", rides.name] == 1
    assert after["rivermark_quarantined_total", rides.name] == 1
    assert after["rivermark_batch_seconds_bucket", "0.5", rides.name] == 0
    assert after["rivermark_batch_seconds_bucket", "1.0", rides.name] == 1
    assert after["rivermark_last_batch_timestamp_seconds", rides.name] == NOW.timestamp()


def test_it_tells_how_old_the_newest_event_of_a_commit_is(
    settings: Settings, metrics: DeploymentMetrics, rides: Ingest
) -> None:
    lake, table = settings.lake(), rides.admitted
    create_table(lake, table)
    writer = TableWriter(lake, table, Origin(rides.name, 0, NOW, "r"))

    def admit(batch: int, *ages: float) -> None:
        at = [datetime.now(UTC) - timedelta(seconds=age) for age in ages]
        rows = [{rides.contract.event_time: each, "_ingest_batch": batch} for each in at]
        writer.append_once(rows_of(table, rows), batch)

    admit(0, 0.1)
    counted = "rivermark_event_to_table_seconds_count", rides.name
    assert samples(metrics)[counted] == 0, "what was there at the first look is not counted"
    admit(1, 9.0, 4.0)
    admit(2, 700.0)
    after = samples(metrics)
    assert after[counted] == 2
    assert after["rivermark_event_to_table_seconds_bucket", "3.0", rides.name] == 0
    assert after["rivermark_event_to_table_seconds_bucket", "5.0", rides.name] == 1
    assert after["rivermark_event_to_table_seconds_bucket", "3600.0", rides.name] == 2


def test_each_batch_counts_once_whatever_upkeep_does(
    settings: Settings, metrics: DeploymentMetrics, rides: Ingest, record: Record
) -> None:
    counted = ("rivermark_rows_in_total", rides.name)
    record({"rows_in": 2}, {"rows_in": 3})
    assert samples(metrics)[counted] == 5
    record({"rows_in": 4})
    delta_table(settings.lake().path(STREAM_PROGRESS)).optimize.compact()
    assert samples(metrics)[counted] == 9
    delta_table(settings.lake().path(STREAM_PROGRESS)).delete()
    record({"rows_in": 1})
    assert samples(metrics)[counted] == 10
    assert samples(metrics)[counted] == 10


def test_numbers_of_a_process_function_keep_their_names(
    metrics: DeploymentMetrics, rides: Ingest, record: Record
) -> None:
    record(
        {"counters": {"alerts": 2}, "gauges": {"open": 7.0}, "state_rows": 40},
        {"counters": {"alerts": 3}, "gauges": {"open": 5.0}, "state_rows": 30},
    )

    found = samples(metrics)

    assert found["rivermark_process_total", "alerts", rides.name] == 5
    assert found["rivermark_process_value", "open", rides.name] == 5
    assert found["rivermark_state_rows", rides.name] == 30


def beat(settings: Settings, stream: Ingest, at: datetime) -> None:
    known: Any = {"group": stream.group, "run_id": "r", "pid": os.getpid(), "state": "running"}
    HeartbeatStore(settings.state).beat(Heartbeat(stream=stream.name, at=at, **known))


def test_a_stream_that_should_run_and_is_silent_is_dead(
    settings: Settings, metrics: DeploymentMetrics, rides: Ingest
) -> None:
    alive = ("rivermark_alive", rides.name)
    assert samples(metrics)[alive] == 1  # Nobody asked it to run.

    DesiredStore(settings.state).set(rides.group, "run", by="ada", reason="test")
    beat(settings, rides, NOW - timedelta(minutes=10))
    assert samples(metrics)[alive] == 0
    assert samples(metrics)["rivermark_should_run", rides.name] == 1

    beat(settings, rides, datetime.now(UTC))
    assert samples(metrics)[alive] == 1


def test_what_cannot_be_read_does_not_hide_the_rest(
    settings: Settings, metrics: DeploymentMetrics, rides: Ingest, record: Record
) -> None:
    record({"rows_in": 1})
    log = Path(settings.lake().path(STREAM_PROGRESS)) / "_delta_log"
    for entry in log.glob("*.json"):
        entry.write_text("")

    found = samples(metrics)

    assert found["rivermark_unreadable", "batches"] == 1
    assert found["rivermark_unreadable", "life"] == 0
    assert found["rivermark_alive", rides.name] == 1


@contextmanager
def served(metrics: DeploymentMetrics) -> Iterator[str]:
    """The address of a server while it lasts."""
    with MetricsServer(metrics, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def answer(address: str, host: str = "") -> tuple[int, str]:
    parts = urlsplit(address)
    connection = HTTPConnection(parts.netloc)
    connection.request("GET", parts.path, headers={"Host": host or parts.netloc})
    response = connection.getresponse()
    return response.status, response.read().decode()


def test_the_server_tells_metrics_health_and_readiness(
    settings: Settings, metrics: DeploymentMetrics, rides: Ingest, record: Record
) -> None:
    record({"rows_in": 6})
    with served(metrics) as address:
        assert (
            f'rivermark_rows_in_total{{stream="{rides.name}"}} 6.0'
            in answer(f"{address}/metrics")[1]
        )
        assert answer(f"{address}/health") == (200, "ok\n")
        assert answer(f"{address}/ready") == (200, "ready\n")
        DesiredStore(settings.state).set(rides.group, "run", by="ada", reason="test")
        beat(settings, rides, NOW - timedelta(minutes=10))
        status, text = answer(f"{address}/ready")
        assert status == 503
        assert text.startswith(f"{rides.name}: last heartbeat")
        assert answer(f"{address}/")[0] == 404


def test_a_name_that_a_page_of_another_site_has_made_up_is_refused(
    metrics: DeploymentMetrics,
) -> None:
    with served(metrics) as address:
        assert answer(f"{address}/metrics", "rebound.example") == (
            421,
            "this server has another name\n",
        )


def test_only_the_streams_that_are_asked_for_are_told(
    settings: Settings, rides: Ingest, record: Record
) -> None:
    record({"rows_in": 1}, {"rows_in": 2, "stream": "taxi/others"})
    found = samples(DeploymentMetrics(settings, [replace(rides)]))

    assert found["rivermark_rows_in_total", rides.name] == 1
    assert ("rivermark_rows_in_total", "taxi/others") not in found
