"""The sensor that starts streams and starts them again: reads, lets decide, asks for runs."""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

import dagster as dg

from rivermark.dagster.jobs.asset_job import AssetJob
from rivermark.dagster.jobs.names import (
    GROUP_TAG,
    INCARNATION_TAG,
    MODE_TAG,
    RESTART_SENSOR,
    live_job_name,
    prefixed,
    table_key,
)
from rivermark.dagster.jobs.run_config import Mode
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.model.topology import Topology
from rivermark.monitor.checks.liveness import ALIVE
from rivermark.runtime.restart.history import RestartHistory
from rivermark.runtime.restart.liveness import ACTIVE, LaunchedRun, RunStatus
from rivermark.runtime.restart.notification import Receivers, ensure_sent
from rivermark.runtime.restart.outbox import Outbox
from rivermark.runtime.restart.outcome import Alert, Start, groups_of
from rivermark.runtime.restart.plan import Plan, plan_restarts
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.runtime.supervision.heartbeat import HeartbeatStore

EVERY_SECONDS: Final = 4
"""How old a tick is before the next one. The daemon looks each 5 s, by a clock that begins before
that of a tick: with 5 here every second look would find that it is too early."""
WAITED_SECONDS: Final = 4.0
"""How long a tick waits for a moment that it knows: the next tick may come 5 s later than that."""
RUNS_LOOKED_AT: Final = 5
"""Runs of a group that ended last, which are read at each tick beside all that have not ended."""

STATUSES: Final[dict[dg.DagsterRunStatus, RunStatus]] = {
    dg.DagsterRunStatus.QUEUED: "queued",
    dg.DagsterRunStatus.NOT_STARTED: "starting",
    dg.DagsterRunStatus.STARTING: "starting",
    dg.DagsterRunStatus.STARTED: "started",
    dg.DagsterRunStatus.CANCELING: "canceling",
    dg.DagsterRunStatus.CANCELED: "canceled",
    dg.DagsterRunStatus.SUCCESS: "success",
    dg.DagsterRunStatus.FAILURE: "failure",
}
ACTIVE_STATUSES: Final = [status for status, name in STATUSES.items() if name in ACTIVE]


def restart_sensor(topology: Topology, jobs: Sequence[AssetJob]) -> dg.SensorDefinition:
    """Keeps every group running that should: the decision itself is rivermark's plan_restarts."""
    groups = groups_of(topology)

    @dg.sensor(
        name=prefixed(RESTART_SENSOR),
        jobs=jobs,
        minimum_interval_seconds=EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Starts groups that are set to run, and again when their run has died.",
    )
    def restart_streams(
        context: dg.SensorEvaluationContext, rivermark_settings: SettingsResource
    ) -> dg.SensorResult:
        settings = rivermark_settings.settings()
        state = settings.state
        desired = DesiredStore(state)

        def decide() -> tuple[Plan, list[LaunchedRun]]:
            # Runs before heartbeats: one that ends in between is then seen as ending, not as dead.
            runs = [r for group in groups for r in launched_runs(context.instance, group.name)]
            plan = plan_restarts(
                groups,
                {group.name: desired.get(group.name) for group in groups},
                HeartbeatStore(state).read(),
                runs,
                remembered(context.instance, context.cursor),
                datetime.now(UTC),
            )
            return plan, runs

        plan, runs = settled(decide)
        for group, reason in plan.pauses.items():
            desired.set(group, "paused", by="the restart sensor", reason=reason)
        correct_records(context, plan, runs)
        for alert in plan.alerts:
            context.log.error(alert.message)
        Outbox(state).update("restarts", plan.troubles)
        ensure_sent(state, Receivers(settings.notify_command, settings.notify_to))
        return dg.SensorResult(
            run_requests=[run_request(start) for start in plan.requests],
            skip_reason=None
            if plan.requests
            else "; ".join(f"{group}: {why}" for group, why in plan.skips.items()),
            cursor=plan.history.to_cursor(),
            asset_events=[
                *(event for alert in plan.alerts for event in evaluations(topology, alert)),
                # Red until then, and no run evaluates the check while it starts.
                *(_evaluation(topology, s, "over: " + why, passed=True) for s, why in plan.over),
            ],
        )

    return restart_streams


def settled(decide: Callable[[], tuple[Plan, list[LaunchedRun]]]) -> tuple[Plan, list[LaunchedRun]]:
    """The plan of now, or of the moment in this tick from which on something is to be started."""
    ends = time.monotonic() + WAITED_SECONDS
    plan, runs = decide()
    while not plan.requests and plan.again_at is not None:
        seconds = max((plan.again_at - datetime.now(UTC)).total_seconds(), 0) + 0.05
        if time.monotonic() + seconds > ends:
            break
        time.sleep(seconds)
        plan, runs = decide()
    return plan, runs


