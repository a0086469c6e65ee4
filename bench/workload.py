"""The streams that are measured, in a process of their own.

    python -m bench.workload live     HOME STREAM...
    python -m bench.workload timed    HOME STREAM...
    python -m bench.workload stream   HOME STREAM
    python -m bench.workload reprocess HOME STREAM DAY
    python -m bench.workload growth   HOME PROMISE_DAYS

`timed` is `live` with notes of what each batch does, in HOME/notes.jsonl (`bench.timeline`).
`growth` takes commands from its standard input: `collect` (garbage of both heaps) and `end`.

Prints one JSON object a line: `{"at": <unix seconds>, "event": ..., ...}`.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from assets.topology import TOPOLOGY
from bench import timeline
from rivermark.backfill.recompute import Order, replace
from rivermark.model.stream import Stream
from rivermark.model.topology import Topology
from rivermark.runtime.spark.session import open_session
from rivermark.runtime.supervision.hosting import Hosting
from rivermark.runtime.supervision.report import Report
from rivermark.runtime.supervision.run import run_bounded, run_continuous
from rivermark.settings import Settings

GROWTH: Final = (
    "taxi/fare_events",
    "taxi/clean_fares",
    "taxi/driver_tips",
    "taxi/hourly_winners",
)
GROWING: Final = Topology([TOPOLOGY.named(name) for name in GROWTH])


def say(event: str, **facts: object) -> None:
    """Print an event for the measuring process."""
    sys.stdout.write(json.dumps({"at": time.time(), "event": event, **facts}, default=str) + "\n")
    sys.stdout.flush()


def say_report(report: Report) -> None:
    """Print a stream's report."""
    say("report", stream=report.stream, kind=report.kind, numbers=report.numbers)


def stream(home: Path, name: str) -> None:
    """Drain what is in its inputs through one stream."""
    settings = Settings(home=home)
    spark = open_session(settings, "short")
    run_bounded(
        spark, settings, TOPOLOGY, [TOPOLOGY.named(name)], run_id="bench", on_report=say_report
    )


def reprocessed(home: Path, name: str, day: date) -> None:
    """Compute a day of a stream again: compared with what is published, replaced, recorded."""
    settings = Settings(home=home)
    spark = open_session(settings, "short")
    declared = TOPOLOGY.named(name)
    assert isinstance(declared, Stream)
    done = replace(spark, settings, Order(stream=declared, first=day, last=day, run_id="bench"))
    say("reprocessed", tables={name: o.difference.unchanged for name, o in done.tables.items()})


def live(home: Path, names: list[str], topology: Topology = TOPOLOGY) -> None:
    """Run streams until the process is ended."""
    settings = Settings(home=home, driver_memory="4g")
    hosting = Hosting(
        settings=settings,
        topology=topology,
        streams=[topology.named(name) for name in names],
        run_id="bench",
        continuous=True,
    )
    hosting.run(
        open_session(settings, hosting.session_kind(), hosting.real_time_slots()),
        threading.Event(),
        on_report=say_report,
        report_every=timedelta(seconds=10),
        paused_since=datetime.now(UTC),
    )


def growth(home: Path, promise_days: float) -> None:
    """Run the streams of `bench.growth` until the command `end`."""
    settings = Settings(home=home, promise_days=promise_days, trigger_seconds=1.0)
    spark = open_session(settings, "long")
    # Spark keeps the last 100 batches of a checkpoint: more than a short month has.
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", "10")
    stop = threading.Event()

    def host() -> None:
        run_continuous(spark, settings, GROWING, GROWING.streams, run_id="growth", stop=stop)

    thread = threading.Thread(target=host)
    thread.start()
    say("ready")
    for line in sys.stdin:
        if line.strip() == "collect":
            say("collected", heap_mb=round(heap_mb(spark), 1))
        elif line.strip() == "end":
            break
    stop.set()
    thread.join()
    say("ended")


def heap_mb(spark: SparkSession) -> float:
    """Megabytes of the JVM's heap that are in use after a collection."""
    gc.collect()
    assert spark._jvm is not None
    spark._jvm.System.gc()
    runtime = spark._jvm.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 1e6


if __name__ == "__main__":
    mode, where, *rest = sys.argv[1:]
    if mode == "stream":
        stream(Path(where), rest[0])
    elif mode == "reprocess":
        reprocessed(Path(where), rest[0], date.fromisoformat(rest[1]))
    elif mode == "growth":
        growth(Path(where), float(rest[0]))
    else:
        if mode == "timed":
            timeline.take_notes(Path(where) / "notes.jsonl")
        live(Path(where), rest)
