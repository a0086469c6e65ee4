"""`rivermark check`: every fault of the declarations, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

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


def check(
    streams: Streams = None, group: Groups = None, as_json: Json = False, home: Home = None
) -> None:
    """Check the declarations on empty tables; this needs no data and writes no table.

    Each fault is a sentence with its file and line; if there is any, the exit code is 1. Without
    names, all streams are checked.

    JSON:
        streams, faults

    Examples:
        rivermark check
        rivermark check --group taxi_events
        rivermark check taxi/hourly_winners --json
    """
    settings = settings_for(home)
    # The JVM starts while the declarations are imported.
    launch_ahead(settings)
    chosen, faults = declared_streams(streams or (), group or ())
    if not faults:
        faults = faults_on_empty_tables(settings, chosen)
    sentences = [*dict.fromkeys(str(fault) for fault in faults)]
    if as_json:
        print_json({"streams": len(chosen), "faults": sentences})
    elif sentences:
        for sentence in sentences:
            out().print(plain(sentence), soft_wrap=True)
    else:
        out().print(plain(f"no fault in {len(chosen)} stream{'s' * (len(chosen) != 1)}"))
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
    settings: Settings, streams: Iterable[AnyStream]
) -> list[RivermarkError]:
    """Faults of suites, rules and builds."""
    # Spark's modules are imported beside the start of its JVM.
    from rivermark.runtime.preflight import EmptyInputs, faults_of, faults_without_spark

    with engine(settings, "short") as spark, TemporaryDirectory() as folder:
        inputs, faults = EmptyInputs(spark, Path(folder)), list[RivermarkError]()
        with err().status("Trying streams on empty tables") as status:
            for stream in streams:
                status.update(plain(f"Trying {stream.name} on empty tables"))
                faults += (*faults_without_spark(stream), *faults_of(stream, inputs))
        return faults
