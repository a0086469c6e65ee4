"""`rivermark fsck`: whether the files of tables and checkpoints are whole, and what to do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from rivermark.cli.arguments import DryRun, Groups, Home, Json, TableNames
from rivermark.cli.console import err, number, out, plain, print_json
from rivermark.cli.deployment import settings_for, topology, with_tables_of
from rivermark.cli.exit_codes import ExitCode
from rivermark.model.printable import printable

if TYPE_CHECKING:
    from rivermark.monitor.fsck import Finding, FsckResult


def fsck(
    tables: TableNames = None,
    group: Groups = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair what can be repaired without a guess.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out the content of data files and of state.")
    ] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Check every file of tables and checkpoints for damage, and say what to do about it.

    Log entries, checksum files, table checkpoints, data files (size, rows, checksums of pages), and
    of each stream the offsets, commits and state of its checkpoint, and whether tables and
    checkpoint belong together. Starts no Spark. Streams may run meanwhile; what belongs to a
    running stream is not repaired. Without names all tables, and every stream.

    --repair rewrites damaged checksum files, deletes table checkpoints that can be built again,
    left-over drafts, and entries at the end of a log of which nothing can be read, where no
    checkpoint says that their batch is finished: the stream makes it again. Nothing else.

    The exit code is 1 if a fault is left.

    JSON:
        tables, streams, files, bytes, seconds, faults, findings (of, path, problem, remedy,
        repair, repaired, note, why)

    Examples:
        rivermark fsck
        rivermark fsck taxi/ride_events --repair
        rivermark fsck --quick --json
    """
    # Here, because `rivermark --help` needs nothing of the runtime.
    from rivermark.monitor.fsck import fsck as walk

    settings, declared = settings_for(home), topology()
    began = time.monotonic()
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.completed} files"),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=err(),
        transient=True,
    ) as bar:
        task = bar.add_task("", total=None)
        result = walk(
            settings,
            declared,
            with_tables_of(settings.lake(), declared, tables, group),
            quick=quick,
            repair=repair and not dry_run,
            on_step=lambda step: bar.update(task, description=printable(step)),
            on_file=lambda _: bar.advance(task),
        )
    seconds = time.monotonic() - began
    if as_json:
        print_json(as_plain(result, seconds))
    else:
        print_result(result, seconds)
    if result.faults:
        raise typer.Exit(ExitCode.FAULT)


def as_plain(result: FsckResult, seconds: float) -> dict[str, Any]:
    """The result in values that JSON knows."""
    return {
        "tables": result.tables,
        "streams": result.streams,
        "files": result.files,
        "bytes": result.bytes,
        "seconds": round(seconds, 3),
        "faults": len(result.faults),
        "findings": [
            {
                "of": f.of,
                "path": f.fault.path,
                "problem": f.fault.problem,
                "remedy": f.fault.remedy,
                "repair": f.fault.repair,
                "repaired": f.repaired,
                "note": f.fault.note,
                "why": f.why,
            }
            for f in result.findings
        ],
    }


def print_result(result: FsckResult, seconds: float) -> None:
    """A paragraph for each finding, and the sums."""
    for finding in result.findings:
        out().print(plain(_sentence(finding)), soft_wrap=True)
    repaired = sum(f.repaired for f in result.findings)
    out().print(
        plain(
            f"{number(len(result.tables))} tables, {number(len(result.streams))} streams, "
            f"{number(result.files)} files, {result.bytes / 1e6:,.1f} MB in {seconds:.1f} s: "
            f"{number(len(result.faults))} faults"
            + (f", {number(repaired)} repaired" if repaired else "")
        )
    )


def _sentence(finding: Finding) -> str:
    fault = finding.fault
    kind = "repaired" if finding.repaired else "note" if fault.note else "fault"
    rest = "" if finding.repaired else " ".join(filter(None, (fault.remedy, finding.why)))
    text = fault.problem if fault.path in fault.problem else f"{fault.path} {fault.problem}"
    return f"{kind}: {finding.of}: {text}. {rest}".rstrip(". ") + "."
