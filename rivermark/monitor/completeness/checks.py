"""Checks whether days are complete and right, and what holds results back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from rivermark.model.check import CheckResult, Example, Severity
from rivermark.model.stream import AnyStream, Ingest, Stream
from rivermark.model.topology import Topology
from rivermark.monitor.checks.check import StreamCheck
from rivermark.monitor.completeness.days import newest_ingest_days
from rivermark.monitor.completeness.derived_day import DerivedDay
from rivermark.monitor.completeness.ingest_day import Day
from rivermark.monitor.late_statistics import lateness_of_rows
from rivermark.monitor.watermarks import awaited_watermarks, sources_of, watermarks_of
from rivermark.settings import Settings

DAYS_COMPLETE: Final = "days_are_complete"
DAY_COMPLETE: Final = "day_is_complete"
"""The same of one day of a derived table, which Dagster keeps by partition."""
NEWEST_DAYS: Final = 14

LATE_KNOWN: Final = "late_rows_are_known"
PACE: Final = "no_input_stands_still"
STANDS_STILL: Final = timedelta(minutes=30)
"""An input so far behind its fastest neighbour, beyond their lateness, holds their results back."""


def completeness_checks(topology: Topology, stream: AnyStream) -> tuple[StreamCheck, ...]:
    """The checks of the days of an ingest, and of the inputs of a stream with several."""
    if isinstance(stream, Ingest):
        if stream.kind == "lookup":
            return ()
        days = StreamCheck(
            name=DAYS_COMPLETE,
            table=stream.admitted,
            stream=stream.name,
            description=(
                f"Of the newest {NEWEST_DAYS} days each that has ended adds up, lacks no hour, "
                "and its late rows are merged."
            ),
            severity="critical",
            evaluate=lambda settings, _: days_complete(settings, topology, stream),
        )
        late = StreamCheck(
            name=LATE_KNOWN,
            table=stream.late,
            stream=stream.name,
            description="How late the late rows are, from which source, and the money concerned.",
            severity="warning",
            evaluate=lambda settings, _: late_rows(settings, stream),
        )
        return (days, *((late,) if stream.lateness is not None else ()))
    if len(awaited_watermarks(topology, stream, {})) < 2:
        return ()
    return (
        StreamCheck(
            name=PACE,
            table=stream.tables[0],
            stream=stream.name,
            description="No source stands still while another goes on: results wait for it.",
            severity="critical",
            evaluate=lambda settings, _: keeps_pace(settings, topology, stream),
        ),
    )


def days_complete(settings: Settings, topology: Topology, ingest: Ingest) -> CheckResult:
    """Returns True if the newest days of the ingest are complete; each of them is an example."""
    reached = watermarks_of(settings, [ingest])
    days = newest_ingest_days(settings, topology, ingest, reached, NEWEST_DAYS)
    failed = [d for d in days if d.state == "fail"]
    warned = [d for d in days if d.state == "warn"]
    worst = max(failed or warned, key=lambda d: d.day, default=None)
    waiting = sum(d.state == "open" for d in days)
    observed = f"{len(days)} days: {len(failed)} fail, {len(warned)} warn"
    observed += f", {waiting} open" if waiting else ""
    observed += f"; {worst.day}: {worst.sentence}" if worst else ""
    return CheckResult(
        name=DAYS_COMPLETE,
        severity="critical" if failed else "warning",
        passed=worst is None,
        observed=observed if days else "nothing has been admitted yet",
        numbers={
            "days": len(days),
            "days_failed": len(failed),
            "days_warned": len(warned),
            "rows_seen": sum(d.seen for d in days),
            **rows_of_days(days),
        },
        examples=tuple(day_example(d) for d in sorted(days, key=lambda d: d.day, reverse=True)),
    )


def result_of_day(day: DerivedDay) -> CheckResult:
    """The result for one day of a derived table; an open day is no failure."""
    numbers: dict[str, int | float] = {"rows": day.rows, **rows_of_days(day.sources)}
    if day.joined is not None:
        numbers["rows_matched"] = day.joined.matched
        numbers["rows_unmatched"] = sum(day.joined.unmatched.values())
        numbers["keys_pending"] = sum(day.joined.pending.values())
    severity: Severity = "critical" if day.state == "fail" else "warning"
    return CheckResult(
        name=DAY_COMPLETE,
        severity=severity,
        passed=day.state in ("complete", "open"),
        observed=day.sentence,
        numbers=numbers,
        examples=tuple({"source": d.stream, **day_example(d)} for d in day.sources),
    )


def rows_of_days(days: Sequence[Day]) -> dict[str, int | float]:
    """Numbers of the days that are worth a plot, summed. The keys are those of earlier plots."""
    return {
        "rows_late": sum(d.late for d in days),
        "rows_unfolded": sum(d.unmerged for d in days),
        "rows_short": sum(d.short for d in days),
        "rows_unaccounted": sum(d.unaccounted for d in days),
        "hours_missing": sum(len(d.missing_hours) for d in days),
    }


def day_example(day: Day) -> Example:
    """A day as a row of a check's page."""
    return {
        "day": day.day.isoformat(),
        "state": day.state,
        "rows": day.seen,
        "admitted": day.admitted,
        "repeats": day.repeats,
        "late": day.late,
        "merged": day.merged,
        "quarantined": day.quarantined,
        "unaccounted": day.unaccounted,
        "expected": day.expected,
        "short": day.short,
        "missing_hours_utc": ", ".join(f"{h:%H}" for h in day.missing_hours),
        "watermark": ", ".join(w.at.isoformat() if w.at else "none" for w in day.watermarks),
        "late_money": None if day.late_money is None else str(day.late_money),
    }


