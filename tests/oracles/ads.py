"""Clicks with their campaigns, and counts of them, from all landed clicks at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from decimal import Decimal

from tests.oracles.landed import Event, once, window_start

TEN_SECONDS = timedelta(seconds=10)
Campaign = tuple[str, str | None, Decimal | None]
"""Its name, its advertiser and the price of a click; the last two are None where it is unknown."""


def campaign_clicks(
    landed: Iterable[Event], campaign_of: Callable[[str], Campaign]
) -> list[tuple[str, int, str, datetime, str, str | None, Decimal | None]]:
    """Each click once, with its campaign."""
    clicks = once(landed, "user_id", "number")
    return sorted(
        (c["user_id"], c["number"], c["ad_id"], c["event_time"], *campaign_of(c["ad_id"]))
        for c in clicks
    )


def campaign_counts(
    landed: Iterable[Event], campaign_of: Callable[[str], Campaign], watermark: datetime
) -> list[tuple[str, datetime, int, Decimal]]:
    """Campaign, end, clicks and cost of each window that the watermark has passed."""
    counts: dict[tuple[str, datetime], list[Decimal]] = defaultdict(list)
    for _, _, _, at, campaign, _, price in campaign_clicks(landed, campaign_of):
        counts[campaign, window_start(at, TEN_SECONDS) + TEN_SECONDS].append(price or Decimal(0))
    return sorted(
        (campaign, end, len(prices), sum(prices, Decimal(0)))
        for (campaign, end), prices in counts.items()
        if end <= watermark
    )
