"""`rivermark check`: every fault of the declarations, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from rivermark.cli.arguments import Groups, Home, Json, Streams
from rivermark.cli.console import err, out, plain, print_json
from rivermark.cli.deployment import selected, settings_for, topology
from rivermark.cli.exit_codes import ExitCode
from rivermark.cli.session import engine, launch_ahead
from rivermark.model.declared import collected_errors
from rivermark.model.dependents import fails_by_faulty
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import AnyStream
from rivermark.settings import Settings

if TYPE_CHECKING:
    from rivermark.runtime.savepoint.guard import StateFit


def check(
    streams: Streams = None,
    group: Groups = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="F", help="A manifest: refuse what its state could not go on with."),
    ] = None,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Check the declarations on empty tables; this needs no data and writes no table.

    Each fault is a sentence with its file and line; if there is any, the exit code is 1. Without
    names, all streams are checked. With --against, each stream is also compared with the state that
    a deployment has of it (rivermark manifest), as its start would.

    JSON:
        streams, faults; with --against: state (stream, kind, changes, advice)

    Examples:
        rivermark check
        rivermark check --group taxi_events
        rivermark check taxi/hourly_winners --json
        rivermark check --against manifest.json
    """
    settings = settings_for(home)
    # The JVM starts while the declarations are imported.
    launch_ahead(settings)
    chosen, faults = declared_streams(streams or (), group or ())
    fits: list[StateFit] = []
    if not faults:
        faults, fits = faults_on_empty_tables(settings, chosen, against)
    refused = [fit for fit in fits if fit.kind != "compatible"]
    sentences = [*dict.fromkeys(str(fault) for fault in (*faults, *refused))]
    if as_json:
        more = {} if against is None else {"state": fits}
        print_json({"streams": len(chosen), "faults": sentences, **more})
    elif sentences:
        for sentence in sentences:
            out().print(plain(sentence), soft_wrap=True)
    else:
        state = f"; the state of {len(fits)} fits" if against is not None else ""
        out().print(plain(f"no fault in {len(chosen)} stream{'s' * (len(chosen) != 1)}{state}"))
    if sentences:
        raise typer.Exit(ExitCode.FAULT)


def declared_streams(
    names: Sequence[str], groups: Sequence[str]
) -> tuple[list[AnyStream], list[RivermarkError]]:
    """The streams that are meant, and everything that was refused when they were declared."""
    with collected_errors() as faults:
        try:
            declared = topology()
        except RivermarkError as error:
            # What was kept although it is not right leads to errors of any kind; one that has
            # nothing to do with it must be told as well.
            if faults and fails_by_faulty(error):
                return [], [*faults]
            if faults:
                error = RivermarkError(f"{error}; it may follow from the faults before it")
            return [], [*faults, error]
    if faults:
        return [], [*faults]
    return selected(declared, names, groups), [*declared.left_out()]


def faults_on_empty_tables(
    settings: Settings, streams: Iterable[AnyStream], against: Path | None = None
) -> tuple[list[RivermarkError], list[StateFit]]:
    """Faults of suites, rules and builds, and how the state of a manifest fits."""
    # Spark's modules are imported beside the start of its JVM.
    from rivermark.runtime.preflight import EmptyInputs, faults_of, faults_without_spark

    deployed = None
    if against is not None:
        from rivermark.runtime.savepoint.guard import fits_of, read_deployment

        deployed = read_deployment(against)
    with engine(settings, "short") as spark, TemporaryDirectory() as folder:
        inputs, faults = EmptyInputs(spark, Path(folder)), list[RivermarkError]()
        with err().status("Trying streams on empty tables") as status:
            for stream in streams:
                status.update(plain(f"Trying {stream.name} on empty tables"))
                faults += (*faults_without_spark(stream), *faults_of(stream, inputs))
            if deployed is None or faults:
                return faults, []
            status.update("Comparing with the state of the manifest")
            return faults, [*fits_of(spark, streams, deployed)]
