"""Kills of a process before any of its steps, made within a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pkgutil import resolve_name
from typing import Any, TypeVar

import pytest
from pyarrow import fs

from rivermark.lake.filesystem import filesystem

T = TypeVar("T")


class Killed(BaseException):
    """Stands for the kill of the process: no `except Exception` holds it up."""


@dataclass
class Killer:
    """Counts the steps of what is tested, and kills before the one that is due."""

    due: int | None = None
    steps: int = 0
    patch: pytest.MonkeyPatch = field(default_factory=pytest.MonkeyPatch)

    def kills(self, due: int, action: Callable[[], object]) -> bool:
        """Do something; whether it was killed before its step `due`, or ended with fewer steps."""
        self.due, self.steps = due, 0
        try:
            action()
        except Killed:
            return True
        finally:
            self.due = None
        return False

    def before_each(
        self, prepare: Callable[[], T], action: Callable[[T], object]
    ) -> Iterator[tuple[int, T]]:
        """Do something on a world of its own for each of its steps, killed before that one.

        Gives the step with its world as the kill left it; the last one was not killed.
        """
        due, is_killed = 0, True
        while is_killed:
            due += 1
            world = prepare()
            is_killed = self.kills(due, partial(action, world))
            yield due, world

    def step(self) -> None:
        """Count one step."""
        self.steps += 1
        if self.steps == self.due:
            raise Killed

    def before(self, target: str) -> None:
        """Make a step of each call of a function, or of a method of a class."""
        place, name = target.rsplit(".", 1)
        owner = resolve_name(place)
        function = getattr(owner, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.step()
            return function(*args, **kwargs)

        self.patch.setattr(owner, name, counted)

    def within(self, target: str) -> None:
        """Make a step of each change of the file systems that a function opens."""

        def stepped(uri: str) -> tuple[Any, str]:
            store, path = filesystem(uri)
            return SteppedStore(store, self), path

        self.patch.setattr(target, stepped)


class SteppedStore:
    """A file system each of whose changes is a step."""

    CHANGES = ("open_output_stream", "move", "delete_file", "delete_dir", "create_dir")

    def __init__(self, store: fs.FileSystem, killer: Killer) -> None:
        self._store = store
        self._killer = killer

    def __getattr__(self, name: str) -> Any:
        if name in self.CHANGES:
            self._killer.step()
        return getattr(self._store, name)
