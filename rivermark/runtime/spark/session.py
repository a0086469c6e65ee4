"""The Spark session of a run, with the settings that event time and small machines need."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import gethostname
from typing import Any, Final

import psutil
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from rivermark.lake.filesystem import is_local
from rivermark.runtime.spark import worker_daemon
from rivermark.runtime.spark.class_cache import remember_classes
from rivermark.runtime.spark.cluster import (
    check_executors,
    executor_conf,
    is_cluster,
    name_python,
)
from rivermark.runtime.spark.jvm import Kind, driver_options
from rivermark.settings import Settings

LOCAL_CHECKPOINTS: Final = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)

CONTEXT_LOGGERS: Final = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""Loggers that print each refused plan as JSON of some kilobytes, before anybody has caught it."""

WORKER_PYTHON: Final = Path(__file__).with_name("worker_python")

BATCH_PARTS: Final = 64
"""Parts of shuffled rows of a recompute of much, before Spark joins small ones."""


def spark_conf(settings: Settings, kind: Kind = "short", slots: int = 0) -> dict[str, str]:
    """Spark settings of a run of a kind.

    `short` is for minutes (CI, backfills), `long` for streams, `large` for much that waits for
    them, `batch` for backfills that read much. The session zone is UTC, always: readers, windows
    and days depend on it. With `slots`, those of tasks that queries in real time occupy, it has
    Spark's connector for Kafka, and on this machine so many slots more: such tasks mostly wait.
    """
    conf = {
        "spark.app.name": "rivermark",
        "spark.master": with_slots(settings.master, slots),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Tasks and state files a batch are this times the stateful steps; 200 cost seconds a batch.
        "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
        # Delta reads a table's log with 50 tasks otherwise.
        "spark.databricks.delta.snapshotPartitions": "1",
        # VACUUM lists folders with this many tasks: with 10,000, the default, it took 35 s instead
        # of 3 on a table of 60 files.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
        # Planning again within a batch costs more than it gives on small ones.
        "spark.sql.adaptive.enabled": "false",
        # Results beyond it are written by executors (rivermark/runtime/spark/computed.py), and not
        # what a driver of that heap could just about hold.
        "spark.driver.maxResultSize": "512m",
        # Several queries share the cores in turn instead of one after the other.
        "spark.scheduler.mode": "FAIR",
        "spark.locality.wait": "0",
        # Of 29 live streams each has several pieces of generated code; of the 100 kept by default
        # every batch would find its own gone and compile it again.
        "spark.sql.codegen.cache.maxEntries": "2000",
        # lower() and upper() of plain ASCII text went through ICU: a sixth of all the time that
        # generated code ran in a short run. Java's own differ in a handful of exotic letters.
        "spark.sql.icu.caseMappings.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.ui.retainedExecutions": "10",
        "spark.sql.streaming.ui.enabled": "false",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.maxBatchesToRetainInMemory": "1",
        # Nanosecond times arrive as numbers and are turned into times by the reader.
        "spark.sql.legacy.parquet.nanosAsLong": "true",
        # As Delta's own files have them, where rows are staged in plain Parquet: the default is a
        # type of nanoseconds without a zone.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Pages carry checksums, Spark's own files too; unasked, a flipped bit is other rows.
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        **driver_options(
            kind, heap=settings.driver_memory, connectors=("spark-kafka",) if slots else ()
        ),
    }
    if kind == "short":
        # Generating code for whole stages, and compiling it, costs more than it saves there.
        conf["spark.sql.codegen.wholeStage"] = "false"
    if kind == "batch":
        # No stream's state depends on how many parts rows are shuffled into: as many as there are
        # bytes for, by Spark's own plan.
        conf["spark.sql.adaptive.enabled"] = "true"
        conf["spark.sql.shuffle.partitions"] = str(max(settings.shuffle_partitions, BATCH_PARTS))
    if is_local(settings.lake_root):
        # The default asks for each file that it writes whether it is a link, by starting `readlink`
        # eight times: two thirds of 2,700 processes of a short run. This one checks and renames as
        # that does.
        conf["spark.sql.streaming.checkpointFileManagerClass"] = LOCAL_CHECKPOINTS
    if is_cluster(settings):
        conf |= executor_conf(settings)
    else:
        conf |= {
            "spark.local.dir": str(scratch_folder(settings)),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.python.daemon.module": worker_daemon.__name__,
        }
    return conf | settings.spark_conf


