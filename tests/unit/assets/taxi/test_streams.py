"""The declarations of the event streams, checked against each other without an engine."""

from assets.ads.streams import campaigns_at, streams_with
from assets.fraud.streams import FRAUD_STREAMS
from assets.readings.alerts.streams import ALERT_STREAMS
from assets.readings.streams import READING_STREAMS
from assets.taxi.cleansing import CLEAN_FARES, CLEAN_RIDES
from assets.taxi.enrichment import RIDES_WITH_FARES
from assets.taxi.streams import EVENT_STREAMS
from assets.taxi.tips import DRIVER_TIPS, HOURLY_WINNERS
from assets.web.streams import WEB_STREAMS
from rivermark.model.stream import AnyStream, Ingest, Stream
from rivermark.model.topology import Topology
from simulator.taxi.wire import FARES_FOLDER, RIDES_FOLDER

ALL = (
    *(*EVENT_STREAMS, *READING_STREAMS, *ALERT_STREAMS, *WEB_STREAMS, *FRAUD_STREAMS),
    *streams_with(campaigns_at("http://127.0.0.1")),
)


def names(streams: list[AnyStream]) -> list[str]:
    return [s.name for s in streams]


def test_winners_are_chosen_from_the_tips_of_fares_that_count_once() -> None:
    topology = Topology(EVENT_STREAMS)

    assert names(topology.upstreams(HOURLY_WINNERS)) == [DRIVER_TIPS.name]
    assert names(topology.upstreams(DRIVER_TIPS)) == [CLEAN_FARES.name]
    assert names(topology.upstreams(RIDES_WITH_FARES)) == [CLEAN_RIDES.name, CLEAN_FARES.name]


def test_the_world_lands_where_the_ingests_look() -> None:
    folders = {s.source.name for s in EVENT_STREAMS if isinstance(s, Ingest)}

    assert {RIDES_FOLDER, FARES_FOLDER} <= folders


def test_every_table_can_be_recomputed_by_day_and_tells_what_identifies_a_row() -> None:
    derived = [t for s in ALL if isinstance(s, Stream) for t in s.tables]

    assert [t.name for t in derived if t.days is None or not t.keys] == []


def test_everything_is_described_and_owned() -> None:
    fields = [f for s in ALL if isinstance(s, Ingest) for f in s.contract.fields]

    assert [s.name for s in ALL if not (s.description and s.owners)] == []
    assert [f.name for f in fields if not f.description] == []


def test_who_drives_is_marked_personal_wherever_it_is_kept() -> None:
    tables = [t for s in EVENT_STREAMS for t in s.tables]

    assert [
        t.name for t in tables if "driver_id" in t.schema.names and "driver_id" not in t.personal
    ] == []
