"""The domain's streams, as declared."""

from __future__ import annotations

from datetime import date

from assets.taxi.trips.counting import SUMMARY
from assets.taxi.trips.ingest import TRIP_RECORDS
from assets.taxi.trips.rules import FLAGGED
from assets.taxi.trips.streams import STREAMS
from assets.taxi.trips.trip_quality import COLUMN_OF_RULE
from assets.taxi.trips.twins import RECORD, TRIP
from rivermark.model.stream import Stream
from rivermark.model.table import Daily
from rivermark.model.topology import Topology

DERIVED = [s for s in STREAMS if isinstance(s, Stream)]


def test_they_fit_together() -> None:
    assert len(Topology(STREAMS).streams) == len(STREAMS)


def test_every_derived_table_reads_admitted_records_and_nothing_refreshed() -> None:
    assert DERIVED
    for stream in DERIVED:
        assert stream.kind == "refresh"
        assert stream.reads == (TRIP_RECORDS,)


def test_days_are_new_yorks() -> None:
    # Midnight in New York is 04:00 UTC in summer and 05:00 in winter.
    for stream in DERIVED:
        days = stream.days
        assert isinstance(days, Daily)
        start, end = days.bounds(date(2014, 11, 2), date(2014, 11, 2))
        assert (end - start).total_seconds() == 25 * 3600


def test_every_published_column_is_described() -> None:
    for stream in DERIVED:
        for field in stream.tables[0].schema.fields:
            assert field.metadata["comment"].endswith("."), (stream.name, field.name)


def test_tables_that_sum_amounts_say_whose() -> None:
    for name, _, comment in SUMMARY:
        if name in ("fare", "revenue"):
            assert "refunds taken off, repeats left out" in comment


def test_a_rule_that_can_be_empty_looks_at_a_column_of_the_records() -> None:
    rules = {rule.name for rule in FLAGGED}
    columns = set(TRIP_RECORDS.admitted.schema.fieldNames())

    assert set(COLUMN_OF_RULE) <= rules
    assert set(COLUMN_OF_RULE.values()) <= columns


def test_a_repeat_is_equal_in_all_that_a_record_says() -> None:
    said = set(TRIP_RECORDS.admitted.schema.fieldNames())
    told_otherwise = {"pickup_local", "dropoff_local", "color", "flags"}
    place = {name for name in said if name.startswith("_")}

    assert set(RECORD) == said - told_otherwise - place | {"service"}
    assert set(TRIP) < set(RECORD)
