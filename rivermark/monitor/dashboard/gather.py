"""The content of the dashboard, gathered from the lake and the state folder. Starts no JVM.

Counts, times and names of tables, columns and files, and the plots that are declared: no other
value of a row is read, and a plot has no personal column, so none can be shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Final
from urllib.parse import quote

from rivermark.backfill.registry import newest_records
from rivermark.html.chart import Chart, Ranking
from rivermark.lake.log import CommitLog
from rivermark.lake.snapshot import opened
from rivermark.lake.statistics import file_sizes, recorded_rows
from rivermark.model.stream import AnyStream, Ingest
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.monitor.checks.history import RecordedResult, newest_results
from rivermark.monitor.completeness.days import all_derived_days, all_ingest_days
from rivermark.monitor.completeness.derived_day import DerivedDay
from rivermark.monitor.completeness.ingest_day import Day
from rivermark.monitor.dashboard.failing_rows import failing_pages
from rivermark.monitor.dashboard.history import ARCHIVED, History, history_of
from rivermark.monitor.late_statistics import Lateness, lateness_of_rows
from rivermark.monitor.lateness_proposal import Proposal, propose_lateness
from rivermark.monitor.published_results import charts_of_results
from rivermark.monitor.status import StreamStatus, desired_states, status_of
from rivermark.quality.gx.offline_docs import StoredRun, stored_runs
from rivermark.settings import Settings

YEAR: Final = 365
RESULTS_SHOWN: Final = 30
NEWEST_COMMITS: Final = 200
RECOMPUTES: Final = 20
RESULTS_PAGE: Final = "results.html"
DATA_DOCS: Final = "../quality/pages"
"""Where Data Docs lie, seen from the folder of pages."""


@dataclass(frozen=True, kw_only=True)
class StreamFacts:
    """A stream as the page shows it."""

    name: str
    kind: str
    description: str
    desired: str
    status: StreamStatus
    zone: str = "UTC"
    days: tuple[Day, ...] = ()
    derived_days: tuple[DerivedDay, ...] = ()
    lateness: Lateness | None = None
    proposal: Proposal | None = None

    @property
    def watermark(self) -> datetime | None:
        """The stream's watermark; a dump has none, since it waits for no time to pass."""
        return None if self.kind == "dump" else self.status.watermark

    @property
    def ran(self) -> bool:
        """True if it ever ran, or has days of its own."""
        return self.status.last_batch_at is not None or bool(self.days or self.status.rows_in)

    @property
    def archived(self) -> bool:
        """True if its events lie far back, whenever it runs: it replays an archive."""
        newest = self.status.last_batch_at
        if self.watermark is None or newest is None:
            return self.kind == "dump"
        return newest - self.watermark > ARCHIVED


@dataclass(frozen=True)
class TableSize:
    """A table on disk at its newest version; `since` is the oldest version in its log."""

    name: str
    rows: int
    files: int
    bytes: int
    version: int
    since: int


