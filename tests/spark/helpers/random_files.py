"""Files of readings at random: good, late, broken in every way that the door tells apart."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

import pyarrow as pa

from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, MINUTE, TEN

KINDS = {
    "good": 60,
    "behind": 20,
    "freezing": 5,
    "too_hot": 3,
    "no_sensor": 3,
    "no_time": 3,
    "bad_time": 3,
    "bad_number": 3,
    "ahead": 2,
    "broken": 4,
    "empty": 2,
}

COLUMN_ORDERS = (["sensor", "at", "temperature", "note"], ["note", "temperature", "at", "sensor"])
"""Two, because Spark compiles the reading of each order anew."""


@dataclass(frozen=True)
class File:
    """A file before it lands: its name and, but for Parquet, its content."""

    name: str
    content: bytes
    rows: pa.Table | None = None

    def land(self, landing: Landing) -> None:
        """Put it into the landing folder, as the newest one."""
        if self.rows is not None:
            landing.put_parquet(f"{FOLDER}/{self.name}", self.rows)
        else:
            landing.put_bytes(f"{FOLDER}/{self.name}", self.content)


def files_at_random(seed: int, count: int) -> list[File]:
    """So many files in the order in which they land; their names have another order."""
    random = Random(seed)
    names = [f"{n:02}" for n in range(count)]
    random.shuffle(names)
    files = []
    newest = TEN
    for name in names:
        newest += random.uniform(0, 3) * MINUTE
        kind = random.choice(["json", "json", "json.gz", "csv", "csv", "parquet"])
        rows = [row_at_random(random, newest) for _ in range(random.randint(0, 9))]
        if kind == "parquet":
            files.append(File(f"{name}.parquet", b"", parquet_of(rows)))
        else:
            lines = csv_lines(random, rows) if kind == "csv" else [json_line(r) for r in rows]
            ending = random.choice(["\n", "\r\n"])
            files.append(File(f"{name}.{kind}", "".join(x + ending for x in lines).encode()))
    files.insert(count // 2, File("empty.json", b""))
    files.insert(count // 3, File("cut.parquet", b"PAR1 and no more"))
    return files


def row_at_random(random: Random, newest: datetime) -> dict[str, object]:
    """A row of some kind; `_kind` says which, for whoever writes it down."""
    kind = random.choices([*KINDS], [*KINDS.values()])[0]
    back = timedelta(seconds=random.randint(70, 600) if kind == "behind" else random.randint(0, 50))
    at = newest - back
    if kind == "ahead":
        at = at.replace(year=2199)
    row: dict[str, object] = {
        "_kind": kind,
        "sensor": f"s{random.randint(1, 4)}",
        "at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "temperature": f"{random.randint(1, 99999) / 1000:.3f}",
        "note": random.choice([None, "NA", 'a "quoted", note', "}{", "ü"]),
    }
    changes: dict[str, dict[str, object]] = {
        "freezing": {"temperature": "-3.5"},
        "too_hot": {"temperature": "1000.001"},
        "no_sensor": {"sensor": None},
        "no_time": {"at": None},
        "bad_time": {"at": "yesterday"},
        "bad_number": {"temperature": "warm"},
    }
    return row | changes.get(kind, {})


def json_line(row: dict[str, object]) -> str:
    """The row as a JSON line; a broken one is cut."""
    if row["_kind"] == "empty":
        return "  "
    values = {k: v for k, v in row.items() if k != "_kind"}
    line = json.dumps(values, ensure_ascii=False)
    return line[: len(line) // 2] if row["_kind"] == "broken" else line


def csv_lines(random: Random, rows: list[dict[str, object]]) -> list[str]:
    """A header and the rows, with columns in some order; a broken one has a value too many."""
    columns = random.choice(COLUMN_ORDERS)
    spelled = {"sensor": "ID", "at": "Timestamp"}
    lines = [",".join(spelled.get(c, c) for c in columns)]
    for row in rows:
        if row["_kind"] == "empty":
            lines.append("")
            continue
        cells = ["" if row[c] is None else quoted(str(row[c])) for c in columns]
        lines.append(",".join(cells + (["more"] if row["_kind"] == "broken" else [])))
    return lines


def quoted(text: str) -> str:
    """A CSV cell, quoted where it must be."""
    return '"' + text.replace('"', '""') + '"' if '"' in text or "," in text else text


def parquet_of(rows: list[dict[str, object]]) -> pa.Table:
    """The rows as texts in Parquet; what is broken or empty there is a row without anything."""
    none = {"sensor": None, "at": None, "temperature": None, "note": None}
    plain = [none if r["_kind"] in ("broken", "empty") else r for r in rows]
    return pa.table({c: pa.array([r[c] for r in plain], pa.string()) for c in none})
