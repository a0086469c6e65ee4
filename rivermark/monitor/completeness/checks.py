"""The claims that say whether days are complete and right, and what holds results back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Final

from rivermark.model.stream import AnyStream, Ingest, Stream
from rivermark.model.topology import Topology
from rivermark.monitor.checks.check import Answer, Claim, Offender
from rivermark.monitor.completeness.derived_day import DerivedDay, days_of_stream
from rivermark.monitor.completeness.ingest_day import Day, days_of_ingest, newest_day
from rivermark.monitor.late_statistics import lateness_of_rows, span
from rivermark.monitor.watermarks import inputs_with_marks, keeps_pace, marks, sources_of
from rivermark.settings import Settings

DAYS_COMPLETE: Final = "days_are_complete"
DAY_COMPLETE: Final = "day_is_complete"
"""The same of one day of a derived table, which Dagster keeps by partition."""
DAYS_LOOKED_AT: Final = 14

LATE_KNOWN: Final = "late_rows_are_known"
PACE: Final = "no_input_stands_still"


def trust_claims(topology: Topology, stream: AnyStream) -> tuple[Claim, ...]:
    """What is claimed of the days of an ingest, and of the inputs of a stream with several."""
    if isinstance(stream, Ingest):
        days = Claim(
            name=DAYS_COMPLETE,
            table=stream.admitted,
            stream=stream.name,
            description=(
                f"Of the newest {DAYS_LOOKED_AT} days each that is over adds up, lacks no hour, "
                "and what came late is folded in."
            ),
            severity="error",
            ask=lambda settings, _: days_complete(settings, topology, stream),
        )
        late = Claim(
            name=LATE_KNOWN,
            table=stream.late,
            stream=stream.name,
            description="How late the late rows are, from which source, and the money concerned.",
            severity="warn",
            ask=lambda settings, _: late_rows(settings, stream),
        )
        return (days, *((late,) if stream.lateness is not None else ()))
    if len(inputs_with_marks(topology, stream, {})) < 2:
        return ()
    return (
        Claim(
            name=PACE,
            table=stream.tables[0],
            stream=stream.name,
            description="No source stands still while another goes on: results wait for it.",
            severity="error",
            ask=lambda settings, _: keeps_pace(settings, topology, stream),
        ),
    )


def days_complete(settings: Settings, topology: Topology, ingest: Ingest) -> Answer:
    """Whether the newest days of the ingest are complete; each of them is in the evidence."""
    newest = newest_day(settings, ingest)
    if newest is None:
        return Answer(holds=True, sentence="nothing has been admitted yet", numbers={"days": 0})
    first = newest - timedelta(days=DAYS_LOOKED_AT - 1)
    reached = marks(settings, [ingest])
    days = days_of_ingest(settings, topology, ingest, first, newest, reached)
    return answer_of_days(days)


def answer_of_days(days: Sequence[Day]) -> Answer:
    """The days as one answer: an error if one fails, a warning if one warns."""
    failed = [d for d in days if d.state == "fail"]
    warned = [d for d in days if d.state == "warn"]
    worst = max([*failed, *(warned if not failed else [])], key=lambda d: d.day, default=None)
    told = f"{len(days)} days: {len(failed)} fail, {len(warned)} warn"
    waiting = sum(d.state == "open" for d in days)
    told += f", {waiting} open" if waiting else ""
    return Answer(
        holds=not failed and not warned,
        severity="error" if failed else "warn",
        sentence=f"{told}; {worst.day}: {worst.sentence}" if worst else told,
        numbers={
            "days": len(days),
            "days_failed": len(failed),
            "days_warned": len(warned),
            "rows_seen": sum(d.seen for d in days),
            "rows_late": sum(d.late for d in days),
            "rows_unfolded": sum(d.unfolded for d in days),
            "rows_short": sum(d.short for d in days),
            "rows_unaccounted": sum(d.unaccounted for d in days),
            "hours_missing": sum(len(d.missing_hours) for d in days),
        },
        offenders=tuple(evidence(d) for d in sorted(days, key=lambda d: d.day, reverse=True)),
    )


def evidence(day: Day) -> Offender:
    """A day as a row of a check's evidence."""
    return {
        "day": day.day.isoformat(),
        "state": day.state,
        "rows": day.seen,
        "admitted": day.admitted,
        "repeats": day.repeats,
        "late": day.late,
        "folded": day.folded,
        "set_aside": day.set_aside,
        "unaccounted": day.unaccounted,
        "expected": day.expected,
        "short": day.short,
        "missing_hours_utc": ", ".join(f"{h:%H}" for h in day.missing_hours),
        "watermark": ", ".join(m.at.isoformat() if m.at else "none" for m in day.marks),
        "late_money": None if day.late_money is None else str(day.late_money),
    }


