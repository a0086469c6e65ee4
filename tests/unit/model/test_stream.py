"""Streams as values: what a declaration refuses, and the lateness that loses nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame

from rivermark.model import expectations as expect
from rivermark.model.domain import Domain
from rivermark.model.errors import DeclarationError
from rivermark.model.stream import BindableBuild, Output, Stream, lateness_of, table_of
from rivermark.model.suite import Suite
from rivermark.model.table import Daily, Table
from tests.unit.model.declared import MINUTE, ingest, stream, table


def refused(message: str) -> pytest.RaisesExc[DeclarationError]:
    return pytest.raises(DeclarationError, match=message)


@pytest.mark.parametrize("name", ["rides", "Test/rides", "test/../x", ""])
def test_a_name_that_could_be_no_folder_is_refused(name: str) -> None:
    with refused("expected like"):
        ingest(name)
    with refused("expected like"):
        stream(name, writes=table())


@pytest.mark.parametrize(
    "lateness",
    [timedelta(0), -MINUTE, timedelta(microseconds=900), timedelta(seconds=1, microseconds=1)],
)
def test_b003_a_lateness_of_zero_or_finer_than_spark_is_refused(lateness: timedelta) -> None:
    with refused("is too short or finer than"):
        ingest(lateness=lateness)
    assert ingest(lateness=timedelta(milliseconds=1)).lateness


def test_a_stream_that_reads_nothing_is_refused() -> None:
    with refused("reads nothing"):
        stream(reads=())


def test_a_stream_that_writes_nothing_is_refused() -> None:
    with refused("writes nothing"):
        stream(writes=())


def test_name_and_description_are_those_of_the_first_table_unless_given() -> None:
    outputs = (Output(table("test/best", description="The best.")), Output(table("test/rest")))
    unnamed = Stream(reads=(ingest(),), build=lambda rows: rows, writes=outputs, group="test")

    assert (unnamed.name, unnamed.description) == ("test/best", "The best.")
    assert replace(unnamed, name="test/other").name == "test/other"
    assert stream("test/hours", writes=table("test/days")).name == "test/hours"


def test_a_domain_fills_in_group_owners_and_days_and_a_declaration_may_differ() -> None:
    first = date(2024, 1, 1)
    shop = Domain("shop", owners=("team:shop",), first_day=first, zone="America/New_York")
    sales = shop.stream(reads=(ingest(),), build=lambda rows: rows, writes=table("test/sales"))

    assert (sales.name, sales.group, sales.owners) == ("test/sales", "shop", ("team:shop",))
    assert shop.days("at") == Daily("at", first, zone="America/New_York")
    assert shop.days("at", zone="UTC") == Daily("at", first)
    orders = ingest()
    asked = shop.ingest(
        name="test/orders", source=orders.source, contract=orders.contract, lateness=None,
        description="Orders.", group="archive",
    )  # fmt: skip
    assert (asked.group, asked.owners) == ("archive", ("team:shop",))


def test_a_domain_declares_a_stream_with_its_table_in_one_call() -> None:
    shop = Domain("shop", first_day=date(2024, 1, 1), zone="America/New_York")
    columns = "country string, window_start timestamp, window_end timestamp, sales long"

    hours = shop.stream(
        "test/hours",
        columns,
        description="Sales per hour.",
        reads=ingest(),
        build=lambda rows: rows,
        keys="country",
        margin=timedelta(hours=1),
        expect=[expect.not_null("country")],
    )

    [written] = hours.tables
    assert (hours.name, hours.description, hours.group) == ("test/hours", "Sales per hour.", "shop")
    assert (written.event_time, written.days) == ("window_end", shop.days("window_start"))
    assert (written.keys, hours.margin) == (("country",), timedelta(hours=1))
    assert hours.suite == Suite(expectations=(expect.not_null("country"),), may_be_empty=True)


def test_a_table_of_a_domain_takes_its_days_from_its_event_time() -> None:
    shop = Domain("shop", first_day=date(2024, 1, 1))
    columns = "id long, event_time timestamp, due timestamp"

    def table_with(**options: Any) -> Table:
        return shop.table("test/rides", columns, description="Rides.", **options)

    assert (table_with().event_time, table_with().days) == ("event_time", shop.days("event_time"))
    assert table_with(event_time="due").days == shop.days("due")
    assert table_with(days="due").event_time == "event_time"
    assert table_with(days=None).days is None
    assert shop.table("test/zones", "id long", description="Zones.").event_time is None
    with pytest.raises(DeclarationError, match=r"'test/rides'.*lon"):
        shop.table("test/rides", "id lon", description="Rides.")


def test_a_build_that_binds_is_made_with_the_parameters_and_fitted_to_the_stream() -> None:
    @dataclass(frozen=True)
    class Fitted(BindableBuild):
        values: Mapping[str, Any] = field(default_factory=dict)
        tables: tuple[str, ...] = ()

        def bound(self, stream: Stream) -> Fitted:
            if stream.name == "test/misfit":
                raise DeclarationError("its rows do not fit")
            return replace(self, tables=tuple(t.name for t in stream.tables))

        def with_parameters(self, values: Mapping[str, Any]) -> Fitted:
            return replace(self, values=values)

        def __call__(self, *frames: DataFrame) -> DataFrame:
            return frames[0]

    declared = stream(build=Fitted(), parameters={"least": 2}, lateness=timedelta(0))

    assert declared.build == Fitted({"least": 2}, ("test/hours",))
    with refused("stream 'test/misfit': its rows do not fit"):
        stream("test/misfit", build=Fitted())


def test_an_input_without_event_time_cannot_be_read_with_a_watermark() -> None:
    timeless = table("test/zones", event_time=None, days=None)
    with refused("reads 'test/zones', which has no event time"):
        stream("test/hours", timeless)
    assert stream("test/hours", static=(timeless,)).static == (timeless,)


def test_a_table_of_nobody_needs_a_lateness_of_its_own() -> None:
    with refused("it is not known how late rows of 'test/foreign' may be"):
        stream("test/hours", table("test/foreign"))
    assert lateness_of(stream("test/hours", table("test/foreign"), lateness=MINUTE)) == MINUTE


def test_b008_a_dump_or_a_replaced_table_is_refused_as_input_of_a_watermark() -> None:
    with refused("come in no order of time"):
        stream("test/hours", ingest(lateness=None))
    by_day = stream("test/days", kind="refresh")
    with refused("reads 'test/days', whose rows come in no order of time or are replaced"):
        stream("test/hours", by_day)
    for read in (ingest(lateness=None), by_day):
        assert stream("test/hours", read, kind="refresh").reads == (read,)


def test_a_lateness_below_that_of_an_input_is_refused() -> None:
    with refused("a lateness of 0:00:59 would drop rows"):
        stream(lateness=timedelta(seconds=59))
    assert lateness_of(stream(lateness=2 * MINUTE)) == 2 * MINUTE


def test_the_lateness_of_events_goes_on_and_that_of_results_ends() -> None:
    slow = ingest("test/slow", lateness=5 * MINUTE)
    clean = stream("test/clean", slow, volume="events")
    both = stream("test/both", ingest(), clean)
    hours = stream("test/hours", both)

    assert [lateness_of(s) for s in (clean, both, hours)] == [5 * MINUTE, 5 * MINUTE, timedelta(0)]
    with refused("give at least 0:05:00"):
        stream("test/late", clean, lateness=MINUTE)
    assert lateness_of(stream("test/late", hours, lateness=timedelta(0))) == timedelta(0)


def test_a_refreshed_table_needs_its_days() -> None:
    with refused("a refreshed table needs `days`"):
        stream(kind="refresh", writes=table(days=None))
    with refused("a refreshed table needs `days`"):
        outputs = (Output(table()), Output(table("test/other", days=None)))
        stream(kind="refresh", writes=outputs)


def test_an_ingest_writes_four_tables_and_is_read_by_the_admitted_one() -> None:
    rides = ingest(personal=("id",))

    assert [t.name for t in rides.tables] == [
        "test/rides", "test/rides_raw", "test/rides_late", "test/rides_quarantine",
    ]  # fmt: skip
    assert table_of(rides).name == "test/rides"
    assert rides.raw.personal == ("payload",)
    assert rides.quarantine.personal == ("payload", "details")
    assert table_of(stream()).name == "test/hours"
