"""`rivermark run`: streams until what is there is drained, or until they are stopped."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from rivermark.cli.arguments import DryRun, Groups, Home, Json, Streams
from rivermark.cli.console import err, grid, moment, number, out, plain, print_json
from rivermark.cli.deployment import selected, settings_for, topology
from rivermark.cli.exit_codes import ExitCode
from rivermark.cli.progress import bounded_progress
from rivermark.cli.session import engine, new_run_id
from rivermark.model.errors import WrongUse
from rivermark.model.stream import AnyStream, Ingest
from rivermark.model.topology import Topology
from rivermark.runtime.supervision.desired_state import Desired
from rivermark.runtime.supervision.hosting import Hosting, stop_on_signals
from rivermark.settings import Settings

if TYPE_CHECKING:
    from rivermark.runtime.batch_metrics import StreamSummary
    from rivermark.runtime.supervision.report import Report

REPORT_SECONDS: Final = 10.0


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
        float | None,
        typer.Option(metavar="SECONDS", min=1, help="With --continuous: interval of reports (10)."),
    ] = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Run streams: drain the waiting input and end, or go on with --continuous.

    Without names, all streams run. A dry run lists them in their order, with the input that waits
    at the sources.

    JSON:
        run_id, streams (stream, rows_in, admitted, late, quarantined, rows_out, batches,
        watermark, pending); in a dry run streams (stream, group, waiting: files or other splits,
        null for a stream that reads tables)

    Examples:
        rivermark run
        rivermark run taxi/hourly_winners --upstream
        rivermark run --group taxi_events --continuous
    """
    if every is not None and not continuous:
        raise WrongUse("--every is the interval of reports and needs --continuous")
    settings, deployed = settings_for(home), topology()
    chosen = selected(deployed, streams or [], group or [], upstream=upstream)
    if dry_run:
        would_run(settings, chosen, as_json=as_json)
        return
    host(settings, deployed, chosen, continuous=continuous, every=every, as_json=as_json)


def host(
    settings: Settings,
    deployed: Topology,
    chosen: Sequence[AnyStream],
    *,
    continuous: bool,
    every: float | None = None,
    as_json: bool = False,
) -> None:
    """Run the streams in this process, and print what they did."""
    hosting = Hosting(
        settings=settings,
        topology=deployed,
        streams=chosen,
        run_id=new_run_id(),
        continuous=continuous,
    )
    # A pause from before is not obeyed: who types this command wants the streams to run.
    now = datetime.now(UTC)
    needed = hosting.session_kind(), hosting.real_time_slots()
    with engine(settings, *needed) as spark, stop_on_signals() as stop:
        if continuous:
            err().print(plain(f"{len(chosen)} streams run as {hosting.run_id}; Ctrl-C stops them"))
            summaries = hosting.run(
                spark,
                stop,
                on_report=say_what_moved,
                report_every=timedelta(seconds=every or REPORT_SECONDS),
                paused_since=now,
                on_pause=say_paused,
            )
        else:
            with bounded_progress(settings, chosen) as listener:
                summaries = hosting.run(spark, stop, on_report=listener)
    if as_json:
        print_json({"run_id": hosting.run_id, "streams": as_plain(chosen, summaries)})
    else:
        print_summaries(chosen, summaries)
    if stop.is_set() and not continuous:
        err().print(plain("stopped before everything was drained; run again to go on"))
        raise typer.Exit(ExitCode.INTERRUPTED)


def would_run(settings: Settings, streams: Sequence[AnyStream], *, as_json: bool) -> None:
    """The streams in the order of a run, and how much waits at the sources of those that have."""
    # Here, because `--help` needs nothing of ingests.
    from rivermark.ingest.plan import opened_source

    lake = settings.lake()
    waiting: dict[str, int] = {}
    for stream in streams:
        if isinstance(stream, Ingest):
            with opened_source(lake, settings.landing_root, stream) as source:
                waiting[stream.name] = source.backlog().splits
    rows = [(stream.name, stream.group, waiting.get(stream.name)) for stream in streams]
    if as_json:
        names = ("stream", "group", "waiting")
        print_json({"streams": [dict(zip(names, row, strict=True)) for row in rows]})
        return
    table = grid("would run", ("stream", "group", "waiting"), right=("waiting",))
    for name, group, splits in rows:
        table.add_row(name, group, number(splits))
    out().print(table)


def say_what_moved(report: Report) -> None:
    """One line for a stream that did something, or failed, since its last report."""
    numbers = report.numbers
    if report.error:
        then = "has failed" if report.failed else "is started again after"
        err().print(plain(f"{report.at:%H:%M:%S}  {report.stream}: {then}: {report.error}"))
    if not numbers["rows_in"] and not numbers["rows_out"]:
        return
    err().print(
        plain(
            f"{report.at:%H:%M:%S}  {report.stream}: {number(numbers['rows_in'])} rows in "
            f"({numbers['rows_per_second']:,.0f} a second), {number(numbers['rows_out'])} out, "
            f"{number(numbers['late'])} late so far; watermark {moment(report.watermark) or 'none'}"
        )
    )


def say_paused(group: str, desired: Desired) -> None:
    """Says why the run ends."""
    err().print(plain(f"group '{group}' was paused by {desired.by}: {desired.reason}"))


def as_plain(
    streams: Sequence[AnyStream], summaries: dict[str, StreamSummary]
) -> list[dict[str, Any]]:
    """The outcome of the run by stream, in values that JSON knows."""
    counts = ("rows_in", "admitted", "late", "quarantined", "rows_out", "batches")
    names = (*counts, "watermark", "pending")
    return [
        {"stream": s.name, **{name: getattr(summaries[s.name], name) for name in names}}
        for s in streams
    ]


def print_summaries(streams: Sequence[AnyStream], summaries: dict[str, StreamSummary]) -> None:
    """Prints the outcome of the run, a line a stream, and what still waits."""
    numeric = ("rows in", "admitted", "late", "quarantined", "rows out", "batches")
    table = grid(None, ("stream", *numeric, "watermark"), right=numeric)
    for stream in streams:
        done = summaries[stream.name]
        admits = isinstance(stream, Ingest)
        table.add_row(
            stream.name,
            number(done.rows_in),
            number(done.admitted if admits else None),
            number(done.late if admits else None),
            number(done.quarantined if admits else None),
            number(None if admits else done.rows_out),
            number(done.batches),
            moment(done.watermark),
        )
    out().print(table)
    for stream in streams:
        for waits in summaries[stream.name].pending:
            out().print(plain(f"{stream.name}: {waits}"))
