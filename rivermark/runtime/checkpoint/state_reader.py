"""State and timers of a process function, as its last finished batch left them on disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.model.errors import RivermarkError, WrongUse
from rivermark.model.stream import AnyStream, Stream
from rivermark.process.engine.stored_form import pages_of
from rivermark.process.engine.stored_state import StoredBucket
from rivermark.process.instants import BEGINNING, END_OF_TIME, Millis, moment
from rivermark.process.spark import ProcessBuild
from rivermark.process.spark.stateful import PAGES, STATE
from rivermark.runtime.checkpoint.generation import newest_entry, read_generation
from rivermark.runtime.checkpoint.state_paths import correct_state_paths


@dataclass(frozen=True)
class KeyView:
    """The stored values of one key: states by name, timers by kind, waiting events (by input)."""

    key: Any
    states: dict[str, Any]
    timers: dict[str, list[datetime]]
    waiting: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class BucketView:
    """A bucket in figures."""

    bucket: int
    keys: int
    bytes: int
    timers: int
    waiting: int
    watermark: datetime | None
    wakes_at: datetime | None


@dataclass(frozen=True)
class StateView:
    """The state of a stream after a batch: its buckets, and the keys that were asked for."""

    stream: str
    batch: int
    buckets: list[BucketView]
    keys: list[KeyView]


def state_of_stream(
    spark: SparkSession, lake: Lake, stream: AnyStream, key: str | None, limit: int
) -> StateView:
    """Read the state of a stream after its last finished batch, also while it runs.

    `key` as text picks one key; otherwise up to `limit` keys are shown. Raises RivermarkError for
    a stream without a process function, and one that has finished no batch.
    """
    a_process(stream)
    generation = read_generation(lake, stream)
    folder = lake.checkpoint(stream.name, generation.number) if generation else None
    if folder is None:
        raise RivermarkError(f"stream '{stream.name}' has not run yet")
    store, path = filesystem(folder)
    batch = newest_entry(store, f"{path}/commits")
    if batch is None:
        raise RivermarkError(f"stream '{stream.name}' has not finished a batch yet")
    correct_state_paths(folder, stream.name)
    view = StateView(stream.name, batch, [], [])
    for label, wake, bucket, size in _stored(spark, folder, batch):
        keys = bucket.keys()
        waiting = list(bucket.waiting())
        view.buckets.append(
            BucketView(
                bucket=label,
                keys=len(keys),
                bytes=size,
                timers=bucket.timer_count(),
                waiting=len(waiting),
                watermark=_known(bucket.watermark),
                wakes_at=_known(wake),
            )
        )
        known = dict.fromkeys([*keys, *(each[1] for each in waiting if each[1] is not None)])
        chosen = [each for each in known if key is None or key in texts_of(each)]
        view.keys.extend(_view(bucket, each, waiting) for each in chosen[: limit - len(view.keys)])
    return view


def a_process(stream: AnyStream) -> Stream:
    """The stream, if a process function makes its rows; else WrongUse."""
    if isinstance(stream, Stream) and isinstance(stream.build, ProcessBuild):
        return stream
    raise WrongUse(f"stream '{stream.name}' has no process function, so it keeps no state by key")


def texts_of(key: Any) -> set[str]:
    """The forms in which a person may write a key: as it prints, or several fields with commas."""
    parts = key if isinstance(key, list | tuple) else [key]
    return {str(key), ",".join(map(str, parts))}


def _stored(
    spark: SparkSession, checkpoint: str, batch: int
) -> Iterator[tuple[int, Millis | None, StoredBucket, int]]:
    """Each bucket of the state: its label, Spark's timer for it, what it holds, its bytes."""
    # The reader asks an endpoint that the session's manager of queries opens when it is made.
    _ = spark.streams

    def state(name: str) -> DataFrame:
        return (
            spark.read.format("statestore")
            .option("stateVarName", name)
            .option("batchId", batch)
            .load(checkpoint)
            .select("key.bucket", "value.*")
            .orderBy("bucket")
        )

    pages: Iterator[Row] | None = None
    for row in state(STATE).toLocalIterator():
        stored, beside = bytes(row["stored"]), None
        if pages_of(stored) is not None:
            # A checkpoint without a paged bucket may be of a release that did not know of them.
            pages = state(PAGES).toLocalIterator() if pages is None else pages
            beside = next(
                bytes(each["stored"]) for each in pages if each["bucket"] == row["bucket"]
            )
        size = len(stored) + len(beside or b"")
        yield row["bucket"], row["wake"], StoredBucket(stored, beside), size


def _view(bucket: StoredBucket, key: Any, waiting: list[tuple[str, Any, Millis, Any]]) -> KeyView:
    timers = {
        kind: [at for each in due if (at := _known(each)) is not None]
        for kind, due in bucket.timers_of(key).items()
    }
    held_back = [
        {"input": source, "at": _known(at), "event": event}
        for source, owner, at, event in waiting
        if owner == key
    ]
    return KeyView(key, bucket.state_of(key), timers, held_back)


def _known(at: Millis | None) -> datetime | None:
    """A moment that a calendar can show."""
    if at is None or at in (BEGINNING, END_OF_TIME):
        return None
    try:
        return moment(at)
    except OverflowError:
        return None
