"""The campaign service says of each ad what its world says."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from urllib.parse import urlsplit

import msgspec

from simulator.ads.service import campaign_service
from simulator.ads.world import AdWorld

NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)


def test_ads_have_the_campaigns_of_their_world_and_some_have_none() -> None:
    world = AdWorld()
    names = {click.ad_id for click in world.clicks(NOON, timedelta(minutes=5))}
    replies = {}
    with campaign_service(world) as url:
        connection = HTTPConnection(urlsplit(url).netloc)
        for path in (*(f"/ads/{name}" for name in names), "/", "/ads/", "/other/ad_1"):
            connection.request("GET", path)
            response = connection.getresponse()
            replies[path] = response.status, msgspec.json.decode(response.read())
        connection.close()
    for name in names:
        campaign = world.campaign_of(name)
        expected = (404, {}) if campaign is None else (200, asdict(campaign))
        assert replies[f"/ads/{name}"] == expected
    assert {status for status, _ in replies.values()} == {200, 404}
    assert replies["/"] == replies["/other/ad_1"] == (404, {})
