"""Days complete and right: as checks with a result a day, and as the assets of the dashboard.

None of this starts a JVM. A check of a table by days has a result for each partition: evaluated for
one day from its page, or reported for the newest days by the run that draws the dashboard.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime

import dagster as dg

from rivermark.dagster.days import Starts, day_check, day_evaluated
from rivermark.dagster.jobs.check_results import asset_check_result, unanswered
from rivermark.dagster.jobs.dashboard import (
    DASHBOARD,
    DASHBOARD_GROUP,
    LATENESS,
    chart_of,
    proposals_table,
    with_link,
)
from rivermark.dagster.jobs.events import evaluation
from rivermark.dagster.jobs.names import by_days, table_key
from rivermark.dagster.jobs.suites import DAY_SUITE_CHECK, days_to_evaluate, suite_results_of_days
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.model.stream import Ingest, Stream
from rivermark.model.topology import Topology
from rivermark.monitor.completeness.checks import (
    DAY_COMPLETE,
    NEWEST_DAYS,
    completeness_checks,
    result_of_day,
)
from rivermark.monitor.completeness.days import derived_days
from rivermark.monitor.dashboard.gather import Facts
from rivermark.monitor.dashboard.page_links import page_url
from rivermark.monitor.dashboard.refresh import Refreshed, refresh
from rivermark.monitor.lateness_proposal import propose_lateness
from rivermark.quality.suites import suites_of


def day_checks(topology: Topology, group: str, starts: Starts) -> list[dg.AssetChecksDefinition]:
    """A check by partition for each daily table of a group."""
    return [
        _day_check(topology, stream, starts)
        for stream in topology.groups()[group]
        if by_days(stream, stream.tables[0])
    ]


def dashboard_assets(topology: Topology) -> list[dg.AssetsDefinition]:
    """The dashboard, and the proposals for the lateness that ingests allow."""
    live = [s for s in topology.streams if isinstance(s, Ingest) and s.lateness is not None]

    @dg.asset(
        key=table_key(DASHBOARD),
        group_name=DASHBOARD_GROUP,
        kinds={"html"},
        description=with_link(
            "One page for any browser, without network: days by hour, late rows, throughput, "
            "watermarks, checks, recomputes, tables. Drawing it evaluates the days and reports "
            f"check '{DAY_COMPLETE}' of the newest {NEWEST_DAYS} days; of those that have ended "
            f"and were written since it evaluates '{DAY_SUITE_CHECK}'."
        ),
    )
    def dashboard(
        context: dg.AssetExecutionContext, rivermark_settings: SettingsResource
    ) -> dg.MaterializeResult[None]:
        settings = rivermark_settings.settings()
        drawn = refresh(settings, topology, datetime.now(UTC))
        for event in [
            *_completeness_results(context, topology, drawn),
            *_day_results(topology, drawn.facts),
            *_day_suite_results(context, rivermark_settings, topology, drawn.facts),
        ]:
            context.log_event(event)
        newest = [results[-1] for results in drawn.facts.checks]
        states = [d.state for s in drawn.facts.streams for d in s.days]
        return dg.MaterializeResult(
            metadata={
                "page": dg.MetadataValue.url(page_url(settings, drawn.path)),
                "bytes": drawn.path.stat().st_size,
                "checks": len(newest),
                "checks_broken": sum(not result.passed for result in newest),
                **{f"days_{state}": states.count(state) for state in ("complete", "warn", "fail")},
            }
        )

    @dg.asset(
        key=table_key(LATENESS),
        group_name=DASHBOARD_GROUP,
        kinds={"svg"},
        description="Which lateness each ingest should allow, by how late its rows really were.",
    )
    def lateness_proposals(rivermark_settings: SettingsResource) -> dg.MaterializeResult[None]:
        settings = rivermark_settings.settings()
        proposals = [propose_lateness(settings, ingest) for ingest in live]
        changes = sum(p.proposed is not None and p.proposed != p.lateness for p in proposals)
        return dg.MaterializeResult(
            metadata={
                "proposals": dg.MetadataValue.md(proposals_table(proposals)),
                "chart": dg.MetadataValue.md(chart_of(settings, proposals)),
                "changes_proposed": changes,
            }
        )

    return [dashboard, lateness_proposals]


def _completeness_results(
    context: dg.AssetExecutionContext, topology: Topology, drawn: Refreshed
) -> Iterator[dg.AssetCheckEvaluation]:
    """The results of the completeness checks that were evaluated for the page."""
    reported = {
        (c.table.name, c.name) for s in topology.streams for c in completeness_checks(topology, s)
    }
    for each in drawn.evaluations:
        if each.result is None:
            context.log.error(f"check {each.check.name}: {each.problem}")
        if (each.check.table.name, each.check.name) not in reported:
            continue
        if each.result is None:
            key = dg.AssetCheckKey(table_key(each.check.table), each.check.name)
            yield evaluation(unanswered(key, RuntimeError(each.problem)))
        else:
            yield evaluation(asset_check_result(each.check.table, each.result))


def _day_results(topology: Topology, facts: Facts) -> Iterator[dg.AssetCheckEvaluation]:
    for each in facts.streams:
        for day in each.derived_days[-NEWEST_DAYS:]:
            table = topology.named(day.stream).tables[0]
            yield evaluation(asset_check_result(table, result_of_day(day)), day.day.isoformat())


def _day_suite_results(
    context: dg.AssetExecutionContext, platform: SettingsResource, topology: Topology, facts: Facts
) -> Iterator[dg.AssetCheckEvaluation]:
    """The suite of each newest finished day that was not evaluated since the day was written."""
    for each in facts.streams:
        stream = topology.named(each.name)
        finished = [d.day for d in each.derived_days[-NEWEST_DAYS:] if d.finished]
        for table, suite in suites_of(stream) if finished else ():
            if not by_days(stream, table):
                continue
            for day in days_to_evaluate(context.instance, table, finished, suite):
                try:
                    [result] = suite_results_of_days(platform.settings(), table, suite, [day])
                except Exception as error:
                    # It must not keep the page from being drawn.
                    key = dg.AssetCheckKey(table_key(table), DAY_SUITE_CHECK)
                    context.log.error(f"{key.to_user_string()}, {day}: {error}")
                    result = unanswered(key, error, f"{day}: ")
                yield evaluation(result, day.isoformat())


def _day_check(topology: Topology, stream: Stream, starts: Starts) -> dg.AssetChecksDefinition:
    table = stream.tables[0]

    def results(platform: SettingsResource, days: Sequence[date]) -> list[dg.AssetCheckResult]:
        of_days = derived_days(platform.settings(), topology, stream, days[0], days[-1])
        return [asset_check_result(table, result_of_day(day)) for day in of_days]

    description = (
        f"The day is over, its sources add up, lack no hour, no late row. {day_evaluated()}"
    )
    return day_check(stream, table, starts, DAY_COMPLETE, description, results)
