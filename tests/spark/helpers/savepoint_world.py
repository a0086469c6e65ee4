"""Streams with every kind of state over one ingest, and a console that is killed before a step.

python -m tests.spark.helpers.savepoint_world HOME VERB STREAM [STEP]
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.model.stream import AnyStream
from rivermark.model.topology import Topology
from rivermark.operators.windows import TumblingWindow
from rivermark.process.spark import run_process
from rivermark.runtime.savepoint.fork import fork, promote
from rivermark.runtime.savepoint.resume import Order, resume
from rivermark.runtime.savepoint.store import savepoint, stop_and_take, take
from rivermark.runtime.spark.session import open_session
from rivermark.runtime.supervision.hosting import Hosting
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, reading
from tests.spark.helpers.sensors import READINGS as READINGS
from tests.spark.helpers.stateful_streams import distinct
from tests.spark.helpers.windowed_streams import ProcessSessions, windowed

DISTINCT = distinct()
WINDOWS = windowed("test/windows", TumblingWindow(timedelta(minutes=10)), source=DISTINCT)
SESSIONS = windowed("test/sessions", build=run_process(ProcessSessions, buckets=2))
STREAMS: tuple[AnyStream, ...] = (READINGS, DISTINCT, WINDOWS, SESSIONS)
ALL = Topology(STREAMS)


def land(landing: Landing, part: int) -> None:
    """Two hours of readings, with repeats, in three files."""
    for number in range(3):
        minutes = [120 * part + 40 * number + row for row in range(0, 40, 7)]
        lines = [reading(m, f"s{m % 3}", m / 8, note=f"{m}") for m in minutes]
        landing.put(f"{FOLDER}/{part}.{number}.json", *lines, lines[0])


def rows_in(settings: Settings, *streams: AnyStream) -> dict[str, list[Any]]:
    """The rows of all tables, in an order of their own, without where they were read from."""
    content = {}
    for table in (t for stream in streams or STREAMS for t in stream.tables):
        names = [f.name for f in table.schema.fields if not f.name.startswith("_")]
        path = settings.lake().path(table)
        rows = DeltaTable(path).to_pyarrow_table(columns=names).to_pylist()
        content[table.name] = sorted(map(repr, rows))
    if not streams:
        counts = ["file", "rows", "admitted", "late", "quarantined", "skipped"]
        ledger = DeltaTable(settings.lake().path(INGEST_FILES)).to_pyarrow_table(columns=counts)
        content[INGEST_FILES.name] = sorted(map(repr, ledger.to_pylist()))
    return content


def main(home: str, verb: str, name: str, step: str = "0") -> None:
    """Do the verb, and kill this process before its step of that number."""
    settings = Settings(home=Path(home), trigger_seconds=0.1)
    if verb == "live":
        hosting = Hosting(
            settings=settings, topology=ALL, streams=STREAMS, run_id="live", continuous=True
        )
        spark = open_session(settings, kind="long")
        hosting.run(spark, threading.Event(), paused_since=datetime.now(UTC))
        spark.stop()
        return
    left = int(step)

    def on_step(_: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    order = Order(settings=settings, topology=ALL, run_id=verb, on_step=on_step)
    if verb == "take":
        take(settings, ALL.named(name), on_step=on_step)
    elif verb == "stop":
        stop_and_take(settings, ALL.named(name), run_id="stop", by="test", on_step=on_step)
    elif verb == "resume":
        kept = savepoint(settings.lake(), name, "latest")
        resume(order, ALL.named(name), kept.id)
    elif verb == "fork":
        fork(order, ALL.named(name), "twin", "latest")
    elif verb == "promote":
        promote(order, "twin")


if __name__ == "__main__":
    main(*sys.argv[1:])
