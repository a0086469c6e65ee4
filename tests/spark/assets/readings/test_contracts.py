"""Which readings are set aside, and why."""

from datetime import UTC, datetime
from decimal import Decimal

from pyspark.sql import SparkSession

from assets.readings.sensors import SENSOR_READING
from simulator.landing.json_lines import Value
from tests.spark.helpers.contract_problems import problems

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


def test_a_reading_far_ahead_of_its_stream_is_doubted() -> None:
    assert SENSOR_READING.max_jump is not None


def test_a_reading_without_value_time_or_sensor_is_never_averaged(spark: SparkSession) -> None:
    reading: dict[str, Value] = {
        "sensor_id": "sensor_3",
        "event_time": NOON,
        "temperature": Decimal("73.0"),
        "sequence": 1,
    }
    rows = [
        reading,
        {**reading, "temperature": None},
        {**reading, "temperature": "NaN"},
        {**reading, "temperature": Decimal("-459.68")},
        {**reading, "event_time": None},
        {**reading, "event_time": "not a time"},
        {**reading, "sensor_id": ""},
    ]

    assert problems(spark, SENSOR_READING, rows) == [
        [],
        ["missing_temperature"],
        ["unreadable_temperature"],
        ["below_absolute_zero"],
        ["missing_event_time"],
        ["unreadable_event_time"],
        ["missing_sensor_id"],
    ]
