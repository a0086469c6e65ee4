"""What a live ingest does with each file, moment by moment: where the slowest events waited.

Notes are taken in the process that is measured (`bench.workload timed`), a JSON object a line, and
read afterwards. They cost some microseconds each. `python -m bench latency --timeline` prints them
as a table: for each step between an event's file and its admitted row how long it took at the
median and at worst, and what the slowest files spent where.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, Final

import numpy as np

from rivermark.ingest.admission import Admission
from rivermark.ingest.plan import BatchPlanner
from rivermark.lake.append import delta_commit
from rivermark.lake.batch_writer import TableWriter
from rivermark.runtime.query.base import QueryHost

STEPS: Final = (
    ("land", "the generator writes the file, which ends half a second of events"),
    ("settle", "until the look that takes it"),
    ("plan", "its row of the plan is committed"),
    ("trigger", "until the query is woken"),
    ("spark", "Spark finds the commit, and plans a batch"),
    ("collect", "inputs checked, checkpoint synced, the plan's rows read"),
    ("read", "lines read, typed and judged by rules"),
    ("raw", "decided, and the raw rows committed"),
    ("admitted", "the admitted rows committed"),
)
SLOWEST: Final = 5
PAUSE: Final = re.compile(r"\[(\S+?)\].*Pause.* ([0-9.]+)ms$")

Note = dict[str, Any]
Span = tuple[float, float]
"""When something began and ended, in seconds since 1970."""


def take_notes(file: Path) -> None:
    """Note from now on what ingests of this process do."""
    out = file.open("a", buffering=1)
    lock = threading.Lock()

    def note(what: str, began: float, **facts: object) -> None:
        line = json.dumps({"what": what, "began": began, "ended": time.time(), **facts})
        with lock:
            out.write(line + "\n")

    def plan(began: float, planner: BatchPlanner, splits: Sequence[Any]) -> None:
        files = [[s.name, os.stat(s.path).st_ctime] for s in splits]  # noqa: PTH116
        note("plan", began, stream=planner.ingest.name, arrival=planner.newest, files=files)

    def admit(began: float, admission: Admission, splits: Sequence[Any], _: int) -> None:
        arrivals = sorted({split.batch for split in splits})
        note("admit", began, stream=admission.ingest.name, arrivals=arrivals)

    def read(began: float, admission: Admission, *_: object) -> None:
        note("read", began, stream=admission.ingest.name)

    def wake(began: float, host: QueryHost) -> None:
        note("wake", began, stream=host.stream.name)

    def batch(began: float, host: QueryHost, *_: object) -> None:
        note("batch", began, stream=host.stream.name)

    def commit(began: float, writer: TableWriter, *_: object) -> None:
        note("commit", began, stream=writer.origin.stream, table=writer.table.name)

    def checkpoint(began: float, path: str) -> None:
        note("checkpoint", began, path=path)

    _after(BatchPlanner, "_commit", plan)
    _after(QueryHost, "wake", wake)
    _after(QueryHost, "_batch", batch)
    _after(Admission, "admit", admit)
    _after(Admission, "read", read)
    _after(TableWriter, "append_once", commit)
    _after(delta_commit, "make_checkpoint", checkpoint)


def _after(owner: Any, name: str, noted: Callable[..., None]) -> None:
    """Call a function with when another began, and its arguments, each time that it returns."""
    inner = getattr(owner, name)

    @wraps(inner)
    def timed(*args: Any, **options: Any) -> Any:
        began = time.time()
        result = inner(*args, **options)
        noted(began, *args)
        return result

    setattr(owner, name, timed)


@dataclass(frozen=True)
class Way:
    """The way of one file: its name, the last moment of its events, and each step in seconds."""

    name: str
    scheduled: float
    steps: dict[str, float]

    @property
    def seconds(self) -> float:
        """From the last event to its admitted row."""
        return sum(self.steps.values())


def ways(notes: Sequence[Note], stream: str, scheduled: Callable[[str], float]) -> Iterator[Way]:
    """The files of an ingest that were admitted; `scheduled` tells when a file was due."""
    own = [note for note in notes if note.get("stream", stream) == stream]
    plans = {note["arrival"]: note for note in notes if note["what"] == "plan"}
    for admit in (note for note in own if note["what"] == "admit"):

        def within(what: str, table: str = "", admit: Note = admit) -> Note | None:
            inside = (
                n
                for n in own
                if n["what"] == what
                and n.get("table", "").endswith(table)
                and admit["began"] <= n["began"] <= n["ended"] <= admit["ended"]
            )
            return next(inside, None)

        read, raw = within("read"), within("commit", "_raw")
        admitted = within("commit", stream)
        batch = next(
            n for n in own if n["what"] == "batch" and n["began"] <= admit["began"] <= n["ended"]
        )
        wakes = [n["ended"] for n in own if n["what"] == "wake" and n["ended"] <= batch["began"]]
        if read is None or raw is None or admitted is None or not wakes:
            continue
        for arrival in admit["arrivals"]:
            plan = plans[arrival]
            for name, landed in plan["files"]:
                ends = [landed, plan["began"], plan["ended"], max(wakes[-1], plan["ended"])]
                ends += [batch["began"], admit["began"], read["ended"]]
                ends += [raw["ended"], admitted["ended"]]
                begins = [scheduled(name), *ends]
                spans = zip(STEPS, begins, ends, strict=False)
                steps = {step: end - begin for (step, _), begin, end in spans}
                yield Way(name, scheduled(name), steps)


def pauses(log: Path) -> list[Span]:
    """When the JVM's collector stopped all threads, by its log with times in UTC."""
    matches = map(PAUSE.match, log.read_text().splitlines())
    ends = [(datetime.fromisoformat(m[1]).timestamp(), float(m[2]) / 1000) for m in matches if m]
    return [(end - seconds, end) for end, seconds in ends]


def table(all_ways: Sequence[Way], notes: Sequence[Note], stopped: Sequence[Span]) -> str:
    """The steps of all files, and of the slowest ones."""
    worst = sorted(all_ways, key=lambda way: way.seconds)[: -SLOWEST - 1 : -1]
    lines = ["| step, ms | p50 | p95 | max | of the slowest |", "| --- | --- | --- | --- | --- |"]
    for step, says in (*STEPS, ("all", "from the last event to the admitted row")):
        took = [way.steps.get(step, way.seconds) for way in all_ways]
        ranks = (f"{1000 * np.percentile(took, rank):.0f}" for rank in (50, 95, 100))
        slow = " ".join(f"{1000 * way.steps.get(step, way.seconds):.0f}" for way in worst)
        lines.append(f"| {step}: {says} | {' | '.join(ranks)} | {slow} |")
    made = [(n["began"], n["ended"]) for n in notes if n["what"] == "checkpoint"]
    for says, spans in (("collector's pauses meanwhile", stopped), ("table checkpoints", made)):
        shares = (f"{1000 * _shared(spans, way):.0f}" for way in worst)
        longest = max((end - begin for begin, end in spans), default=0.0)
        lines.append(f"| {says} | | | {1000 * longest:.0f} | {' '.join(shares)} |")
    return "\n".join(lines)


def _shared(spans: Sequence[Span], way: Way) -> float:
    """Seconds of the way that lie within the spans."""
    first, last = way.scheduled, way.scheduled + way.seconds
    return sum(max(min(end, last) - max(begin, first), 0.0) for begin, end in spans)
