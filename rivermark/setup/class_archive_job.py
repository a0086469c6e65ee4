"""A small run of everything the platform does with Spark, to find out which classes it loads.

`class_archive` runs it in a JVM that archives its classes when it ends: the closer this is to
the real streams, the more of their start is in the archive. Its results are thrown away.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

RIDE = "id BIGINT, driver BIGINT, at TIMESTAMP, start BOOLEAN, fee DECIMAL(12,2), zone STRING"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def main(folder: Path, settings: dict[str, str]) -> None:
    """Write rides as files, let them pass through the usual operators, and end the JVM."""
    # Workers take the first python3 of the PATH otherwise, which may lack the packages.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("class archive")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    write_files(spark, folder)
    admit(spark, folder)
    windows_and_joins(spark, folder)
    keyed_process(spark, folder)
    rewrite(spark, folder)
    end_the_jvm(spark)


def write_files(spark: SparkSession, folder: Path) -> None:
    """Rides in the formats that the file source reads."""
    rows = [
        {
            "id": number // 2,
            "driver": number % 7,
            "at": f"2026-01-01T{number // 60 % 24:02}:{number % 60:02}:00Z",
            "start": number % 2 == 0,
            "fee": f"{number % 50}.25",
            "zone": "NA",
        }
        for number in range(2000)
    ]
    for part in range(3):
        file = folder / "json" / f"{part}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(json.dumps(row) for row in rows[part::3]) + "\n")
    rides = spark.read.schema(RIDE).json(str(folder / "json"))
    rides.write.parquet(str(folder / "parquet"))
    rides.write.option("header", True).option("compression", "gzip").csv(str(folder / "csv"))
    spark.read.parquet(str(folder / "parquet")).count()
    spark.read.option("header", True).csv(str(folder / "csv")).dropDuplicates(["id"]).count()


def admit(spark: SparkSession, folder: Path) -> None:
    """Text lines, parsed and split in three by a batch function, each part written once."""

    def split(batch: DataFrame, number: int) -> None:
        parsed = batch.withColumn("ride", F.from_json("value", RIDE)).persist()
        parts: dict[str, Column] = {
            "rides": F.col("ride.id").isNotNull() & (F.col("ride.id") % 10 != 0),
            "late": F.col("ride.id") % 10 == 0,
            "refused": F.col("ride.id").isNull(),
        }
        parsed.agg(F.max("ride.at"), F.count("*"), F.sum("ride.fee")).collect()
        for table, condition in parts.items():
            (
                parsed.where(condition)
                .select("ride.*", F.to_date("ride.at").alias("day"))
                .write.format("delta")
                .mode("append")
                .partitionBy("day")
                .option("txnAppId", table)
                .option("txnVersion", number)
                .option("userMetadata", "{}")
                .save(str(folder / table))
            )
        parsed.unpersist()

    lines = spark.readStream.option("maxFilesPerTrigger", 2).text(str(folder / "json"))
    observed = lines.observe("lines", F.count("*").alias("rows"))
    drain(observed.writeStream.foreachBatch(split), folder / "checkpoints" / "admission")


def windows_and_joins(spark: SparkSession, folder: Path) -> None:
    """Event-time windows, sessions, deduplication and a join of two streams."""
    hourly = (
        watermarked(spark, folder)
        .groupBy(F.window("at", "1 hour"), "driver")
        .agg(F.sum("fee").alias("fee"), F.avg("fee"), F.count("*"), F.max("at"))
    )
    drain_to_table(hourly.select("window.start", "driver", "fee"), folder, "hourly")
    sessions = (
        watermarked(spark, folder).groupBy(F.session_window("at", "10 minutes"), "driver").count()
    )
    drain_to_table(sessions.select("session_window.end", "driver", "count"), folder, "sessions")
    once = watermarked(spark, folder).dropDuplicatesWithinWatermark(["id", "start"])
    drain_to_table(once, folder, "once")
    starts = watermarked(spark, folder).where("start").select("id", "at", "driver")
    ends = watermarked(spark, folder).where("NOT start").selectExpr("id end_id", "at end_at")
    near = F.expr("id = end_id AND end_at BETWEEN at AND at + INTERVAL 2 HOURS")
    drain_to_table(starts.join(ends, near, "leftOuter"), folder, "pairs")


class Counts(StatefulProcessor):
    """Counts the rows of each key, in state that ends with a timer."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        self.handle = handle
        self.count = handle.getValueState("count", "rows BIGINT")

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,
    ) -> Iterator[Row]:
        """Count, and register a timer."""
        before = self.count.get()
        total = (before[0] if before else 0) + sum(1 for _ in rows)
        self.count.update((total,))
        self.handle.registerTimer(timerValues.getCurrentWatermarkInMs() + 1)
        yield Row(driver=key[0], rows=total)

    def handleExpiredTimer(
        self,
        key: Any,
        timerValues: Any,
        expiredTimerInfo: Any,
    ) -> Iterator[Row]:
        """Forget the key."""
        self.count.clear()
        yield Row(driver=key[0], rows=0)

    def close(self) -> None:
        """Nothing to close."""


def keyed_process(spark: SparkSession, folder: Path) -> None:
    """A Python process function with state in RocksDB."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    counts = (
        watermarked(spark, folder)
        .groupBy("driver")
        .transformWithState(Counts(), "driver BIGINT, rows BIGINT", "append", "eventTime")
    )
    drain_to_table(counts, folder, "counts")
    spark.conf.unset("spark.sql.streaming.stateStore.providerClass")


def rewrite(spark: SparkSession, folder: Path) -> None:
    """Merge, replace a day, read an old version and the history."""
    path = str(folder / "rides")
    rides = DeltaTable.forPath(spark, path)
    day = spark.read.format("delta").load(path).where("day = '2026-01-01'").persist()
    (
        rides.alias("old")
        .merge(
            day.dropDuplicates(["id", "start"]).alias("new"),
            "old.id = new.id AND old.start = new.start",
        )
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    )
    overwrite = day.write.format("delta").mode("overwrite")
    overwrite.option("replaceWhere", "day = '2026-01-01'").save(path)
    before = spark.read.format("delta").option("versionAsOf", 0).load(path)
    before.exceptAll(spark.read.format("delta").load(path)).groupBy("driver").count().toPandas()
    rides.history(5).collect()


def watermarked(spark: SparkSession, folder: Path) -> DataFrame:
    """The admitted rides as a stream."""
    source = spark.readStream.format("delta").option("withEventTimeOrder", "true")
    return source.load(str(folder / "rides")).withWatermark("at", "1 minute")


def drain_to_table(frame: DataFrame, folder: Path, table: str) -> None:
    """Append a stream's results to a table of their own."""
    writer = frame.writeStream.format("delta").option("path", str(folder / table))
    drain(writer.outputMode("append"), folder / "checkpoints" / table)


def drain(writer: Any, checkpoint: Path) -> None:
    """Run a query over all of its input."""
    query = writer.option("checkpointLocation", str(checkpoint)).queryName(checkpoint.name)
    query.trigger(availableNow=True).start().awaitTermination()


def end_the_jvm(spark: SparkSession) -> None:
    """Wait for the JVM's end, since it writes the archive only then."""
    gateway: Any = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
