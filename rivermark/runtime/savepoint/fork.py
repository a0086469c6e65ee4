"""Forks: a stream from a savepoint beside the living one, promoted into its place or dropped.

A fork is the stream as it is declared now, under another name and with tables of its own, which
begin as those of the savepoint. It reads the same inputs. What the stream sends out of the lake it
does not send.
"""

from __future__ import annotations

import json
import re
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rivermark.lake.clone import clone_table
from rivermark.lake.filesystem import filesystem, is_local, write_file
from rivermark.lake.integrity.sidecar import sidecar_of
from rivermark.lake.lake import Lake
from rivermark.lake.locks import days_lock
from rivermark.lake.log import CommitLog
from rivermark.model.errors import RivermarkError, UnknownStream
from rivermark.model.stream import AnyStream, Ingest, Stream
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.runtime.checkpoint import records
from rivermark.runtime.checkpoint.dead_letters import replayed_into
from rivermark.runtime.checkpoint.generation import going_back, write_generation
from rivermark.runtime.checkpoint.identity import forget_identity
from rivermark.runtime.savepoint.manifest import Manifest
from rivermark.runtime.savepoint.obstacles import check_inputs
from rivermark.runtime.savepoint.resume import Order, put_in_place
from rivermark.runtime.savepoint.store import (
    check_local,
    copy_checkpoint,
    lake_of,
    savepoint,
    take,
    written_by,
)
from rivermark.sinks.output import sinks_of

FORKS: Final = "forks"
NAME: Final = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, kw_only=True)
class Fork:
    """A fork: of which stream, from which of its savepoints, since when (UTC).

    `promoting` is the savepoint of the fork that takes the stream's place, and `promoted` says that
    it has.
    """

    name: str
    stream: str
    savepoint: str
    at: datetime
    promoting: str = ""
    promoted: bool = False


def forked(stream: Stream, name: str) -> Stream:
    """The stream under the name of a fork, with tables of its own and without other targets."""
    outputs = tuple(
        replace(
            output,
            table=replace(output.table, name=f"{FORKS}/{name}/{output.table.name}"),
            sinks=tuple(sink for sink in output.sinks if sink.writes_table),
        )
        for output in stream.outputs
    )
    writes = outputs[0].table if isinstance(stream.writes, Table) else outputs
    return replace(stream, name=f"{FORKS}/{name}", writes=writes)


def forks(lake: Lake) -> list[Fork]:
    """The forks of a lake by name. Raises CheckpointIncompatible for a damaged record."""
    folder = Path(filesystem(f"{lake.root}/{FORKS}")[1]) if is_local(lake.root) else None
    paths = sorted(folder.glob("*.json")) if folder and folder.is_dir() else []
    read = (records.read(str(path), Fork, path.stem) for path in paths)
    return [each for each in read if each is not None]


def with_forks(lake: Lake, topology: Topology) -> Topology:
    """The topology with the forks of the streams that it declares."""
    declared = {stream.name: stream for stream in topology.streams}
    known = [(each.name, declared.get(each.stream)) for each in forks(lake)]
    made = [forked(stream, name) for name, stream in known if isinstance(stream, Stream)]
    return Topology((*topology.streams, *made), topology.plots) if made else topology


def fork_named(lake: Lake, topology: Topology, name: str) -> tuple[Fork, Stream]:
    """A fork and its stream as it is declared now; UnknownStream lists those there are."""
    known = {each.name: each for each in forks(lake)}
    if name not in known:
        raise UnknownStream(f"no fork is named {name!r}; there are: {', '.join(known) or 'none'}")
    return known[name], _a_stream(topology.named(known[name].stream))


def stands_on(lake: Lake) -> Callable[[Manifest], str]:
    """A function that names the fork which stands on a savepoint, or returns nothing."""
    used = {(f.stream, f.savepoint): f"fork '{f.name}'" for f in forks(lake)}
    used |= {(f"{FORKS}/{f.name}", f.promoting): f"fork '{f.name}'" for f in forks(lake)}
    return lambda made: used.get((made.stream, made.id), "")


def fork(order: Order, stream: AnyStream, name: str, kept: str, *, accept: bool = False) -> Fork:
    """Make a fork of the stream from one of its savepoints.

    `accept` takes the state as made by what is declared now. What a kill has left is done again.
    Raises RivermarkError for a name that is in use, and for what cannot be forked.
    """
    lake, declared = order.settings.lake(), _a_stream(stream)
    check_local(lake)
    if not NAME.fullmatch(name):
        raise RivermarkError(f"fork {name!r}: write a name in lower case, such as 'faster'")
    twin = forked(declared, name)
    if name in {each.name for each in forks(lake)}:
        raise RivermarkError(f"there is a fork '{name}' already: rivermark fork drop {name}")
    made = savepoint(lake, stream.name, kept)
    check_inputs(lake, stream, made)
    source = lake_of(lake, made)
    done = Fork(name=name, stream=stream.name, savepoint=made.id, at=datetime.now(UTC))
    if order.dry_run:
        return done
    with order.lease(twin.name):
        _remove(lake, name)
        for own, table in _names(twin, declared).items():
            if table in made.tables:
                order.on_step(f"making {own}")
                clone_table(source.path(table), lake.path(own), made.tables[table].version)
        replays, of_twin = replayed_into(declared), replayed_into(twin)
        if replays is not None and of_twin is not None and lake.exists(replays):
            path = lake.path(replays)
            with days_lock(path):
                clone_table(path, lake.path(of_twin), CommitLog(path).versions()[-1])
        order.on_step("making the checkpoint")
        folder = lake.checkpoint(twin.name, made.generation)
        copy_checkpoint(source.checkpoint(stream.name, made.generation), folder, made.batch)
        _rename_query(folder)
        write_generation(lake, twin, made.origin)
        if accept:
            forget_identity(lake, twin)
        order.on_step("writing it down")
        _write(lake, done)
    return done


