"""How large a share of an ingest's rows came too late, and how large a share was set aside."""

from __future__ import annotations

from rivermark.backfill.late.merge_log import rows_merged
from rivermark.lake.statistics import row_count
from rivermark.model.stream import Ingest
from rivermark.monitor.checks.check import Answer
from rivermark.settings import Settings


def late_share(settings: Settings, ingest: Ingest) -> Answer:
    """The late rows of an ingest, as a share of its valid ones; those folded since are late too."""
    lake = settings.lake()
    late, admitted = row_count(lake, ingest.late), row_count(lake, ingest.admitted)
    admitted -= rows_merged(lake, ingest)
    return _share("late", late, late + admitted, ingest.late_below)


def quarantine_share(settings: Settings, ingest: Ingest) -> Answer:
    """The rows of an ingest that were set aside, as a share of all that came."""
    lake = settings.lake()
    aside, raw = row_count(lake, ingest.quarantine), row_count(lake, ingest.raw)
    return _share("quarantined", aside, max(raw, aside), ingest.quarantine_below)


def _share(what: str, part: int, whole: int, bound: float) -> Answer:
    share = part / whole if whole else 0.0
    return Answer(
        holds=share <= bound,
        sentence=f"{part:,} of {whole:,} rows {what} ({share:.2%}); at most {bound:.2%} may be",
        numbers={f"rows_{what}": part, "rows_looked_at": whole, "share": share, "bound": bound},
    )
