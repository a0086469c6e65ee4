"""A lateness proposed for an ingest, read from how late its rows really were."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from rivermark.backfill.late.merged import ADMITTED_ON_TIME
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.quoting import quoted
from rivermark.lake.snapshot import open_table
from rivermark.lake.sql import query
from rivermark.model.ingest import Ingest
from rivermark.model.time import MILLISECOND
from rivermark.model.watermark import WATERMARK_AFTER
from rivermark.monitor.recent_batches import batch_before, rows_after
from rivermark.monitor.time_span import span
from rivermark.settings import Settings

STEPS: Final = tuple(
    timedelta(seconds=s)
    for s in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400)
)
"""Round values; a proposal is one of them."""
LATE_AT_MOST: Final = 0.001
"""The share of late rows that a proposal aims at: one row in a thousand."""

# A row's delay is how far it lies behind the newest row of the splits before its own, which is what
# admission compares it with. For a late row that is the lateness of then plus what it missed by.
# With a watermark per producer a row carries what later ones are compared with, less the lateness.
# GROUPS: of splits that are equal in the order, as those of a topic's batch, none precedes another.
DELAYS: Final = """
WITH newest AS (
    SELECT _ingest_batch AS batch, _file AS file, max({reached}) AS newest FROM {admitted}
    WHERE _ingest_batch > $after GROUP BY 1, 2
),
files AS (
    SELECT DISTINCT ingest_batch AS batch, file, modified_at, path FROM outcomes
    WHERE stream = $stream
),
before AS (
    SELECT batch, file, max(newest) OVER (
        ORDER BY {order} GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS newest
    FROM newest LEFT JOIN files USING (batch, file)
),
delays AS (
    SELECT greatest(0, date_diff('millisecond', {time}, before.newest)) AS ms
    FROM {admitted} JOIN before ON batch = _ingest_batch AND file = _file
    WHERE before.newest IS NOT NULL AND _ingest_batch > $after
    UNION ALL
    SELECT _late_by_ms + $lateness_ms AS ms FROM late_rows WHERE _ingest_batch > $after
)
SELECT count(*) AS n, {counts} FROM delays
"""
BY_SPLIT: Final = "batch, modified_at, path, file"
BY_BATCH: Final = "batch"
"""For sources whose splits of a batch came at the same time."""


@dataclass(frozen=True)
class LateUnder:
    """The share of valid rows that would be late under a lateness."""

    lateness: timedelta
    share: float


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A lateness for an ingest, and the curve from which it is read.

    `proposed` is the smallest step under which at most `LATE_AT_MOST` of the rows would be late;
    None where even a day is too short, or where there are no rows yet. A row of the first
    file, or of a topic's first batch, cannot be late and is not among the `rows`.
    """

    stream: str
    lateness: timedelta
    rows: int
    curve: tuple[LateUnder, ...] = ()
    proposed: timedelta | None = None

    @property
    def sentence(self) -> str:
        """The proposal in words."""
        now = next((c.share for c in self.curve if c.lateness == self.lateness), 0.0)
        allowed = span(self.lateness // MILLISECOND)
        if not self.rows:
            return f"allows {allowed}; no rows to learn from yet"
        current = f"allows {allowed}, which makes {now:.2%} of {self.rows:,} rows late"
        if self.proposed is None:
            return f"{current}; no lateness up to a day brings that below {LATE_AT_MOST:.1%}"
        if self.proposed == self.lateness:
            return f"{current}; keep it"
        then = next(c.share for c in self.curve if c.lateness == self.proposed)
        return f"{current}; {span(self.proposed // MILLISECOND)} would make it {then:.2%}"


def propose_lateness(settings: Settings, ingest: Ingest) -> Proposal:
    """The proposal for an ingest that has a lateness, by its newest batches."""
    assert ingest.lateness is not None  # noqa: S101 - dumps have no proposal
    lake = settings.lake()
    empty = Proposal(stream=ingest.name, lateness=ingest.lateness, rows=0)
    if not all(lake.exists(t) for t in (INGEST_FILES, ingest.admitted, ingest.late)):
        return empty
    steps = sorted({*STEPS, ingest.lateness})
    counts = ", ".join(
        f"count(*) FILTER (ms >= {step // MILLISECOND}) AS late_{n}" for n, step in enumerate(steps)
    )
    time = quoted(ingest.contract.event_time)
    delay = f"INTERVAL {ingest.lateness // MILLISECOND} MILLISECOND"
    after = batch_before(settings, ingest)
    if after is None:
        return empty
    admitted = rows_after(settings, ingest, ingest.admitted, after)
    # The next run adds the column where the ingest has turned to producers since the last one.
    carried = WATERMARK_AFTER.name in admitted.schema.names
    [counted] = query(
        # A declared column, quoted, and numbers.
        DELAYS.format(
            time=time,
            reached=f"{WATERMARK_AFTER.name} + {delay}" if carried else time,
            counts=counts,
            admitted=ADMITTED_ON_TIME,
            order=BY_BATCH if ingest.source.together else BY_SPLIT,
        ),
        {
            "admitted_rows": admitted,
            "late_rows": rows_after(settings, ingest, ingest.late, after),
            "outcomes": open_table(lake, INGEST_FILES),
        },
        {"lateness_ms": ingest.lateness // MILLISECOND, "stream": ingest.name, "after": after},
    )
    rows = int(counted["n"])
    if not rows:
        return empty
    curve = tuple(LateUnder(step, counted[f"late_{n}"] / rows) for n, step in enumerate(steps))
    return Proposal(
        stream=ingest.name,
        lateness=ingest.lateness,
        rows=rows,
        curve=curve,
        proposed=next((c.lateness for c in curve if c.share <= LATE_AT_MOST), None),
    )
