"""Savepoints in the lake: taken, listed, removed.

A savepoint is a small lake of its own, `<lake>/savepoints/<stream>/<id>`: the tables that the
stream writes and its checkpoint, each as of one finished batch, and a manifest. Its files are
second names of files that never change, so that it costs no rows, and nothing that is done to the
tables reaches it. What has no manifest was broken off, and is none.

It is taken from outside, also while the stream runs: Spark's checkpoint names files by batch, and
tables say which commit is of which batch, so what came behind the last finished one is left out.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from rivermark.lake.archive import new_id
from rivermark.lake.clone import clone_table, copy_files
from rivermark.lake.filesystem import filesystem, is_local
from rivermark.lake.lake import Lake
from rivermark.lake.locks import days_lock
from rivermark.lake.maintenance.reader_positions import Reader
from rivermark.model.errors import RivermarkError, StreamAlreadyRunning
from rivermark.model.stream import AnyStream, Ingest
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.runtime.checkpoint import records
from rivermark.runtime.checkpoint.generation import read_generation, write_generation
from rivermark.runtime.checkpoint.integrity import LOGS, check_files
from rivermark.runtime.checkpoint.positions import read_by_stream
from rivermark.runtime.checkpoint.power_failure import STATE
from rivermark.runtime.savepoint.manifest import Manifest, manifest_of
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.runtime.supervision.lease import Lease
from rivermark.runtime.supervision.reset import tables_of
from rivermark.settings import Settings
from rivermark.sinks.real_time import real_time_of

ID: Final = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}")
STOPPING: Final = 120.0
"""Seconds that a run may take to stop between two batches."""
LEFT_OUT: Final = ("written", "rows")
"""Folders of a checkpoint with what is noted of tables, and of the batch that is under way."""


def written_by(stream: AnyStream) -> Sequence[Table]:
    """The tables of a savepoint: all that go back with it. An ingest's plan only goes on."""
    return stream.tables if isinstance(stream, Ingest) else tables_of(stream)


def take(
    settings: Settings, stream: AnyStream, *, on_step: Callable[[str], None] = lambda _: None
) -> Manifest:
    """Keep the stream as it is after its last finished batch, also while it runs.

    Waits for a recompute or maintenance of its tables. Raises RivermarkError before the first
    finished batch, for a lake that is not on this machine's disk, and for a stream in real time.
    """
    lake = settings.lake()
    check_local(lake)
    if real_time_of(stream) is not None:
        raise RivermarkError(
            f"'{stream.name}' sends in real time, and what was sent cannot be kept by a savepoint; "
            "declare a stream without the sink for what is to be kept"
        )
    on_step("waiting for recomputes and maintenance of its tables")
    with days_lock(lake.path(stream.tables[0])):
        on_step("reading positions")
        made = manifest_of(settings, stream, written_by(stream), new_id())
        folder = lake.checkpoint(stream.name, made.generation)
        check_files(folder, stream.name)
        kept = lake_of(lake, made)
        on_step("keeping the checkpoint")
        copy = kept.checkpoint(stream.name, made.generation)
        copy_checkpoint(folder, copy, made.batch)
        made = replace(made, checkpoint=files_in(copy))
        for name, table in made.tables.items():
            on_step(f"keeping {name}")
            clone_table(lake.path(name), kept.path(name), table.version)
    now = read_generation(lake, stream)
    if now is None or now.number != made.generation:
        shutil.rmtree(_local(kept.root))
        raise RivermarkError(
            f"stream '{stream.name}' was reset meanwhile; take the savepoint again"
        )
    write_generation(kept, stream, made.origin)
    on_step("writing the manifest")
    records.write(f"{kept.root}/manifest.json", made)
    return made


def stop_and_take(
    settings: Settings,
    stream: AnyStream,
    *,
    run_id: str,
    by: str,
    on_step: Callable[[str], None] = lambda _: None,
) -> Manifest:
    """Pause the group of the stream, and keep the stream as its run has left it.

    The group stays paused. Where the savepoint cannot be taken, it is desired to run again if it
    was before. Raises StreamAlreadyRunning where its run has not ended after two minutes.
    """
    store = DesiredStore(settings.state)
    before = store.get(stream.group)
    store.set(stream.group, "paused", by=by, reason=f"savepoint of {stream.name}")
    try:
        with lease_when_stopped(settings, stream, run_id, on_step):
            return take(settings, stream, on_step=on_step)
    except BaseException:
        if before.state == "run":
            store.set(stream.group, "run", by=by, reason="its savepoint could not be taken")
        raise


def lease_when_stopped(
    settings: Settings, stream: AnyStream, run_id: str, on_step: Callable[[str], None]
) -> Lease:
    """The lease of a stream whose group was paused; StreamAlreadyRunning after two minutes."""
    deadline = time.monotonic() + STOPPING
    while True:
        on_step(f"waiting for {stream.group} to stop")
        try:
            return Lease(settings.state, stream.name).acquire(run_id)
        except StreamAlreadyRunning:
            if time.monotonic() > deadline:
                raise


def copy_checkpoint(source: str, target: str, batch: int) -> None:
    """Copy what a checkpoint says of a finished batch and of those before it.

    Snapshots first: the files that one consists of lie there before its own name does.
    """
    root = _local(source)
    names = [name for name in _files(root, batch) if not name.endswith(".sst")]
    copy_files(root, _local(target), names, purged=True)
    parts = [name for name in _files(root, batch) if name.endswith(".sst")]
    copy_files(root, _local(target), parts, purged=True)


