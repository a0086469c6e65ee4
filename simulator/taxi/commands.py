"""Commands of the taxi domain: rides that drip, recorded trips that are replayed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from assets.taxi.ingest import LATENESS
from rivermark.cli.arguments import Home
from rivermark.cli.console import out, plain
from rivermark.cli.deployment import local_landing, settings_for
from rivermark.model.errors import RivermarkError
from rivermark.runtime.supervision.hosting import stop_on_signals
from simulator.disorder import Disorder
from simulator.feed_command import Lasting
from simulator.landing.commands import landed_sentence, landing_progress, manifest_path
from simulator.taxi.drip import drip as land_drip
from simulator.taxi.drip_plan import MILD_DISORDER, DripPlan
from simulator.taxi.replay import replay as land_replay

RIDES_A_SECOND: Final = 1000
"""How many ride numbers a drip may use for each second until the next one begins."""

COUNTED_FROM: Final = datetime(2020, 1, 1, tzinfo=UTC)


class Clock(StrEnum):
    """When generated rides happen: at the present, or on New Year's Day 2020."""

    now = "now"
    training = "training"


def drip(
    rate: Annotated[
        float, typer.Option(min=0, help="Events a second; 0 as fast as possible (training only).")
    ] = 100.0,
    clock: Annotated[Clock, typer.Option(help="When rides happen.")] = Clock.now,
    rides: Annotated[int | None, typer.Option(min=1, help="Number of rides; else no end.")] = None,
    lasting: Lasting = None,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.05, help="Time that one file holds.")
    ] = 1.0,
    delay: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0, help="Longest delay of events in time."),
    ] = MILD_DISORDER.delay.total_seconds(),
    late: Annotated[
        float, typer.Option(min=0, max=1, help="Share of events that arrive too late.")
    ] = MILD_DISORDER.late,
    duplicates: Annotated[
        float, typer.Option(min=0, max=1, help="Share of events that arrive twice.")
    ] = MILD_DISORDER.duplicates,
    loss: Annotated[float, typer.Option(min=0, max=1, help="Share of events that are lost.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of what is late, lost and repeated.")] = 0,
    manifest: Annotated[
        Path | None,
        typer.Option(help="Continue the drip that wrote this manifest, or start one in it."),
    ] = None,
    home: Home = None,
) -> None:
    """Land generated rides and fares as they happen, with declared disorder, until Ctrl-C.

    Each call is a drip of its own, after the files that have landed; a manifest records what it
    landed, and with that manifest it can be continued.

    Examples:
        rivermark drip
        rivermark drip --rate 1000 --late 0.02 --for 60
        rivermark drip --clock training --rate 0 --rides 5000
    """
    settings = settings_for(home)
    landing = local_landing(settings)
    now = datetime.now(UTC)
    path = manifest or manifest_path(settings, f"drip-{now:%Y%m%dT%H%M%SZ}")
    try:
        plan = DripPlan(
            rate=rate or None,
            clock=clock.value,
            rides=rides,
            disorder=Disorder(
                delay=timedelta(seconds=delay),
                late=late,
                late_by=MILD_DISORDER.late_by,
                duplicates=duplicates,
                loss=loss,
                seed=seed,
            ),
            lateness=LATENESS,
            every=timedelta(seconds=every),
        )
        with stop_on_signals() as stop, landing_progress(f"rides and fares to {landing}") as heard:
            done = land_drip(
                landing,
                path,
                plan,
                first_ride=first_ride(now) if clock is Clock.now else 1,
                behind_others=True,
                lasting=None if lasting is None else timedelta(seconds=lasting),
                stop=stop,
                on_progress=heard,
            )
    except ValueError as error:
        raise RivermarkError(str(error)) from error
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(done.kinds.items()))
    out().print(plain(f"{landed_sentence(done.paced)} ({kinds or 'no events'})"))
    out().print(plain(f"to continue it: the same command with --manifest {path}"))


def first_ride(now: datetime) -> int:
    """A ride number beyond those of all earlier drips, so that no two rides share one."""
    return (now - COUNTED_FROM) // timedelta(seconds=1) * RIDES_A_SECOND + 1


def replay(
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="A TLC trip file.")
    ],
    speed: Annotated[
        float, typer.Option(min=0, help="Seconds of event time a second; 0 as fast as possible.")
    ] = 3600.0,
    every: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.05, help="Wall time that one file holds."),
    ] = 1.0,
    longest_wait: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Longest wait for a gap in the file.")
    ] = 60.0,
    manifest: Annotated[
        Path | None,
        typer.Option(help="Where landed files are recorded; default: one for each file name."),
    ] = None,
    home: Home = None,
) -> None:
    """Land a TLC file's trips as START and END events, in the order in which they happened.

    Parquet, CSV or CSV.gz in any layout since 2009. Called again with the same options, also after
    a kill, it continues after the last file that landed. A stream goes forwards: replay older files
    first.

    Examples:
        rivermark replay yellow_tripdata_2025-02.parquet --speed 3600
        rivermark replay yellow_tripdata_2025-02.parquet --speed 0
    """
    settings = settings_for(home)
    landing = local_landing(settings)
    path = manifest or manifest_path(settings, f"replay-{file.name}")
    try:
        with stop_on_signals() as stop, landing_progress(f"{file.name} to {landing}") as heard:
            done = land_replay(
                file,
                landing,
                speed=speed or None,
                manifest=path,
                every=timedelta(seconds=every),
                longest_wait=timedelta(seconds=longest_wait),
                stop=stop,
                on_progress=heard,
            )
    except ValueError as error:
        raise RivermarkError(str(error)) from error
    out().print(plain(f"{landed_sentence(done.paced)}, from {done.trips:,} trips"))
    for why, count in sorted(done.skipped.items()):
        out().print(plain(f"skipped {count:,}: {why}"))
    for column, count in sorted(done.unread.items()):
        out().print(plain(f"without a readable {column}: {count:,} events"))
