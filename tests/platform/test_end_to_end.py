"""The real thing, small: files in, a drain, its checks, a backfill; one engine for the module."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark import Topology
from rivermark.model import expectations as expect
from rivermark.model.suite import Suite
from rivermark.settings import Settings
from rivermark.sources import FileSource
from tests.platform import small_topology
from tests.platform.conftest import definitions_in, shown

pytestmark = [pytest.mark.platform, pytest.mark.spark]

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
NOON = timedelta(hours=12)


def rides_an_hour(rides: DataFrame) -> DataFrame:
    return (
        rides.groupBy(F.window("at", "1 hour").alias("hour"))
        .agg(F.count(F.lit(1)).alias("rides"))
        .select(
            F.col("hour.start").alias("window_start"),
            F.col("hour.end").alias("window_end"),
            "rides",
        )
    )


RIDES = replace(
    small_topology.RIDES,
    source=FileSource(folder="rides", settle=timedelta(0)),
    late_below=0.5,
    quarantine_below=0.5,
)
HOURLY = replace(
    small_topology.HOURLY,
    reads=(RIDES,),
    build=rides_an_hour,
    suite=Suite(name="taxi/hourly", expectations=(expect.between("rides", 1, 1_000),)),
)
TOPOLOGY = Topology([RIDES, HOURLY])


@pytest.fixture(scope="module", autouse=True)
def one_engine() -> Iterator[None]:
    yield
    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()


@pytest.fixture
def defs(tmp_path: Path) -> dg.Definitions:
    return definitions_in(TOPOLOGY, tmp_path)


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    (tmp_path / "dagster").mkdir()
    with dg.instance_for_test(temp_dir=str(tmp_path / "dagster")) as found:
        yield found


def land(settings: Settings, name: str, *rides: tuple[int, datetime] | str) -> None:
    folder = Path(settings.landing_root) / "rides"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        ride if isinstance(ride, str) else json.dumps({"ride_id": ride[0], "at": str(ride[1])})
        for ride in rides
    ]
    (folder / f".{name}").write_text("\n".join(lines) + "\n")
    (folder / f".{name}").rename(folder / name)
    # The order of arrival is that of modification, also within one tick of a coarse clock.
    stamp = 1_772_000_000 + len(list(folder.iterdir()))
    os.utime(folder / name, (stamp, stamp))


def rows(settings: Settings, table: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = (
        DeltaTable(settings.lake().path(table)).to_pyarrow_table().to_pylist()
    )
    return found


def hours(settings: Settings) -> dict[datetime, int]:
    return {
        r["window_end"].astimezone(UTC): int(str(r["rides"]))  # type: ignore[attr-defined]
        for r in rows(settings, "taxi/hourly")
    }


@pytest.mark.long
def test_files_become_tables_with_days_and_checks_once_however_often_drained_or_computed(
    defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings
) -> None:
    land(settings, "1.json", *[(n, MONDAY + NOON + timedelta(minutes=n)) for n in range(90)])
    # A day later, one ride that comes too late, and a line that is no ride.
    next_day = MONDAY + timedelta(days=1) + NOON
    land(settings, "2.json", (100, next_day), (101, next_day + timedelta(hours=2)))
    land(settings, "3.json", (7, MONDAY + NOON), "not a ride")

    catch_up = defs.resolve_job_def("taxi_catch_up").execute_in_process(instance=instance)

    assert catch_up.success
    first_hour, second_hour = MONDAY + NOON + timedelta(hours=1), MONDAY + NOON + timedelta(hours=2)
    expected = {first_hour: 60, second_hour: 30, next_day + timedelta(hours=1): 1}
    assert hours(settings) == expected
    assert len(rows(settings, "taxi/rides")) == 92
    assert [r["ride_id"] for r in rows(settings, "taxi/rides_late")] == [7]
    assert [r["payload"] for r in rows(settings, "taxi/rides_quarantine")] == ["not a ride"]

    evaluated = {
        f"{e.asset_key.to_user_string()} {e.check_name}": e
        for e in catch_up.get_asset_check_evaluations()
    }
    assert {name for name, e in evaluated.items() if not e.passed} == set()
    assert "taxi/rides every_row_is_accounted_for" in evaluated
    assert "taxi/hourly meets_expectations" in evaluated
    accounted = evaluated["taxi/rides every_row_is_accounted_for"].metadata
    assert accounted["rows_landed"].value == 94

    # The watermark has passed Monday, so Monday is final; Tuesday is not.
    key = dg.AssetKey(["taxi", "hourly"])
    assert instance.get_materialized_partitions(key) == {"2026-03-02"}

    before = {t: rows(settings, t) for t in ("taxi/rides", "taxi/rides_raw", "taxi/hourly")}
    assert defs.resolve_job_def("taxi_catch_up").execute_in_process(instance=instance).success
    assert {t: rows(settings, t) for t in before} == before

    # Partitions begin with the first day of rows since the code is loaded again.
    reloaded = definitions_in(TOPOLOGY, settings.home)
    again = reloaded.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=instance,
        asset_selection=[key],
        tags={
            "dagster/asset_partition_range_start": "2026-03-02",
            "dagster/asset_partition_range_end": "2026-03-02",
        },
    )

    assert again.success
    assert hours(settings) == expected, "computed again from the same input, the same rows"
    told = shown(instance, "taxi/hourly")
    assert (told["rows_before"], told["rows_after"]) == (2, 2), "those of the days"
    assert told["dagster/row_count"] == 3
