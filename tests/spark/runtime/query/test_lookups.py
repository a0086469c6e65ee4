"""Lookups: one row a key, joined whole or as of the event's time; and tables with repeated keys."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from rivermark import Contract, Daily, Field, Ingest, Stream, Table, Topology
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.retake import retake
from rivermark.lake.log import CommitLog
from rivermark.model.errors import KeysNotUnique, RivermarkError, StreamFailed
from rivermark.model.stream import AnyStream
from rivermark.monitor.checks.registry import checks_of_stream
from rivermark.operators import join_as_of
from rivermark.runtime.query.recompute import build_range, pin_inputs
from rivermark.runtime.supervision.reset import reset
from rivermark.settings import Settings
from rivermark.sources import FileSource
from tests.spark.helpers.crashes import CrashError, crash_once, forget_last_commit
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.recomputing import recompute_days
from tests.spark.helpers.sensors import FIRST_DAY, MINUTE, READINGS, TEN, admit, reading, rows, run

pytestmark = pytest.mark.spark

MARCH_1 = date(2024, 3, 1)
Rows = list[tuple[Any, ...]]
PLACE = Contract(
    fields=(
        Field("sensor", "string", required=True),
        Field("since", "timestamp", required=True),
        Field("room", "string"),
    ),
    event_time="since",
)
PLACES = Ingest(
    name="test/places",
    source=FileSource(folder="places", settle=timedelta(0)),
    contract=PLACE,
    kind="lookup",
    keys=("sensor",),
    description="Where each sensor hangs.",
    group="test",
)
DUMP = Ingest(
    name="test/dumped",
    source=FileSource(folder="places", settle=timedelta(0)),
    contract=Contract(fields=PLACE.fields, event_time="since", keys=("sensor",)),
    lateness=None,
    description="Where each sensor hangs, file by file.",
    group="test",
)


def place(sensor: str, minute: float, room: str) -> str:
    """From so many minutes after ten the sensor hangs in the room, as a JSON line."""
    return json.dumps(
        {"sensor": sensor, "since": (TEN + minute * MINUTE).isoformat(), "room": room}
    )


def in_whole(readings: DataFrame, places: DataFrame) -> DataFrame:
    joined = readings.join(places.select("sensor", "room"), "sensor", "left")
    return joined.select("sensor", "at", "room")


def in_time(readings: DataFrame, places: DataFrame) -> DataFrame:
    return join_as_of(readings, places, ("sensor",), at="at", since="since").select(
        "sensor", "at", "room"
    )


def placed(
    static: Ingest | Table, build: Callable[..., DataFrame] = in_whole, **more: Any
) -> Stream:
    """Readings with the room of their sensor."""
    table = Table(
        name="test/placed",
        schema="sensor string, at timestamp, room string",
        description="Readings with the room of their sensor.",
        event_time="at",
        keys=("sensor", "at"),
        days=Daily("at", FIRST_DAY),
    )
    return Stream(
        reads=(READINGS,), static=(static,), build=build, writes=table, group="test", **more
    )


def rooms(spark: SparkSession, settings: Settings, table: Table, time: str) -> Rows:
    """Sensor, minutes after ten and room of each row."""
    ten = TEN.replace(tzinfo=None)
    return [
        (sensor, (at - ten) // MINUTE, room)
        for sensor, at, room in rows(spark, settings, table, "sensor", time, "room")
    ]


def close_march_1(spark: SparkSession, settings: Settings, *streams: AnyStream) -> None:
    """Two batches of days later: the watermark of the second lies behind the first's readings."""
    for minute in (0, 1):
        admit(settings, reading(3 * 24 * 60 + minute, "s1"))
        run(spark, settings, *streams)


def failing(settings: Settings, stream: AnyStream) -> dict[str, str]:
    """The checks of the stream that fail, and what each observed; `is_alive` aside."""
    results = [c.evaluate(settings, datetime.now(TEN.tzinfo)) for c in checks_of_stream(stream)]
    return {r.name: r.observed for r in results if not r.passed and r.name != "is_alive"}


