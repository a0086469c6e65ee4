"""The tables that a stream joins whole: read beside its inputs, and unique by their keys."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from rivermark.lake.delta import dataset_of, delta_table, read_delta
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.repeated_keys import repeated_since
from rivermark.model.errors import KeysNotUnique
from rivermark.model.stream import Stream, table_of
from rivermark.model.table import Table


class StaticTables:
    """The static tables of a stream, as they are now or at pinned `versions` by table name."""

    def __init__(
        self, lake: Lake, stream: Stream, versions: Mapping[str, int] | None = None
    ) -> None:
        self._lake = lake
        self._stream = stream
        self._tables = [table_of(read) for read in stream.static]
        self._versions = versions or {}
        self._unique_at: dict[str, int] = {}

    def read(self, spark: SparkSession) -> list[DataFrame]:
        """Each table as `build` takes it; one that is not pinned is looked up in every batch."""
        return [
            read_delta(spark, self._lake.path(table), self._versions.get(table.name))
            for table in self._tables
        ]

    def check(self) -> None:
        """Refuse a table with several rows of a key: a join with it would repeat rows.

        Each version of a table is read once.

        Raises:
            KeysNotUnique: With the stream, the table, and what to do.
        """
        for table in self._tables:
            if table.keys:
                self._check(table)

    def _check(self, table: Table) -> None:
        path = self._lake.path(table)
        version = self._versions.get(table.name)
        if version is None:
            version = CommitLog(path).versions()[-1]
        known = self._unique_at.get(table.name)
        if known == version:
            return
        rows = dataset_of(delta_table(path, version=version))
        repeated = repeated_since(rows, path, table, known)
        if repeated:
            most = ""
            if not set(table.keys) & set(table.personal):
                named = ", ".join(f"{key}={repeated[0][key]}" for key in table.keys)
                most = f", {named} {repeated[0]['copies']} times"
            raise KeysNotUnique(
                f"stream '{self._stream.name}': '{table.name}', which it joins whole (static), has "
                f"{len(repeated):,} keys of ({', '.join(table.keys)}) more than once{most}: each "
                "would repeat the rows that it joins. Declare what fills it as "
                "Ingest(kind='lookup', keys=...), which keeps the newest row of each key, or "
                "correct the table; nothing of this batch was written."
            )
        self._unique_at[table.name] = version
