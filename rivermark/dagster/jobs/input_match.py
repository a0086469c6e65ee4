"""The check that derived tables hold what their inputs give, on a sample of closed days."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import dagster as dg
from pyspark.sql import SparkSession

from rivermark.backfill.verify import verify
from rivermark.dagster.jobs.check_results import asset_check_result
from rivermark.model.check import CheckResult
from rivermark.model.stream import AnyStream, Stream
from rivermark.model.topology import Topology
from rivermark.settings import Settings

MATCH_CHECK: Final = "days_match_their_inputs"


def compared_streams(streams: Iterable[AnyStream]) -> list[Stream]:
    """The derived streams whose tables are all kept by days."""
    return [s for s in streams if isinstance(s, Stream) and all(t.days for t in s.tables)]


def match_result(
    session: SparkSession, settings: Settings, topology: Topology, stream: Stream
) -> dg.AssetCheckResult:
    """Days computed again, and compared by count and fingerprint; none to compare is no failure."""
    results = [*verify(lambda: session, settings.lake(), topology, [stream])]
    result = CheckResult(
        name=MATCH_CHECK,
        severity="critical",
        passed=all(r.matches for r in results),
        observed="; ".join(r.sentence for r in results),
        numbers={
            "days": sum(r.day is not None for r in results),
            "days_differing": sum(not r.matches for r in results),
            "rows_published": sum(f.rows for r in results for f in r.published.values()),
            "rows_computed": sum(f.rows for r in results for f in r.computed.values()),
        },
    )
    return asset_check_result(stream.tables[0], result)