def late_rows(settings: Settings, ingest: Ingest) -> CheckResult:
    """The figures of the late rows; fails when their share is above the ingest's bound."""
    lateness = lateness_of_rows(settings, ingest)
    numbers: dict[str, int | float] = {
        "rows_late": lateness.late,
        "rows_folded": lateness.merged,
        "share": lateness.share,
        "bound": ingest.late_below,
        "late_by_p50_ms": lateness.p50_ms,
        "late_by_p95_ms": lateness.p95_ms,
        "late_by_p99_ms": lateness.p99_ms,
        "late_by_max_ms": lateness.max_ms,
    }
    if lateness.money is not None and lateness.money_share is not None:
        numbers |= {"money": float(lateness.money), "money_share": lateness.money_share}
    return CheckResult(
        name=LATE_KNOWN,
        severity="warning",
        passed=lateness.share <= ingest.late_below,
        observed=lateness.sentence,
        numbers=numbers,
        examples=tuple(
            {
                "source": s.source,
                "late": s.late,
                "valid": s.valid,
                "share": round(s.share, 6),
                "late_by_p50_ms": s.p50_ms,
                "late_by_p99_ms": s.p99_ms,
            }
            for s in (*lateness.by_folder, *lateness.by_file)
        ),
    )


def keeps_pace(settings: Settings, topology: Topology, stream: Stream) -> CheckResult:
    """Returns True if no source of the stream stands still while another goes on (case B005).

    A join or a union waits for the slowest of its inputs; the result names it, and its lag.
    """
    reached = watermarks_of(settings, sources_of(topology, stream))
    inputs = awaited_watermarks(topology, stream, reached)
    known = {w.stream: w.at for w in inputs if w.at is not None}
    silent = [w.stream for w in inputs if w.at is None] if known else []
    lags = {name: max(known.values()) - at for name, at in known.items()}
    behind = sorted(name for name, lag in lags.items() if lag > STANDS_STILL)
    most = max(lags.values(), default=timedelta())
    awaited = [*behind, *silent]
    # Where only a silent input holds results back, the slowest of the others is shown too.
    shown = [n for n in known if n in behind or (awaited and lags[n] == most)]
    reports = [f"{name} at {at:%Y-%m-%d %H:%M}" for name, at in known.items()]
    reports += [f"{name} without a row yet" for name in silent]
    waits = f"results wait for {', '.join(awaited)}" if awaited else "no input stands still"
    return CheckResult(
        name=PACE,
        severity="critical",
        passed=not awaited,
        observed=f"{', '.join(reports)}; {waits}" if known else "no input has a watermark yet",
        numbers={
            "inputs": len(inputs),
            "inputs_behind": len(awaited),
            "most_seconds_behind": most.total_seconds(),
        },
        examples=tuple(
            {
                "input": name,
                "watermark": known[name].isoformat(),
                "seconds_behind": lags[name].total_seconds(),
            }
            for name in shown
        ),
    )
