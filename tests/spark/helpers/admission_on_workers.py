"""Files of every format and a topic, admitted by a process of its own on the master it is given."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from rivermark import Ingest
from rivermark.ingest import admission
from rivermark.runtime.spark.session import open_session
from rivermark.settings import Settings
from rivermark.sources import KafkaSource
from tests.spark.helpers.sensors import FOLDER, MINUTE, TEN, readings, run

ROWS: Final = 12_000
FORMATS: Final = ("csv", "json", "parquet", "avro")
FILES: Final = readings(pattern="*", max_files=len(FORMATS))
ALL_TASKS: Final = 0
NO_TASKS: Final = 1 << 40


def topic_of(brokers: str, topic: str) -> Ingest:
    """The same readings as messages of a topic."""
    source = KafkaSource(brokers=brokers, topics=topic)
    return replace(FILES, name="test/messages", source=source)


def rows_of(number: int) -> Iterator[dict[str, Any]]:
    """Readings of 20 minutes, of which some are too hot, and some late after another file."""
    for n in range(ROWS):
        minute = number * 20 + n * 20 / ROWS - 30 * (n % 97 == 0)
        degrees = 2_000.5 if n % 50 == 0 else 20.5 + n % 7
        yield {"sensor": f"s{n % 5}", "at": TEN + minute * MINUTE, "temperature": degrees}


def texts(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows with their moments as texts."""
    for row in rows:
        moment: datetime = row["at"]
        yield row | {"at": moment.isoformat()}


def lines_of(number: int) -> list[str]:
    """The rows as JSON lines, of which some are none."""
    return ["{" if n % 500 == 7 else json.dumps(r) for n, r in enumerate(texts(rows_of(number)))]


def land(landing: Path) -> None:
    """One file of each format, one after the other in time."""
    folder = landing / FOLDER
    folder.mkdir(parents=True)
    for number, kind in enumerate(FORMATS):
        path, rows = folder / f"{number}.{kind}", rows_of(number)
        if kind == "csv":
            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, ["sensor", "at", "temperature"])
                writer.writeheader()
                writer.writerows(texts(rows))
        elif kind == "json":
            path.write_text("\n".join(lines_of(number)) + "\n")
        elif kind == "parquet":
            pq.write_table(pa.Table.from_pylist([*rows]), path, row_group_size=ROWS // 8)
        else:
            write_avro(path, rows)
        os.utime(path, (1_700_000_000 + number,) * 2)


def write_avro(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    """The rows in blocks of Avro."""
    moment = {"type": "long", "logicalType": "timestamp-micros"}
    kinds = {"sensor": "string", "at": moment, "temperature": "double"}
    fields = [{"name": name, "type": kind} for name, kind in kinds.items()]
    with path.open("wb") as file:
        schema = {"type": "record", "name": "Reading", "fields": fields}
        fastavro.writer(file, schema, rows, sync_interval=20_000)


def main(home: str, master: str, brokers: str, topic: str, most: str) -> None:
    """Admit what has landed and what the topic holds; up to `most` bytes in the driver."""
    # Many pieces of a little.
    admission.PIECE_BYTES = 40_000  # type: ignore[attr-defined]
    settings = Settings(home=Path(home), master=master, trigger_seconds=0.1, driver_bytes=int(most))
    spark = open_session(settings)
    run(spark, settings, FILES, topic_of(brokers, topic))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