def answer_of_day(day: DerivedDay) -> Answer:
    """One day of a derived table as the answer of its check; an open day is no failure."""
    return Answer(
        holds=day.state in ("complete", "open"),
        severity="error" if day.state == "fail" else "warn",
        sentence=day.sentence,
        numbers=day.numbers,
        offenders=tuple({"source": d.stream, **evidence(d)} for d in day.sources),
    )


def late_rows(settings: Settings, ingest: Ingest) -> Answer:
    """The figures of the late rows; breaks when their share is above the ingest's bound."""
    found = lateness_of_rows(settings, ingest)
    numbers: dict[str, int | float] = {
        "rows_late": found.late,
        "rows_folded": found.folded,
        "share": found.share,
        "bound": ingest.late_below,
        "late_by_p50_ms": found.p50_ms,
        "late_by_p95_ms": found.p95_ms,
        "late_by_p99_ms": found.p99_ms,
        "late_by_max_ms": found.max_ms,
    }
    told = f"{found.late:,} of {found.valid:,} valid rows late ({found.share:.2%})"
    if found.late:
        told += (
            f", half of them by {span(found.p50_ms)} or less, 99 % by {span(found.p99_ms)}, "
            f"the last by {span(found.max_ms)}"
        )
    if found.folded:
        told += f"; {found.folded:,} of them folded since"
    if found.money is not None and found.money_share is not None:
        numbers |= {"money": float(found.money), "money_share": found.money_share}
        told += f"; {found.money:,} of {ingest.money} ({found.money_share:.2%})"
    return Answer(
        holds=found.share <= ingest.late_below,
        sentence=told,
        numbers=numbers,
        offenders=tuple(
            {
                "source": s.source,
                "late": s.late,
                "valid": s.valid,
                "share": round(s.share, 6),
                "late_by_p50_ms": s.p50_ms,
                "late_by_p99_ms": s.p99_ms,
            }
            for s in (*found.by_folder, *found.by_file)
        ),
    )


def window(newest: date | None, days: int) -> tuple[date, date] | None:
    """The days looked at, both included, that end with the newest one."""
    return None if newest is None else (newest - timedelta(days=days - 1), newest)


def judged(settings: Settings, topology: Topology, days: int) -> dict[str, list[Day]]:
    """The newest days of every ingest, by name; those without rows are left out."""
    reached = marks(settings, topology.streams)
    found: dict[str, list[Day]] = {}
    for stream in topology.streams:
        span_of = window(newest_day(settings, stream), days) if isinstance(stream, Ingest) else None
        if isinstance(stream, Ingest) and span_of is not None:
            found[stream.name] = days_of_ingest(settings, topology, stream, *span_of, reached)
    return found


def judged_downstream(
    settings: Settings, topology: Topology, of_sources: Mapping[str, Sequence[Day]], days: int
) -> dict[str, list[DerivedDay]]:
    """The newest days of every derived stream that is kept by days: those of its sources."""
    reached = marks(settings, topology.streams)
    found = {}
    for stream in topology.streams:
        if not isinstance(stream, Stream) or stream.days is None:
            continue
        known = {d.day for s in sources_of(topology, stream) for d in of_sources.get(s.name, ())}
        chosen = [day for day in known if day > max(known) - timedelta(days=days)]
        found[stream.name] = days_of_stream(settings, topology, stream, chosen, reached, of_sources)
    return found
