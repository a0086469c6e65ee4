"""Takes a bucket over from an earlier schema, record by record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from rivermark.process.api.declaration import Declaration, StateSpec
from rivermark.process.engine.bucket import Held
from rivermark.process.engine.stored_form import Body
from rivermark.process.errors import Misuse, StateUnreadable
from rivermark.process.evolution.compatibility import check_compatible
from rivermark.process.evolution.revival import named, revived
from rivermark.process.evolution.schema import StateSchema, StateShape


class Upgrade:
    """Rewrites buckets that were stored under `old` for the present declaration.

    Only buckets that are opened are rewritten, each once; the others keep their old schema.
    """

    def __init__(self, old: StateSchema, declaration: Declaration, marks: Sequence[str]) -> None:
        self.old = old
        self.new = declaration
        problems = check_compatible(
            old,
            declaration.schema,
            migrated=declaration.migrations,
            forgotten=declaration.forgets,
        )
        if problems:
            reasons = "\n".join(f"- {each}" for each in problems)
            raise StateUnreadable(
                f"process '{declaration.name}' cannot take over state of version {old.version}:\n"
                f"{reasons}"
            )
        keyed = [each for each in old.states if each.kind != "broadcast"]
        self._slots = {each.name: slot for slot, each in enumerate(keyed)}
        self._old = {each.name: each for each in old.states}
        self._marks = marks
        old_marks = sorted({each.life for each in keyed if each.life is not None})
        self._old_marks = {clock: len(keyed) + i for i, clock in enumerate(old_marks)}

    def body(self, body: Body[Any]) -> None:
        """Rewrite an opened body in place."""
        for key, stored in body.records.items():
            try:
                body.records[key] = Raw(msgspec.msgpack.encode(self._record(stored)))
            except (msgspec.ValidationError, TypeError, ValueError, Misuse) as error:
                raise StateUnreadable(
                    f"process '{self.new.name}': the state of key {key!r}, written by version "
                    f"{self.old.version}, could not be taken over: {error}"
                ) from error
        body.held = [self._held(*each) for each in body.held]
        body.broadcasts = self._broadcasts(body.broadcasts)

    def _record(self, stored: Raw) -> list[Any]:
        old = msgspec.msgpack.decode(stored)
        record = [
            self._state(each, old[self._slots[each.name]]) if each.name in self._slots else None
            for each in self.new.states
        ]
        marks = [
            old[self._old_marks[clock]] if clock in self._old_marks else None
            for clock in self._marks
        ]
        return [*record, *marks]

    def _state(self, spec: StateSpec, stored: Any) -> Any:
        """One state's slot under the present declaration."""
        if stored is None:
            return None
        was = self._old[spec.name]
        if was == spec.shape and self.old.version == self.new.version:
            return stored

        def element(value: Any) -> Any:
            if was.life is None:
                return self._value(spec, was, value)
            return self._value(spec, was, value[0]), value[1]

        if spec.kind == "value":
            return element(stored)
        if spec.kind == "list":
            return [element(each) for each in stored]
        return {key: element(each) for key, each in stored.items()}

    def _value(self, spec: StateSpec, was: StateShape, stored: Any) -> Any:
        plain = named(stored, was.of)
        migrate = self.new.migrations.get(spec.name)
        if migrate is None:
            return revived(plain, spec.of.info)
        value = migrate(plain, self.old.version)
        spec.of.verify_deeply(value)
        return value

    def _held(self, at: int, rank: int, number: int, key: Any, stored: Raw) -> Held:
        was = self.old.held[rank]
        now = self.new.input(was.input)
        plain = named(msgspec.msgpack.decode(stored), was.event)
        event = Raw(msgspec.msgpack.encode(revived(plain, now.event.info)))
        return at, self.new.inputs.index(now), number, key, event

    def _broadcasts(self, stored: list[Raw]) -> list[Raw]:
        names = [each.name for each in self.old.states if each.kind == "broadcast"]
        before = dict(zip(names, stored, strict=True))
        upgraded = []
        for spec in self.new.broadcasts:
            if spec.name not in before:
                upgraded.append(Raw(msgspec.msgpack.encode([0, None, {}])))
                continue
            version, changed_at, entries = msgspec.msgpack.decode(before[spec.name])
            was = self._old[spec.name]
            taken = {key: (self._value(spec, was, each), at) for key, (each, at) in entries.items()}
            upgraded.append(Raw(msgspec.msgpack.encode([version, changed_at, taken])))
        return upgraded
