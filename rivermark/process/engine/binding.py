"""Binds a process to the engine: its state attributes become views of the current key's record."""

from __future__ import annotations

import copy
from typing import Any

from rivermark.process.api.broadcast import BroadcastState
from rivermark.process.api.context import Context, UndecidedTimers, UnhandledTimers
from rivermark.process.api.declaration import StateSpec
from rivermark.process.api.expiry import ExpiringList, ExpiringMap, ExpiringValue, TtlClock, sweep
from rivermark.process.api.state import ValueState
from rivermark.process.engine.bucket import Bucket, KeyRecord
from rivermark.process.engine.codec import Codec
from rivermark.process.errors import Misuse
from rivermark.process.keyed import KeyedProcess
from rivermark.process.timers import TimeDomain


class Binding:
    """A copy of a process whose state is that of the key in hand."""

    def __init__(
        self, process: KeyedProcess[Any, Any], context: Context[Any], codec: Codec
    ) -> None:
        self.process = copy.copy(process)
        self.declaration = process.declaration
        self.context = context
        self._codec = codec
        keyed = len(self.declaration.states)
        self.marks: dict[TimeDomain, int] = {
            clock: keyed + place for place, clock in enumerate(codec.marks)
        }
        self.mortal: dict[TimeDomain, list[int]] = {clock: [] for clock in self.marks}
        self.collections: list[tuple[int, StateSpec]] = []
        object.__setattr__(self.process, "_context", context)
        for slot, spec in enumerate(self.declaration.states):
            self._bind_state(slot, spec)
        self._broadcasts: list[BroadcastState[Any, Any]] = []
        for spec in self.declaration.broadcasts:
            table: BroadcastState[Any, Any] = BroadcastState()
            object.__setattr__(self.process, spec.name, table)
            self._broadcasts.append(table)

    def _bind_state(self, slot: int, spec: StateSpec) -> None:
        view: Any
        if spec.kind != "value":
            self.collections.append((slot, spec))
        if spec.ttl is None:
            if spec.kind != "value":
                return
            view = ValueState()
            view.bind(self.context, slot, spec.of)
        else:
            life = TtlClock(self.context, spec.ttl, self.marks[spec.ttl.clock])
            self.mortal[spec.ttl.clock].append(slot)
            if spec.kind == "value":
                view = ExpiringValue[Any]().with_life(life)
                view.bind(self.context, slot, spec.of)
            else:
                cls = ExpiringList if spec.kind == "list" else ExpiringMap
                view = cls(self.context, slot, life)
        object.__setattr__(self.process, spec.name, view)

    def attach(self, bucket: Bucket) -> None:
        """Let timers and broadcast state be those of `bucket`."""
        context = self.context
        handled = self.declaration.has_on_timer
        if handled and not self.declaration.decided:
            context.timers.event = UndecidedTimers(context, self.declaration.name)
        else:
            context.timers.event = bucket.event if handled else UnhandledTimers(context)
        context.timers.processing = bucket.processing if handled else UnhandledTimers(context)
        context.expiry = bucket.expiry
        for table, spec, stored in zip(
            self._broadcasts, self.declaration.broadcasts, bucket.broadcasts, strict=True
        ):
            table.bind(context, spec, stored)

    def sweep(self, record: list[Any], clock: TimeDomain, now: int) -> None:
        """Clear what ended in a record by `now`, and note when the next of it ends."""
        ends = []
        for slot in self.mortal[clock]:
            record[slot], end = sweep(record[slot], now)
            if end is not None:
                ends.append(end)
        mark = self.marks[clock]
        record[mark] = min(ends, default=None)
        if record[mark] is not None:
            self.context.expiry[clock].register(record[mark])

    def settle(self, bucket: Bucket) -> None:
        """Forget touched keys in which nothing is left; check what is left in the others.

        Raises Misuse for values that are not of the declared types, which storage would not give
        back: the key could never be read again.
        """
        records = bucket.records
        template = [None] * (len(self.declaration.states) + len(self.marks))
        checked = self._codec.checked if self._codec.checks else None
        collections = self.collections
        for key in bucket.touched:
            record = records.get(key)
            if record is None:  # opened twice, and forgotten the first time
                continue
            for slot, spec in collections:
                stored = record[slot]
                if stored:
                    self._check_elements(key, spec, stored)
                elif stored is not None:
                    record[slot] = None
            if record == template:
                del records[key]
            elif self.marks and not any(
                each is not None for each in record[: len(self.declaration.states)]
            ):
                self.context.key = key
                for clock, mark in self.marks.items():
                    if record[mark] is not None:
                        bucket.expiry[clock].delete(record[mark])
                del records[key]
            elif checked is not None:
                records[key] = checked(key, record)

    def verify(self, key: Any, record: KeyRecord) -> None:
        """Raise Misuse unless the record of a key could be stored and read back."""
        for slot, spec in self.collections:
            if record[slot]:
                self._check_elements(key, spec, record[slot])
        self._codec.checked(key, record)

    def _check_elements(self, key: Any, spec: StateSpec, stored: Any) -> None:
        """Raise Misuse for an element of a list or map whose class is not the declared one."""
        values = stored if spec.kind == "list" else stored.values()
        try:
            spec.of.verify_all(values if spec.ttl is None else [each[0] for each in values])
            if spec.key is not None:
                spec.key.verify_all(stored)
        except Misuse as error:
            raise Misuse(f"process '{self.declaration.name}', key {key!r}: {error}") from error
