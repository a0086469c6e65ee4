"""What the pages show of the tables."""

import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.freshness import TimeWindowFreshnessPolicy

from assets.ads.streams import campaigns_at, streams_with
from assets.topology import TOPOLOGY
from rivermark import Ingest, Stream, Table, Topology
from rivermark.dagster.days import MONTH, starts_of
from rivermark.dagster.jobs.names import table_key
from rivermark.dagster.specs import (
    COMMON_COLUMNS,
    DUMP_FRESH,
    LIVE_FRESH,
    column_schema,
    freshness,
    landing_spec,
    table_spec,
)
from rivermark.monitor.checks.registry import checks_of_stream
from rivermark.monitor.completeness.checks import completeness_checks
from rivermark.runtime.checkpoint.closed_days import ClosedDays
from rivermark.runtime.supervision.lineage_record import LineageRecord
from rivermark.runtime.supervision.state_file import write
from rivermark.settings import Settings
from rivermark.sources import DeltaSource, RateSource, SocketSource, Source
from tests.platform.conftest import definitions_in
from tests.platform.small_topology import HOURLY, SMALL

pytestmark = pytest.mark.platform


def keys(names: set[str]) -> set[dg.AssetKey]:
    return {dg.AssetKey(name.split("/")) for name in names}


def test_every_table_is_an_asset_below_the_folder_it_comes_from(defs: dg.Definitions) -> None:
    graph = defs.resolve_asset_graph()
    parents = {
        "taxi/rides_raw": {"landing/taxi/rides"},
        "taxi/rides": {"taxi/rides_raw"},
        "taxi/rides_late": {"taxi/rides_raw"},
        "taxi/rides_quarantine": {"taxi/rides_raw"},
        "taxi/hourly": {"taxi/rides"},
        "taxi/daily": {"taxi/hourly"},
        "taxi/local": {"taxi/hourly"},
        "watch/alerts": {"taxi/hourly"},
        "watch/quiet": {"taxi/hourly"},
    }

    for table, above in parents.items():
        assert graph.get(dg.AssetKey(table.split("/"))).parent_keys == keys(above), table
    groups = {f"ops/stream_progress/{group}" for group in ("taxi", "watch")}
    dashboard = {"ops/dashboard", "ops/lateness_proposals"}
    assert graph.get_all_asset_keys() == keys({*parents, "landing/taxi/rides", *groups, *dashboard})


def test_a_source_shows_what_it_is() -> None:
    [files] = [stream for stream in SMALL.streams if isinstance(stream, Ingest)]
    sources: dict[str, Source] = {
        "file": files.source,
        "delta": DeltaSource(table="s3://shop/orders"),
        "generator": RateSource(),
        "socket": SocketSource(host="localhost", port=9),
    }
    for kind, source in sources.items():
        spec = landing_spec(replace(files, source=source))
        assert spec.kinds == {kind}
        assert spec.description == source.description
        assert spec.key == dg.AssetKey(source.asset)


def test_a_table_shows_its_columns_owners_group_and_name(defs: dg.Definitions) -> None:
    rides = defs.resolve_asset_graph().get(dg.AssetKey(["taxi", "rides"]))

    assert rides.group_name == "taxi"
    assert rides.owners == ["team:taxi"]
    assert rides.kinds == {"spark", "delta"}
    assert (rides.description or "").startswith("Every ride that was finished.\n\n[Dashboard](")
    assert rides.metadata["dagster/table_name"] == "taxi/rides"
    columns = {c.name: c for c in rides.metadata["dagster/column_schema"].columns}
    assert columns["ride_id"].type == "bigint"
    assert columns["ride_id"].description == (
        "Identifies the ride. From payload of taxi/rides_raw."
    )
    assert dict(columns["driver"].tags) == {"personal": ""}


def test_what_comes_before_admission_is_a_group_of_its_own(defs: dg.Definitions) -> None:
    graph = defs.resolve_asset_graph()
    groups = {key.to_user_string(): graph.get(key).group_name for key in graph.get_all_asset_keys()}

    ingest = {name for name, group in groups.items() if group == "taxi_ingest"}
    assert ingest == {
        "landing/taxi/rides",
        "taxi/rides_raw",
        "taxi/rides_late",
        "taxi/rides_quarantine",
    }
    assert groups["taxi/rides"] == groups["taxi/hourly"] == "taxi"
    # The dashboard shows all of them: an arrow from each would say nothing.
    assert graph.get(dg.AssetKey(["ops", "dashboard"])).parent_keys == set()
    assert graph.get(dg.AssetKey(["ops", "lateness_proposals"])).parent_keys == set()


