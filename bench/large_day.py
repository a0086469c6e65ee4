"""A day that is too large for one process, computed again and replaced: time, CPU and memory.

    python -m bench large_day [--rows N] [--workers N] [--short] [--out FILE]

Narrow rows (a number, a moment, a value), evenly over a day. The stream drains them; then its day
is computed again, compared and replaced, once by the same rule and once by one that gives every
hundredth row another value. Each is a cold process on `local[2]`, or with `--workers` on a
standalone cluster of so many workers of one core, with the platform's own settings of memory. The
table is compared with DuckDB's rows for the same question. Memory is the peak of all processes
together, and of the largest one of each kind.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
import psutil
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.figures import load, options_of, report
from bench.process_tree import run_measured
from bench.workload import say
from rivermark import Daily, Stream, Suite, Table, Topology, expect
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.reprocess import Request, reprocess
from rivermark.lake.schema import create_table
from rivermark.runtime.query.backlog import kind_of_backfill, kind_of_run
from rivermark.runtime.spark.session import open_session
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from tests.spark_cluster import cluster

DAY: Final = date(2024, 3, 1)
BEGAN: Final = datetime(2024, 3, 1, tzinfo=UTC)
COMMIT_ROWS: Final = 1_000_000
OTHERS: Final = 100
"""Of so many rows one has another value by the changed rule."""
DIGEST: Final = """
SELECT count(*), sum(hash(id, epoch_us("at"), value)::HUGEINT)
FROM (SELECT id, "at", {value} AS value FROM rows) WHERE "at" < $end
"""
"""A number and a digest of the rows of the day."""
TWICE: Final = "value * 2"


def table(name: str) -> Table:
    """A table of narrow rows by days."""
    return Table(
        name=name,
        schema="id long, at timestamp, value double",
        description="Values.",
        event_time="at",
        keys=("id",),
        days=Daily(column="at", start=DAY),
    )


MEASURED: Final = table("bench/measured")


def doubled(rows: DataFrame, more_each: int) -> DataFrame:
    """Each value twice, and one more for every so manieth row."""
    more = (F.col("id") % more_each == 0).cast("double") if more_each else F.lit(0.0)
    return rows.select("id", "at", (F.col("value") * 2 + more).alias("value"))


def stream(more_each: int = 0) -> Stream:
    """The stream that is measured."""
    return Stream(
        reads=(MEASURED,),
        build=partial(doubled, more_each=more_each),
        writes=table("bench/doubled"),
        group="bench",
        volume="events",
        lateness=timedelta(0),
        suite=Suite(expectations=(expect.unique("id"), expect.not_null("value"))),
    )


def write_day(settings: Settings, rows: int) -> None:
    """The rows of the day; and one three days later, which closes it."""
    path = settings.lake().path(MEASURED)
    create_table(settings.lake(), MEASURED)
    step = 86_400_000_000 // rows
    for first in range(0, rows, COMMIT_ROWS):
        append(path, np.arange(first, min(first + COMMIT_ROWS, rows)), step)
    append(path, np.array([rows]), 3 * 86_400_000_000 // rows)


def append(path: str, ids: np.ndarray[Any, np.dtype[np.int64]], step: int) -> None:
    """One commit of rows, each so many microseconds after the one before."""
    moments = pa.array(int(BEGAN.timestamp() * 1e6) + ids * step).cast(pa.timestamp("us", "UTC"))
    columns = [pa.array(ids), moments, pa.array((ids * 7919 % 100_003).astype(float))]
    write_deltalake(DeltaTable(path), pa.table(columns, ["id", "at", "value"]), mode="append")


def digest(settings: Settings, of: Table, value: str) -> tuple[Any, ...] | None:
    """The number and the digest of the day's rows, by DuckDB."""
    rows = DeltaTable(settings.lake().path(of)).to_pyarrow_dataset()
    with duckdb.connect(config={"threads": 1}) as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("rows", rows)
        end = {"end": BEGAN + timedelta(days=1)}
        return database.execute(DIGEST.format(value=value), end).fetchone()


def work(settings: Settings, way: str) -> None:
    """Drain the stream, or replace its day by the same rule or the other one."""
    declared = stream(OTHERS if way == "other" else 0)
    topology = Topology([declared])
    if way == "drain":
        spark = open_session(settings, kind_of_run(settings, [declared]))
        run_bounded(spark, settings, topology, [declared], run_id="bench")
        return
    sizes: list[int] = []

    def session() -> SparkSession:
        return open_session(settings, kind_of_backfill(sizes[0]))

    context = BackfillContext(
        settings=settings, topology=topology, spark=session, run_id="bench", expect=sizes.append
    )
    [done] = reprocess(context, Request(stream=declared, way="replace", first=DAY)).done
    say("replaced", rows=done.tables["bench/doubled"].difference.counts())


@contextmanager
def master(folder: Path, workers: int) -> Iterator[None]:
    """Has the measured processes run here, or on a cluster whose processes are measured too."""
    if not workers:
        yield
        return
    with cluster(folder / "cluster", workers) as url:
        os.environ["RIVERMARK_MASTER"] = url
        yield


def kind_of(process: psutil.Process) -> str:
    """The kind of a process whose memory is told by itself."""
    words = " ".join(process.cmdline())
    if "CoarseGrainedExecutorBackend" in words:
        return "executor"
    if "java" in process.name():
        daemon = "deploy.master" in words or "deploy.worker" in words
        return "cluster_daemon" if daemon else "driver_jvm"
    return "driver_python" if "bench.large_day" in words else "python_worker"


def measure(folder: Path, rows: int, workers: int, out: Path | None) -> None:
    """All ways, one after the other, reported as they end; an error where one has other rows."""
    settings = Settings(home=folder / "home")
    write_day(settings, rows)
    figures: dict[str, Any] = {"load_before": load(), "large_day_rows": rows, "workers": workers}
    expected = {way: digest(settings, MEASURED, TWICE) for way in ("drain", "same")}
    expected["other"] = digest(settings, MEASURED, f"{TWICE} + (id % {OTHERS} = 0)::DOUBLE")
    [published] = stream().tables
    with master(folder, workers):
        for way, wanted in expected.items():
            command = [sys.executable, "-m", "bench.large_day", "--work", way]
            cost, said = run_measured(
                [*command, "--home", str(settings.home)],
                folder / "log",
                tree=psutil.Process() if workers else None,
                kind_of=kind_of,
            )
            if digest(settings, published, "value") != wanted:
                raise SystemExit(f"{way} gave other rows than DuckDB")
            figures |= {f"{way}_{each['event']}": each["rows"] for each in said}
            figures |= cost.figures(way) | {f"{way}_load": load()}
            report("large_day", figures, out)


def main() -> None:
    """Measure and report."""
    parser = options_of(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the day")
    parser.add_argument("--workers", type=int, default=0, help="of a cluster on this machine")
    parser.add_argument("--short", action="store_true", help="a hundredth of the rows")
    parser.add_argument("--folder", type=Path, help="where tables lie meanwhile")
    for hidden in ("--work", "--home"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(Settings(home=options.home), options.work)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        rows = options.rows // (100 if options.short else 1)
        measure(Path(name), rows, options.workers, options.out)


if __name__ == "__main__":
    main()
