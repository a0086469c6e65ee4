"""Integrity of a Spark checkpoint's files, before a query builds on them. No JVM.

Spark itself notices most of it, at a moment and in words that name neither file nor way out.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rivermark.lake.filesystem import filesystem, is_local
from rivermark.lake.integrity.fault import Fault
from rivermark.lake.integrity.sidecar import agrees
from rivermark.model.errors import CheckpointIncompatible

LOGS: Final = ("offsets", "commits")


def check_files(checkpoint: str, stream: str) -> None:
    """Refuse a checkpoint of which a file that the next start reads is damaged.

    Raises CheckpointIncompatible with the file and the ways out. What is not on this machine's disk
    is left to Spark.
    """
    if not is_local(checkpoint):
        return
    fault = next(faults_of_start(Path(filesystem(checkpoint)[1]), stream), None)
    if fault is not None:
        raise CheckpointIncompatible(
            f"stream '{stream}': {fault.path} {fault.problem}. {fault.remedy}"
        )


def faults_of_start(folder: Path, stream: str) -> Iterator[Fault]:
    """Faults in what a start reads: the query's name, and the newest entries of both logs."""
    metadata = folder / "metadata"
    if metadata.exists():
        problem = metadata_problem(metadata)
        if problem:
            yield Fault(str(metadata), problem, put_back(stream))
    batches = {name: entries(folder / name) for name in LOGS}
    planned, done = (max(batches[name], default=-1) for name in LOGS)
    if done > planned:
        lost = folder / "offsets" / str(done)
        yield Fault(str(lost), f"is missing, though batch {done} is finished", put_back(stream))
    elif done >= 0 and planned > done + 1:
        lost = folder / "commits" / str(planned - 1)
        yield Fault(str(lost), f"is missing, though batch {planned} is planned", put_back(stream))
    for name in LOGS:
        for batch in sorted(batches[name])[-2:]:
            path = folder / name / str(batch)
            problem = entry_problem(path)
            if problem and name == "offsets" and batch == planned > done:
                remedy = (
                    "No batch was made of it yet, if no table holds it: rivermark fsck --repair "
                    f"looks, and takes the entry away. Otherwise: {put_back(stream)}"
                )
                yield Fault(str(path), problem, remedy, "drop offsets")
            elif problem:
                yield Fault(str(path), problem, put_back(stream))


def faults_of_rest(folder: Path, stream: str) -> Iterator[Fault]:
    """Faults in all other files: older entries of the logs, and the state."""
    for name in LOGS:
        for batch in sorted(entries(folder / name))[:-2]:
            path = folder / name / str(batch)
            problem = entry_problem(path)
            if problem:
                yield Fault(str(path), problem, f"No start reads it. {put_back(stream)}")
    state = folder / "state"
    for path in sorted(state.rglob("*")):
        if not path.is_file():
            continue
        if path.name.startswith(".") and path.suffix == ".crc":
            target = path.with_name(path.name[1:-4])
            if not target.exists():
                yield Fault(str(target), "is missing; its checksum file is there", rebuild(stream))
        elif path.stat().st_size == 0 and path.suffix in (".delta", ".zip", ".snapshot"):
            yield Fault(str(path), "is empty", rebuild(stream))
        elif agrees(path) is False:
            yield Fault(str(path), "does not agree with its checksum file", rebuild(stream))


def metadata_problem(path: Path) -> str | None:
    """The fault of the file that names the query."""
    content = path.read_bytes()
    if agrees(path, content) is False:
        return "does not agree with its checksum file"
    try:
        uuid.UUID(json.loads(content)["id"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return "holds no name of a query" if content else "is empty"
    return None


def entry_problem(path: Path) -> str | None:
    """The fault of an entry of the offset or the commit log."""
    content = path.read_bytes()
    if not content.strip():
        return "is empty"
    if agrees(path, content) is False:
        return "does not agree with its checksum file"
    try:
        version, *lines = content.decode().split("\n")
        for line in lines:
            if line not in ("", "-"):  # A source without an offset yet.
                json.loads(line)
    except ValueError as error:
        return f"cannot be read ({error})"
    if not (version.startswith("v") and version[1:].isdigit()) or len(lines) < 1:
        return "is cut, or no entry of Spark's"
    if path.parent.name == "offsets" and len(lines) < 2:
        return "is cut: it names no offset"
    return None


def entries(folder: Path) -> list[int]:
    """The batches of which a log has an entry."""
    if not folder.is_dir():
        return []
    return [int(path.name) for path in folder.iterdir() if path.name.isdigit()]


def put_back(stream: str) -> str:
    """The ways out where the checkpoint cannot be used."""
    return (
        f"Put the file back from a copy, or start over on purpose: rivermark reset {stream} "
        "(new checkpoint, tables rebuilt from their inputs)."
    )


def rebuild(stream: str) -> str:
    """The ways out where state is damaged: the stream may not need the file any more."""
    return f"If a start of the stream fails by it: {put_back(stream)}"
