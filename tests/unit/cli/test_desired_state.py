from rivermark.model.topology import Topology
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.settings import Settings
from tests.unit.cli.conftest import Run


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

    assert result.exit_code == 2
    assert "there are: reports, shop" in result.stderr
    assert DesiredStore(settings.state).all() == {}
