"""Recorded series: gaps between readings, and losses between sequence numbers."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from pyspark.sql import SparkSession

from assets.readings.gaps import find_gaps
from assets.readings.ingest import LIBRARY, TEMPERATURES
from assets.readings.library import count_messages
from assets.readings.library_messages import HIGHEST_SEQUENCE
from simulator.landing.json_lines import Value
from tests.spark.helpers.contract_problems import problems
from tests.spark.helpers.micro_batches import Feed, as_table, plain

MIDNIGHT = datetime(2024, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def hourly(hours: list[float], file: str = "a/cellar.csv") -> Feed:
    rows: list[dict[str, Value]] = [
        {"event_time": MIDNIGHT + h * HOUR, "temperature": Decimal(60), "_file": file}
        for h in hours
    ]
    return Feed(TEMPERATURES.admitted.schema, "event_time", HOUR, [rows])


def messages(*told: tuple[int, int, float]) -> Feed:
    """Node, sequence number and minutes after midnight of each message, as they arrive."""
    rows: list[dict[str, Value]] = [
        {
            "node": node,
            "sequence": number,
            "event_time": MIDNIGHT + minutes * MINUTE,
            "temperature": Decimal(20 + node),
        }
        for node, number, minutes in told
    ]
    return Feed(LIBRARY.admitted.schema, "event_time", HOUR, [rows])


def test_a_gap_lies_between_two_readings_and_says_how_many_are_missing(spark: SparkSession) -> None:
    feed = hourly([0, 1, 2, 6, 7, 8, 9, 11])

    gaps = find_gaps(as_table(spark, feed)).collect()

    assert plain(gaps, "sensor_id", "last_before", "first_after", "missing") == [
        ("cellar", at(2), at(6), 3),
        ("cellar", at(9), at(11), 1),
    ]
    assert {row.interval_seconds for row in gaps} == {3600.0}


def test_jitter_and_a_clock_set_back_are_no_gaps(spark: SparkSession) -> None:
    jitter = [0, 1.1, 1.9, 3, 4.2, 5, 6, 7]
    hour_twice = [5, 6, 7]

    assert find_gaps(as_table(spark, hourly([*jitter, *hour_twice]))).collect() == []


def test_a_gap_belongs_to_the_year_in_which_it_ends(spark: SparkSession) -> None:
    feed = hourly([-4, -3, -2, 3, 4, 5])

    [gap] = find_gaps(as_table(spark, feed)).collect()

    assert (gap.year, gap.missing) == (MIDNIGHT.date(), 4)


def test_messages_are_used_once_and_their_losses_counted_by_round(spark: SparkSession) -> None:
    # Node 2 loses round 2 although its hour is not empty; nobody is heard in round 4.
    told = messages(
        (1, 1, 0), (2, 1, 0.01), (1, 2, 1), (1, 2, 1.005), (1, 3, 2), (2, 3, 2), (2, 5, 4)
    )

    counted = count_messages(as_table(spark, told)).collect()

    assert plain(counted, "node", "expected", "used", "duplicates", "missing", "average") == [
        (1, 5, 3, 1, 2, Decimal("21.0000")),
        (2, 5, 3, 0, 2, Decimal("22.0000")),
    ]


def test_a_round_belongs_to_the_hour_of_its_first_message(spark: SparkSession) -> None:
    told = messages((1, 1, 59.99), (2, 1, 60.01), (1, 2, 61), (2, 2, 61))

    counted = count_messages(as_table(spark, told)).collect()

    assert plain(counted, "window_end", "node", "expected", "missing") == [
        (at(1), 1, 1, 0),
        (at(1), 2, 1, 0),
        (at(2), 1, 1, 0),
        (at(2), 2, 1, 0),
    ]


def test_n040_a_wild_sequence_number_makes_no_rounds_of_its_own(spark: SparkSession) -> None:
    told = messages((1, 1, 0), (1, 3, 2), (1, 2_000_000_000, 6))

    [hour] = count_messages(as_table(spark, told)).collect()

    assert (hour.expected, hour.used, hour.missing) == (4, 3, 1)


def test_n040_a_sequence_number_that_no_node_can_reach_is_quarantined(spark: SparkSession) -> None:
    def message(sequence: int) -> dict[str, Value]:
        return {"arrival_ms": 1163000060000, "node": 1, "sequence": sequence}

    given = [message(n) for n in (0, HIGHEST_SEQUENCE, HIGHEST_SEQUENCE + 1, 2_000_000_000, -1)]

    assert problems(spark, LIBRARY.contract, given) == [[], [], *[["sequence_out_of_range"]] * 3]


def at(hours: int) -> datetime:
    return (MIDNIGHT + hours * HOUR).replace(tzinfo=None)
