"""Admission repeated into tables beside those of an ingest, over raw rows or a file as it is now.

Nothing that is published is touched. Raw rows are decided again of all batches that brought a row
of the days; the watermark at the first of them is that of the admitted table as it is, or the one
that was recorded of producers, so rules that were different all along change only what comes after.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any, Final
from uuid import uuid4

from rivermark.backfill.context import BackfillContext
from rivermark.backfill.erasure.record import erased_places
from rivermark.backfill.late.hours import bounds
from rivermark.ingest.admission import DRIVER_BYTES, Admission
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.ingest.watermark import Progress
from rivermark.ingest.watermark_recovery import progress_before
from rivermark.lake.delta import dataset_of, delta_table
from rivermark.lake.lake import Lake
from rivermark.lake.quoting import quoted
from rivermark.lake.schema import create_table
from rivermark.lake.sql import query
from rivermark.model.errors import RivermarkError
from rivermark.model.sink import Origin
from rivermark.model.source import PlannedSplit, SourceReader
from rivermark.model.stream import Ingest

PART_BYTES: Final = DRIVER_BYTES
"""Raw rows of about so many bytes as text are decided at a time: as many as the driver takes."""
TASKS_BYTES: Final = 32 * DRIVER_BYTES
"""The same where there are more than eight such parts: Spark's tasks take those."""


@dataclass(frozen=True)
class Replayed:
    """The input of a replay: batches from `first_batch` to `last_batch`, files and rows."""

    first_batch: int
    last_batch: int
    files: int
    rows: int


def beside(ingest: Ingest) -> Ingest:
    """The ingest whose tables lie apart from all that is published; each replay empties them."""
    return replace(ingest, name=f"replayed/{ingest.name}", days=None)


def admission_beside(
    context: BackfillContext, ingest: Ingest, source: SourceReader | None = None
) -> Admission:
    """An admission into tables beside those of the ingest, which it empties."""
    side = beside(ingest)
    for table in (side.raw, side.versions, side.late, side.quarantine):
        create_table(context.lake, table)
        delta_table(context.lake.path(table)).delete()
    # A name of its own each time: batches of the replay before are none of this one's.
    origin = Origin(f"{side.name}:{uuid4().hex}", 0, datetime.now(UTC), context.run_id)
    return Admission(context.spark(), context.lake, side, source, origin)


def replay(context: BackfillContext, ingest: Ingest, first: date, last: date) -> Replayed:
    """Decide about the raw rows of the files in which rows of these days came, into side tables.

    Raises RivermarkError where no row of the days has come, where raw rows are missing, or where it
    is not known how far producers had come before.
    """
    lake = context.lake
    batches = batches_of_days(lake, ingest, *bounds(first, last, ingest.days))
    first_batch, progress = start_of(lake, ingest, batches[0]) if batches else (0, Progress())
    files = files_of_batches(lake, ingest, first_batch, batches[1]) if batches else []
    if not files:
        raise RivermarkError(f"'{ingest.name}' has no row of {first} to {last}: nothing to replay")
    context.expect(sum(file.split.weight for file in files))
    admission, raw = admission_beside(context, ingest), lake.path(ingest.raw)
    rows = 0
    for number, part in enumerate(_parts(files)):
        plan = admission.decided_again([file.split for file in part], raw, progress)
        with closing(plan.batch.rows):
            plan.write(admission.writers, number)
        progress = plan.decision.progress
        rows += sum(plan.counts().values())
        context.on_step(f"{ingest.name}: {rows:,} rows decided again")
    read = {(file.split.name, file.split.batch) for file in files}
    erased = erased_places(lake, ingest.name).get("raw", set())
    expected = sum(file.rows for file in files) - sum(place[:2] in read for place in erased)
    if rows != expected:
        raise RivermarkError(
            f"table '{ingest.raw.name}' holds {rows:,} rows of these files and {expected:,} came: "
            "the missing ones cannot be replayed"
        )
    return Replayed(first_batch, files[-1].split.batch, files=len(files), rows=rows)


