"""Files of readings, mutated at random: bytes, values, columns, types and names."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

TEN: Final = datetime(2024, 3, 1, 10, tzinfo=UTC)
NUMBERS: Final = (
    "20.5", "-3.25", "1000.0005", "1e3", "1.5E-2", "+7", ".5", "7.", "007", "1 000", "20.5F",
    "0x1p3", "NaN", "Infinity", "1e400", "12345678.9", "999999.9995", "１２", "1_000", "12 %",
    "9223372036854775807", "9223372036854775808", "2.0", "2.5", "2e3", "1.234567890123E12", "-0",
    "1e-400", "", " ", " 7 ", "\t7", "0.0005", "-0.0005", "1" * 401, "100000000000000000000e-19",
    "0e999", "5e-324",
)  # fmt: skip
TIMES: Final = (
    "2024-03-01T10:00:00Z", "2024-03-01 10:00:00", "2024-03-01T10:00", "2024-03-01T10:00Z",
    "2024-03-01", "2024-03-01T10:00:00.123456789Z", "2024-03-01T10:00:00+05:30",
    "2024-03-01T10:00:00-4:00", "2024-03-01T10:00:00+0530", "2024-03-01T10:00:00-4",
    "2024-03-01 10:00:00 UTC-4", "2024-03-01 10:00:00 UTC", "2024-03-01 10:00:00 EST",
    "2024-03-01 10:00:00 CET", "2024-03-01 10:00:00 America/New_York",
    "2023-03-26T02:30:00Europe/Berlin", "2023-10-29T02:30:00 Europe/Berlin",
    "2024-03-01 10:00:00 Mars/Phobos", "2024-02-30T10:00:00Z", "2024-03-01T24:00:00Z",
    "2024-03-01T10:60:00Z", "2024-03-01T10:00:60Z", "1969-12-31T23:59:59Z", "0001-01-01T00:00:00Z",
    "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "yesterday", "1163000460",
    "2024-03-01T10:00:00+18:01", "2024-3-1T10:00:00Z", "2024-03-01T10:00:00 z",
    "+2024-03-01T10:00:00Z", "2024-03-01T10:00:00+01:00:30", "2199-01-01T00:00:00Z", "", "  ",
    "2024-03-01T10:00:00z ",
)  # fmt: skip
TEXTS: Final = (
    "", " ", "NA", "null", 'a "quoted", note', "}{", "ü", "\u2028", "\x85", "\x0b\x0c", "\ufeff",
    "\U0001f600", "a\tb", "'", "\\", "\\n", "x" * 2_100, "\x00", "end ",
)  # fmt: skip
BYTES: Final = (
    *(bytes([b]) for b in b'{}[]",:\\0129.eE+- \t\x00\x7f\x80\xc3\xff\r\n'),
    *(
        b"\\ud800",
        b"\xef\xbf\xbd",
        b"\xef\xbb\xbf",
        b"\\u0000",
        b"null",
        b'""',
        b"\r\n",
        b"[" * 600,
    ),
)
ENDINGS: Final = (
    ".json", ".json", ".json", ".jsonl", ".json.gz", ".csv", ".csv", ".csv.gz", ".parquet",
    ".parquet", ".avro", ".JSON", ".JSON.GZ", ".log", ".xyz", ".txt",
)  # fmt: skip
STEMS: Final = (
    "{n}", "{n}", "{n}", "{n} b", "{n}%20", "{n}#", "{n}[a]", "{n}{{b}}", "{n}*", "{n}?", "ü{n}",
    "{n}'", '{n}"', "{n}+&=", "{n}~", "sub/{n}", "a b/{n}", "_{n}", ".{n}", "{n}\\", "{n}\t",
    "date=1/{n}", "{n}:", "{n}\udcff",
)  # fmt: skip


def land_mutated(folder: Path, seed: int, count: int) -> None:
    """Write so many files below a folder, in an order of modification times."""
    random = Random(seed)
    newest = TEN
    for number in range(count):
        newest += timedelta(seconds=random.uniform(0, 120))
        ending = random.choice(ENDINGS)
        stem = random.choice(STEMS).format(n=f"{number:04}")
        path = folder / f"{stem}{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [_row(random, newest) for _ in range(random.randint(0, 8))]
        path.write_bytes(_content(random, ending.lower(), rows))
        landed = 1_700_000_000 + number
        os.utime(path, (landed, landed))


def _row(random: Random, newest: datetime) -> dict[str, str | None]:
    back = random.choice((0, 0, 0, 10, 50, 300, 3_000))
    row: dict[str, str | None] = {
        "sensor": f"s{random.randint(1, 4)}",
        "at": (newest - timedelta(seconds=back)).isoformat().replace("+00:00", "Z"),
        "temperature": f"{random.randint(-999, 99999) / 1000:.3f}",
        "count": str(random.randint(-9, 999_999)),
        "ratio": repr(random.uniform(-1e6, 1e6)),
        "note": random.choice((None, "a note")),
    }
    hostile = {
        "at": TIMES, "temperature": NUMBERS, "count": NUMBERS, "ratio": NUMBERS,
        "note": TEXTS, "sensor": TEXTS,
    }  # fmt: skip
    if random.random() < 0.3:
        for name in random.sample([*hostile], random.randint(1, 2)):
            row[name] = random.choice((*hostile[name], None))
    return row


def _content(random: Random, ending: str, rows: list[dict[str, str | None]]) -> bytes:
    if ending == ".parquet":
        content = _parquet(random, rows)
    elif ending == ".avro":
        content = _avro(random, rows)
    else:
        make: Callable[..., list[str]] = _csv if ".csv" in ending or ending == ".txt" else _json
        end = random.choice(("\n", "\n", "\r\n", "\r"))
        text = end.join(make(random, rows)) + random.choice((end, end, ""))
        content = text.encode(errors="surrogatepass")
        for _ in range(random.choice((0, 0, 0, 1, 2, 5))):
            content = mutated(random, content)
    if ending.endswith(".gz"):
        cut = random.choice((len(content), random.randrange(len(content) + 1)))
        content = gzip.compress(content[:cut]) + gzip.compress(content[cut:])
        content += random.choice((b"", b"", b"", bytes(random.randint(1, 600)), b"\0more"))
    if random.random() < (0.15 if ending.endswith((".gz", ".parquet", ".avro")) else 0.03):
        content = content[: random.randrange(len(content) + 1)]
    return content


def mutated(random: Random, content: bytes) -> bytes:
    place = random.randrange(len(content) + 1)
    match random.randrange(4):
        case 0:
            return content[:place] + random.choice(BYTES) + content[place:]
        case 1:
            return content[:place] + content[place + random.randint(1, 3) :]
        case 2:
            return content[:place] + random.choice(BYTES) + content[place + 1 :]
        case _:
            piece = content[place : place + random.randint(1, 40)]
            other = random.randrange(len(content) + 1)
            return content[:other] + piece + content[other:]


def _json(random: Random, rows: list[dict[str, str | None]]) -> list[str]:
    lines = []
    for row in rows:
        items: list[str] = []
        for name, text in row.items():
            if text is None and random.random() < 0.5:
                continue
            items.append(f"{json.dumps(_spelled(random, name))}:{_json_value(random, name, text)}")
        if random.random() < 0.1:
            items.append('"more":{"sensor":[1.10,{"a":null}]}')
        if random.random() < 0.1:
            random.shuffle(items)
        if random.random() < 0.05 and items:
            items.append(random.choice(items))
        separator = random.choice((",", ",", ", "))
        lines.append("{" + separator.join(items) + "}" + random.choice(("", "", "", " ", "\t")))
        if random.random() < 0.05:
            lines.append(random.choice(("", "  ", "\t", "null", "[]", "{}", "\ufeff{}")))
    return lines


def _spelled(random: Random, name: str) -> str:
    other = {"sensor": "id", "at": "timestamp"}.get(name, name)
    return random.choice((*[name] * 8, other, name.upper(), other.title()))


def _json_value(random: Random, name: str, text: str | None) -> str:
    if text is None:
        return "null"
    if name in ("temperature", "count", "ratio") and random.random() < 0.6:
        try:
            json.loads(text)
        except ValueError:
            pass
        else:
            return text
    return json.dumps(text, ensure_ascii=random.random() < 0.5)


def _csv(random: Random, rows: list[dict[str, str | None]]) -> list[str]:
    columns = ["sensor", "at", "temperature", "count", "ratio", "note"]
    if random.random() < 0.3:
        random.shuffle(columns)
    names = [_spelled(random, name) for name in columns]
    lines = [",".join(names)]
    for row in rows:
        cells = [_cell(random, row[name]) for name in columns]
        if random.random() < 0.05:
            cells.append(random.choice(("", "", "more")))
        lines.append(",".join(cells))
        if random.random() < 0.05:
            lines.append(random.choice(("", "  ", "\t", ",,,,,", lines[0])))
    return lines


def _cell(random: Random, text: str | None) -> str:
    if text is None:
        return ""
    if '"' in text or "," in text or random.random() < 0.1:
        return '"' + text.replace('"', '""') + '"' + random.choice(("", "", " "))
    return text


def _parquet(random: Random, rows: list[dict[str, str | None]]) -> bytes:
    columns: dict[str, Any] = {}
    for name in ("sensor", "at", "temperature", "count", "ratio", "note"):
        if random.random() < 0.03:
            continue
        texts = [row[name] for row in rows]
        columns[_spelled(random, name)] = _column(random, name, texts)
    sink = io.BytesIO()
    compression = random.choice(("snappy", "zstd", "none"))
    pq.write_table(pa.table(columns), sink, compression=compression, row_group_size=3)
    return sink.getvalue()


def _column(random: Random, name: str, texts: list[str | None]) -> Any:
    """A column of texts, or of some other type that holds values like these."""
    kinds: list[Any] = [pa.string()] * 3 + [pa.large_string(), pa.binary()]
    kinds.append(pa.dictionary(pa.int32(), pa.string()))
    if name == "at":
        kinds += [pa.timestamp(unit, zone) for unit in ("ms", "us", "ns") for zone in (None, "UTC")]
    if name in ("temperature", "count", "ratio"):
        kinds += [pa.float64(), pa.int32(), pa.decimal128(25, 4), pa.int64(), pa.bool_()]
        kinds += [pa.float32(), pa.int16(), pa.decimal256(50, 9)]
    if name == "note":
        kinds += [
            pa.list_(pa.int64()),
            pa.list_(pa.timestamp("us")),
            pa.struct([("n", pa.int64())]),
        ]
    kind = random.choice(kinds)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind):
        return pa.array(texts, pa.string()).cast(kind)
    if pa.types.is_binary(kind):
        wild = [t if t is None or random.random() < 0.9 else t + "\udcff" for t in texts]
        content = [None if t is None else t.encode(errors="surrogateescape") for t in wild]
        return pa.array(content, kind)
    if pa.types.is_timestamp(kind):
        moments = [_plain_moment(t) for t in texts]
        column = pa.array(moments, pa.timestamp("us", "UTC")).cast(kind, safe=False)
        ticks = column.cast(pa.int64()).to_pylist()
        if kind.unit != "ns":
            ticks = [2**62 if n is not None and random.random() < 0.05 else n for n in ticks]
        return pa.array(ticks, pa.int64()).cast(kind)
    numbers = [None if t is None else random.randint(-5_000, 5_000) for t in texts]
    if pa.types.is_list(kind):
        return pa.array([None if n is None else [n, None, 2**60] for n in numbers], kind)
    if pa.types.is_struct(kind):
        return pa.array([None if n is None else {"n": n} for n in numbers], kind)
    if pa.types.is_boolean(kind):
        return pa.array([n is not None and n > 0 for n in numbers])
    if pa.types.is_floating(kind):
        return pa.array([None if n is None else n / 64 for n in numbers], kind)
    return pa.array(numbers, pa.int64()).cast(kind)


def _avro(random: Random, rows: list[dict[str, str | None]]) -> bytes:
    fields, columns = [], []
    for name in ("sensor", "at", "temperature", "count", "ratio", "note"):
        texts = [row[name] for row in rows]
        kind, values = _avro_column(random, name, texts)
        fields.append({"name": _spelled(random, name), "type": ["null", kind]})
        columns.append(values)
    names = [str(field["name"]) for field in fields]
    records = [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
    sink = io.BytesIO()
    schema = {"type": "record", "name": "Reading", "fields": fields}
    fastavro.writer(sink, schema, records, codec=random.choice(("null", "deflate")))
    return sink.getvalue()


def _avro_column(random: Random, name: str, texts: list[str | None]) -> tuple[Any, list[Any]]:
    """The type of a field and its values, some of them beyond what the type means."""
    kinds: tuple[str, ...] = ("string", "string", "bytes")
    if name == "at":
        kinds = ("string", "time", "time")
    if name in ("temperature", "count", "ratio"):
        kinds = ("string", "long", "float", "double", "decimal")
    kind = random.choice(kinds)
    if kind == "string":
        return kind, texts
    if kind == "bytes":
        end = b"\xff" if random.random() < 0.1 else b""
        return kind, [None if t is None else t.encode() + end for t in texts]
    if kind == "time":
        unit = random.choice(("millis", "micros", "nanos"))
        scale = {"millis": 1_000, "micros": 10**6, "nanos": 10**9}[unit]
        moments = [_plain_moment(text) for text in texts]
        far = 2**62 if random.random() < 0.2 else scale * 10**9
        ticks = [None if m is None else int(m.timestamp()) * scale + 1 for m in moments]
        ticks = [n if n is None or abs(n) < 2 * far else far for n in ticks]
        return {"type": "long", "logicalType": f"timestamp-{unit}"}, ticks
    numbers = [None if t is None else random.randint(-5_000, 5_000) for t in texts]
    if kind == "long":
        return kind, numbers
    if kind == "decimal":
        digits = [
            None if n is None else (n * 10**7).to_bytes(9, "big", signed=True) for n in numbers
        ]
        return {"type": "bytes", "logicalType": kind, "precision": 5, "scale": 4}, digits
    return kind, [None if n is None else n / 1_000 for n in numbers]


def _plain_moment(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text or "").astimezone(UTC)
    except (ValueError, OverflowError):
        return None
