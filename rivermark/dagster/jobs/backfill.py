"""The context of the jobs that recompute days, and their errors as failed steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import dagster as dg

from rivermark.backfill.context import BackfillContext
from rivermark.backfill.result import Reprocessing
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.dagster.resources.spark import SparkResource
from rivermark.model.errors import RivermarkError
from rivermark.model.topology import Topology
from rivermark.runtime.query.backlog import kind_of_backfill


def backfill_context(
    context: dg.OpExecutionContext,
    topology: Topology,
    platform: SettingsResource,
    spark: SparkResource,
    on_done: Callable[[Reprocessing], None] = lambda _: None,
) -> BackfillContext:
    """The context of a run: its steps go to the run's log, Spark starts when it is needed."""

    def expect(size: int) -> None:
        spark.for_run(kind_of_backfill(size))

    return BackfillContext(
        settings=platform.settings(),
        topology=topology,
        spark=lambda: spark.spark_session,
        run_id=context.run.run_id,
        on_step=context.log.info,
        on_done=on_done,
        expect=expect,
    )


@contextmanager
def failing_step() -> Iterator[None]:
    """Fail the step, without retries, with the message of a RivermarkError."""
    try:
        yield
    except RivermarkError as error:
        raise dg.Failure(
            description=str(error), metadata={"error": type(error).__name__}, allow_retries=False
        ) from error
