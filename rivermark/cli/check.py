"""`rivermark check`: every fault of the declarations, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import typer

from rivermark.cli.arguments import Groups, Home, Streams
from rivermark.cli.console import err, out, plain
from rivermark.cli.deployment import selected, settings_for, topology
from rivermark.cli.session import engine, launch_ahead
from rivermark.model.declared import collected_errors
from rivermark.model.errors import DeclarationError, RivermarkError
from rivermark.model.topology import Topology


def check(
    streams: Streams = None,
    group: Groups = None,
    home: Home = None,
) -> None:
    """Check the declarations on empty tables: needs no data, and writes no table.

    Each fault is a sentence with its file and line; with one or more the exit code is 1.

    Examples:
        rivermark check
        rivermark check --group taxi_events
        rivermark check taxi/hourly_winners
    """
    settings = settings_for(home)
    # The JVM starts while the declarations are imported.
    launch_ahead(settings, "short")
    declared = checked_topology()
    chosen = selected(declared, streams or [], group or [])
    # Spark's modules are imported beside the start of its JVM.
    from rivermark.runtime.preflight import EmptyInputs, faults_of, faults_without_spark

    faults = [fault for stream in chosen for fault in faults_without_spark(stream)]
    with engine(settings, "short") as spark, TemporaryDirectory() as folder:
        inputs = EmptyInputs(spark, Path(folder))
        faults += [fault for stream in chosen for fault in faults_of(stream, inputs)]
    report(faults)
    streams_in_words = "1 stream" if len(chosen) == 1 else f"{len(chosen)} streams"
    err().print(plain(f"{streams_in_words} checked: no fault"))


def checked_topology() -> Topology:
    """The streams of the deployment; reports every declaration that is refused."""
    with collected_errors() as faults:
        try:
            declared = topology()
        except RivermarkError as error:
            # What was kept although it is not right may lead to errors of any kind.
            report(faults or [error])
            raise
    report(faults)
    return declared


def report(faults: Iterable[RivermarkError | DeclarationError]) -> None:
    """Print the faults, each once, and exit with code 1 where there are some."""
    sentences = dict.fromkeys(str(fault) for fault in faults)
    for sentence in sentences:
        out().print(plain(sentence), soft_wrap=True)
    if sentences:
        faults_in_words = "1 fault" if len(sentences) == 1 else f"{len(sentences)} faults"
        err().print(plain(faults_in_words, "red"))
        raise typer.Exit(1)
