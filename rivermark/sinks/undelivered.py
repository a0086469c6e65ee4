"""Rows that a target outside the lake did not take: kept beside the table, and sent again later.

A row that a database refuses, or a service has no time for, holds up no other. It lies in
`<table>_undelivered` with the reason until it is delivered: by the next batch where a service is
well again, or by `rivermark dead-letters replay`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import pyarrow as pa

from rivermark.lake.commit_metadata import commit_properties
from rivermark.lake.delta import dataset_of, delta_table, read_rows
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import append_rows, rows_of
from rivermark.model.ddl import struct_type
from rivermark.model.sink import BatchIdentity, SinkContext, SinkWriter
from rivermark.model.table import Table
from rivermark.sinks.delta_append import DeltaAppend

UNDELIVERED: Final = struct_type(
    "undelivered_at timestamp, idempotency_key string, body string, reason string, attempts int, "
    "target string"
)


class Refused(NamedTuple):
    """A row or request, as JSON, that was not delivered: its key, why, after how many attempts."""

    body: bytes
    key: str
    reason: str
    attempts: int = 1


def undelivered_of(table: Table) -> Table:
    """The table of an output's rows that were not delivered."""
    return Table(
        name=f"{table.name}_undelivered",
        schema=UNDELIVERED,
        description=f"Rows of `{table.name}` that a target outside the lake did not take.",
        personal=("body", "reason") if table.personal else (),
    )


def keyed(identity: BatchIdentity, bodies: Iterable[bytes]) -> Iterator[tuple[bytes, str]]:
    """The bodies of a batch, each with a key that follows from the batch and from what is in it."""
    named = f"{identity.stream}\n{identity.generation}\n{identity.batch}\n".encode()
    seen: Counter[str] = Counter()
    for body in bodies:
        digest = hashlib.sha256(named + body).hexdigest()[:32]
        seen[digest] += 1
        yield body, digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"


class Undelivered:
    """The rows of one output that one target did not take."""

    def __init__(self, context: SinkContext, target: str) -> None:
        self._target = target
        self.table = undelivered_of(context.table)
        self._lake = Lake(context.root, context.retention)
        # Each target has batches of its own in the table.
        origin = replace(context.origin, stream=f"{context.origin.stream}:{target}")
        self._context = replace(context, table=self.table, origin=origin)
        self._writer: SinkWriter | None = None

    def create(self) -> None:
        """Create the table, which most targets never need."""
        create_table(self._lake, self.table)

    def write(self, refused: Sequence[Refused], identity: BatchIdentity) -> None:
        """Keep what was refused of a batch; when it comes again, that of the first time counts."""
        if refused:
            if self._writer is None:
                self.create()
                self._writer = DeltaAppend().open(self._context)
            self._writer.write(rows_of(self.table, self._rows(refused)), identity)

    def add(self, refused: Sequence[Refused], metadata: Mapping[str, Any]) -> None:
        """Keep what was refused of a replacement of days, each key once."""
        held = {row["idempotency_key"] for row in self.waiting()}
        new = [each for each in refused if each.key not in held]
        append_rows(self._lake, self.table, self._rows(new), metadata)

    def _rows(self, refused: Sequence[Refused]) -> list[dict[str, Any]]:
        now = datetime.now(UTC)
        return [
            {
                "undelivered_at": now,
                "idempotency_key": each.key,
                "body": each.body.decode(),
                "reason": each.reason,
                "attempts": each.attempts,
                "target": self._target,
            }
            for each in refused
        ]

    def waiting(self) -> list[dict[str, Any]]:
        """The rows that this target did not take and has not got since, in their order.

        Rows of earlier releases name no target: they are taken for those of it.
        """
        rows = waiting_in(self._lake, self.table)
        return [row for row in rows if row["target"] in (self._target, None)]

    def settle(self, keys: Collection[str]) -> None:
        """Take out what was delivered since."""
        if not keys:
            return
        path = self._lake.path(self.table)
        # Keys are digests, with a number behind some.
        listed = ", ".join(f"'{key}'" for key in sorted(keys))
        with commit_lock(path):
            delta_table(path).delete(
                f"idempotency_key IN ({listed})",
                commit_properties=commit_properties({"delivered": len(keys)}),
            )

    def close(self) -> None:
        """Close the table's writer."""
        if self._writer is not None:
            self._writer.close()


def waiting_in(lake: Lake, table: Table) -> list[dict[str, Any]]:
    """The rows of a table of what was not delivered; none where there is no such table."""
    if not lake.exists(table):
        return []
    kept: pa.Table = read_rows(dataset_of(delta_table(lake.path(table))))
    rows: list[dict[str, Any]] = kept.to_pylist()
    for row in rows:
        row.setdefault("target", None)
    return sorted(rows, key=lambda row: row["undelivered_at"])
