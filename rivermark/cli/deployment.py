"""The deployment that the console works on: its settings, its streams, and those that are meant."""

from __future__ import annotations

import linecache
import os
import re
import sys
import tomllib
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from traceback import walk_tb
from typing import Final, TypeVar

from pydantic import ValidationError
from pydantic_settings import SettingsError

from rivermark.lake.filesystem import is_local
from rivermark.lake.lake import Lake
from rivermark.model.errors import DeclarationError, RivermarkError, WrongUse
from rivermark.model.ingest import Ingest
from rivermark.model.nearest import did_you_mean
from rivermark.model.place import Place, is_of_user, raised_at
from rivermark.model.stream import AnyStream
from rivermark.model.topology import Topology
from rivermark.settings import PREFIX, Settings

TOPOLOGY: Final = "rivermark.topology"
"""The entry point `default` of this group is the deployment's Topology.

A project that is not installed names it in its pyproject.toml, which comes first:

    [tool.rivermark]
    topology = "my_project.streams:TOPOLOGY"
"""

UNKNOWN_NAME: Final = re.compile(r"cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)'")
"""How Python says that a module has no such name; what follows is the module's path."""

S = TypeVar("S")
T = TypeVar("T")

EXPECTED: Final = {
    "driver_memory": "write a size such as 2g or 512m",
    "bool_parsing": "write true or false",
    "int_parsing": "write a whole number",
    "float_parsing": "write a number",
}
"""What is said of settings whose rule is a pattern, and of values of the wrong type."""
LISTS: Final = {"notify_to": '["https://host/path"]'}
SECRET: Final = frozenset({"notify_to"})
"""Settings whose values errors do not show."""
NO_SESSION: Final = "SESSION_OR_CONTEXT_NOT_EXISTS"
"""Spark's error class where a column is made before it runs."""


def topology_entry() -> EntryPoint:
    """The place where the deployment declares its streams; RivermarkError where there is none."""
    entry = _of_project(Path.cwd()) or next(
        iter(entry_points(group=TOPOLOGY, name="default")), None
    )
    if entry is None:
        raise RivermarkError(
            "no project declares its streams here: write [tool.rivermark] topology = "
            '"my_project.streams:TOPOLOGY" into its pyproject.toml, or give its package the entry '
            f"point 'default' in the group '{TOPOLOGY}'"
        )
    return entry


def topology() -> Topology:
    """The streams of the installed deployment; RivermarkError where there are none to import."""
    entry = topology_entry()
    try:
        declared = entry.load()
    except DeclarationError as error:
        raise error.at(raised_at(error)) from error.__cause__
    except RivermarkError:
        raise
    except Exception as error:
        raise RivermarkError(import_fault(entry.value, error)) from error
    if not isinstance(declared, Topology):
        raise RivermarkError(f"{entry.value} is not a Topology but {type(declared).__name__}")
    return declared


def _of_project(folder: Path) -> EntryPoint | None:
    """The topology that the folder's own pyproject.toml names, whose modules lie there.

    No folder above it is looked at: what lies there may be somebody else's. Raises RivermarkError
    for a file that is no TOML.
    """
    file = folder / "pyproject.toml"
    if not file.is_file():
        return None
    try:
        named = tomllib.loads(file.read_text()).get("tool", {}).get("rivermark", {})
    except ValueError as error:
        raise RivermarkError(f"{file} is not valid TOML: {error}") from error
    if "topology" not in named:
        return None
    sys.path.insert(0, str(folder))
    return EntryPoint("default", str(named["topology"]), TOPOLOGY)


def import_fault(what: str, error: Exception) -> str:
    """The reason why a deployment cannot be imported, in a sentence with the place in its code."""
    place = raised_at(error)
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        # The line that is wrong never ran: it came through the line that imports its file.
        wrong = Place(error.filename, error.lineno)
        return f"{what} cannot be imported: it is no Python: {error.msg} ({wrong})"
    where = f" ({place})" if place is not None else ""
    if (isinstance(error, AssertionError) and not str(error)) or NO_SESSION in str(error):
        called = innermost_function(error)
        if called is not None:
            return (
                f"{what} cannot be imported: it calls {called}, which needs Spark, before Spark "
                f"runs; name the function itself, without (...){where}"
            )
        line = linecache.getline(place.file, place.line).strip() if place is not None else ""
        if re.search(r"\b(F\.|functions\.|col\(|lit\(|expr\()", line):
            return (
                f"{what} cannot be imported: `{line}` makes a column before Spark runs; write "
                f"`lambda: ` before the expression{where}"
            )
    reason = str(error) or type(error).__name__
    near = ""
    if isinstance(error, AttributeError) and error.obj is not None and error.name:
        near = did_you_mean(error.name, dir(error.obj))
    if missing := UNKNOWN_NAME.match(reason):
        module = sys.modules.get(missing["module"])
        near = did_you_mean(missing["name"], getattr(module, "__all__", dir(module)))
        reason = missing[0]
    return f"{what} cannot be imported: {reason}{near}{where}"