def scratch_folder(settings: Settings) -> Path:
    """The folder of shuffled rows and of working copies of state of this process's session.

    Not below /tmp: what cleans that removes files that a run of weeks has not touched for days.
    """
    return settings.home / "scratch" / f"{gethostname()}-{os.getpid()}"


def remove_scratch(settings: Settings) -> None:
    """Remove what killed processes of this machine have left."""
    for folder in (settings.home / "scratch").glob(f"{gethostname()}-*"):
        pid = folder.name.rpartition("-")[2]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def with_slots(master: str, slots: int) -> str:
    """A master with so many slots for tasks more, where it is this machine."""
    local = re.fullmatch(r"local(?:\[(\d+|\*)(.*)\])?", master)
    if local is None or not slots:
        return master
    own = os.cpu_count() or 1 if local[1] == "*" else int(local[1] or 1)
    return f"local[{own + slots}{local[2] or ''}]"


def launch_jvm(settings: Settings, kind: Kind, log: Path, slots: int = 0) -> None:
    """Start the driver's JVM where this process has none; `open_session` waits for it.

    May run in a thread, beside other work. What Java and Spark print goes to the log, from their
    first line on, before any setting reaches them.
    """
    prepare_workers(settings)
    context: Any = SparkContext
    # Spark's own lock: who opens the session meanwhile finds this JVM.
    with context._lock:
        if context._gateway is None:
            conf = SparkConf(loadDefaults=False).setAll(
                [*spark_conf(settings, kind, slots).items()]
            )
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("ab") as file, no_jvm_left():
                output = {"stdout": file, "stderr": file}
                context._gateway = launch_gateway(conf, output)  # type: ignore[no-untyped-call]
            context._jvm = context._gateway.jvm


@contextmanager
def no_jvm_left() -> Iterator[None]:
    """Kill the JVM whose start is broken off, as by Ctrl-C.

    PySpark removes the folder in which it would say where it listens: it stays for good then, for
    that error ends its main thread, which would have noticed that its parent is gone.
    """
    this = psutil.Process()
    before = set(this.children())
    try:
        yield
    except BaseException:
        for child in set(this.children()) - before:
            with suppress(psutil.Error):
                if "spark" in " ".join(child.cmdline()):
                    child.kill()
        raise


def prepare_workers(settings: Settings) -> None:
    """Have Python workers on this machine run by the Python that runs this."""
    if is_cluster(settings):
        name_python(settings)
    else:
        remove_scratch(settings)
        # They are the first python3 of the PATH otherwise, which may lack the packages.
        os.environ["RIVERMARK_WORKER_PYTHON"] = sys.executable
        # An installer may have lost that it can be run.
        python = WORKER_PYTHON if os.access(WORKER_PYTHON, os.X_OK) else sys.executable
        os.environ.setdefault("PYSPARK_PYTHON", str(python))


def open_session(settings: Settings, kind: Kind = "short", slots: int = 0) -> SparkSession:
    """The session of this process; JVM settings count only when the first one is opened."""
    prepare_workers(settings)
    builder = SparkSession.builder.config(map={**spark_conf(settings, kind, slots)})
    with no_jvm_left():
        session: SparkSession = builder.getOrCreate()
    for name in CONTEXT_LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
    remember_classes(session)
    if is_cluster(settings):
        check_executors(session, settings)
    return session


def jvm_pid_of(spark: SparkSession) -> int | None:
    """Process id of the driver's JVM, where this process started it."""
    gateway = spark.sparkContext._gateway
    process = getattr(gateway, "proc", None)
    return int(process.pid) if process is not None else None
