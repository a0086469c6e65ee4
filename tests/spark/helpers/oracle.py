"""The door once more in plain Python: reads the landed files and says where each row goes."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from pathlib import Path

import pyarrow.parquet as pq

LATENESS = timedelta(minutes=1)
MAX_AHEAD = timedelta(hours=1)
SPELLINGS = {"sensor": ("sensor", "id"), "at": ("at", "timestamp"), "temperature": ("temperature",)}

Cells = dict[str, str | None]


@dataclass
class Expected:
    """Where every row belongs, as tuples in order."""

    admitted: list[tuple[object, ...]] = field(default_factory=list)
    late: list[tuple[object, ...]] = field(default_factory=list)
    quarantine: list[tuple[object, ...]] = field(default_factory=list)
    records: int = 0


def through_the_door(folder: Path) -> Expected:
    """Judge all files below the folder in the order of their modification times."""
    expected = Expected()
    newest: datetime | None = None
    for path in sorted(folder.rglob("*.*"), key=lambda p: (p.stat().st_mtime_ns, str(p))):
        name = str(path.relative_to(folder))
        watermark = newest - LATENESS if newest else None
        try:
            records = list(records_of(path))
        except UnreadableFileError as reason:
            expected.quarantine.append((name, None, (str(reason),)))
            continue
        expected.records += len(records)
        for number, cells in records:
            reasons, row = judge(cells)
            if reasons:
                expected.quarantine.append((name, number, tuple(reasons)))
                continue
            at = row[1]
            assert isinstance(at, datetime)
            if watermark and at <= watermark:
                by = int(watermark.timestamp() * 1000) - int(at.timestamp() * 1000)
                expected.late.append((name, number, watermark, by))
                continue
            expected.admitted.append((name, number, *row))
            newest_here = max(at, newest) if newest else at
            # Rows of one file never make each other late: the watermark is of earlier files.
            newest = newest_here
    for rows in (expected.admitted, expected.late, expected.quarantine):
        rows.sort(key=repr)
    return expected


class UnreadableFileError(Exception):
    """A file that is set aside as a whole."""


def records_of(path: Path) -> Iterator[tuple[int, Cells | None]]:
    """Line number and cells of each record; None for one that is malformed."""
    content = path.read_bytes()
    if not content:
        raise UnreadableFileError("file_empty")
    if path.name.endswith(".parquet"):
        if not content.endswith(b"PAR1"):
            raise UnreadableFileError("file_corrupt")
        for number, row in enumerate(pq.read_table(path).to_pylist(), start=1):
            yield number, {k: None if v is None else str(v) for k, v in row.items()}
        return
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if path.suffix == ".csv":
        header = next(csv.reader([lines[0]]))
        for number, line in enumerate(lines[1:], start=2):
            if line.strip():
                values = next(csv.reader([line]))
                fits = len(values) == len(header)
                cells: Cells = {h: v or None for h, v in zip(header, values, strict=False)}
                yield number, cells if fits else None
        return
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                found = json.loads(line)
            except ValueError:
                yield number, None
                continue
            yield number, {k: None if v is None else str(v) for k, v in found.items()}


def judge(cells: Cells | None) -> tuple[list[str], tuple[object, ...]]:
    """The reasons against a record, and its values where there is none."""
    if cells is None:
        return ["malformed"], ()
    lower = {k.lower(): v for k, v in cells.items()}
    texts = {
        name: next((lower[s] for s in spelled if lower.get(s)), None)
        for name, spelled in SPELLINGS.items()
    }
    at, temperature = moment(texts["at"]), number(texts["temperature"])
    reasons = []
    for name, value in (("sensor", texts["sensor"]), ("at", at), ("temperature", temperature)):
        if texts[name] is None:
            reasons.append(f"missing_{name}")
        elif value is None:
            reasons.append(f"unreadable_{name}")
    if at and at > datetime.now(UTC) + MAX_AHEAD:
        reasons.append("event_time_ahead")
    if temperature is not None and temperature > 1000:
        reasons.append("too_hot")
    flags = ["freezing"] if temperature is not None and temperature < 0 else []
    note = lower.get("note") or None
    return reasons, (texts["sensor"], at, temperature, note, tuple(flags))


def moment(text: str | None) -> datetime | None:
    """An ISO instant, or None."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None
    except ValueError:
        return None


def number(text: str | None) -> Decimal | None:
    """A decimal with three places, or None."""
    try:
        return Decimal(text).quantize(Decimal("0.001"), ROUND_HALF_UP) if text else None
    except InvalidOperation:
        return None