@pytest.mark.parametrize("kind", ["append", pytest.param("refresh", marks=pytest.mark.long)])
def test_a_second_row_of_a_key_is_refused_before_it_repeats_what_it_joins(
    spark: SparkSession, settings: Settings, landing: Landing, kind: str
) -> None:
    joined = placed(DUMP, kind=kind)
    landing.put("places/1.json", place("s1", 0, "attic"), place("s2", 0, "hall"))
    admit(settings, reading(1, "s1"), reading(1, "s2"))
    run(spark, settings, DUMP, joined)
    assert len(rooms(spark, settings, joined.tables[0], "at")) == 2
    assert failing(settings, joined) == {}

    landing.put("places/2.json", place("s1", 5, "cellar"))
    admit(settings, reading(6, "s1"), reading(6, "s2"))
    with pytest.raises(StreamFailed, match=r"'test/dumped', which it joins whole.*sensor=s1 2 ti"):
        run(spark, settings, DUMP, joined)

    assert len(rooms(spark, settings, joined.tables[0], "at")) == 2
    [(name, observed)] = failing(settings, joined).items()
    assert name == "joined_tables_have_one_row_a_key"
    assert "1 keys of (sensor) more than once among 3 rows" in observed
    versions = pin_inputs(settings.lake(), joined, None)
    with pytest.raises(KeysNotUnique, match=r"Ingest\(kind='lookup'"):
        build_range(spark, settings.lake(), joined, MARCH_1, MARCH_1, versions)


