"""The instance that comes with the platform, against what the platform needs of it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from assets.topology import TOPOLOGY
from rivermark.runtime.restart.liveness import Patience

pytestmark = pytest.mark.platform

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = ROOT / "instance" / "dagster.yaml"
PREPARE = ROOT / "setup" / "dagster_home.sh"


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    shutil.copy(TEMPLATE, tmp_path / "dagster.yaml")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    with dg.DagsterInstance.get() as instance:
        yield instance


def test_b091_all_groups_can_stream_at_once_and_leave_places_for_other_runs(
    instance: dg.DagsterInstance,
) -> None:
    queue = instance.get_concurrency_config().run_queue_config

    assert queue is not None
    streams, backfills = queue.tag_concurrency_limits
    assert (streams["key"], streams["value"]) == ("rivermark/mode", "continuous")
    assert backfills["key"] == "dagster/backfill"
    assert len(TOPOLOGY.groups()) <= streams["limit"]
    assert streams["limit"] + backfills["limit"] < queue.max_concurrent_runs


def test_b091_no_general_time_limit_ends_the_streams(instance: dg.DagsterInstance) -> None:
    assert instance.run_monitoring_enabled
    assert instance.run_monitoring_max_runtime_seconds == 0


def test_a_stream_group_runs_once_and_a_second_run_waits_in_the_queue(
    instance: dg.DagsterInstance,
) -> None:
    pools = instance.get_concurrency_config().pool_config

    assert pools.default_pool_limit == 1
    assert pools.pool_granularity is not None
    assert pools.pool_granularity.value == "run"


def test_only_the_sensor_restarts_streams(instance: dg.DagsterInstance) -> None:
    assert instance.run_retries_max_retries == 0
    assert not instance.run_retries_retry_on_asset_or_op_failure
    assert instance.run_monitoring_max_resume_run_attempts == 0


def test_dagster_does_not_give_up_on_a_start_before_the_sensor_does(
    instance: dg.DagsterInstance,
) -> None:
    patience = Patience().start.total_seconds()
    assert instance.run_monitoring_start_timeout_seconds >= patience


def test_everything_is_kept_below_dagster_home_and_nothing_is_sent(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    assert (tmp_path / "history" / "runs.db").is_file()
    assert not instance.telemetry_enabled


def test_the_deployment_itself_loads() -> None:
    from platform_defs.definitions import defs

    dg.Definitions.validate_loadable(defs)
    assert defs.resolve_asset_graph().get_all_asset_keys()


def test_a_home_is_prepared_once_and_a_file_of_ones_own_is_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for _ in range(2):
        subprocess.run([PREPARE, home], check=True)
    assert (home / "dagster.yaml").read_text() == TEMPLATE.read_text()

    (home / "dagster.yaml").unlink()
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    subprocess.run([PREPARE, home], check=True)

    assert (home / "dagster.yaml").read_text() == "telemetry: {enabled: false}\n"


def test_n065_a_job_runs_without_an_instance_and_with_telemetry(tmp_path: Path) -> None:
    """As somebody types it who has set nothing: an instance of its own, gone afterwards."""
    environment = {k: v for k, v in os.environ.items() if k != "DAGSTER_HOME"}
    environment |= {
        "HOME": str(tmp_path),
        "RIVERMARK_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "dagster", "job", "execute", "-m", "platform_defs.definitions"]

    done = subprocess.run(
        [*command, "-j", "report_days"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert "RUN_SUCCESS" in done.stderr
    assert "PartitionsDefinitions" not in done.stderr
