"""A savepoint in the place of what a stream has become since: each row is there once afterwards.

The checkpoint and the tables go back together (docs/decisions/0039-a-savepoint-is-a-small-lake.md).
A table goes back with its log: what was committed behind the savepoint is not in it any more, and
the stream's next commit takes the number of the first of these. So a reader that had read no
further goes on without noticing; one that had is refused, or starts over.

Whatever is killed is finished by the same command: all is made ready beside the lake's own first;
then a mark in `generation.json` lets the stream not start until each part is moved to its place.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from rivermark.ingest.plan import plan_table
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.archive import is_folder, move_folder, new_id
from rivermark.lake.clone import clone_older_files, clone_table
from rivermark.lake.commit_metadata import commit_properties
from rivermark.lake.delta import dataset_of, delta_table, read_rows
from rivermark.lake.durable import sync
from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock, days_lock
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import AnyStream, Ingest
from rivermark.model.topology import Topology
from rivermark.runtime.checkpoint.closed_days import ClosedDays
from rivermark.runtime.checkpoint.generation import going_back, write_generation
from rivermark.runtime.savepoint.manifest import Manifest
from rivermark.runtime.savepoint.obstacles import (
    check_inputs,
    check_outputs,
    direct_readers,
    readers_behind,
    refused,
    shared_history,
)
from rivermark.runtime.savepoint.store import (
    check_local,
    copy_checkpoint,
    lake_of,
    savepoint,
    written_by,
)
from rivermark.runtime.supervision.lease import Lease
from rivermark.runtime.supervision.reset import reset
from rivermark.settings import Settings

Step = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Order:
    """Who changes what a stream is, where, and how far: `dry_run` only checks.

    `reset_readers` starts streams over that have read rows which go. `on_step` is called before
    each step.
    """

    settings: Settings
    topology: Topology
    run_id: str
    reset_readers: bool = False
    dry_run: bool = False
    on_step: Step = lambda _: None

    def lease(self, stream: str) -> Lease:
        """The lease of a stream. Raises StreamAlreadyRunning while it runs."""
        return Lease(self.settings.state, stream).acquire(self.run_id)


def resume(order: Order, stream: AnyStream, name: str) -> Manifest:
    """Put a savepoint of the stream in place; its next run goes on from there.

    The former tables and checkpoint are moved to `removed/` in the lake. Raises RivermarkError for
    what would lose rows, StreamAlreadyRunning while the stream or one that reads its tables runs.
    """
    made = savepoint(order.settings.lake(), stream.name, name)
    command = f"rivermark savepoint resume {stream.name} {made.id}"
    put_in_place(order, stream, made, command)
    return made


def put_in_place(
    order: Order,
    stream: AnyStream,
    made: Manifest,
    command: str,
    names: Mapping[str, str] | None = None,
    before_the_end: Callable[[], None] = lambda: None,
) -> None:
    """Give the stream the tables and the checkpoint of a savepoint, its own or that of a fork.

    `names` are those of the tables in the savepoint by the stream's own. `command` finishes what
    was broken off. `before_the_end` is called when all is in place, before the stream may start.
    """
    lake, on_step = order.settings.lake(), order.on_step
    check_local(lake)
    tables = names or {table.name: table.name for table in written_by(stream)}
    stage = f"{lake.root}/staged/savepoints/{stream.name}"
    with ExitStack() as held:
        held.enter_context(order.lease(stream.name))
        unfinished = going_back(lake, stream.name)
        if unfinished and unfinished != command:
            raise RivermarkError(f"'{stream.name}' goes back to another one; finish: {unfinished}")
        if not unfinished:
            on_step("checking")
            check_outputs(lake, stream, made, tables)
            check_inputs(lake, stream, made)
            behind = readers_behind(lake, order.topology, stream, made, tables)
            if behind and not order.reset_readers:
                raise RivermarkError(refused(stream, behind))
            for name in [] if order.dry_run else behind:
                on_step(f"starting {name} over")
                reader = order.topology.named(name)
                reset(order.settings, order.topology, reader, run_id=order.run_id)
        if order.dry_run:
            return
        for each in direct_readers(order.topology, stream):
            held.enter_context(order.lease(each.name))
        held.enter_context(days_lock(lake.path(stream.tables[0])))
        if not unfinished:
            if behind := readers_behind(lake, order.topology, stream, made, tables):
                raise RivermarkError(refused(stream, behind))
            on_step("making it ready")
            _make_ready(lake, made, tables, stage)
            on_step("marking the stream")
            write_generation(lake, stream, made.origin, going_back=command)
        _move(lake, stream, made, tables, stage, on_step)
        on_step("putting right what is recorded")
        if isinstance(stream, Ingest):
            _forget_outcomes(lake, stream, made, order.run_id)
        ClosedDays(lake, order.settings.state).go_back(stream.name, made.closed_through)
        before_the_end()
        on_step("taking the mark away")
        write_generation(lake, stream, made.origin)
    shutil.rmtree(filesystem(stage)[1], ignore_errors=True)


def _make_ready(lake: Lake, made: Manifest, tables: Mapping[str, str], stage: str) -> None:
    kept = lake_of(lake, made)
    shutil.rmtree(filesystem(stage)[1], ignore_errors=True)
    folder = kept.checkpoint(made.stream, made.generation)
    copy_checkpoint(folder, f"{stage}/checkpoint", made.batch)
    for name, source in tables.items():
        if source not in made.tables:
            continue
        version, target = made.tables[source].version, f"{stage}/tables/{name}"
        clone_table(kept.path(source), target, version)
        if lake.exists(name) and shared_history(lake, name, kept, source, made) >= 0:
            # Readers that lag, and versions of before, still need files that were joined since.
            clone_older_files(lake.path(name), target, version)


def _move(
    lake: Lake,
    stream: AnyStream,
    made: Manifest,
    tables: Mapping[str, str],
    stage: str,
    on_step: Step,
) -> None:
    stamp = new_id()
    parts = {f"{stage}/tables/{name}": lake.path(name) for name in tables}
    parts[f"{stage}/checkpoint"] = lake.checkpoint(stream.name, made.generation)
    for ready, place in parts.items():
        if not is_folder(ready):
            continue  # It is in its place, or the savepoint has none.
        name = place.removeprefix(f"{lake.root}/").removeprefix("tables/")
        if is_folder(place):
            on_step(f"putting the former {name} away")
            move_folder(place, f"{lake.root}/removed/{stamp}/{name}")
        on_step(f"moving {name} to its place")
        move_folder(ready, place)
        sync([Path(filesystem(at)[1]).parent for at in (ready, place)])


def _forget_outcomes(lake: Lake, ingest: Ingest, made: Manifest, run_id: str) -> None:
    """Take out what is recorded of files behind the savepoint; they are read again by the plan.

    The commit says which batch is the last one, so that those behind it are recorded again.
    """
    plan = plan_table(ingest)
    place = made.inputs.get(plan.name)
    if place is None or not lake.exists(INGEST_FILES):
        return
    read = place.version if place.snapshot else place.version - 1
    rows = read_rows(dataset_of(delta_table(lake.path(plan), read)), columns=["arrival"])
    newest = pc.max(rows["arrival"]).as_py()
    metadata = {"stream": ingest.name, "generation": made.generation, "batch": made.batch}
    path = lake.path(INGEST_FILES)
    with commit_lock(path):
        # A stream's name is checked on declaration and holds no quote.
        delta_table(path).delete(
            f"stream = '{ingest.name}' AND ingest_batch > {-1 if newest is None else int(newest)}",
            commit_properties=commit_properties({**metadata, "run": run_id}),
        )
