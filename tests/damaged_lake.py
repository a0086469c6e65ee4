"""A small lake as streams leave it, without a JVM: an input, a derived table, a checkpoint.

`run` does what a run of the stream does at its start and in its batches, by the same checks and
writers; Spark's part, reading the files of new commits, is delta-rs's here.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, write_deltalake
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from rivermark import Stream, Table, Topology
from rivermark.lake.append.version_checksum import write_checksum
from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.delta import delta_table
from rivermark.lake.filesystem import filesystem
from rivermark.lake.integrity.data_file_check import check_added
from rivermark.lake.integrity.log_check import check_log
from rivermark.lake.integrity.log_entry import read_entry
from rivermark.lake.integrity.sidecar import agrees, write_sidecar
from rivermark.lake.locks import commit_lock
from rivermark.lake.schema import create_table
from rivermark.lake.snapshot import open_table
from rivermark.lake.sql import query
from rivermark.model.errors import TableDamaged
from rivermark.model.sink import Origin
from rivermark.runtime.checkpoint.generation import (
    check_checkpoint,
    newest_batch,
    newest_entry,
    open_generation,
)
from rivermark.runtime.checkpoint.positions import check_positions, position
from rivermark.runtime.checkpoint.power_failure import drop_torn_batches
from rivermark.settings import Settings
from tests.unit.runtime.checkpoints import read as write_entries

SCHEMA: Final = StructType(
    [
        StructField("id", LongType()),
        StructField("at", TimestampType()),
        StructField("name", StringType()),
    ]
)
PROPERTIES: Final = {"delta.checkpointInterval": "4"}
RIDES: Final = Table(
    name="test/rides", schema=SCHEMA, description="Rides.", event_time="at", properties=PROPERTIES
)
LONG: Final = Table(
    name="test/long", schema=SCHEMA, description="Long.", event_time="at", properties=PROPERTIES
)
READER: Final = Stream(
    name="test/long",
    reads=(RIDES,),
    build=lambda rides: rides,
    writes=LONG,
    description="Long rides.",
    group="test",
    lateness=timedelta(0),
)
TOPOLOGY: Final = Topology([READER])
NOON: Final = datetime(2026, 3, 2, 12, tzinfo=UTC)
FEED: Final = Origin("test/feed:rides", 0, datetime(2020, 1, 1, tzinfo=UTC), "feed")
ROWS: Final = 40
"""Rows of a commit: enough for a page of more than a few bytes."""


def flip(path: Path, dice: random.Random) -> None:
    """One bit is another one."""
    content = bytearray(path.read_bytes())
    content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    path.write_bytes(bytes(content))


class DamagedLake:
    """The lake below a folder, and what its tables hold while nothing is damaged."""

    def __init__(self, home: Path, commits: int = 0) -> None:
        self.settings = Settings(home=home)
        self.lake = self.settings.lake()
        self.commits = commits

    def grow(self, commits: int) -> None:
        """So many commits of the input, the third of each six by delta-rs; read batch by batch."""
        create_table(self.lake, RIDES)
        for _ in range(commits):
            self.feed()
            self.run()

    def feed(self) -> None:
        """One more commit of the input."""
        rows = pa.Table.from_pylist(
            [
                {"id": i, "at": NOON + timedelta(seconds=i), "name": f"ride {i * 7919}"}
                for i in range(self.commits * ROWS, (self.commits + 1) * ROWS)
            ],
            arrow_schema(SCHEMA),
        )
        if self.commits % 6 == 2:
            path = self.lake.path(RIDES)
            with commit_lock(path):
                write_deltalake(
                    path,
                    rows,
                    mode="append",
                    commit_properties=CommitProperties(custom_metadata={"userMetadata": "{}"}),
                )
            write_checksum(path, delta_table(path).version())
        else:
            TableWriter(self.lake, RIDES, FEED).append_once(rows, self.commits)
        self.commits += 1

    def run(self) -> None:
        """A run of the stream: what its host checks, then a batch of all that is new."""
        generation = open_generation(self.lake, READER, 2)
        origin = generation.origin(READER, "run")
        folder = self.lake.checkpoint(READER.name, generation.number)
        drop_torn_batches(READER.name, folder, lambda: newest_batch(self.lake, READER, origin))
        checkpoint = Path(check_checkpoint(self.lake, READER, origin))
        check_positions(self.lake, READER, generation.number)
        create_table(self.lake, LONG)
        newest = check_log(self.lake.path(RIDES))
        identity = str(delta_table(self.lake.path(RIDES)).metadata().id)
        place = position(self.lake, READER, identity)
        read_to = 0 if place is None else place.version
        check_added(self.lake.path(RIDES), read_to, newest)
        rows = self._added(read_to, newest)
        if rows is None:
            return
        store, path = filesystem(str(checkpoint))
        last = newest_entry(store, f"{path}/commits")
        batch = 0 if last is None else last + 1
        TableWriter(self.lake, LONG, origin).append_once(rows, batch)
        write_entries(self.lake, READER, batch, newest + 1)
        for file in (checkpoint / "offsets" / str(batch), checkpoint / "commits" / str(batch)):
            write_sidecar(file)
        metadata = checkpoint / "metadata"
        if not metadata.exists():
            metadata.write_text('{"id":"395ada9a-8245-4dcd-b6a6-8e53e4bfe8de"}')
            write_sidecar(metadata)

    def _added(self, first: int, last: int) -> pa.Table | None:
        """The rows of the files that those versions of the input added, as a stream reads them."""
        folder = Path(self.lake.path(RIDES))
        store, log = filesystem(f"{folder}/_delta_log")
        names = []
        for version in range(first, last + 1):
            actions = read_entry(store, log, version)
            names += [each["add"]["path"] for each in actions if "add" in each]
        if not names:
            return None
        schema = arrow_schema(SCHEMA)
        tables = []
        for name in names:
            if agrees(folder / name) is False:  # As Hadoop does before Spark reads it.
                raise TableDamaged.of(RIDES.name, str(folder / name), "is not as it was written")
            try:
                read = pq.read_table(folder / name, page_checksum_verification=True)
            except (OSError, pa.ArrowException) as error:
                raise TableDamaged.of(RIDES.name, str(folder / name), str(error)) from error
            tables.append(read.cast(schema))
        return pa.concat_tables(tables)

    def rows(self, table: Table) -> list[tuple[int, str]]:
        """The rows that readers of a table have, as DuckDB reads them."""
        found = query(
            "SELECT id, name FROM t WHERE \"at\" >= TIMESTAMPTZ '2026-03-02 00:00:00Z' ORDER BY id",
            {"t": open_table(self.lake, table)},
        )
        return [(row["id"], row["name"]) for row in found]

    def expected(self) -> list[tuple[int, str]]:
        """The rows that were ever sent."""
        return [(i, f"ride {i * 7919}") for i in range(self.commits * ROWS)]
