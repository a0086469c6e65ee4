"""Streams of a lineage that count as started; every day of theirs differs when computed first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from rivermark import Ingest, Stream, Topology
from rivermark.backfill import downstream
from rivermark.backfill.affected_days import Changed
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.late.run import MergeReport, merge_late
from rivermark.backfill.pending import pending_days
from rivermark.backfill.plan import StartedStream
from rivermark.backfill.replace_changed import RecomputedTable
from rivermark.lake.schema import create_table
from rivermark.quality.errors import PublicationBlocked
from rivermark.settings import Settings


class KilledError(Exception):
    """The end of a process, made by a test."""


class Lineage:
    """A deployment in which computing is played, with streams that are open, blocked or killed."""

    def __init__(self, settings: Settings, topology: Topology, patch: pytest.MonkeyPatch) -> None:
        self.context = BackfillContext(
            settings=settings,
            topology=topology,
            spark=lambda: None,  # type: ignore[arg-type,return-value]
            run_id="run",
        )
        self.computed: list[tuple[str, set[date]]] = []
        self.replaced: set[str] = set()
        self.open: set[str] = set()
        self.same: set[str] = set()
        self.killed_at = self.blocked = ""
        for stream in topology.streams:
            for table in stream.tables if isinstance(stream, Stream) else ():
                create_table(settings.lake(), table)
        patch.setattr(downstream, "started_streams", self.started)
        patch.setattr("rivermark.backfill.plan.started_streams", self.started)
        patch.setattr("rivermark.backfill.replace_changed.replace_changed", self.compute)

    def started(self, _lake: object, topology: Topology) -> list[StartedStream]:
        streams = [s for s in topology.streams if isinstance(s, Stream)]
        return [StartedStream(s, None if s.name in self.open else date.max) for s in streams]

    def compute(
        self, _context: object, stream: Stream, days: Sequence[date], **_: Any
    ) -> list[RecomputedTable]:
        if stream.name == self.killed_at:
            raise KilledError
        if stream.name == self.blocked:
            raise PublicationBlocked("its tips are below zero")
        self.computed.append((stream.name, set(days)))
        table = RecomputedTable(stream.tables[0].name, tuple(sorted(days)))
        if stream.name not in self.same | self.replaced:
            table.changed = Changed.whole_days(stream.tables[0], days)
        self.replaced.add(stream.name)
        return [table]

    @property
    def streams_computed(self) -> list[str]:
        """The streams that were computed, in that order."""
        return [name for name, _ in self.computed]

    @property
    def pending(self) -> dict[str, set[date]]:
        """The days that are to be recomputed."""
        return pending_days(self.context.lake, self.context.topology)

    def merge(self, topology: Topology | None = None) -> MergeReport:
        """The nightly merge of late rows."""
        self.computed = []
        context = replace(self.context, topology=topology or self.context.topology)
        ingests = [s for s in context.topology.streams if isinstance(s, Ingest)]
        return merge_late(context, ingests)
