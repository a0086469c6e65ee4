"""Days complete and right: as checks with a result a day, and as the assets that judge and draw.

None of this starts an engine. A check of a table by days has a result for each partition: asked for
one day from its page, or told for the newest days by the run that draws the dashboard.
"""

import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime

import dagster as dg

from jobs.check_results import Ask, every_answer, result_of_claim
from jobs.completeness import chart_of, proposals_table, result_of_day
from jobs.dashboard import DASHBOARD, LATENESS, TRUST_GROUP
from jobs.events import evaluation
from jobs.names import by_days, progress_key, stem, table_key
from jobs.suites import DAY_SUITE_CHECK, ask_suite_of_days, days_to_ask
from platform_defs.days import partitions_of
from resources.settings import SettingsResource
from rivermark.model.stream import Ingest, Stream
from rivermark.model.suite import Suite
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.monitor.completeness.checks import DAY_COMPLETE, DAYS_LOOKED_AT, trust_claims
from rivermark.monitor.completeness.on_demand import judge_days
from rivermark.monitor.dashboard.gather import Facts
from rivermark.monitor.dashboard.refresh import refresh
from rivermark.monitor.lateness_proposal import propose_lateness
from rivermark.quality.suites import suites_of

Results = Iterator[dg.AssetCheckResult]


def trust_checks(topology: Topology, group: str) -> list[dg.AssetChecksDefinition]:
    """The claims about the days and inputs of a group, and a check by partition a daily table."""
    members = topology.groups()[group]
    claimed = any(trust_claims(topology, stream) for stream in members)
    found = [_claims(topology, group)] if claimed else []
    for stream in members:
        if isinstance(stream, Stream) and by_days(stream, stream.tables[0]):
            found.append(_days_of(topology, stream))
    return found


def trust_assets(topology: Topology) -> list[dg.AssetsDefinition]:
    """The dashboard, and the proposals for the lateness that ingests allow."""
    live = [s for s in topology.streams if isinstance(s, Ingest) and s.lateness is not None]

    @dg.asset(
        key=DASHBOARD,
        group_name=TRUST_GROUP,
        kinds={"html"},
        deps=[progress_key(group) for group in topology.groups()],
        description=(
            "One page for any browser, without network: days by hour, late rows, throughput, "
            "watermarks, checks, recomputes, tables. Drawing it judges the days and tells each "
            f"check '{DAY_COMPLETE}' of its newest {DAYS_LOOKED_AT} days; of those that are over "
            f"and were written since it asks '{DAY_SUITE_CHECK}'."
        ),
    )
    def dashboard(
        context: dg.AssetExecutionContext, platform: SettingsResource
    ) -> dg.MaterializeResult[None]:
        drawn = refresh(platform.settings(), topology, datetime.now(UTC))
        trusted = {
            (c.table.name, c.name) for s in topology.streams for c in trust_claims(topology, s)
        }
        for asked in drawn.asked:
            if asked.answer is None:
                context.log.error(f"check {asked.claim.name}: {asked.problem}")
            elif (asked.claim.table.name, asked.claim.name) in trusted:
                context.log_event(evaluation(result_of_claim(asked.claim, asked.answer)))
        days = [d for s in drawn.facts.streams for d in s.derived_days[-DAYS_LOOKED_AT:]]
        for day in days:
            stream = topology.named(day.stream)
            told = result_of_day(stream.tables[0], day)
            context.log_event(evaluation(told, day.day.isoformat()))
        for name, ask in _suites_of_days(context, platform, topology, drawn.facts).items():
            try:
                found = ask()
            except Exception as error:
                # It says nothing about the day, and keeps nobody from the page.
                context.log.error(f"check {name} could not be evaluated: {error}")
                continue
            context.log_event(found)
        looks = [found[-1] for found in drawn.facts.checks]
        judged = [d.state for s in drawn.facts.streams for d in s.days]
        return dg.MaterializeResult(
            metadata={
                "page": dg.MetadataValue.url(drawn.path.as_uri()),
                "bytes": drawn.path.stat().st_size,
                "checks": len(looks),
                "checks_broken": sum(not look.held for look in looks),
                **{f"days_{state}": judged.count(state) for state in ("complete", "warn", "fail")},
            }
        )

    @dg.asset(
        key=LATENESS,
        group_name=TRUST_GROUP,
        kinds={"png"},
        deps=[table_key(table) for ingest in live for table in (ingest.admitted, ingest.late)],
        description="Which lateness each ingest should allow, by how late its rows really were.",
    )
    def lateness_proposals(platform: SettingsResource) -> dg.MaterializeResult[None]:
        settings = platform.settings()
        found = [propose_lateness(settings, ingest) for ingest in live]
        return dg.MaterializeResult(
            metadata={
                "proposals": dg.MetadataValue.md(proposals_table(found)),
                "chart": dg.MetadataValue.md(chart_of(settings, found)),
                "changes_proposed": sum(
                    p.proposed is not None and p.proposed != p.lateness for p in found
                ),
            }
        )

    return [dashboard, lateness_proposals]


