"""The rehearsal: for people's continuous integration."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from rivermark.cli.demo_scene import LandedInput, Scene
from rivermark.dagster.jobs.run_config import inside
from rivermark.model.check import CheckResult
from rivermark.model.errors import RivermarkError, StreamFailed
from rivermark.model.stream import AnyStream
from rivermark.model.suite import Suite
from rivermark.model.table import Table
from rivermark.monitor.checks.check import StreamCheck
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.settings import Settings
from tests.platform.conftest import FakeRuntime
from tests.platform.small_topology import HOURLY

pytestmark = pytest.mark.platform


@pytest.fixture(autouse=True)
def one_file_landed(runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    def bounded(*given: Any, **named: Any) -> dict[str, StreamSummary]:
        found = runtime.bounded(*given, **named)
        found["taxi/rides"].files = len(list(Path(given[1].landing_root).glob("*")))
        return found

    def land(landing: Path) -> Sequence[LandedInput]:
        landing.mkdir(parents=True)
        (landing / "rides.json").write_text("{}")
        return [LandedInput("rides", 1, 1, 1)]

    def declared(stream: AnyStream) -> tuple[tuple[Table, Suite], ...]:
        return ((stream.tables[0], stream.suite),) if stream.suite else ()

    monkeypatch.setattr("rivermark.dagster.jobs.rehearsal.run_bounded", bounded)
    # It makes no tables, of which every one has a suite.
    monkeypatch.setattr("rivermark.dagster.jobs.rehearsal.suites_of", declared)
    monkeypatch.setattr(
        "rivermark.dagster.jobs.rehearsal.scenes", lambda: {"taxi": Scene(land=land)}
    )


def rehearse(
    defs: dg.Definitions, instance: dg.DagsterInstance, **config: Any
) -> dg.ExecuteInProcessResult:
    return defs.resolve_job_def("rehearsal").execute_in_process(
        instance=instance,
        run_config={"ops": {"rehearse": {"config": config}}},
        raise_on_error=False,
    )


def summary(settings: Settings, name: str = "rehearsal.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((settings.home / name).read_text())
    return found


def test_a_good_rehearsal_says_so_for_machines_and_has_a_lake_and_a_state_of_its_own(
    defs: dg.Definitions, instance: dg.DagsterInstance, runtime: FakeRuntime, settings: Settings
) -> None:
    assert rehearse(defs, instance).success

    found = summary(settings)
    assert found["ok"] is True
    assert found["failures"] == []
    assert found["streams"]["taxi/rides"]["rows_in"] == 10
    assert set(found["tables"]) >= {"taxi/rides_raw", "taxi/rides", "watch/alerts"}
    assert {c["check"] for c in found["checks"]} >= {"rows_are_unique", "few_rows_are_late"}
    (used,) = runtime.settings
    for root in (used.lake_root, used.landing_root, str(used.state)):
        assert Path(root).is_relative_to(settings.home / "rehearsals")
    assert not Path(settings.lake_root).exists()


def test_a_stream_that_fails_fails_it_with_its_error_in_the_summary(
    defs: dg.Definitions, instance: dg.DagsterInstance, runtime: FakeRuntime, settings: Settings
) -> None:
    runtime.error = StreamFailed("taxi/hourly", "column 'tip' is not there")

    assert not rehearse(defs, instance).success
    assert summary(settings)["ok"] is False
    assert summary(settings)["failures"] == [
        "stream 'taxi/hourly' failed: column 'tip' is not there"
    ]


def test_a_broken_claim_fails_it_and_a_warning_does_not(
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def claims(severity: Any) -> Any:
        broken = StreamCheck(
            name="rows_are_unique",
            table=HOURLY.tables[0],
            stream="taxi/hourly",
            description="",
            severity=severity,
            evaluate=lambda settings, now: CheckResult(
                name="rows_are_unique",
                severity=severity,
                passed=False,
                observed="2 keys more than once",
            ),
        )
        return lambda stream: (broken,) if stream is HOURLY else ()

    monkeypatch.setattr("rivermark.dagster.jobs.rehearsal.checks_of_stream", claims("warning"))
    assert rehearse(defs, instance).success

    monkeypatch.setattr("rivermark.dagster.jobs.rehearsal.checks_of_stream", claims("critical"))
    assert not rehearse(defs, instance).success
    assert summary(settings)["failures"] == ["taxi/hourly: rows_are_unique: 2 keys more than once"]


def test_without_a_file_nothing_was_rehearsed(
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rivermark.dagster.jobs.rehearsal.scenes", dict)

    assert not rehearse(defs, instance).success
    assert "nothing was rehearsed" in summary(settings)["failures"][0]


def test_samples_of_ones_own_are_read_where_they_lie(
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    runtime: FakeRuntime,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "samples" / "taxi").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)

    assert rehearse(defs, instance, samples="samples").success
    assert runtime.settings[0].landing_root == str(tmp_path / "samples")


@pytest.mark.parametrize(
    "config", [{"samples": "../elsewhere"}, {"summary": "../x.json"}], ids=["samples", "summary"]
)
def test_a_path_outside_of_the_home_is_refused(
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    runtime: FakeRuntime,
    settings: Settings,
    config: dict[str, str],
) -> None:
    assert not rehearse(defs, instance, **config).success
    assert runtime.hosted == []
    if "samples" in config:
        assert "give a path relative to it, without '..'" in summary(settings)["failures"][0]


@pytest.mark.parametrize(
    "path",
    ["/etc", "../elsewhere", "samples/../../x", ".", "a\x00b", "/tmp/x.json", "", "out/passwd"],
)
def test_a_path_that_leads_out_of_a_folder_is_refused_with_what_to_do(
    tmp_path: Path, path: str
) -> None:
    (tmp_path / "out").symlink_to("/etc")

    with pytest.raises(RivermarkError, match=r"give a path relative to it, without '\.\.'"):
        inside(tmp_path, path)


def test_some_streams_alone_can_be_rehearsed(
    defs: dg.Definitions, instance: dg.DagsterInstance, runtime: FakeRuntime, settings: Settings
) -> None:
    rehearse(defs, instance, streams=["taxi/rides"])
    assert runtime.hosted == [("bounded", ("taxi/rides",))]

    assert not rehearse(defs, instance, streams=["taxi/ridez"]).success
    assert "no stream is named 'taxi/ridez'" in summary(settings)["failures"][0]


def test_a_stream_without_samples_is_named_and_its_suite_is_not_asked(
    defs: dg.Definitions, instance: dg.DagsterInstance, runtime: FakeRuntime, settings: Settings
) -> None:
    runtime.rows = 0

    assert rehearse(defs, instance).success
    assert "taxi/hourly" in summary(settings)["without_input"]
