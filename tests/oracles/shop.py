"""A shop whose three days are known: what was sent, what the door must do, what the join gives.

Plain Python and delta-rs: no engine. Orders and payments come one file an hour. A share of them is
held back for two hours, past the lateness of ten minutes; one source may fall silent for hours, and
what it should have sent then is lost.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from pyspark.sql.types import DecimalType, LongType, StringType, StructField, StructType
from pyspark.sql.types import TimestampType as Timestamp

from rivermark import Contract, Daily, Field, Ingest, Output, Stream, Table, Topology
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.schema import create_table
from rivermark.model.stream import AnyStream
from rivermark.runtime.checkpoint.generation import open_generation
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.settings import Settings
from rivermark.sources import FileSource

FIRST = date(2026, 3, 2)
START = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
LATENESS = timedelta(minutes=10)
SECRET = "Ada Lovelace, 12 St James's Square"


def _ingest(name: str, *fields: Field, money: str | None = None) -> Ingest:
    return Ingest(
        name=f"shop/{name}",
        source=FileSource(folder=f"shop/{name}"),
        contract=Contract(
            fields=(
                Field("order_id", LongType(), required=True),
                Field("at", Timestamp(), required=True),
                Field("customer", StringType()),
                *fields,
            ),
            event_time="at",
            keys=("order_id",),
        ),
        lateness=LATENESS,
        description=f"What the shop knows of {name}.",
        group="shop",
        days=Daily(column="at", start=FIRST),
        personal=("customer",),
        money=money,
    )


ORDERS = _ingest("orders")
PAYMENTS = _ingest("payments", Field("amount", DecimalType(12, 2)), money="amount")


def _joined(name: str) -> Table:
    return Table(
        name=f"shop/{name}",
        schema=StructType([StructField("order_id", LongType()), StructField("at", Timestamp())]),
        description=f"Orders and payments: {name}.",
        event_time="at",
        keys=("order_id",),
        days=Daily(column="at", start=FIRST),
    )


PAID = Stream(
    name="shop/paid",
    reads=(ORDERS, PAYMENTS),
    build=lambda orders, payments: orders,
    writes=(
        Output(_joined("paid")),
        Output(_joined("unpaid")),
        Output(_joined("without_order")),
    ),
    description="Each order beside its payment.",
    group="shop",
)
SHOP = Topology([ORDERS, PAYMENTS, PAID])


@dataclass(frozen=True)
class Event:
    """An order or a payment: one a minute, numbered; each payment is of 10.00."""

    order_id: int
    at: datetime


@dataclass
class File:
    """What lands together, one file an hour; `lost` was announced and never came."""

    name: str
    events: list[Event] = field(default_factory=list)
    lost: list[Event] = field(default_factory=list)


@dataclass
class Landed:
    """What the door must make of a source's files."""

    admitted: list[tuple[File, Event]] = field(default_factory=list)
    late: list[tuple[File, Event, datetime]] = field(default_factory=list)
    lost: list[Event] = field(default_factory=list)
    newest: datetime | None = None

    def of(self, day: date) -> tuple[int, int, int]:
        """Rows of a day: admitted, late, lost."""
        return (
            sum(e.at.date() == day for _, e in self.admitted),
            sum(e.at.date() == day for _, e, _ in self.late),
            sum(e.at.date() == day for e in self.lost),
        )


def sent(
    days: int, *, late_every: int = 50, late_from: int = 7, silent: Iterable[datetime] = ()
) -> list[File]:
    """One event a minute for so many days and an hour that closes the last one.

    Every fiftieth event (2 %) is held back for two hours, unless that would be after the end. In
    the hours `silent` nothing is sent, and nothing held back comes either.
    """
    quiet = set(silent)
    files = [File(f"{n:05}.json") for n in range(days * 24 + 1)]
    for minute in range((days * 24 + 1) * 60):
        event = Event(minute, START + timedelta(minutes=minute))
        hour = minute // 60
        held = minute % late_every == late_from and hour + 2 < len(files)
        if START + hour * HOUR in quiet:
            files[hour].lost.append(event)
        else:
            files[hour + 2 if held else hour].events.append(event)
    for n in range(len(files)):
        if START + n * HOUR in quiet:
            # The source is gone: what was held back waits with it.
            files[n + 1].events[:0] = files[n].events
            files[n].events = []
    return files


def decide(files: Sequence[File]) -> Landed:
    """The door: a row at or before the newest of the files before, less the lateness, is late."""
    landed = Landed()
    for file in files:
        watermark = landed.newest - LATENESS if landed.newest else None
        for event in file.events:
            if watermark is not None and event.at <= watermark:
                landed.late.append((file, event, watermark))
            else:
                landed.admitted.append((file, event))
        newest = [e.at for e in file.events]
        landed.newest = max([*newest, *([landed.newest] if landed.newest else [])], default=None)
        landed.lost += file.lost
    return landed


