"""What admission must make of mutated files, by Python's own json, csv, gzip, pyarrow and fastavro.

Written from the pages of docs/ (files, values), not from the code: each row of each file of a
folder is admitted with its values, late, or quarantined with its reasons.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Decimal, localcontext
from pathlib import Path
from typing import Any, Final, cast
from zoneinfo import ZoneInfo

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SPELLINGS: Final = {
    "sensor": ("sensor", "id"),
    "at": ("at", "timestamp"),
    "temperature": ("temperature",),
    "count": ("count",),
    "ratio": ("ratio",),
    "note": ("note",),
}
REQUIRED: Final = ("sensor", "at", "temperature")
KNOWN: Final = {name for names in SPELLINGS.values() for name in names}
LATENESS: Final = timedelta(minutes=1)
MAX_ROW_BYTES: Final = 2_000
LONGEST_NAME: Final = 1_000
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
ENDINGS: Final = {
    ".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv", ".txt": "csv",
    ".log": "text", ".parquet": "parquet", ".avro": "avro",
}  # fmt: skip

AVRO_UNITS: Final = {"millis": ("ms", 10**3), "micros": ("us", 10**6), "nanos": ("ns", 10**9)}

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_CELL: Final = re.compile(r'("(?:[^"]|"")*")[ \t]+(?=,|$)|[^",][^,]*|"(?:[^"]|"")*"')
_TIME: Final = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?( ?[^ ].*)?", re.ASCII
)
_OFFSET: Final = re.compile(r"(?:UTC|UT|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", re.ASCII)
_FIXED: Final = {"Z": 0, "z": 0, "UTC": 0, "UT": 0, "GMT": 0, "EST": -5, "MST": -7, "HST": -10}


@dataclass(frozen=True)
class Fate:
    """Where a row belongs: `admitted` or `late` with its values, or `quarantined` with reasons."""

    where: str
    what: tuple[Any, ...]


Place = tuple[str, int | None]
Texts = Mapping[str, str | None]


class WholeFileError(Exception):
    """The reason for which a file is quarantined as a whole."""


class MalformedError(Exception):
    """The reason for which a line is no record."""


def fates_of(folder: Path) -> dict[Place, Fate]:
    """The fate of each row of the files below a folder, in the order in which they landed."""
    fates: dict[Place, Fate] = {}
    newest: datetime | None = None
    paths = [Path(p, name) for p, _, names in os.walk(folder) for name in names]
    # A name that is not UTF-8 has its bytes as escapes, also where files are put in order.
    for path in sorted(paths, key=lambda p: (p.stat().st_mtime_ns // 1000, shown(str(p)))):
        name = shown(str(path.relative_to(folder)))
        if any(part.startswith((".", "_")) for part in name.split("/")):
            continue
        watermark = newest - LATENESS if newest else None
        try:
            rows = [*rows_of(path)]
        except WholeFileError as reason:
            fates[name, None] = Fate("quarantined", (str(reason),))
            continue
        for number, reasons, values in rows:
            at: Any = values[1] if values else None
            if reasons:
                fates[name, number] = Fate("quarantined", tuple(reasons))
            elif watermark and at <= watermark:
                fates[name, number] = Fate("late", values)
            else:
                fates[name, number] = Fate("admitted", values)
                newest = max(at, newest) if newest else at
    return fates


def shown(name: str) -> str:
    """A name as text, with an escape for each byte that is no UTF-8."""
    return os.fsencode(name).decode(errors="backslashreplace")


def rows_of(path: Path) -> Iterator[tuple[int, list[str], tuple[Any, ...]]]:
    """Place, reasons and values of each row of a file."""
    plain = path.name.lower().removesuffix(".gz")
    kind = next((kind for end, kind in ENDINGS.items() if plain.endswith(end)), None)
    content = path.read_bytes()
    if shown(str(path)) != str(path):
        raise WholeFileError("file_name_not_utf8")
    if kind is None:
        raise WholeFileError("file_unknown_format")
    if kind not in BINARY and ":" in path.name:
        raise WholeFileError("file_name_with_colon")
    if not content:
        raise WholeFileError("file_empty")
    if kind in BINARY:
        yield from binary_rows(BINARY[kind](content))
        return
    if path.name.lower().endswith(".gz"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            raise WholeFileError("file_corrupt") from None
    lines = content.removeprefix(b"\xef\xbb\xbf").splitlines()
    payloads = [line.decode(errors="replace") for line in lines]
    bare = [payload.removeprefix("\ufeff") for payload in payloads]
    header = next((line for line in bare if line.strip()), "") if kind == "csv" else None
    names = [cell.strip() for cell in next(csv.reader([header]), [])] if header else []
    if any(len(name) > LONGEST_NAME for name in names):
        raise WholeFileError("file_unusable_header")
    if header is not None and not any(name.lower() in KNOWN for name in names):
        header, names = None, []
    columns = {name.lower() for name in names}
    if not all(columns.intersection(SPELLINGS[field]) for field in REQUIRED):
        # It may be a record, and no row under it can be admitted.
        header = None
    for number, payload in enumerate(payloads, start=1):
        line = payload.removeprefix("\ufeff")
        if not line.strip(" ") or (header is not None and line == header):
            continue
        reasons: list[str] = []
        texts: Texts | None = None
        try:
            texts = texts_of(payload, kind, names)
        except MalformedError as malformed:
            reasons.append(str(malformed))
        if "\ufffd" in payload and "undecodable_text" not in reasons:
            reasons.append("undecodable_text")
        values: tuple[Any, ...] = ()
        if texts is not None:
            wrong, values = judge(texts)
            reasons += wrong
        yield number, reasons, values


def texts_of(payload: str, kind: str, names: list[str]) -> Texts:
    """The text of each field in a line."""
    if kind == "csv" and not names:
        raise MalformedError("no_known_column")
    if len(payload.encode()) > MAX_ROW_BYTES:
        raise MalformedError("row_too_large")
    payload = payload.removeprefix("\ufeff")
    if kind == "text":
        return dict.fromkeys(SPELLINGS)
    return csv_texts(payload, names) if kind == "csv" else json_texts(payload)


def csv_texts(line: str, names: list[str]) -> Texts:
    """By Python's csv, which takes no space behind a closing quote."""
    try:
        cells = next(csv.reader([line], strict=True))
    except csv.Error:
        try:
            bare = _CELL.sub(lambda cell: cell[1] or cell[0], line)
            cells = next(csv.reader([bare], strict=True))
        except csv.Error:
            raise MalformedError("wrong_number_of_values") from None
    written = [match[0] for match in _CELL.finditer(line)]
    if line.count('"') % 2 and any(w[0] != '"' and w.rstrip(" \t")[-1:] == '"' for w in written):
        raise MalformedError("wrong_number_of_values")
    if not len(names) <= len(cells) <= 2 * len(names) or any(cells[len(names) :]):
        raise MalformedError("wrong_number_of_values")
    texts: dict[str, str | None] = {}
    for field, spellings in SPELLINGS.items():
        for spelling in spellings:
            exact = [n for n, name in enumerate(names) if name == spelling]
            other = [n for n, name in enumerate(names) if name.lower() == spelling]
            place = next(iter(exact or other), None)
            if place is not None and not texts.get(field):
                texts[field] = cells[place]
    return texts


