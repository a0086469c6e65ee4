"""Results of the checks by day, reported by the run that wrote the days.

A day that is written again has lost its results on its page: they are of rows that are gone. The
hourly run evaluates the newest days only, and later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import partial
from typing import Final

import dagster as dg

from rivermark.dagster.jobs.check_results import asset_check_result, unanswered
from rivermark.dagster.jobs.events import evaluation
from rivermark.dagster.jobs.names import by_days, table_key
from rivermark.dagster.jobs.suites import DAY_SUITE_CHECK, suite_results_of_days
from rivermark.model.stream import Stream
from rivermark.model.table import Table, days_between
from rivermark.model.topology import Topology
from rivermark.monitor.completeness.checks import DAY_COMPLETE, result_of_day
from rivermark.monitor.completeness.days import derived_days
from rivermark.quality.suites import suites_of
from rivermark.settings import Settings

MOST_DAYS: Final = 62
"""Of a longer range the newest days are evaluated; the others when they are asked for."""


def day_results(
    settings: Settings,
    topology: Topology,
    stream: Stream,
    tables: Sequence[Table],
    first: date,
    last: date,
) -> Iterator[dg.AssetCheckEvaluation]:
    """The results of each day of the range: of the suites, and whether the day is complete.

    Yield them after the materialization of the days. What cannot be evaluated has failed.
    """
    lake = settings.lake()
    days = days_between(first, last)[-MOST_DAYS:]
    for table, suite in suites_of(stream):
        if table in tables and by_days(stream, table) and lake.exists(table):
            yield from _reported(
                table, DAY_SUITE_CHECK, days, partial(suite_results_of_days, settings, table, suite)
            )
    main = stream.tables[0]
    if main in tables and by_days(stream, main) and lake.exists(main):
        yield from _reported(
            main, DAY_COMPLETE, days, partial(_complete, settings, topology, stream)
        )


def _complete(
    settings: Settings, topology: Topology, stream: Stream, days: Sequence[date]
) -> list[dg.AssetCheckResult]:
    of_days = derived_days(settings, topology, stream, days[0], days[-1])
    return [asset_check_result(stream.tables[0], result_of_day(day)) for day in of_days]


def _reported(
    table: Table,
    check: str,
    days: Sequence[date],
    evaluate: Callable[[Sequence[date]], list[dg.AssetCheckResult]],
) -> Iterator[dg.AssetCheckEvaluation]:
    try:
        results = evaluate(days)
    except Exception as error:
        key = dg.AssetCheckKey(table_key(table), check)
        results = [unanswered(key, error, f"{day}: ") for day in days]
    for day, result in zip(days, results, strict=True):
        yield evaluation(result, day.isoformat())
