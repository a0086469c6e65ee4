"""All streams of this deployment: what the console runs and the platform shows."""

from typing import Final

from assets.ads.streams import ADS_STREAMS
from assets.fraud.streams import FRAUD_STREAMS
from assets.readings.alerts.limits import limit_streams
from assets.readings.alerts.streams import ALERT_STREAMS
from assets.readings.ingest import HAVE_BROKERS
from assets.readings.plots import READING_PLOTS
from assets.readings.streams import READING_STREAMS
from assets.taxi.areas import WANTED as AREAS_WANTED
from assets.taxi.areas import area_streams
from assets.taxi.plots import TAXI_PLOTS
from assets.taxi.streams import EVENT_STREAMS
from assets.taxi.trips.streams import STREAMS as TRIP_STREAMS
from assets.web.streams import WEB_STREAMS
from rivermark import Topology

TOPOLOGY: Final = Topology(
    [
        *EVENT_STREAMS,
        *(area_streams() if AREAS_WANTED else ()),
        *TRIP_STREAMS,
        *READING_STREAMS,
        *ALERT_STREAMS,
        *(limit_streams() if HAVE_BROKERS else ()),
        *WEB_STREAMS,
        *FRAUD_STREAMS,
        *ADS_STREAMS,
    ],
    plots=[*TAXI_PLOTS, *READING_PLOTS],
)
