"""The job of savepoints and forks: the console's verbs by run configuration, and its refusals."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from rivermark.dagster.jobs.names import table_key
from rivermark.dagster.jobs.savepoints import SavepointConfig
from rivermark.dagster.resources.spark import SparkResource
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.savepoint.fork import forks
from rivermark.runtime.savepoint.store import savepoints
from rivermark.settings import Settings
from tests.platform.conftest import definitions_in, failure
from tests.unit.cli.conftest import HOURLY, SHOP
from tests.unit.runtime.savepoint.test_going_back import numbers, ran

pytestmark = pytest.mark.platform


@pytest.fixture
def defs(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> dg.Definitions:
    """The shop, whose stream has finished two batches."""
    ran(settings, 0, 1)
    monkeypatch.setattr(SparkResource, "spark_session", property(lambda _: None))
    return definitions_in(SHOP, settings.home)


def run(
    defs: dg.Definitions, instance: dg.DagsterInstance, **config: Any
) -> dg.ExecuteInProcessResult:
    """A run of the job, with what a person types into the launchpad."""
    return defs.resolve_job_def("savepoint").execute_in_process(
        instance=instance,
        run_config={"ops": {"keep_or_go_back": {"config": config}}},
        raise_on_error=False,
    )


def test_a_stream_is_kept_and_put_back(
    defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings
) -> None:
    assert run(defs, instance, stream=HOURLY.name).success
    (made,) = savepoints(settings.lake(), HOURLY.name)
    (seen,) = instance.fetch_observations(table_key(HOURLY.tables[0]), limit=1).records
    assert seen.asset_observation is not None
    assert seen.asset_observation.metadata["savepoint"].value == made.id
    ran(settings, 2)

    of_it = {"stream": HOURLY.name, "savepoint": made.id}
    assert run(defs, instance, way="verify", **of_it).success
    assert "newest restore point" in failure(run(defs, instance, way="delete", **of_it))
    assert run(defs, instance, way="resume", **of_it).success
    assert numbers(settings) == [0, 1]


def test_a_fork_is_compared_and_promoted_or_dropped(
    defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings
) -> None:
    assert run(defs, instance, stream=HOURLY.name, way="stop_and_take").success
    of_it = {"stream": HOURLY.name, "savepoint": "latest", "way": "fork"}
    ran(settings, 2)
    for name in ("one", "two"):
        assert run(defs, instance, **of_it, fork=name).success
    days = {"first": "2026-03-02", "last": "2026-03-02"}
    assert run(defs, instance, way="compare_fork", fork="one", **days).success
    assert run(defs, instance, way="drop_fork", fork="two").success
    assert run(defs, instance, way="promote_fork", fork="one").success
    assert numbers(settings) == [0, 1]
    assert not forks(settings.lake())


def test_a_stream_is_upgraded_and_one_without_state_is_not_rescaled(
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[str] = []

    def drained(*hosted: Any, run_id: str) -> dict[str, StreamSummary]:
        (stream,) = hosted[3]
        tried.append(stream.name)
        return {stream.name: StreamSummary(stream.name, batches=3)}

    monkeypatch.setattr("rivermark.runtime.savepoint.upgrade.run_bounded", drained)
    assert run(defs, instance, way="upgrade", stream=HOURLY.name).success
    assert tried == [HOURLY.name]
    assert len(savepoints(settings.lake(), HOURLY.name)) == 1
    seen = instance.fetch_observations(table_key(HOURLY.tables[0]), limit=1).records[0]
    assert seen.asset_observation is not None
    assert seen.asset_observation.metadata["batches"].value == 3

    other = run(defs, instance, way="rescale", stream=HOURLY.name, partitions=8)
    assert "keeps no state" in failure(other)


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"way": "resume", "stream": "shop/hourly"}, "resume: give the savepoint"),
        ({"way": "take"}, "take: give the stream"),
        ({"way": "rescale", "stream": "shop/hourly"}, "rescale: give the partitions"),
        ({"way": "take", "stream": "shop/hourly", "fork": "x"}, "fork does not go with way take"),
        ({"way": "drop_fork", "fork": "x", "accept": True}, "accept does not go with"),
    ],
)
def test_a_field_that_lacks_or_does_not_apply_is_named(
    config: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(Exception, match=sentence):
        SavepointConfig(**config)
