"""What a person looks at first of the taxi tables."""

from __future__ import annotations

from typing import Final

from assets.taxi.tips import HOURLY_WINNERS
from assets.taxi.trips.zone_hours import ZONE_HOURS
from assets.taxi.zone_activity import ZONE_ACTIVITY
from rivermark import Plot

TAXI_PLOTS: Final = (
    Plot(
        title="Tips of the best driver in each hour",
        table=HOURLY_WINNERS.tables[0],
        x="window_start",
        y="tips",
        combine="max",
        unit="US dollars",
    ),
    Plot(
        title="Busiest pickup zones",
        table=ZONE_HOURS.tables[0],
        x="zone",
        y="trips",
        unit="recorded trips",
    ),
    Plot(
        title="Trips by borough of the pickup",
        table=ZONE_HOURS.tables[0],
        x="borough",
        y="trips",
        unit="recorded trips",
    ),
    Plot(
        title="Zone activity: zones, by their TLC number, where most trips began",
        table=ZONE_ACTIVITY.tables[0],
        x="zone",
        y="starts",
        unit="replayed trips",
    ),
    Plot(
        title="Zone activity: trips that began",
        table=ZONE_ACTIVITY.tables[0],
        x="window_start",
        y="starts",
        unit="replayed trips",
    ),
)