def promote(order: Order, name: str) -> str:
    """Put the tables and the state of a fork in the place of its stream's, and drop the fork.

    Returns the stream. Neither may run. Broken off at any moment, it is finished by being called
    again. Raises as `put_in_place`.
    """
    lake = order.settings.lake()
    made, stream = fork_named(lake, order.topology, name)
    twin, command = forked(stream, name), f"rivermark fork promote {name}"
    if outside := [s.target for o in stream.outputs for s in sinks_of(o) if not s.writes_table]:
        raise RivermarkError(
            f"'{stream.name}' sends rows to {outside[0]}, which would differ from its table "
            "afterwards: a fork of it can be compared and dropped only"
        )
    if order.dry_run:
        return stream.name
    with order.lease(twin.name):
        unfinished = going_back(lake, stream.name) == command
        if unfinished or not made.promoted:
            if not unfinished:
                at_end = take(order.settings, twin, on_step=order.on_step)
                made = replace(made, promoting=at_end.id)
                _write(lake, made)
            # From its end on a repeated call only drops the fork: the stream may have run since.
            in_place = replace(made, promoted=True)
            kept = savepoint(lake, twin.name, made.promoting)
            names = _names(stream, twin)
            put_in_place(order, stream, kept, command, names, lambda: _write(lake, in_place))
        order.on_step("dropping the fork")
        _drop(lake, name)
    return stream.name


def drop(order: Order, name: str) -> None:
    """Remove a fork with its tables, checkpoint and savepoints, or what a kill has left of one.

    Raises RivermarkError for one that is promoted by half, StreamAlreadyRunning while it runs.
    """
    lake, command = order.settings.lake(), f"rivermark fork promote {name}"
    known = {each.name: each for each in forks(lake)}
    left = Path(filesystem(f"{lake.root}/checkpoints/{FORKS}/{name}")[1])
    if name not in known and not (NAME.fullmatch(name) and left.exists()):
        raise UnknownStream(f"no fork is named {name!r}; there are: {', '.join(known) or 'none'}")
    with order.lease(f"{FORKS}/{name}"):
        if name in known and going_back(lake, known[name].stream) == command:
            raise RivermarkError(f"fork '{name}' is promoted by half; finish it: {command}")
        if not order.dry_run:
            _drop(lake, name)


def _a_stream(stream: AnyStream) -> Stream:
    if isinstance(stream, Ingest):
        raise RivermarkError(
            f"'{stream.name}' reads a source, which a second one would read beside it; its "
            f"decisions are tried over raw rows: rivermark replay-ingest {stream.name}"
        )
    if stream.kind == "refresh":
        raise RivermarkError(
            f"'{stream.name}' computes whole days and keeps no state: try them with rivermark "
            f"reprocess {stream.name} --dry-run"
        )
    return stream


def _names(stream: Stream, source: Stream) -> dict[str, str]:
    """Names of the tables of one by those of the other: a stream and its fork."""
    named = {_plain(table.name): table.name for table in written_by(source)}
    plain = {table.name: _plain(table.name) for table in written_by(stream)}
    return {name: named[own] for name, own in plain.items() if own in named}


def _plain(name: str) -> str:
    return name.partition("/")[2].partition("/")[2] if name.startswith(f"{FORKS}/") else name


def _rename_query(checkpoint: str) -> None:
    """Give the query an id of its own: Spark runs no two of one id in a session."""
    path = Path(filesystem(f"{checkpoint}/metadata")[1])
    sidecar_of(path).unlink(missing_ok=True)
    write_file(str(path), json.dumps({"id": str(uuid.uuid4())}).encode())


def _write(lake: Lake, made: Fork) -> None:
    records.write(f"{lake.root}/{FORKS}/{made.name}.json", made)


def _drop(lake: Lake, name: str) -> None:
    _remove(lake, name)
    Path(filesystem(f"{lake.root}/{FORKS}/{name}.json")[1]).unlink(missing_ok=True)


def _remove(lake: Lake, name: str) -> None:
    twin = f"{FORKS}/{name}"
    for folder in (f"tables/{twin}", f"tables/{twin}_replays", f"checkpoints/{twin}"):
        shutil.rmtree(filesystem(f"{lake.root}/{folder}")[1], ignore_errors=True)
    shutil.rmtree(filesystem(f"{lake.root}/savepoints/{twin}")[1], ignore_errors=True)
