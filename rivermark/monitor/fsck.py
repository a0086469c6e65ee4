"""`fsck`: every file of tables and checkpoints looked at, and repaired where no guess is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from deltalake.exceptions import DeltaError

from rivermark.backfill.maintenance import kept_tables
from rivermark.lake.filesystem import filesystem, is_local
from rivermark.lake.integrity.data_file_faults import (
    data_file_problem,
    data_files,
    sums_problem,
)
from rivermark.lake.integrity.fault import RESTORE, Fault
from rivermark.lake.integrity.log_check import OnFile
from rivermark.lake.integrity.log_faults import faults_of_log
from rivermark.lake.integrity.sidecar import delete_with_sidecar
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.repair import repair_file
from rivermark.model.errors import (
    CheckpointIncompatible,
    RivermarkError,
    StreamAlreadyRunning,
    TableDamaged,
    UnknownStream,
)
from rivermark.model.stream import AnyStream, Stream
from rivermark.model.topology import Topology
from rivermark.runtime.checkpoint.generation import (
    Generation,
    check_batches,
    generation_path,
    held_before_first_start,
    read_generation,
)
from rivermark.runtime.checkpoint.integrity import entries, faults_of_rest, faults_of_start
from rivermark.runtime.checkpoint.positions import check_positions
from rivermark.runtime.checkpoint.records import faults_of_records
from rivermark.runtime.checkpoint.state_paths import correct_state_paths, faults_of_state_paths
from rivermark.runtime.supervision.lease import Lease
from rivermark.settings import Settings

RUN: Final = "fsck"


@dataclass
class Finding:
    """A fault, of which table or stream, and whether it was repaired; `why` says why not."""

    of: str
    fault: Fault
    repaired: bool = False
    why: str = ""


@dataclass
class FsckResult:
    """Result of a walk: what was looked at, and its faults."""

    tables: list[str] = field(default_factory=list)
    streams: list[str] = field(default_factory=list)
    files: int = 0
    bytes: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def faults(self) -> list[Finding]:
        """The faults that are left, without notes."""
        return [f for f in self.findings if not f.repaired and not f.fault.note]


def fsck(
    settings: Settings,
    topology: Topology,
    names: Sequence[str] = (),
    *,
    quick: bool = False,
    repair: bool = False,
    on_step: Callable[[str], None] = lambda _: None,
    on_file: OnFile = lambda _: None,
) -> FsckResult:
    """Look at the tables of those names with the streams that write them; default: at all there is.

    `quick` leaves out the content of data files and of state. With `repair`, what needs no guess is
    repaired, where no run holds the stream meanwhile. Starts no Spark. Raises UnknownStream for a
    name that no table has, RivermarkError for a lake that is not on this machine's disk.
    """
    lake = settings.lake()
    if not is_local(lake.root):
        raise RivermarkError(
            f"{lake.root} is not on this machine's disk: an object store keeps checksums of its own"
        )
    result = FsckResult()

    def looked_at(size: int) -> None:
        result.files += 1
        result.bytes += size
        on_file(size)

    for table in _chosen(lake, topology, names):
        on_step(f"table {table}")
        result.tables.append(table)
        path = lake.path(table)
        faults = list(faults_of_log(path, looked_at))
        if faults:
            # A commit that came meanwhile may have looked like a gap: what is one is still there.
            again = list(faults_of_log(path))
            faults = [fault for fault in faults if fault in again]
        faults += _faults_of_data(path, faults, quick, looked_at)
        result.findings += [Finding(table, fault) for fault in faults]
    written = {t.name: s for s in topology.streams for t in s.tables}
    streams = topology.streams if not names else [written[n] for n in names if n in written]
    for stream in {s.name: s for s in streams}.values():
        on_step(f"stream {stream.name}")
        result.streams.append(stream.name)
        faults = _faults_of_stream(lake, stream, quick)
        if faults:
            again = _faults_of_stream(lake, stream, quick)
            result.findings += [Finding(stream.name, fault) for fault in faults if fault in again]
    if repair:
        _repair(settings, topology, result, on_step)
    return result


def _chosen(lake: Lake, topology: Topology, names: Sequence[str]) -> list[str]:
    known = dict.fromkeys(kept_tables(topology))
    root = Path(filesystem(f"{lake.root}/tables")[1])
    logs = sorted(root.rglob("_delta_log")) if root.is_dir() else []
    on_disk = [log.parent.relative_to(root).as_posix() for log in logs]
    for name in names:
        if name not in known and name not in on_disk:
            raise UnknownStream(f"no table is named {name!r}; there are: {', '.join(known)}")
    return [*names] if names else on_disk


def _faults_of_data(
    path: str, in_log: Iterable[Fault], quick: bool, on_file: OnFile
) -> Iterable[Fault]:
    """Faults in the data files of the newest version, where the log can be read."""
    if any(f.repair != "drop draft" and not f.path.endswith(".crc") for f in in_log):
        return
    try:
        files = data_files(path)
        problem = sums_problem(path)
    except (DeltaError, TableDamaged) as error:
        yield Fault(f"{path}/_delta_log", f"cannot be read ({error})", f"{RESTORE}.")
        return
    if problem is not None:
        yield problem
    for file in files:
        problem_of_file = data_file_problem(file, quick=quick)
        on_file(file.size)
        if problem_of_file and file in data_files(path):
            yield Fault(
                str(file.path),
                problem_of_file,
                f"Its rows cannot be read. {RESTORE}; without one, compute the days again that "
                "lack rows (rivermark reprocess), or fill the table again (rivermark reset).",
            )


def _faults_of_stream(lake: Lake, stream: AnyStream, quick: bool) -> list[Fault]:
    """Faults in a stream's checkpoint, and where table and checkpoint do not belong together."""
    try:
        generation = read_generation(lake, stream, unfinished=True)
        if generation is None:
            held_before_first_start(lake, stream)
            return []
    except CheckpointIncompatible as error:
        return [Fault(generation_path(lake, stream), str(error), "")]
    except TableDamaged:
        return []  # Said of the table.
    folder = Path(filesystem(lake.checkpoint(stream.name, generation.number))[1])
    faults = [
        *faults_of_state_paths(str(folder), stream.name),
        *faults_of_start(folder, stream.name),
        *faults_of_records(folder, stream.name),
    ]
    if not quick and folder.is_dir():
        faults += faults_of_rest(folder, stream.name)
    if not all(fault.note for fault in faults):
        return faults
    # What a refresh has written it writes again, whatever its checkpoint knows of it.
    refreshes = isinstance(stream, Stream) and stream.kind == "refresh"
    tables = [] if refreshes else [table.name for table in stream.tables]
    try:
        newest = {name: _newest(lake, name, stream, generation) for name in tables}
        held = {name: batch for name, batch in newest.items() if batch >= 0}
        check_batches(lake, stream, generation.origin(stream, RUN), held)
        check_positions(lake, stream, generation.number)
    except CheckpointIncompatible as error:
        return [*faults, Fault(str(folder), str(error), "")]
    except (TableDamaged, DeltaError):
        pass  # Said of the table.
    return faults


