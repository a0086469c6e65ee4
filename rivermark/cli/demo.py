"""`rivermark demo`: real files land, flow through every stream, and are accounted for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rivermark.cli.arguments import Home, Json
from rivermark.cli.checks import BROKEN
from rivermark.cli.console import err, grid, number, out, plain, print_json
from rivermark.cli.demo_scene import LandedInput, Scene, scenes, serving
from rivermark.cli.deployment import local_landing, settings_for, topology
from rivermark.cli.exit_codes import ExitCode
from rivermark.cli.progress import bounded_progress
from rivermark.cli.session import engine, launch_ahead, new_run_id
from rivermark.cli.show import newest_rows, print_rows
from rivermark.lake.snapshot import row_count
from rivermark.model.errors import WrongUse
from rivermark.model.stream import AnyStream, Ingest
from rivermark.model.topology import Topology
from rivermark.monitor.charts import draw_inflow, draw_results
from rivermark.monitor.checks.history import Evaluation, evaluate_all
from rivermark.monitor.dashboard.refresh import page_path, refresh
from rivermark.monitor.status import status_of
from rivermark.runtime.supervision.hosting import stop_on_signals
from rivermark.settings import Settings

if TYPE_CHECKING:
    from rivermark.runtime.supervision.report import OnReport, Report


@dataclass(frozen=True)
class DemoReport:
    """Result of the demo: rows by table before and after, and the checks that it evaluated.

    The checks are those of the dashboard, which is drawn with them, and the scenes' own.
    """

    before: dict[str, int]
    after: dict[str, int]
    checked: list[Evaluation]

    @property
    def added(self) -> int:
        """Number of rows that the tables gained."""
        return sum(self.after.values()) - sum(self.before.values())


def demo(
    scene: Annotated[
        list[str] | None, typer.Argument(metavar="[SCENE]...", help="Only these. Default: all.")
    ] = None,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Let real taxi trips and temperature readings flow from files to published tables.

    Needs no network: a web service that takes alerts runs on this machine, while the demo
    does. Takes a minute on two cores. A second run finds everything done and adds nothing.

    JSON:
        landed (what, files, rows, new_files), added, tables (rows by table), services, charts,
        page, seconds, checks (at, stream, table, check, result, observed)

    Examples:
        rivermark demo
        rivermark demo fraud --home scratch
    """
    began = time.monotonic()
    settings, parts = settings_for(home), chosen_scenes(scene)
    landing = local_landing(settings)
    err().print(plain(f"home {settings.home}"))
    launch_ahead(settings)
    landed = land_all(landing, parts)
    if not as_json:
        print_landed(landed)
    charts = settings.home / "charts"
    with serving(parts) as heard_by_services:
        # Imported here: declarations read the variables that name the services.
        declared = topology()
        streams = with_input(settings, declared)
        # What came in is drawn, once, while other streams still run.
        drawing = ThreadPoolExecutor(1, "drawing")
        picture = partial(draw_inflow, settings, streams, charts / "rows_per_hour.svg")
        inflow = cache(lambda: drawing.submit(picture))
        report = flow(settings, declared, streams, parts, on_admitted=inflow)
        said = heard_by_services()
    if not as_json:
        print_results(settings, declared, streams, parts, report.checked)
        for sentence in said:
            out().print(plain(sentence))
    with err().status("Drawing"):
        published = draw_results(settings, declared, charts / "published_results.svg")
        drawn = [inflow().result(), published]
    now = datetime.now(UTC)
    results = [e.recorded(now) for e in report.checked]
    seconds = time.monotonic() - began
    if as_json:
        print_json(
            {
                "landed": landed,
                "added": report.added,
                "tables": report.after,
                "services": said,
                "charts": drawn,
                "page": page_path(settings),
                "seconds": round(seconds, 3),
                "checks": results,
            }
        )
    else:
        for chart in drawn:
            out().print(plain(f"chart: {chart}"))
        out().print(plain(f"dashboard: {page_path(settings)}"))
        for each in results:
            if not each.passed:
                result = f"{each.result}: {each.stream} {each.check}: {each.observed}"
                out().print(plain(result, "red" if each.result in BROKEN else ""))
        passed = sum(each.passed for each in results)
        out().print(plain(f"{passed} of {len(results)} checks hold; {seconds:.0f} s"))
        out().print(plain(news(landed, report)))
        print_next(parts)
    if any(each.result in BROKEN for each in results):
        raise typer.Exit(ExitCode.FAULT)


def chosen_scenes(names: Sequence[str] | None) -> dict[str, Scene]:
    """The scenes of these names, all where there are none; raises WrongUse for an unknown one."""
    parts = scenes()
    for name in names or ():
        if name not in parts:
            raise WrongUse(f"no scene '{name}': there are {', '.join(parts)}")
    return {name: part for name, part in parts.items() if not names or name in names}


def land_all(landing: Path, parts: Mapping[str, Scene]) -> list[LandedInput]:
    """Let every scene land its inputs."""
    landed: list[LandedInput] = []
    with err().status("Landing files"):
        for scene in parts.values():
            landed += scene.land(landing)
    return landed


