"""Throughput, watermark lag and late rows of the last days, by the batches of every stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from rivermark.html.axis import Unit, bucket_of, seconds_text
from rivermark.html.chart import Chart, Ranking, ranking
from rivermark.html.time_chart import COLOURS, Series, lines, stacked_bars
from rivermark.lake.snapshot import open_table
from rivermark.lake.sql import query
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.settings import Settings

ARCHIVED: Final = timedelta(days=30)
"""A batch that is so far behind the clock replays an archive: its lag says nothing."""
SPAN: Final = timedelta(days=7)
MOST_BUCKETS: Final = 90

ENDS: Final = """
SELECT min(started_at) AS first, max(started_at) AS last FROM progress WHERE started_at >= $since
"""
BUCKETS: Final = """
SELECT stream, (epoch(started_at) // $seconds)::BIGINT AS bucket, sum(rows_in)::BIGINT AS rows,
       sum(admitted)::BIGINT AS admitted, sum(late)::BIGINT AS late,
       max(epoch(started_at) + duration_ms / 1000 - epoch(watermark)) AS lag
FROM progress WHERE started_at >= $since GROUP BY ALL
"""


class Bucket(NamedTuple):
    """The batches of a stream that started in a span of time; `lag` is their longest, in seconds.

    The lag of a batch is how far its watermark is behind its end.
    """

    rows: int
    admitted: int
    late: int
    lag: float | None


@dataclass(frozen=True)
class History:
    """Buckets by stream and by their start (UTC), each `step` long."""

    step: timedelta = timedelta(hours=1)
    by_stream: Mapping[str, Mapping[datetime, Bucket]] = field(default_factory=dict)


def history_of(settings: Settings, now: datetime) -> History:
    """The batches of the last days, in so many buckets that a chart of them can be read."""
    lake = settings.lake()
    if not lake.exists(STREAM_PROGRESS):
        return History()
    progress = {"progress": open_table(lake, STREAM_PROGRESS)}
    since = now - SPAN
    [ends] = query(ENDS, progress, {"since": since})
    if ends["first"] is None:
        return History()
    step = bucket_of(max(ends["last"] - ends["first"], timedelta(seconds=1)), MOST_BUCKETS)
    values = {"since": since, "seconds": step.total_seconds()}
    by_stream: dict[str, dict[datetime, Bucket]] = {}
    for row in query(BUCKETS, progress, values):
        at = datetime.fromtimestamp(row["bucket"] * step.total_seconds(), UTC)
        by_stream.setdefault(row["stream"], {})[at] = Bucket(
            row["rows"] or 0, row["admitted"] or 0, row["late"] or 0, row["lag"]
        )
    return History(step, by_stream)


def charts_of_history(
    history: History, ingests: Sequence[str], live: Sequence[str]
) -> list[Chart | Ranking]:
    """Throughput and late share of ingests, and the lag of `live` streams; none of nothing."""
    when = f"by {seconds_text(history.step.total_seconds())} of arrival (UTC)"
    of_ingests = {name: history.by_stream[name] for name in ingests if name in history.by_stream}
    throughput = _series(of_ingests, lambda bucket: bucket.rows or None)
    lag = _series({name: of_ingests[name] for name in live if name in of_ingests}, _lag)
    late = {name: s for name, s in _series(of_ingests, _late_share).items() if any(s.values())}
    charts: list[Chart | Ranking] = []
    if throughput:
        note = f"rows read by ingests, {when}"
        charts.append(stacked_bars("Throughput", throughput, history.step, note=note))
    if lag:
        note = "how far event time is behind the clock after a batch"
        charts.append(_highest("Watermark lag", lag, note, when, "seconds"))
    if late:
        note = "of the valid rows that came"
        charts.append(_highest("Late share", late, note, when, "share"))
    return charts


def _series(
    by_stream: Mapping[str, Mapping[datetime, Bucket]], value: Callable[[Bucket], float | None]
) -> dict[str, Series]:
    """The values over time of each stream that has any."""
    series = {
        name: {at: v for at, bucket in buckets.items() if (v := value(bucket)) is not None}
        for name, buckets in by_stream.items()
    }
    return {name: values for name, values in series.items() if values}


def _lag(bucket: Bucket) -> float | None:
    if bucket.lag is None or bucket.lag > ARCHIVED.total_seconds():
        return None
    return max(0.0, bucket.lag)


def _late_share(bucket: Bucket) -> float | None:
    valid = bucket.admitted + bucket.late
    return bucket.late / valid if valid else None


def _highest(
    title: str, by_stream: Mapping[str, Series], note: str, when: str, unit: Unit
) -> Chart | Ranking:
    """Lines of the streams that reach the highest values, broken where nothing came.

    Where each stream has one point, as after a run that drained what was there, they are ranked.
    """
    highest = {name: max(series.values()) for name, series in by_stream.items()}
    if all(len(series) == 1 for series in by_stream.values()):
        return ranking(title, highest, note=f"{note}, by stream", unit=unit)
    ordered = sorted(by_stream, key=lambda name: -highest[name])
    shown = {name: by_stream[name] for name in by_stream if name in ordered[:COLOURS]}
    more = f"; the {COLOURS} highest of {len(ordered)}" if len(ordered) > COLOURS else ""
    return lines(title, shown, note=f"{note}, {when}{more}", unit=unit, broken=True)
