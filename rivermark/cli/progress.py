"""Progress of a bounded run: the streams that are running, and a line for each that is done."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rivermark.cli.console import err, number, plain
from rivermark.model.stream import AnyStream, Ingest
from rivermark.runtime.supervision.heartbeat import HeartbeatStore
from rivermark.settings import Settings

if TYPE_CHECKING:
    from rivermark.runtime.supervision.report import OnReport, Report

POLL_SECONDS = 1.0
SHOWN = 3


@contextmanager
def bounded_progress(settings: Settings, streams: Sequence[AnyStream]) -> Iterator[OnReport]:
    """A listener for `run_bounded` that shows its progress, with a bar on a terminal."""
    kinds = {s.name: s for s in streams}
    console = err()
    bar = Progress(
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("streams"),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=console,
        transient=True,
    )
    began = time.monotonic()
    with bar:
        task = bar.add_task("", total=len(kinds))
        done = threading.Event()

        def poll() -> None:
            store = HeartbeatStore(settings.state)
            while not done.wait(POLL_SECONDS):
                bar.update(task, description=at_work(store, kinds))

        polling = threading.Thread(target=poll, daemon=True)
        polling.start()

        def show(report: Report) -> None:
            if report.kind == "final":
                bar.advance(task)
                after = time.monotonic() - began
                console.print(plain(f"{after:6.1f} s  {sentence(report, kinds[report.stream])}"))

        try:
            yield show
        finally:
            done.set()
            polling.join()


def at_work(store: HeartbeatStore, streams: dict[str, AnyStream]) -> str:
    """The streams that are running now, in a few words."""
    beats = store.latest()
    running = [n for n in streams if n in beats and beats[n].state in ("running", "idle")]
    more = f" and {len(running) - SHOWN} more" if len(running) > SHOWN else ""
    return ", ".join(running[:SHOWN]) + more


def sentence(report: Report, stream: AnyStream) -> str:
    """The outcome of a stream, in one line."""
    numbers = report.numbers
    rows_in, rows_out = int(numbers["rows_in"]), int(numbers["rows_out"])
    if report.failed:
        return f"{stream.name}: failed: {report.error}"
    if not rows_in and not rows_out:
        return f"{stream.name}: nothing new"
    if isinstance(stream, Ingest):
        late, quarantined = int(numbers["late"]), int(numbers["quarantined"])
        return (
            f"{stream.name}: {number(rows_in)} rows in = {number(rows_out)} admitted + "
            f"{number(late)} late + {number(quarantined)} quarantined"
        )
    return f"{stream.name}: {number(rows_in)} rows in, {number(rows_out)} rows out"
