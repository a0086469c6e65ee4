"""Clicks with their campaigns, which a service knows, and counts of them.

There are these streams only where the environment names the service, as ADS_CAMPAIGNS:
`http://127.0.0.1:8700` for the one of `python -m simulator.ads`.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.ads.ingest import AD_CLICK, AD_CLICKS, ADS, LATENESS
from rivermark import AnyStream, Ingest, Output, Stream, Suite, expect
from rivermark.operators import (
    HttpLookup,
    TumblingWindow,
    enrich,
    first_of_each,
    looked_up,
    not_looked_up,
    per_window,
)
from rivermark.quality import no_overlap

SERVICE: Final = "ADS_CAMPAIGNS"
"""The variable of the environment that holds the URL of the campaign service."""
UNKNOWN: Final = "unknown"
"""The campaign of ads that the service does not know."""
PRICE: Final = "decimal(8,4)"
CLICK: Final = "user_id string, number long, ad_id string, event_time timestamp"

CAMPAIGN_CLICKS: Final = ADS.table(
    "ads/campaign_clicks",
    (
        f"{CLICK}, campaign_id string COMMENT 'The campaign of the ad, or unknown.', "
        "advertiser string COMMENT 'Who pays for the clicks.', "
        f"price {PRICE} COMMENT 'What a click costs (USD).'"
    ),
    description="Each click once, with the campaign of its ad and what it costs (USD).",
    keys=AD_CLICK.keys,
    personal=("user_id",),
)
FAILED_CLICKS: Final = ADS.table(
    "ads/failed_clicks",
    f"{CLICK}, lookup_status string, lookup_error string",
    description="Clicks whose campaign the service did not say, and why.",
    keys=AD_CLICK.keys,
    personal=("user_id",),
)
CAMPAIGN_COUNTS: Final = ADS.table(
    "ads/campaign_counts",
    (
        "campaign_id string, window_start timestamp, window_end timestamp, "
        "clicks long COMMENT 'How many clicks.', "
        "spent decimal(18,4) COMMENT 'What they cost (USD).'"
    ),
    description="Clicks of each campaign in ten seconds, and what they cost (USD).",
    keys=("campaign_id", "window_end"),
)


def campaigns_at(service: str) -> HttpLookup:
    """The campaigns of ads, as the service at a URL knows them."""
    return HttpLookup(
        url=f"{service}/ads/{{ad_id}}",
        columns=f"campaign_id string, advertiser string, price {PRICE}",
    )


def count_clicks(campaign_clicks: DataFrame) -> DataFrame:
    """Clicks and their cost per campaign and ten seconds."""
    return per_window(
        campaign_clicks,
        TumblingWindow(timedelta(seconds=10)),
        "event_time",
        "campaign_id",
        clicks=F.count("*"),
        spent=F.coalesce(F.sum("price"), F.lit(0)).cast("decimal(18,4)"),
    )


def streams_with(campaigns: HttpLookup) -> tuple[Ingest, Stream, Stream]:
    """The streams of the domain, with campaigns of a service."""

    def with_campaigns(ad_clicks: DataFrame) -> DataFrame:
        """Each click once, with its campaign, or why it has none."""
        once = first_of_each(*AD_CLICK.keys, event_time="event_time", within=LATENESS)
        clicks = ad_clicks.transform(once).select("user_id", "number", "ad_id", "event_time")
        return enrich(clicks, campaigns, on=("ad_id",)).withColumn(
            "campaign_id", F.coalesce("campaign_id", F.lit(UNKNOWN))
        )

    campaign_clicks = ADS.stream(
        reads=AD_CLICKS,
        build=with_campaigns,
        writes=(
            Output(CAMPAIGN_CLICKS, looked_up),
            Output(
                FAILED_CLICKS,
                not_looked_up,
                Suite(
                    expectations=(
                        expect.in_set("lookup_status", ("failed", "timed out")),
                        expect.not_null("lookup_error"),
                    ),
                    may_be_empty=True,
                ),
            ),
        ),
        volume="events",
        lateness=LATENESS,
        margin=LATENESS,
        expect=[
            expect.unique(AD_CLICK.keys),
            expect.not_null("campaign_id"),
            expect.no_rows_where(
                f"(campaign_id = '{UNKNOWN}') <> (price IS NULL)",
                name="a known campaign has a price",
            ),
            expect.between("price", 0, allow_null_share=1.0),
        ],
    )
    campaign_counts = ADS.stream(
        reads=campaign_clicks,
        build=count_clicks,
        writes=CAMPAIGN_COUNTS,
        expect=[
            expect.unique(CAMPAIGN_COUNTS.keys),
            expect.pair_ordered("window_start", "window_end", strictly=True),
            no_overlap("campaign_id"),
            expect.between("clicks", 1),
            expect.between("spent", 0),
        ],
    )
    return AD_CLICKS, campaign_clicks, campaign_counts


ADS_STREAMS: Final[tuple[AnyStream, ...]] = (
    streams_with(campaigns_at(os.environ[SERVICE])) if os.environ.get(SERVICE) else ()
)
