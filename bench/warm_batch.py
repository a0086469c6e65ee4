"""What one warm micro-batch costs: ours beside Spark's own Delta sink, on the same input.

    python -m bench warm_batch [--streams stateless,windowed,join] [--repeats 30] [--out FILE]

One driver, every stream with its real host and supervisor. An input commit is one batch
(`files_per_trigger` is 1) and is revealed only when its turn comes, so nothing is counted but the
batches. Figures are CPU seconds of the whole process tree for one batch, after a warm-up, by the
number of rows in a batch; `native` is the same query written by `writeStream.format("delta")`. The
written table holds `--files` files before: the cost must not depend on it.
"""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction, RemoveAction
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType

from bench.figures import options_of, report
from bench.process_tree import TreeMeter
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.model.stream import Stream, table_of
from rivermark.model.table import Daily, Table
from rivermark.operators.windows import TumblingWindow, per_window
from rivermark.runtime.spark.session import open_session
from rivermark.runtime.supervision.supervisor import Supervisor
from rivermark.settings import Settings

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
SIZES = (0, 1, 1000)
KEYS = 50
SUM = DecimalType(22, 2)


def table(name: str, schema: str, event_time: str = "event_time") -> Table:
    """A table of the bench."""
    return Table(
        name=f"bench/{name}",
        schema=schema,
        description=name,
        event_time=event_time,
        days=Daily(column=event_time, start=date(2026, 1, 1)),
    )


EVENT = "id long, event_time timestamp, driver_id long, tip decimal(12,2)"
SUMS = """
    driver_id long, window_start timestamp, window_end timestamp, tips decimal(22,2), fares long"""
FARES = table("fares", EVENT)
RIDES = table("rides", EVENT)


def sums(fares: DataFrame) -> DataFrame:
    """Tips per driver and minute."""
    minute = TumblingWindow(timedelta(minutes=1))
    total = F.sum("tip").cast(SUM)
    return per_window(fares, minute, "event_time", "driver_id", tips=total, fares=F.count("*"))


def joined(rides: DataFrame, fares: DataFrame) -> DataFrame:
    """Each ride beside its fare."""
    left = rides.select("id", "event_time", "driver_id")
    right = fares.select(F.col("id").alias("fare"), F.col("event_time").alias("paid"), "tip")
    near = F.expr("paid BETWEEN event_time - INTERVAL 2 MINUTES AND event_time + INTERVAL 2 MINUTE")
    return left.join(right, (F.col("id") == F.col("fare")) & near, "inner").select(
        "id", "event_time", "driver_id", "tip"
    )


def paid(fares: DataFrame) -> DataFrame:
    """Fares with a tip."""
    return fares.where("tip > 0").select("id", "event_time", "driver_id", "tip")


COMMON: dict[str, Any] = {"description": "bench", "group": "bench", "lateness": timedelta(0)}
STREAMS = {
    "stateless": Stream(
        name="bench/paid",
        reads=(FARES,),
        build=paid,
        writes=table("paid", EVENT),
        volume="events",
        **COMMON,
    ),
    "windowed": Stream(
        name="bench/sums",
        reads=(FARES,),
        build=sums,
        writes=table("sums", SUMS, event_time="window_end"),
        **COMMON,
    ),
    "join": Stream(
        name="bench/joined",
        reads=(RIDES, FARES),
        build=joined,
        writes=table("joined", EVENT),
        **COMMON,
    ),
    "refresh": Stream(
        name="bench/refreshed",
        reads=(FARES,),
        build=paid,
        writes=table("refreshed", EVENT),
        kind="refresh",
        **(COMMON | {"lateness": None}),
    ),
}


@dataclass
class Script:
    """Input commits in order, each of so many rows; event time goes on by a minute a commit."""

    sizes: list[int]
    done: int = 0

    def rows(self, commit: int) -> pa.Table:
        """The rows of a commit; one that no stream lets through where it should have none."""
        size, at = self.sizes[commit], BEGIN + timedelta(minutes=commit)
        count = max(size, 1)
        tip = Decimal("1.50") if size else Decimal(0)
        return pa.table(
            {
                "id": pa.array([commit * 100_000 + n for n in range(count)], pa.int64()),
                "event_time": pa.array(
                    [at + timedelta(milliseconds=50 * n) for n in range(count)],
                    pa.timestamp("us", "UTC"),
                ),
                "driver_id": pa.array([n % KEYS for n in range(count)], pa.int64()),
                "tip": pa.array([tip] * count, pa.decimal128(12, 2)),
            }
        )

    def prepare(self, lake: Lake, inputs: tuple[Table, ...]) -> None:
        """Write every commit, and hide them."""
        for source in inputs:
            create_table(lake, source)
            handle = DeltaTable(lake.path(source))
            for commit in range(len(self.sizes)):
                write_deltalake(handle, self.rows(commit), mode="append")
            log = Path(lake.path(source)) / "_delta_log"
            hidden = log.with_name("_hidden")
            hidden.mkdir()
            for file in log.iterdir():
                if not file.name.startswith(f"{0:020d}"):
                    shutil.move(file, hidden / file.name)

    def reveal(self, lake: Lake, inputs: tuple[Table, ...], count: int) -> None:
        """Let the next commits appear, one batch each."""
        for commit in range(self.done, self.done + count):
            for source in inputs:
                log = Path(lake.path(source)) / "_delta_log"
                name = f"{commit + 1:020d}.json"
                (log.with_name("_hidden") / name).rename(log / name)
        self.done += count


