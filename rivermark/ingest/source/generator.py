"""Sources for prototypes: rows at a rate, fixed elements, lines of a socket."""

from __future__ import annotations

import json
import queue
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import inf
from time import monotonic
from typing import Any, ClassVar, Final, Literal

from pyspark.sql import SparkSession

from rivermark.ingest.source.payload import held, json_payload
from rivermark.ingest.source.ranges import RangeReader
from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError
from rivermark.model.source import (
    Backlog,
    Discovery,
    Limit,
    Piece,
    PlannedSplit,
    PlanRows,
    Source,
    SourceReader,
    Split,
    Waiting,
    backlog_of,
)

ROW_BYTES: Final = 64
"""Bytes of a generated row, approximately."""
RETRY_SECONDS: Final = 1.0
LINES_A_SPLIT: Final = 10_000


@declared("source")
@dataclass(frozen=True, kw_only=True)
class RateSource(Source):
    """Rows that appear at a rate: `value` counts from 0, `timestamp` is when a row appeared (UTC).

    The first row appears at `start`, or when the source is first read. A later run reads the rows
    that have appeared meanwhile.

    Raises:
        DeclarationError: The rate is no finite number above 0, or `start` has no time zone.
    """

    rows_per_second: float = 1.0
    start: datetime | None = None

    kind: ClassVar[str] = "generator"
    unit: ClassVar[str] = "range"

    def __post_init__(self) -> None:
        if not 0 < self.rows_per_second < inf:
            raise DeclarationError(
                f"rows_per_second must be a finite number above 0, got {self.rows_per_second}"
            )
        if self.start is not None and self.start.tzinfo is None:
            raise DeclarationError(f"start {self.start} has no time zone: write tzinfo=UTC")

    @property
    def name(self) -> str:
        """Its rate."""
        return f"{self.rows_per_second:g} rows a second"

    @property
    def asset(self) -> tuple[str, ...]:
        """One generator for each rate."""
        return ("generator", f"rate_{self.rows_per_second:g}".replace(".", "_"))

    @property
    def description(self) -> str:
        """The kind of rows that are generated."""
        return f"Generated rows, {self.rows_per_second:g} a second."

    def open(self, landing_root: str) -> SourceReader:
        """Open a generator."""
        return _RateReader(self)


class _RateReader(RangeReader):
    columns = ("value", "timestamp")

    def __init__(self, source: RateSource) -> None:
        super().__init__()
        self._source = source

    def first(self) -> dict[str, Any]:
        return {"since": (self._source.start or now()).isoformat(), "value": 0}

    def latest(self, start: dict[str, Any]) -> dict[str, Any]:
        elapsed = (now() - datetime.fromisoformat(start["since"])).total_seconds()
        count = int(elapsed * self._source.rows_per_second) + 1 if elapsed >= 0 else 0
        return start | {"value": max(start["value"], count)}

    def payloads(self, start: dict[str, Any], end: dict[str, Any]) -> list[str]:
        since = datetime.fromisoformat(start["since"])
        return [
            json_payload({"value": n, "timestamp": since + timedelta(seconds=n / self._rate)})
            for n in range(start["value"], end["value"])
        ]

    @property
    def _rate(self) -> float:
        return self._source.rows_per_second

    def size(self, start: dict[str, Any], end: dict[str, Any]) -> int:
        return ROW_BYTES * int(end["value"] - start["value"])


@declared("source")
@dataclass(frozen=True, kw_only=True)
class ElementsSource(Source):
    """Fixed records, in their order: mappings of names to values, read once each.

    Elements appended to the others are read by the next run.
    """

    elements: tuple[Mapping[str, Any], ...] = field(hash=False)
    label: str = "elements"

    kind: ClassVar[str] = "generator"
    unit: ClassVar[str] = "range"

    @property
    def name(self) -> str:
        """Its label."""
        return self.label

    @property
    def asset(self) -> tuple[str, ...]:
        """Its label, below `generator`."""
        return ("generator", self.label)

    @property
    def description(self) -> str:
        """The number of rows."""
        return f"{len(self.elements)} fixed records."

    def open(self, landing_root: str) -> SourceReader:
        """Open the elements."""
        return _ElementsReader(self)


