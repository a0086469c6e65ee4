"""The restarting as a table of looks: what was found, and what is done about it."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from rivermark.model.restart_strategy import (
    DEFAULT_STRATEGY,
    FixedDelay,
    NoRestart,
    RestartStrategy,
)
from rivermark.runtime.restart.history import RestartHistory
from rivermark.runtime.restart.liveness import LaunchedRun
from rivermark.runtime.restart.outcome import Group, Start
from rivermark.runtime.restart.plan import Plan, plan_restarts
from rivermark.runtime.supervision.desired_state import Desired
from rivermark.runtime.supervision.heartbeat import FAILURES, GIVEN_UP, WAITING, Beats, Heartbeat

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
ONE_MINUTE = timedelta(minutes=1)
ONE_HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)

TAXI = Group("taxi", {"taxi/rides": FixedDelay(), "taxi/fares": FixedDelay()})
WEB = Group("web", {"web/clicks": FixedDelay()})
READINGS = Group("readings", {"readings/degrees": FixedDelay()})

RUN = Desired(state="run", by="ada", at=NOON - ONE_HOUR, reason="")


def a_run(group: str = "taxi", **changes: Any) -> LaunchedRun:
    given = {
        "run_id": f"{group}-run",
        "group": group,
        "status": "started",
        "created_at": NOON - timedelta(minutes=30),
        "started_at": NOON - timedelta(minutes=30),
        **changes,
    }
    return LaunchedRun(**given)


def failed_at_once(start: Start, now: datetime) -> LaunchedRun:
    """The run of a start, which failed as it began."""
    return a_run(
        run_id=start.run_key,
        status="failure",
        created_at=now + SECOND,
        ended_at=now + 3 * SECOND,
        incarnation=start.number,
    )


def a_beat(stream: str = "taxi/rides", **changes: Any) -> Heartbeat:
    group = stream.split("/")[0]
    given = {
        "stream": stream,
        "group": group,
        "run_id": f"{group}-run",
        "pid": 4711,
        "host": "here",
        "at": NOON - 2 * SECOND,
        "state": "running",
        "last_progress_at": NOON - 5 * SECOND,
        **changes,
    }
    return Heartbeat(**given)


def look(
    *beats: Heartbeat,
    runs: list[LaunchedRun],
    groups: tuple[Group, ...] = (TAXI,),
    wishes: dict[str, Desired] | None = None,
    history: RestartHistory | None = None,
    now: datetime = NOON,
    alive: bool | None = True,
    unreadable: dict[str, str] | None = None,
) -> Plan:
    return plan_restarts(
        groups,
        {g.name: RUN for g in groups} if wishes is None else wishes,
        Beats({b.stream: b for b in beats}, unreadable or {}),
        runs,
        history or RestartHistory(),
        now,
        process_alive=lambda beat: alive,
    )


def keys(plan: Plan) -> list[str]:
    return [start.run_key for start in plan.requests]


def test_a_wished_group_that_never_ran_is_started_at_once() -> None:
    plan = look(runs=[])

    assert keys(plan) == ["taxi:1"]
    assert plan.requests[0].cause == "asked for by ada"


def test_a_group_that_nobody_asked_for_rests() -> None:
    plan = look(runs=[], wishes={})

    assert plan.requests == ()
    assert "never set to run" in plan.skips["taxi"]


def test_a_living_group_is_left_alone() -> None:
    plan = look(a_beat(), a_beat("taxi/fares"), runs=[a_run()])

    assert plan.requests == ()
    assert plan.dead_runs == {}
    assert plan.alerts == ()
    assert plan.skips["taxi"] == "alive in run taxi-run"


def test_b065_a_run_that_is_recorded_as_started_but_whose_process_is_gone_is_replaced() -> None:
    killed = a_beat(at=NOON - 30 * SECOND)

    plan = look(killed, runs=[a_run()], alive=False)

    assert "process (pid 4711 on here) is gone" in plan.dead_runs["taxi-run"]
    assert keys(plan) == ["taxi:1"]


def test_b065_a_beat_of_a_moment_ago_is_believed_even_when_the_process_is_gone() -> None:
    """The run may be ending in good order; its record is a moment behind."""
    plan = look(a_beat(), runs=[a_run()], alive=False)

    assert plan.dead_runs == {}
    assert plan.requests == ()


@pytest.mark.parametrize(("state", "seconds"), [("running", 2), ("stopped", 10)])
def test_a_process_that_is_gone_is_believed_dead_soon_unless_it_said_goodbye(
    state: str, seconds: int
) -> None:
    for silence, replaced in ((seconds, False), (seconds + 1, True)):
        beat = a_beat(state=state, at=NOON - silence * SECOND)
        assert bool(look(beat, runs=[a_run()], alive=False).dead_runs) is replaced


@pytest.mark.parametrize(("silence", "replaced"), [(90 * SECOND, False), (150 * SECOND, True)])
def test_b065_on_another_machine_only_the_silence_tells(silence: timedelta, replaced: bool) -> None:
    plan = look(a_beat(at=NOON - silence), runs=[a_run()], alive=None)

    assert bool(plan.requests) is replaced
    assert bool(plan.dead_runs) is replaced


def test_a_started_run_that_never_beats_is_given_its_time_and_then_replaced() -> None:
    young = a_run(started_at=NOON - ONE_MINUTE)
    old = a_run(started_at=NOON - timedelta(minutes=5))

    assert "already starting" in look(runs=[young]).skips["taxi"]
    assert keys(look(runs=[old])) == ["taxi:1"]


def test_b067_later_looks_say_already_starting_until_the_run_beats() -> None:
    """Two groups down, and each look comes long before a run has started."""
    died = NOON - ONE_MINUTE
    dead = [a_run(g, run_id=f"{g}-1", status="failure", ended_at=died) for g in ("taxi", "web")]
    first = look(runs=dead, groups=(TAXI, WEB))
    assert keys(first) == ["taxi:1", "web:1"]

    history = first.history
    stages: list[tuple[str, list[LaunchedRun]]] = [("not yet recorded", [])]
    for status in ("queued", "starting", "started", "started"):
        reborn = [
            a_run(g, run_id=f"{g}-2", status=status, created_at=NOON, started_at=None)
            for g in ("taxi", "web")
        ]
        stages.append((status, [replace(r, incarnation=1) for r in reborn]))
    for nth, (_, reborn) in enumerate(stages, start=1):
        plan = look(
            runs=[*dead, *reborn], groups=(TAXI, WEB), history=history, now=NOON + nth * 5 * SECOND
        )
        assert plan.requests == ()
        assert all(
            "already starting" in why or "waits in the queue" in why for why in plan.skips.values()
        )
        history = plan.history


def test_b068_a_group_that_dies_three_times_is_started_three_times_under_three_keys() -> None:
    history, seen, now = RestartHistory(), [], NOON
    runs = [a_run(run_id="run-0", status="failure", ended_at=NOON - ONE_MINUTE)]
    for death in (1, 2, 3):
        plan = look(runs=runs, history=history, now=now)
        seen += keys(plan)
        born = now + SECOND
        now = now + ONE_HOUR
        runs.append(
            a_run(
                run_id=f"run-{death}",
                status="failure",
                created_at=born,
                ended_at=now - ONE_MINUTE,
                incarnation=death,
            )
        )
        history = RestartHistory.from_cursor(plan.history.to_cursor())

    assert seen == ["taxi:1", "taxi:2", "taxi:3"]


def test_b068_a_lost_cursor_never_reuses_a_key() -> None:
    runs = [a_run(status="failure", ended_at=NOON - ONE_MINUTE, incarnation=7)]

    assert keys(look(runs=runs, history=RestartHistory.from_cursor("{half a cur"))) == ["taxi:8"]


def test_b069_a_look_at_forty_groups_is_quick_and_starts_the_one_that_is_down() -> None:
    groups = tuple(Group(f"g{n}", {f"g{n}/events": FixedDelay()}) for n in range(40))
    runs = [a_run(g.name) for g in groups]
    beats = [a_beat(f"{g.name}/events") for g in groups[:-1]]
    runs[-1] = a_run("g39", status="failure", ended_at=NOON - ONE_MINUTE)

    began = time.perf_counter()
    plan = look(*beats, runs=runs, groups=groups)

    assert keys(plan) == ["g39:1"]
    # A sensor has sixty seconds. Only heartbeats and runs are looked at, however old a stream is.
    assert time.perf_counter() - began < 1


def test_b070_one_unreadable_group_is_told_of_once_and_the_others_are_served_once() -> None:
    groups = (TAXI, WEB, READINGS)
    dead = [a_run(g, status="failure", ended_at=NOON - ONE_MINUTE) for g in ("taxi", "readings")]
    runs = [*dead, a_run("web")]
    problem = {"web/clicks": "web.clicks.json: Input data was truncated"}

    first = look(runs=runs, groups=groups, unreadable=problem)
    second = look(
        runs=runs, groups=groups, unreadable=problem, history=first.history, now=NOON + 15 * SECOND
    )

    assert keys(first) == ["taxi:1", "readings:1"]
    assert [(a.stream, a.incident) for a in first.alerts] == [
        ("web/clicks", "unreadable:web/clicks")
    ]
    assert second.requests == ()
    assert second.alerts == ()


def test_an_unreadable_group_is_told_of_again_after_it_was_whole_in_between() -> None:
    problem = {"taxi/rides": "cut"}
    first = look(runs=[a_run()], unreadable=problem)
    whole = look(a_beat(), runs=[a_run()], history=first.history)
    again = look(runs=[a_run()], unreadable=problem, history=whole.history)

    assert len(first.alerts) == 1
    assert whole.alerts == ()
    assert len(again.alerts) == 1


def test_an_unreadable_wish_lets_the_group_rest_and_says_so_once() -> None:
    wish = Desired(
        state="paused", by="nobody", at=None, reason="unreadable", problem="taxi.json: cut"
    )

    plan = look(runs=[], wishes={"taxi": wish})

    assert plan.requests == ()
    assert [a.incident for a in plan.alerts] == ["wish_unreadable:taxi"]


def test_b072_a_cancelled_run_is_taken_for_a_wish_until_somebody_asks_again() -> None:
    cancelled = a_run(status="canceled", ended_at=NOON - ONE_MINUTE)

    plan = look(runs=[cancelled])
    assert plan.requests == ()
    assert plan.pauses == {"taxi": "run taxi-run was cancelled"}

    asked_again = replace(RUN, at=NOON)
    assert keys(look(runs=[cancelled], wishes={"taxi": asked_again})) == ["taxi:1"]


def test_b072_a_run_that_is_being_cancelled_is_left_to_end() -> None:
    plan = look(a_beat(), runs=[a_run(status="canceling")])

    assert plan.requests == ()
    assert plan.skips["taxi"] == "run taxi-run is being cancelled"


def test_b072_a_run_killed_while_being_cancelled_is_corrected_and_not_replaced() -> None:
    plan = look(a_beat(at=NOON - ONE_MINUTE), runs=[a_run(status="canceling")], alive=False)

    assert "taxi-run" in plan.dead_runs
    assert plan.requests == ()
    assert plan.pauses == {"taxi": "run taxi-run was cancelled"}


def test_b073_two_deciders_at_the_same_history_ask_under_the_same_key() -> None:
    runs = [a_run(status="failure", ended_at=NOON - ONE_MINUTE)]
    cursor = RestartHistory().to_cursor()

    one = look(runs=runs, history=RestartHistory.from_cursor(cursor))
    other = look(runs=runs, history=RestartHistory.from_cursor(cursor), now=NOON + 3 * SECOND)

    assert keys(one) == keys(other) == ["taxi:1"]


def test_a_failed_run_is_started_again_when_its_delay_is_over() -> None:
    runs = [a_run(status="failure", ended_at=NOON - 4 * SECOND)]

    early = look(runs=runs)
    due = look(runs=runs, history=early.history, now=NOON + 6 * SECOND)

    assert early.requests == ()
    assert early.skips["taxi"] == "starts again at 12:00:06 UTC"
    assert keys(due) == ["taxi:1"]


def test_the_slowest_strategy_of_a_group_decides() -> None:
    group = Group("taxi", {"taxi/rides": FixedDelay(), "taxi/fares": FixedDelay(delay=ONE_HOUR)})
    runs = [a_run(status="failure", ended_at=NOON - ONE_MINUTE)]

    assert look(runs=runs, groups=(group,)).requests == ()


def test_a_stream_that_declares_no_restart_stays_dead_and_says_so_once() -> None:
    group = Group("taxi", {"taxi/rides": NoRestart(), "taxi/fares": FixedDelay()})
    runs = [a_run(status="failure", ended_at=NOON - ONE_MINUTE)]
    failed = a_beat(state="failed", error="out of memory", at=NOON - ONE_MINUTE)

    first = look(failed, runs=runs, groups=(group,), alive=False)
    second = look(failed, runs=runs, groups=(group,), alive=False, history=first.history)

    assert first.requests == second.requests == ()
    assert [a.incident for a in first.alerts] == ["given_up:taxi"]
    assert second.alerts == ()


def test_the_strategy_of_the_stream_that_failed_decides() -> None:
    group = Group("taxi", {"taxi/rides": NoRestart(), "taxi/fares": FixedDelay()})
    runs = [a_run(status="failure", ended_at=NOON - ONE_MINUTE)]
    failed = a_beat("taxi/fares", state="failed", error="out of memory", at=NOON - ONE_MINUTE)
    stopped = a_beat(state="stopped", at=NOON - ONE_MINUTE)

    assert keys(look(failed, stopped, runs=runs, groups=(group,), alive=False)) == ["taxi:1"]


def test_a_group_gives_up_after_its_attempts_with_one_alert_until_asked_again() -> None:
    group = Group("taxi", {"taxi/rides": FixedDelay(attempts=2)})
    history, now, alerts, starts = RestartHistory(), NOON, [], []
    runs = [
        a_run(
            status="failure",
            created_at=NOON - 30 * SECOND,
            started_at=NOON - 30 * SECOND,
            ended_at=NOON - 20 * SECOND,
        )
    ]
    for _ in range(10):
        plan = look(runs=runs, groups=(group,), history=history, now=now)
        history = plan.history
        alerts += [a.incident for a in plan.alerts]
        for start in plan.requests:
            starts.append(start.run_key)
            runs.append(failed_at_once(start, now))
        now += 15 * SECOND

    assert starts == ["taxi:1", "taxi:2"]
    assert alerts == ["given_up:taxi"]

    asked_again = look(
        runs=runs, groups=(group,), history=history, now=now, wishes={"taxi": replace(RUN, at=now)}
    )
    assert keys(asked_again) == ["taxi:3"]


def test_an_error_that_a_restart_cannot_mend_is_not_restarted() -> None:
    runs = [a_run(status="failure", ended_at=NOON - ONE_MINUTE)]
    failed = a_beat(state="failed", error="CheckpointIncompatible: ...", restartable=False)

    plan = look(failed, runs=runs)

    assert plan.requests == ()
    assert "CheckpointIncompatible" in plan.skips["taxi"]
    assert [a.incident for a in plan.alerts] == ["beyond_restart:taxi"]


@pytest.mark.parametrize(("strategy", "restartable"), [(FixedDelay(), False), (NoRestart(), True)])
def test_a_stream_that_failed_for_good_does_not_keep_its_neighbours_down(
    strategy: RestartStrategy, restartable: bool
) -> None:
    """Their run went on without it, until its process was killed."""
    group = Group("taxi", {"taxi/rides": strategy, "taxi/fares": FixedDelay()})
    failed = a_beat(state="failed", error="input is gone", restartable=restartable)
    neighbour = a_beat("taxi/fares", at=NOON - ONE_MINUTE)
    runs = [a_run(status="failure", ended_at=NOON - ONE_MINUTE)]

    assert keys(look(failed, neighbour, runs=runs, groups=(group,))) == ["taxi:1"]


def test_a_stream_that_its_run_has_given_up_is_not_begun_over_in_another_run() -> None:
    broken = a_beat(state="starting", error="poisoned", numbers={FAILURES: 3})
    during = look(broken, runs=[a_run()])
    ended = [a_run(status="failure", ended_at=NOON)]
    last = a_beat(state="failed", error="poisoned", numbers={FAILURES: 6, GIVEN_UP: 1})

    after = look(last, runs=ended, history=during.history, now=NOON + ONE_HOUR)

    assert [a.trouble.cause for a in during.alerts] == ["failed:taxi/rides"]
    assert after.requests == ()
    assert [a.incident for a in after.alerts] == ["given_up:taxi"]
    assert after.troubles[0].within == ("failed:taxi/rides",), "known by its first failures"
    assert "failed 6 times in a row in run taxi-run, the last time with: poisoned" in (
        after.alerts[0].message
    )


def test_a_restart_storm_has_six_starts_longer_and_longer_apart_and_one_notification() -> None:
    """Newest checksum damaged, its run killed: each start fails after 25 s (F15)."""
    group = Group("taxi", {"taxi/rides": DEFAULT_STRATEGY, "taxi/fares": DEFAULT_STRATEGY})
    history, starts, notifications = RestartHistory(), [], []
    runs: list[LaunchedRun] = []
    for tick in range(0, 3_600, 5):
        now = NOON + tick * SECOND
        settled = [
            replace(run, status="failure" if run.ended_at and run.ended_at <= now else "queued")
            for run in runs
        ]
        plan = look(runs=settled, groups=(group,), history=history, now=now)
        history = plan.history
        notifications += [a.incident for a in plan.alerts]
        for start in plan.requests:
            starts.append(tick)
            ended = now + 25 * SECOND
            runs.append(
                a_run(
                    run_id=start.run_key,
                    created_at=now,
                    started_at=now,
                    ended_at=ended,
                    incarnation=start.number,
                )
            )

    pauses = [following - before - 25 for before, following in pairwise(starts)]
    assert len(starts) == 6
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (5, 300)
    assert notifications == ["given_up:taxi"]


@pytest.mark.parametrize(
    ("changes", "then"),
    [
        ({"state": "failed", "at": NOON - ONE_HOUR}, "the others go on"),
        ({"state": "starting", "numbers": {FAILURES: 3}}, "failed 3 times and is started again"),
    ],
)
def test_a_stream_that_fails_in_a_living_run_is_told_of_once(
    changes: dict[str, Any], then: str
) -> None:
    failed = a_beat(error="poisoned", **changes)

    first = look(failed, a_beat("taxi/fares"), runs=[a_run()])
    second = look(failed, a_beat("taxi/fares"), runs=[a_run()], history=first.history)

    assert first.requests == ()
    assert first.skips["taxi"] == "alive in run taxi-run"
    assert [(a.incident, a.stream) for a in first.alerts] == [("failed:taxi/rides", "taxi/rides")]
    assert "failed with: poisoned; " in first.alerts[0].message
    assert then in first.alerts[0].message
    assert second.alerts == ()


def test_one_failure_that_is_started_again_alerts_nobody() -> None:
    once = a_beat(state="starting", error="a hiccup", numbers={FAILURES: 1})

    assert look(once, a_beat("taxi/fares"), runs=[a_run()]).alerts == ()


def test_a_stream_that_beats_without_progress_while_input_waits_is_stalled_not_dead() -> None:
    stuck = a_beat(waiting_since=NOON - timedelta(minutes=11), numbers={WAITING: 3})

    plan = look(stuck, a_beat("taxi/fares"), runs=[a_run()])

    assert plan.requests == ()
    assert plan.dead_runs == {}
    assert [a.incident for a in plan.alerts] == ["stalled:taxi"]
    assert "taxi/rides" in plan.alerts[0].message


def test_a_stream_without_input_may_stand_still_for_days() -> None:
    idle = a_beat(state="idle", last_progress_at=NOON - timedelta(days=3), numbers={WAITING: 0})

    assert look(idle, runs=[a_run()]).alerts == ()


def test_a_process_that_is_there_but_says_nothing_is_told_of_and_not_doubled() -> None:
    plan = look(a_beat(at=NOON - timedelta(minutes=3)), runs=[a_run()], alive=True)

    assert plan.requests == ()
    assert [a.incident for a in plan.alerts] == ["silent:taxi"]


def test_heartbeats_of_an_earlier_run_say_nothing_about_the_next() -> None:
    left_over = a_beat(
        run_id="taxi-run-before", at=NOON - ONE_HOUR, state="failed", restartable=False
    )

    plan = look(left_over, runs=[a_run(started_at=NOON - 20 * SECOND)])

    assert "already starting" in plan.skips["taxi"]


def test_a_paused_group_with_a_dead_run_gets_its_record_corrected_and_rests() -> None:
    paused = replace(RUN, state="paused", reason="maintenance")

    plan = look(a_beat(at=NOON - ONE_HOUR), runs=[a_run()], wishes={"taxi": paused}, alive=False)

    assert "taxi-run" in plan.dead_runs
    assert plan.requests == ()
    assert plan.skips["taxi"] == "paused: maintenance (ada)"


def test_the_history_stays_small_however_often_a_group_dies() -> None:
    history, now, runs = RestartHistory(), NOON, []
    for n in range(300):
        runs = [a_run(status="failure", created_at=now - SECOND, ended_at=now - ONE_MINUTE)]
        plan = look(runs=[replace(runs[0], incarnation=n)], history=history, now=now)
        history, now = plan.history, now + timedelta(minutes=5)

    assert history.of("taxi").number == 300
    assert len(history.to_cursor()) < 5_000


@pytest.mark.parametrize("cursor", [None, "", "17", "{", '{"groups": 3}', '{"format": 99}'])
def test_a_foreign_cursor_is_read_as_an_empty_history(cursor: str | None) -> None:
    assert RestartHistory.from_cursor(cursor) == RestartHistory()


def cancelled_in_the_queue(minutes_ago: float, **changes: Any) -> LaunchedRun:
    """A run that was launched beside another, waited for its place, and was cancelled."""
    at = NOON - timedelta(minutes=minutes_ago)
    before = at - SECOND
    return a_run(
        **{
            "run_id": "second",
            "status": "canceled",
            "created_at": before,
            "started_at": None,
            "ended_at": at,
            **changes,
        }
    )


def test_n059_a_run_that_was_cancelled_in_the_queue_keeps_no_killed_run_down() -> None:
    """They may lie weeks apart; the second one never did anything."""
    killed = a_beat(at=NOON - 10 * SECOND)
    second = cancelled_in_the_queue(20)

    plan = look(killed, runs=[a_run(), second], alive=False)
    corrected = a_run(status="failure", ended_at=NOON + SECOND)
    later = look(killed, runs=[corrected, second], alive=False, now=NOON + 5 * SECOND)

    for each in (plan, later):
        assert keys(each) == ["taxi:1"]
        assert each.pauses == {}


def test_n059_nor_does_one_that_was_cancelled_before_the_kill_was_noticed() -> None:
    killed = a_beat(at=NOON - 10 * SECOND)

    plan = look(killed, runs=[a_run(), cancelled_in_the_queue(0.05)], alive=False)

    assert (keys(plan), plan.pauses) == (["taxi:1"], {})


def test_n059_who_cancels_the_only_run_that_is_left_wants_it_to_stop() -> None:
    ended = a_run(status="failure", ended_at=NOON - 10 * ONE_MINUTE)

    plan = look(runs=[ended, cancelled_in_the_queue(5)])

    assert plan.requests == ()
    assert plan.pauses == {"taxi": "run second was cancelled"}


def test_n059_the_run_that_ended_last_counts_and_not_the_one_that_was_launched_last() -> None:
    """A second run that failed at once, because the first one held the lease."""
    second = cancelled_in_the_queue(20, status="failure", started_at=NOON - 20 * ONE_MINUTE)
    cancelled = a_run(status="canceled", ended_at=NOON - ONE_MINUTE)

    plan = look(a_beat(state="stopped", at=NOON - ONE_MINUTE), runs=[cancelled, second])

    assert plan.pauses == {"taxi": "run taxi-run was cancelled"}


def test_n059_the_trouble_of_a_living_run_is_told_while_another_waits_behind_it() -> None:
    stalled = a_beat(waiting_since=NOON - ONE_HOUR, numbers={WAITING: 3})
    waiting = a_run(run_id="second", status="queued", created_at=NOON - ONE_MINUTE)

    plan = look(stalled, runs=[a_run(), waiting])

    assert [a.incident for a in plan.alerts] == ["stalled:taxi"]


def test_a_group_that_was_away_does_not_begin_again_with_used_keys() -> None:
    with_web = look(
        runs=[a_run("web", status="failure", ended_at=NOON - ONE_MINUTE, incarnation=7)],
        groups=(WEB,),
    )
    without = look(runs=[], groups=(TAXI,), wishes={}, history=with_web.history)
    kept = RestartHistory.from_cursor(without.history.to_cursor())

    assert keys(with_web) == ["web:8"]
    assert keys(look(runs=[], groups=(WEB,), history=kept)) == ["web:9"]


def test_a_plan_says_when_the_passing_of_time_alone_changes_it() -> None:
    gone = a_beat(at=NOON - SECOND)
    believed = look(gone, runs=[a_run()], alive=False)
    assert believed.again_at == NOON + SECOND
    dead = look(gone, runs=[a_run()], alive=False, now=NOON + 2 * SECOND)
    assert dead.again_at == NOON + 9 * SECOND, "the pause of its strategy counts from its death"
    started = look(gone, runs=[a_run()], alive=False, now=NOON + 9 * SECOND)

    assert keys(started) == ["taxi:1"]
    assert look(a_beat(), runs=[a_run()]).again_at is None


def test_a_killed_run_is_replaced_although_the_clock_was_set_back_since() -> None:
    """Its last heartbeat is an hour in the future then, and would be young for an hour."""
    killed = a_beat(at=NOON + ONE_HOUR)
    first = look(killed, runs=[a_run()], alive=False)
    assert "is gone" in first.dead_runs["taxi-run"]
    runs = [a_run(status="failure", ended_at=NOON)]

    assert keys(look(killed, runs=runs, alive=False, now=NOON + 10 * SECOND)) == ["taxi:1"]


def test_a_clock_that_was_set_back_behind_the_request_makes_no_storm() -> None:
    """Each failure seems to lie before the request; its pauses grow, and it is given up."""
    group = Group("taxi", {"taxi/rides": DEFAULT_STRATEGY})
    wishes = {"taxi": replace(RUN, at=NOON + ONE_HOUR)}
    history, starts, alerts = RestartHistory(), [], []
    runs: list[LaunchedRun] = []
    for tick in range(0, 1_800, 5):
        now = NOON + tick * SECOND
        plan = look(runs=runs, groups=(group,), history=history, now=now, wishes=wishes)
        history = plan.history
        alerts += [alert.incident for alert in plan.alerts]
        for start in plan.requests:
            starts.append(now)
            runs.append(failed_at_once(start, now))

    assert len(starts) == 6
    assert alerts == ["given_up:taxi"]


def test_a_host_whose_clock_is_ahead_is_told_of_and_not_replaced() -> None:
    plan = look(a_beat(host="far", at=NOON + ONE_HOUR), runs=[a_run()], alive=None)

    assert plan.requests == ()
    assert [alert.incident for alert in plan.alerts] == ["silent:taxi"]
    assert "the clock of far is 3600 s ahead" in plan.alerts[0].message


def test_r12_a_lost_session_that_the_next_run_heals_is_no_alert() -> None:
    """Both streams failed a moment ago, and the record of their run still says that it runs."""
    gone: dict[str, Any] = {
        "state": "failed",
        "error": "the Spark session is gone",
        "cause": "spark session",
    }
    beats = [a_beat(**gone), a_beat("taxi/fares", **gone)]

    during = look(*beats, runs=[a_run()])
    after = look(*beats, runs=[a_run(status="failure", ended_at=NOON)], now=NOON + ONE_MINUTE)

    assert during.alerts == ()
    assert during.troubles == ()
    assert keys(after) == ["taxi:1"]
    assert after.alerts == ()


def test_r12_a_run_that_does_not_end_after_its_session_was_lost_is_told_of() -> None:
    gone = a_beat(state="failed", error="the Spark session is gone", at=NOON - ONE_HOUR)

    assert [a.incident for a in look(gone, a_beat("taxi/fares"), runs=[a_run()]).alerts] == [
        "failed:taxi/rides"
    ]


def test_r12_all_that_one_damaged_file_stops_has_one_cause() -> None:
    broken: dict[str, Any] = {
        "state": "failed",
        "restartable": False,
        "error": "x",
        "cause": "damaged:/lake/a",
    }
    beats = [a_beat(**broken), a_beat("taxi/fares", **broken)]

    during = look(*beats, a_beat("web/clicks"), groups=(TAXI, WEB), runs=[a_run(), a_run("web")])
    after = look(*beats, runs=[a_run(status="failure", ended_at=NOON)])

    assert {each.cause for each in during.troubles} == {"damaged:/lake/a"}
    assert [each.within for each in after.troubles] == [("damaged:/lake/a",) * 2]


def test_r20_a_stream_that_got_its_first_input_in_hours_a_moment_ago_is_not_stalled() -> None:
    quiet = a_beat(
        last_progress_at=NOON - ONE_HOUR, waiting_since=NOON - SECOND, numbers={WAITING: 1}
    )

    assert look(quiet, a_beat("taxi/fares"), runs=[a_run()]).alerts == ()


def test_r15_what_is_over_is_said_of_the_streams_that_it_was_about() -> None:
    silent = look(a_beat(at=NOON - 2 * ONE_MINUTE), runs=[a_run()])
    alive = look(a_beat(), runs=[a_run()], history=silent.history)

    assert [a.incident for a in silent.alerts] == ["silent:taxi"]
    assert silent.over == ()
    assert alive.over == tuple((s, "alive in run taxi-run") for s in TAXI.strategies)
    assert look(a_beat(), runs=[a_run()], history=alive.history).over == ()
