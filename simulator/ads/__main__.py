"""Clicks and their campaign service, run as `python -m simulator.ads`."""

import typer

from simulator.ads.commands import clicks

typer.run(clicks)
