"""OpenLineage events of batches and backfills, with columns: appended to a file, or sent by HTTP.

They are made and sent after the commit, by a thread of their own: none slows a batch or fails it.
What cannot be delivered is counted and dropped, and a warning says so.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from rivermark.connect.http import HttpClient, HttpFailed
from rivermark.lake.filesystem import is_local
from rivermark.lake.lake import Lake
from rivermark.model.stream import AnyStream, Ingest, inputs_of
from rivermark.model.table import Table
from rivermark.runtime.batch_metrics import BatchMetrics
from rivermark.runtime.supervision.lineage_record import known_lineage
from rivermark.settings import Settings

LOG: Final = logging.getLogger("rivermark")
SPEC: Final = "https://openlineage.io/spec"
EVENT: Final = f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
PRODUCER: Final = f"urn:rivermark:{version('rivermark')}"
RUNS: Final = uuid.UUID("6e0a3b4e-5d2c-5f0b-9a44-2f3d7c1b8e90")
"""The space of run ids: a batch that is repeated after a kill is the same run."""
MOST_WAITING: Final = 10_000
"""Runs that wait for a target that is slow or away; those beyond are dropped."""
TIMEOUT: Final = timedelta(seconds=10)
LAST_SECONDS: Final = 5.0
"""Seconds that an ending run waits for what is not delivered yet."""
REMIND_SECONDS: Final = 600.0

Event = dict[str, Any]
Make = Callable[[], Sequence[Event]]


class LineageEvents:
    """Events of one process, for `settings.lineage_to`; where that is empty nothing is made."""

    def __init__(self, settings: Settings) -> None:
        self._to, self._lake, self._state = settings.lineage_to, settings.lake(), settings.state
        self._waiting: queue.Queue[Make | None] = queue.Queue(MOST_WAITING)
        self._client: HttpClient | None = None
        self._lost, self._warned_at = 0, float("-inf")
        self._thread = threading.Thread(target=self._run, name="lineage", daemon=True)
        if self._to:
            self._thread.start()

    def batch(self, stream: AnyStream, batch: BatchMetrics) -> None:
        """Take up a committed batch."""
        self._add(lambda: batch_events(self._lake, self._state, stream, batch))

    def backfill(
        self,
        stream: AnyStream,
        name: str,
        at: datetime,
        seconds: float,
        inputs: Mapping[str, int],
        outputs: Mapping[str, tuple[int, int]],
    ) -> None:
        """Take up replaced days: versions of inputs, and of outputs with how many rows."""
        arguments = (stream, name, at, seconds, inputs, outputs)
        self._add(lambda: backfill_events(self._lake, self._state, *arguments))

    def close(self) -> None:
        """Wait a few seconds for what is not delivered, and say what will not be."""
        if self._thread.is_alive():
            self._put(None)
            self._thread.join(LAST_SECONDS)
            left = self._lost + self._waiting.qsize()
            if left:
                LOG.warning("%d runs are not in %s", left, self._place())

    def _add(self, make: Make) -> None:
        if self._to:
            self._put(make)

    def _put(self, make: Make | None) -> None:
        try:
            self._waiting.put_nowait(make)
        except queue.Full:
            self._lose(f"{MOST_WAITING:,} runs wait already")

    def _run(self) -> None:
        while (make := self._waiting.get()) is not None:
            try:
                for event in make():
                    self._send(json.dumps(event).encode())
            except Exception as error:
                self._lose(error)
        if self._client is not None:
            self._client.close()

    def _send(self, event: bytes) -> None:
        if urlsplit(self._to).scheme == "file":
            path = Path(unquote(urlsplit(self._to).path))
            path.parent.mkdir(parents=True, exist_ok=True)
            # One write each: lines of several processes do not mix.
            with path.open("ab", buffering=0) as file:
                file.write(event + b"\n")
            return
        self._client = self._client or HttpClient(self._to, TIMEOUT)
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get("OPENLINEAGE_API_KEY"):
            headers["Authorization"] = f"Bearer {key}"
        reply = self._client.request("POST", self._client.path, headers, event)
        if not 200 <= reply.status < 300:
            raise HttpFailed(f"the server answered {reply.status}")

    def _lose(self, why: object) -> None:
        self._lost += 1
        if time.monotonic() - self._warned_at > REMIND_SECONDS:
            self._warned_at = time.monotonic()
            LOG.warning(
                "lineage: %d runs could not be delivered to %s (%s); batches go on without",
                *(self._lost, self._place(), why),
            )

    def _place(self) -> str:
        parts = urlsplit(self._to)
        return parts.path if parts.scheme == "file" else f"{parts.scheme}://{parts.netloc}"


def batch_events(lake: Lake, state: Path, stream: AnyStream, batch: BatchMetrics) -> list[Event]:
    """The beginning and the end of a batch as events."""
    run = f"{stream.name}/{batch.generation}/{batch.batch_id}"
    started, took = batch.started_at, timedelta(milliseconds=batch.duration_ms)
    if isinstance(stream, Ingest):
        rows: dict[str, int | None] = {
            stream.raw.name: batch.rows_in,
            stream.admitted.name: batch.admitted,
            stream.late.name: batch.late,
            stream.quarantine.name: batch.quarantined,
        }
        source = {"namespace": stream.source.kind, "name": "/".join(stream.source.asset)}
        inputs = [source]
    else:
        # Of several tables only their sum is known.
        rows = {stream.tables[0].name: batch.rows_out} if len(stream.tables) == 1 else {}
        inputs = [_dataset(lake, table) for table in inputs_of(stream)]
    outputs = [_output(lake, state, stream, table, rows.get(table.name)) for table in stream.tables]
    return [*_run_events(run, stream, "STREAMING", (started, started + took), inputs, outputs)]


def backfill_events(
    lake: Lake,
    state: Path,
    stream: AnyStream,
    name: str,
    at: datetime,
    seconds: float,
    inputs: Mapping[str, int],
    outputs: Mapping[str, tuple[int, int]],
) -> list[Event]:
    """The beginning and the end of a backfill as events."""
    read = [_dataset(lake, table, version) for table, version in inputs.items()]
    written = [
        _output(lake, state, stream, table, outputs[table.name][1], outputs[table.name][0])
        for table in stream.tables
        if table.name in outputs
    ]
    times = (at, at + timedelta(seconds=seconds))
    return [*_run_events(name, stream, "BATCH", times, read, written)]


def _run_events(
    run: str,
    stream: AnyStream,
    processing: str,
    times: tuple[datetime, datetime],
    inputs: Sequence[Event],
    outputs: Sequence[Event],
) -> Iterator[Event]:
    kind = {"processingType": processing, "integration": "RIVERMARK"}
    facets = _facet("jobType", "2-0-3", "JobTypeJobFacet", **kind)
    for event_type, at in zip(("START", "COMPLETE"), times, strict=True):
        yield {
            "eventType": event_type,
            "eventTime": at.astimezone(UTC).isoformat(),
            "producer": PRODUCER,
            "schemaURL": EVENT,
            "run": {"runId": str(uuid.uuid5(RUNS, run)), "facets": {}},
            "job": {"namespace": "rivermark", "name": stream.name, "facets": facets},
            "inputs": [*inputs],
            "outputs": [*outputs],
        }


def _output(
    lake: Lake,
    state: Path,
    stream: AnyStream,
    table: Table,
    rows: int | None,
    version: int | None = None,
) -> Event:
    dataset = _dataset(lake, table, version)
    fields = [{"name": f.name, "type": f.dataType.simpleString()} for f in table.schema.fields]
    dataset["facets"] |= _facet("schema", "1-1-1", "SchemaDatasetFacet", fields=fields)
    names = {*table.schema.names}
    columns = {
        column: {"inputFields": [{**_named(lake, name), "field": field} for name, field in sources]}
        for column, sources in known_lineage(stream, table, state).items()
        if column in names
    }
    if columns:
        dataset["facets"] |= _facet(
            "columnLineage", "1-2-0", "ColumnLineageDatasetFacet", fields=columns
        )
    if rows is not None:
        dataset["outputFacets"] = _facet(
            "outputStatistics", "1-0-2", "OutputStatisticsOutputDatasetFacet", rowCount=rows
        )
    return dataset


def _dataset(lake: Lake, table: Table | str, version: int | None = None) -> Event:
    name = table if isinstance(table, str) else table.name
    identifier = {"namespace": "rivermark", "name": name, "type": "TABLE"}
    facets = _facet("symlinks", "1-0-1", "SymlinksDatasetFacet", identifiers=[identifier])
    if version is not None:
        facets |= _facet(
            "version", "1-0-1", "DatasetVersionDatasetFacet", datasetVersion=str(version)
        )
    return {**_named(lake, name), "facets": facets}


def _named(lake: Lake, name: str) -> dict[str, str]:
    """A table as OpenLineage names data: by the store, and the path in it."""
    path = lake.path(name)
    if is_local(path):
        return {"namespace": "file", "name": path.removeprefix("file://")}
    parts = urlsplit(path)
    return {"namespace": f"{parts.scheme}://{parts.netloc}", "name": parts.path.lstrip("/")}


def _facet(key: str, revision: str, kind: str, **values: object) -> Event:
    place = f"{SPEC}/facets/{revision}/{kind}.json#/$defs/{kind}"
    return {key: {"_producer": PRODUCER, "_schemaURL": place, **values}}
