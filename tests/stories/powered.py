"""Programs whose power fails: what they had acknowledged before is compared with what is left.

python -m tests.stories.powered write HOME    appends without end, and prints each batch
python -m tests.stories.powered live HOME     readings and windows until it is killed
python -m tests.stories.powered drain HOME    the same until the input is drained
"""

from __future__ import annotations

import sys
import threading
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructField, StructType

from rivermark import AnyStream, Topology
from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.maintenance.compaction import compact
from rivermark.lake.schema import create_table
from rivermark.model.sink import Origin
from rivermark.model.table import Table
from rivermark.runtime.spark.session import open_session
from rivermark.runtime.supervision.run import run_bounded, run_continuous
from rivermark.settings import Settings
from tests.spark.helpers.sensors import READINGS, windows

ROWS: Final = Table(
    name="test/rows",
    schema=StructType([StructField("id", LongType()), StructField("text", StringType())]),
    description="Rows.",
    properties={"delta.checkpointInterval": "7"},
)
EACH: Final = 20
"""Rows of a batch."""
WINDOWS: Final = windows()


def write(settings: Settings) -> None:
    """Append batch after batch: by this process, some by delta-rs, and compact now and then."""
    lake = settings.lake()
    create_table(lake, ROWS)
    origin = Origin("test/rows", 0, datetime(2024, 1, 1, tzinfo=UTC), "run")
    ours, theirs = TableWriter(lake, ROWS, origin), TableWriter(lake, ROWS, origin)
    theirs._appender.append = lambda *_: False  # type: ignore[method-assign]
    first = -1 if ours.last is None else int(ours.last.metadata["batch"])
    for batch in count(first + 1):
        ids = range(EACH * batch, EACH * (batch + 1))
        rows = pa.table({"id": ids, "text": [f"text {i}" for i in ids]})
        (theirs if batch % 5 == 4 else ours).append_once(rows, batch)
        print(batch, flush=True)  # noqa: T201 - acknowledged
        if batch % 20 == 19:
            compact(lake.path(ROWS), [], "run", dry_run=False)


def run(settings: Settings, *, bounded: bool) -> None:
    """Readings to windows."""
    spark = open_session(settings, "short")
    streams: list[AnyStream] = [READINGS, WINDOWS]
    topology = Topology(streams)
    if bounded:
        run_bounded(spark, settings, topology, streams, run_id="drain")
    else:
        never = threading.Event()
        run_continuous(spark, settings, topology, streams, run_id="live", stop=never)


def main() -> None:
    """Do what the first argument says."""
    what, home = sys.argv[1:]
    settings = Settings(home=Path(home), trigger_seconds=0.2)
    if what == "write":
        write(settings)
    else:
        run(settings, bounded=what == "drain")


if __name__ == "__main__":
    main()
