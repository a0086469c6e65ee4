"""Rows before they are published: what stops them, what does not, and where they are kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.types import (
    DecimalType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rivermark import Daily, Stream, Table
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.model import expectations as expect
from rivermark.model.check import Severity
from rivermark.model.suite import Suite
from rivermark.quality.errors import PublicationBlocked
from rivermark.quality.publish_gate import audit, broken_rules
from tests.unit.quality.planted import arrow_schema

NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)
TIPS = Table(
    name="taxi/tips",
    schema=StructType(
        [
            StructField("ride_id", LongType()),
            StructField("driver", StringType()),
            StructField("at", TimestampType()),
            StructField("tip", DecimalType(12, 2)),
        ]
    ),
    description="Tips.",
    event_time="at",
    keys=("ride_id",),
    days=Daily("at", date(2026, 1, 1)),
    personal=("driver",),
)
SUITE = Suite(
    "taxi/tips",
    (
        expect.between("tip", 0, 100),
        expect.matches_regex("driver", r"D\d+", allow_null_share=0.5, severity="warning"),
        expect.no_rows_where("tip = 13", name="nobody tips 13", severity="info"),
        expect.no_rows_where("tip = 7", name="few tip 7", at_most=1),
    ),
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = Lake(str(tmp_path))
    create_table(found, TIPS)
    return found


@pytest.fixture
def stream() -> Stream:
    return Stream(
        name="taxi/tips",
        reads=(TIPS,),
        build=lambda rows: rows,
        writes=TIPS,
        description="Tips.",
        group="taxi",
        lateness=timedelta(0),
        suite=SUITE,
    )


def tips(*rows: tuple[Any, ...]) -> pa.Table:
    """Ride, tip, driver, hours after nine."""
    found = []
    for ride, tip, *more in rows:
        driver = more[0] if more else "D1"
        hours = more[1] if len(more) > 1 else 0
        at = None if hours is None else NINE + timedelta(hours=hours)
        money = None if tip is None else Decimal(tip)
        found.append({"ride_id": ride, "driver": driver, "at": at, "tip": money})
    return pa.Table.from_pylist(found, schema=arrow_schema(TIPS.schema))


def refused(lake: Lake) -> list[int]:
    return sorted(DeltaTable(lake.staged(TIPS)).to_pyarrow_table()["ride_id"].to_pylist())


@pytest.mark.parametrize("severity", ["critical", "warning"])
def test_b080_a_rule_without_an_answer_refuses_the_rows_and_is_named(
    lake: Lake, stream: Stream, severity: Severity
) -> None:
    asked = replace(
        stream,
        suite=Suite(
            "taxi/tips",
            (
                expect.no_rows_where("CAST(driver AS INT) > 1", name="cast", severity=severity),
                expect.no_rows_where(
                    "nowhere < 0", name="nowhere is at least 0", severity=severity
                ),
                expect.between("tip", 0, 100),
            ),
        ),
    )

    with pytest.raises(PublicationBlocked) as blocked:
        audit(lake, asked, [(TIPS, tips((1, 101), (2, 5)))])

    message = str(blocked.value)
    assert "or rules that have no answer" in message
    assert "'tip lies from 0 to 100' by 1 row" in message
    assert (
        "suite 'taxi/tips', rule 'cast' could not be evaluated: Could not convert string 'x' to"
        in message
    )
    assert "suite 'taxi/tips', rule 'nowhere is at least 0' could not be evaluated: " in message
    assert refused(lake) == [1, 2]


def test_good_rows_pass_and_leave_no_trace(lake: Lake, stream: Stream) -> None:
    audit(lake, stream, [(TIPS, tips((1, 5), (2, 0)))])

    assert not Path(lake.staged(TIPS)).exists()


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([(1, 101)], "'tip lies from 0 to 100' by 1 row"),
        ([(1, -1), (2, 5)], "'tip lies from 0 to 100' by 1 row"),
        ([(1, None)], "'tip is given' by 1 row"),
        ([(1, 5, "D1", None)], "'at is given' by 1 row"),
        ([(1, 5), (1, 6), (2, 5)], "'ride_id occur once' by 2 rows"),
    ],
)
def test_a_broken_critical_rule_stops_all_rows_and_keeps_them(
    lake: Lake, stream: Stream, rows: list[tuple[Any, ...]], told: str
) -> None:
    with pytest.raises(PublicationBlocked) as stopped:
        audit(lake, stream, [(TIPS, tips(*rows))])

    assert told in str(stopped.value)
    assert "rivermark show taxi/tips --refused" in str(stopped.value)
    assert refused(lake) == sorted(row[0] for row in rows)


def test_no_value_of_a_row_is_in_the_text_of_the_error(lake: Lake, stream: Stream) -> None:
    with pytest.raises(PublicationBlocked) as stopped:
        audit(lake, stream, [(TIPS, tips((1, 4711, "Ada")))])

    assert "Ada" not in str(stopped.value)
    assert "4711" not in str(stopped.value)


def test_what_only_warns_or_speaks_of_the_whole_table_stops_nothing(
    lake: Lake, stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    audit(lake, stream, [(TIPS, tips((1, 13, "Ada"), (2, 7, None), (3, 7, None)))])

    assert "'driver looks like D\\d+' by 1 row are published all the same" in caplog.text


def test_a_key_that_the_table_has_already_stops_the_rows(lake: Lake, stream: Stream) -> None:
    write_deltalake(lake.path(TIPS), tips((1, 5), (2, 6)), mode="append")

    with pytest.raises(PublicationBlocked, match="'ride_id occur once' by 1 row"):
        audit(lake, stream, [(TIPS, tips((2, 6), (3, 1)))])

    audit(lake, stream, [(TIPS, tips((3, 1)))])


def test_rows_that_take_the_place_of_a_day_may_have_its_keys(lake: Lake, stream: Stream) -> None:
    write_deltalake(lake.path(TIPS), tips((1, 5), (2, 6, "D1", 24)), mode="append")

    audit(lake, stream, [(TIPS, tips((1, 7)))], instead_of=[NINE.date()])
    with pytest.raises(PublicationBlocked, match="'ride_id occur once' by 1 row"):
        audit(lake, stream, [(TIPS, tips((2, 7)))], instead_of=[NINE.date()])


def test_refused_rows_go_when_their_place_is_taken_by_good_ones(lake: Lake, stream: Stream) -> None:
    with pytest.raises(PublicationBlocked):
        audit(lake, stream, [(TIPS, tips((1, -1)))])
    with pytest.raises(PublicationBlocked):
        audit(lake, stream, [(TIPS, tips((2, -1), (3, 1)))])
    assert refused(lake) == [2, 3]

    audit(lake, stream, [(TIPS, tips((2, 1), (3, 1)))])

    assert not Path(lake.staged(TIPS)).exists()


def test_the_answer_is_the_same_however_the_rows_are_cut(lake: Lake, stream: Stream) -> None:
    """Nothing is asked of a batch that another batch could mend."""
    whole = tips((1, 5), (2, None), (3, 200), (4, 7, None), (5, 7))
    at_once = {rule.name: n for rule, n in broken_rules(lake, stream, TIPS, whole)[0].items()}

    one_by_one: dict[str, int] = {}
    for n in range(whole.num_rows):
        for rule, rows in broken_rules(lake, stream, TIPS, whole.slice(n, 1))[0].items():
            one_by_one[rule.name] = one_by_one.get(rule.name, 0) + rows

    assert one_by_one == at_once


def test_no_rows_break_nothing(lake: Lake, stream: Stream) -> None:
    audit(lake, stream, [(TIPS, tips())])
