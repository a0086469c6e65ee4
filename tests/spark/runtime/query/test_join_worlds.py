"""Joins of two streams over random worlds: the oracle's rows live, drained and recomputed.

A world has rows without a key, keys that computers compare in odd ways, several rows of a key on
both sides, pairs at the very bound, a feed that rests, and midnight in the middle.
RIVERMARK_FUZZ_SEED and RIVERMARK_FUZZ_ROUNDS choose how many, beginning where.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import product
from random import Random
from typing import Final

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark import Daily, Stream, Table, columns
from rivermark.backfill.recompute import Order, rehearse
from rivermark.settings import Settings
from tests.spark.helpers.sensors import (
    FIRST_DAY,
    MINUTE,
    READINGS,
    TEN,
    admit,
    reading,
    rows,
    run,
)
from tests.spark.helpers.stateful_streams import APART, ECHOES

pytestmark = pytest.mark.spark

SEED: Final = int(os.environ.get("RIVERMARK_FUZZ_SEED", "1"))
ROUNDS: Final = int(os.environ.get("RIVERMARK_FUZZ_ROUNDS", "1"))

MIDNIGHT: Final = 14 * 60.0
"""Minutes after ten, when the readings begin."""
SPAN: Final = 24.0
DELAY: Final = 0.9
"""Rows arrive so many minutes late at most, less than the lateness of the feeds."""
FIRST, SECOND = (TEN.date() + timedelta(days=n) for n in range(2))
RANGES: Final = ((FIRST, FIRST), (SECOND, SECOND), (FIRST, SECOND))

KINDS: Final = ("inner", "left_outer", "right_outer", "full_outer", "left_semi")
NOTES: Final = (None, None, "NaN", "-0.0", "0.0", "1", "a")
Ranges = tuple[tuple[date, date], ...]
Row = tuple[int, datetime, str, str | None]
"""Number, time, sensor and note."""


@dataclass(frozen=True)
class Key:
    """A way to find partners: for Spark, and in plain Python."""

    name: str
    columns: Callable[[], Column]
    equal: Callable[[Row, Row], bool]


def plain(one: str | None, other: str | None) -> bool:
    return one is not None and one == other


def emptied(one: str | None, other: str | None) -> bool:
    return one != "a" and plain(one, other)


def numbers(one: str | None, other: str | None) -> bool:
    if one in (None, "a") or other in (None, "a"):
        return False
    left, right = float(str(one)), float(str(other))
    return left == right or (math.isnan(left) and math.isnan(right))


KEYS: Final = (
    Key("plain", lambda: F.col("note") == F.col("echo_note"), lambda r, e: plain(r[3], e[3])),
    Key(
        "null_safe",
        lambda: F.col("note").eqNullSafe(F.col("echo_note")),
        lambda r, e: r[3] == e[3],
    ),
    Key(
        "emptied",
        lambda: F.expr("nullif(note, 'a') = nullif(echo_note, 'a')"),
        lambda r, e: emptied(r[3], e[3]),
    ),
    Key(
        "numbers",
        lambda: F.expr("try_cast(note AS double) = try_cast(echo_note AS double)"),
        lambda r, e: numbers(r[3], e[3]),
    ),
    Key(
        "two",
        lambda: F.expr("sensor = echo_sensor AND note = echo_note"),
        lambda r, e: r[2] == e[2] and plain(r[3], e[3]),
    ),
)


@dataclass(frozen=True)
class Join:
    """A kind of join of two streams by a key."""

    kind: str
    key: Key


def joined(join: Join, suffix: str = "") -> Stream:
    """Readings and echoes by a kind of join: the numbers of both, and the time of either."""
    kind = join.kind

    def build(readings: DataFrame, echoes: DataFrame) -> DataFrame:
        echoes = echoes.select(
            *(F.col(c).alias(f"echo_{c}") for c in ("at", "sensor", "note", "temperature"))
        )
        apart = F.lit(APART)
        near = F.col("echo_at").between(F.col("at") - apart, F.col("at") + apart)
        pairs = readings.select("at", "sensor", "note", "temperature").join(
            echoes, join.key.columns() & near, kind
        )
        if kind == "left_semi":
            pairs = pairs.withColumns(
                {"echo_at": F.col("at"), "echo_temperature": F.lit(None).cast("decimal(9,3)")}
            )
        return pairs.select(
            F.coalesce("at", "echo_at").alias("at"),
            F.col("temperature").cast("int").alias("reading"),
            F.col("echo_temperature").cast("int").alias("echo"),
        )

    name = f"test/{kind}_{join.key.name}{suffix}"
    return Stream(
        reads=(READINGS, ECHOES),
        build=build,
        writes=Table(
            name=name,
            schema=columns("at timestamp, reading int, echo int"),
            description="Readings and their echoes.",
            event_time="at",
            days=Daily(column="at", start=FIRST_DAY),
        ),
        group="test",
        margin=APART,
    )


def random_feeds(seed: int) -> tuple[list[Row], list[Row]]:
    """Both sides of a world, in order of time."""
    random = Random(seed)
    hot = random.choice(NOTES)
    moments = [random.uniform(-SPAN / 2, SPAN / 2) for _ in range(40)]
    silent = random.uniform(-SPAN / 2, SPAN / 2)

    def row(number: int, minute: float) -> Row:
        note = hot if random.random() < 0.3 else random.choice(NOTES)
        return number, TEN + (MIDNIGHT + minute) * MINUTE, f"s{random.randint(1, 2)}", note

    readings = [row(n, minute) for n, minute in enumerate(moments)]
    echoes = []
    for number, (_, at, sensor, note) in enumerate(readings):
        bound = random.choice((APART, -APART, APART + timedelta(microseconds=1), timedelta(0)))
        if random.random() < 0.4:
            echoes.append((100 + number, at + bound, sensor, note))
        else:
            echoes.append(row(100 + number, random.uniform(-SPAN / 2, SPAN / 2)))
    rests = TEN + (MIDNIGHT + silent) * MINUTE
    echoes = [e for e in echoes if not rests <= e[1] < rests + SPAN / 3 * MINUTE]
    return sorted(readings, key=lambda r: r[1]), sorted(echoes, key=lambda r: r[1])


def commit(
    settings: Settings, seed: int, readings: list[Row], echoes: list[Row], cuts_a_feed: int
) -> None:
    """Admit both feeds cut by cut, each row within the lateness, then one that closes both days."""
    random = Random(seed)
    cut = SPAN / cuts_a_feed
    for feed, ingest in ((readings, READINGS), (echoes, ECHOES)):
        cuts: dict[float, list[str]] = {}
        for number, at, sensor, note in feed:
            minute = (at - TEN) / MINUTE
            line = reading(0, sensor, number, note=note, at=_text(at))
            cuts.setdefault((minute + random.uniform(0, DELAY)) // cut, []).append(line)
        for _, lines in sorted(cuts.items()):
            admit(settings, *lines, ingest=ingest)
        # With a key: Spark drops rows without one before they could move the watermark, on each
        # side on which the join keeps no row alone.
        admit(settings, reading(MIDNIGHT + 3 * 24 * 60, temperature=999, note="7"), ingest=ingest)


def _text(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def expected(join: Join, readings: list[Row], echoes: list[Row]) -> list[tuple[int, ...]]:
    """What the join means in SQL, row by row."""
    kind, equal = join.kind, join.key.equal
    pairs = [
        (r, e) for r, e in product(readings, echoes) if equal(r, e) and abs(e[1] - r[1]) <= APART
    ]
    with_echo, with_reading = ({row[0] for row in side} for side in zip(*pairs, strict=True))
    result: list[tuple[int, ...]] = []
    if kind == "left_semi":
        return sorted((number, -1) for number in with_echo)
    result += [(r[0], e[0]) for r, e in pairs]
    if kind in ("left_outer", "full_outer"):
        result += [(r[0], -1) for r in readings if r[0] not in with_echo]
    if kind in ("right_outer", "full_outer"):
        result += [(-1, e[0]) for e in echoes if e[0] not in with_reading]
    return sorted(result)


def published(spark: SparkSession, settings: Settings, stream: Stream) -> list[tuple[int, ...]]:
    """The rows of both days; -1 where a side is absent."""
    end = datetime.combine(SECOND + timedelta(days=1), datetime.min.time())
    return sorted(
        tuple(-1 if number is None else int(number) for number in row[1:])
        for row in rows(spark, settings, stream.tables[0], "at", "reading", "echo")
        if row[0] < end
    )


def check_world(
    spark: SparkSession, settings: Settings, seed: int, *joins: Join, cuts: int, ranges: Ranges
) -> None:
    """A world by every route: live in cuts, drained, and days recomputed."""
    readings, echoes = random_feeds(seed)
    commit(settings, seed, readings, echoes, cuts)
    live = [joined(join) for join in joins]
    drained = [joined(join, "_drained") for join in joins]
    run(spark, settings.model_copy(update={"files_per_trigger": 1}), *live)
    run(spark, settings, *drained)
    for join, *streams in zip(joins, live, drained, strict=True):
        wanted = expected(join, readings, echoes)
        for stream in streams:
            assert published(spark, settings, stream) == wanted, (seed, stream.name)
        for first, last in ranges:
            order = Order(stream=streams[0], first=first, last=last, run_id="again")
            done = rehearse(spark, settings, order).tables[streams[0].name].difference
            assert done.same, (seed, streams[0].name, first, last, done.sentence())


@pytest.mark.long
def test_n058_rows_without_a_key_find_no_partner_by_any_route(
    spark: SparkSession, settings: Settings
) -> None:
    full = Join("full_outer", KEYS[0])
    check_world(spark, settings, SEED, full, cuts=2, ranges=RANGES[1:])


@pytest.mark.long
@pytest.mark.timeout(600 * max(ROUNDS, 1))
def test_every_kind_of_join_has_the_rows_of_the_oracle_by_every_route(
    spark: SparkSession, settings: Settings
) -> None:
    """Five rounds have every kind with every key."""
    for seed in range(SEED, SEED + ROUNDS):
        own = Settings(home=settings.home / str(seed), trigger_seconds=0.1)
        keys = [KEYS[(seed + n) % len(KEYS)] for n in range(len(KINDS))]
        joins = [Join(kind, key) for kind, key in zip(KINDS, keys, strict=True)]
        check_world(spark, own, seed, *joins, cuts=6, ranges=RANGES)
