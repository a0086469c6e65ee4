"""Erasure of a person's rows: out of every table of the lake and its older versions, for good.

Streams that write or read these tables stand still meanwhile and have nothing unread, so that none
brings a row back: each commit is one that they skip. What is to go is written down first. A kill at
any moment is finished by running it again with the same values.
"""

from __future__ import annotations

import getpass
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from rivermark.backfill.affected_days import DaysByStream, all_affected_days
from rivermark.backfill.erasure import record
from rivermark.backfill.erasure.person import Person
from rivermark.backfill.erasure.search import Holder, Search
from rivermark.backfill.pending import PENDING_AND_MERGES, add_pending
from rivermark.ingest.lookup_table import LookupTable
from rivermark.lake.erasure import erase_rows, erase_versions, in_log
from rivermark.lake.filesystem import filesystem, is_local
from rivermark.lake.lake import Lake
from rivermark.lake.locks import try_days_lock, try_merge_lock
from rivermark.lake.log import CommitLog
from rivermark.lake.maintenance.reader_positions import lagging
from rivermark.lake.maintenance.vacuum import clean_log, cut_log
from rivermark.lake.schema import create_table
from rivermark.model.errors import RivermarkError
from rivermark.model.sink import Origin, Sink, SinkContext
from rivermark.model.stream import AnyStream, Ingest, Stream, inputs_of
from rivermark.model.topology import Topology
from rivermark.runtime.checkpoint.generation import newest_entry, read_generation
from rivermark.runtime.checkpoint.readers import readers_of
from rivermark.runtime.savepoint.fork import forks
from rivermark.runtime.savepoint.store import remove, savepoints
from rivermark.runtime.supervision.lease import Lease
from rivermark.runtime.supervision.reset import tables_of
from rivermark.settings import Settings
from rivermark.sinks.output import context_of, sinks_of


@dataclass(frozen=True)
class Erased:
    """The rows at a place, which are gone unless it was a dry run.

    `rows` are those of the newest version, `old_files` files of older ones that hold some.
    """

    place: str
    rows: int
    old_files: int = 0


@dataclass
class Erasure:
    """Result of an erasure; `left` says what it does not reach, and what becomes of that."""

    id: str
    dry_run: bool
    places: list[Erased] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    pending: DaysByStream = field(default_factory=dict)


def erase(
    settings: Settings,
    topology: Topology,
    person: Person,
    *,
    run_id: str,
    dry_run: bool = False,
    by: str = "",
    because: str = "",
    on_step: Callable[[str], None] = lambda _: None,
) -> Erasure:
    """Take a person's rows out of every table of the lake, and out of databases that sinks write.

    Days downstream are pending then, and the next merge of late rows recomputes them. A dry run
    says what is there.

    Raises:
        RivermarkError: a stream of these tables runs, has not read all of its inputs or not
            finished its last batch, days of them are being computed, or the lake is not on this
            machine's disk; nothing has changed then.
    """
    lake = settings.lake()
    if not is_local(lake.root):
        raise RivermarkError(
            f"{lake.root} is not on this machine's disk: erase files of an object store with "
            "its own tools, including the versions that it keeps"
        )
    search = Search(lake, topology, person, on_step)
    sinks = [*_sinks(lake, topology, person, run_id)]
    result = Erasure(uuid4().hex[:12], dry_run)
    if dry_run:
        search.refresh()
        result.places = [*_in_lake(search), *_in_sinks(sinks, person, dry_run=True)]
        result.left = _left(lake, topology, person, search, sinks)
        return result
    digests = person.digests(settings.state)
    about = {"erasure": result.id, "person": digests, "run": run_id, "because": because}
    about["by"] = by or getpass.getuser()
    known = record.unfinished(lake, digests)
    with _nothing_moves(settings, topology, search, known, run_id):
        _write_down(lake, topology, search, result, run_id)
        in_lake = _in_lake(search)
        record.begin(lake, [{**about, **vars(each)} for each in in_lake or [Erased("", 0)]])
        in_sinks = _in_sinks(sinks, person, dry_run=False)
        for holder in search.holders:
            on_step(f"erasing from {holder.place}")
            _take_out(lake, topology, holder, {"erasure": result.id, "run": run_id})
        _rebuild_lookups(lake, topology, search, {"erasure": result.id, "run": run_id})
        names = {holder.place for holder in search.holders}
        for stream in topology.streams:
            # They go back to versions and state that hold the rows.
            if names & _touches(stream):
                for savepoint in savepoints(lake, stream.name):
                    remove(lake, stream.name, savepoint.id)
        for file in search.staged:
            file.unlink(missing_ok=True)
        result.places = [*in_lake, *in_sinks]
        result.left = _left(lake, topology, person, search, sinks)
        record.finish(lake, [{**about, **vars(each)} for each in result.places or [Erased("", 0)]])
    return result


