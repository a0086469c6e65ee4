"""A stream's state in another number of partitions, its sums compared before and after.

Spark repartitions the state of a stopped checkpoint by a batch that reads nothing. The buckets of a
process function keep their labels, so that keys stay in theirs; more partitions share them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from pyspark.sql import functions as F

from rivermark.lake.filesystem import filesystem
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import AnyStream
from rivermark.process.spark.stateful import PAGES, STATE
from rivermark.runtime.checkpoint.generation import newest_entry, write_generation
from rivermark.runtime.checkpoint.process_schema import read_record, write_record
from rivermark.runtime.savepoint.manifest import Manifest, manifest_of
from rivermark.runtime.savepoint.resume import Order, resume
from rivermark.runtime.savepoint.store import take, written_by
from rivermark.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS: Final = "spark.sql.shuffle.partitions"
STORE: Final = "spark.sql.streaming.stateStore.providerClass"
Sums: TypeAlias = dict[str, tuple[int, int]]


@dataclass(frozen=True, kw_only=True)
class Rescaled:
    """A stream whose state lies in other partitions: the savepoint from before, and the sums.

    `state` is, by store, how many entries it has and the sum of their hashes: as before.
    """

    stream: str
    savepoint: str
    before: int
    after: int
    state: Sums


def check_rescalable(settings: Settings, stream: AnyStream, partitions: int) -> Manifest:
    """The stream as it is; RivermarkError where it has no state, or in as many partitions."""
    made = manifest_of(settings, stream, written_by(stream))
    if not made.has_state:
        raise RivermarkError(f"stream '{stream.name}' keeps no state: nothing is to be rescaled")
    if partitions == made.origin.shuffle_partitions:
        raise RivermarkError(f"the state of '{stream.name}' has {partitions} partitions already")
    folder = settings.lake().checkpoint(stream.name, made.generation)
    if not _conf(folder, made.batch)[STORE].endswith("RocksDBStateStoreProvider"):
        raise RivermarkError(
            f"the state of stream '{stream.name}' is on the heap, which Spark cannot repartition; "
            f"declare state_store='rocksdb' and start over: rivermark reset {stream.name}, which "
            "also takes the number of partitions that is set"
        )
    return made


def rescale(order: Order, stream: AnyStream, spark: SparkSession, partitions: int) -> Rescaled:
    """Repartition the state of a stopped stream; put back by its savepoint where sums differ.

    Broken off, it is finished by the same call. Raises as `check_rescalable`, StreamAlreadyRunning
    while the stream runs, and RivermarkError where it was put back.
    """
    settings = order.settings
    lake = settings.lake()
    made = check_rescalable(settings, stream, partitions)
    folder = lake.checkpoint(stream.name, made.generation)
    with order.lease(stream.name):
        made = take(settings, stream, on_step=order.on_step)
        before = sums_of(spark, folder)
        after: Sums = {}
        failure: Exception | None = None
        try:
            record = read_record(folder, stream.name)
            if record is not None and record.labelled_for is None:
                labelled_for = made.origin.shuffle_partitions
                write_record(folder, replace(record, labelled_for=labelled_for))
            order.on_step(f"repartitioning into {partitions}")
            if _conf(folder, made.batch)[PARTITIONS] != str(partitions):
                spark._streamingCheckpointManager.repartition(folder, partitions)
            write_generation(lake, stream, replace(made.origin, shuffle_partitions=partitions))
            after = sums_of(spark, folder)
        except Exception as error:
            failure = error
    if failure is not None or after != before:
        order.on_step("going back")
        resume(order, stream, made.id)
        why = f"the sums of its state were {before} and would be {after}"
        if failure is not None:
            why = str(failure).partition("\n")[0]
        raise RivermarkError(
            f"stream '{stream.name}' is in {made.origin.shuffle_partitions} partitions as before: "
            f"{why}"
        ) from failure
    return Rescaled(
        stream=stream.name,
        savepoint=made.id,
        before=made.origin.shuffle_partitions,
        after=partitions,
        state=after,
    )


def _conf(checkpoint: str, batch: int) -> dict[str, str]:
    """The settings that Spark wrote down with a batch."""
    store, path = filesystem(f"{checkpoint}/offsets/{batch}")
    with store.open_input_stream(path) as file:
        conf: dict[str, str] = json.loads(file.read().splitlines()[1])["conf"]
    return conf


def sums_of(spark: SparkSession, checkpoint: str) -> Sums:
    """By store of a checkpoint, as its last finished batch left them: entries, sum of hashes."""
    # The reader asks an endpoint that the session's manager of queries opens when it is made.
    _ = spark.streams
    store, path = filesystem(checkpoint)
    batch = newest_entry(store, f"{path}/commits")
    sums: Sums = {}
    for each in spark.read.format("state-metadata").load(checkpoint).collect():
        option, names = "storeName", [each["stateStoreName"]]
        if each["operatorName"].startswith("transformWithState"):
            option, names = "stateVarName", [STATE, PAGES]
        for name in names:
            reader = spark.read.format("statestore").option("batchId", batch)
            reader = reader.option("operatorId", each["operatorId"]).option(option, name)
            rows = reader.load(checkpoint).drop("partition_id")
            hashed = F.xxhash64(*rows.columns).cast("decimal(38,0)")
            (total,) = rows.agg(F.count(F.lit(1)), F.sum(hashed)).collect()
            sums[f"{each['operatorId']} {name}"] = (int(total[0]), int(total[1] or 0))
    return sums
