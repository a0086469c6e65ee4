"""Streams in somebody's Dagster project: nothing of theirs changes, nothing of ours collides."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus
from dagster._daemon.types import DaemonHeartbeat

import rivermark.dagster
from rivermark.dagster.jobs.hosting import lacking
from rivermark.model.errors import DeclarationError
from tests.platform.small_topology import SMALL

pytestmark = pytest.mark.platform

MERGED = """
import json
import dagster as dg
import rivermark.dagster
from tests.platform.small_topology import SMALL

@dg.asset(deps=[dg.AssetKey(["streams", "taxi", "hourly"])])
def report(platform: dg.ResourceParam[str], spark: dg.ResourceParam[str]) -> None: ...

@dg.op
def rehearse() -> None: ...

@dg.job
def watch() -> None:
    rehearse()

@dg.job
def upkeep() -> None:
    rehearse()

mine = dg.Definitions(
    assets=[report], jobs=[watch, upkeep, dg.define_asset_job("dashboard", selection=[report])],
    schedules=[dg.ScheduleDefinition(name="upkeep_nightly", cron_schedule="0 0 * * *", job=upkeep)],
    resources={"platform": "mine", "spark": "mine"}, executor=dg.multiprocess_executor,
)
defs = dg.Definitions.merge(mine, rivermark.dagster.definitions(SMALL, prefix="streams"))
dg.Definitions.validate_loadable(defs)
repository = defs.get_repository_def()
jobs = {job.name: job.executor_def.name for job in repository.get_all_jobs()}
graph = defs.resolve_asset_graph()
print(json.dumps({
    "jobs": jobs,
    "keys": [key.to_user_string() for key in graph.get_all_asset_keys()],
    "pools": sorted({pool for job in repository.get_all_jobs() for n in job.nodes
                     for pool in n.definition.pools}),
    "clocks": [s.name for s in (*repository.schedule_defs, *repository.sensor_defs)],
    "above report": [k.to_user_string() for k in graph.get(dg.AssetKey("report")).parent_keys],
}))
"""


@pytest.fixture(scope="module")
def merged() -> dict[str, Any]:
    """What a project has after it was merged with streams whose names have a prefix."""
    code = textwrap.dedent(MERGED)
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_names_of_streams_have_the_prefix_and_those_of_the_project_none(
    merged: dict[str, Any],
) -> None:
    own = {"watch", "upkeep", "dashboard", "__ASSET_JOB"}
    jobs = {*merged["jobs"]}

    assert own <= jobs
    assert {"streams_watch", "streams_taxi_live", "streams_upkeep"} <= jobs
    assert all("streams_" in name for name in jobs - own)
    assert all(key.startswith("streams/") for key in merged["keys"] if key != "report")
    assert all("streams_" in pool for pool in merged["pools"])
    assert all(name == "upkeep_nightly" or "streams_" in name for name in merged["clocks"])
    assert merged["above report"] == ["streams/taxi/hourly"]


def test_jobs_of_streams_run_in_one_process_and_others_as_before(merged: dict[str, Any]) -> None:
    executors = merged["jobs"]

    assert {executors[name] for name in ("watch", "upkeep", "dashboard")} == {"multiprocess"}
    assert {e for name, e in executors.items() if "streams_" in name} == {"in_process"}


def test_only_the_parts_that_are_wanted_are_there() -> None:
    defs = rivermark.dagster.definitions(SMALL, parts=("checks", "jobs", "sensors"))

    assert not defs.schedules
    assert defs.sensors
    assert not rivermark.dagster.definitions(SMALL, parts=()).jobs
    with pytest.raises(DeclarationError, match="sensors start jobs; give 'jobs', too"):
        rivermark.dagster.definitions(SMALL, parts=("checks", "sensors"))
    with pytest.raises(DeclarationError, match="did you mean 'sensors'"):
        rivermark.dagster.definitions(SMALL, parts=("sensor",))


def test_one_process_has_one_prefix() -> None:
    rivermark.dagster.definitions(SMALL, parts=())

    with pytest.raises(DeclarationError, match="a code location of its own"):
        rivermark.dagster.definitions(SMALL, prefix="other", parts=())
    with pytest.raises(DeclarationError, match="letters, digits"):
        rivermark.dagster.definitions(SMALL, prefix="a-b", parts=())


def test_an_instance_that_lacks_something_is_told_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    file = tmp_path / "dagster.yaml"
    template = Path(__file__).parents[2] / "instance" / "dagster.yaml"

    def told(text: str) -> str:
        file.write_text(text)
        with dg.DagsterInstance.get() as instance:
            return " ".join(lacking(instance))

    assert told(template.read_text()) == ""
    assert "concurrency.pools.default_limit to 1" in told("run_monitoring: {enabled: true}")
    pools = "concurrency: {pools: {default_limit: 1, granularity: run}}\n"
    assert "run_monitoring.enabled to true" in told(pools + "run_monitoring: {enabled: false}")
    limited = "run_monitoring: {enabled: true, max_runtime_seconds: 60}"
    assert "leave run_monitoring.max_runtime_seconds out" in told(pools + limited)
    with dg.DagsterInstance.ephemeral() as instance:
        assert [*lacking(instance)] == []


def test_a_live_run_that_nothing_would_start_again_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rivermark.dagster.definitions(SMALL, parts=())
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    template = Path(__file__).parents[2] / "instance" / "dagster.yaml"
    (tmp_path / "dagster.yaml").write_text(template.read_text())
    now = datetime.now(UTC).timestamp()
    with dg.DagsterInstance.get() as instance:
        assert "no daemon evaluates sensors" in " ".join(lacking(instance, live=True))
        assert [*lacking(instance)] == []

        instance.add_daemon_heartbeat(DaemonHeartbeat(now, "SENSOR", "id"))
        assert [*lacking(instance, live=True)] == []

        origin = RemoteInstigatorOrigin(
            RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("here"), "__repository__"),
            "restart_streams",
        )
        kind, off = InstigatorType.SENSOR, InstigatorStatus.STOPPED
        instance.add_instigator_state(InstigatorState(origin, kind, off))
        (told,) = lacking(instance, live=True)
    assert "the sensor restart_streams is switched off" in told
