"""The instance that comes with the platform, against what the platform needs of it."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from rivermark.runtime.restart.liveness import Patience

pytestmark = pytest.mark.platform

DAGSTER_YAML = Path(__file__).parents[2] / "instance" / "dagster.yaml"


@pytest.fixture
def instance() -> dict[str, Any]:
    settings: dict[str, Any] = yaml.safe_load(DAGSTER_YAML.read_text())
    return settings


def test_b091_streams_leave_places_for_backfills(instance: dict[str, Any]) -> None:
    runs = instance["concurrency"]["runs"]
    (streams,) = [x for x in runs["tag_concurrency_limits"] if x.get("value") == "continuous"]

    assert streams["key"] == "rivermark/mode"
    assert streams["limit"] < runs["max_concurrent_runs"]


def test_b091_no_general_time_limit_ends_the_streams(instance: dict[str, Any]) -> None:
    assert "max_runtime_seconds" not in instance["run_monitoring"]


def test_a_group_runs_once(instance: dict[str, Any]) -> None:
    assert instance["concurrency"]["pools"]["default_limit"] == 1


def test_only_the_sensor_restarts_streams(instance: dict[str, Any]) -> None:
    assert instance["run_retries"]["retry_on_asset_or_op_failure"] is False
    assert instance["run_retries"]["max_retries"] == 0
    assert instance["run_monitoring"]["max_resume_run_attempts"] == 0


def test_dagster_does_not_give_up_on_a_start_before_the_sensor_does(
    instance: dict[str, Any],
) -> None:
    assert instance["run_monitoring"]["start_timeout_seconds"] >= Patience().start.total_seconds()


def test_b091_all_groups_of_the_deployment_can_stream_at_once(instance: dict[str, Any]) -> None:
    from assets.topology import TOPOLOGY

    limits = instance["concurrency"]["runs"]["tag_concurrency_limits"]
    (streams,) = [x for x in limits if x.get("value") == "continuous"]
    assert len(TOPOLOGY.groups()) <= streams["limit"]


def test_the_deployment_itself_loads() -> None:
    from platform_defs.definitions import defs

    dg.Definitions.validate_loadable(defs)
    assert defs.resolve_asset_graph().get_all_asset_keys()
