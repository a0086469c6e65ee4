"""Upgrades of a stream with state: new code that goes on, fails midway, or is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermark import Stream
from rivermark.model.errors import RivermarkError
from rivermark.model.topology import Topology
from rivermark.process import Context
from rivermark.process.spark import run_process
from rivermark.runtime.savepoint.resume import Order
from rivermark.runtime.savepoint.upgrade import UpgradeTakenBack, upgrade
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, READINGS, reading, run
from tests.spark.helpers.windowed_streams import Counted, Read
from tests.spark.runtime.savepoint.test_guard import COUNTS, CountFurther, CountText, settle

pytestmark = pytest.mark.spark


class CountAndFail(CountFurther):
    """New code with a state that was added, and a fault that its second batch meets."""

    def on_event(self, event: Read, ctx: Context[Counted]) -> None:
        if event.at % 7_200_000 > 3_600_000:
            raise ValueError("a fault of the new code")
        super().on_event(event, ctx)


def changed(process: type) -> Stream:
    return replace(COUNTS, build=run_process(process, buckets=2))


def attempt(spark: SparkSession, settings: Settings, stream: Stream) -> int:
    order = Order(settings=settings, topology=Topology([READINGS, stream]), run_id="u")
    return upgrade(order, stream, spark, by="tests").batches


@pytest.mark.long
def test_new_code_that_fails_leaves_each_row_once_and_that_which_runs_goes_on(
    spark: SparkSession, settings: Settings
) -> None:
    settings = settings.model_copy(update={"files_per_trigger": 1})
    landing, store = Landing(Path(settings.landing_root)), DesiredStore(settings.state)
    oracle: dict[str, int] = {}
    expected = []

    def land(hour: int, *, fine: bool) -> None:
        minutes = [60 * hour + (1 if fine else 20) * n for n in range(1, 3)]
        landing.put(f"{FOLDER}/{hour}.json", *[reading(m, f"s{m % 2}", 1.0) for m in minutes])
        run(spark, settings, READINGS)
        for minute in minutes:
            sensor = f"s{minute % 2}"
            oracle[sensor] = oracle.get(sensor, 0) + 1
            expected.append((sensor, oracle[sensor]))

    def counts() -> list[tuple[str, int]]:
        table = DeltaTable(settings.lake().path(COUNTS.tables[0])).to_pyarrow_table()
        return sorted(
            zip(*(table[name].to_pylist() for name in ("sensor", "readings")), strict=True)
        )

    land(0, fine=True)
    settle(spark, settings, COUNTS)
    store.set(COUNTS.group, "run", by="tests", reason="")

    land(2, fine=True)
    land(3, fine=False)
    before = counts()
    with pytest.raises(RivermarkError, match=r"is incompatible: .*Nothing was stopped"):
        attempt(spark, settings, changed(CountText))
    assert store.get(COUNTS.group).state == "run"

    with pytest.raises(UpgradeTakenBack, match="a fault of the new code"):
        attempt(spark, settings, changed(CountAndFail))
    assert counts() == before
    assert store.get(COUNTS.group).state == "paused"

    settle(spark, settings, COUNTS)
    assert counts() == sorted(expected)
    store.set(COUNTS.group, "run", by="tests", reason="")
    land(4, fine=True)
    assert attempt(spark, settings, changed(CountFurther)) > 0
    assert store.get(COUNTS.group).state == "run"
    assert counts() == sorted(expected)
