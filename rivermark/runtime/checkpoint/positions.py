"""Position of each stream in the tables that it reads in the order of their commits."""

from __future__ import annotations

import json
from typing import Any

from pyarrow import fs

from rivermark.ingest.plan import plan_table
from rivermark.lake.delta import delta_table
from rivermark.lake.filesystem import content_of, filesystem
from rivermark.lake.integrity.data_file_check import check_added, check_current
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.maintenance.reader_positions import Reader
from rivermark.model.errors import CheckpointIncompatible
from rivermark.model.stream import AnyStream, Ingest, table_of
from rivermark.model.table import Table
from rivermark.runtime.checkpoint.dead_letters import replayed_into
from rivermark.runtime.checkpoint.generation import newest_entry, read_generation


def read_by_stream(stream: AnyStream) -> tuple[Table, ...]:
    """The tables whose commits a stream follows; others it looks up whole, as they are."""
    if isinstance(stream, Ingest):
        return (plan_table(stream),)
    reads = stream.reads[:1] if stream.kind == "refresh" else stream.reads
    replays = replayed_into(stream)
    return (*(table_of(read) for read in reads), *([] if replays is None else [replays]))


def position(
    lake: Lake, stream: AnyStream, table_id: str, batch: int | None = None
) -> Reader | None:
    """The stream's place in a table, as that finished batch, or the last, of its checkpoint tells.

    A batch that was planned and not finished is read again after a restart: what it needs is
    counted as unread. Of the last finished batch Spark asks each source once more, from the place
    of the batch before, and drops the answer: the log must reach back so far. None before the first
    start.
    """
    generation = read_generation(lake, stream, unfinished=True)
    if generation is None:
        return None
    store, path = filesystem(lake.checkpoint(stream.name, generation.number))

    def places(batch: int) -> list[dict[str, Any]]:
        offsets = _offsets(store, f"{path}/offsets/{batch}")
        return [place for place in offsets if place["reservoirId"] == table_id]

    done = newest_entry(store, f"{path}/commits") if batch is None else batch
    if done is None:
        if newest_entry(store, f"{path}/offsets") is None:
            return None
        snapshot = next((place for place in places(0) if place["isStartingVersion"]), None)
        if snapshot is not None:
            return Reader(stream.name, int(snapshot["reservoirVersion"]), snapshot=True)
        return Reader(stream.name, 0)
    last = places(done)
    if not last:
        # It began before the table had a commit, or with another table of that name.
        return Reader(stream.name, 0)
    slowest = min(last, key=lambda place: int(place["reservoirVersion"]))
    return Reader(
        stream.name,
        int(slowest["reservoirVersion"]),
        snapshot=bool(slowest["isStartingVersion"]),
        log_from=min((int(place["reservoirVersion"]) for place in places(done - 1)), default=-1),
    )


def check_positions(lake: Lake, stream: AnyStream, generation: int) -> None:
    """Refuse a checkpoint that does not fit the versions of an input.

    Raises:
        CheckpointIncompatible: It has read versions that the input does not have: the table is an
            older copy, or lost commits, and Spark would pass over all that comes until it has grown
            past them. Or the log begins behind the place before the last finished batch, from where
            Spark goes through that batch once more: maintenance of earlier releases cut it there.
    """
    folder = lake.checkpoint(stream.name, generation)
    store, path = filesystem(folder)
    planned = newest_entry(store, f"{path}/offsets")
    places = [] if planned is None else _offsets(store, f"{path}/offsets/{planned}")
    finished = planned is not None and newest_entry(store, f"{path}/commits") == planned
    again = _offsets(store, f"{path}/offsets/{planned - 1}") if finished and planned else []
    for table in read_by_stream(stream) if places else ():
        if not lake.exists(table):
            continue
        delta = delta_table(lake.path(table))
        identity, newest = str(delta.metadata().id), delta.version()
        for place in places:
            version = int(place["reservoirVersion"])
            if place["reservoirId"] == identity and version > newest + 1:
                raise CheckpointIncompatible(
                    f"stream '{stream.name}': checkpoint {folder} has read version {version - 1} "
                    f"of table '{table.name}', whose newest is {newest}: {lake.path(table)} lost "
                    "commits, or is an older copy. Put the table back, or start over on purpose: "
                    f"rivermark reset {stream.name}. rivermark fsck {table.name} says more."
                )
        needed, reached = (_slowest(each, identity) for each in (again, places))
        log = CommitLog(lake.path(table))
        if needed is None or reached is None or log.holds(needed):
            continue
        first = min(log.versions(), default=0)
        if needed < first <= reached:
            raise CheckpointIncompatible(
                f"stream '{stream.name}': a start goes through the log of '{table.name}' from "
                f"version {needed} on, where its last batch began, and the log begins at {first}: "
                "maintenance of an earlier release cut it. All rows were read, none is lost. Start "
                f"over from what is there: rivermark reset {stream.name}, then recompute the days: "
                f"rivermark reprocess {stream.name} --from DAY"
            )


