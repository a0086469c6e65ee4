"""The chart that every deployment has: what its streams brought in, by hours of event time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from pathlib import Path

from deltalake import DeltaTable

from rivermark.lake.sql import ask
from rivermark.model.stream import AnyStream, Ingest
from rivermark.monitor.charts.png import HourOfRows, draw_rows_per_hour
from rivermark.settings import Settings


def draw_inflow(settings: Settings, streams: Sequence[AnyStream], path: Path) -> Path:
    """Draw the admitted rows of each ingest by hour of event time (UTC)."""
    hours: list[HourOfRows] = []
    for stream in streams:
        if isinstance(stream, Ingest) and settings.lake().exists(stream.admitted):
            hours += rows_per_hour(settings, stream)
    return draw_rows_per_hour(hours, path)


def rows_per_hour(settings: Settings, ingest: Ingest) -> list[HourOfRows]:
    """How many admitted rows lie in each hour."""
    time = f'"{ingest.contract.event_time}"'
    found = ask(
        # A column's declared name, quoted.
        f"SELECT date_trunc('hour', {time}) AS hour, count(*) AS n FROM rows GROUP BY 1",  # noqa: S608
        {"rows": DeltaTable(settings.lake().path(ingest.admitted)).to_pyarrow_dataset()},
    )
    return [HourOfRows(ingest.name, r["hour"].astimezone(UTC), r["n"]) for r in found]
