"""Landed files as a source: its contract, plain text, Avro, and the archive."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, TimestampType

from rivermark import Contract, Field, Ingest, readers
from rivermark.sources import FileSource, Source
from tests.spark.helpers.source_contract import EVENT, Deployment, SourceContract, event

pytestmark = pytest.mark.spark


def put(root: Path, name: str, content: bytes) -> Path:
    """Land a file."""
    path = root / "landing" / "events" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


class TestFiles(SourceContract):
    """JSON lines."""

    def source(self, root: Path) -> Source:
        return FileSource(folder="events", settle=timedelta(0))

    def produce(self, root: Path, numbers: range) -> None:
        if numbers:
            lines = [json.dumps(event(n), default=str) for n in numbers]
            put(root, f"{numbers[0]:04d}.json", ("\n".join(lines) + "\n").encode())

    def damage(self, root: Path, number: int) -> int:
        """An empty file that nobody writes to any more."""
        os.utime(put(root, f"{number:04d}.empty.json", b""), (1, 1))
        return 1


class TestAvroFiles(SourceContract):
    """Avro records, with logical types."""

    def source(self, root: Path) -> Source:
        return FileSource(folder="events", format="avro", settle=timedelta(0))

    def produce(self, root: Path, numbers: range) -> None:
        schema: dict[str, Any] = {
            "type": "record",
            "name": "Event",
            "fields": [
                {"name": "id", "type": "long"},
                {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            ],
        }
        if numbers:
            path = put(root, f".{numbers[0]:04d}", b"")
            with path.open("wb") as file:
                fastavro.writer(file, schema, [event(n) for n in numbers])
            path.rename(path.with_name(f"{numbers[0]:04d}.avro"))


class TestArchivedFiles(TestFiles):
    """JSON lines that are moved away once they are read."""

    def source(self, root: Path) -> Source:
        return FileSource(folder="events", settle=timedelta(0), archive="archive/events")

    def test_what_was_read_is_moved_and_what_was_not_stays(self, deployment: Deployment) -> None:
        root = deployment.root
        self.produce(root, range(2))
        empty = put(root, "empty.json", b"")
        os.utime(empty, (1, 1))
        deployment.run()
        put(root, "next.json", b"")

        archived = root / "landing" / "archive" / "events"
        assert [p.name for p in archived.iterdir()] == ["0000.json"]
        assert sorted(p.name for p in empty.parent.iterdir()) == ["empty.json", "next.json"]

    def beside(self, deployment: Deployment) -> Deployment:
        """It has files of its own: what the first has read is not there any more."""
        root = deployment.root / "beside"
        shutil.copytree(deployment.root / "landing", root / "landing")
        return replace(deployment, root=root)

    def test_a_replay_does_not_need_the_file(self, deployment: Deployment) -> None:
        self.produce(deployment.root, range(2))
        deployment.run()
        deployment.done = -1
        deployment.run()

        assert deployment.ids(deployment.ingest.admitted) == [0, 1]

    def test_a_file_of_that_name_in_the_archive_is_kept(self, deployment: Deployment) -> None:
        earlier = deployment.root / "landing" / "archive" / "events" / "0000.json"
        earlier.parent.mkdir(parents=True)
        earlier.write_text("of an earlier year")
        self.produce(deployment.root, range(2))
        deployment.run()

        assert earlier.read_text() == "of an earlier year"
        assert sorted(p.name for p in earlier.parent.iterdir()) == ["0000.json", "0000.json~0"]


def test_lines_of_text_are_read_by_the_fields_that_name_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    contract = Contract(
        fields=(
            Field("line", StringType(), ("text",)),
            Field(
                "id",
                LongType(),
                ("TEXT",),
                read=readers.sql(r"regexp_extract(text, 'id=(\d+)', 1)", readers.integer()),
            ),
            Field(
                "at",
                TimestampType(),
                ("text",),
                required=True,
                read=readers.sql("split_part(text, ' ', 1)", readers.utc_timestamp()),
            ),
        ),
        event_time="at",
    )
    ingest = Ingest(
        name="test/lines",
        source=FileSource(folder="events", format=None, settle=timedelta(0)),
        contract=contract,
        lateness=None,
        description="Lines.",
        group="test",
    )
    put(tmp_path, "a.log", b'2024-03-01T10:00:00Z id=7 "GET, {"\n\nno time\n')
    deployment = Deployment(spark, tmp_path, ingest)
    deployment.run()

    (row,) = deployment.rows(ingest.admitted)
    assert (row["line"], row["id"], row["_row"]) == ('2024-03-01T10:00:00Z id=7 "GET, {"', 7, 1)
    (bad,) = deployment.rows(ingest.quarantine)
    assert (bad["reasons"], bad["payload"]) == (
        ["unreadable_id", "unreadable_at"],
        "no time",
    )


def test_a_damaged_avro_file_is_quarantined_as_a_whole(spark: SparkSession, tmp_path: Path) -> None:
    files = TestAvroFiles()
    files.produce(tmp_path, range(3))
    whole = tmp_path / "landing" / "events" / "0000.avro"
    put(tmp_path, "cut.avro", whole.read_bytes()[:-9])
    source = FileSource(
        folder="events", format="avro", settle=timedelta(0), unterminated_settle=timedelta(0)
    )
    ingest = Ingest(
        name="test/events",
        source=source,
        contract=EVENT,
        lateness=None,
        description="Events.",
        group="test",
    )
    deployment = Deployment(spark, tmp_path, ingest)
    deployment.run()

    assert deployment.ids(ingest.admitted) == [0, 1, 2]
    (bad,) = deployment.rows(ingest.quarantine)
    assert (bad["_file"], bad["_row"]) == ("cut.avro", None)
    assert bad["reasons"][0].startswith("file_corrupt")