def innermost_function(error: Exception) -> str | None:
    """The function of a user's that an error came from; None where a module's own line raised."""
    frames = [frame.f_code for frame, _ in walk_tb(error.__traceback__)]
    names = [code.co_name for code in frames if is_of_user(code.co_filename)]
    return f"{names[-1]}()" if names and names[-1] != "<module>" else None


def settings_for(home: Path | None) -> Settings:
    """The settings of the environment, with another home where one is given."""
    try:
        return Settings() if home is None else Settings(home=home)
    except SettingsError as error:
        # What it could not read as JSON is in the text alone.
        name = str(error).partition('"')[2].partition('"')[0]
        variable = f"{PREFIX}{name.upper()}"
        example = LISTS.get(name, '["mail-me", "--urgent"]')
        refused = "" if name in SECRET else f", not {os.environ.get(variable)!r}"
        raise RivermarkError(
            f"setting {name} ({variable}): write a JSON list, as in {variable}='{example}'{refused}"
        ) from None
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        expected = EXPECTED.get(name) or EXPECTED.get(first["type"], first["msg"])
        refused = "" if name.partition(".")[0] in SECRET else f", not {first['input']!r}"
        raise RivermarkError(
            f"setting {name} (RIVERMARK_{name.upper()}): {expected}{refused}"
        ) from None


def selected(
    topology: Topology, names: Sequence[str], groups: Sequence[str], *, upstream: bool = False
) -> list[AnyStream]:
    """The streams meant, each once, in dependency order; all of them where nothing is said.

    Raises UnknownStream, with the names there are.
    """
    if not names and not groups:
        return list(topology.streams)
    wanted: set[str] = set()
    for group in groups:
        wanted |= {s.name for s in topology.group(group)}
    pending = [topology.named(name) for name in names]
    if upstream:
        pending += [topology.named(name) for name in wanted]
    while pending:
        stream = pending.pop()
        wanted.add(stream.name)
        if upstream:
            pending += [s for s in topology.upstreams(stream) if s.name not in wanted]
    return [s for s in topology.streams if s.name in wanted]


def suited(
    topology: Topology,
    names: Sequence[str] | None,
    groups: Sequence[str] | None,
    fit: Callable[[AnyStream], T],
) -> list[T]:
    """Results of `fit` for each stream that is meant, in dependency order.

    `fit` raises RivermarkError for a stream with which the command can do nothing: the error of one
    that was named, while a group just goes without it. Raises WrongUse where nothing is said.
    """
    if not names and not groups:
        raise WrongUse(
            "no stream was named: `rivermark status` lists them; give names, or --group GROUP"
        )
    chosen, unfit = [], None
    for stream in selected(topology, names or (), groups or ()):
        try:
            chosen.append(fit(stream))
        except RivermarkError as error:
            if stream.name in (names or ()):
                raise
            unfit = error
    if not chosen and unfit is not None:
        raise unfit
    return chosen


def attempted(items: Sequence[S], act: Callable[[S], T]) -> tuple[list[T], list[RivermarkError]]:
    """Results of `act` for each of several, and the errors of those for which it failed.

    The error of one does not keep the others from their turn; that of a single item is raised, and
    so is the last one where all failed.
    """
    results: list[T] = []
    errors: list[RivermarkError] = []
    for item in items:
        try:
            results.append(act(item))
        except RivermarkError as error:
            errors.append(error)
    if errors and not results:
        raise errors[-1]
    return results, errors


def an_ingest(stream: AnyStream) -> Ingest:
    """The stream, if it reads a source; else WrongUse."""
    if isinstance(stream, Ingest):
        return stream
    raise WrongUse(
        f"'{stream.name}' reads tables, not a source; see: rivermark status {stream.name}"
    )


def with_tables_of(
    lake: Lake,
    topology: Topology,
    names: Sequence[str] | None,
    groups: Sequence[str] | None,
) -> list[str]:
    """The named tables, and those of the streams of the groups that exist; none where none is said.

    Raises RivermarkError where no table of the groups exists.
    """
    of_groups = [s for group in groups or () for s in topology.group(group)]
    existing = [t.name for s in of_groups for t in s.tables if lake.exists(t)]
    if of_groups and not (names or existing):
        raise RivermarkError(f"no table of {', '.join(groups or ())} exists yet: run its streams")
    return list(dict.fromkeys([*(names or ()), *existing]))


def local_landing(settings: Settings) -> Path:
    """The landing root; RivermarkError where it is no folder of this machine."""
    if not is_local(settings.landing_root):
        raise RivermarkError(
            f"{settings.landing_root} is not a local folder, but this command writes files to "
            "one; choose another home: --home FOLDER"
        )
    return Path(settings.landing_root)