def test_a_lookup_keeps_the_newest_row_of_each_key_and_every_version(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    joined = placed(PLACES)
    landing.put("places/1.json", place("s1", 0, "attic"), place("s2", 0, "hall"), "broken")
    run(spark, settings, PLACES)
    # An older version changes nothing; of equal times the one that landed last counts, though its
    # file is the first by name; `s2` is moved twice in one file.
    landing.put("places/3.json", place("s1", -5, "shed"), place("s2", 3, "stairs"))
    landing.put("places/2.json", place("s1", 0, "cellar"), place("s2", 4, "roof"))
    admit(settings, reading(1, "s1"), reading(1, "s2"), reading(1, "s3"))
    run(spark, settings, PLACES, joined)

    assert rooms(spark, settings, PLACES.admitted, "since") == [
        ("s1", 0, "cellar"),
        ("s2", 4, "roof"),
    ]
    assert len(rooms(spark, settings, PLACES.versions, "since")) == 6
    assert rows(spark, settings, PLACES.late) == []
    assert rooms(spark, settings, joined.tables[0], "at") == [
        ("s1", 1, "cellar"),
        ("s2", 1, "roof"),
        ("s3", 1, None),
    ]
    assert failing(settings, joined) == {}
    assert failing(settings, PLACES).keys() <= {"few_rows_are_set_aside"}


ZONES = Ingest(
    name="test/zones",
    source=FileSource(folder="zones", format="csv", settle=timedelta(0)),
    contract=Contract(
        fields=(
            Field("zone_id", "long", ("LocationID",), required=True),
            Field("zone", "string", ("Zone",), required=True),
        )
    ),
    kind="lookup",
    keys=("zone_id",),
    description="The zones of the taxi, whose list has no time.",
    group="test",
)


@pytest.mark.parametrize("driver_bytes", [pytest.param(0, marks=pytest.mark.long), 16 << 20])
def test_of_a_lookup_without_a_time_what_landed_last_is_the_newest(
    spark: SparkSession,
    settings: Settings,
    landing: Landing,
    monkeypatch: pytest.MonkeyPatch,
    driver_bytes: int,
) -> None:
    monkeypatch.setattr("rivermark.ingest.admission.DRIVER_BYTES", driver_bytes)
    head = '"LocationID","Zone"'
    landing.put("zones/b.csv", head, '1,"Newark"', '2,"Jamaica Bay"', '3,"Allerton"', "x,y")
    landing.put("zones/a.csv", head, '2,"Jamaica"')
    run(spark, settings, ZONES)
    landing.put("zones/0.csv", head, '3,"Pelham"', '3,"Pelham Gardens"', '4,"Alphabet City"')
    run(spark, settings, ZONES)

    zones = rows(spark, settings, ZONES.admitted, "zone_id", "zone")
    assert [tuple(zone) for zone in zones] == [
        (1, "Newark"),
        (2, "Jamaica"),
        (3, "Pelham Gardens"),
        (4, "Alphabet City"),
    ]
    assert len(rows(spark, settings, ZONES.versions)) == 7
    [wrong] = rows(spark, settings, ZONES.quarantine, "reasons")
    assert wrong["reasons"] == ["unreadable_zone_id"]

    # Read again, a file has landed now; the others keep their order.
    landing.put("zones/b.csv", head, '1,"Newark Airport"', '3,"Allerton"')
    context = BackfillContext(
        settings=settings, topology=Topology([ZONES]), spark=lambda: spark, run_id="again"
    )
    retake(context, ZONES, "b.csv")
    assert [tuple(zone) for zone in rows(spark, settings, ZONES.admitted, "zone_id", "zone")] == [
        (1, "Newark Airport"),
        (2, "Jamaica"),
        (3, "Allerton"),
        (4, "Alphabet City"),
    ]


@pytest.mark.parametrize("driver_bytes", [pytest.param(0, marks=pytest.mark.long), 16 << 20])
def test_a_lookups_batch_that_comes_again_changes_nothing(
    spark: SparkSession,
    settings: Settings,
    landing: Landing,
    monkeypatch: pytest.MonkeyPatch,
    driver_bytes: int,
) -> None:
    monkeypatch.setattr("rivermark.ingest.admission.DRIVER_BYTES", driver_bytes)
    landing.put("places/1.json", place("s1", 0, "attic"), place("s1", 2, "hall"))
    with monkeypatch.context() as patch:
        crash_once(patch, PLACES.versions.name)  # Before the table of the lookup is merged.
        with pytest.raises((StreamFailed, CrashError)):
            run(spark, settings, PLACES)
    assert rooms(spark, settings, PLACES.admitted, "since") == []

    run(spark, settings, PLACES)
    assert rooms(spark, settings, PLACES.admitted, "since") == [("s1", 2, "hall")]
    before = CommitLog(settings.lake().path(PLACES.admitted)).versions()

    forget_last_commit(settings, PLACES)
    run(spark, settings, PLACES)
    assert rooms(spark, settings, PLACES.versions, "since") == [
        ("s1", 0, "attic"),
        ("s1", 2, "hall"),
    ]
    assert CommitLog(settings.lake().path(PLACES.admitted)).versions() == before


def test_what_was_an_ingest_of_events_becomes_a_lookup_by_a_reset(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    events = replace(PLACES, kind="events", keys=())
    landing.put("places/1.json", place("s1", 0, "attic"), place("s1", 5, "cellar"))
    run(spark, settings, events)
    with pytest.raises(RivermarkError, match="rivermark reset test/places --with-tables"):
        run(spark, settings, PLACES)

    reset(settings, Topology([PLACES]), PLACES, run_id="reset", with_tables=True)
    run(spark, settings, PLACES)
    assert rooms(spark, settings, PLACES.admitted, "since") == [("s1", 5, "cellar")]


def test_a_lookup_is_joined_as_of_the_events_time_and_a_day_again_the_same(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    joined = placed(PLACES.versions, in_time)
    landing.put("places/1.json", place("s1", 0, "attic"))
    admit(settings, *[reading(m, "s1") for m in (-1, 0, 4, 5, 6)])
    # The move of 10:05 comes twice: what landed last counts.
    landing.put("places/2.json", place("s1", 5, "shed"), place("s1", 5, "cellar"))
    run(spark, settings, PLACES, joined)
    expected = [(-1, None), (0, "attic"), (4, "attic"), (5, "cellar"), (6, "cellar")]
    expected_rows = [("s1", minute, room) for minute, room in expected]
    assert rooms(spark, settings, joined.tables[0], "at") == expected_rows

    landing.put("places/3.json", place("s1", 60, "roof"))
    close_march_1(spark, settings, PLACES, joined)
    recompute_days(spark, settings, joined, MARCH_1)

    found = rooms(spark, settings, joined.tables[0], "at")
    assert found[: len(expected)] == expected_rows
    assert [room for _, _, room in found[len(expected) :]] == ["roof", "roof"]


def test_a_lookup_joined_whole_is_as_it_is_now_where_a_day_is_computed_again(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    joined = placed(PLACES)
    landing.put("places/1.json", place("s1", 0, "attic"))
    admit(settings, reading(1, "s1"))
    run(spark, settings, PLACES, joined)
    close_march_1(spark, settings, joined)
    landing.put("places/2.json", place("s1", 5, "cellar"))
    run(spark, settings, PLACES)
    recompute_days(spark, settings, joined, MARCH_1)

    found = rooms(spark, settings, joined.tables[0], "at")
    assert [room for _, _, room in found] == ["cellar", "attic", "attic"]
