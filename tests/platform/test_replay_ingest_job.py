"""The job by which an ingest is replaced by its replay: rehearsed, put in place, undone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from rivermark import Topology
from rivermark.backfill.registry import newest_records
from rivermark.dagster.jobs.names import table_key
from rivermark.dagster.resources.spark import SparkResource
from rivermark.settings import Settings
from tests.platform.conftest import definitions_in, failure
from tests.spark.helpers.landing import Landing
from tests.unit.backfill.test_ingest_replacement import NOW, THEN, admit, land, oracle, state

pytestmark = pytest.mark.platform


@pytest.fixture
def defs(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> dg.Definitions:
    """Rows that were admitted by the rules of then, in a deployment that declares those of now."""
    land(Landing(Path(settings.landing_root)))
    admit(settings, THEN)
    monkeypatch.setattr(SparkResource, "spark_session", property(lambda _: None))
    return definitions_in(Topology([NOW]), settings.home)


def run(
    defs: dg.Definitions, instance: dg.DagsterInstance, **config: str
) -> dg.ExecuteInProcessResult:
    """A run of the job, with what a person types into the launchpad."""
    given = {"config": {"stream": NOW.name, **config}}
    return defs.resolve_job_def("replay_ingest").execute_in_process(
        instance=instance, run_config={"ops": {"decide_again": given}}, raise_on_error=False
    )


def observed(instance: dg.DagsterInstance) -> dict[str, Any]:
    """What the newest run says at the table."""
    (seen,) = instance.fetch_observations(table_key(NOW.tables[0]), limit=1).records
    assert seen.asset_observation is not None
    return {name: value.value for name, value in seen.asset_observation.metadata.items()}


def test_an_ingest_is_rehearsed_replaced_and_put_back_by_run_configuration(
    defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings, tmp_path: Path
) -> None:
    before, days = state(settings), {"first": "2024-03-01", "last": "2024-03-03"}

    assert run(defs, instance, **days).success
    assert state(settings) == before, "a rehearsal is the default"
    changed = observed(instance)["rows_changed"]

    assert run(defs, instance, **days, way="replace").success
    assert state(settings) == oracle(tmp_path)
    assert observed(instance)["rows_changed"] == changed > 0

    record = newest_records(settings.lake(), NOW.name)[0]
    assert run(defs, instance, way="undo", undo=record.id).success
    assert state(settings) == before


def test_a_replacement_says_which_days_it_needs(
    defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings
) -> None:
    before = state(settings)

    assert "no day was given" in failure(run(defs, instance, way="replace"))
    assert state(settings) == before
