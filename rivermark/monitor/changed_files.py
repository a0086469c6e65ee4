"""Files of a landing folder that are not as they were when they were read."""

from __future__ import annotations

from typing import Final

import pyarrow.compute as pc

from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.delta import read_rows
from rivermark.lake.snapshot import open_table
from rivermark.model.check import CheckResult
from rivermark.model.source_abilities import LandingSource, SplitAsRead
from rivermark.model.stream import Ingest
from rivermark.settings import Settings

UNCHANGED: Final = "files_are_as_they_were_read"
EXAMPLES: Final = 10
COLUMNS: Final = ("file", "size", "modified_at", "at", "digest")


def changed_files(settings: Settings, ingest: Ingest) -> dict[str, str]:
    """The names of files that were read and changed since, and how that shows, in words.

    Those that are gone are left out.
    """
    lake, source = settings.lake(), ingest.source
    if not isinstance(source, LandingSource) or not lake.exists(INGEST_FILES):
        return {}
    dataset = open_table(lake, INGEST_FILES)
    columns = [name for name in COLUMNS if name in dataset.schema.names]
    known = pc.field("size").is_valid() & pc.field("modified_at").is_valid()
    wanted = (pc.field("stream") == ingest.name) & known
    rows = read_rows(dataset, columns=columns, filter=wanted)
    read = (
        SplitAsRead(row["file"], row["size"], row["modified_at"], row["at"], row.get("digest"))
        for row in rows.to_pylist()
    )
    return source.changed(settings.landing_root, read)


def files_unchanged(settings: Settings, ingest: Ingest) -> CheckResult:
    """Returns True if every file that was read has the content that was read."""
    changed = [*changed_files(settings, ingest).items()]
    again = f"; to read one again: rivermark retake {ingest.name} FILE" if changed else ""
    return CheckResult(
        name=UNCHANGED,
        severity="warning",
        passed=not changed,
        observed=f"{len(changed):,} files changed after they were read{again}",
        bound="none may",
        numbers={"files_changed": len(changed)},
        examples=tuple({"file": name, "change": what} for name, what in changed[:EXAMPLES]),
    )
