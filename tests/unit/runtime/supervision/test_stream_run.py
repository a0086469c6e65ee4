"""Whether a stream of a run is started again, decided without a clock or a query."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rivermark.model.restart_strategy import FixedDelay, NoRestart, RestartStrategy
from rivermark.runtime.supervision.error_classes import Fault
from rivermark.runtime.supervision.stream_run import (
    FAILURES_WHILE_DRAINING,
    SLOW_STARTS,
    StreamRun,
)
from tests.unit.model.test_topology import CLEAN

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
BROKEN = Fault("no space left on device", restartable=True)
LOST = Fault("input is gone", restartable=False)
SLOW = Fault("its Python process did not answer", restartable=True, slow_worker=True)


def stream_run(strategy: RestartStrategy | None = None, *, bounded: bool = False) -> StreamRun:
    run = StreamRun(replace(CLEAN, restart=strategy), bounded)
    run.attempt(NOON)
    run.state = "running"
    return run


def fail(run: StreamRun, fault: Fault, at: datetime = NOON) -> None:
    run.failed(RuntimeError(fault.message), fault, at)


def test_a_live_stream_is_started_again_after_its_delay() -> None:
    run = stream_run()

    fail(run, BROKEN)

    assert (run.state, run.start_at) == ("starting", NOON + 2 * SECOND)
    assert run.fault == BROKEN
    assert not run.ended


@pytest.mark.parametrize(
    ("strategy", "fault", "bounded"),
    [
        (NoRestart(), BROKEN, False),
        (None, LOST, False),
        (FixedDelay(), LOST, True),
        (None, BROKEN, True),
    ],
)
def test_a_stream_fails_for_good(
    strategy: RestartStrategy | None, fault: Fault, bounded: bool
) -> None:
    run = stream_run(strategy, bounded=bounded)

    fail(run, fault)

    assert (run.state, run.start_at) == ("failed", None)
    assert run.ended


def test_a_failure_for_good_stays_whatever_is_reported_later() -> None:
    run = stream_run(NoRestart())
    fail(run, BROKEN)

    run.progressed()

    assert run.fault == BROKEN


def test_a_bounded_run_ends_although_a_strategy_never_gives_up() -> None:
    run = stream_run(FixedDelay(delay=timedelta(0)), bounded=True)
    for _ in range(FAILURES_WHILE_DRAINING - 1):
        fail(run, BROKEN)
        assert run.state == "starting"

    fail(run, BROKEN)

    assert run.state == "failed"


def test_a_slow_python_process_is_started_again_at_once_and_counts_as_no_failure() -> None:
    run = stream_run(NoRestart())
    for _ in range(SLOW_STARTS):
        fail(run, SLOW)
        assert (run.state, run.start_at, run.failures, run.starts) == ("starting", NOON, 0, [])
        run.attempt(NOON)

    fail(run, SLOW)

    assert run.state == "failed"


def test_many_starts_are_not_remembered_for_ever() -> None:
    run = stream_run()
    for nth in range(1000):
        run.attempt(NOON + nth * SECOND)

    assert len(run.starts) == 50


def test_a_strategy_that_gives_up_is_told_from_a_fault_that_no_restart_mends() -> None:
    never, later, lost = stream_run(NoRestart()), stream_run(), stream_run()
    fail(never, BROKEN)
    fail(later, BROKEN)
    fail(lost, LOST)

    assert (never.given_up, later.given_up, lost.given_up) == (True, False, False)
