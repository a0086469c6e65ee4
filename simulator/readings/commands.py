"""Commands of the readings domain: generated sensors that read in real time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from rivermark.cli.console import out, plain
from rivermark.cli.deployment import Home, settings_for
from rivermark.cli.landing import landed_sentence, landing_progress, local_landing, stop_after
from rivermark.cli.session import stop_on_signals
from rivermark.model.errors import RivermarkError
from rivermark.testing.landing.pace import Pace
from simulator.readings.drip import drip_readings
from simulator.readings.world import SensorWorld


def sensors(
    count: Annotated[int, typer.Option("--sensors", min=1, help="So many sensors.")] = 20,
    period: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.001, help="Each reads so often.")
    ] = 1.0,
    controls: Annotated[
        bool, typer.Option("--controls", help="Land thresholds and smoke levels as well.")
    ] = False,
    lasting: Annotated[
        float | None, typer.Option("--for", metavar="SECONDS", min=0, help="Stop after so long.")
    ] = None,
    home: Home = None,
) -> None:
    """Land readings of generated sensors as they happen, some late, lost or twice, until Ctrl-C.

    Examples:
        rivermark sensors
        rivermark sensors --sensors 200 --period 0.5 --for 60
        rivermark sensors --controls
    """
    landing = local_landing(settings_for(home))
    try:
        world = SensorWorld(sensors=count, period=timedelta(seconds=period))
        with (
            stop_on_signals() as stop,
            stop_after(lasting, stop),
            landing_progress(f"readings to {landing}") as heard,
        ):
            done = drip_readings(
                landing,
                world,
                datetime.now(UTC),
                controls=controls,
                pace=Pace(speed=1, real_time=True),
                stop=stop,
                on_progress=heard,
            )
    except ValueError as error:
        raise RivermarkError(str(error)) from error
    out().print(plain(landed_sentence(done)))