def test_no_two_nodes_of_a_group_have_one_name(tmp_path: Path) -> None:
    """The lineage shows the last part of a key."""
    graph = definitions_in(TOPOLOGY, tmp_path).resolve_asset_graph()
    nodes = Counter((graph.get(key).group_name, key.path[-1]) for key in graph.get_all_asset_keys())

    assert [node for node, times in nodes.items() if times > 1] == []
    assert max(len(name) for _, name in nodes) <= 32


def test_every_published_table_is_fresh_for_as_long_as_its_rows_may_take(
    defs: dg.Definitions,
) -> None:
    graph = defs.resolve_asset_graph()
    windows = {
        key.to_user_string(): policy.fail_window.to_timedelta()
        for key in graph.get_all_asset_keys()
        if isinstance(policy := graph.get(key).freshness_policy, TimeWindowFreshnessPolicy)
    }
    live = {"taxi/rides", "taxi/hourly", "taxi/daily", "taxi/local", "watch/alerts"}
    assert windows == dict.fromkeys(live, LIVE_FRESH)

    for stream in TOPOLOGY.streams:
        published = (stream.admitted,) if isinstance(stream, Ingest) else stream.tables
        assert all(freshness(stream, table) for table in published), stream.name

    [rides] = [stream for stream in SMALL.streams if isinstance(stream, Ingest)]
    dump = replace(rides, lateness=None)
    declared = replace(rides, fresh_within=timedelta(hours=1))
    for stream, window in ((dump, DUMP_FRESH), (declared, timedelta(hours=1))):
        policy = freshness(stream, stream.admitted)
        assert isinstance(policy, TimeWindowFreshnessPolicy)
        assert policy.fail_window.to_timedelta() == window


def test_a_derived_column_is_described_as_the_column_that_it_comes_from() -> None:
    [rides] = [stream for stream in SMALL.streams if isinstance(stream, Ingest)]
    table = Table(
        name="taxi/known",
        schema="ride_id long, at timestamp COMMENT 'When it ended.', window_end timestamp, x long",
        description="Rides by rank.",
        event_time="at",
    )
    stream = Stream(reads=(rides,), build=lambda rides: rides, writes=table, group="taxi")
    columns = column_schema(Topology([rides, stream]), stream, table, {}).columns

    known = [column.description for column in columns]
    assert known == ["Identifies the ride.", "When it ended.", COMMON_COLUMNS["window_end"], None]


def test_every_column_of_the_deployment_is_described() -> None:
    # Its streams are in the deployment where the environment names a service.
    ads = Topology(streams_with(campaigns_at("http://127.0.0.1:8700")))
    undescribed = [
        f"{table.name}.{column.name}"
        for topology in (TOPOLOGY, ads)
        for stream in topology.streams
        for table in stream.tables
        for column in column_schema(topology, stream, table, {}).columns
        if not column.description
    ]

    assert undescribed == []


