"""Arguments and options that several commands have: one spelling, one meaning, one completion."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rivermark.model.topology import Topology


def _completing(names: Callable[[Topology], Iterable[str]]) -> Callable[[str], list[str]]:
    """Completions of a shell for the beginning of a name; none where no deployment is installed."""

    def complete(incomplete: str) -> list[str]:
        from rivermark.cli.deployment import topology

        try:
            return [name for name in names(topology()) if name.startswith(incomplete)]
        except Exception:  # A shell has no place for an error message.
            return []

    return complete


_streams = _completing(lambda topology: [stream.name for stream in topology.streams])
_groups = _completing(lambda topology: topology.groups())
_tables = _completing(lambda topology: [t.name for s in topology.streams for t in s.tables])

Home = Annotated[
    Path | None,
    typer.Option(
        "--home",
        metavar="FOLDER",
        help="Folder of lake, landing and state. Default: RIVERMARK_HOME, or .rivermark here.",
    ),
]
Streams = Annotated[
    list[str] | None,
    typer.Argument(metavar="[STREAM]...", help="Names of streams.", autocompletion=_streams),
]
Stream = Annotated[
    str | None, typer.Argument(metavar="[STREAM]", help="A stream.", autocompletion=_streams)
]
Groups = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        "-g",
        metavar="GROUP",
        help="Every stream of a group; may be repeated.",
        autocompletion=_groups,
    ),
]
GroupNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="[GROUP]...", help="Names of groups.", autocompletion=_groups),
]
TableName = Annotated[
    str, typer.Argument(metavar="TABLE", help="The name of a table.", autocompletion=_tables)
]
TableNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TABLE]...", help="Names of tables.", autocompletion=_tables),
]
First = Annotated[
    str | None, typer.Option("--from", metavar="DAY", help="First day, like 2020-01-01.")
]
Last = Annotated[
    str | None, typer.Option("--to", metavar="DAY", help="Last day; default: the first one.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document, and nothing else.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Personal = Annotated[
    bool, typer.Option("--personal", help="Show what is marked as personal as well.")
]
