"""`rivermark checks`: the checks of streams and tables, evaluated without Dagster and Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final

import typer

from rivermark.cli.arguments import Groups, Home, Json, Streams
from rivermark.cli.console import coloured, err, grid, number, out, plain, print_json
from rivermark.cli.deployment import selected, settings_for, topology
from rivermark.cli.exit_codes import ExitCode
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.delta import dataset_of, delta_table
from rivermark.lake.snapshot import snapshot
from rivermark.model.stream import AnyStream
from rivermark.model.topology import Topology
from rivermark.monitor.checks.history import (
    FAILED,
    UNANSWERED,
    RecordedResult,
    evaluate_all,
    record,
)
from rivermark.monitor.checks.known_unique import KnownUnique
from rivermark.monitor.checks.registry import checks_of_stream
from rivermark.monitor.completeness.checks import completeness_checks
from rivermark.quality.duckdb_evaluator import DuckDbEvaluator
from rivermark.quality.suites import suites_of
from rivermark.settings import Settings

BROKEN: Final = ("error", UNANSWERED)


def checks(
    streams: Streams = None,
    group: Groups = None,
    every: Annotated[
        bool, typer.Option("--all", help="List the checks that hold as well.")
    ] = False,
    suites: Annotated[
        bool, typer.Option(help="Also evaluate the suites of the tables; they read every row.")
    ] = True,
    keep: Annotated[
        bool, typer.Option("--record", help="Keep the results of checks, as the dashboard does.")
    ] = False,
    whole: Annotated[
        bool,
        typer.Option(
            "--whole", help="Look for repeated keys in whole tables, not in new rows alone."
        ),
    ] = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Evaluate the checks of streams and tables; the exit code says whether they hold.

    Without names, the checks of all streams that have run are evaluated. They are the same as in
    Dagster and have the same names; the rules of a suite have their own. Checks that need Spark
    (versions, recomputed days) are left to Dagster and `rivermark verify`.

    The exit code is 0 if all hold, 1 if one is broken or cannot be evaluated, and 3 if some only
    warn.

    JSON:
        held, warn, error, unanswered,
        checks (at, stream, table, check, result, observed)

    Examples:
        rivermark checks
        rivermark checks --group taxi_events --json
        rivermark checks taxi/trips --no-suites --all
    """
    settings, declared = settings_for(home), topology()
    now, lake = datetime.now(UTC), settings.lake()
    chosen = selected(declared, streams or (), group or ())
    started = [stream for stream in chosen if lake.exists(stream.tables[0])]
    if whole:
        KnownUnique(settings.state).forget(table for each in started for table in each.tables)
    with err().status("Checking"), snapshot(lake, INGEST_FILES):
        results = evaluated(settings, declared, started, now)
        if keep:
            record(settings, results)
        if suites:
            results += [r for stream in started for r in rules_evaluated(settings, stream, now)]
    counts = Counter(result.result for result in results)
    sums = {name: counts[name] for name in ("held", "warn", "error", UNANSWERED)}
    if as_json:
        print_json({**sums, "checks": results})
    else:
        shown = [r for r in results if every or r.result != "held"]
        print_checks(shown)
        out().print(plain(", ".join(f"{number(n)} {name}" for name, n in sums.items())))
    if any(counts[name] for name in BROKEN):
        raise typer.Exit(ExitCode.FAULT)
    if counts["warn"]:
        raise typer.Exit(ExitCode.WARNED)


def evaluated(
    settings: Settings, declared: Topology, streams: Sequence[AnyStream], now: datetime
) -> list[RecordedResult]:
    """The results of the checks of streams and of the completeness of their days."""
    chosen = [
        check
        for stream in streams
        for check in (*checks_of_stream(stream), *completeness_checks(declared, stream))
    ]
    return [evaluation.recorded(now) for evaluation in evaluate_all(settings, chosen, now)]


def rules_evaluated(
    settings: Settings, stream: AnyStream, now: datetime
) -> Iterator[RecordedResult]:
    """The results of the rules of the suites of the stream's tables, at their newest version."""
    lake = settings.lake()
    for table, suite in suites_of(stream):
        if not lake.exists(table):
            continue
        try:
            newest = delta_table(lake.path(table))
            rules = DuckDbEvaluator(dataset_of(newest), table, newest.version()).evaluate(suite)
        except Exception as error:
            # One table that cannot be read does not keep the others from being evaluated.
            problem = f"cannot be evaluated: {error}"
            yield RecordedResult(now, stream.name, table.name, suite.name, UNANSWERED, problem)
            continue
        for rule in rules.results:
            result = "held" if rule.passed else FAILED[rule.severity]
            result = UNANSWERED if rule.error else result
            yield RecordedResult(now, stream.name, table.name, rule.name, result, rule.observed)


def print_checks(results: Sequence[RecordedResult]) -> None:
    """A table of results, those that are broken first."""
    if not results:
        return
    order = (*BROKEN, "warn", "held")
    table = grid(None, ("result", "table", "check", "observed"))
    for each in sorted(results, key=lambda r: order.index(r.result)):
        table.add_row(coloured(each.result), each.table, each.check, each.observed)
    out().print(table)
