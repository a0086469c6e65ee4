"""Rows as requests to a web service, so that an alert reaches somebody.

A service does not say which rows it has, so each row is sent at least once; by the key that each
request carries it may leave out what it has seen. What it does not take after several attempts goes
to a table of the lake, and the stream goes on.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, ClassVar, Final

from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import rows_of
from rivermark.model.client_settings import resolved_settings
from rivermark.model.ddl import struct_type
from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError
from rivermark.model.http_client import (
    PASSING,
    HttpClient,
    HttpFailed,
    check_headers,
    pause_before,
    resolved_headers,
    server_of,
)
from rivermark.model.json_text import json_text
from rivermark.model.rows import BatchRows, Rows, as_rows
from rivermark.model.sink import (
    BatchIdentity,
    Delivery,
    OnReplace,
    Sink,
    SinkContext,
    SinkWriter,
)
from rivermark.model.table import Table
from rivermark.sinks.delta_append import DeltaAppend
from rivermark.sinks.python_rows import python_rows

AT_ONCE: Final = 10_000
"""Rows that are Python objects at a time."""
UNDELIVERED: Final = struct_type(
    "undelivered_at timestamp, idempotency_key string, body string, reason string, attempts int"
)


@declared("sink", lambda values: values.get("url"))
@dataclass(frozen=True, kw_only=True)
class WebhookSink(Sink):
    """Posts each row as a JSON object, or `rows_at_once` of them as a JSON list.

    Every request has an `Idempotency-Key` header, the same when a batch comes again. An answer of
    2xx is a delivery; no answer within `timeout`, 429 and errors of the server are tried again, up
    to `attempts` times, after growing pauses or what `Retry-After` says; any other answer, a
    redirect among them, is final. What is not delivered goes to the table `<table>_undelivered`. A
    `url` or a header's value `$NAME` is that of the environment variable.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    rows_at_once: int = 1
    timeout: timedelta = timedelta(seconds=10)
    attempts: int = 5

    delivery: ClassVar[Delivery] = Delivery(
        "at least once", "with a key by which the receiver knows a request that comes again"
    )
    on_replace: ClassVar[OnReplace] = "skips"

    def __post_init__(self) -> None:
        if not self.url.startswith("$"):
            server_of(self.url)
        check_headers(f"sink '{self._place}'", self.headers)
        if self.rows_at_once < 1 or self.attempts < 1 or self.timeout <= timedelta(0):
            raise DeclarationError(
                f"sink '{self._place}': `rows_at_once`, `attempts` and `timeout` must be above 0"
            )

    @property
    def _place(self) -> str:
        """The URL without its query, in which services have their secrets."""
        return self.url.partition("?")[0]

    @property
    def target(self) -> str:
        """Where the requests go."""
        return f"webhook {self._place}"

    def open(self, context: SinkContext) -> SinkWriter:
        """Create the table of what could not be delivered."""
        return _Writer(self, context)

    def tables(self, table: Table) -> tuple[Table, ...]:
        """The table of what could not be delivered."""
        return (undelivered_of(table),)


def undelivered_of(table: Table) -> Table:
    """The table of requests of an output that were not delivered."""
    return Table(
        name=f"{table.name}_undelivered",
        schema=UNDELIVERED,
        description=f"Requests with rows of `{table.name}` that a web service did not take.",
        personal=("body",) if table.personal else (),
    )


class _Writer(SinkWriter):
    def __init__(self, sink: WebhookSink, context: SinkContext) -> None:
        url = resolved_settings("webhook", {"url": sink.url})["url"]
        headers = resolved_headers("webhook", sink.headers)
        try:
            self._client = HttpClient(url, sink.timeout)
        except DeclarationError as error:
            raise DeclarationError(f"{sink.target}: {error}") from None
        self._headers = {"Content-Type": "application/json", **headers}
        self._sink = sink
        self._columns = context.table.schema.fieldNames()
        self._undelivered = undelivered_of(context.table)
        create_table(Lake(context.root, context.retention), self._undelivered)
        self._dead_letters = DeltaAppend().open(replace(context, table=self._undelivered))
        self._is_down = False

    def last(self) -> BatchIdentity | None:
        return None

    def write(
        self, rows: Rows, identity: BatchIdentity, metadata: Mapping[str, Any] | None = None
    ) -> int:
        given = as_rows(rows)
        failed = []
        for body, key in self._requests(given, identity):
            reason, attempts = self._deliver(body, key)
            if reason is not None:
                failed.append(
                    {
                        "undelivered_at": datetime.now(UTC),
                        "idempotency_key": key,
                        "body": body.decode(),
                        "reason": reason,
                        "attempts": attempts,
                    }
                )
        if failed:
            # Of a batch that comes again those of the first time count: the others were delivered.
            self._dead_letters.write(rows_of(self._undelivered, failed), identity)
        return given.count()

    def _requests(self, rows: BatchRows, identity: BatchIdentity) -> Iterator[tuple[bytes, str]]:
        """The bodies, each with a key that follows from the batch and from what is in it."""
        seen: Counter[str] = Counter()
        at_once = self._sink.rows_at_once
        every = self._objects(rows)
        while objects := list(islice(every, at_once)):
            body = json_text(objects if at_once > 1 else objects[0])
            named = f"{identity.stream}\n{identity.generation}\n{identity.batch}\n".encode()
            digest = hashlib.sha256(named + body).hexdigest()[:32]
            seen[digest] += 1
            yield body, digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"

    def _objects(self, rows: BatchRows) -> Iterator[Mapping[str, Any]]:
        for piece in rows.pieces(self._columns):
            for start in range(0, piece.num_rows, AT_ONCE):
                yield from python_rows(piece.slice(start, AT_ONCE))

    def _deliver(self, body: bytes, key: str) -> tuple[str | None, int]:
        """Send a request; returns why it was not delivered, if so, and after how many attempts.

        While the service is down, a request that comes behind another one has one attempt.
        """
        most = 1 if self._is_down else self._sink.attempts
        for attempt in range(1, most + 1):
            requested: float | None = None
            try:
                reply = self._client.request(
                    "POST", self._client.path, {**self._headers, "Idempotency-Key": key}, body
                )
            except HttpFailed as error:
                reason, passes = str(error), True
            else:
                if 200 <= reply.status < 300:
                    self._is_down = False
                    return None, attempt
                reason, passes = f"answered {reply.status}", reply.status in PASSING
                requested = reply.retry_after
            if not passes:
                return reason, attempt
            if attempt < most:
                time.sleep(pause_before(attempt + 1, requested))
        self._is_down = True
        return reason, most

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
        self._dead_letters.close()
