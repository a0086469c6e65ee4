"""The job that reprocesses: what it is asked, what it shows, what it refuses."""

from __future__ import annotations

from datetime import date
from typing import Any

import dagster as dg
import pytest

from rivermark.model.errors import PartitionStillOpen
from tests.platform.conftest import FakeRuntime, failure

pytestmark = pytest.mark.platform

HOURLY = dg.AssetKey(["taxi", "hourly"])


def run(
    defs: dg.Definitions, instance: dg.DagsterInstance, **config: Any
) -> dg.ExecuteInProcessResult:
    """A run of the taxi group's job."""
    given = {"stream": "taxi/hourly", "first": "2026-03-02"} | config
    return defs.resolve_job_def("taxi_reprocess").execute_in_process(
        instance=instance,
        run_config={"ops": {"reprocess_taxi": {"config": given}}},
        raise_on_error=False,
    )


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rivermark.backfill.reprocess.wait_until_closed", lambda *_, **__: None)


@pytest.mark.usefixtures("closed")
def test_a_rehearsal_is_the_default_and_shows_its_report_at_table_and_run(
    defs: dg.Definitions, instance: dg.DagsterInstance, runtime: FakeRuntime
) -> None:
    result = run(defs, instance, as_of="7")

    assert result.success
    assert runtime.recomputed == [("taxi/hourly", date(2026, 3, 2), date(2026, 3, 2), 7)]
    assert instance.get_materialized_partitions(HOURLY) == set()
    (seen,) = instance.fetch_observations(HOURLY, limit=1).records
    assert seen.asset_observation is not None
    told = {k: v.value for k, v in seen.asset_observation.metadata.items()}
    assert (told["mode"], told["rows_added"], told["rows_removed"]) == ("rehearsed", 14, 4)
    assert "driver=…" in str(told["samples"])
    (handled,) = [e for e in result.all_node_events if e.is_successful_output]
    output = handled.step_output_data.metadata
    assert "| taxi/hourly | 14 | 4 | 0 | 86 |" in str(output["taxi/hourly rehearsed"].value)


@pytest.mark.usefixtures("closed")
def test_replaced_days_are_materialized_each(
    defs: dg.Definitions, instance: dg.DagsterInstance, runtime: FakeRuntime
) -> None:
    assert run(defs, instance, way="replace", last="2026-03-03").success
    assert instance.get_materialized_partitions(HOURLY) == {"2026-03-02", "2026-03-03"}
    told = {
        event.partition: {k: v.value for k, v in event.metadata.items()}
        for record in instance.fetch_materializations(HOURLY, limit=5).records
        if (event := record.asset_materialization) is not None
    }
    # Each day has its own numbers: all rows that differ are of the first.
    rows = {
        day: (shown["rows_added"], shown["rows_after"], shown["dagster/partition_row_count"])
        for day, shown in told.items()
    }
    assert rows == {"2026-03-02": (14, 100, 100), "2026-03-03": (0, 0, 0)}


def test_an_open_day_fails_with_what_to_do(
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    runtime: FakeRuntime,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wait(*_: Any, **__: Any) -> None:
        raise PartitionStillOpen("2026-03-02 is still open")

    monkeypatch.setattr("rivermark.backfill.reprocess.wait_until_closed", wait)

    result = run(defs, instance, way="replace")

    assert "is still open" in failure(result)
    assert runtime.recomputed == []


@pytest.mark.usefixtures("closed")
@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"first": ""}, "no day was given"),
        (
            {"way": "what_if"},
            "nothing to compare: give build=MODULE:FUNCTION for other code, since",
        ),
        ({"way": "what_if", "what_if": {"limit": "3"}}, "has no parameter 'limit'"),
        ({"way": "what_if", "what_if": {"build": "os:system"}}, "expected a function of"),
        ({"way": "undo", "undo": "nobody", "first": ""}, "was never reprocessed as"),
        ({"way": "replace", "what_if": {"limit": "1"}}, "leave out what_if (--what-if)"),
        ({"what_if": {"limit": "1"}}, "a rehearsal only compares what the declared build returns"),
        ({"way": "replace", "undo": "20260302-120000-abcd"}, "leave out undo (--undo)"),
        ({"way": "rehearse", "follow_ups": True}, "leave out follow_ups (--follow-ups)"),
        ({"way": "undo", "undo": "x"}, "an undo knows its days and versions: leave out first"),
        ({"as_of": '{"taxi/ridez": 1}'}, "'taxi/ridez' is not read"),
    ],
)
def test_what_makes_no_sense_is_refused(
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    runtime: FakeRuntime,
    config: dict[str, Any],
    told: str,
) -> None:
    assert told in failure(run(defs, instance, **config))
    assert runtime.recomputed == []


@pytest.mark.parametrize("stream", ["watch/alerts", "taxi/rides"])
def test_the_launchpad_offers_the_derived_streams_of_the_group(
    defs: dg.Definitions, instance: dg.DagsterInstance, runtime: FakeRuntime, stream: str
) -> None:
    with pytest.raises(dg.DagsterInvalidConfigError) as refused:
        run(defs, instance, stream=stream)

    assert "['taxi/daily', 'taxi/hourly', 'taxi/local']" in str(refused.value)
    assert runtime.recomputed == []


def test_a_day_that_is_none_is_refused_before_the_run(
    defs: dg.Definitions, instance: dg.DagsterInstance, runtime: FakeRuntime
) -> None:
    assert not run(defs, instance, first="tomorrow").success
    assert runtime.recomputed == []
