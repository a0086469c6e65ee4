"""Operators in event time that are the same on a stream and on a table."""

from rivermark.operators.as_of import join_as_of, validity
from rivermark.operators.enrichment.enrich import enrich, looked_up, not_looked_up
from rivermark.operators.enrichment.http_lookup import HttpLookup
from rivermark.operators.enrichment.lookup import (
    Lookup,
    LookupClient,
    LookupFailed,
    ServiceUnavailable,
)
from rivermark.operators.enrichment.postgres_lookup import PostgresLookup
from rivermark.operators.filters import keep
from rivermark.operators.repeats import ARRIVAL, first_of_each
from rivermark.operators.windows import (
    EventWindow,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    per_window,
)

__all__ = [
    "ARRIVAL",
    "EventWindow",
    "HttpLookup",
    "Lookup",
    "LookupClient",
    "LookupFailed",
    "PostgresLookup",
    "ServiceUnavailable",
    "SessionWindow",
    "SlidingWindow",
    "TumblingWindow",
    "enrich",
    "first_of_each",
    "join_as_of",
    "keep",
    "looked_up",
    "not_looked_up",
    "per_window",
    "validity",
]
