"""Cases B040 to B049, B061 and B093: unfinished, broken and foreign files; clocks that change."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, TimestampType

from rivermark import Field, Ingest, Rule, readers
from rivermark.ingest.source.files.file_probe import FileProbe, probe_file
from rivermark.model.field_readers import Reader, decimal, local_timestamp
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.query.ingest import SourceBacklog
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import (
    FOLDER,
    MINUTE,
    READING,
    READINGS,
    reading,
    readings,
    rows,
    run,
    windows,
)

pytestmark = pytest.mark.spark

HEAD = "sensor,at,temperature"
AT = "2024-03-01T10:00:00Z"


def times_read_by(read: Reader, **changes: object) -> Ingest:
    """The readings, with event times read that way."""
    fields = (
        replace(f, read=read) if isinstance(f.type, TimestampType) else f for f in READING.fields
    )
    return readings(fields=tuple(fields), **changes)


def parquet_of(count: int) -> bytes:
    columns = {"sensor": [f"s{n}" for n in range(count)], "at": [AT] * count}
    sink = BytesIO()
    pq.write_table(pa.table(columns | {"temperature": [20.0] * count}), sink)
    return sink.getvalue()


def test_b040_a_file_is_not_taken_while_it_is_written_and_whole_afterwards(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    patient = readings(unterminated_settle=timedelta(hours=3))
    lines = [f"s{n},{AT},20" for n in range(10)]
    half = "\n".join([HEAD, *lines[:3], lines[3][:5]])
    landing.put_bytes(f"{FOLDER}/rides.csv", half.encode())
    landing.put(f"{FOLDER}/other.csv", HEAD, f"o,{AT},20")

    first = run_without_waiting(spark, settings, patient)
    assert first.admitted == 1
    assert [p for p in first.pending if "looks unfinished: no line end" in p]
    landing.put(f"{FOLDER}/rides.csv", HEAD, *lines)
    run_without_waiting(spark, settings, patient)

    found = [r["sensor"] for r in rows(spark, settings, patient.admitted, "sensor")]
    assert found == sorted(["o", *[f"s{n}" for n in range(10)]])
    assert rows(spark, settings, patient.quarantine) == []


def run_without_waiting(spark: SparkSession, settings: Settings, ingest: Ingest) -> StreamSummary:
    """A bounded run that looks into the folder once and does not wait for files to settle."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SourceBacklog, "settle", lambda self: self.poll())
        return run(spark, settings, ingest)[ingest.name]


