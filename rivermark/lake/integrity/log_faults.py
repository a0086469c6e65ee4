"""Every fault of a table's log with its remedy: what an open refuses, and what only helps."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import fs

from rivermark.lake.filesystem import abandoned_drafts
from rivermark.lake.integrity.data_file_check import read_all
from rivermark.lake.integrity.fault import RESTORE, Fault
from rivermark.lake.integrity.log_check import (
    UNREADABLE,
    Damage,
    OnFile,
    damage_to_begin,
    damage_to_checkpoint,
    damage_to_end,
    damage_to_entries,
    damage_to_hint,
    passed,
)
from rivermark.lake.integrity.log_entry import first_line, sums_path
from rivermark.lake.integrity.log_files import PART_MISSING, read_sums
from rivermark.lake.integrity.log_listing import LogListing, listing_of

CLOSED: Final = f"Nothing is read of the table meanwhile. {RESTORE}."
HELP: Final = "It is only a help to readers; --repair"


def faults_of_log(table_path: str, on_file: OnFile = passed) -> Iterator[Fault]:
    """Faults in the log of a table on this machine's disk."""
    listing = listing_of(table_path)
    if not listing.entries:
        yield Fault(listing.folder, "holds no entry", f"{RESTORE}.")
    else:
        yield from _faults_of_entries(listing, on_file)
    for version in sorted(listing.sums):
        on_file(0)
        sums = sums_path(listing.folder, version)
        if Path(sums).exists() and read_sums(listing.folder, version, drop=False) is None:
            newest = version == listing.newest
            remedy = f"{HELP} writes it again from the log."
            yield Fault(sums, UNREADABLE, remedy, "rewrite checksum" if newest else "drop checksum")
    for version in sorted(listing.checkpoints):
        for name in listing.checkpoints[version]:
            yield from _faults_of_checkpoint(listing, version, name, on_file)
    for version, parts in sorted(listing.torn.items()):
        yield _fault_of_parts(listing, version, f"{listing.folder}/{parts[0]}")
    for hint in damage_to_hint(listing):
        yield Fault(hint.path, hint.problem, f"{HELP} takes it away.", "drop hint")
    for draft in abandoned_drafts(fs.LocalFileSystem(), listing.folder, datetime.now(UTC)):
        yield Fault(
            draft,
            "is a draft that a killed writer left",
            "No reader opens it; --repair and maintenance (rivermark upkeep) delete it.",
            "drop draft",
            note=True,
        )


def _faults_of_entries(listing: LogListing, on_file: OnFile) -> Iterator[Fault]:
    oldest, newest = min(listing.entries), listing.newest
    for damage in damage_to_begin(listing, newest):
        yield Fault(damage.path, damage.problem, f"{RESTORE}.")
    for damage in damage_to_end(listing):
        yield Fault(damage.path, damage.problem, CLOSED, "drop entry")
    whole = damage_to_entries(listing, oldest, newest, local=True, drop=False, on_file=on_file)
    # Parts of a table checkpoint that are missing are told for themselves.
    damages = {_version(each): each for each in whole if each.problem != PART_MISSING}
    needed = listing.start_for(newest)
    last = newest
    while last in damages and last > (-1 if needed is None else needed):
        if not _tells_nothing(damages[last]):
            break
        last -= 1
    for version, damage in damages.items():
        remedy = CLOSED
        if needed is not None and version <= needed:
            remedy = (
                f"The table checkpoint of version {needed} stands for it: rows are read as they "
                f"are, and only streams that are behind it and the history miss it. {RESTORE}."
            )
        yield Fault(damage.path, damage.problem, remedy, "drop entry" if version > last else None)


def _version(damage: Damage) -> int:
    return int(Path(damage.path).name[:20])


def _tells_nothing(damage: Damage) -> bool:
    """Returns True if nothing at all can be known of what an entry held."""
    return damage.problem.startswith(("is empty", "holds nothing", "cannot be read"))


def _faults_of_checkpoint(
    listing: LogListing, version: int, name: str, on_file: OnFile
) -> Iterator[Fault]:
    path = Path(listing.folder, name)
    try:
        damage = next(damage_to_checkpoint(listing, name, drop=False), None)
        if damage is None:
            if path.suffix == ".parquet":
                read_all(path)
            on_file(path.stat().st_size)
            return
        part = damage.path != damage.of
        problem = f"needs {damage.path}, which {damage.problem}" if part else damage.problem
    except FileNotFoundError:
        return
    except (OSError, pa.ArrowException) as error:
        problem = f"cannot be read ({first_line(error)})"
    if _can_be_rebuilt(listing, version):
        remedy = "The entries from before it are all there; --repair deletes it: it can be rebuilt."
        yield Fault(str(path), problem, remedy, "drop checkpoint")
    else:
        remedy = f"The entries that it stands for are cleaned away. {RESTORE}."
        yield Fault(str(path), problem, remedy)


def _fault_of_parts(listing: LogListing, version: int, lost: str) -> Fault:
    if _can_be_rebuilt(listing, version):
        remedy = "Readers pass over the others; the entries from before are all there."
        return Fault(lost, PART_MISSING, remedy, note=True)
    return Fault(lost, PART_MISSING, f"The entries are cleaned away. {RESTORE}.")


def _can_be_rebuilt(listing: LogListing, version: int) -> bool:
    """True if the entries that a table checkpoint stands for are there, from the one before on."""
    before = max((v for v in listing.checkpoints if v < version), default=None)
    first = 0 if before is None else before + 1
    return all(v in listing.entries for v in range(first, version + 1))
