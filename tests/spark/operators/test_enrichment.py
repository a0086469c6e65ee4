"""Readings enriched with their room by a web service, and on to PostgreSQL, as a stream."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark import Output, RivermarkError, Stream, Table, Topology
from rivermark.operators import HttpLookup, enrich, looked_up, not_looked_up
from rivermark.runtime.supervision.error_classes import explain
from rivermark.runtime.supervision.reset import reset
from rivermark.settings import Settings
from rivermark.sinks import PostgresAppend, PostgresUpsert
from setup.postgres_server import PostgresServer
from tests.spark.helpers.recomputing import recompute_days
from tests.spark.helpers.sensors import READINGS, TEN, admit, reading, rows, run, windows
from tests.web_service import Reply, Request, serving

pytestmark = pytest.mark.spark

ROOMS = Table(
    name="test/rooms",
    schema="sensor string, at timestamp, temperature decimal(9,3), room string",
    description="Readings with the room of their sensor.",
    event_time="at",
    keys=("sensor", "at"),
    days=READINGS.days,
)
UNKNOWN = Table(
    name="test/rooms_unknown",
    schema="sensor string, at timestamp, lookup_status string, lookup_error string",
    description="Readings whose sensor could not be looked up.",
    event_time="at",
    keys=("sensor", "at"),
    days=READINGS.days,
)
DATABASE: dict[str, Any] = {
    "database": "$TEST_DATABASE",
    "settings": {"password": "$ROOMS_PASSWORD"},
}
HISTORY = PostgresAppend(table="rooms", **DATABASE)
NEWEST = PostgresUpsert(table="newest", key=("sensor",), version="at", **DATABASE)


def with_rooms(url: str, **terms: object) -> Stream:
    """Readings with their rooms; those that could not be looked up are set aside."""
    lookup = HttpLookup(url=f"{url}/sensors/{{sensor}}", columns="room string")

    def build(readings: DataFrame) -> DataFrame:
        kept = readings.select("sensor", "at", "temperature")
        enriched = enrich(kept, lookup, ("sensor",), **{"attempts": 1, **terms})  # type: ignore[arg-type]
        return enriched.withColumn("room", F.coalesce("room", F.lit("UNKNOWN ROOM")))

    return Stream(
        reads=(READINGS,),
        build=build,
        writes=(
            Output(ROOMS, where=looked_up, sinks=(HISTORY, NEWEST)),
            Output(UNKNOWN, where=not_looked_up),
        ),
        group="test",
        volume="events",
    )


def in_postgres(postgres: PostgresServer, table: str) -> list[tuple[object, ...]]:
    import psycopg

    with psycopg.connect(postgres.database) as connection:
        moment = "at AT TIME ZONE 'UTC'"  # As `rows` has it.
        sql = f"SELECT sensor, {moment}, temperature, room FROM {table} ORDER BY 1, 2"  # noqa: S608
        return connection.execute(sql).fetchall()


@pytest.mark.long
def test_readings_get_their_rooms_and_reach_postgres_once_whatever_fails(
    spark: SparkSession,
    settings: Settings,
    postgres: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    password = postgres.passfile.read_text().strip().rpartition(":")[2]
    monkeypatch.setenv("ROOMS_PASSWORD", password)
    hanging = Event()
    over = Event()

    def reply(request: Request) -> Reply:
        sensor = request.path.rpartition("/")[2]
        if hanging.is_set():
            over.wait(60)
        if sensor == "s3":
            return 400, {}
        return (404, {}) if sensor == "s9" else (200, {"room": f"room of {sensor}"})

    with serving(reply) as service:
        stream = with_rooms(service.url, in_flight=2, cache_for=timedelta(0))
        for batch in range(2):
            admit(settings, *(reading(batch * 5 + n / 10, f"s{n}") for n in range(20)))
            run(spark, settings, stream, windows(stream))
        table = rows(spark, settings, ROOMS)
        assert Counter(row["room"] for row in table) == {
            **{f"room of s{n}": 2 for n in range(20) if n not in (3, 9)},
            "UNKNOWN ROOM": 2,
        }
        aside = rows(spark, settings, UNKNOWN)
        assert {(r["sensor"], r["lookup_status"], r["lookup_error"]) for r in aside} == {
            ("s3", "failed", "replied 400")
        }
        assert len(aside) == 2
        # No row was dropped behind the watermark of the enriched rows.
        counted = rows(spark, settings, windows().tables[0])
        assert sum(row["readings"] for row in counted) == 19
        # Two for each Python worker, of which there are a few.
        assert service.connections < 15
        assert len(service.requests) == 40
        assert in_postgres(postgres, "rooms") == [tuple(row) for row in table]
        newest = {row["sensor"]: tuple(row) for row in table}
        assert in_postgres(postgres, "newest") == sorted(newest.values())

        hanging.set()
        strict = with_rooms(service.url, on_failure="fail", timeout=timedelta(seconds=0.5))
        admit(settings, reading(24 * 60, "s1"))
        late = r"/sensors/.*sensor='s1': no reply within 0\.5 s"
        with pytest.raises(RivermarkError, match=late) as raised:
            run(spark, settings, strict)
        assert isinstance(raised.value.__cause__, BaseException)
        assert explain(raised.value.__cause__).restartable
        hanging.clear()
        over.set()
        run(spark, settings, stream)
        assert in_postgres(postgres, "rooms") == [tuple(r) for r in rows(spark, settings, ROOMS)]
        assert len(in_postgres(postgres, "rooms")) == 39

        recompute_days(spark, settings, stream, TEN.date())
        assert in_postgres(postgres, "rooms") == [tuple(r) for r in rows(spark, settings, ROOMS)]
        report = reset(settings, Topology((stream,)), stream, run_id="reset")
        assert any("rooms_removed" in place for place in report.removed)
        run(spark, settings, stream)
        assert in_postgres(postgres, "rooms") == [tuple(r) for r in rows(spark, settings, ROOMS)]

    # What Spark's page of the environment shows, and all that was written.
    shown = f"{spark.sparkContext.getConf().getAll()}{spark._jvm.System.getProperties()}"  # type: ignore[union-attr]
    assert password not in shown + caplog.text + str(raised.value)
    written = [file for file in settings.home.rglob("*") if file.is_file()]
    assert [file for file in written if password.encode() in file.read_bytes()] == []