def _in_lake(search: Search) -> list[Erased]:
    held = [Erased(h.place, h.held.rows, len(h.held.old)) for h in search.holders]
    return [*held, *([Erased("staged", 0, len(search.staged))] if search.staged else [])]


@contextmanager
def _nothing_moves(
    settings: Settings, topology: Topology, search: Search, known: Collection[str], run_id: str
) -> Iterator[None]:
    """Hold all that writes or reads the tables, and search again when nothing moves any more."""
    lake = settings.lake()
    search.refresh(known)
    names = {holder.place for holder in search.holders}
    streams = [stream for stream in topology.streams if names & _touches(stream)]
    for made in forks(lake):
        if made.stream in {stream.name for stream in streams}:
            raise RivermarkError(
                f"fork '{made.name}' has rows of '{made.stream}' of its own; nothing was changed. "
                f"Drop it first (rivermark fork drop {made.name}), then erase again"
            )
    with ExitStack() as stack:
        for stream in streams:
            stack.enter_context(Lease(settings.state, stream.name).acquire(run_id))
            if not stack.enter_context(try_days_lock(lake.path(stream.tables[0]))):
                raise RivermarkError(
                    f"days of '{stream.name}' are being recomputed; nothing was changed. Erase "
                    "again when that is done"
                )
        create_table(lake, PENDING_AND_MERGES)
        if not stack.enter_context(try_merge_lock(lake.path(PENDING_AND_MERGES))):
            raise RivermarkError(
                "a merge of late rows is running in this lake; nothing was changed. Erase "
                "again when it is done"
            )
        search.refresh(known)
        if late := sorted({holder.place for holder in search.holders} - names):
            raise RivermarkError(
                f"rows of the person arrived in {', '.join(late)} meanwhile; nothing was "
                "changed. Erase again"
            )
        for stream in streams:
            _check_finished(lake, stream)
        for holder in search.holders:
            _check_read(lake, topology, holder)
        yield


def _touches(stream: AnyStream) -> set[str]:
    """The names of the tables that a stream writes or reads."""
    return {table.name for table in (*tables_of(stream), *inputs_of(stream))}


def _check_finished(lake: Lake, stream: AnyStream) -> None:
    """Refuse a stream whose last batch is planned and not finished: it would be written again."""
    generation = read_generation(lake, stream, unfinished=True)
    if generation is None:
        return
    store, path = filesystem(lake.checkpoint(stream.name, generation.number))
    planned, done = (newest_entry(store, f"{path}/{log}") for log in ("offsets", "commits"))
    if planned != done:
        raise RivermarkError(
            f"stream '{stream.name}' has not finished its batch {planned}; nothing was "
            f"changed. Run it first: rivermark run {stream.name}, then erase again"
        )


def _check_read(lake: Lake, topology: Topology, holder: Holder) -> None:
    """Refuse a table of which a stream has still to read rows: from older files, that go."""
    if holder.table is None:
        return
    readers = readers_of(lake, topology, holder.table)
    slowest = lagging(CommitLog(holder.path), readers, holder.held.version + 1)
    if slowest is not None:
        raise RivermarkError(
            f"stream '{slowest.stream}' has not read all rows of '{holder.place}' yet, and "
            "would read them from older files; nothing was changed. Run it first: rivermark "
            f"run {slowest.stream}, then erase again"
        )


