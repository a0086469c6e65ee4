"""The streams that `bench.growth` measures: python -m bench.growth_workload HOME PROMISE_DAYS.

Reads commands from its standard input: `collect` (garbage of both heaps), `end`.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
from pathlib import Path

from pyspark.sql import SparkSession

from bench.growth import GROWING
from rivermark.runtime.spark.session import open_session
from rivermark.runtime.supervision.run import run_continuous
from rivermark.settings import Settings


def say(event: str, **facts: object) -> None:
    """Print an event for the measuring process."""
    sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
    sys.stdout.flush()


def heap_mb(spark: SparkSession) -> float:
    """Megabytes of the JVM's heap that are in use after a collection."""
    gc.collect()
    assert spark._jvm is not None
    spark._jvm.System.gc()
    runtime = spark._jvm.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 1e6


def main() -> None:
    """Run the streams until the command `end`."""
    home, promise = Path(sys.argv[1]), float(sys.argv[2])
    settings = Settings(home=home, promise_days=promise, trigger_seconds=1.0)
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


if __name__ == "__main__":
    main()
