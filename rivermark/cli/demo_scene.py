"""A domain's part in the demo: what it lands, what it checks, what it shows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from rivermark.model.errors import RivermarkError
from rivermark.model.table import Table
from rivermark.monitor.checks.check import StreamCheck

SCENES: Final = "rivermark.demo"
"""Entry points of this group are scenes of the demo."""


@dataclass(frozen=True)
class LandedInput:
    """The input of a scene in the landing folder: in words, in files and rows, and new ones."""

    what: str
    files: int
    rows: int
    new_files: int


@dataclass(frozen=True, kw_only=True)
class Preview:
    """A few rows of a table that are worth a look; `columns` may name some of them only."""

    title: str
    table: Table
    columns: tuple[str, ...] = ()
    limit: int = 10
    oldest: bool = False


@dataclass(frozen=True)
class Served:
    """A service of a scene while the demo runs.

    `environment` are the variables by which declarations find it; `said` gives the sentences about
    what it was asked or told, when the streams have ended.
    """

    environment: Mapping[str, str]
    said: Callable[[], Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """The part of a domain in the demo.

    `land` puts its inputs below a local landing folder, each once however often it is called.
    `serve` starts a service on this machine for as long as the demo runs, before the declarations
    are imported. `checks` are its own, beside those that every stream has. `next_commands` are
    commands to try, with what each does.
    """

    land: Callable[[Path], Sequence[LandedInput]]
    serve: Callable[[], AbstractContextManager[Served]] | None = None
    checks: tuple[StreamCheck, ...] = ()
    previews: tuple[Preview, ...] = ()
    next_commands: tuple[tuple[str, str], ...] = field(default=())


def scenes() -> dict[str, Scene]:
    """The scenes of the installed domains by name; RivermarkError names one that is broken."""
    loaded = {}
    for entry in sorted(entry_points(group=SCENES), key=lambda entry: entry.name):
        try:
            scene = entry.load()
        except Exception as error:
            raise RivermarkError(f"scene {entry.value} cannot be imported: {error}") from error
        if not isinstance(scene, Scene):
            raise RivermarkError(f"{entry.value} is not a Scene but {type(scene).__name__}")
        loaded[entry.name] = scene
    return loaded


@contextmanager
def serving(parts: Mapping[str, Scene]) -> Iterator[Callable[[], list[str]]]:
    """Run the services of the scenes for a block, which get the variables that name them.

    Yields the function that tells what all of them have to say. A variable that is set already
    stays as it is: somebody's own service is meant.
    """
    with ExitStack() as running:
        served = [running.enter_context(scene.serve()) for scene in parts.values() if scene.serve]
        before = dict(os.environ)
        try:
            for each in served:
                os.environ.update({**each.environment, **before})
            yield lambda: [sentence for each in served for sentence in each.said()]
        finally:
            for name in {name for each in served for name in each.environment} - before.keys():
                del os.environ[name]