def _repair(
    settings: Settings,
    topology: Topology,
    result: FsckResult,
    on_step: Callable[[str], None],
) -> None:
    lake = settings.lake()
    writers = {t.name: s for s in topology.streams for t in s.tables}
    writers |= {s.name: s for s in topology.streams}
    # The newest entry first: those before it are the last ones then.
    for finding in sorted(result.findings, key=lambda f: f.fault.path, reverse=True):
        fault = finding.fault
        if fault.repair is None:
            continue
        on_step(f"repairing {fault.path}")
        stream = writers.get(finding.of)
        try:
            if stream is None:
                finding.why = _unowned(fault)
                finding.repaired = not finding.why and repair_file(lake.path(finding.of), fault)
                continue
            with Lease(settings.state, stream.name).acquire(RUN):
                finding.why = _acknowledged(lake, stream, finding)
                if not finding.why and fault.repair == "drop offsets":
                    delete_with_sidecar(Path(fault.path))
                    finding.repaired = True
                elif fault.repair == "correct paths":
                    correct_state_paths(str(Path(fault.path).parents[4]), stream.name)
                    finding.repaired = True
                elif not finding.why:
                    finding.repaired = repair_file(lake.path(finding.of), fault)
        except (StreamAlreadyRunning, OSError, RivermarkError, DeltaError) as error:
            finding.why = f"not repaired: {error}"


def _unowned(fault: Fault) -> str:
    """The reason why an entry of a table without a stream stays: nothing says what it held."""
    if fault.repair != "drop entry":
        return ""
    return "not repaired: no stream's checkpoint says whether what it held is acknowledged"


def _acknowledged(lake: Lake, stream: AnyStream, finding: Finding) -> str:
    """The reason why an entry or a plan stays: it may be acknowledged; empty where it is not.

    The last finished batch must be in the table as it can be read: then the entry is of a later
    one, which the stream makes again.
    """
    fault = finding.fault
    if fault.repair not in ("drop entry", "drop offsets"):
        return ""
    generation = read_generation(lake, stream)
    if generation is None:
        return ""
    folder = Path(filesystem(lake.checkpoint(stream.name, generation.number))[1])
    done = max(entries(folder / "commits"), default=-1)
    if fault.repair == "drop offsets":
        batch = int(Path(fault.path).name)
        if isinstance(stream, Stream) and any(o.sinks for o in stream.outputs):
            return "not repaired: a sink beside the tables may hold the batch"
        held = [t.name for t in stream.tables if _newest(lake, t.name, stream, generation) >= batch]
        return f"not repaired: table '{held[0]}' holds the batch" if held else ""
    if _newest(lake, finding.of, stream, generation) < done:
        return (
            f"not repaired: batch {done} is finished by {folder}/commits/{done}, and may be what "
            f"the entry held. Put it back from a copy, or start over: rivermark reset {stream.name}"
        )
    return ""


def _newest(lake: Lake, table: str, stream: AnyStream, generation: Generation) -> int:
    """The newest batch that the readable entries of a table's log hold; -1 without any."""
    log = CommitLog(lake.path(table))
    for version in reversed(log.versions()):
        try:
            commit = log.read(version)
        except TableDamaged:
            continue
        metadata = commit.metadata if commit is not None else {}
        ours = (metadata.get("stream"), metadata.get("generation"))
        if ours == (stream.name, generation.number):
            return int(metadata.get("batch", metadata.get("refresh", -1)))
    return -1
