"""Checks beside streams that never end."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import dagster as dg
import pytest

from rivermark.dagster.jobs.live_checks import Crash, LiveChecks, live_checks
from rivermark.model.check import CheckResult
from rivermark.model.stream import AnyStream
from rivermark.monitor.checks.check import StreamCheck
from rivermark.runtime.restart.outbox import Outbox
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.platform.conftest import FakeRuntime
from tests.platform.small_topology import HOURLY, RIDES

pytestmark = pytest.mark.platform

NEVER = timedelta(days=1)
CHECKS = "rivermark.dagster.jobs.live_checks.checks_of_stream"


def a_claim(answer: Any, name: str = "rows_are_unique") -> StreamCheck:
    return StreamCheck(
        name=name,
        table=HOURLY.tables[0],
        stream="taxi/hourly",
        description="",
        severity="critical",
        evaluate=answer,
    )


def broken(settings: Settings, now: datetime) -> CheckResult:
    return CheckResult(
        name="rows_are_unique",
        severity="critical",
        passed=False,
        observed="2 keys more than once",
        numbers={"rows_surplus": 2},
    )


def crash(settings: Settings, now: datetime) -> CheckResult:
    raise OSError("the log cannot be read")


def at_once(checks: LiveChecks) -> LiveChecks:
    for questions in checks.rounds:
        questions.due = 0
    return checks


def asked(settings: Settings, stream: AnyStream, every: timedelta) -> LiveChecks:
    """The checks of a stream, due at once; suites are not asked, so no engine is."""
    no_engine: Any = None
    checks = live_checks([stream], settings, no_engine, checks_every=every, suites_every=None)
    return at_once(checks)


def found_within(checks: LiveChecks, seconds: float, count: int) -> list[Any]:
    found: list[Any] = []

    def enough() -> bool:
        found.extend(checks.take())
        return len(found) >= count

    wait_until(enough, seconds, reason=f"{count} results")
    return found


def test_every_claim_of_the_hosted_streams_is_asked_and_no_other(settings: Settings) -> None:
    checks = asked(settings, RIDES, NEVER)

    with checks.running():
        found = found_within(checks, 20, 5)

    assert {result.check_name for result in found} == {
        "is_alive",
        "every_row_is_accounted_for",
        "few_rows_are_late",
        "few_rows_are_set_aside",
        "files_are_as_they_were_read",
    }


def test_questions_are_asked_again_when_they_are_due(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CHECKS, lambda _: (a_claim(broken),))
    checks = asked(settings, HOURLY, timedelta(0))

    with checks.running():
        assert len(found_within(checks, 10, 2)) >= 2


def test_a_crash_is_no_answer_and_keeps_no_other_question_from_being_asked(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = (a_claim(crash, "a_crash"), a_claim(broken))
    monkeypatch.setattr(CHECKS, lambda _: claims)
    checks = asked(settings, HOURLY, NEVER)

    with checks.running():
        crashed, answered = found_within(checks, 10, 2)

    assert isinstance(crashed, Crash)
    assert crashed.name == "taxi/hourly a_crash"
    assert answered.check_name == "rows_are_unique"


def holding(settings: Settings, now: datetime) -> CheckResult:
    return replace(broken(settings, now), passed=True, observed="no key more than once")


def warning(settings: Settings, now: datetime) -> CheckResult:
    return replace(broken(settings, now), severity="warning")


class Told:
    """What the messages of a run's checks are, an evaluation after the other."""

    def __init__(self, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
        self.settings, self.outbox = settings, Outbox(settings.state)
        self.answers: dict[str, Any] = {"rows_are_unique": holding}
        monkeypatch.setattr(
            CHECKS, lambda _: [a_claim(self._answer(name), name) for name in self.answers]
        )
        self.start()

    def _answer(self, name: str) -> Any:
        return lambda settings, now: self.answers[name](settings, now)

    def start(self) -> None:
        """Another run of the group, which has evaluated nothing yet."""
        self.checks = asked(self.settings, HOURLY, NEVER)
        self.report()

    def report(self) -> None:
        self.checks.take()
        self.outbox.update("checks taxi", self.checks.troubles(), all_seen=self.checks.decided)

    def after(self, *answers: Any) -> list[str]:
        """The messages that are due after evaluations of the check with these answers."""
        for answer in answers:
            self.answers["rows_are_unique"] = answer
            for questions in self.checks.rounds:
                self.checks._evaluate(questions.checks)
            self.report()
        due = self.outbox.due()
        for notice in due:
            self.outbox.tried(notice, None)
        return [notice.text.partition(": ")[0] for notice in due]


def test_r12_a_broken_check_is_told_after_two_evaluations_in_a_row_and_once_when_it_holds(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(settings, monkeypatch)
    message = "check taxi/hourly rows_are_unique"

    assert told.after(broken) == []
    assert told.after(holding, broken) == [], "never two in a row: a restart healed it"
    assert told.after(broken) == [f"{message} fails"]
    assert told.after(broken, crash, broken) == []
    assert [text[:4] for text in told.after(holding)] == ["over"]
    assert told.after(holding, warning, warning) == []
    assert told.after(crash, crash) == [f"{message} could not be evaluated"]


def test_r12_a_restart_ends_no_message_of_a_check_that_is_still_broken(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run has evaluated nothing at first: it said "over", and then the same again."""
    told = Told(settings, monkeypatch)
    assert len(told.after(broken, broken)) == 1

    told.start()

    assert told.after() == []
    assert told.after(broken) == []
    assert told.after(broken) == []
    assert len(told.after(holding)) == 1


def test_a_live_run_tells_what_its_checks_found_and_goes_on_after_a_crash(
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    runtime: FakeRuntime,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    claims = (a_claim(crash, "is_alive"), a_claim(broken))
    monkeypatch.setattr(
        CHECKS,
        lambda s: claims if s.name == "taxi/hourly" else (),
    )
    given = live_checks
    made: list[LiveChecks] = []

    def soon(*args: Any, **named: Any) -> LiveChecks:
        made.append(at_once(given(*args, **named)))
        return made[0]

    monkeypatch.setattr("rivermark.dagster.jobs.hosting.live_checks", soon)

    def report_again(stop: Any) -> None:
        wait_until(lambda: made[0]._results.qsize() >= 2, 10, reason="both checks have answered")
        # The last stream of the group: after it, the group and its checks are told of.
        runtime.report_to(runtime.report("taxi/local"))

    runtime.before_end = report_again
    result = defs.resolve_job_def("taxi_live").execute_in_process(instance=instance)

    assert result.success
    key = dg.AssetCheckKey(dg.AssetKey(["taxi", "hourly"]), "rows_are_unique")
    (record,) = instance.event_log_storage.get_asset_check_execution_history(key, limit=5)
    assert record.run_id == result.run_id, "of the same run, so that it stays on the page"
    assert record.event is not None
    alive = dg.AssetCheckKey(dg.AssetKey(["taxi", "hourly"]), "is_alive")
    (record,) = instance.event_log_storage.get_asset_check_execution_history(alive, limit=5)
    assert record.event is not None
    failed = record.event.asset_check_evaluation
    assert failed is not None
    assert not failed.passed
    assert failed.description == "could not be evaluated: the log cannot be read"
    logged = [e.user_message for e in instance.all_logs(result.run_id)]
    assert any("is_alive could not be evaluated: the log cannot be read" in m for m in logged)