class AsWritten(str):
    """A list or an object: equal to every text that says the same."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and loads(self) == loads(other)

    __hash__ = str.__hash__


class Number(str):
    """A number as it is written."""

    __slots__ = ()


def json_texts(line: str) -> Texts:
    """By Python's json, with numbers as they are written."""
    try:
        found = loads(line)
    except (ValueError, RecursionError):
        raise MalformedError("unparsable_json") from None
    if not isinstance(found, dict) or depth(found) > 500:
        raise MalformedError("unparsable_json")
    texts: dict[str, str | None] = {}
    for field, spellings in SPELLINGS.items():
        for spelling in spellings:
            others = [value for key, value in found.items() if key.lower() == spelling]
            value = found.get(spelling) if spelling in found else next(iter(others[::-1]), None)
            if texts.get(field) is None and value is not None:
                texts[field] = text_of(value)
    if any(text and re.search("[\ud800-\udfff]", text) for text in texts.values()):
        raise MalformedError("undecodable_text")
    return texts


def loads(text: str) -> Any:
    """By Python's json, with numbers as they are written."""
    return json.loads(text, parse_float=Number, parse_int=Number, parse_constant=Number)


def depth(value: Any) -> int:
    """How deep a value is nested."""
    if isinstance(value, dict):
        value = [*value.values()]
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def text_of(value: Any) -> str:
    """A JSON value as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else AsWritten(written(value))


def written(value: Any) -> str:
    """A nested value as JSON, with its numbers as they were."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, list):
        return f"[{','.join(map(written, value))}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{written(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)