def age(lake: Lake, target: Table, files: int) -> None:
    """Let a table hold so many files, of which only the log knows."""
    create_table(lake, target)
    handle = DeltaTable(lake.path(target))
    stats = json.dumps({"numRecords": 0})
    for first in range(0, files, 5000):
        adds: list[AddAction | RemoveAction] = [
            AddAction(f"old-{n}.parquet", 1000, {}, 0, True, stats)
            for n in range(first, min(files, first + 5000))
        ]
        handle.create_write_transaction(adds, "append", handle.schema())
    handle.create_checkpoint()


@dataclass
class Running:
    """A running query: its checkpoint, which says how far it is, and how to supervise it."""

    checkpoint: Path
    supervise: Callable[[], None]

    def reached(self) -> int:
        """The first input commit that no finished batch has taken, of the slowest input."""
        done = [int(f.name) for f in (self.checkpoint / "commits").glob("*") if f.name.isdigit()]
        if not done:
            return 0
        lines = (self.checkpoint / "offsets" / str(max(done))).read_text().splitlines()[2:]
        return min(int(json.loads(line)["reservoirVersion"]) for line in lines)


@contextmanager
def ours(spark: SparkSession, settings: Settings, stream: Stream) -> Iterator[Running]:
    """The stream as the platform runs it: its host, watched by a supervisor."""
    with Supervisor(spark, settings, [stream], "bench") as supervisor:
        supervisor.start(stream.name)

        def supervise() -> None:
            supervisor.count()
            supervisor.observe()
            supervisor.beat()

        yield Running(Path(supervisor.hosts[stream.name].checkpoint), supervise)


@contextmanager
def native(spark: SparkSession, settings: Settings, stream: Stream) -> Iterator[Running]:
    """The same query with Spark's own sink and trigger, in the same session."""
    lake = settings.lake()
    inputs = []
    for read in stream.reads:
        source = table_of(read)
        reader = spark.readStream.format("delta").option("maxFilesPerTrigger", "1")
        frame = reader.option("startingVersion", "0").load(lake.path(source))
        inputs.append(frame.withWatermark(source.event_time or "", "0 seconds"))
    checkpoint = f"{lake.root}/native"
    query = (
        stream.build(*inputs)
        .writeStream.format("delta")
        .outputMode("append")
        .queryName("native")
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime=f"{settings.trigger_seconds} seconds")
        .start(lake.path(stream.outputs[0].table))
    )

    def supervise() -> None:
        if error := query.exception():
            raise error

    try:
        yield Running(Path(checkpoint), supervise)
    finally:
        query.stop()


RUNNERS = {"ours": ours, "native": native}


def measure(
    spark: SparkSession,
    folder: Path,
    kind: str,
    runner: str,
    *,
    files: int,
    warm: int,
    repeats: int,
) -> list[dict[str, object]]:
    """The cost of batches of one stream, by their size."""
    stream = STREAMS[kind]
    home = folder / f"{kind}-{runner}-{files}"
    settings = Settings(home=home, files_per_trigger=1, trigger_seconds=0.01)
    lake = settings.lake()
    inputs = tuple(table_of(read) for read in stream.reads)
    script = Script([1000] * warm + [size for size in SIZES for _ in range(repeats)])
    script.prepare(lake, inputs)
    age(lake, stream.outputs[0].table, files)
    meter = TreeMeter(psutil.Process())
    batches: list[dict[str, object]] = []

    def run(running: Running, count: int) -> None:
        script.reveal(lake, inputs, count)
        deadline = time.monotonic() + 20 * count + 60
        while running.reached() <= script.done:
            running.supervise()
            if time.monotonic() > deadline:
                raise SystemExit(f"{kind}, {runner}: {running.reached()} of {script.done}")
            time.sleep(0.1)

    with RUNNERS[runner](spark, settings, stream) as running:
        run(running, warm)
        for size in SIZES:
            costs, walls = [], []
            step = max(repeats // 3, 1)
            for _ in range(3):
                before, began = meter.sample().cpu, time.monotonic()
                run(running, step)
                costs.append((meter.sample().cpu - before) / step)
                walls.append((time.monotonic() - began) / step)
            batches.append(
                {
                    "stream": kind,
                    "sink": runner,
                    "files": files,
                    "rows": size,
                    "cpu_seconds": round(statistics.median(costs), 3),
                    "spread": [round(min(costs), 3), round(max(costs), 3)],
                    "wall_seconds": round(statistics.median(walls), 3),
                }
            )
            print(json.dumps(batches[-1]), flush=True)
    meter.stop()
    return batches


def main() -> None:
    """Measure and report."""
    parser = options_of(__doc__)
    parser.add_argument("--streams", default="stateless,windowed")
    parser.add_argument("--sinks", default="ours,native")
    parser.add_argument("--files", default="100")
    parser.add_argument("--warm", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = open_session(Settings(home=folder), "long")
        batches = [
            batch
            for files in options.files.split(",")
            for kind in options.streams.split(",")
            for sink in options.sinks.split(",")
            for batch in measure(
                spark,
                folder,
                kind,
                sink,
                files=int(files),
                warm=options.warm,
                repeats=options.repeats,
            )
        ]
        spark.stop()
    report("warm_batch", {"batches": batches}, options.out)


if __name__ == "__main__":
    main()