def launched_runs(instance: dg.DagsterInstance, group: str) -> list[LaunchedRun]:
    """The continuous runs of a group, by any job and whether by a person or the sensor.

    All that have not ended, and those that ended last: a run of months is older than others that
    were launched beside it and cancelled.
    """
    tags = {GROUP_TAG: group, MODE_TAG: Mode.continuous.value}
    ended = [status for status, name in STATUSES.items() if name not in ACTIVE]
    records = [
        *instance.get_run_records(dg.RunsFilter(tags=tags, statuses=ACTIVE_STATUSES)),
        *instance.get_run_records(
            dg.RunsFilter(tags=tags, statuses=ended), limit=RUNS_LOOKED_AT, order_by="end_time"
        ),
    ]
    # One that ends between the two is in both.
    by_id = {record.dagster_run.run_id: record for record in records}
    return [
        LaunchedRun(
            run_id=run_id,
            group=group,
            status=STATUSES[record.dagster_run.status],
            created_at=record.create_timestamp.astimezone(UTC),
            started_at=_launched_at(record),
            ended_at=_ended_at(record),
            incarnation=_number(record.dagster_run.tags.get(INCARNATION_TAG)),
        )
        for run_id, record in by_id.items()
    ]


def _launched_at(record: dg.RunRecord) -> datetime | None:
    """The moment at which the run got its process: it may have waited in the queue before."""
    if STATUSES[record.dagster_run.status] == "starting":
        return record.update_timestamp.astimezone(UTC)
    return _moment(record.start_time)


def _ended_at(record: dg.RunRecord) -> datetime | None:
    """The end of the run, or of its cancelling: its record changes at both."""
    if record.dagster_run.status is dg.DagsterRunStatus.CANCELING:
        return record.update_timestamp.astimezone(UTC)
    return _moment(record.end_time)


def remembered(instance: dg.DagsterInstance, cursor: str | None) -> RestartHistory:
    """The history of the last tick; where it is lost, one with the highest number ever used.

    A run key that was used before launches nothing, and says nothing.
    """
    history = RestartHistory.from_cursor(cursor)
    if history.groups:
        return history
    tags = instance.get_run_tags(tag_keys=[INCARNATION_TAG])
    used = [number for _, values in tags for text in values if (number := _number(text))]
    return RestartHistory(used=max(used, default=0))


def correct_records(
    context: dg.SensorEvaluationContext, plan: Plan, runs: Sequence[LaunchedRun]
) -> None:
    """Say of runs that died without a word that they did, and give back the pool places they kept.

    A killed run keeps its place in its pool (dagster issues 28456, 32560), also when its record was
    corrected by Dagster: the next run would wait for it.
    """
    for run_id, why in plan.dead_runs.items():
        record = context.instance.get_run_by_id(run_id)
        if record is None or record.is_finished:
            continue
        if record.status is dg.DagsterRunStatus.CANCELING:
            context.instance.report_run_canceled(record, f"{why}, while it was being cancelled")
        else:
            context.instance.report_run_failed(record, f"found dead by the restart sensor: {why}")
    starting = {start.group for start in plan.requests}
    storage = context.instance.event_log_storage
    if storage.supports_global_concurrency_limits:
        for run in runs:
            # Also where another run waits already for the place of one that died.
            if run.group in starting or run.run_id in plan.dead_runs:
                storage.free_concurrency_slots_for_run(run.run_id)


def run_request(start: Start) -> dg.RunRequest:
    """The run that hosts the group's next incarnation."""
    return dg.RunRequest(
        run_key=start.run_key,
        job_name=live_job_name(start.group),
        tags={INCARNATION_TAG: str(start.number), "rivermark/cause": _tag(start.cause)},
    )


def evaluations(topology: Topology, alert: Alert) -> list[dg.AssetCheckEvaluation]:
    """The alert as a failed check on the pages of the streams that it is about."""
    names = [alert.stream] if alert.stream else [s.name for s in topology.groups()[alert.group]]
    return [_evaluation(topology, name, alert.message, passed=False) for name in names]


def _evaluation(
    topology: Topology, stream: str, message: str, *, passed: bool
) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=table_key(topology.named(stream).tables[0]),
        check_name=ALIVE,
        passed=passed,
        severity=dg.AssetCheckSeverity.ERROR,
        description=message,
    )


def _moment(seconds: float | None) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def _tag(text: str) -> str:
    """A tag takes 63 characters of few kinds."""
    kept = "".join(c if c.isalnum() or c in "-_." else "_" for c in text)
    return kept[:60].strip("-_.")
