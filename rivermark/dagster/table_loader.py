"""Tables of streams as inputs of other assets: closed days, at the version that these closed with.

    @dg.asset(ins={"hourly": dg.AssetIn(["taxi", "hourly_winners"])}, partitions_def=DAYS)
    def report(hourly: polars.DataFrame) -> None: ...

The annotation says as what the rows come. Late rows that are merged into a day, and its recompute,
are reported with the version that they made, which is then the day's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any, Final

import dagster as dg

from rivermark.ask.lake_table import LakeTable, open_version
from rivermark.backfill.as_of import parse_version
from rivermark.backfill.finished_days import finished_days
from rivermark.dagster.jobs.backfill import failing_step
from rivermark.dagster.jobs.metadata import VERSION
from rivermark.dagster.jobs.names import SETTINGS, SPARK, by_days, catch_up_job_name, table_key
from rivermark.dagster.resources.spark import SparkResource
from rivermark.lake.day_predicates import condition, in_days
from rivermark.lake.delta import read_delta
from rivermark.lake.time_travel import resolve_version
from rivermark.model.errors import RivermarkError, VersionNotAvailable, WrongUse
from rivermark.model.stream import AnyStream
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.runtime.checkpoint.closed_days import ClosedDays
from rivermark.settings import Settings

NEWEST: Final = "newest"
KINDS: Final[dict[tuple[str, str], Callable[[LakeTable], object]]] = {
    ("pyarrow", "Table"): LakeTable.arrow,
    ("polars", "DataFrame"): LakeTable.polars,
    ("pandas", "DataFrame"): LakeTable.pandas,
    ("duckdb", "DuckDBPyRelation"): LakeTable.duckdb,
    ("rivermark", "LakeTable"): lambda table: table,
}
"""The rows by the package and name of an annotated type."""


def table_loader(topology: Topology) -> dg.IOManagerDefinition:
    """The IO manager of all tables of a topology: it loads them, and their streams write them."""

    @dg.io_manager(required_resource_keys={SETTINGS, SPARK})
    def load_tables(context: dg.InitResourceContext) -> dg.IOManager:
        settings = getattr(context.resources, SETTINGS).settings()
        return TableLoader(topology, settings, getattr(context.resources, SPARK))

    return load_tables


class TableLoader(dg.IOManager):
    """Loads the table behind an asset's key, of its days those that the asset's run asks for."""

    def __init__(self, topology: Topology, settings: Settings, spark: SparkResource) -> None:
        self._tables: dict[dg.AssetKey, tuple[AnyStream, Table]] = {
            table_key(table): (stream, table)
            for stream in topology.streams
            for table in stream.tables
        }
        self._settings, self._spark = settings, spark

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        """Refused: a row that no stream has written would be in no stream's account."""
        raise dg.Failure(
            description=(
                f"{context.asset_key.to_user_string()} is no table of a stream, and tables are "
                "written by their streams alone: give this asset another io_manager_key"
            ),
            allow_retries=False,
        )

    def load_input(self, context: dg.InputContext) -> Any:
        """The rows, as what the parameter's annotation says; without one a `LakeTable`.

        Fails with a sentence for a day that is not closed, and a version that is gone.
        """
        with failing_step():
            stream, table = self._table(context.asset_key)
            days = self._days(context, stream, table)
            version = self._version(context, table, days)
            loaded = open_version(self._settings.lake(), table.name, version)
            if days is not None:
                loaded = replace(loaded, only=in_days(table, days))
            context.log.info(f"table '{table.name}' is read at version {loaded.version}")
            if days is None or len(days) == 1:
                # Dagster has none for an input of several partitions.
                context.add_input_metadata({"table": table.name, VERSION: loaded.version})
            return self._as(context.dagster_type.typing_type, loaded, table, days)

    def _table(self, key: dg.AssetKey) -> tuple[AnyStream, Table]:
        if key not in self._tables:
            raise WrongUse(f"{key.to_user_string()} is no table: depend on it by deps, not by ins")
        return self._tables[key]

    def _days(
        self, context: dg.InputContext, stream: AnyStream, table: Table
    ) -> Sequence[date] | None:
        """The days that are asked for; None of a table without days.

        Who has no days itself asks for all of them, and gets those that are closed.
        """
        if not (by_days(stream, table) and context.has_asset_partitions):
            return None
        keys = context.asset_partition_keys
        closed = finished_days(self._settings, stream, table)
        if [*keys] == [*context.asset_partitions_def.get_partition_keys()] and len(keys) > 1:
            keys = [day.isoformat() for day in closed]
        known = {*closed}
        still_open = [day for day in map(date.fromisoformat, keys) if day not in known]
        if still_open or not keys:
            which = f"day {still_open[0]}" if still_open else "each day"
            through = ClosedDays(self._settings.lake(), self._settings.state).through(stream.name)
            so_far = through or max(closed, default=None)
            raise RivermarkError(
                f"{which} of table '{table.name}' is not closed: its stream has finished "
                f"{f'the days through {so_far}' if so_far else 'no day yet'}; let it run on, or "
                f"start the job '{catch_up_job_name(stream.group)}'"
            )
        return [date.fromisoformat(key) for key in keys]

    def _version(
        self, context: dg.InputContext, table: Table, days: Sequence[date] | None
    ) -> int | datetime | None:
        """The version that is asked for, or that of the newest report of one of the days."""
        wanted = (context.definition_metadata or {}).get(VERSION)
        if wanted is not None:
            return None if wanted == NEWEST else parse_version(str(wanted))
        keys = None if days is None else [day.isoformat() for day in days]
        records = context.instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=table_key(table), asset_partitions=keys), limit=1
        ).records
        if not records or records[0].asset_materialization is None:
            return None
        known = records[0].asset_materialization.metadata.get(VERSION)
        if known is not None and isinstance(known.value, int):
            return self._checked(table, known.value)
        return datetime.fromtimestamp(records[0].timestamp, UTC)

    def _checked(self, table: Table, version: int) -> int:
        try:
            return resolve_version(self._settings.lake(), table, version)
        except VersionNotAvailable as error:
            raise VersionNotAvailable(
                f"{error}; it is what was reported last: take the rows as they are now by "
                f'dg.AssetIn(metadata={{"{VERSION}": "{NEWEST}"}}), or keep versions for longer '
                "(RIVERMARK_PROMISE_DAYS)"
            ) from error

    def _as(
        self, kind: Any, loaded: LakeTable, table: Table, days: Sequence[date] | None
    ) -> object:
        if kind in (None, Any):
            return loaded
        place = (kind.__module__.split(".")[0].lstrip("_"), kind.__name__)
        if place == ("pyspark", "DataFrame"):
            path = self._settings.lake().path(table)
            rows = read_delta(self._spark.spark_session, path, loaded.version)
            return rows if days is None else rows.where(condition(table, days))
        if place not in KINDS:
            known = ", ".join(".".join(each) for each in (*KINDS, ("pyspark.sql", "DataFrame")))
            raise WrongUse(
                f"table '{table.name}' cannot be loaded as {kind.__module__}.{kind.__name__}; "
                f"there are {known}"
            )
        return KINDS[place](loaded)
