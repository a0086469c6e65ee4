"""The process from which Spark's Python workers are forked, with their modules imported before.

PySpark's own (`pyspark.daemon`) forks first: each worker imports Arrow, much of PySpark and the
process functions for itself, half a CPU second that a short run pays for each of its workers.
It does so because a fork keeps no thread but one, and libraries start threads when they are
imported. Of those here only one does, Arrow's second allocator, which can be told not to.

`spark_conf` names this module to Spark on one machine; executors elsewhere keep PySpark's own.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import threading
from pathlib import Path
from typing import Final

from pyspark import daemon

WORKER: Final = "pyspark.worker"
"""The module of workers that run functions; others, of data sources, import what they need."""
NEEDED: Final = (
    WORKER,
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    "rivermark.process.spark.core",
    "rivermark.process.spark.packing",
    "rivermark.process.spark.stateful",
)
NO_THREADS: Final = {"JE_ARROW_MALLOC_CONF": "background_thread:false", "OMP_NUM_THREADS": "1"}
"""What keeps libraries from starting threads when they are imported."""


def prepare() -> bool:
    """Import what workers need; whether this process can be forked still."""
    for name, value in NO_THREADS.items():
        os.environ.setdefault(name, value)
    for module in NEEDED:
        importlib.import_module(module)
    # The collector of a worker, which runs after each task, need not look at them again.
    gc.collect()
    gc.freeze()
    return threads() == 1


def threads() -> int:
    """Number of threads of this process, those of libraries included where the system tells."""
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.is_dir() else threading.active_count()


def main() -> None:
    """Serve Spark as PySpark's daemon does; as that one alone where a library started a thread."""
    if WORKER in sys.argv[1:] and not prepare():
        os.execv(sys.executable, [sys.executable, "-m", daemon.__name__, *sys.argv[1:]])  # noqa: S606
    daemon.manager()


if __name__ == "__main__":
    main()
