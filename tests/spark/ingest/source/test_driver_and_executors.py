"""The driver and the executors read the same of every file: lines, Parquet rows, odd names."""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from rivermark import Field
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, READING, reading, readings, rows, run

pytestmark = pytest.mark.spark

AT = "2024-03-01T10:00:00Z"


@pytest.fixture(params=["driver", "executors"], autouse=True)
def where(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where a batch is read and kept."""
    if request.param == "executors":
        monkeypatch.setattr("rivermark.ingest.admission.DRIVER_BYTES", 0)
    return str(request.param)


# Short: in the driver; on the executors, files of any name in test_corrupt_files.py.
in_the_driver = pytest.mark.parametrize(
    "where", ["driver", pytest.param("executors", marks=pytest.mark.long)], indirect=True
)


@pytest.mark.parametrize(
    ("where", "encoding"),
    [
        ("driver", "ISO-8859-1"),
        pytest.param("executors", "Shift-JIS", marks=pytest.mark.long),
        pytest.param("driver", "Shift-JIS", marks=pytest.mark.long),
        pytest.param("executors", "ISO-8859-1", marks=pytest.mark.long),
    ],
    indirect=["where"],
)
def test_n015_raw_holds_every_line_of_another_encoding_as_it_is(
    spark: SparkSession, settings: Settings, landing: Landing, encoding: str
) -> None:
    columns = ("sensor", "at", "temperature")
    ingest = readings(
        pattern="*.txt", format="csv", columns=columns, delimiter=" ", encoding=encoding
    )
    text = "Ü" if encoding == "ISO-8859-1" else "ソ日"
    lines = [
        f"s {AT} 1",
        "",
        f"s {AT} 2 \x01 3",
        f"\x01 {AT} 4",
        f"{text} {AT} 5",
        "  ",
        f'"{text}',
    ]
    for name, end in (("a.txt", "\n"), ("b.txt", "\r\n")):
        landing.put_bytes(f"{FOLDER}/{name}", "".join(x + end for x in lines).encode(encoding))

    run(spark, settings, ingest)

    for name in ("a.txt", "b.txt"):
        found = rows(spark, settings, ingest.raw, "_file", "_row", "payload")
        assert [(r["_row"], r["payload"]) for r in found if r["_file"] == name] == [
            (n, line) for n, line in enumerate(lines, 1) if line.strip()
        ]
    assert len(rows(spark, settings, ingest.admitted)) == 2 * 3


@in_the_driver
def test_parquet_rows_keep_their_values_and_places(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    amount = Field("amount", "decimal(38,18)")
    ingest = readings(fields=(*READING.fields, amount, Field("count", "bigint")))
    exact = [Decimal(f"{n}2345678901234567.890000000000000001") for n in range(1, 10)]
    table = pa.table(
        {
            "SENSOR": pa.array([b"s"] * 9, pa.binary()),
            "at": pa.array([1_709_287_200_186_000_001 + n for n in range(9)]).cast(
                pa.timestamp("ns")
            ),
            "temperature": [20.5] * 9,
            "amount": pa.array(exact, pa.decimal128(38, 18)),
            "count": [2**53 + n for n in range(9)],
            "time": pa.array([1] * 9, pa.time64("us")),
            "_metadata": ["x"] * 9,
            "no`te": ["y"] * 9,
        }
    )
    landing.put_parquet(f"{FOLDER}/1.parquet", table)
    path = landing.put_parquet(f"{FOLDER}/2.parquet", table)
    pq.write_table(table, path, row_group_size=2)
    landing.stamp(path)

    run(spark, settings, ingest)

    files = ("1.parquet", "2.parquet")
    found = rows(
        spark, settings, ingest.admitted, "_file", "_row", "sensor", "at", "count", "amount"
    )
    at = datetime.fromisoformat("2024-03-01T10:00:00.186")
    assert [tuple(r) for r in found] == [
        (file, n + 1, "s", at, 2**53 + n, exact[n]) for file in files for n in range(9)
    ]
    raw = rows(spark, settings, ingest.raw, "_file", "_row", "payload")
    read = [json.loads(r["payload"], parse_float=Decimal) for r in raw]
    assert [(r["amount"], r["no`te"], r["time"]) for r in read] == [
        (exact[n], "y", "00:00:00.000001") for _ in files for n in range(9)
    ]


# Short: on the executors; in the driver, a damaged file in test_corrupt_files.py.
@pytest.mark.parametrize(
    "where", [pytest.param("driver", marks=pytest.mark.long), "executors"], indirect=True
)
def test_a_damaged_page_costs_its_file_alone_and_names_the_fault(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    table = pa.table({"sensor": ["s"] * 900, "at": [AT] * 900, "temperature": [*range(900)]})
    for name in ("bad", "good"):
        path = landing.put_parquet(f"{FOLDER}/{name}.parquet", table)
        content = bytearray(path.read_bytes())
        if name == "bad":
            content[30:900] = bytes(870)
        path.write_bytes(content)
        landing.stamp(path)

    door = run(spark, settings, readings())["test/readings"]

    assert door.admitted == 900
    (aside,) = rows(spark, settings, readings().quarantine, "_file", "reasons")
    assert aside["_file"] == "bad.parquet"
    assert aside["reasons"][0].startswith("file_corrupt: OSError: ")


@in_the_driver
def test_files_of_any_name_come_in(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    names = [*"^|`'\"~\u00a0\u2028é😀\x01", "a\nb", "a\tb", "a\x7f", "$x", "a%zz", "a%2Fb", " x "]
    names += ["x" * 240, "<b>", "[/red]"]
    for name in names:
        landing.put(f"{FOLDER}/{name}.json", reading(0))
        packed = gzip.compress(f"sensor,at,temperature\ns,{AT},1\n".encode())
        landing.put_bytes(f"{FOLDER}/{name}.CSV.GZ", packed)

    run(spark, settings, readings(pattern="*", lateness=None))

    found = {r["_file"] for r in rows(spark, settings, readings().admitted, "_file")}
    aside = {r["_file"] for r in rows(spark, settings, readings().quarantine, "_file")}
    assert found | aside == {f"{n}{end}" for n in names for end in (".json", ".CSV.GZ")}
    assert aside == set()
