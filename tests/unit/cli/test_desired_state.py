import threading
import time

from rivermark.cli.run import stop_on_pause
from rivermark.model.topology import Topology
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.settings import Settings
from tests.unit.cli.conftest import HOURLY, ORDERS, Run

DEADLINE_SECONDS = 10


def test_a_pause_and_a_resume_are_wishes_with_a_name_and_a_reason(
    rivermark: Run, shop: Topology, settings: Settings
) -> None:
    rivermark("pause", "shop", "--reason", "stocktaking")
    paused = DesiredStore(settings.state).get("shop")
    rivermark("resume", "shop")
    resumed = DesiredStore(settings.state).get("shop")

    assert (paused.state, paused.reason) == ("paused", "stocktaking")
    assert paused.by
    assert resumed.state == "run"


def test_a_group_that_is_not_there_cannot_be_paused(
    rivermark: Run, shop: Topology, settings: Settings
) -> None:
    result = rivermark("pause", "kitchen")

    assert result.exit_code == 1
    assert "there are: reports, shop" in result.stderr
    assert DesiredStore(settings.state).all() == {}


def test_a_pause_stops_a_continuous_run(settings: Settings) -> None:
    stop = threading.Event()
    store = DesiredStore(settings.state)

    with stop_on_pause(settings, [ORDERS, HOURLY], stop):
        store.set("reports", "paused", by="ada", reason="not this group")
        store.set("shop", "paused", by="ada", reason="enough")
        assert stop.wait(DEADLINE_SECONDS)


def test_a_pause_from_before_the_run_is_not_obeyed(settings: Settings) -> None:
    DesiredStore(settings.state).set("shop", "paused", by="ada", reason="yesterday")
    stop = threading.Event()
    time.sleep(0.01)

    with stop_on_pause(settings, [ORDERS], stop):
        assert not stop.wait(2.5)
