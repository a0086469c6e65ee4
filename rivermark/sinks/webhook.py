"""Rows as requests to a web service, so that an alert reaches somebody.

A service does not say which rows it has, so each row is sent at least once; by the key that each
request carries it may leave out what it has seen. What it does not take after several attempts goes
to a table of the lake, and the stream goes on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Any, ClassVar, Final

from rivermark.connect.environment import resolved_settings
from rivermark.connect.http import (
    PASSING,
    HttpClient,
    HttpFailed,
    check_headers,
    pause_before,
    resolved_headers,
    server_of,
)
from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError
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
from rivermark.sinks.python_rows import python_rows
from rivermark.sinks.undelivered import Refused, Undelivered, keyed, undelivered_of

AT_ONCE: Final = 10_000
"""Rows that are Python objects at a time."""
FINAL: Final = frozenset(range(300, 600)) - PASSING
"""Statuses that the same request will have again."""
RESENT_AT_ONCE: Final = 1_000
"""Requests of earlier batches that a batch sends again at most, once the service is well."""


@declared("sink", lambda values: values.get("url"))
@dataclass(frozen=True, kw_only=True)
class WebhookSink(Sink):
    """Posts each row as a JSON object, or `rows_at_once` of them as a JSON list.

    Every request has an `Idempotency-Key` header, the same when a batch comes again. A reply of 2xx
    is a delivery. If there is no reply within `timeout`, or it is 429 or an error of the server,
    the request is tried again up to `attempts` times, after growing pauses or as `Retry-After`
    says. Any other reply, including a redirect, is final. Rows that are not delivered go to the
    table `<table>_undelivered`, with the rest of a batch in which a request had no reply, and are
    sent again after the next batch that is delivered. A `url` or a header's value `$NAME` is that
    of the environment variable.
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
        """The target of the requests."""
        return f"webhook {self._place}"

    def open(self, context: SinkContext) -> SinkWriter:
        """Create the table of what could not be delivered."""
        return _Writer(self, context)

    def tables(self, table: Table) -> tuple[Table, ...]:
        """The table of what could not be delivered."""
        return (undelivered_of(table),)


def may_pass(reason: str) -> bool:
    """Returns True if a request that was not delivered may be some other time, without a person."""
    return not any(reason == f"answered {status}" for status in FINAL)


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
        self._undelivered = Undelivered(context, sink.target)
        self._undelivered.create()
        self._is_down = False
        self._may_wait = True
        """Whether there may be requests of before that wait."""

    def last(self) -> BatchIdentity | None:
        return None

    def write(
        self, rows: Rows, identity: BatchIdentity, metadata: Mapping[str, Any] | None = None
    ) -> int:
        batch_rows = as_rows(rows)
        failed, silent = [], ""
        for body, key in keyed(identity, self._bodies(batch_rows)):
            if silent:
                # Each would be waited for as long, and the stream with it.
                failed.append(Refused(body, key, silent, 0))
                continue
            reason, attempts, answered = self._deliver(body, key)
            if reason is not None:
                failed.append(Refused(body, key, reason, attempts))
                silent = "" if answered else reason
        # Of a batch that comes again those of the first time count: the others were delivered.
        self._undelivered.write(failed, identity)
        self._may_wait = self._may_wait or bool(failed)
        if batch_rows.count() and not failed and self._may_wait:
            waiting = [row for row in self._undelivered.waiting() if may_pass(row["reason"])]
            self._send_again(waiting[:RESENT_AT_ONCE])
            self._may_wait = len(waiting) > RESENT_AT_ONCE
        return batch_rows.count()

    def resend(self, waiting: Sequence[Mapping[str, Any]]) -> list[str | None]:
        reasons = self._send_again(waiting)
        return [*reasons, *[reasons[-1]] * (len(waiting) - len(reasons))]

    def _send_again(self, waiting: Sequence[Mapping[str, Any]]) -> list[str | None]:
        """The reason why each was not delivered, up to the first that had no answer."""
        reasons: list[str | None] = []
        for row in waiting:
            reason, _, answered = self._deliver(row["body"].encode(), row["idempotency_key"])
            reasons.append(reason)
            if not answered:
                break
        pairs = zip(waiting, reasons, strict=False)
        self._undelivered.settle([row["idempotency_key"] for row, why in pairs if why is None])
        return reasons

    def _bodies(self, rows: BatchRows) -> Iterator[bytes]:
        at_once = self._sink.rows_at_once
        every = self._objects(rows)
        while objects := list(islice(every, at_once)):
            yield json_text(objects if at_once > 1 else objects[0])

    def _objects(self, rows: BatchRows) -> Iterator[Mapping[str, Any]]:
        for piece in rows.pieces(self._columns):
            for start in range(0, piece.num_rows, AT_ONCE):
                yield from python_rows(piece.slice(start, AT_ONCE))

    def _deliver(self, body: bytes, key: str) -> tuple[str | None, int, bool]:
        """Send a request; returns why it was not delivered, if so, after how many attempts.

        And whether it was answered. While the service is down a request has one attempt.
        """
        most = 1 if self._is_down else self._sink.attempts
        for attempt in range(1, most + 1):
            requested: float | None = None
            try:
                reply = self._client.request(
                    "POST", self._client.path, {**self._headers, "Idempotency-Key": key}, body
                )
            except HttpFailed as error:
                reason, passes, answered = str(error), True, False
            else:
                if 200 <= reply.status < 300:
                    self._is_down = False
                    return None, attempt, True
                reason, passes = f"answered {reply.status}", reply.status in PASSING
                requested, answered = reply.retry_after, True
            if not passes:
                return reason, attempt, True
            if attempt < most:
                time.sleep(pause_before(attempt + 1, requested))
        self._is_down = True
        return reason, most, answered

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
        self._undelivered.close()
