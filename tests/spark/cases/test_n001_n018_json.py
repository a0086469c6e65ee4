"""Cases N001 to N018: JSON lines through files and both ways of parsing. Texts: test_cutter.py."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from rivermark import Field
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, READING, TEN, readings, rows, run

pytestmark = pytest.mark.spark

AT = '"sensor":"s","at":"2024-03-01T10:00:00Z"'
FIELDS = (
    *READING.fields[:2],
    Field("amount", "decimal(38,18)"),
    Field("count", "long"),
    Field("note", "string"),
)
PLAIN = readings(fields=FIELDS, rules=(), keys=(), lateness=None, pattern="*")


@pytest.mark.parametrize("spread", [False, True])
def test_n001_n018_each_line_is_read_by_itself_and_to_the_character(
    spread: bool,
    spark: SparkSession,
    settings: Settings,
    landing: Landing,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if spread:
        monkeypatch.setattr("rivermark.ingest.admission.DRIVER_BYTES", 0)
    landing.put(
        f"{FOLDER}/1.json",
        "xx",
        f'{{{AT}}},{{"sensor":"t","at":"2024-03-01T10:05:00Z"}}',
        f"{{{AT}}}}}",
        f'{{{AT},"Note":"kept","COUNT":5}}',
        f'{{{AT},"amount":12345678901234567.89,"note":1.10,"count":9007199254740993.0}}',
        f'{{{AT},"note":1E2}}',
        f'{{{AT},"note":NaN}}',
        f'{{{AT},"note":1e400}}',
        f'{{{AT},"note":{{"b" : [1.10 ]}}}}',
        f'{{{AT},"note":"\\ud800"}}',
        f'{{{AT},"note":"\\u0000"}}',
        f'{{{AT},"x":{"[" * 5000}{"]" * 5000}}}',
        f'{{{AT},"count":1,"count":2,"Count":3}}',
        " " * 500_000 + "x",
    )

    run(spark, settings, PLAIN)

    values = rows(spark, settings, PLAIN.admitted, "_row", "amount", "count", "note")
    assert [tuple(value) for value in values] == [
        (4, None, 5, "kept"),
        (5, Decimal("12345678901234567.89"), 9007199254740993, "1.10"),
        (6, None, None, "1E2"),
        (7, None, None, "NaN"),
        (8, None, None, "1e400"),
        (9, None, None, '{"b" : [1.10 ]}'),
        (11, None, None, "\x00"),
        (13, None, 2, None),
    ]
    aside = rows(spark, settings, PLAIN.quarantine, "_row", "reasons")
    assert [tuple(row) for row in aside] == [
        *[(n, ["unparsable_json"]) for n in (1, 2, 3)],
        (10, ["undecodable_text"]),
        (12, ["unparsable_json"]),
        (14, ["unparsable_json"]),
    ]
    assert {row["at"] for row in rows(spark, settings, PLAIN.admitted, "at")} == {
        TEN.replace(tzinfo=None)
    }
