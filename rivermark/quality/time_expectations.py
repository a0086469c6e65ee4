"""Expectations about time: how many rows a day usually has, windows, and events before their time.

As `rivermark.model.expectations`, which is about single values.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from rivermark.model.check import Severity
from rivermark.model.declared import checked
from rivermark.model.expectations import no_rows_from
from rivermark.model.question import UsualRows
from rivermark.model.rule import Expectation, SuiteRule
from rivermark.model.table import Daily

USUAL: str = "each day has about its usual number of rows"


@checked
def usual_rows(daily: Daily, *, severity: Severity = "warning") -> Expectation:
    """Each finished day has about as many rows as its weekday had before.

    See `rivermark.quality.volume_profile` for the profile and for the days that are left out.
    """
    return (SuiteRule(name=USUAL, question=UsualRows(daily.column, daily.zone), severity=severity),)


@checked
def no_overlap(
    keys: str | Sequence[str],
    *,
    start: str = "window_start",
    end: str = "window_end",
    severity: Severity = "critical",
) -> Expectation:
    """Windows or sessions of one key do not overlap: each starts when the one before has ended."""
    names = (keys,) if isinstance(keys, str) else tuple(keys)
    by = f"PARTITION BY {', '.join(f't.`{n}`' for n in names)} " if names else ""
    shown = ", ".join(f"t.`{n}`" for n in (*names, start, end))
    # Declared names of columns only, which may be words of SQL.
    query = f"""
        SELECT * FROM (
            SELECT {shown}, lag(t.`{end}`) OVER ({by}ORDER BY t.`{start}`, t.`{end}`) AS end_before
            FROM {{batch}} AS t
        ) AS o WHERE o.`{start}` < o.end_before
    """  # noqa: S608
    of_one = f" of one ({', '.join(names)})" if names else ""
    name = f"windows{of_one} do not overlap"
    return no_rows_from(query, name=name, severity=severity)


@checked
def not_ahead(
    event_time: str,
    arrived: str,
    most: timedelta,
    *,
    severity: Severity = "critical",
) -> Expectation:
    """No event lies more than `most` after the moment at which it was taken in."""
    seconds = round(most.total_seconds())
    query = f"""
        SELECT t.`{event_time}`, t.`{arrived}` FROM {{batch}} AS t
        WHERE t.`{event_time}` > t.`{arrived}` + INTERVAL {seconds} SECOND
    """  # noqa: S608
    return no_rows_from(
        query, name=f"{event_time} lies at most {most} after its arrival", severity=severity
    )
