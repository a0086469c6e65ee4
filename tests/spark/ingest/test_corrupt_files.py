"""Files and rows made to break the door: set aside with a reason, and the run goes on."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, TimestampType

from rivermark import Field, Ingest, Rule
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.model.field_readers import epoch_millis
from rivermark.runtime.query.ingest import SourceBacklog
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, READINGS, TEN, reading, readings, rows, run

pytestmark = pytest.mark.spark

GOOD = (reading(0), reading(1))
AT = "2024-03-01T10:00:00Z"


def reasons(
    spark: SparkSession, settings: Settings, ingest: Ingest = READINGS
) -> list[tuple[str, int | None, str]]:
    """File, line and the reasons' first words of all that was set aside."""
    found = rows(spark, settings, ingest.quarantine, "_file", "_row", "reasons")
    return [(r["_file"], r["_row"], r["reasons"][0].split(":")[0]) for r in found]


def test_any_name_of_a_file_is_read_by_the_engine(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rivermark.ingest.admission.DRIVER_BYTES", 0)
    names = ["a b", "ü", "100%", "a#b", "a?b", "[x]", "{x}", "a+b", "a=b", "a,b", "a\\b", "a%20b",
             "日本", "a;b", "a&b", "*x", "year=2024/x y"]  # fmt: skip
    for name in names:
        landing.put(f"{FOLDER}/{name}.json", *GOOD)

    door = run(spark, settings, readings(lateness=None))[READINGS.name]

    assert (door.admitted, door.quarantined) == (2 * len(names), 0)


def test_a_name_that_the_engine_cannot_open_is_set_aside(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    for name in ("a b", "a:b"):
        landing.put(f"{FOLDER}/{name}.json", *GOOD)

    assert run(spark, settings, READINGS)[READINGS.name].admitted == 2
    assert reasons(spark, settings) == [("a:b.json", None, "file_name_with_colon")]


def test_damaged_and_vanished_files_do_not_keep_the_others_out(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = {"sensor": [f"s{n % 7}" for n in range(5000)], "at": [TEN] * 5000}
    table = pa.table(columns | {"temperature": [float(n) / 10 for n in range(5000)]})
    landing.put_parquet(f"{FOLDER}/good.parquet", table)
    damaged = landing.put_parquet(f"{FOLDER}/damaged.parquet", table)
    content = bytearray(damaged.read_bytes())
    content[200:2000] = bytes(1800)
    damaged.write_bytes(content)
    landing.stamp(damaged)
    gone = [
        landing.put(f"{FOLDER}/gone.json", *GOOD),
        landing.put_parquet(f"{FOLDER}/gone.parquet", table),
    ]
    settle = SourceBacklog.settle

    def lose(self: SourceBacklog) -> None:
        settle(self)
        for path in gone:
            path.unlink()

    monkeypatch.setattr(SourceBacklog, "settle", lose)
    door = run(spark, settings, READINGS)[READINGS.name]

    assert (door.admitted, door.files) == (5000, 4)
    assert reasons(spark, settings) == [
        ("damaged.parquet", None, "file_corrupt"),
        ("gone.json", None, "file_vanished"),
        ("gone.parquet", None, "file_vanished"),
    ]
    noted = {r["file"]: r["status"] for r in rows(spark, settings, INGEST_FILES)}
    assert noted == {
        "good.parquet": "read", "damaged.parquet": "set_aside",
        "gone.json": "set_aside", "gone.parquet": "set_aside",
    }  # fmt: skip


def test_poisoned_lines_are_set_aside_one_by_one(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    def timed(at: str) -> str:
        return f'{{"sensor": "s", "at": "{at}", "temperature": 1}}'

    landing.put(
        f"{FOLDER}/1.json",
        GOOD[0],
        timed("0000-01-01T00:00:00Z"),
        timed("0001-01-01T00:00:00Z"),
        timed("9999-12-31T23:59:59Z"),
        '{"a":' * 5000 + "1" + "}" * 5000,
        '{"sensor": "s", "x": ' + "[" * 3000 + "]" * 3000 + "}",
        reading(0) + reading(1),
        reading(0) + " and more",
        reading(0, temperature="9" * 2_000_000),
        reading(0, temperature="NaN"),
        reading(0, temperature="1e400"),
    )
    landing.put(f"{FOLDER}/2.csv", "sensor,at,temperature", f"s,{AT},1", "," * 30_000, f'"s,{AT},1')

    door = run(spark, settings, READINGS)[READINGS.name]

    assert door.admitted == 2
    assert [r[1:] for r in reasons(spark, settings)] == [
        (2, "event_time_impossible"),
        (3, "event_time_impossible"),
        (4, "event_time_ahead"),
        (5, "unparsable_json"),
        (6, "unparsable_json"),
        (7, "unparsable_json"),
        (8, "unparsable_json"),
        (9, "unreadable_temperature"),
        (10, "unreadable_temperature"),
        (11, "unreadable_temperature"),
        (3, "wrong_number_of_values"),
        (4, "wrong_number_of_values"),
    ]


def test_braces_within_texts_are_no_second_object(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    notes = ["a}{b", "x} {y", '"}{"', "\\", "{}" * 5]
    landing.put(f"{FOLDER}/1.json", *[reading(0, note=note) for note in notes])

    run(spark, settings, READINGS)

    assert [r["note"] for r in rows(spark, settings, READINGS.admitted, "note")] == sorted(notes)


def test_milliseconds_that_are_no_moment_are_not_read(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    fields = (
        Field("sensor", StringType()),
        Field("at", TimestampType(), required=True, read=epoch_millis()),
    )
    millis = readings(fields=fields, keys=(), rules=())
    values = ["1700000000000", "9223372036854775807", "-9223372036854775807", "9" * 30, '"x"']
    landing.put(f"{FOLDER}/1.json", *[f'{{"at": {v}}}' for v in values])

    assert run(spark, settings, millis)[millis.name].admitted == 1
    assert [r[2] for r in reasons(spark, settings, millis)] == ["unreadable_at"] * 4


def test_a_row_that_makes_a_rule_raise_costs_its_file_and_nothing_else(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    hot = Rule("hot", "CAST(temperature AS TINYINT) > 100", "quarantine", "Hot.")
    dividing = readings(rules=(hot,), lateness=None)
    landing.put(f"{FOLDER}/1.json", *GOOD)
    landing.put(f"{FOLDER}/2.json", GOOD[0], reading(0, temperature=999))
    landing.put(f"{FOLDER}/3.json", *GOOD)

    assert run(spark, settings, dividing)[dividing.name].admitted == 4
    assert reasons(spark, settings, dividing) == [("2.json", None, "file_unparsable")]
    (aside,) = rows(spark, settings, dividing.quarantine)
    assert "rule 'hot' cannot be computed of a row" in aside["reasons"][0]


def test_lines_are_numbered_from_the_start_of_a_file_that_several_tasks_read(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rivermark.ingest.admission.DRIVER_BYTES", 0)
    monkeypatch.setattr("rivermark.ingest.admission.PIECE_BYTES", 50_000)
    lines = [reading(0, note=f"{n}") if n % 10 else "" for n in range(1, 3001)]
    for name in ("a", "b"):
        landing.put(f"{FOLDER}/{name}.json", *lines)
    run(spark, settings, READINGS)

    found = rows(spark, settings, READINGS.admitted, "_file", "_row", "note")
    assert len(found) == 2 * 2700
    assert all(str(r["_row"]) == r["note"] for r in found)


def test_files_of_several_formats_and_shapes_make_one_batch(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    small = readings(max_files=9)
    landing.put(f"{FOLDER}/1.csv", "temperature,sensor,at", f"1,csv,{AT}")
    landing.put(f"{FOLDER}/2.csv", "at;sensor;temperature", f"{AT};other;2")
    landing.put(f"{FOLDER}/3.json.gz", reading(0, "gzip"))
    landing.put_parquet(
        f"{FOLDER}/4.parquet", pa.table({"sensor": ["text"], "at": [AT], "temperature": ["4"]})
    )
    landing.put_parquet(
        f"{FOLDER}/5.parquet", pa.table({"sensor": ["typed"], "at": [TEN], "temperature": [5.0]})
    )
    landing.put(f"{FOLDER}/6.csv", "sensor,at,temperature")
    landing.put(f"{FOLDER}/7.json", "", "  ")

    door = run(spark, settings, small)[small.name]

    # The header of 2.csv names no column, so it counts as a line of the file (case N032).
    assert (door.files, door.rows_in, door.admitted, door.quarantined) == (7, 6, 4, 2)
    found = [r["sensor"] for r in rows(spark, settings, small.admitted, "sensor")]
    assert found == ["csv", "gzip", "text", "typed"]


def test_n032_both_lines_of_a_csv_file_without_a_header_are_quarantined(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    lines = [f"s,{AT},1", f"t,{AT},2"]
    landing.put(f"{FOLDER}/1.csv", *lines)
    landing.put(f"{FOLDER}/2.csv", "sensor,at,temperature", f"s,{AT},1")
    # A word of the first record is the name of a column.
    named = [f"s,{AT},1,note", f"t,{AT},2,other"]
    landing.put(f"{FOLDER}/3.csv", *named)

    door = run(spark, settings, READINGS)[READINGS.name]

    assert (door.rows_in, door.admitted, door.quarantined) == (5, 1, 4)
    aside = rows(spark, settings, READINGS.quarantine, "_file", "_row", "payload", "reasons")
    missing = ["missing_sensor", "missing_at", "missing_temperature"]
    assert [tuple(r) for r in aside] == [
        *(("1.csv", n, line, ["no_known_column"]) for n, line in enumerate(lines, 1)),
        *(("3.csv", n, line, missing) for n, line in enumerate(named, 1)),
    ]


def test_n006_n007_n008_n053_hostile_files_keep_no_good_one_out(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    good = parquet_bytes(50)
    at = good.index(b"temperature")
    landing.put(f"{FOLDER}/1.json", '{"user_id":' + "[" * 5_000)
    landing.put(f"{FOLDER}/2.csv", f"sensor,at,{'a' * 140_000}", f"s,{AT},1")
    landing.put_bytes(f"{FOLDER}/caf\udce9.json", f"{GOOD[0]}\n".encode())
    landing.put_bytes(f"{FOLDER}/3.parquet", good[:at] + b"\xe9" + good[at + 1 :])
    landing.put(f"{FOLDER}/good.json", *GOOD)

    door = run(spark, settings, READINGS)[READINGS.name]

    assert door.admitted == 2
    assert reasons(spark, settings) == [
        ("1.json", 1, "unparsable_json"),
        ("2.csv", None, "file_unusable_header"),
        ("3.parquet", None, "file_corrupt"),
        ("caf\\xe9.json", None, "file_name_not_utf8"),
    ]


def parquet_bytes(count: int) -> bytes:
    sink = pa.BufferOutputStream()
    columns = {"sensor": [f"s{n}" for n in range(count)], "at": [TEN] * count}
    pq.write_table(pa.table(columns | {"temperature": [20.0] * count}), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content