def judge(texts: Texts) -> tuple[list[str], tuple[Any, ...]]:
    """What is wrong with the texts of a row, and its values."""
    readers = {"at": moment, "temperature": amount, "count": whole, "ratio": double}
    reasons, values = [], []
    for field in SPELLINGS:
        text = texts.get(field)
        text = None if text is None or not text.strip(" ") else text
        value: Any = text
        if text is not None and field in readers:
            value = readers[field](text)
            if value is None:
                reasons.append(f"unreadable_{field}")
        if text is None and field in REQUIRED:
            reasons.append(f"missing_{field}")
        values.append(value)
    at = values[1]
    if isinstance(at, str):
        reasons.append(at)
    elif at is not None and at < EPOCH:
        reasons.append("event_time_impossible" if at.year < 10 else "event_time_too_early")
    elif at is not None and at > datetime.now(UTC) + timedelta(hours=1):
        reasons.append("event_time_ahead")
    hot = values[2] is not None and values[2] > 1000
    if hot:
        reasons.append("too_hot")
    flags = ("freezing",) if values[2] is not None and values[2] < 0 else ()
    return reasons, (*values, flags)


def plain_number(text: str) -> str | None:
    """The number that a text is."""
    text = text.strip(" ")
    return text if len(text) <= 400 and _NUMBER.fullmatch(text) else None


def exact_number(text: str) -> str | None:
    """The same for a decimal, to which the engine makes no zero of hundreds of digits."""
    number = plain_number(text)
    value = Decimal(number or "1")
    return None if not value and value.adjusted() > 30 else number


def amount(text: str) -> Decimal | None:
    """A decimal(9,3)."""
    number = exact_number(text)
    if number is None:
        return None
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = 2_000, 10_000, -10_000
        value = Decimal(number).quantize(Decimal("0.001"), ROUND_HALF_UP)
    return value if abs(value) < 10**6 else None


def whole(text: str) -> int | None:
    """A long."""
    number = exact_number(text)
    if number is None:
        return None
    mantissa, _, exponent = number.lower().lstrip("+-").partition("e")
    if exponent and (len(mantissa) > 20 or len(mantissa.partition(".")[0]) > 19):
        return None
    value = Decimal(number)
    if value != value.to_integral_value() or abs(value) > 2**63:
        return None
    if not exponent and mantissa.partition(".")[2].strip("0"):
        return None
    return int(value) if -(2**63) <= value < 2**63 else None


def double(text: str) -> float | None:
    """A double."""
    number = plain_number(text)
    value = float(number) if number else float("inf")
    return value if abs(value) != float("inf") else None


def moment(text: str) -> datetime | str | None:
    """An instant; the reason for one that Python cannot hold."""
    parts = _TIME.fullmatch(text.strip(" "))
    if parts is None:
        return None
    year, month, day, hour, minute = (int(parts[n]) for n in range(1, 6))
    micros = int((parts[7] or "0").ljust(6, "0")[:6])
    try:
        seconds = int(parts[6] or 0)
        wall = datetime(year or 4, month, day, hour, minute, seconds, micros, UTC)
        zone = zone_of(parts[8])
    except (ValueError, KeyError, OSError):
        return None
    if not year:
        return "event_time_impossible"
    try:
        return wall.replace(tzinfo=zone).astimezone(UTC)
    except OverflowError:
        return "event_time_ahead" if year > 9000 else "event_time_impossible"


def zone_of(text: str | None) -> Any:
    """The zone of a time; ValueError where it is none."""
    if text is None:
        return UTC
    name = text.removeprefix(" ")
    if name in _FIXED:
        return timezone(timedelta(hours=_FIXED[name]))
    offset = _OFFSET.fullmatch(name)
    if offset:
        hours, minutes, rest = (int(offset[n] or 0) for n in (2, 3, 4))
        if minutes > 59 or rest > 59 or hours * 3600 + minutes * 60 + rest > 18 * 3600:
            raise ValueError(text)
        if offset[4] and len(offset[2]) < 2:
            raise ValueError(text)
        span = timedelta(hours=hours, minutes=minutes, seconds=rest)
        return timezone(-span if offset[1] == "-" else span)
    if not re.fullmatch(r"[A-Z][A-Za-z]+/[A-Za-z0-9_+/-]+", name):
        raise ValueError(text)
    return ZoneInfo(name)


