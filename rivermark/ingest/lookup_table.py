"""The table of a lookup: of each key the newest version that was admitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import functions as F

from rivermark.ingest.plan import plan_table
from rivermark.lake.append.version_checksum import write_checksum
from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.commit_metadata import commit_properties, user_metadata
from rivermark.lake.delta import dataset_of, delta_table, read_batches, read_delta
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock
from rivermark.lake.quoting import quoted, spark_quoted
from rivermark.lake.snapshot import row_count
from rivermark.lake.sql import connection
from rivermark.lake.unbounded import writer_options
from rivermark.model.errors import CheckpointIncompatible
from rivermark.model.stream import Ingest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rivermark.lake.table_rows import TableRows

LANDED: Final = "plan.name = _file AND plan.arrival = _ingest_batch"
NEWEST: Final = f"SELECT versions.*, {{nth}} AS _nth FROM versions LEFT JOIN plan ON {LANDED}"  # noqa: S608
FEW_KEYS: Final = 1_000
"""For so many changed keys files are looked for one by one, and for more between their bounds."""


class LookupTable:
    """Merges admitted versions into one row a key; a repeated or older batch changes nothing.

    The newest row has the largest event time; of equal times the one that landed last counts: of
    batches the later, within one the later file, in it the later line.
    """

    def __init__(self, lake: Lake, ingest: Ingest) -> None:
        """Raises CheckpointIncompatible where the table was filled by an ingest of events."""
        self._table = ingest.admitted
        self._versions = lake.path(ingest.versions)
        self._plan = lake.path(plan_table(ingest))
        self._path = lake.path(ingest.admitted)
        self._time = ingest.contract.event_time
        if row_count(lake, ingest.admitted) and not row_count(lake, ingest.versions):
            raise CheckpointIncompatible(
                f"table '{ingest.name}' holds rows from before it was declared as a lookup, "
                "perhaps several of a key. To archive its tables and read the source from the "
                f"start: rivermark reset {ingest.name} --with-tables"
            )

    def merge(self, versions: pa.Table, files: Sequence[str], metadata: Mapping[str, Any]) -> None:
        """Merge the versions of a batch, whose `files` are in the order in which they landed."""
        with commit_lock(self._path):
            table = delta_table(self._path)
            newer = self._newer(versions, files, table)
            if not newer.num_rows:
                return
            columns = {quoted(name): f"source.{quoted(name)}" for name in newer.column_names}
            (
                table.merge(
                    newer,
                    predicate=" AND ".join(
                        f"target.{quoted(key)} = source.{quoted(key)}" for key in self._table.keys
                    ),
                    source_alias="source",
                    target_alias="target",
                    commit_properties=commit_properties(metadata),
                    **writer_options(table, newer),
                )
                .when_matched_update(columns)
                .when_not_matched_insert(columns)
                .execute()
            )
            write_checksum(self._path, table.version())

    def rebuild(self, metadata: Mapping[str, Any], spark: SparkSession | None = None) -> None:
        """Make the table again from all versions: of each key the newest one.

        None is held here: Spark chooses them where it is given, else DuckDB, with what exceeds its
        memory on a disk.
        """
        schema = arrow_schema(self._table.schema)
        with commit_lock(self._path):
            # The versions are read under the lock: a batch that is merged meanwhile would be lost.
            paths = {"versions": self._versions, "plan": self._plan}
            opened = {name: delta_table(path) for name, path in paths.items()}
            if spark is not None:
                self._rebuild_by_spark(spark, opened, metadata)
                return
            columns = ", ".join(map(quoted, schema.names))
            sql = f"SELECT {columns} FROM ({NEWEST}) WHERE _nth = 1"  # noqa: S608 - declared names, quoted
            table, tables = delta_table(self._path), {n: dataset_of(t) for n, t in opened.items()}
            with connection(tables) as duckdb:
                newest = duckdb.sql(sql.format(nth=self._nth(quoted))).to_arrow_reader()
                write_deltalake(
                    table,
                    pa.RecordBatchReader.from_batches(schema, (b.cast(schema) for b in newest)),
                    mode="overwrite",
                    commit_properties=commit_properties(dict(metadata)),
                    **writer_options(opened["versions"]),
                )
            write_checksum(self._path, table.version())

    def _rebuild_by_spark(
        self, spark: SparkSession, opened: Mapping[str, DeltaTable], metadata: Mapping[str, Any]
    ) -> None:
        frames = {
            name: read_delta(spark, table.table_uri, table.version()).alias(name)
            for name, table in opened.items()
        }
        both = frames["versions"].join(frames["plan"], F.expr(LANDED), "left")
        numbered = both.select("versions.*", F.expr(self._nth(spark_quoted)).alias("_nth"))
        newest = numbered.where("_nth = 1").select(*map(spark_quoted, self._table.schema.names))
        writer = newest.write.format("delta").mode("overwrite")
        writer.option("userMetadata", user_metadata(metadata)).save(self._path)

    def _nth(self, name: Callable[[str], str]) -> str:
        """The place of a version among those of its key, the newest first, as SQL."""
        # Every name in it is declared. Files of one batch come in the order in which they landed.
        keys = ", ".join(f"versions.{name(key)}" for key in self._table.keys)
        return (
            f"row_number() OVER (PARTITION BY {keys} ORDER BY versions.{name(self._time)} DESC, "
            "_ingest_batch DESC, plan.modified_at DESC NULLS LAST, plan.path DESC NULLS LAST, "
            "_row DESC)"
        )

    def _newer(self, versions: pa.Table, files: Sequence[str], table: DeltaTable) -> pa.Table:
        """The newest version of each key, where the table has none or an older one."""
        from pyarrow import dataset

        keys, time = ", ".join(map(quoted, self._table.keys)), quoted(self._time)
        landed = pa.table({"_file": pa.array(files, pa.string()), "_place": range(len(files))})
        # Every name in it is declared.
        sql = f"""
            WITH newest AS (
                SELECT versions.*, _ingest_batch AS _landed
                FROM versions JOIN landed USING (_file)
                QUALIFY 1 = row_number() OVER (
                    PARTITION BY {keys} ORDER BY {time} DESC, _place DESC, _row DESC
                )
            ), present AS (
                SELECT {keys}, {time} AS _present, _ingest_batch AS _present_landed FROM current
            )
            SELECT newest.* EXCLUDE (_landed) FROM newest LEFT JOIN present USING ({keys})
            WHERE _present IS NULL OR ({time}, _landed) > (_present, _present_landed)
            """  # noqa: S608
        schema = arrow_schema(self._table.schema)
        held = self._present(dataset_of(table), versions)
        tables = {
            "versions": dataset.dataset(versions.select(schema.names)),
            "landed": dataset.dataset(landed),
            "current": dataset.dataset(held),
        }
        with connection(tables) as duckdb:
            newer: pa.Table = duckdb.sql(sql).to_arrow_table()
        return newer.select(schema.names).cast(schema)

    def _present(self, table: TableRows, versions: pa.Table) -> pa.Table:
        """The place in time of the rows whose keys the versions have; of other keys nothing stays.

        Files are opened by the bounds of their keys.
        """
        kinds = {key: table.schema.field(key).type for key in self._table.keys}
        changed = {key: pc.unique(versions[key].cast(kind)) for key, kind in kinds.items()}
        columns = [*dict.fromkeys((*changed, self._time, "_ingest_batch"))]
        wanted = reduce(and_, (_may_be(key, values) for key, values in changed.items()))
        present = [table.schema.empty_table().select(columns)]
        for batch in read_batches(table, columns=columns, filter=wanted):
            own = (pc.is_in(batch[key], values) for key, values in changed.items())
            present.append(pa.Table.from_batches([batch.filter(reduce(pc.and_, own))]))
        return pa.concat_tables(present)


def _may_be(key: str, values: pa.Array) -> pc.Expression:
    """A filter for rows whose key is one of some values; of many, for what lies between them."""
    if len(values) <= FEW_KEYS:
        return pc.field(key).isin(values)
    bounds = pc.min_max(values)
    return (pc.field(key) >= bounds["min"]) & (pc.field(key) <= bounds["max"])