def _suites_of_days(
    context: dg.AssetExecutionContext,
    platform: SettingsResource,
    topology: Topology,
    facts: Facts,
) -> dict[str, Callable[[], dg.AssetCheckEvaluation]]:
    """The suite of each newest day that is over and was not asked since it was written."""
    settings = platform.settings()

    def asking(table: Table, suite: Suite, day: date) -> Callable[[], dg.AssetCheckEvaluation]:
        def ask() -> dg.AssetCheckEvaluation:
            [told] = ask_suite_of_days(settings, table, suite, [day])
            return evaluation(told, day.isoformat())

        return ask

    found = {}
    for each in facts.streams:
        stream = topology.named(each.name)
        over = [d.day for d in each.derived_days[-DAYS_LOOKED_AT:] if d.over]
        for table, suite in suites_of(stream) if over else ():
            if by_days(stream, table):
                for day in days_to_ask(context.instance, table, over):
                    found[f"{DAY_SUITE_CHECK} of {table.name}, {day}"] = asking(table, suite, day)
    return found


def _claims(topology: Topology, group: str) -> dg.AssetChecksDefinition:
    claims = {
        dg.AssetCheckKey(table_key(claim.table), claim.name): claim
        for stream in topology.groups()[group]
        for claim in trust_claims(topology, stream)
    }

    @dg.multi_asset_check(
        name=f"{stem(group)}_trust",
        specs=[
            dg.AssetCheckSpec(
                name=key.name,
                asset=key.asset_key,
                description=claim.description,
                # In a run that also hosts the streams, they come first.
                additional_deps=[progress_key(group)],
                metadata={"stream": claim.stream},
            )
            for key, claim in claims.items()
        ],
        can_subset=True,
    )
    def ask_about_days(
        context: dg.AssetCheckExecutionContext, platform: SettingsResource
    ) -> Results:
        settings, now = platform.settings(), datetime.now(UTC)

        def ask(key: dg.AssetCheckKey) -> Ask:
            return lambda: result_of_claim(claims[key], claims[key].ask(settings, now))

        keys = sorted(context.selected_asset_check_keys, key=str)
        yield from every_answer({f"{k.asset_key.to_user_string()} {k.name}": ask(k) for k in keys})

    return ask_about_days


def _days_of(topology: Topology, stream: Stream) -> dg.AssetChecksDefinition:
    """One check of a table by days; a range of days is answered by its worst."""
    table = stream.tables[0]

    def day_is_complete(
        context: dg.AssetCheckExecutionContext, platform: SettingsResource
    ) -> dg.AssetCheckResult:
        keys = context.partition_key_range
        first, last = date.fromisoformat(keys.start), date.fromisoformat(keys.end)
        days = judge_days(platform.settings(), topology, stream, first, last)
        results = [result_of_day(table, day) for day in days]
        return min(results, key=lambda r: (r.passed, r.severity.value))

    with warnings.catch_warnings():
        # Results by partition are marked as a preview in 1.13, told at each load.
        warnings.simplefilter("ignore", dg.PreviewWarning)
        return dg.asset_check(
            name=DAY_COMPLETE,
            asset=table_key(table),
            description="The day is over, its sources add up, lack no hour, no late row.",
            partitions_def=partitions_of(stream, table),
        )(day_is_complete)