def with_input(settings: Settings, declared: Topology) -> list[AnyStream]:
    """The streams that have anything to read: files in their landing folder, or such a source.

    A query costs about a second, also where it finds nothing.
    """
    chosen: list[AnyStream] = []
    for stream in declared.streams:
        if isinstance(stream, Ingest):
            if stream.source.open(settings.landing_root).backlog().splits:
                chosen.append(stream)
        elif any(upstream in chosen for upstream in declared.upstreams(stream)):
            chosen.append(stream)
    return chosen


def flow(
    settings: Settings,
    declared: Topology,
    streams: Sequence[AnyStream],
    parts: Mapping[str, Scene],
    *,
    on_admitted: Callable[[], object],
) -> DemoReport:
    """Run the streams until the landed files are drained, then evaluate their checks.

    `on_admitted` is called when every ingest has ended.
    """
    before = rows_by_table(settings, streams)
    with engine(settings, "short") as spark, stop_on_signals() as stop:
        # Here, because Spark's modules are slow to import and the engine has them by now.
        from rivermark.runtime.supervision.lineage_record import record_lineage
        from rivermark.runtime.supervision.run import run_bounded

        with bounded_progress(settings, streams) as heard:
            run_bounded(
                spark,
                settings,
                declared,
                streams,
                run_id=new_run_id(),
                on_report=when_admitted(streams, heard, on_admitted),
                stop=stop,
            )
        if not stop.is_set():
            record_lineage(spark, settings.state, streams)
    if stop.is_set():
        err().print(plain("stopped; rivermark demo goes on from here"))
        raise typer.Exit(ExitCode.INTERRUPTED)
    extra = [check for scene in parts.values() for check in scene.checks]
    now = datetime.now(UTC)
    with err().status("Checking, and drawing the dashboard"):
        drawn = refresh(settings, declared, now)
        checked = [*drawn.evaluations, *evaluate_all(settings, extra, now)]
    return DemoReport(before, rows_by_table(settings, streams), checked)


def when_admitted(
    streams: Sequence[AnyStream], hear: OnReport, then: Callable[[], object]
) -> OnReport:
    """A listener that also calls `then` when the last ingest has ended."""
    running = {stream.name for stream in streams if isinstance(stream, Ingest)}

    def listen(report: Report) -> None:
        hear(report)
        if report.kind == "final" and report.stream in running:
            running.remove(report.stream)
            if not running:
                then()

    return listen


def rows_by_table(settings: Settings, streams: Sequence[AnyStream]) -> dict[str, int]:
    """Rows of every table, by its statistics."""
    lake = settings.lake()
    return {t.name: row_count(lake, t) for s in streams for t in s.tables}


def print_landed(landed: Sequence[LandedInput]) -> None:
    """Prints the content of the landing folder."""
    table = grid(
        "Landed", ("input", "files", "rows", "new files"), right=("files", "rows", "new files")
    )
    for each in landed:
        table.add_row(each.what, number(each.files), number(each.rows), number(each.new_files))
    out().print(table)


def print_results(
    settings: Settings,
    declared: Topology,
    streams: Sequence[AnyStream],
    parts: Mapping[str, Scene],
    checked: Sequence[Evaluation],
) -> None:
    """Prints the outcome of each stream, and the rows that the scenes think worth a look."""
    print_streams(settings, streams, checked)
    idle = [s.name for s in declared.streams if s not in streams]
    if idle:
        out().print(plain(f"without input in this demo: {', '.join(idle)}"))
    for scene in parts.values():
        for preview in scene.previews:
            rows = newest_rows(settings.lake(), preview.table, preview.limit, oldest=preview.oldest)
            print_rows(preview.table, rows, columns=preview.columns, title=preview.title)


def print_streams(
    settings: Settings, streams: Sequence[AnyStream], checked: Sequence[Evaluation]
) -> None:
    """Rows in and out of every stream, and how many of its checks pass."""
    numeric = ("rows in", "admitted", "late", "quarantined", "rows out", "checks")
    table = grid("Streams", ("stream", *numeric), right=numeric)
    for state in status_of(settings, streams, datetime.now(UTC)):
        of_stream = [e for e in checked if e.check.stream == state.stream]
        table.add_row(
            state.stream,
            number(state.rows_in),
            number(state.admitted),
            number(state.late),
            number(state.quarantined),
            number(state.rows),
            f"{sum(e.passed for e in of_stream)} of {len(of_stream)}",
        )
    out().print(table)


def news(landed: Sequence[LandedInput], report: DemoReport) -> str:
    """The additions of this run, in a sentence."""
    new = sum(each.new_files for each in landed)
    tables = len(report.after)
    if not report.added:
        return f"Nothing new had landed: the {tables} tables have the rows they had before."
    rest = "" if new else ", left over from an earlier run"
    return f"{number(report.added)} rows added to {tables} tables{rest}."


def print_next(parts: Mapping[str, Scene]) -> None:
    """The next commands to try."""
    table = grid("Next", ("command", "what it does"))
    for command, what in (pair for scene in parts.values() for pair in scene.next_commands):
        table.add_row(plain(command, "bold"), plain(what))
    out().print(table)
