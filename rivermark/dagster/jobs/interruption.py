"""Turning a cancelled run into a stop between two batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from dagster import DagsterExecutionInterruptedError

from rivermark.model.errors import StreamFailed
from rivermark.runtime.supervision.hosting import StopRequest, stop_on_signals


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


def cancelled_by_a_person(context: dg.AssetExecutionContext) -> bool:
    """True if the interrupt comes from 'Terminate' and not from a machine that goes down."""
    run = context.instance.get_run_by_id(context.run.run_id)
    return run is not None and run.status is dg.DagsterRunStatus.CANCELING
