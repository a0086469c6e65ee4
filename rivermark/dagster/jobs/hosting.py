"""Hosting a group's streams inside a run: until they are drained, or until they are stopped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import dagster as dg
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.scheduler.instigation import InstigatorStatus

from rivermark.dagster.jobs import metadata
from rivermark.dagster.jobs.day_reports import DayReporter
from rivermark.dagster.jobs.events import Reporter, total
from rivermark.dagster.jobs.interruption import cancelled_by_a_person, drained, end_with_run
from rivermark.dagster.jobs.live_checks import live_checks
from rivermark.dagster.jobs.names import (
    GROUP_TAG,
    INCARNATION_TAG,
    MODE_TAG,
    NO_TIME_LIMIT,
    RESTART_SENSOR,
    in_order,
    prefixed,
    progress_key,
    table_key,
)
from rivermark.dagster.jobs.run_config import HostConfig, Mode
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.dagster.resources.spark import SparkResource
from rivermark.model.errors import RivermarkError, StreamFailed, UnknownStream
from rivermark.model.stream import AnyStream
from rivermark.model.topology import Topology
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.runtime.supervision.hosting import Hosting

SENSORS: Final = "SENSOR"
"""How an instance calls its daemon that evaluates sensors."""


def lacking(instance: dg.DagsterInstance, *, live: bool = False) -> Iterator[str]:
    """A sentence for each setting of `dagster.yaml` without which streams run unguarded.

    And, of a run that is `live`, for a sensor or a daemon without which nothing starts it again. An
    instance without a folder, as tests and `dagster job execute` have it, lacks nothing.
    """
    if instance.is_ephemeral:
        return
    pools = instance.get_concurrency_config().pool_config
    if pools.default_pool_limit != 1:
        yield (
            "two runs of a group may start at once, of which one then fails: set "
            "concurrency.pools.default_limit to 1 in dagster.yaml"
        )
    elif pools.pool_granularity is None or pools.pool_granularity.value != "run":
        yield (
            "a run waits for its group with a process and an engine: set "
            "concurrency.pools.granularity to run in dagster.yaml"
        )
    if not instance.run_monitoring_enabled:
        yield (
            "runs whose process is gone count as running, and are not started again: set "
            "run_monitoring.enabled to true in dagster.yaml"
        )
    elif instance.run_monitoring_max_runtime_seconds:
        yield (
            "a general time limit ends runs that do not say otherwise: leave "
            "run_monitoring.max_runtime_seconds out of dagster.yaml"
        )
    if live:
        yield from _not_started_again(instance)


def _not_started_again(instance: dg.DagsterInstance) -> Iterator[str]:
    name = prefixed(RESTART_SENSOR)
    stopped = instance.all_instigator_state(
        instigator_type=InstigatorType.SENSOR, instigator_statuses={InstigatorStatus.STOPPED}
    )
    if any(state.name == name for state in stopped):
        yield (
            f"the sensor {name} is switched off, and a live run that dies is not started again: "
            "switch it on (Automation, in Dagster)"
        )
    elif not instance.get_daemon_statuses([SENSORS])[SENSORS].healthy:
        yield (
            f"no daemon evaluates sensors, and {name} starts no live run again: run dagster dev, "
            "or dagster-daemon run"
        )


@dataclass(frozen=True)
class Host:
    """A group of streams, and the run that hosts them."""

    topology: Topology
    group: str

    def run(
        self,
        context: dg.AssetExecutionContext,
        config: HostConfig,
        platform: SettingsResource,
        spark: SparkResource,
    ) -> Iterator[dg.MaterializeResult[None]]:
        """Run the streams that the configuration or the selected assets name.

        Raises dg.Failure, whose first line is the query's or the platform's own message.
        """
        end_with_run(context)
        for sentence in lacking(context.instance, live=config.mode is Mode.continuous):
            context.log.warning(sentence)
        settings = platform.settings()
        if config.trigger_seconds is not None:
            settings = settings.model_copy(update={"trigger_seconds": config.trigger_seconds})
        try:
            hosting = Hosting(
                settings=settings,
                topology=self.topology,
                streams=self.streams(config, context.selected_asset_keys),
                run_id=context.run.run_id,
                continuous=config.mode is Mode.continuous,
            )
            session = spark.for_run(hosting.session_kind(), hosting.real_time_slots())
            if hosting.continuous:
                self._continue(context, config, hosting, session)
            else:
                yield from self._drain(context, hosting, session)
        except RivermarkError as error:
            raise dg.Failure(
                description=str(error),
                metadata={"error": type(error).__name__},
                allow_retries=False,
            ) from error

    def streams(self, config: HostConfig, selected: set[dg.AssetKey]) -> list[AnyStream]:
        """The streams to host, in dependency order; UnknownStream for one of another group."""
        members = self.topology.groups()[self.group]
        if config.streams:
            known = {s.name for s in members}
            for name in config.streams:
                if name not in known:
                    raise UnknownStream(
                        f"group '{self.group}' has no stream {name!r}; it has: "
                        f"{', '.join(sorted(known))}"
                    )
            return [s for s in members if s.name in config.streams]
        if progress_key(self.group) in selected:
            return list(members)
        return [s for s in members if any(table_key(t) in selected for t in s.tables)]

    def _drain(
        self, context: dg.AssetExecutionContext, hosting: Hosting, spark: SparkResource
    ) -> Iterator[dg.MaterializeResult[None]]:
        """Drain the streams; those that did not fail have their tables materialized either way."""
        selected = [
            (stream, table)
            for stream in hosting.streams
            for table in in_order(stream)
            if table_key(table) in context.selected_asset_keys
        ]
        names = frozenset(table.name for _, table in selected)
        days = DayReporter(context.op_execution_context, hosting.settings, "bounded")
        reporter = Reporter(context, self.topology, hosting.streams, days, names)
        session = spark.spark_session
        failure: StreamFailed | None = None
        with drained() as stop:
            try:
                hosting.run(session, stop, on_report=reporter)
            except StreamFailed as error:
                failure = error
        days.finish()
        lake = hosting.settings.lake()
        for stream, table in selected:
            report = reporter.last.get(stream.name)
            if failure and (report is None or report.failed):
                continue
            described = reporter.describe(stream, table, report) if report else {}
            yield dg.MaterializeResult(
                asset_key=table_key(table), metadata={**described, **metadata.of_rows(lake, table)}
            )
        if failure:
            raise failure
        if progress_key(self.group) in context.selected_asset_keys:
            numbers = [report.numbers for report in reporter.last.values()]
            yield dg.MaterializeResult(
                asset_key=progress_key(self.group), metadata=metadata.of_numbers(total(numbers))
            )

    def _continue(
        self,
        context: dg.AssetExecutionContext,
        config: HostConfig,
        hosting: Hosting,
        spark: SparkResource,
    ) -> None:
        desired, run_id = DesiredStore(hosting.settings.state), context.run.run_id
        tags = context.run.tags
        # A run that was started from an asset's page does not have the job's tags.
        needed = {GROUP_TAG: self.group, MODE_TAG: Mode.continuous.value, **NO_TIME_LIMIT}
        context.instance.add_run_tags(run_id, {k: v for k, v in needed.items() if k not in tags})
        if INCARNATION_TAG not in tags and desired.get(self.group).state != "run":
            desired.set(self.group, "run", by=_starter(context), reason=f"run {run_id}")
        try:
            session = spark.spark_session
            checks = live_checks(
                hosting.streams,
                hosting.settings,
                session,
                checks_every=config.check_every,
                suites_every=config.suites_every,
            )
            days = DayReporter(context.op_execution_context, hosting.settings, "continuous")
            reporter = Reporter(context, self.topology, hosting.streams, days, checks=checks)
            with drained() as stop, checks.running():
                hosting.run(session, stop, on_report=reporter, report_every=config.report_every)
        except (dg.DagsterExecutionInterruptedError, KeyboardInterrupt):
            if cancelled_by_a_person(context):
                reason = f"run {run_id} was cancelled"
                desired.set(self.group, "paused", by=_starter(context), reason=reason)
                context.log.info(f"{reason}; group '{self.group}' is paused until it is resumed")
            raise
        pause = desired.get(self.group)
        context.log.info(f"group '{self.group}' is paused: {pause.reason} ({pause.by})")


def _starter(context: dg.AssetExecutionContext) -> str:
    return context.run.tags.get("user", "Dagster")
