"""Manifest of a stream at its last finished batch: code, identity of state, positions, versions.

The one struct that savepoints, forks and the export for a comparison in CI are made of; the one
writer of its JSON is `records.write`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from importlib.metadata import version
from typing import Self

from deltalake import DeltaTable

from rivermark.lake.delta import delta_table
from rivermark.lake.filesystem import content_of, filesystem
from rivermark.lake.integrity.log_entry import entry_path
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.statistics import file_sizes
from rivermark.model.errors import RivermarkError
from rivermark.model.parameters import shown
from rivermark.model.stream import AnyStream, Ingest, Stream, lateness_of
from rivermark.model.table import Table
from rivermark.runtime.checkpoint.closed_days import ClosedDays
from rivermark.runtime.checkpoint.generation import Generation, newest_entry, read_generation
from rivermark.runtime.checkpoint.identity import Identity, has_state, read_identity
from rivermark.runtime.checkpoint.positions import position, read_by_stream
from rivermark.runtime.checkpoint.process_schema import ProcessRecord, read_record
from rivermark.runtime.checkpoint.watermarks import reached
from rivermark.runtime.code_version import code_of
from rivermark.settings import Settings


@dataclass(frozen=True, kw_only=True)
class InputPosition:
    """The place in an input: the rows of commits before `version` are read.

    With `snapshot` that version is being read as a whole. `log_from` is the oldest version of which
    a start reads the log. `entry` is the CRC-32 of the newest log entry that was read: in a table
    that has gone back since and grown again, another one stands there.
    """

    table_id: str
    version: int
    snapshot: bool
    log_from: int
    entry: int | None


@dataclass(frozen=True, kw_only=True)
class TableVersion:
    """The version of a written table that holds all batches up to the manifest's, and no other."""

    table_id: str
    version: int
    files: int
    bytes: int
    schema: str = ""
    """Its columns as JSON, as Delta has them; empty in manifests of earlier releases."""

    @classmethod
    def of(cls, opened: DeltaTable) -> Self:
        """The version of a table that is open."""
        sizes = file_sizes(opened)
        return cls(
            table_id=str(opened.metadata().id),
            version=opened.version(),
            files=len(sizes),
            bytes=sum(sizes),
            schema=opened.schema().to_json(),
        )


class NotRun(RivermarkError):
    """A stream has finished no batch: nothing can be said of it."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A stream at a finished batch. `at` and `watermark` are UTC.

    `identity` is what made its state, `process` the schema of a process function's state; both None
    where the checkpoint has none; `has_state` says that batches left state. `settings` are what the
    declaration and the first start fixed.
    `closed_through` is the last day that was reported as final, `checkpoint` the bytes of each file
    that a savepoint keeps of it.
    """

    id: str
    stream: str
    generation: int
    since: datetime
    batch: int
    at: datetime
    release: str
    code: str | None
    identity: Identity | None
    process: ProcessRecord | None
    inputs: dict[str, InputPosition]
    tables: dict[str, TableVersion]
    settings: dict[str, str]
    has_state: bool = True
    watermark: datetime | None = None
    closed_through: date | None = None
    checkpoint: dict[str, int] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """The size of its tables."""
        return sum(table.bytes for table in self.tables.values())

    @property
    def origin(self) -> Generation:
        """The generation as it was."""
        return Generation(self.generation, self.since, int(self.settings["shuffle_partitions"]))


def manifest_of(
    settings: Settings, stream: AnyStream, tables: Iterable[Table], name: str = ""
) -> Manifest:
    """The stream at its last finished batch, also while it runs; `tables` are those it writes.

    Raises NotRun before its first finished batch.
    """
    lake = settings.lake()
    generation = read_generation(lake, stream)
    folder = lake.checkpoint(stream.name, generation.number) if generation else ""
    store, path = filesystem(folder or lake.root)
    batch = newest_entry(store, f"{path}/commits") if folder else None
    if generation is None or batch is None:
        raise NotRun(
            f"stream '{stream.name}' has finished no batch: there is nothing to keep yet; run it"
        )
    is_stream = isinstance(stream, Stream)
    return Manifest(
        id=name,
        stream=stream.name,
        generation=generation.number,
        since=generation.since,
        batch=batch,
        at=datetime.now(UTC),
        release=version("rivermark"),
        code=code_of(stream) if isinstance(stream, Stream) else None,
        identity=read_identity(folder, stream.name) if is_stream else None,
        process=read_record(folder, stream.name) if is_stream else None,
        inputs={
            table.name: place
            for table in read_by_stream(stream)
            if (place := _position(lake, stream, table, batch)) is not None
        },
        tables={
            table.name: _version(lake, table, stream.name, generation.number, batch)
            for table in tables
            if lake.exists(table)
        },
        settings=settings_of(stream, generation),
        has_state=has_state(folder),
        watermark=reached(folder, stream, batch) if isinstance(stream, Stream) else None,
        closed_through=ClosedDays(lake, settings.state).through(stream.name),
    )


def settings_of(stream: AnyStream, generation: Generation) -> dict[str, str]:
    """Settings that the declaration and the first start fixed, as texts."""
    fixed = {"shuffle_partitions": str(generation.shuffle_partitions), "group": stream.group}
    if isinstance(stream, Ingest):
        return fixed
    parameters = {f"parameter {name}": shown(value) for name, value in stream.parameters.items()}
    lateness = f"{lateness_of(stream).total_seconds():g} s"
    return {**fixed, "state_store": stream.state_store, "lateness": lateness, **parameters}


def entry_sum(lake: Lake, table: Table | str, version: int) -> int | None:
    """The CRC-32 of an entry of a table's log; None where the log does not hold it."""
    store, folder = filesystem(f"{lake.path(table)}/_delta_log")
    content = content_of(store, entry_path(folder, version)) if version >= 0 else None
    return None if content is None else zlib.crc32(content)


def _position(lake: Lake, stream: AnyStream, table: Table, batch: int) -> InputPosition | None:
    if not lake.exists(table):
        return None
    table_id = str(delta_table(lake.path(table)).metadata().id)
    place = position(lake, stream, table_id, batch)
    if place is None:
        return None
    return InputPosition(
        table_id=table_id,
        version=place.version,
        snapshot=place.snapshot,
        log_from=place.log_from,
        entry=entry_sum(lake, table, place.behind),
    )


def _version(lake: Lake, table: Table, stream: str, generation: int, batch: int) -> TableVersion:
    """The newest version without a batch of the stream behind that one."""
    log = CommitLog(lake.path(table))
    newest = last = log.versions()[-1]
    for commit in log.backwards():
        if commit.version > newest or not is_batch_of(commit.metadata, stream):
            continue
        ours = int(commit.metadata.get("generation", -1)), _batch(commit.metadata)
        if ours <= (generation, batch):
            break
        last = commit.version - 1
    return TableVersion.of(delta_table(lake.path(table), last))


def is_batch_of(metadata: dict[str, object], stream: str) -> bool:
    """Returns True if a commit is a batch of the stream, or one by which it replaced days."""
    # Whole files that an ingest sets aside are of a batch of the same number.
    ours = metadata.get("stream") in (stream, f"{stream}:files")
    return ours and bool({"batch", "refresh"} & metadata.keys())


def _batch(metadata: dict[str, object]) -> int:
    return int(str(metadata.get("batch", metadata.get("refresh"))))
