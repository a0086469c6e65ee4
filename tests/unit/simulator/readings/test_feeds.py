"""Generated readings as they land."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from simulator.feeds import drip_feeds
from simulator.readings.feeds import RADIO, sensor_feeds
from simulator.readings.world import SensorWorld
from tests.oracles.landed import accept
from tests.oracles.readings import SensorOracle

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
LENGTH = timedelta(minutes=2)
TEN_SECONDS = timedelta(seconds=10)


def test_what_lands_is_late_lost_and_repeated_as_declared(tmp_path: Path) -> None:
    world = SensorWorld()
    sent = {(r.sensor_id, r.sequence): r.temperature for r in world.readings(NOON, LENGTH)}

    done = drip_feeds(tmp_path, sensor_feeds(world, NOON, LENGTH), every=TEN_SECONDS)

    oracle = SensorOracle(tmp_path)
    landed = oracle.accepted.admitted + oracle.accepted.late
    arrived = {(r["sensor_id"], r["sequence"]): r["temperature"] for r in landed}
    assert done.rows == len(landed)
    assert arrived.items() <= sent.items()
    lost, repeats = len(sent) - len(arrived), len(landed) - len(arrived)
    # Twice the declared rates would be out of reach of chance at 2,400 readings.
    for found, rate in (
        (lost, RADIO.loss),
        (repeats, RADIO.duplicates),
        (len(oracle.accepted.late), RADIO.late),
    ):
        assert 0 < found < 2 * rate * len(sent)


def test_thresholds_and_smoke_levels_land_beside_the_readings(tmp_path: Path) -> None:
    feeds = sensor_feeds(SensorWorld(), NOON, LENGTH, controls=True)
    drip_feeds(tmp_path, feeds, every=TEN_SECONDS)

    thresholds = accept(tmp_path / "readings/thresholds", timedelta(seconds=5))
    smoke = accept(tmp_path / "readings/smoke_levels", timedelta(seconds=5))
    assert len(thresholds.admitted) == 3 * LENGTH // timedelta(seconds=5)
    assert {row["level"] for row in smoke.admitted} == {"High", "Low"}
    assert len(smoke.admitted) == LENGTH.total_seconds()
    assert thresholds.late + smoke.late == []
