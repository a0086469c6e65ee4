"""Starting over, with tables that delta-rs writes: no engine is needed to put them aside."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.schema import create_table
from rivermark.lake.snapshot import row_count
from rivermark.model.errors import CheckpointIncompatible, RivermarkError, StreamAlreadyRunning
from rivermark.model.stream import AnyStream
from rivermark.model.table import Table
from rivermark.runtime.checkpoint.closed_days import ClosedDays
from rivermark.runtime.checkpoint.generation import open_generation, reset_generation
from rivermark.runtime.supervision.heartbeat import Heartbeat, HeartbeatStore
from rivermark.runtime.supervision.lease import Lease
from rivermark.runtime.supervision.reset import reset, resets_with, tables_of
from rivermark.settings import Settings
from tests.unit.cli.conftest import BUSIEST, HOURLY, NOON, ORDERS, SHOP


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


def put(settings: Settings, table: Table, *rows: dict[str, Any]) -> None:
    create_table(settings.lake(), table)
    path = settings.lake().path(table)
    schema = DeltaTable(path).to_pyarrow_dataset().schema
    write_deltalake(path, pa.Table.from_pylist(list(rows), schema), mode="append")


def ran(settings: Settings, *streams: AnyStream) -> None:
    """The streams ran once, and left rows in their first tables."""
    for stream in streams:
        open_generation(settings.lake(), stream, settings.shuffle_partitions)
        for table in tables_of(stream):
            create_table(settings.lake(), table)
    put(settings, HOURLY.tables[0], {"window_end": NOON, "orders": 1})
    put(settings, BUSIEST.tables[0], {"window_end": NOON, "orders": 1})
    put(settings, ORDERS.admitted, {"order_id": 1, "at": NOON})


def test_a_reset_begins_a_generation_and_puts_the_tables_aside(settings: Settings) -> None:
    ran(settings, ORDERS, HOURLY, BUSIEST)

    report = reset(settings, SHOP, HOURLY, run_id="r")

    lake = settings.lake()
    assert report.generations == {"shop/hourly": 1, "shop/busiest": 1}
    assert open_generation(lake, HOURLY, 99).number == 1
    assert not lake.exists("shop/hourly")
    assert len(report.removed) == 2
    kept = next(place for place in report.removed if place.endswith("shop/hourly"))
    assert DeltaTable(kept).to_pyarrow_table().num_rows == 1
    assert row_count(lake, ORDERS.admitted) == 1


def test_all_that_read_a_stream_start_over_with_it() -> None:
    assert resets_with(SHOP, ORDERS) == (ORDERS, HOURLY, BUSIEST)
    assert resets_with(SHOP, HOURLY) == (HOURLY, BUSIEST)
    assert resets_with(SHOP, BUSIEST) == (BUSIEST,)


def test_the_new_generation_takes_the_settings_of_today(settings: Settings) -> None:
    ran(settings, HOURLY)
    more = Settings(home=settings.home, shuffle_partitions=7)

    reset(more, SHOP, BUSIEST, run_id="r")

    assert open_generation(settings.lake(), BUSIEST, 2).shuffle_partitions == 7


def test_an_ingest_is_reset_only_with_its_tables(settings: Settings) -> None:
    ran(settings, ORDERS, HOURLY, BUSIEST)
    mine = {"stream": "shop/orders", "file": "a", "path": "/a", "rows": 1}
    put(settings, INGEST_FILES, mine, {**mine, "stream": "shop/orders_of_others"})

    with pytest.raises(RivermarkError, match="--with-tables"):
        reset(settings, SHOP, ORDERS, run_id="r")
    assert row_count(settings.lake(), ORDERS.admitted) == 1

    reset(settings, SHOP, ORDERS, run_id="r", with_tables=True)
    assert not any(settings.lake().exists(table) for table in tables_of(ORDERS))
    left = DeltaTable(settings.lake().path(INGEST_FILES)).to_pyarrow_table()
    assert left["stream"].to_pylist() == ["shop/orders_of_others"]


def test_nothing_is_reset_while_one_of_the_streams_runs(settings: Settings) -> None:
    ran(settings, ORDERS, HOURLY, BUSIEST)

    with Lease(settings.state, "shop/busiest").acquire("live"), pytest.raises(StreamAlreadyRunning):
        reset(settings, SHOP, HOURLY, run_id="r")

    assert open_generation(settings.lake(), HOURLY, 2).number == 0
    assert row_count(settings.lake(), HOURLY.tables[0]) == 1


def test_a_reset_that_was_broken_off_stops_the_stream_until_it_is_finished(
    settings: Settings,
) -> None:
    ran(settings, HOURLY)
    lake = settings.lake()

    def killed() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reset_generation(lake, HOURLY, 2, killed)

    with pytest.raises(CheckpointIncompatible, match="rivermark reset shop/hourly"):
        open_generation(lake, HOURLY, 2)
    reset(settings, SHOP, HOURLY, run_id="r")
    assert open_generation(lake, HOURLY, 2).number == 2


def test_what_was_told_of_the_former_tables_is_forgotten(settings: Settings) -> None:
    ran(settings, HOURLY)
    HeartbeatStore(settings.state).beat(
        Heartbeat(stream="shop/hourly", group="shop", run_id="old", pid=1, watermark=NOON)
    )
    closed = ClosedDays(settings.lake(), settings.state)
    closed._remember("shop/hourly", datetime(2026, 3, 1, tzinfo=UTC).date())

    reset(settings, SHOP, HOURLY, run_id="r")

    beat = HeartbeatStore(settings.state).get("shop/hourly")
    assert beat is not None
    assert (beat.state, beat.watermark) == ("stopped", None)
    assert closed.through("shop/hourly") is None


def test_a_stream_that_never_ran_may_be_reset(settings: Settings) -> None:
    report = reset(settings, SHOP, HOURLY, run_id="r")

    assert report.generations == {"shop/hourly": 0, "shop/busiest": 0}
    assert report.removed == ()
