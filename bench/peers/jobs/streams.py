"""The workloads as streams of this platform."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bench.peers.jobs.hourly_tips import HourlyTips
from bench.peers.jobs.jumps import Jumps
from bench.peers.jobs.long_rides import LongRides
from bench.peers.jobs.ride_fares import RideFares
from bench.peers.workloads import (
    JSON_FILES,
    LATENESS_SECONDS,
    SCHEMAS,
    WORKLOADS,
    ddl,
    in_city,
)
from rivermark.model.contract import Contract, Field
from rivermark.model.stream import AnyStream, Ingest, Stream
from rivermark.model.table import Table
from rivermark.operators.filters import keep
from rivermark.operators.windows import EventWindow, SlidingWindow, TumblingWindow, per_window
from rivermark.process.spark import ProcessBuild, run_process
from rivermark.sources import FileSource

LATENESS: Final = timedelta(seconds=LATENESS_SECONDS)
FIVE_MINUTES: Final = timedelta(minutes=5)
TWO_HOURS: Final = timedelta(hours=2)

INPUTS: Final = {
    name: Table(
        name=f"bench/{name}",
        schema=ddl(columns, event_time=True),
        description=f"Measured {name}.",
        event_time="event_time",
    )
    for name, columns in SCHEMAS.items()
}


def ingest(name: str, records: str, *, keys: tuple[str, ...]) -> Ingest:
    """An ingest of JSON lines; every field is required."""
    fields = [Field(column, kind, required=True) for column, kind in SCHEMAS[records]]
    at = Field("event_time", "TIMESTAMP", required=True)
    return Ingest(
        name=name,
        source=FileSource(folder=JSON_FILES[records], pattern="*.json", settle=timedelta(0)),
        contract=Contract(
            fields=(*[field for field in fields if field.name != "event_ms"], at),
            event_time=at.name,
            keys=keys,
        ),
        lateness=LATENESS,
        description=f"Measured {records}.",
        group="bench",
    )


INGESTS: Final = {
    "door": ingest("bench/door", "rides", keys=("ride_id", "is_start")),
    "winners": ingest("bench/feed", "feed", keys=("ride_id",)),
}


def millis(column: str) -> Column:
    """A timestamp as milliseconds."""
    return F.unix_millis(F.col(column))


def cleanse(rides: DataFrame) -> DataFrame:
    """Rides inside the city."""
    inside = f"{in_city('start_lon', 'start_lat')} AND {in_city('end_lon', 'end_lat')}"
    return rides.where(inside).select(*WORKLOADS["cleanse"].names)


def tips_max(fares: DataFrame) -> DataFrame:
    """The driver with the most tips of each hour; of equals the lowest id."""
    sums = (
        fares.groupBy(
            TumblingWindow(timedelta(hours=1)).over("event_time").alias("hour"), "driver_id"
        )
        .agg(F.sum("tip").alias("tips"))
        .withColumn("end", F.window_time("hour"))
    )
    best = F.max(F.struct("tips", (-F.col("driver_id")).alias("before"))).alias("best")
    return (
        sums.groupBy(TumblingWindow(timedelta(hours=1)).over("end").alias("hour"))
        .agg(best)
        .select(
            millis("hour.end").alias("window_end_ms"),
            (-F.col("best.before")).alias("driver_id"),
            F.col("best.tips").alias("sum_tips"),
        )
    )


def averages(readings: DataFrame, window: EventWindow) -> DataFrame:
    """The average of each sensor and window."""
    windows = per_window(
        readings,
        window,
        "event_time",
        "sensor_id",
        avg_temp=F.avg("temperature"),
        cnt=F.count("*"),
    )
    return windows.select(
        millis("window_start").alias("window_start_ms"),
        millis("window_end").alias("window_end_ms"),
        "sensor_id",
        "avg_temp",
        "cnt",
    )


def tumbling(readings: DataFrame) -> DataFrame:
    """Averages of five minutes."""
    return averages(readings, TumblingWindow(FIVE_MINUTES))


def sliding(readings: DataFrame) -> DataFrame:
    """Averages of five minutes, one each minute."""
    return averages(readings, SlidingWindow(FIVE_MINUTES, timedelta(minutes=1)))


def join(rides: DataFrame, fares: DataFrame) -> DataFrame:
    """The START of each ride beside its fare; only what is written goes into state."""
    paid = ("payment_type", "tip", "tolls", "total_fare")
    columns = WORKLOADS["join"].names
    started = rides.transform(starts).select(
        *[column for column in columns if column not in paid], "event_time"
    )
    costs = fares.select(
        F.col("ride_id").alias("fare_ride_id"), F.col("event_time").alias("fare_time"), *paid
    )
    near = (
        (F.col("ride_id") == F.col("fare_ride_id"))
        & (F.col("fare_time") >= F.col("event_time") - F.lit(FIVE_MINUTES))
        & (F.col("fare_time") <= F.col("event_time") + F.lit(FIVE_MINUTES))
    )
    return started.join(costs, near).select(*columns)


def long_rides(rides: DataFrame) -> DataFrame:
    """Rides without an END within two hours of their START.

    Events of a ride at most two hours apart are one session: a START that is alone in its session
    had no END in time. One row of state a ride, where a join of the rides with themselves keeps two
    sides.
    """
    start_ms = F.max(F.when(F.col("is_start"), F.col("event_ms")))
    # The last row of each stream is a START and an END of one id, which is no ride.
    return (
        rides.groupBy(F.session_window("event_time", "2 hours").alias("session"), "ride_id")
        .agg(
            start_ms.alias("start_ms"),
            F.max("driver_id").alias("driver_id"),
            F.count("*").alias("events"),
        )
        .where("start_ms IS NOT NULL AND events = 1")
        .select("ride_id", "driver_id", "start_ms")
    )


BUILDS: Final[dict[str, Callable[..., DataFrame]]] = {
    "cleanse": cleanse,
    "tips_max": tips_max,
    "tumbling": tumbling,
    "sliding": sliding,
    "join": join,
    "long_rides": long_rides,
    "winners": tips_max,
}


def starts(rides: DataFrame) -> DataFrame:
    """The STARTs; the ENDs move the watermark alone."""
    return rides.transform(keep(F.col("is_start"), event_time="event_time"))


PROCESSES: Final[dict[str, Callable[[], ProcessBuild]]] = {
    "join": lambda: run_process(RideFares, inputs=("rides", "fares"), prepare={"rides": starts}),
    "long_rides": lambda: run_process(LongRides),
    "jumps": lambda: run_process(Jumps),
    "hourly_tips": lambda: run_process(HourlyTips),
}
EVENTS: Final = ("cleanse", "join")
"""Workloads that give about as many rows as they take."""


def streams_of(name: str, *, process: bool = False) -> list[AnyStream]:
    """The workload as declared streams; what begins with JSON lines begins with an ingest.

    With `process` it is a process function instead of native operators.
    """
    admitted = INGESTS.get(name)
    if admitted is not None and name not in BUILDS:
        return [admitted]
    workload = WORKLOADS[name]
    stream = Stream(
        name=f"bench/{name}",
        reads=(admitted,) if admitted else tuple(INPUTS[each] for each in workload.inputs),
        build=PROCESSES[name]() if process else BUILDS[name],
        writes=Table(
            name=f"bench/{name}",
            schema=ddl(workload.columns),
            description=workload.title,
        ),
        description=workload.title,
        group="bench",
        volume="events" if name in EVENTS else "results",
        lateness=LATENESS,
    )
    return [admitted, stream] if admitted else [stream]