def parquet_records(content: bytes) -> Iterator[dict[str, str | None]]:
    """By pyarrow."""
    rows = pq.read_table(pa.BufferReader(content))
    for number in range(rows.num_rows):
        values = {name: rows[name][number] for name in rows.column_names}
        yield {n: parquet_text(value) if value.is_valid else None for n, value in values.items()}


def avro_records(content: bytes) -> Iterator[dict[str, str | None]]:
    """By fastavro, without what it makes of logical types."""
    records: Any = fastavro.reader(io.BytesIO(content))
    kinds = {field["name"]: field["type"][1] for field in records.writer_schema["fields"]}
    logical = {
        name: kind.pop("logicalType") for name, kind in kinds.items() if isinstance(kind, dict)
    }
    for record in records:
        yield {
            name: None if value is None else avro_text(value, kinds[name], logical.get(name, ""))
            for name, value in record.items()
        }


def avro_text(value: Any, kind: Any, logical: str) -> str:
    """A value of an Avro field as text."""
    if logical == "decimal":
        return str(Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-kind["scale"]))
    if logical:
        unit, per_second = AVRO_UNITS[logical.rpartition("-")[2]]
        return instant_text(value, unit, per_second)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    # A float has up to seven digits in these files.
    return repr(float(f"{value:.7g}")) if isinstance(value, float) else str(value)


def binary_rows(
    records: Iterator[dict[str, str | None]],
) -> Iterator[tuple[int, list[str], tuple[Any, ...]]]:
    """Place, reasons and values of each record of a Parquet or Avro file."""
    try:
        known = [{name.lower(): text for name, text in record.items()} for record in records]
    except Exception:
        raise WholeFileError("file_corrupt") from None
    for number, record in enumerate(known, start=1):
        texts: dict[str, str | None] = {}
        for field, spellings in SPELLINGS.items():
            for spelling in spellings:
                if texts.get(field) is None:
                    texts[field] = record.get(spelling)
        if sum(len(text.encode()) for text in texts.values() if text) > MAX_ROW_BYTES:
            yield number, ["row_too_large"], ()
            continue
        reasons, values = judge(texts)
        if any("\ufffd" in text for text in texts.values() if text):
            # It stands in the text as a replacement character, which is a text all the same.
            reasons, values = ["undecodable_text", *reasons], ()
        yield number, reasons, values


def instant_text(ticks: int, unit: str, per_second: int) -> str:
    """A time in ISO-8601, floored to the microsecond; one that Python lacks as NumPy has it."""
    try:
        return (EPOCH + timedelta(microseconds=ticks * 10**6 // per_second)).isoformat()
    except OverflowError:
        whole, _, part = str(np.datetime64(ticks, cast(Any, unit))).partition(".")
        micros = f".{part.ljust(6, '0')}" if part.strip("0") else ""
        return f"{'+' if ticks > 0 else ''}{whole}{micros}"


def parquet_text(value: Any) -> str:
    """A value of a column as text."""
    kind = value.type
    if pa.types.is_timestamp(kind):
        per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        return instant_text(value.value, kind.unit, per_second)
    if pa.types.is_nested(kind):
        return AsWritten(json.dumps(nested_value(value), separators=(",", ":")))
    if pa.types.is_binary(kind):
        found: str = value.as_py().decode(errors="replace")
        return found
    if pa.types.is_boolean(kind):
        return "true" if value.as_py() else "false"
    if pa.types.is_floating(kind):
        return repr(value.as_py())
    return str(value.as_py())


def nested_value(value: Any) -> Any:
    """A list or struct as Python has its JSON; times of it are in no zone."""
    if not value.is_valid or not (
        pa.types.is_nested(value.type) or pa.types.is_timestamp(value.type)
    ):
        return value.as_py()
    if pa.types.is_struct(value.type):
        return {name: nested_value(each) for name, each in value.items()}
    if pa.types.is_list(value.type):
        return [nested_value(each) for each in value]
    if not pa.types.is_timestamp(value.type):
        return value.as_py()
    text = parquet_text(value)
    return text.removesuffix("+00:00")


BINARY: Final = {"parquet": parquet_records, "avro": avro_records}
