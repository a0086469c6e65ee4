"""The generation of a stream's checkpoint: which one is in use, and whether it may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Literal

from pyarrow import fs

from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.delta import delta_table
from rivermark.lake.filesystem import filesystem
from rivermark.lake.integrity.log_entry import read_entry
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.written import check_not_behind
from rivermark.model.errors import CheckpointIncompatible, TableDamaged
from rivermark.model.sink import Origin, owned
from rivermark.model.stream import AnyStream, Stream
from rivermark.model.table import Table
from rivermark.runtime.checkpoint import records
from rivermark.runtime.checkpoint.integrity import check_files


@dataclass(frozen=True)
class Generation:
    """A checkpoint's life: its number, since when (UTC), and the Spark settings frozen in it."""

    number: int
    since: datetime
    shuffle_partitions: int

    def origin(self, stream: AnyStream, run_id: str, check: Callable[[], None] = owned) -> Origin:
        """Who writes, in this generation and run; `check` is that of the stream's lease."""
        return Origin(stream.name, self.number, self.since, run_id, check)


@dataclass(frozen=True)
class _Record:
    """The content of `generation.json`; `resetting` until the reset that made it is finished.

    `going_back` is the command that puts a savepoint in place, until it has.
    """

    number: int
    since: datetime
    shuffle_partitions: int
    resetting: bool = False
    going_back: str = ""


def open_generation(lake: Lake, stream: AnyStream, shuffle_partitions: int) -> Generation:
    """The stream's current generation; its first start writes down what must not change later.

    The number of shuffle partitions in force is that of the first start (Spark freezes it with the
    state), whatever the settings say since.

    Raises CheckpointIncompatible where tables hold batches of the stream and nothing of its
    checkpoints is left: a first start would write them again.
    """
    generation = read_generation(lake, stream)
    if generation is None:
        held = held_before_first_start(lake, stream)
        number = 0 if held is None else held.generation + 1
        generation = Generation(number, datetime.now(UTC), shuffle_partitions)
        write_generation(lake, stream, generation)
    return generation


def held_before_first_start(lake: Lake, stream: AnyStream) -> _Held | None:
    """The rows of tables whose stream has no generation; None without any.

    Raises CheckpointIncompatible where a first start would write batches again.
    """
    held = _newest_generation(lake, stream)
    if held is not None and held.by == "batch":
        raise CheckpointIncompatible(
            f"stream '{stream.name}': table '{held.table}' holds batch {held.number} of its "
            f"generation {held.generation}, but {generation_path(lake, stream)} is gone. "
            f"Put it back, or start over on purpose: rivermark reset {stream.name} (new "
            "checkpoint, tables rebuilt from their inputs)."
        )
    return held


def reset_generation(
    lake: Lake, stream: AnyStream, shuffle_partitions: int, clear: Callable[[], None]
) -> Generation:
    """Begin the stream's next generation: a new checkpoint, with tables that `clear` emptied.

    A kill in the middle leaves a mark with which the stream does not start until the reset is done
    again: with old tables and a new checkpoint it would write every row twice, with new tables and
    the old checkpoint it would leave out all that came before.
    """
    try:
        before = read_generation(lake, stream, unfinished=True)
    except CheckpointIncompatible:
        before = None  # A damaged file; the folders say which numbers were used.
    try:
        held = _newest_generation(lake, stream)
    except TableDamaged:
        held = None  # A table that is put aside: to start over is the way out of its damage.
    # Where the checkpoints are lost, the tables still know which numbers were used.
    used = newest_entry(*filesystem(f"{lake.root}/checkpoints/{stream.name}"))
    numbers = [before.number if before else -1, held.generation if held else -1]
    number = 1 + max(*numbers, -1 if used is None else used)
    after = Generation(number, datetime.now(UTC), shuffle_partitions)
    write_generation(lake, stream, after, unfinished=True)
    clear()
    write_generation(lake, stream, after)
    return after


def read_generation(
    lake: Lake, stream: AnyStream, *, unfinished: bool = False
) -> Generation | None:
    """The generation in use; None before the first start. An unfinished reset only where allowed.

    Raises CheckpointIncompatible for a reset that was broken off, and for a damaged file.
    """
    record = records.read(generation_path(lake, stream), _Record, stream.name)
    if record is None:
        return None
    if record.resetting and not unfinished:
        raise CheckpointIncompatible(
            f"stream '{stream.name}': a reset was broken off; finish it: "
            f"rivermark reset {stream.name}"
        )
    if record.going_back and not unfinished:
        raise CheckpointIncompatible(
            f"stream '{stream.name}': a savepoint was put in place by half; finish it: "
            f"{record.going_back}"
        )
    return Generation(record.number, record.since, record.shuffle_partitions)


def going_back(lake: Lake, stream: str) -> str:
    """The command that puts a savepoint in place and was broken off; empty without one."""
    record = records.read(f"{lake.root}/checkpoints/{stream}/generation.json", _Record, stream)
    return record.going_back if record is not None else ""


def generation_path(lake: Lake, stream: AnyStream) -> str:
    """The file that says which generation is in use."""
    return f"{lake.root}/checkpoints/{stream.name}/generation.json"


def write_generation(
    lake: Lake,
    stream: AnyStream,
    made: Generation,
    *,
    unfinished: bool = False,
    going_back: str = "",
) -> None:
    """Write a generation down, whole or not at all."""
    content = {**asdict(made), "since": made.since.isoformat()}
    marks = {"resetting": unfinished, "going_back": going_back}
    content |= {mark: value for mark, value in marks.items() if value}
    records.write(generation_path(lake, stream), content)