def batches_of_days(
    lake: Lake, ingest: Ingest, start: datetime, end: datetime
) -> tuple[int, int] | None:
    """The first and the last batch that brought a row of [start, end); None if none did."""
    batches: list[int] = []
    for table, column in (
        (ingest.versions, ingest.contract.event_time),
        (ingest.late, ingest.contract.event_time),
        (ingest.quarantine, "event_time"),
    ):
        if not lake.exists(table):
            continue
        row = query(
            f"SELECT min(_ingest_batch) AS first, max(_ingest_batch) AS last FROM rows"  # noqa: S608
            f" WHERE {quoted(column)} >= $start AND {quoted(column)} < $end",
            {"rows": dataset_of(delta_table(lake.path(table)))},
            {"start": start, "end": end},
        )[0]
        batches += [batch for batch in row.values() if batch is not None]
    return (min(batches), max(batches)) if batches else None


@dataclass(frozen=True)
class ReadFile:
    """A file that was read, as its outcome says, and its rows."""

    split: PlannedSplit
    rows: int


def files_of_batches(lake: Lake, ingest: Ingest, first: int, last: int) -> list[ReadFile]:
    """The files that were read, in the order in which admission decided about them."""
    rows = query(
        "SELECT file, path, ingest_batch, modified_at, max(rows) AS rows, max(size) AS size"
        " FROM outcomes"
        " WHERE stream = $stream AND status = 'read' AND ingest_batch BETWEEN $first AND $last"
        " GROUP BY file, ingest_batch, modified_at, path ORDER BY ingest_batch, modified_at, path",
        {"outcomes": dataset_of(delta_table(lake.path(INGEST_FILES)))},
        {"stream": ingest.name, "first": first, "last": last},
    )
    return [ReadFile(_split_of(row), row["rows"]) for row in rows]


def _split_of(outcome: dict[str, Any]) -> PlannedSplit:
    at = outcome["modified_at"].astimezone(UTC)
    return PlannedSplit(
        name=outcome["file"],
        path=outcome["path"] or "",
        size=outcome["size"] or 0,
        modified_at=at,
        format=None,
        batch=outcome["ingest_batch"],
        landed_at=at,
    )


def _parts(files: Sequence[ReadFile]) -> Iterator[list[ReadFile]]:
    """The files in parts of about so many bytes, whole batches each."""
    total = sum(file.split.weight for file in files)
    most = PART_BYTES if total <= 8 * PART_BYTES else TASKS_BYTES
    part: list[ReadFile] = []
    size = 0
    for file in files:
        weight, batch = file.split.weight, file.split.batch
        if part and size + weight > most and batch != part[-1].split.batch:
            yield part
            part, size = [], 0
        part.append(file)
        size += weight
    yield part


def start_of(lake: Lake, ingest: Ingest, first: int) -> tuple[int, Progress]:
    """The batch with which a replay of batch `first` begins, and the progress before it.

    That is by the rows admitted before. That of producers is as admission recorded it with each of
    its commits, which may have several batches: the replay begins with the first one of those.

    Raises:
        RivermarkError: The log no longer shows how far producers had come.
    """
    if ingest.watermark is not None:
        splits = {file.split.name for file in files_of_batches(lake, ingest, first, first)}
        recorded, beside_them = progress_before(lake, ingest, splits)
        before = (file.split for file in files_of_batches(lake, ingest, 0, first))
        first = min([first, *(split.batch for split in before if split.name in beside_them)])
        if recorded is not None:
            return first, recorded
    time = quoted(ingest.contract.event_time)
    newest = query(
        f"SELECT max({time}) AS newest FROM rows WHERE _ingest_batch < ?",  # noqa: S608 - declared
        {"rows": dataset_of(delta_table(lake.path(ingest.versions)))},
        [first],
    )[0]["newest"]
    if newest and ingest.watermark is not None:
        raise RivermarkError(
            f"the log of table '{ingest.raw.name}' no longer shows how far the producers of "
            f"'{ingest.name}' had come before batch {first}, so it cannot be replayed"
        )
    return first, Progress(newest.astimezone(UTC) if newest else None)
