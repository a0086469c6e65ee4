"""Plain Spark Structured Streaming to Delta, every setting at its default but two.

python -m bench.peers.jobs.plain_spark WORKLOAD DATA_FOLDER OUT_FOLDER [PARTITIONS]

The two: the heap is that of ours (with the default of 1 GB a million rows of backlog do not fit),
and the session's time zone is UTC. It reads what is there (availableNow) and commits by Delta's own
sink. It shares no code with the platform. PARTITIONS are those of its shuffles (default 200): each
costs a state store and a task a batch, so two are quicker on two cores.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench.peers.workloads import (
    JSON_FILES,
    LATENESS_SECONDS,
    SCHEMAS,
    WORKLOADS,
    arguments,
    ddl,
    in_city,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def session() -> SparkSession:
    """A session with Delta, as its quick start shows; the JARs are given by a variable."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark: SparkSession = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.jars", os.environ["BENCH_SPARK_JARS"])
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def parquet(spark: SparkSession, data: str, name: str) -> DataFrame:
    """An input as a stream, with its watermark."""
    schema = ddl(SCHEMAS[name], event_time=True)
    events = spark.readStream.schema(schema).parquet(f"{data}/parquet/{name}")
    return events.withWatermark("event_time", f"{LATENESS_SECONDS} seconds")


def json_lines(spark: SparkSession, data: str, name: str, most: int = 1_000) -> DataFrame:
    """JSON lines as a stream, so many files a batch (by default Spark's own number)."""
    columns = [column for column in SCHEMAS[name] if column[0] != "event_ms"]
    reader = spark.readStream.schema(ddl(columns, event_time=True))
    return reader.option("maxFilesPerTrigger", most).json(f"{data}/json/{JSON_FILES[name]}")


def feed(spark: SparkSession, data: str) -> DataFrame:
    """The fares of the feed that can be read, with their watermark.

    A row is late by the watermark of the batch before the last, so the late ones, which are in the
    last file, need two batches before theirs. Ten files a batch are a million rows.
    """
    files = len(list(Path(data, "json", JSON_FILES["feed"]).glob("*.json")))
    rows = json_lines(spark, data, "feed", min(10, (files - 1) // 2))
    whole = rows.where("driver_id IS NOT NULL AND tip IS NOT NULL AND event_time IS NOT NULL")
    return whole.withWatermark("event_time", f"{LATENESS_SECONDS} seconds")


def millis(column: Column) -> Column:
    """A timestamp as milliseconds."""
    return F.unix_millis(column)


def question(spark: SparkSession, name: str, data: str) -> DataFrame:
    """The workload as a streaming frame."""
    columns = WORKLOADS[name].names
    if name == "door":
        rows = json_lines(spark, data, "rides")
        return rows.withColumn("event_ms", millis(F.col("event_time"))).select(*columns)
    if name == "cleanse":
        inside = f"{in_city('start_lon', 'start_lat')} AND {in_city('end_lon', 'end_lat')}"
        return parquet(spark, data, "rides").where(inside).select(*columns)
    if name in ("tips_max", "winners"):
        fares = parquet(spark, data, "fares") if name == "tips_max" else feed(spark, data)
        sums = fares.groupBy(F.window("event_time", "1 hour"), "driver_id").agg(
            F.sum("tip").alias("tips")
        )
        best = F.max(F.struct("tips", (-F.col("driver_id")).alias("before"))).alias("best")
        return (
            sums.groupBy(F.window(F.window_time("window"), "1 hour"))
            .agg(best)
            .select(
                millis(F.col("window.end")).alias("window_end_ms"),
                (-F.col("best.before")).alias("driver_id"),
                F.col("best.tips").alias("sum_tips"),
            )
        )
    if name in ("tumbling", "sliding"):
        slide = "5 minutes" if name == "tumbling" else "1 minute"
        return (
            parquet(spark, data, "readings")
            .groupBy(F.window("event_time", "5 minutes", slide), "sensor_id")
            .agg(F.avg("temperature").alias("avg_temp"), F.count("*").alias("cnt"))
            .withColumn("window_start_ms", millis(F.col("window.start")))
            .withColumn("window_end_ms", millis(F.col("window.end")))
            .select(*columns)
        )
    if name == "hourly_tips":
        return (
            parquet(spark, data, "wide_fares")
            .groupBy(F.window("event_time", "1 hour"), "driver_id")
            .agg(F.sum("tip").alias("tips"))
            .withColumn("window_end_ms", millis(F.col("window.end")))
            .select(*columns)
        )
    rides = parquet(spark, data, "rides")
    starts = rides.where("is_start").alias("r")
    if name == "join":
        fares = parquet(spark, data, "fares").alias("f")
        near = (
            "r.ride_id = f.ride_id AND f.event_time BETWEEN r.event_time - INTERVAL 5 MINUTES "
            "AND r.event_time + INTERVAL 5 MINUTES"
        )
        paid = {"payment_type", "tip", "tolls", "total_fare"}
        picked = [f"{'f' if column in paid else 'r'}.{column}" for column in columns]
        return starts.join(fares, F.expr(near)).select(*picked)
    ends = rides.where("NOT is_start").select("ride_id", "event_time").alias("e")
    within = (
        "r.ride_id = e.ride_id AND e.event_time BETWEEN r.event_time "
        "AND r.event_time + INTERVAL 2 HOURS"
    )
    open_ones = starts.join(ends, F.expr(within), "left_outer").where("e.ride_id IS NULL")
    return open_ones.select("r.ride_id", "r.driver_id", F.col("r.event_ms").alias("start_ms"))


def drain(results: DataFrame, out: str) -> None:
    """Write all there is to a Delta table, and end the session."""
    query = (
        results.writeStream.format("delta")
        .option("checkpointLocation", f"{out}-checkpoint")
        .trigger(availableNow=True)
        .start(out)
    )
    query.awaitTermination()
    results.sparkSession.stop()


def main() -> None:
    """Run one workload."""
    name, data, out = arguments()
    spark = session()
    if len(sys.argv) > 4:
        spark.conf.set("spark.sql.shuffle.partitions", sys.argv[4])
    drain(question(spark, name, str(Path(data).resolve())), out)


if __name__ == "__main__":
    main()