def test_b041_empty_and_cut_files_are_set_aside_beside_a_good_one(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    good = parquet_of(50)
    landing.put_bytes(f"{FOLDER}/empty.parquet", b"")
    landing.put_bytes(f"{FOLDER}/half.parquet", good[: len(good) // 2])
    landing.put_bytes(f"{FOLDER}/good.parquet", good)

    door = run(spark, settings, READINGS)[READINGS.name]
    again = run(spark, settings, READINGS)[READINGS.name]

    assert (door.admitted, door.files, again.files) == (50, 3, 0)
    aside = rows(spark, settings, READINGS.quarantine, "_file", "details", "reasons")
    assert [(r["_file"], r["details"]) for r in aside] == [
        ("empty.parquet", "0 bytes"),
        ("half.parquet", f"{len(good) // 2} bytes"),
    ]
    assert [r["reasons"][0].split(":")[0] for r in aside] == ["file_empty", "file_corrupt"]


def test_b042_a_file_that_may_not_be_read_waits_until_it_may(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    landing.put(f"{FOLDER}/good.json", *[reading(n) for n in range(50)])

    def refuse(files: fs.FileSystem, *rest: Any) -> FileProbe:
        # As without permission; a test may run as root, whom none is denied.
        return probe_file(Refusing(), *rest)

    with monkeypatch.context() as patch:
        patch.setattr("rivermark.ingest.source.files.listing.probe_file", refuse)
        for _ in range(2):
            door = run(spark, settings, READINGS)[READINGS.name]
            assert door.rows_in == 0
            assert "good.json: cannot be read yet: PermissionError" in door.pending[0]

    door = run(spark, settings, READINGS)[READINGS.name]
    assert (door.admitted, door.pending) == (50, [])


class Refusing:
    """A file system that opens nothing."""

    def open_input_file(self, path: str) -> pa.NativeFile:
        raise PermissionError(13, "Permission denied", path)


@pytest.mark.long
def test_b045_every_line_is_a_row_or_is_set_aside_with_its_text_and_reason(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    lines = [
        f"s1,{AT},20.5",
        f"s1,{AT},abc",
        "s1",
        f"s1,{AT},20.5,4,5,6",
        '{"sensor": "s1"}',
    ]
    landing.put(f"{FOLDER}/1.csv", HEAD, *lines)

    door = run(spark, settings, READINGS)[READINGS.name]

    assert (door.rows_in, door.admitted, door.quarantined) == (5, 1, 4)
    aside = rows(spark, settings, READINGS.quarantine, "_row", "reasons", "payload")
    assert [tuple(r) for r in aside] == [
        (3, ["unreadable_temperature"], lines[1]),
        (4, ["wrong_number_of_values"], lines[2]),
        (5, ["wrong_number_of_values"], lines[3]),
        (6, ["wrong_number_of_values"], lines[4]),
    ]


@pytest.mark.long
def test_b047_dates_of_a_spreadsheet_are_read_as_declared_or_set_aside(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    landing.put(f"{FOLDER}/1.csv", HEAD, "s1,2/3/15 14:19,20.5", "s1,2/18/15 9:19,20.5")
    plain = run(spark, settings, READINGS)[READINGS.name]
    assert (plain.admitted, plain.quarantined) == (0, 2)
    reasons = [r["reasons"] for r in rows(spark, settings, READINGS.quarantine)]
    assert reasons == [["unreadable_at"]] * 2

    declared = replace(times_read_by(local_timestamp("UTC", "M/d/yy H:mm")), name="test/resaved")
    run(spark, settings, declared)
    found = [r["at"] for r in rows(spark, settings, declared.admitted, "at")]
    assert found == [
        datetime(2015, 2, 3, 14, 19),  # noqa: DTZ001 - as Spark gives it, in UTC
        datetime(2015, 2, 18, 9, 19),  # noqa: DTZ001
    ]


@pytest.mark.parametrize("encoding", [pytest.param("ISO-8859-1", marks=pytest.mark.long), "UTF-8"])
def test_b093_a_foreign_encoding_is_read_as_declared_or_set_aside(
    encoding: str, spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    sequence = readers.sql("replace(text, '\u00a0', '')", readers.integer())
    comma = decimal(9, 3, decimal_comma=True)
    fields = (
        *(replace(f, read=comma) if f.name == "temperature" else f for f in READING.fields),
        Field("sequence", LongType(), required=True, read=sequence),
    )
    library = readings(fields=fields, encoding=encoding, delimiter=";")
    lines = [
        "sensor;at;temperature;sequence;note",
        f"n1;{AT};21,13;999;plain",
        f"n1;{AT};23,66;1\u00a0595;plain",
        f"n1;{AT};24,00;1596;caf\u00e9",
    ]
    landing.put_bytes(f"{FOLDER}/R3.csv", ("\r\n".join(lines) + "\r\n").encode("ISO-8859-1"))

    door = run(spark, settings, library)[library.name]

    found = rows(spark, settings, library.admitted, "sequence", "temperature", "_row")
    first = (999, Decimal("21.130"), 2)
    if encoding == "ISO-8859-1":
        others = [(1595, Decimal("23.660"), 3), (1596, Decimal("24.000"), 4)]
        assert [tuple(r) for r in found] == [first, *others]
        assert door.quarantined == 0
    else:
        assert [tuple(r) for r in found] == [first]
        aside = rows(spark, settings, library.quarantine, "_row", "reasons", "payload")
        assert [r["_row"] for r in aside] == [3, 4]
        assert all("undecodable_text" in r["reasons"] for r in aside)
        assert aside[1]["payload"].endswith("caf\ufffd")


@pytest.mark.long
def test_b048_one_local_hour_twice_is_two_windows(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    local = times_read_by(local_timestamp("America/New_York"), lateness=timedelta(hours=2))
    hourly = windows(local, minutes=60)
    landing.put(
        f"{FOLDER}/1.csv",
        HEAD,
        "A,2014-11-02T01:30:00-04:00,1",
        "B,2014-11-02T01:30:00-05:00,1",
        # Without an offset the earlier of the two is meant.
        "C,2014-11-02T01:30:00,1",
        "closes,2014-11-02T12:00:00,1",
    )

    run(spark, settings, local, hourly)

    found = rows(spark, settings, hourly.tables[0], "sensor", "window_start", "readings")
    hours = [(r["sensor"], r["window_start"].hour, r["readings"]) for r in found]
    assert hours == [("A", 5, 1), ("B", 6, 1), ("C", 5, 1)]


def test_b049_a_stretch_that_comes_twice_is_accounted_for_row_by_row(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    slow = readings(lateness=10 * MINUTE)
    first_pass = [reading(60 + 5 * n, temperature=80) for n in range(12)]
    second_pass = [reading(60 + 5 * n, temperature=90) for n in range(12)]
    for number, lines in enumerate((first_pass, second_pass, [reading(125)])):
        landing.put(f"{FOLDER}/{number}.json", *lines)

    door = run(spark, settings, slow, windows(slow, minutes=60))[slow.name]

    assert (door.rows_in, door.admitted, door.late) == (25, 15, 10)
    in_time = {55, 50}
    late = rows(spark, settings, slow.late, "at", "temperature")
    assert [r["at"].minute for r in late] == [m for m in range(0, 60, 5) if m not in in_time]
    assert {r["temperature"] for r in late} == {Decimal(90)}


def test_b061_a_bad_row_and_an_empty_one_are_set_aside_and_the_batch_is_written(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    never_negative = Rule("negative", "temperature < 0", "quarantine", "Below 0.")
    fares = readings(rules=(never_negative,))
    lines = [reading(n / 10) for n in range(98)]
    landing.put(
        f"{FOLDER}/1.json", *lines, reading(1, temperature=-5), reading(1, temperature=None)
    )

    door = run(spark, settings, fares)[fares.name]

    assert (door.admitted, door.quarantined) == (98, 2)
    aside = rows(spark, settings, fares.quarantine, "reasons")
    assert [r["reasons"] for r in aside] == [["missing_temperature"], ["negative"]]