def check_checkpoint(lake: Lake, stream: AnyStream, origin: Origin) -> str:
    """The checkpoint's folder, checked against the batches that the tables hold.

    Raises CheckpointIncompatible where parts were deleted or are damaged: Spark would start from
    nothing and write what is in the tables already, or build on state that belongs to other
    offsets. And where a table is an older copy: what it lost would not come again.
    """
    folder = lake.checkpoint(stream.name, origin.generation)
    check_files(folder, stream.name)
    written = {t.name: TableWriter(lake, t, origin).last for t in stream.tables if lake.exists(t)}
    held = {name: int(last.metadata["batch"]) for name, last in written.items() if last}
    check_batches(lake, stream, origin, held)
    return folder


def check_batches(lake: Lake, stream: AnyStream, origin: Origin, held: Mapping[str, int]) -> None:
    """Refuse a checkpoint and tables of which one is older than the other.

    `held` is the newest batch of this generation in each table that has one; look it up before
    this is called, so that a batch that comes meanwhile is planned. Raises CheckpointIncompatible.
    """
    folder = lake.checkpoint(stream.name, origin.generation)
    store, path = filesystem(folder)
    offsets = newest_entry(store, f"{path}/offsets")
    state = store.get_file_info(f"{path}/state").type == fs.FileType.Directory
    reset = (
        f"Put the checkpoint back, or start over on purpose: rivermark reset {stream.name} "
        "(new checkpoint, tables rebuilt from their inputs)."
    )
    if offsets is None and state:
        raise CheckpointIncompatible(
            f"stream '{stream.name}': checkpoint {folder} has state but no offsets; "
            f"a part of it was deleted. {reset}"
        )
    by = "refresh" if isinstance(stream, Stream) and stream.kind == "refresh" else "batch"
    for table in stream.tables:
        last = held.get(table.name)
        if last is not None and (offsets is None or last > offsets):
            raise CheckpointIncompatible(
                f"stream '{stream.name}': table '{table.name}' holds batch {last} but checkpoint "
                f"{folder} has planned {'none' if offsets is None else offsets}; it was deleted or "
                f"is an older copy. {reset}"
            )
        check_not_behind(lake, table, origin, last, by)
        if lake.exists(table):
            check_not_set_back(lake, table, origin, by)


def newest_batch(lake: Lake, stream: AnyStream, origin: Origin) -> int | None:
    """The newest batch of this generation that any table of the stream holds."""
    writers = (TableWriter(lake, table, origin) for table in stream.tables if lake.exists(table))
    return max((int(w.last.metadata["batch"]) for w in writers if w.last), default=None)


@dataclass(frozen=True)
class _Held:
    """The newest batch of a stream in a table, or (`by` refresh) its newest replacing of days."""

    table: str
    generation: int
    by: Literal["batch", "refresh"]
    number: int


def _newest_generation(lake: Lake, stream: AnyStream) -> _Held | None:
    """The newest generation of which any table of the stream holds a commit."""
    held = []
    for table in stream.tables:
        if not lake.exists(table):
            continue
        for commit in CommitLog(lake.path(table)).history():
            metadata = commit.metadata
            by: Literal["batch", "refresh"] = "batch" if "batch" in metadata else "refresh"
            if metadata.get("stream") == stream.name and {"generation", by} <= metadata.keys():
                number = int(metadata["generation"])
                held.append(_Held(table.name, number, by, int(metadata[by])))
                break
    return max(held, key=lambda each: each.generation, default=None)


def newest_entry(store: fs.FileSystem, folder: str) -> int | None:
    """The highest batch number among the entries of a checkpoint's log, or None."""
    selector = fs.FileSelector(folder, allow_not_found=True)
    names = [f.base_name for f in store.get_file_info(selector)]
    return max((int(n) for n in names if n.isdigit()), default=None)


RESTORE = "RESTORE"


def check_not_set_back(lake: Lake, table: Table, origin: Origin, by: str = "batch") -> None:
    """Refuse a table of whose last batch a later RESTORE took files away.

    Raises CheckpointIncompatible.
    """
    log = CommitLog(lake.path(table))
    restored: int | None = None
    for commit in log.backwards():
        metadata = commit.metadata
        ours = (metadata.get("stream"), metadata.get("generation"))
        if ours == (origin.stream, origin.generation) and by in metadata:
            if restored is not None and _lacks_rows(lake.path(table), commit.version, restored):
                raise CheckpointIncompatible(
                    f"stream '{origin.stream}': table '{table.name}' in {lake.path(table)} was set "
                    f"back by a RESTORE (version {restored}): rows of batch {metadata[by]} and "
                    f"perhaps of more are in it no longer. Restore version {restored - 1}, or "
                    f"start over on purpose: rivermark reset {origin.stream}"
                )
            return
        if commit.operation == RESTORE:
            restored = commit.version


def _lacks_rows(path: str, version: int, restored: int) -> bool:
    """Returns True if files with the rows of a commit are no longer in the table.

    What was written in the place of such files before the RESTORE, joined or computed again, counts
    as they do.
    """
    store, log = filesystem(f"{path}/_delta_log")
    holding: set[str] = set()
    for each in range(version, restored):
        actions = read_entry(store, log, each)
        removed = {a["remove"]["path"] for a in actions if "remove" in a}
        added = {a["add"]["path"] for a in actions if "add" in a}
        if each == version:
            holding = added
        elif holding & removed:
            holding = (holding - removed) | added
    return not holding <= set(delta_table(path).get_add_actions()["path"].to_pylist())
