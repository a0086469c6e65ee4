"""`rivermark new`: a project to begin with, and streams proposed from samples of their data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer
from typer.core import TyperGroup

from rivermark.cli.arguments import Json
from rivermark.cli.console import out, plain, print_json
from rivermark.cli.group import add_command
from rivermark.scaffold.project import write_project


class NewGroup(TyperGroup):
    """`rivermark new NAME` is `rivermark new project NAME`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the word in that may be left out."""
        if args and args[0] not in {*self.commands, "--help"}:
            args = ["project", *args]
        return super().parse_args(ctx, args)


new: Final = typer.Typer(cls=NewGroup, no_args_is_help=True)


@new.callback()
def about() -> None:
    """Begin a project (`rivermark new my_platform`), or a stream from a sample of its data."""


def new_project(
    folder: Annotated[
        Path, typer.Argument(metavar="NAME", help="A folder that is empty or not there.")
    ],
    source: Annotated[
        Literal["files", "kafka"], typer.Option(help="Where its orders come from.")
    ] = "files",
    with_ui: Annotated[
        bool, typer.Option("--with-ui", help="Add `make ui`: a supervised, guarded page.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write a repository: an ingest, a derived stream, a process function, suites, tests, CI.

    `project` may be left out. Each file is short and says what goes there. `make demo` then runs
    its streams over samples, `make dev` shows them in Dagster.

    JSON:
        folder, files

    Examples:
        rivermark new my_platform
        rivermark new my_platform --source kafka --with-ui
    """
    options = {word for word, wanted in (("kafka", source == "kafka"), ("ui", with_ui)) if wanted}
    files = write_project(folder, options)
    if as_json:
        print_json({"folder": folder, "files": [file.relative_to(folder) for file in files]})
        return
    out().print(plain(f"{len(files)} files in {folder}; next:"))
    out().print(plain(f"    cd {folder} && make setup && make demo"))


add_command(new, new_project, "project")
