"""Commands of the readings domain: generated sensors that read in real time."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from rivermark import RivermarkError
from rivermark.cli.arguments import Home
from simulator.feed_command import Lasting, land_as_it_happens
from simulator.readings.feeds import sensor_feeds
from simulator.readings.world import SensorWorld


def sensors(
    count: Annotated[int, typer.Option("--sensors", min=1, help="Number of sensors.")] = 20,
    period: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.001, help="Time between two readings."),
    ] = 1.0,
    controls: Annotated[
        bool, typer.Option("--controls", help="Land thresholds and smoke levels as well.")
    ] = False,
    lasting: Lasting = None,
    home: Home = None,
) -> None:
    """Land readings of generated sensors as they happen, some late, lost or twice, until Ctrl-C.

    Examples:
        rivermark sensors
        rivermark sensors --sensors 200 --period 0.5 --for 60
        rivermark sensors --controls
    """
    try:
        world = SensorWorld(sensors=count, period=timedelta(seconds=period))
    except ValueError as error:
        raise RivermarkError(str(error)) from error
    land_as_it_happens(
        "readings", lambda now: sensor_feeds(world, now, controls=controls), lasting, home
    )