def test_columns_show_from_which_they_come_as_the_last_run_recorded_it(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    columns = {"rides": [("taxi/rides", "ride_id")], "gone": [("taxi/rides", "at")]}
    path = settings.state / "column_lineage" / "taxi.hourly.json"
    write(path, LineageRecord("of yesterday", columns))
    write(path.with_name("taxi.daily.json"), "what is no record")

    graph = definitions_in(SMALL, tmp_path).resolve_asset_graph()

    hourly = graph.get(dg.AssetKey(["taxi", "hourly"])).metadata
    assert hourly["dagster/column_lineage"] == dg.TableColumnLineage(
        {"rides": [dg.TableColumnDep(dg.AssetKey(["taxi", "rides"]), "ride_id")]}
    )
    described = {c.name: c.description for c in hourly["dagster/column_schema"].columns}
    assert described["rides"] == "From ride_id of taxi/rides."
    assert described["window_end"] == COMMON_COLUMNS["window_end"]
    for other in ("daily", "rides_raw"):
        shown = graph.get(dg.AssetKey(["taxi", other])).metadata
        assert "dagster/column_lineage" not in shown


def test_columns_of_an_ingest_come_from_its_raw_rows_as_it_is_declared(tmp_path: Path) -> None:
    [rides] = [stream for stream in SMALL.streams if isinstance(stream, Ingest)]
    ride = replace(rides.contract.fields[0], names=("rideId",))
    contract = replace(rides.contract, fields=(ride, *rides.contract.fields[1:]))
    named = replace(rides, contract=contract)

    spec = table_spec(Topology([named]), named, named.late, tmp_path)

    columns = {column.name: column for column in spec.metadata["dagster/column_schema"].columns}
    assert columns["ride_id"].description == (
        "Identifies the ride. From payload of taxi/rides_raw, where it is called ride_id or rideId."
    )
    deps = spec.metadata["dagster/column_lineage"].deps_by_column
    raw = dg.AssetKey(["taxi", "rides_raw"])
    assert deps["ride_id"] == [dg.TableColumnDep(raw, "payload")]
    assert deps["_file"] == [dg.TableColumnDep(raw, "_file")]
    assert "_watermark" not in deps


def test_a_table_of_a_process_shows_what_the_process_reads(tmp_path: Path) -> None:
    def shown(name: str) -> dict[str, Any]:
        table = TOPOLOGY.table(name)
        writer = TOPOLOGY.writer(table)
        assert writer is not None
        return dict(table_spec(TOPOLOGY, writer, table, tmp_path).metadata)

    rides = shown("taxi/long_rides")
    assert rides["computed_by"] == (
        "process LongRides, of ride_id, is_start, event_time, taxi_id, driver_id"
        " of taxi/clean_rides"
    )
    assert "dagster/column_lineage" not in rides
    assert "computed_by" not in shown("taxi/hourly_winners")


def test_a_table_links_to_the_code_that_computes_it(defs: dg.Definitions) -> None:
    hourly = defs.resolve_asset_graph().get(dg.AssetKey(["taxi", "hourly"]))

    links = hourly.metadata["dagster/code_references"].code_references
    assert [Path(link.file_path).name for link in links] == ["small_topology.py"] * 2
    lines = Path(links[0].file_path).read_text().splitlines()
    declared, computed = (lines[link.line_number - 1] for link in links)
    assert "Stream(reads=" in declared
    assert computed.startswith("def unchanged")


def test_tables_that_can_be_computed_again_are_partitioned_by_days_of_their_zone(
    defs: dg.Definitions,
) -> None:
    graph = defs.resolve_asset_graph()
    days = {
        key.to_user_string(): graph.get(key).partitions_def for key in graph.get_all_asset_keys()
    }
    partitioned = {name: found for name, found in days.items() if found is not None}

    assert set(partitioned) == {"taxi/hourly", "taxi/daily", "taxi/local"}
    local = partitioned["taxi/local"]
    assert isinstance(local, dg.DailyPartitionsDefinition)
    assert local.timezone == "America/New_York"
    assert local.get_first_partition_key() == "2026-03-01"
    daily = partitioned["taxi/daily"]
    assert isinstance(daily, dg.DailyPartitionsDefinition)
    assert daily.get_first_partition_key() == "2026-03-02"


def test_bars_of_days_begin_with_the_first_day_of_rows(tmp_path: Path) -> None:
    """And not with the declared one: 2,500 of the demo's days were grey (issue 25, clause 9)."""
    settings = Settings(home=tmp_path)
    known = ClosedDays(settings.lake(), settings.state)
    hourly = SMALL.named("taxi/hourly")
    known.note_first(hourly, date(2026, 3, 20))
    known.note_first(hourly, date(2026, 3, 10))
    known.note_first(SMALL.named("taxi/daily"), date(2026, 1, 1))

    graph = definitions_in(SMALL, tmp_path).resolve_asset_graph()
    begins = {}
    for key in graph.get_all_asset_keys():
        partitions = graph.get(key).partitions_def
        if partitions is not None:
            begins[key.to_user_string()] = partitions.get_first_partition_key()
            for check in graph.get_check_keys_for_assets({key}):
                assert graph.get(check).partitions_def in (None, partitions)

    # The second is of another declared day, which is later than any row.
    assert begins == {
        "taxi/hourly": "2026-03-10",
        "taxi/local": "2026-03-10",
        "taxi/daily": "2026-03-02",
    }


def test_the_bar_of_a_group_that_never_ran_is_a_month_long(tmp_path: Path) -> None:
    """Its declared day may be years ago: 2,527 grey days (issue 25, clause 9)."""
    hourly = SMALL.named("taxi/hourly").tables[0]
    today = datetime.now(UTC).date()

    starts = starts_of(SMALL, Settings(home=tmp_path))

    assert starts[hourly.name] in (today - MONTH, today - MONTH - timedelta(days=1))
    assert max(starts.values()) <= today


def test_a_check_that_the_console_leaves_alone_says_what_evaluates_it(
    defs: dg.Definitions,
) -> None:
    """Dagster says 'Not Evaluated' of it after a demo, and nothing else."""
    by_console = {
        dg.AssetCheckKey(table_key(check.table), check.name)
        for stream in SMALL.streams
        for check in (*checks_of_stream(stream), *completeness_checks(SMALL, stream))
    }
    graph = defs.resolve_asset_graph()
    jobs = {job.name for job in defs.resolve_all_job_defs()}

    left = {
        key.name: graph.get(key).description or "" for key in graph.asset_check_keys - by_console
    }

    assert set(left) == {
        "meets_expectations",
        "day_meets_expectations",
        "day_is_complete",
        "days_match_their_inputs",
        "versions_are_readable",
    }
    for description in left.values():
        told = re.search(r"Evaluated by the job `(\w+)`", description)
        assert told, description
        assert told[1] in jobs


def test_the_page_of_a_table_shows_a_declared_restart_strategy(tmp_path: Path) -> None:
    table = TOPOLOGY.named("fraud/tried_out_cards").tables[0]
    specs = [
        table_spec(TOPOLOGY, TOPOLOGY.named(name), TOPOLOGY.named(name).tables[0], tmp_path)
        for name in ("fraud/tried_out_cards", "taxi/driver_tips")
    ]

    assert specs[0].metadata["restart"] == (
        "GrowingDelay: first 0:00:01, factor 4, longest 0:00:30, attempts 8, reset_after 0:10:00"
    )
    assert "restart" not in specs[1].metadata, "the usual one"
    assert "FRAUD_ALERTS names no web service" in table.description


def test_n065_no_operation_mixes_days_of_two_kinds(defs: dg.Definitions) -> None:
    """Dagster's telemetry, which is on where nothing is set, asks each for its partitions."""
    graph = defs.resolve_asset_graph()
    hosted = [d for d in graph.assets_defs if d.is_executable and d.keys]
    days = {d.op.name: d.partitions_def for d in hosted}

    daily = {name for name, found in days.items() if found is not None}
    assert daily == {"taxi_days", "taxi_days_from_20260302", "taxi_days_new_york"}
    assert days["taxi_streams"] is None


def test_streams_and_recomputing_have_a_pool_each_so_that_neither_waits_for_the_other(
    defs: dg.Definitions,
) -> None:
    everything = defs.resolve_implicit_global_asset_job_def()
    pools = {node.name: node.definition.pools for node in everything.nodes}

    assert pools["taxi_streams"] == {"taxi_streams"}
    assert pools["taxi_days"] == pools["taxi_days_new_york"] == {"taxi_days"}
    assert pools["taxi_days_from_20260302"] == {"taxi_days"}
    assert pools["watch_streams"] == {"watch_streams"}


def test_runs_that_never_end_have_no_time_limit_and_count_as_streams(
    defs: dg.Definitions,
) -> None:
    tags = defs.resolve_job_def("taxi_live").tags

    assert tags["dagster/max_runtime"] == "0"
    assert tags["kind"] == "stream"
    for name in ("taxi_catch_up", "watch", "rehearsal", "start_streams", "pause_streams"):
        assert int(defs.resolve_job_def(name).tags["dagster/max_runtime"]) > 0


def test_every_job_runs_in_one_process(defs: dg.Definitions) -> None:
    for job in ("taxi_live", "taxi_catch_up", "watch", "rehearsal"):
        assert defs.resolve_job_def(job).executor_def.name == "in_process", job


def test_a_stream_has_no_check_below_it_that_would_wait_for_its_end(defs: dg.Definitions) -> None:
    assert [node.name for node in defs.resolve_job_def("taxi_live").nodes] == ["taxi_streams"]


def test_loading_starts_no_engine_and_makes_no_home(tmp_path: Path) -> None:
    home = tmp_path / "not there"
    dg.Definitions.validate_loadable(definitions_in(SMALL, home))

    assert not home.exists()


def test_a_lookup_has_no_days_and_is_made_from_its_versions(tmp_path: Path) -> None:
    [rides] = [stream for stream in SMALL.streams if isinstance(stream, Ingest)]
    known = replace(rides, name="taxi/known", kind="lookup", keys=("ride_id",), lateness=None)
    joined = replace(HOURLY, reads=(rides,), static=(known,))
    defs = definitions_in(Topology([rides, known, joined]), tmp_path)
    dg.Definitions.validate_loadable(defs)
    graph = defs.resolve_asset_graph()
    parents = {
        "taxi/known_versions": {"taxi/known_raw"},
        "taxi/known": {"taxi/known_versions"},
        "taxi/hourly": {"taxi/rides", "taxi/known"},
    }

    for table, above in parents.items():
        assert graph.get(dg.AssetKey(table.split("/"))).parent_keys == keys(above), table
    assert all(
        graph.get(key).partitions_def is None for key in keys({t.name for t in known.tables})
    )
    checks = {key.name for key in graph.asset_check_keys if key.asset_key.path[1] == "known"}
    assert "rows_are_unique" in checks
    assert not checks & {"days_are_complete", "few_rows_are_late", "late_rows_are_known"}


def test_the_tour_explains_every_check(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "operations" / "ui-tour.md").read_text()
    explained = set(re.findall(r"`(\w+)`", page.split("| check | fails when |")[1]))

    graph = definitions_in(TOPOLOGY, tmp_path).resolve_asset_graph()

    assert {key.name for key in graph.asset_check_keys} <= explained
