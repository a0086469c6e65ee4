"""Compatibility of a process with state that an earlier declaration wrote."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from rivermark.process.evolution.schema import StateSchema, StateShape
from rivermark.process.evolution.shapes import TypeShape


@dataclass(frozen=True)
class Incompatibility:
    """One reason why stored state does not fit: where, what, and what would help."""

    where: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}; {self.remedy}"


def check_compatible(
    old: StateSchema,
    new: StateSchema,
    *,
    migrated: Collection[str] = (),
    forgotten: Collection[str] = (),
) -> list[Incompatibility]:
    """Reasons why state of schema `old` cannot be read as `new`; none means it can.

    Added states and added fields with a default are fine, and so are types that take in the old
    values. `migrated` are the states with a migration; `forgotten` names states, and fields as
    'state.field', that may be lost.
    """
    return [
        *_key_changes(old, new),
        *_removed_states(old, new, forgotten),
        *_changed_states(old, new, migrated, forgotten),
        *_changed_events(old, new, forgotten),
        *_older_version(old, new),
    ]


def _key_changes(old: StateSchema, new: StateSchema) -> Iterator[Incompatibility]:
    if old.key != new.key:
        yield Incompatibility(
            "the key",
            f"was {old.key} and is {new.key}",
            "keys cannot be migrated: start with a new state and replay",
        )


def _older_version(old: StateSchema, new: StateSchema) -> Iterator[Incompatibility]:
    if new.version < old.version:
        yield Incompatibility(
            "the version",
            f"was {old.version} and is {new.version}",
            "run the newer code, or restore a copy of the checkpoint from before it",
        )


def _removed_states(
    old: StateSchema, new: StateSchema, forgotten: Collection[str]
) -> Iterator[Incompatibility]:
    kept = {each.name for each in new.states}
    for each in old.states:
        if each.name not in kept and each.name not in forgotten:
            yield Incompatibility(
                f"state '{each.name}'",
                f"({each}) is no longer declared",
                f"declare it, or allow its loss with forgets = ('{each.name}',)",
            )


def _changed_states(
    old: StateSchema, new: StateSchema, migrated: Collection[str], forgotten: Collection[str]
) -> Iterator[Incompatibility]:
    before = {each.name: each for each in old.states}
    for after in new.states:
        was = before.get(after.name)
        if was is not None and was != after:
            yield from _state_changes(was, after, after.name in migrated, forgotten)


def _state_changes(
    was: StateShape, now: StateShape, has_migration: bool, forgotten: Collection[str]
) -> Iterator[Incompatibility]:
    where = f"state '{now.name}'"
    if (was.kind, was.key, was.life) != (now.kind, now.key, now.life):
        yield Incompatibility(
            where,
            f"was a {was} and is a {now}",
            "declare the new one under another name and forget the old one",
        )
    elif not has_migration:
        for path, problem in _differences(was.of, now.of, now.name, forgotten):
            yield Incompatibility(
                f"state '{path}'", problem, f"give a migration: migrations = {{'{now.name}': ...}}"
            )


def _changed_events(
    old: StateSchema, new: StateSchema, forgotten: Collection[str]
) -> Iterator[Incompatibility]:
    now = {each.input: each.event for each in new.held}
    for each in old.held:
        if each.input not in now:
            yield Incompatibility(
                f"input '{each.input}'",
                "has events waiting in the state and is gone",
                "let them drain before removing it",
            )
            continue
        for path, problem in _differences(each.event, now[each.input], each.input, forgotten):
            yield Incompatibility(
                f"input '{path}'", problem, "events that wait in the state must stay readable"
            )


def _differences(
    old: TypeShape, new: TypeShape, path: str, forgotten: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Places where values of shape `old` do not fit `new`, and how."""
    if old == new or new.kind == "any" or (old.kind, new.kind) == ("int", "float"):
        return
    if old.kind == "union":
        for each in old.inside:
            yield from _differences(each, new, path, forgotten)
    elif new.kind == "union":
        fits = (not any(_differences(old, each, path, forgotten)) for each in new.inside)
        if not any(fits):
            yield path, f"was {old} and is {new}"
    elif old.kind != new.kind or len(old.inside) != len(new.inside):
        yield path, f"was {old} and is {new}"
    elif old.kind in ("enum", "literal"):
        lost = [str(each) for each in old.values if each not in new.values]
        if lost:
            yield path, f"no longer allows {', '.join(lost)}"
    elif old.kind == "record":
        yield from _field_differences(old, new, path, forgotten)
    else:
        for before, after in zip(old.inside, new.inside, strict=True):
            yield from _differences(before, after, path, forgotten)


def _field_differences(
    old: TypeShape, new: TypeShape, path: str, forgotten: Collection[str]
) -> Iterator[tuple[str, str]]:
    before = {each.name: each for each in old.fields}
    after = {each.name: each for each in new.fields}
    for name, field in before.items():
        inner = f"{path}.{name}"
        if name in after:
            yield from _differences(field.shape, after[name].shape, inner, forgotten)
        elif inner not in forgotten:
            yield inner, f"({field.shape}) is gone; if it may be lost, forgets = ('{inner}',)"
    for name, field in after.items():
        if name not in before and field.required:
            yield f"{path}.{name}", f"({field.shape}) is new and has no default"