class _ElementsReader(RangeReader):
    def __init__(self, source: ElementsSource) -> None:
        super().__init__()
        self._elements = source.elements

    def first(self) -> int:
        return 0

    def latest(self, start: int) -> int:
        return max(start, len(self._elements))

    def payloads(self, start: int, end: int) -> list[str]:
        return [json_payload(element) for element in self._elements[start:end]]

    def size(self, start: int, end: int) -> int:
        return sum(map(len, self.payloads(start, end)))


@declared("source")
@dataclass(frozen=True, kw_only=True)
class SocketSource(Source):
    """Lines that a server sends: JSON objects, or text in a column `text`.

    A socket cannot be read again, so the plan keeps the lines themselves. Lines that were received
    but not planned when a process dies are lost: delivery is at most once.
    """

    host: str
    port: int
    format: Literal["json", "text"] = "json"

    kind: ClassVar[str] = "socket"
    unit: ClassVar[str] = "range"

    def __post_init__(self) -> None:
        if not self.host:
            raise DeclarationError("host is empty: write a name such as 'localhost'")
        if not 0 < self.port < 1 << 16:
            raise DeclarationError(f"port {self.port} must be between 1 and 65535")

    @property
    def name(self) -> str:
        """Host and port."""
        return f"{self.host}:{self.port}"

    @property
    def asset(self) -> tuple[str, ...]:
        """Host and port, below `socket`."""
        return ("socket", self.host.replace(".", "_"), str(self.port))

    @property
    def description(self) -> str:
        """The place from which lines come."""
        return f"Lines that {self.name} sends."

    def open(self, landing_root: str) -> SourceReader:
        """Open a reader; it connects when a run starts to plan."""
        return _SocketReader(self)


class _SocketReader(SourceReader):
    limit = Limit(splits=1)
    settle_time = timedelta(seconds=RETRY_SECONDS)

    def __init__(self, source: SocketSource) -> None:
        self._source = source
        self._next = 0
        self._received: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._lines: list[str] = []
        self._closed = threading.Event()
        self._started: float | None = None
        self._error: str | None = None

    def start(self) -> None:
        self._started = monotonic()
        threading.Thread(target=self._receive, name=self._source.name, daemon=True).start()

    def close(self) -> None:
        self._closed.set()

    def _receive(self) -> None:
        while not self._closed.is_set():
            try:
                address = (self._source.host, self._source.port)
                with socket.create_connection(address, timeout=RETRY_SECONDS) as connection:
                    self._error = None
                    self._receive_lines(connection)
            except OSError as error:
                self._error = f"cannot be read yet: {error}"
            self._closed.wait(RETRY_SECONDS)

    def _receive_lines(self, connection: socket.socket) -> None:
        rest = b""
        while not self._closed.is_set():
            try:
                received = connection.recv(1 << 16)
            except TimeoutError:
                continue
            *lines, rest = (rest + received).split(b"\n")
            if not received and rest:
                lines.append(rest)
            for line in lines:
                self._received.put(line.decode(errors="replace"))
            if not received:
                return

    def restore(self, plan: PlanRows) -> None:
        numbers = [json.loads(path)["range"] for (path,) in plan("path")]
        self._next = max(numbers, default=-1) + 1

    def planned(self, splits: Sequence[Split]) -> None:
        for split in splits:
            position = json.loads(split.path)
            self._next = position["range"] + 1
            del self._lines[: len(position["lines"])]

    def discover(self, *, full: bool = True) -> Discovery:
        while not self._received.empty():
            self._lines.append(self._received.get())
        if self._lines:
            path = json.dumps({"range": self._next, "lines": self._lines[:LINES_A_SPLIT]})
            split = Split(
                name=f"range-{self._next:012d}",
                path=path,
                size=len(path),
                modified_at=now(),
                format=self._source.format,
            )
            return Discovery([split])
        name = self._source.name
        if self._error is not None:
            return Discovery(waiting=[Waiting(name, name, self._error, 0, now())])
        if self._started is not None and monotonic() - self._started < RETRY_SECONDS:
            reason = "connected a moment ago"
            return Discovery(waiting=[Waiting(name, name, reason, 0, now(), settling=True)])
        return Discovery()

    def pieces(
        self, spark: SparkSession, splits: Sequence[PlannedSplit], most_bytes: int
    ) -> Sequence[Piece]:
        return held(splits, [json.loads(split.path)["lines"] for split in splits])

    def backlog(self) -> Backlog:
        return backlog_of(self.discover())


def now() -> datetime:
    """The time of the generators (UTC)."""
    return datetime.now(UTC)
