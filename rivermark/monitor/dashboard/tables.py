"""The tables of the dashboard: streams, checks, days computed again, tables on disk."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rivermark.html.markup import Markup, table, tag
from rivermark.monitor.checks.history import RecordedResult
from rivermark.monitor.dashboard.formatting import anchor, bytes_text, lag_text, moment_text
from rivermark.monitor.dashboard.gather import HOURS_BACK, Facts, Recompute, TableSize
from rivermark.monitor.dashboard.svg import bars, looks
from rivermark.quality.gx.offline_docs import StoredRun


def streams_table(facts: Facts) -> Markup:
    """Every stream with its throughput, its watermark and how far that lags."""
    return table(
        f"Streams: throughput, watermark and restarts. Bars: rows an hour, {HOURS_BACK} h to now.",
        (
            "stream",
            "state",
            "rows in",
            "24 h",
            "rows/s",
            "last hours",
            "late",
            "watermark",
            "lag",
            "restarts, 7 d",
            "last batch",
        ),
        (
            (
                tag("a", s.name, href=f"#{anchor(s.name)}") if s.days or s.derived_days else s.name,
                tag("span", f"{s.status.state}; desired: {s.desired}", class_="nw"),
                f"{s.status.rows_in:,}",
                f"{s.status.rows_day:,}",
                f"{s.status.rows_per_second:,.0f}",
                bars(s.inflow, facts.at, HOURS_BACK, f"{sum(s.inflow.values()):,} rows")
                if s.inflow
                else "",
                f"{s.lateness.share:.2%}" if s.lateness else "",
                _moment(s.watermark),
                lag_text(s.watermark, facts.at),
                str(s.status.restarts),
                _moment(s.status.last_batch_at),
            )
            for s in facts.streams
        ),
        numeric=("rows in", "24 h", "rows/s", "late", "lag", "restarts, 7 d"),
    )


def checks_table(claims: Sequence[Sequence[RecordedResult]]) -> Markup:
    """The last answer to each claim, and how the ones before it were."""
    order = ("error", "warn", "unanswered", "held")
    return table(
        "Checks at their last look. A mark a look, the newest right, high where it did not hold.",
        ("table", "check", "result", "held", "history", "answer", "at"),
        (
            (
                found[-1].table,
                found[-1].check,
                tag("span", found[-1].result, class_=f"badge {found[-1].result}"),
                f"{sum(look.passed for look in found)} of {len(found)}",
                looks(
                    [look.result for look in found],
                    f"held {sum(look.passed for look in found)} of {len(found)} times",
                ),
                tag("span", found[-1].observed, class_="say"),
                _moment(found[-1].at),
            )
            for found in sorted(
                claims, key=lambda c: (order.index(c[-1].result), c[-1].table, c[-1].check)
            )
        ),
        numeric=("held",),
    )


def recomputes_table(recomputes: Sequence[Recompute]) -> Markup:
    """The newest reprocessings; rehearsals and what-ifs too, which made no version."""
    return table(
        "Days computed again, newest first, with the versions that were read",
        ("table", "what", "days", "at", "added / removed / changed", "version", "read", "run"),
        (
            (
                r.table,
                r.kind,
                r.first if r.first == r.last else f"{r.first} to {r.last}",
                _moment(r.at),
                r.difference,
                "" if r.version is None else str(r.version),
                r.inputs,
                r.run[:12],
            )
            for r in recomputes
        ),
        numeric=("added / removed / changed", "version"),
    )


def suites_table(suites: Sequence[Sequence[StoredRun]]) -> Markup:
    """The last run of each suite, and how the ones before it were."""
    return table(
        "Suites at their last run. A mark a run, the newest right, high where a rule failed.",
        ("suite", "result", "rules", "held", "history", "of", "at"),
        (
            (
                runs[-1].suite,
                tag(
                    "span",
                    "held" if runs[-1].success else f"{runs[-1].failed} failed",
                    class_=f"badge {'held' if runs[-1].success else 'fail'}",
                ),
                f"{runs[-1].expectations:,}",
                f"{sum(run.success for run in runs)} of {len(runs)}",
                looks(
                    ["held" if run.success else "error" for run in runs],
                    f"held {sum(run.success for run in runs)} of {len(runs)} times",
                ),
                runs[-1].version,
                _moment(runs[-1].at),
            )
            for runs in suites
        ),
        numeric=("rules", "held"),
    )


def sizes_table(tables: Sequence[TableSize]) -> Markup:
    """Every table on disk, the largest first."""
    return table(
        "Tables on disk, at their newest version",
        ("table", "rows", "files", "size", "bytes a file", "version", "oldest version in the log"),
        (
            (
                t.name,
                f"{t.rows:,}",
                f"{t.files:,}",
                bytes_text(t.bytes),
                bytes_text(t.bytes // t.files) if t.files else "",
                str(t.version),
                str(t.since),
            )
            for t in sorted(tables, key=lambda t: -t.bytes)
        ),
        numeric=("rows", "files", "size", "bytes a file", "version", "oldest version in the log"),
    )


def _moment(at: datetime | None) -> Markup:
    return tag("span", moment_text(at), class_="nw")
