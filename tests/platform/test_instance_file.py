import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = ROOT / "instance" / "dagster.yaml"
PREPARE = ROOT / "setup" / "dagster_home.sh"


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    shutil.copy(TEMPLATE, tmp_path / "dagster.yaml")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    with dg.DagsterInstance.get() as instance:
        yield instance


def test_a_stream_group_runs_once_and_a_second_run_waits_in_the_queue(
    instance: dg.DagsterInstance,
) -> None:
    pools = instance.get_concurrency_config().pool_config

    assert pools.default_pool_limit == 1
    assert pools.pool_granularity is not None
    assert pools.pool_granularity.value == "run"


def test_streams_leave_room_for_other_runs(instance: dg.DagsterInstance) -> None:
    queue = instance.get_concurrency_config().run_queue_config

    assert queue is not None
    limits = {limit["key"]: limit["limit"] for limit in queue.tag_concurrency_limits}
    assert limits["rivermark/mode"] + limits["dagster/backfill"] < queue.max_concurrent_runs


def test_dagster_brings_no_failed_stream_back_by_itself(instance: dg.DagsterInstance) -> None:
    assert instance.run_retries_max_retries == 0
    assert not instance.run_retries_retry_on_asset_or_op_failure
    assert instance.run_monitoring_max_resume_run_attempts == 0


def test_no_global_limit_ends_a_long_run(instance: dg.DagsterInstance) -> None:
    assert instance.run_monitoring_enabled
    assert instance.run_monitoring_max_runtime_seconds == 0


def test_everything_is_kept_below_dagster_home_and_nothing_is_sent(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    assert (tmp_path / "history" / "runs.db").is_file()
    assert not instance.telemetry_enabled


def test_a_home_is_prepared_once_and_a_file_of_ones_own_is_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for _ in range(2):
        subprocess.run([PREPARE, home], check=True)
    assert (home / "dagster.yaml").read_text() == TEMPLATE.read_text()

    (home / "dagster.yaml").unlink()
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    subprocess.run([PREPARE, home], check=True)

    assert (home / "dagster.yaml").read_text() == "telemetry: {enabled: false}\n"