def files_in(checkpoint: str) -> dict[str, int]:
    """The bytes of each file of a checkpoint by name, without Hadoop's checksums."""
    root = _local(checkpoint)
    files = (path for path in sorted(root.rglob("[!.]*")) if path.is_file())
    return {str(path.relative_to(root)): path.stat().st_size for path in files}


def _files(root: Path, batch: int) -> Iterator[str]:
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        plain = path.name[1:-4] if path.name.endswith(".crc") else path.name
        if plain.startswith(".") or name.partition("/")[0] in LEFT_OUT or not path.is_file():
            continue
        state = STATE.fullmatch(plain) if name.startswith("state/") else None
        numbered = plain.isdigit() and (path.parent.name in LOGS or "/_metadata/v2" in name)
        if (state and int(state[1]) > batch + 1) or (numbered and int(plain) > batch):
            continue
        yield name


def lake_of(lake: Lake, made: Manifest) -> Lake:
    """A savepoint as the lake that it is."""
    return Lake(f"{lake.root}/savepoints/{made.stream}/{made.id}", lake.retention)


def savepoints(lake: Lake, stream: str) -> list[Manifest]:
    """The savepoints of a stream, the newest first. Raises CheckpointIncompatible for damage."""
    read = (_read(lake, stream, name) for name in _ids(lake, stream))
    made = [each for each in read if each is not None]
    return sorted(made, key=lambda each: each.at, reverse=True)


def savepoint(lake: Lake, stream: str, name: str) -> Manifest:
    """A savepoint by its id, or the newest as `latest`; RivermarkError lists those there are."""
    if ID.fullmatch(name) and (made := _read(lake, stream, name)) is not None:
        return made
    ids = [each.id for each in savepoints(lake, stream)]
    if ids and name == "latest":
        return savepoint(lake, stream, ids[0])
    known = f"there are {', '.join(ids[:5])}" if ids else "take one: rivermark savepoint take"
    raise RivermarkError(f"stream '{stream}' has no savepoint {name!r}; {known}")


def delete(
    lake: Lake,
    stream: str,
    name: str,
    in_use: Callable[[Manifest], str],
    *,
    dry_run: bool = False,
) -> None:
    """Delete a savepoint. Raises RivermarkError for the newest one, and for one that is in use.

    `in_use` returns who stands on it, or nothing.
    """
    made = savepoint(lake, stream, name)
    if made.id == savepoints(lake, stream)[0].id:
        raise RivermarkError(
            f"{made.id} is the newest restore point of stream '{stream}'; take another one first: "
            f"rivermark savepoint take {stream}"
        )
    if user := in_use(made):
        raise RivermarkError(f"{user} stands on {made.id} of stream '{stream}'; drop it first")
    if not dry_run:
        remove(lake, stream, made.id)


def remove(lake: Lake, stream: str, name: str) -> None:
    """Remove a savepoint, its manifest first: a kill leaves one that was broken off."""
    folder = _local(f"{lake.root}/savepoints/{stream}/{name}")
    (folder / "manifest.json").unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def beyond_the_rule(
    settings: Settings, stream: str, in_use: Callable[[Manifest], str], now: datetime
) -> list[str]:
    """Ids of savepoints that no rule keeps any more, and of those that were broken off a day ago.

    `savepoints_kept` of each stream stay, for `savepoint_days`, and those that are in use.
    """
    lake = settings.lake()
    made = savepoints(lake, stream)
    oldest = now - timedelta(days=settings.savepoint_days)
    old = [e for n, e in enumerate(made) if n >= settings.savepoints_kept or e.at < oldest]
    broken = set(_ids(lake, stream)) - {each.id for each in made}
    yesterday = f"{now - timedelta(days=1):%Y%m%d-%H%M%S}"
    return [e.id for e in old if not in_use(e)] + sorted(n for n in broken if n < yesterday)


def savepoint_readers(lake: Lake, topology: Topology, table: Table) -> list[Reader]:
    """The places in a table from which savepoints go on: so long it keeps what follows."""
    return [
        Reader(stream.name, place.version, place.snapshot, place.log_from, made.id)
        for stream in topology.streams
        if table.name in {read.name for read in read_by_stream(stream)}
        for made in savepoints(lake, stream.name)
        if (place := made.inputs.get(table.name)) is not None
    ]


def check_local(lake: Lake) -> None:
    """Refuse a lake that is not on this machine's disk."""
    if not is_local(lake.root):
        raise RivermarkError(
            f"{lake.root} is not on this machine's disk, where files can have a second name: copy "
            "the lake while its groups are paused (docs/how-to/move-a-lake.md)"
        )


def _ids(lake: Lake, stream: str) -> list[str]:
    if not is_local(lake.root):
        return []
    folder = _local(f"{lake.root}/savepoints/{stream}")
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted((name for name in names if ID.fullmatch(name)), reverse=True)


def _read(lake: Lake, stream: str, name: str) -> Manifest | None:
    return records.read(f"{lake.root}/savepoints/{stream}/{name}/manifest.json", Manifest, stream)


def _local(uri: str) -> Path:
    return Path(filesystem(uri)[1])
