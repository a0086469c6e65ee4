"""Reasons why a stream cannot go back to a savepoint, or go on from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rivermark.lake.delta import delta_table
from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import AnyStream, Ingest, inputs_of
from rivermark.model.topology import Topology
from rivermark.runtime.checkpoint.generation import newest_entry, read_generation
from rivermark.runtime.checkpoint.positions import position
from rivermark.runtime.checkpoint.readers import readers_of
from rivermark.runtime.savepoint.manifest import Manifest, entry_sum, is_batch_of
from rivermark.runtime.savepoint.store import lake_of, written_by
from rivermark.sinks.output import sinks_of


def check_outputs(lake: Lake, stream: AnyStream, made: Manifest, tables: Mapping[str, str]) -> None:
    """Refuse what cannot go back: rows outside the lake, and what others wrote into the tables."""
    lacking = [name for name, kept in tables.items() if kept not in made.tables]
    declared = [name for name in lacking if name in {t.name for t in stream.tables}]
    if declared:
        raise RivermarkError(
            f"savepoint {made.id} has no table '{declared[0]}', which '{stream.name}' writes now: "
            "give it back the tables that it wrote then, or start over: rivermark reset "
            f"{stream.name}"
        )
    generation = read_generation(lake, stream)
    if generation is not None and not isinstance(stream, Ingest):
        store, path = filesystem(lake.checkpoint(stream.name, generation.number))
        newest = newest_entry(store, f"{path}/offsets")
        at = (made.stream, made.generation, made.batch)
        outside = [s.target for o in stream.outputs for s in sinks_of(o) if not s.writes_table]
        if outside and newest is not None and at != (stream.name, generation.number, newest):
            raise RivermarkError(
                f"'{stream.name}' has sent rows to {outside[0]} since savepoint {made.id}; they "
                "cannot be taken back, and would be sent again"
            )
    kept = lake_of(lake, made)
    for name, source in tables.items():
        if not lake.exists(name) or source not in made.tables:
            continue
        shared = shared_history(lake, name, kept, source, made)
        log = CommitLog(lake.path(name))
        for version in (v for v in log.versions() if v > shared):
            commit = log.read(version)
            if commit is None or is_batch_of(commit.metadata, stream.name):
                continue
            if log.adds_rows(version, version + 1):
                what = commit.metadata.get("reprocessing") or commit.metadata.get("kind")
                raise RivermarkError(
                    f"table '{name}' has rows of another writer since savepoint {made.id} (version "
                    f"{version}, {what or commit.operation}), which would be lost: computed days, "
                    "merged or erased rows. Compare by a fork and compute the days again "
                    f"(rivermark reprocess {stream.name}), or start over: rivermark reset "
                    f"{stream.name}"
                )


def check_inputs(lake: Lake, stream: AnyStream, made: Manifest) -> None:
    """Refuse a savepoint whose inputs cannot give what it has not read.

    Raises RivermarkError with the input and the reason.
    """
    for name, place in made.inputs.items():
        table_id = (
            str(delta_table(lake.path(name)).metadata().id) if lake.exists(name) else "missing"
        )
        log = CommitLog(lake.path(name))
        newest = max(log.versions(), default=-1)
        read = place.version if place.snapshot else place.version - 1
        problem = (
            "is not there"
            if table_id == "missing"
            else "was made again since"
            if table_id != place.table_id
            else f"ends at version {newest}, and {read} was read"
            if read > newest
            else "went back to a savepoint of its own since"
            if place.entry is not None and entry_sum(lake, name, read) not in (None, place.entry)
            else f"has no longer the log from version {place.log_from} on"
            if newest >= place.log_from and not log.holds(place.log_from)
            else None
        )
        if problem:
            raise RivermarkError(
                f"savepoint {made.id} of '{stream.name}' cannot go on: its input '{name}' {problem}"
            )


def shared_history(lake: Lake, name: str, kept: Lake, source: str, made: Manifest) -> int:
    """The newest version of a savepoint's table that the lake's own has too; -1 without any."""
    newest = max(CommitLog(lake.path(name)).versions(), default=-1)
    for version in range(min(newest, made.tables[source].version), -1, -1):
        own, other = entry_sum(lake, name, version), entry_sum(kept, source, version)
        if own is None or other is None:
            return -1
        if own == other:
            return version
    return -1


def direct_readers(topology: Topology, stream: AnyStream) -> list[AnyStream]:
    """The streams that read a table of the stream, by stream or whole."""
    tables = {table.name for table in stream.tables}
    return [s for s in topology.streams if tables & {t.name for t in inputs_of(s)}]


def readers_behind(
    lake: Lake,
    topology: Topology,
    stream: AnyStream,
    made: Manifest,
    tables: Mapping[str, str],
) -> list[str]:
    """Streams that have read, or have begun to read, what would go."""
    behind: dict[str, None] = {}
    kept = lake_of(lake, made)
    for table in written_by(stream):
        if not lake.exists(table) or tables[table.name] not in made.tables:
            continue
        shared = shared_history(lake, table.name, kept, tables[table.name], made)
        table_id = str(delta_table(lake.path(table)).metadata().id)
        for reader in readers_of(lake, topology, table):
            if reader.behind > shared:
                behind[reader.stream] = None
        for each in direct_readers(topology, stream):
            planned = _planned(lake, each)
            place = None if planned is None else position(lake, each, table_id, planned)
            if place is not None and place.behind > shared:
                behind[each.name] = None
    return [*behind]


def _planned(lake: Lake, stream: AnyStream) -> int | None:
    generation = read_generation(lake, stream, unfinished=True)
    if generation is None:
        return None
    store, path = filesystem(lake.checkpoint(stream.name, generation.number))
    return newest_entry(store, f"{path}/offsets")


def refused(stream: AnyStream, behind: Sequence[str]) -> str:
    """The sentence for readers that have read further, with the ways on."""
    names = ", ".join(f"'{name}'" for name in behind)
    return (
        f"{names} has read rows of '{stream.name}' that would go, and would not notice: let it go "
        "back first, to a savepoint of its own from before, or start over with it: "
        "--reset-readers (its tables are filled again)"
    )
