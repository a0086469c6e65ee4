"""Clicks with the campaigns of a service, and their counts, beside an oracle that is not Spark."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from assets.ads.ingest import AD_CLICKS, LATENESS
from assets.ads.streams import (
    CAMPAIGN_CLICKS,
    CAMPAIGN_COUNTS,
    FAILED_CLICKS,
    UNKNOWN,
    campaigns_at,
    streams_with,
)
from rivermark import Table, Topology
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from rivermark.testing import assert_rows_equal, wait_until
from simulator.ads.commands import ad_feeds
from simulator.ads.world import AdWorld
from simulator.feeds import drip_feeds
from simulator.landing.json_lines import json_line
from tests.oracles import ads
from tests.oracles.landed import accept
from tests.spark.helpers.meets_suite import assert_meets
from tests.spark.helpers.recomputing import recompute_days
from tests.web_service import Reply, Request, serving

pytestmark = [pytest.mark.spark, pytest.mark.long]

BEGINNING = datetime(2024, 3, 1, 15, 1, tzinfo=UTC)
PART = timedelta(minutes=2)
WORLD = AdWorld(users=40)
TABLES = (CAMPAIGN_CLICKS, FAILED_CLICKS, CAMPAIGN_COUNTS)
REFUSED, SLOW = "ad_3", "ad_last"


def campaign_of(ad_id: str) -> ads.Campaign:
    campaign = WORLD.campaign_of(ad_id)
    if campaign is None:
        return UNKNOWN, None, None
    return campaign.campaign_id, campaign.advertiser, Decimal(campaign.price)


def test_clicks_and_counts_are_the_oracles_whatever_the_service_does(
    spark: SparkSession, settings: Settings
) -> None:
    root = Path(settings.landing_root)
    folder = root / AD_CLICKS.source.name
    is_healed = False
    versions_at_the_late_answer = None

    def versions() -> list[int]:
        return [DeltaTable(settings.lake().path(t)).version() for t in TABLES]

    def reply(request: Request) -> Reply:
        nonlocal versions_at_the_late_answer
        ad_id = request.path.rpartition("/")[2]
        if ad_id == REFUSED and not is_healed:
            return 400, {}
        if ad_id == SLOW:
            wait_until(lambda: service.at_once == 1, reason="the other rows have their answers")
            versions_at_the_late_answer = versions()
        campaign = WORLD.campaign_of(ad_id)
        return (404, {}) if campaign is None else (200, asdict(campaign))

    def rows(table: Table, *columns: str) -> list[tuple[Any, ...]]:
        names = [*columns] or table.schema.fieldNames()
        found = DeltaTable(settings.lake().path(table)).to_pyarrow_table(columns=names)
        return sorted(tuple(row.values()) for row in found.to_pylist())

    with serving(reply) as service:
        streams = streams_with(campaigns_at(service.url))
        topology = Topology(streams)

        def run() -> None:
            summaries = run_bounded(spark, settings, topology, streams, run_id="run")
            # An answer that comes late lets no watermark pass its row.
            assert [s.stream for s in summaries.values() if s.dropped_by_watermark] == []

        every = timedelta(seconds=30)
        drip_feeds(root, ad_feeds(WORLD, BEGINNING, PART), every=every)
        run()
        before = versions()
        drip_feeds(root, ad_feeds(WORLD, BEGINNING + PART, PART), every=every)
        slow: dict[str, Any] = {
            "user_id": "last",
            "number": 1,
            "ad_id": SLOW,
            "event_time": BEGINNING + 2 * PART,
        }
        (folder / "zz-slow.json").write_text(json_line(slow) + "\n")
        run()
        assert versions_at_the_late_answer == before
        for number in (1, 2):
            at = BEGINNING + timedelta(days=1, seconds=number)
            line = json_line({**slow, "user_id": "next", "number": number, "event_time": at})
            (folder / f"zzz-{number}.json").write_text(line + "\n")
        run()

        landed = accept(folder, LATENESS)
        assert landed.newest is not None
        good = [click for click in landed.admitted if click["ad_id"] != REFUSED]
        assert_rows_equal(rows(CAMPAIGN_CLICKS), ads.campaign_clicks(good, campaign_of))
        assert_rows_equal(
            rows(CAMPAIGN_COUNTS, "campaign_id", "window_end", "clicks", "spent"),
            ads.campaign_counts(good, campaign_of, landed.newest - LATENESS),
        )
        failed = rows(FAILED_CLICKS, "ad_id", "lookup_status", "lookup_error")
        refused = [click for click in landed.admitted if click["ad_id"] == REFUSED]
        count = len(ads.campaign_clicks(refused, campaign_of))
        assert count
        assert Counter(failed) == {(REFUSED, "failed", "replied 400"): count}
        assert any(campaign == UNKNOWN for campaign, *_ in rows(CAMPAIGN_COUNTS))
        _, clicks, counts = streams
        for stream in (clicks, counts):
            for output in stream.outputs:
                suite = output.suite or stream.suite
                assert suite is not None
                assert_meets(settings.lake(), output.table, suite)

        is_healed = True
        recompute_days(spark, settings, clicks, BEGINNING.date())
        assert rows(FAILED_CLICKS) == []
        assert_rows_equal(rows(CAMPAIGN_CLICKS), ads.campaign_clicks(landed.admitted, campaign_of))
        recompute_days(spark, settings, counts, BEGINNING.date())
        assert_rows_equal(
            rows(CAMPAIGN_COUNTS, "campaign_id", "window_end", "clicks", "spent"),
            ads.campaign_counts(landed.admitted, campaign_of, landed.newest - LATENESS),
        )
