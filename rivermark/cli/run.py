"""`rivermark run`: streams until what is there is drained, or until somebody says stop."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from rivermark.cli.console import err, grid, moment, number, out, plain
from rivermark.cli.deployment import Home, selected, settings_for, topology
from rivermark.cli.progress import bounded_progress
from rivermark.cli.session import engine, stop_on_signals
from rivermark.model.stream import AnyStream, Ingest
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.settings import Settings

if TYPE_CHECKING:
    from rivermark.runtime.batch_metrics import StreamSummary
    from rivermark.runtime.supervision.report import Report

INTERRUPTED: Final = 130
LOOK_SECONDS: Final = 2.0

Streams = Annotated[
    list[str] | None, typer.Argument(metavar="[STREAM]...", help="Names; all where none is given.")
]
Groups = Annotated[
    list[str] | None,
    typer.Option(
        "--group", "-g", metavar="GROUP", help="Every stream of a group; may be repeated."
    ),
]


def run(
    streams: Streams = None,
    group: Groups = None,
    upstream: Annotated[
        bool, typer.Option("--upstream", help="Also run the streams that these read.")
    ] = False,
    continuous: Annotated[
        bool, typer.Option("--continuous", help="Go on until Ctrl-C, SIGTERM or a pause.")
    ] = False,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="With --continuous: pause of reports.")
    ] = 10.0,
    home: Home = None,
) -> None:
    """Run streams: drain what is there and end, or go on with --continuous.

    Examples:
        rivermark run
        rivermark run taxi/hourly_winners --upstream
        rivermark run --group taxi_events --continuous
    """
    settings, found = settings_for(home), topology()
    chosen = selected(found, streams or [], group or [], upstream=upstream)
    run_id = new_run_id()
    # Here, because a name that is wrong must not wait for Spark's modules.
    from rivermark.runtime.query.backlog import kind_of_run

    kind = "long" if continuous else kind_of_run(settings, chosen)
    with engine(settings, kind) as spark, stop_on_signals() as stop:
        # Here, because Spark's modules are slow to import and the engine has them by now.
        from rivermark.runtime.supervision.run import run_bounded, run_continuous

        if continuous:
            err().print(plain(f"{len(chosen)} streams run as {run_id}; Ctrl-C stops them"))
            with stop_on_pause(settings, chosen, stop):
                summaries = run_continuous(
                    spark,
                    settings,
                    found,
                    chosen,
                    run_id=run_id,
                    stop=stop,
                    on_report=say_what_moved,
                    report_every=timedelta(seconds=every),
                )
        else:
            with bounded_progress(settings, chosen) as heard:
                summaries = run_bounded(
                    spark, settings, found, chosen, run_id=run_id, on_report=heard, stop=stop
                )
    print_summaries(chosen, summaries)
    if stop.is_set() and not continuous:
        err().print(plain("stopped before everything was drained; run again to go on"))
        raise typer.Exit(INTERRUPTED)


def new_run_id() -> str:
    """A name for a run started from a console."""
    return f"console-{uuid.uuid4().hex[:12]}"


def say_what_moved(report: Report) -> None:
    """One line for a stream that did something since its last report."""
    numbers = report.numbers
    if not numbers["rows_in"] and not numbers["rows_out"]:
        return
    err().print(
        plain(
            f"{report.at:%H:%M:%S}  {report.stream}: {number(numbers['rows_in'])} rows in "
            f"({numbers['rows_per_second']:,.0f} a second), {number(numbers['rows_out'])} out, "
            f"{number(numbers['late'])} late so far; watermark {moment(report.watermark) or 'none'}"
        )
    )


@contextmanager
def stop_on_pause(
    settings: Settings, streams: Sequence[AnyStream], stop: threading.Event
) -> Iterator[None]:
    """Set `stop` when somebody pauses a group of these streams from now on.

    A pause from before is not obeyed: whoever types this command wants the streams to run.
    """
    store, groups, began = (
        DesiredStore(settings.state),
        sorted({s.group for s in streams}),
        datetime.now(UTC),
    )
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(LOOK_SECONDS):
            for group in groups:
                wish = store.get(group)
                if wish.state == "paused" and wish.at is not None and wish.at > began:
                    err().print(plain(f"group '{group}' was paused by {wish.by}: {wish.reason}"))
                    stop.set()
                    return

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()


def print_summaries(streams: Sequence[AnyStream], summaries: dict[str, StreamSummary]) -> None:
    """What the run did, a line a stream, and what still waits."""
    numeric = ("rows in", "admitted", "late", "set aside", "rows out", "batches")
    table = grid(None, ("stream", *numeric, "watermark"), right=numeric)
    for stream in streams:
        done = summaries[stream.name]
        door = isinstance(stream, Ingest)
        table.add_row(
            stream.name,
            number(done.rows_in),
            number(done.admitted if door else None),
            number(done.late if door else None),
            number(done.quarantined if door else None),
            number(None if door else done.rows_out),
            number(done.batches),
            moment(done.watermark),
        )
    out().print(table)
    for stream in streams:
        for waits in summaries[stream.name].pending:
            out().print(plain(f"{stream.name}: {waits}"))
