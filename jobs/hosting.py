"""Hosting a group's streams inside a run: until they are drained, or until somebody says stop."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import dagster as dg

from jobs import metadata
from jobs.events import Reporter, total
from jobs.interruption import Interruption, cancelled_by_a_person, drained
from jobs.live_checks import live_checks
from jobs.names import (
    GROUP_TAG,
    INCARNATION_TAG,
    MODE_TAG,
    NO_TIME_LIMIT,
    in_order,
    progress_key,
    table_key,
)
from jobs.run_config import HostConfig, Mode
from resources.settings import SettingsResource
from resources.spark import SparkResource
from rivermark.model.errors import RivermarkError, UnknownStream
from rivermark.model.stream import AnyStream
from rivermark.model.topology import Topology
from rivermark.runtime.query.backlog import kind_of_run
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.runtime.supervision.run import run_bounded, run_continuous
from rivermark.settings import Settings

WISH_SECONDS = 2.0


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
        settings = platform.settings()
        if config.trigger_seconds is not None:
            settings = settings.model_copy(update={"trigger_seconds": config.trigger_seconds})
        try:
            streams = self.streams(config, context.selected_asset_keys)
            if config.mode is Mode.continuous:
                self._continue(context, config, settings, spark.for_run("long"), streams)
            else:
                engine = spark.for_run(kind_of_run(settings, streams))
                yield from self._drain(context, settings, engine, streams)
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
        self,
        context: dg.AssetExecutionContext,
        settings: Settings,
        spark: SparkResource,
        streams: Sequence[AnyStream],
    ) -> Iterator[dg.MaterializeResult[None]]:
        mine = [
            (stream, table)
            for stream in streams
            for table in in_order(stream)
            if table_key(table) in context.selected_asset_keys
        ]
        reporter = Reporter(
            context, self.topology, streams, "bounded", frozenset(table.name for _, table in mine)
        )
        session = spark.spark_session
        with drained() as interruption:
            summaries = run_bounded(
                session,
                settings,
                self.topology,
                streams,
                run_id=context.run.run_id,
                on_report=reporter,
                stop=interruption.stop,
            )
        lake = settings.lake()
        for stream, table in mine:
            report = reporter.last.get(stream.name)
            told = reporter.describe(stream, table, report) if report else {}
            yield dg.MaterializeResult(
                asset_key=table_key(table), metadata={**told, **metadata.of_rows(lake, table)}
            )
        if progress_key(self.group) in context.selected_asset_keys:
            yield dg.MaterializeResult(
                asset_key=progress_key(self.group),
                metadata=metadata.of_numbers(total(vars(s) for s in summaries.values())),
            )

    def _continue(
        self,
        context: dg.AssetExecutionContext,
        config: HostConfig,
        settings: Settings,
        spark: SparkResource,
        streams: Sequence[AnyStream],
    ) -> None:
        wishes = DesiredStore(settings.state)
        tags = context.run.tags
        # A run that was started from an asset's page does not have the job's tags.
        wanted = {GROUP_TAG: self.group, MODE_TAG: Mode.continuous.value, **NO_TIME_LIMIT}
        context.instance.add_run_tags(
            context.run.run_id, {k: v for k, v in wanted.items() if k not in tags}
        )
        if INCARNATION_TAG not in tags and wishes.get(self.group).state != "run":
            wishes.set(self.group, "run", by=_starter(context), reason=f"run {context.run.run_id}")
        try:
            session = spark.spark_session
            checks = live_checks(
                streams,
                settings,
                session,
                claims_every=config.check_every,
                suites_every=config.suites_every,
            )
            reporter = Reporter(context, self.topology, streams, "continuous", checks=checks)
            with (
                drained() as interruption,
                _following(wishes, self.group, interruption),
                checks.running(),
            ):
                run_continuous(
                    session,
                    settings,
                    self.topology,
                    streams,
                    run_id=context.run.run_id,
                    stop=interruption.stop,
                    on_report=reporter,
                    report_every=config.report_every,
                )
        except (dg.DagsterExecutionInterruptedError, KeyboardInterrupt):
            if cancelled_by_a_person(context):
                reason = f"run {context.run.run_id} was cancelled"
                wishes.set(self.group, "paused", by=_starter(context), reason=reason)
                context.log.info(f"{reason}; group '{self.group}' rests until it is set to run")
            raise
        wish = wishes.get(self.group)
        context.log.info(f"group '{self.group}' rests: {wish.reason} ({wish.by})")


@contextmanager
def _following(wishes: DesiredStore, group: str, interruption: Interruption) -> Iterator[None]:
    """Stop the streams when somebody lets the group rest."""
    done = threading.Event()

    def follow() -> None:
        while not done.wait(WISH_SECONDS):
            wish = wishes.get(group)
            # An unreadable wish is told by the sensor; it is no reason to stop what runs.
            if wish.state == "paused" and wish.problem is None:
                interruption.stop.set()
                return

    follower = threading.Thread(target=follow, name=f"wish of {group}", daemon=True)
    follower.start()
    try:
        yield
    finally:
        done.set()
        follower.join()


def _starter(context: dg.AssetExecutionContext) -> str:
    return context.run.tags.get("user", "Dagster")
