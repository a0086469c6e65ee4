"""Turning a cancelled run into a stop between two batches."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import connection, parent_process
from typing import Final

import dagster as dg
from dagster import DagsterExecutionInterruptedError

from rivermark.model.errors import StreamFailed
from rivermark.runtime.supervision.hosting import StopRequest, stop_on_signals

PROCESS_A_STEP: Final = ("multiprocess", "multi_or_in_process_executor")
"""Dagster's executors that execute each step in a child of the run's process."""


@contextmanager
def drained() -> Iterator[StopRequest]:
    """Hold interrupts back while streams run, and raise them when the streams have stopped.

    An interrupt comes before the error of a stream that had failed: the run was cancelled.
    """
    with stop_on_signals(DagsterExecutionInterruptedError) as stop:
        try:
            yield stop
        except StreamFailed as error:
            if stop.signalled:
                raise DagsterExecutionInterruptedError from error
            raise
    if stop.signalled:
        raise DagsterExecutionInterruptedError


def end_with_run(context: dg.AssetExecutionContext) -> None:
    """Let a step's process end when that of its run does, which would go on writing otherwise.

    Only an asset that is materialized from its page, in a project with another executor than the
    jobs of streams have, gets such a process.
    """
    run = parent_process()
    # A run in one process is a child of the code server, and outlives it.
    if run is not None and context.job_def.executor_def.name in PROCESS_A_STEP:

        def wait() -> None:
            connection.wait([run.sentinel])
            os._exit(1)

        threading.Thread(target=wait, name="end with the run", daemon=True).start()


def cancelled_by_a_person(context: dg.AssetExecutionContext) -> bool:
    """True if the interrupt comes from 'Terminate' and not from a machine that goes down."""
    run = context.instance.get_run_by_id(context.run.run_id)
    return run is not None and run.status is dg.DagsterRunStatus.CANCELING
