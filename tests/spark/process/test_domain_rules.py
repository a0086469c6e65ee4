"""The rules of the domains on Spark: their tables against oracles over what landed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from assets.fraud.streams import FRAUD_STREAMS, GUESSED_PASSWORDS
from assets.readings.alerts.streams import ALERT_STREAMS, CORRECTED_COUNTS, TEMPERATURE_JUMPS
from assets.readings.ingest import SENSOR_READINGS
from assets.web.streams import SESSIONS, WEB_STREAMS
from rivermark.lake.delta import dataset_of, delta_table
from rivermark.model.stream import Ingest, Stream
from rivermark.model.topology import Topology
from rivermark.quality.duckdb_evaluator import DuckDbEvaluator
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from rivermark.testing import assert_rows_equal
from tests.oracles import alerts, fraud, web
from tests.oracles.landed import accept
from tests.spark.helpers.domain_worlds import land_worlds
from tests.spark.helpers.recomputing import recompute_days

pytestmark = [pytest.mark.spark, pytest.mark.long]

BEGINNING = datetime(2024, 3, 1, 15, 1, tzinfo=UTC)
DAY = date(2024, 3, 1)
LATER = BEGINNING + timedelta(hours=20)
"""When every input has one last event: all others, and their day, are final then."""

TOPOLOGY = Topology([SENSOR_READINGS, *ALERT_STREAMS, *WEB_STREAMS, *FRAUD_STREAMS])


@dataclass
class Domains:
    """The domains after a bounded run over all that landed. Tables are read without Spark."""

    spark: SparkSession
    settings: Settings
    summaries: dict[str, StreamSummary]

    def rows(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        """Rows in order, times in milliseconds."""
        found = DeltaTable(self.settings.lake().path(name)).to_pyarrow_table(columns=[*columns])
        return sorted((tuple(map(plain, row.values())) for row in found.to_pylist()), key=repr)

    def landed(self, name: str, *fields: str) -> list[tuple[Any, ...]]:
        """Fields of what the door must admit of an ingest, in order of landing."""
        ingest = ingest_of(name)
        assert ingest.lateness is not None
        folder = Path(self.settings.landing_root) / ingest.source.name
        admitted = accept(folder, ingest.lateness).admitted
        return [tuple(plain(row[field]) for field in fields) for row in admitted]


def ingest_of(name: str) -> Ingest:
    found = TOPOLOGY.named(name)
    assert isinstance(found, Ingest)
    return found


def plain(value: Any) -> Any:
    """A time as milliseconds since the epoch, anything else as it is."""
    if not isinstance(value, datetime):
        return value
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


@pytest.fixture(scope="module")
def domains(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Domains:
    settings = Settings(home=tmp_path_factory.mktemp("domains"))
    land_worlds(Path(settings.landing_root), BEGINNING, BEGINNING, LATER)
    summaries = run_bounded(spark, settings, TOPOLOGY, TOPOLOGY.streams, run_id="run")
    return Domains(spark, settings, summaries)


READING = ("sensor_id", "event_time", "temperature")


def test_jumps_are_the_oracles_each_with_the_version_of_its_threshold(domains: Domains) -> None:
    readings = domains.landed("readings/sensor_readings", *READING)
    told = domains.landed("readings/thresholds", "sensor_id", "event_time", "degrees", "version")

    rows = domains.rows(
        "readings/temperature_jumps",
        "sensor_id", "event_time", "temperature", "before", "threshold", "rule_version",
    )  # fmt: skip

    assert rows == alerts.jumps(readings, told) != []
    assert len({version for *_, version in rows}) > 1


def test_rises_and_smoke_alerts_are_the_oracles(domains: Domains) -> None:
    readings = domains.landed("readings/sensor_readings", *READING)
    levels = domains.landed("readings/smoke_levels", "event_time", "level")

    rises = domains.rows("readings/rising_temperatures", "sensor_id", "since", "event_time")
    smoke = domains.rows("readings/smoke_alerts", "sensor_id", "event_time", "level_time")

    assert rises
    assert_rows_equal(rises, alerts.rises(readings))
    assert smoke
    assert_rows_equal(smoke, alerts.smoke(readings, levels))


def test_last_revisions_are_the_counts_of_all_admitted_readings(domains: Domains) -> None:
    admitted = domains.landed("readings/sensor_readings", *READING)
    final = [each for each in admitted if each[1] < plain(LATER)]

    rows = domains.rows(
        "readings/corrected_counts",
        "sensor_id", "window_end", "revision", "readings", "total", "mark",
    )  # fmt: skip

    latest = {row[:2]: row[3:5] for row in sorted(rows)}
    assert sorted((*key, *row) for key, row in latest.items()) == list(alerts.counts(final, 10_000))
    assert {(row[2] == 1, row[5]) for row in rows} <= {(True, "first"), (False, "update")}
    # What the door admits is never too late for a correction.
    assert domains.rows("readings/readings_too_late", "sensor_id") == []


def test_sessions_are_the_oracles(domains: Domains) -> None:
    story = domains.landed("web/page_views", "user_id", "number", "event_time", "action", "device")
    expected = [each for each in web.sessions(story) if each[0] != "last"]

    rows = domains.rows(
        "web/sessions", "user_id", "session_start", "session_end", "events", "purchases"
    )

    assert rows
    assert_rows_equal(rows, expected)


def test_fraud_alerts_are_the_oracles_with_their_events(domains: Domains) -> None:
    logins = domains.landed("fraud/logins", "account_id", "number", "event_time", "succeeded")
    payments = domains.landed("fraud/payments", "card_id", "number", "event_time", "amount")

    for table, columns, expected in (
        ("guessed_passwords", ("account_id", "logins"), fraud.guessed_passwords(logins)),
        ("tried_out_cards", ("card_id", "payments"), fraud.small_then_large(payments)),
        ("rapid_payments", ("card_id", "payments"), fraud.many_payments(payments)),
    ):
        rows = domains.rows(f"fraud/{table}", columns[0], "event_time", columns[1])
        assert rows
        assert_rows_equal(rows, expected)
        assert set(domains.rows(f"fraud/{table}", "rule_version")) == {(1,)}


@pytest.mark.parametrize(
    "stream", [CORRECTED_COUNTS, SESSIONS, GUESSED_PASSWORDS], ids=lambda stream: stream.name
)
def test_the_table_meets_its_suite(domains: Domains, stream: Stream) -> None:
    assert stream.suite is not None
    table = stream.outputs[0].table

    rows = dataset_of(delta_table(domains.settings.lake().path(table)))
    result = DuckDbEvaluator(rows, table, 0).evaluate(stream.suite)

    assert [f"{f.name}: {f.observed}" for f in result.failures if f.severity != "info"] == []
    assert result.rows > 0


def test_nothing_was_dropped_on_the_way(domains: Domains) -> None:
    assert [e.stream for e in domains.summaries.values() if e.dropped_by_watermark] == []


@pytest.mark.parametrize("stream", [TEMPERATURE_JUMPS, SESSIONS], ids=lambda stream: stream.name)
def test_a_day_computed_again_is_the_day_that_was_streamed(
    domains: Domains, stream: Stream
) -> None:
    columns = [field.name for field in stream.outputs[0].table.schema.fields]
    before = [r for r in domains.rows(stream.name, *columns) if r[0] != "last"]

    recompute_days(domains.spark, domains.settings, stream, DAY)

    assert [r for r in domains.rows(stream.name, *columns) if r[0] != "last"] == before