@dataclass(frozen=True)
class Recompute:
    """Days of a table that were recomputed, by the registry or the commit.

    `version` is the one written; None where nothing published changed. `difference` is rows added,
    removed and changed, where it is known.
    """

    table: str
    at: datetime
    version: int | None
    first: str
    last: str
    inputs: str
    run: str
    kind: str = "replaced"
    difference: str = ""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything on the page.

    `failing_pages` are the pages of failing rows by table, `data_docs` the page of each suite's
    newest run by its name, and `results_page` that of the published results alone, all relative to
    the folder of pages.
    """

    at: datetime
    streams: tuple[StreamFacts, ...]
    checks: tuple[tuple[RecordedResult, ...], ...]
    recomputes: tuple[Recompute, ...]
    tables: tuple[TableSize, ...]
    suites: tuple[tuple[StoredRun, ...], ...] = ()
    history: History = field(default_factory=History)
    results: tuple[Chart | Ranking, ...] = ()
    failing_pages: Mapping[str, str] = field(default_factory=dict)
    data_docs: Mapping[str, str] = field(default_factory=dict)
    results_page: str = ""


def gather(settings: Settings, topology: Topology, now: datetime, *, days: int = YEAR) -> Facts:
    """The facts of every stream and table."""
    lake = settings.lake()
    ingest_days = all_ingest_days(settings, topology, days)
    derived = all_derived_days(settings, topology, ingest_days, days)
    desired = desired_states(settings, topology.groups())
    streams = []
    for stream, status in zip(
        topology.streams, status_of(settings, topology.streams, now), strict=True
    ):
        live = stream if isinstance(stream, Ingest) and stream.lateness is not None else None
        streams.append(
            StreamFacts(
                name=stream.name,
                kind=_kind(stream),
                description=stream.description,
                desired=desired[stream.group].state,
                status=status,
                zone=stream.days.zone if stream.days else "UTC",
                days=tuple(ingest_days.get(stream.name, ())),
                derived_days=tuple(derived.get(stream.name, ())),
                lateness=lateness_of_rows(settings, live) if live else None,
                proposal=propose_lateness(settings, live) if live else None,
            )
        )
    tables = [t for stream in topology.streams for t in stream.tables if lake.exists(t)]
    suites = _by_suite(settings)
    return Facts(
        at=now,
        streams=tuple(streams),
        checks=_by_check(newest_results(settings, RESULTS_SHOWN)),
        recomputes=_recomputes(settings, tables),
        tables=tuple(size_of(settings, table) for table in tables),
        suites=suites,
        history=history_of(settings, now),
        results=tuple(charts_of_results(settings, topology)),
        failing_pages=failing_pages(settings, tables),
        results_page=RESULTS_PAGE,
        data_docs={runs[-1].suite: f"{DATA_DOCS}/{quote(runs[-1].page)}" for runs in suites},
    )


def size_of(settings: Settings, table: Table) -> TableSize:
    """Rows, files and bytes of a table, from its log."""
    path = settings.lake().path(table)
    newest = opened(settings.lake(), table)
    sizes = file_sizes(newest)
    versions = CommitLog(path).versions()
    return TableSize(
        name=table.name,
        rows=recorded_rows(newest),
        files=len(sizes),
        bytes=sum(sizes),
        version=newest.version(),
        since=versions[0] if versions else newest.version(),
    )


def _kind(stream: AnyStream) -> str:
    if isinstance(stream, Ingest):
        if stream.kind == "lookup":
            return "lookup"
        return "dump" if stream.lateness is None else "ingest"
    return stream.kind


def _by_suite(settings: Settings) -> tuple[tuple[StoredRun, ...], ...]:
    """The kept runs of each suite, the newest last."""
    root = settings.home / "quality"
    by_suite: dict[str, list[StoredRun]] = {}
    for run in reversed(stored_runs(root / "results", root / "pages")):
        by_suite.setdefault(run.suite, []).append(run)
    return tuple(tuple(by_suite[suite]) for suite in sorted(by_suite))


def _by_check(results: Iterable[RecordedResult]) -> tuple[tuple[RecordedResult, ...], ...]:
    by_check: dict[tuple[str, str], list[RecordedResult]] = {}
    for result in results:
        by_check.setdefault((result.table, result.check), []).append(result)
    return tuple(tuple(results) for results in by_check.values())


def _recomputes(settings: Settings, tables: list[Table]) -> tuple[Recompute, ...]:
    """The newest recorded reprocessings, and replaced days that only a table's commits record."""
    recomputes = [
        Recompute(
            table=record.table,
            at=record.at,
            version=record.version_after,
            first=record.first_day.isoformat(),
            last=record.last_day.isoformat(),
            inputs=_read(record.inputs),
            run=record.run_id,
            kind=record.kind,
            difference=f"{record.added:,} / {record.removed:,} / {record.changed:,}",
        )
        for record in newest_records(settings.lake(), limit=RECOMPUTES)
    ]
    recomputes += [each for table in tables if table.days for each in _by_commits(settings, table)]
    return tuple(sorted(recomputes, key=lambda r: r.at, reverse=True)[:RECOMPUTES])


def _by_commits(settings: Settings, table: Table) -> Iterator[Recompute]:
    """Days that were replaced without such a record, by the newest commits."""
    log = CommitLog(settings.lake().path(table))
    for commit in islice(log.backwards(), NEWEST_COMMITS):
        days = commit.metadata.get("recompute")
        if not isinstance(days, list) or len(days) != 2 or "reprocessing" in commit.metadata:
            continue
        inputs = commit.metadata.get("inputs")
        yield Recompute(
            table=table.name,
            at=commit.at,
            version=commit.version,
            first=str(days[0]),
            last=str(days[1]),
            inputs=_read(inputs if isinstance(inputs, dict) else {}),
            run=str(commit.metadata.get("run", "")),
        )


def _read(inputs: Mapping[str, object]) -> str:
    return ", ".join(f"{name} at {version}" for name, version in inputs.items())