def write(
    settings: Settings,
    ingest: Ingest,
    files: Sequence[File],
    *,
    manifest: bool = True,
    lose: Event | None = None,
) -> Landed:
    """Write the tables of an ingest as its stream would; `lose` leaves one admitted row out."""
    landed = decide(files)
    number = {file.name: n for n, file in enumerate(files)}
    rows = {f.name: 0 for f in files}

    def row(file: File, event: Event) -> dict[str, Any]:
        rows[file.name] += 1
        found = {
            "order_id": event.order_id,
            "at": event.at,
            "customer": SECRET,
            "_file": file.name,
            "_row": rows[file.name],
            "_ingest_batch": number[file.name],
        }
        return found | ({"amount": Decimal("10.00")} if ingest.money else {})

    admitted = [row(f, e) for f, e in landed.admitted]
    late = [
        row(f, e) | {"_watermark": w, "_late_by_ms": (w - e.at) // timedelta(milliseconds=1)}
        for f, e, w in landed.late
    ]
    raw = [
        {**{k: r[k] for k in ("_file", "_row", "_ingest_batch")}, "payload": SECRET}
        for r in (*admitted, *late)
    ]
    append(settings, ingest.raw, raw)
    append(
        settings,
        ingest.admitted,
        [r for r in admitted if lose is None or r["order_id"] != lose.order_id],
    )
    append(settings, ingest.late, late)
    append(settings, ingest.quarantine, [])
    outcomes = [
        {
            "stream": ingest.name,
            "file": f.name,
            "path": f.name,
            "modified_at": START + n * HOUR,
            "ingest_batch": n,
            "rows": rows[f.name],
            "admitted": sum(r["_file"] == f.name for r in admitted),
            "late": sum(r["_file"] == f.name for r in late),
            "quarantined": 0,
        }
        for n, f in enumerate(files)
    ]
    append(settings, INGEST_FILES, outcomes)
    mark(settings, ingest, landed.newest - LATENESS if landed.newest else None, len(raw))
    if manifest:
        announce(settings, ingest, files)
    return landed


def write_join(settings: Settings, orders: Landed, payments: Landed) -> tuple[int, int, int]:
    """The join's tables; gives how many were matched, unpaid, and without an order."""
    by_id = {e.order_id: e for _, e in orders.admitted}
    paid = {e.order_id: e for _, e in payments.admitted}
    parts = (by_id.keys() & paid.keys(), by_id.keys() - paid.keys(), paid.keys() - by_id.keys())
    for table, keys in zip(PAID.tables, parts, strict=True):
        append(
            settings,
            table,
            [{"order_id": k, "at": (by_id.get(k) or paid[k]).at} for k in sorted(keys)],
        )
    mark(settings, PAID, orders.newest, len(by_id) + len(paid))
    return len(parts[0]), len(parts[1]), len(parts[2])


def mark(settings: Settings, stream: AnyStream, watermark: datetime | None, rows: int) -> None:
    """A batch that brought the stream so far: what it leaves, and what its progress tells."""
    if isinstance(stream, Ingest):
        newest = watermark + LATENESS if watermark else None
        clock = {"clock": {"newest": newest.isoformat() if newest else None}, "batch": 1}
        append(settings, stream.raw, [], **clock)
    else:
        checkpoint(settings, stream, watermark)
    batch = {
        "stream": stream.name,
        "generation": 0,
        "run_id": "run-1",
        "batch_id": 1,
        "started_at": START + timedelta(days=4),
        "duration_ms": 1000,
        "rows_in": rows,
        "watermark": watermark,
    }
    append(settings, STREAM_PROGRESS, [batch])


def checkpoint(settings: Settings, stream: Stream, watermark: datetime | None) -> None:
    """What Spark leaves of a stream's batch that has written all up to a moment."""
    lake = settings.lake()
    generation = open_generation(lake, stream, 1).number
    folder = Path(lake.checkpoint(stream.name, generation))
    millis = int(watermark.timestamp() * 1000) if watermark else 0
    for log, name in (("offsets", "batchWatermarkMs"), ("commits", "nextBatchWatermarkMs")):
        (folder / log).mkdir(parents=True, exist_ok=True)
        (folder / log / "1").write_text(f"v1\n{json.dumps({name: millis})}\n")


def announce(settings: Settings, ingest: Ingest, files: Sequence[File]) -> None:
    """The source's own manifest: rows of each file by hour, the lost ones among them."""
    path = settings.home / "manifests" / f"{ingest.name.replace('/', '-')}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"declaration": {}})]
    for file in files:
        hours: dict[str, int] = {}
        for event in (*file.events, *file.lost):
            hour = f"{event.at:%Y-%m-%dT%H:00Z}"
            hours[hour] = hours.get(hour, 0) + 1
        said = {"folder": ingest.source.name, "file": file.name, "rows": len(file.events)}
        lines.append(json.dumps({**said, "hours": hours}))
    path.write_text("\n".join(lines) + "\n")


def append(
    settings: Settings, table: Table, rows: list[dict[str, Any]], **metadata: object
) -> None:
    """One commit of rows to a table, which is made where needed."""
    lake = settings.lake()
    create_table(lake, table)
    schema = DeltaTable(lake.path(table)).to_pyarrow_dataset().schema
    if rows or metadata:
        write_deltalake(
            lake.path(table),
            pa.Table.from_pylist(rows, schema),
            mode="append",
            commit_properties=CommitProperties(
                custom_metadata={"userMetadata": json.dumps(metadata)}
            ),
        )


def without_lateness(ingest: Ingest) -> Ingest:
    """The same source as a dump: complete in itself."""
    return replace(ingest, lateness=None)