def _write_down(
    lake: Lake, topology: Topology, search: Search, result: Erasure, run_id: str
) -> None:
    """Record which rows go and which days follow from them, before the first one goes."""
    for outcomes in search.places.values():
        # Each row of the other tables is one of the raw table too.
        outcomes["raw"] = set().union(*outcomes.values())
    record.note_places(lake, result.id, search.places)
    ingests = {s.admitted.name for s in topology.streams if isinstance(s, Ingest)}
    changed = {name: each for name, each in search.changed.items() if name in ingests}
    result.pending = all_affected_days(topology, changed)
    if result.pending:
        add_pending(lake, result.id, result.pending, run_id)


def _take_out(lake: Lake, topology: Topology, holder: Holder, metadata: dict[str, str]) -> None:
    """Erase rows, then older files that held some, then the log as far as no reader needs it."""
    erase_rows(holder.path, holder.held, holder.columns, holder.match, metadata)
    erase_versions(holder.path, holder.held)
    if holder.table is not None:
        readers = readers_of(lake, topology, holder.table)
        clean_log(lake, holder.table, readers, datetime.now(UTC), metadata["run"])
    else:
        cut_log(holder.path, CommitLog(holder.path).versions()[-1], metadata["run"])


def _rebuild_lookups(
    lake: Lake, topology: Topology, search: Search, metadata: dict[str, str]
) -> None:
    """Let an earlier version be the newest of its key, where a lookup lost that one."""
    names = {holder.place for holder in search.holders}
    for stream in topology.streams:
        if not isinstance(stream, Ingest) or stream.kind != "lookup":
            continue
        if names & {table.name for table in stream.tables}:
            LookupTable(lake, stream).rebuild(metadata)


Opened = tuple[Sink, SinkContext]


def _sinks(lake: Lake, topology: Topology, person: Person, run_id: str) -> Iterator[Opened]:
    """The sinks beside the tables that may have got rows of the person."""
    for stream in topology.streams:
        for output in stream.outputs if isinstance(stream, Stream) else ():
            if person.columns_in(output.table.schema.names):
                origin = Origin(stream.name, 0, datetime.now(UTC), run_id)
                for sink in sinks_of(output)[1:]:
                    yield sink, context_of(lake, output, origin)


def _in_sinks(sinks: list[Opened], person: Person, *, dry_run: bool) -> list[Erased]:
    """The rows in databases that sinks write, which are erased there unless it is a dry run."""
    counted = [(s.target, s.erase(c, person.values, dry_run=dry_run)) for s, c in sinks]
    return [Erased(target, rows) for target, rows in counted if rows is not None]


def _left(
    lake: Lake, topology: Topology, person: Person, search: Search, sinks: list[Opened]
) -> list[str]:
    """The places that an erasure does not reach, a sentence each."""
    names = {holder.place for holder in search.holders}
    sources = [
        f"source of '{stream.name}' ({stream.source.name}): what it still holds comes back where "
        "it is read again (retake, reset)"
        for stream in topology.streams
        if isinstance(stream, Ingest) and names & {t.name for t in stream.tables}
    ]
    states = [
        f"state of '{stream.name}': what it remembers goes with its time, or at once by rivermark "
        f"reset {stream.name}, then erase again"
        for stream in topology.streams
        if names & {t.name for t in inputs_of(stream)} and _has_state(lake, stream)
    ]
    targets = [
        f"{sink.target}: rows of '{context.table.name}' that it got"
        for sink, context in sinks
        if type(sink).erase is Sink.erase
    ]
    logs = [
        f"log of '{holder.place}': bounds of its columns name a value, until rivermark upkeep has "
        "cut it behind what its readers have read"
        for holder in search.holders
        if in_log(holder.path, person.values)
    ]
    return [*sources, *states, *targets, *logs]


def _has_state(lake: Lake, stream: AnyStream) -> bool:
    generation = read_generation(lake, stream, unfinished=True)
    if generation is None:
        return False
    checkpoint = filesystem(lake.checkpoint(stream.name, generation.number))[1]
    return Path(checkpoint, "state").is_dir()