def _slowest(places: list[dict[str, Any]], identity: str) -> int | None:
    """The first version of a table that is still read by its commits at one of the places."""
    versions = (
        int(place["reservoirVersion"])
        for place in places
        if place["reservoirId"] == identity and not place["isStartingVersion"]
    )
    return min(versions, default=None)


def check_unread(table_path: str, checkpoint: str, batch: int) -> int:
    """Check the data files of an input that a batch may read; returns the input's newest version.

    Those of the commits from where the batch before ended; all that the table has where the stream
    is not past its first rows, which it may read as they are. Raises TableDamaged.
    """
    table = delta_table(table_path)
    store, path = filesystem(checkpoint)
    places = [
        place
        for place in _offsets(store, f"{path}/offsets/{batch - 1}")
        if place["reservoirId"] == str(table.metadata().id)
    ]
    if not places or any(place["isStartingVersion"] for place in places):
        check_current(table_path, table)
    else:
        first = min(int(place["reservoirVersion"]) for place in places)
        check_added(table_path, first, table.version())
    return table.version()


def commits_of_batch(checkpoint: str, batch: int) -> range | None:
    """The versions of its one input that a planned batch reads, by the checkpoint's offset log.

    None where that is not said so plainly: of the first batch, of one that reads a part of a
    commit, and of a table that is read as it is.
    """
    store, path = filesystem(checkpoint)
    places = [_offsets(store, f"{path}/offsets/{number}") for number in (batch - 1, batch)]
    if any(len(own) != 1 or not _is_between_commits(own[0]) for own in places):
        return None
    (before,), (after,) = places
    if before["reservoirId"] != after["reservoirId"]:
        return None
    return range(int(before["reservoirVersion"]), int(after["reservoirVersion"]))


def places_between_commits(checkpoint: str) -> dict[str, int]:
    """The first version that no batch has read, by table identity.

    Empty where the last planned batch is not finished, or ended within a commit of any input.
    """
    store, path = filesystem(checkpoint)
    planned, finished = (newest_entry(store, f"{path}/{log}") for log in ("offsets", "commits"))
    if planned is None or planned != finished:
        return {}
    places = _offsets(store, f"{path}/offsets/{planned}")
    if not all(map(_is_between_commits, places)):
        return {}
    ids = {place["reservoirId"] for place in places}
    return {
        each: min(int(p["reservoirVersion"]) for p in places if p["reservoirId"] == each)
        for each in ids
    }


def _is_between_commits(place: dict[str, Any]) -> bool:
    """True if a place lies before the first file of a version; -1 says so, and -100 since 3."""
    first = {1: -1, 3: -100}.get(int(place["sourceVersion"]))
    return not place["isStartingVersion"] and first is not None and int(place["index"]) == first


def _offsets(store: fs.FileSystem, path: str) -> list[dict[str, Any]]:
    """The places in Delta tables that an entry of the offset log names, one a line after two."""
    lines = (content_of(store, path) or b"").decode().splitlines()[2:]
    # A source that had nothing yet is a dash.
    places = [json.loads(line) for line in lines if line.startswith("{")]
    return [place for place in places if "reservoirId" in place]
