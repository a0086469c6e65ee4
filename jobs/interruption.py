"""Turning a cancelled run into a stop between two batches."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import dagster as dg
from dagster import DagsterExecutionInterruptedError


class Interruption:
    """Whether somebody wants the run to end; `stop` is what the runtime watches."""

    def __init__(self) -> None:
        """Begin undisturbed."""
        self.stop = threading.Event()
        self.happened = False

    def note(self, _signal: int, _frame: FrameType | None) -> None:
        """Ask for a stop; when asked a second time, stop at once."""
        if self.happened:
            raise DagsterExecutionInterruptedError
        self.happened = True
        self.stop.set()


@contextmanager
def drained() -> Iterator[Interruption]:
    """Hold interrupts back while streams run, and raise them when the streams have stopped.

    Enter it after the Spark session is open: a context that is born in the main thread puts its own
    handler for SIGINT in place of Dagster's, and that one kills the jobs of the batch under way.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    kept = {s: signal.signal(s, interruption.note) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interruption
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
    if interruption.happened:
        raise DagsterExecutionInterruptedError


def cancelled_by_a_person(context: dg.AssetExecutionContext) -> bool:
    """Whether the interrupt comes from 'Terminate' and not from a machine that goes down."""
    run = context.instance.get_run_by_id(context.run.run_id)
    return run is not None and run.status is dg.DagsterRunStatus.CANCELING
