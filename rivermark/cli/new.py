"""`rivermark new`: a project to begin with, and streams proposed from samples of their data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer
from typer.core import TyperGroup

from rivermark.cli.arguments import Json
from rivermark.cli.console import out, plain, print_json
from rivermark.cli.deployment import topology_entry
from rivermark.cli.group import add_command
from rivermark.model.errors import WrongUse
from rivermark.model.names import check_name
from rivermark.scaffold.guess import guess_contract
from rivermark.scaffold.project import write_project
from rivermark.scaffold.registration import (
    domain_in,
    file_of,
    module_of,
    registered,
    write_module,
)
from rivermark.scaffold.sample import MOST_ROWS, read_sample
from rivermark.scaffold.stream_module import constant_of, module_text


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


def new_stream(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As in cafe/orders.")],
    sample: Annotated[
        str, typer.Option("--from", metavar="SAMPLE", help="A file of its data, or a Delta table.")
    ],
    rows: Annotated[int, typer.Option(min=1, metavar="N", help="Rows to look at.")] = MOST_ROWS,
    only_print: Annotated[
        bool, typer.Option("--print", help="Print the module, and write nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Propose an ingest from a sample: types, times, keys, what is never empty; then correct it.

    Reads CSV, JSON lines (both also as .gz), Parquet and Delta tables. The module goes beside that
    of the topology, by the stream's name, and its line into the list of all streams. Comments in it
    say what was guessed. Ids with leading zeros stay texts, money is a decimal, times are UTC.

    JSON:
        stream, rows, event_time, keys, fields (name, type, required, note), module (its text), file
        (null where nothing was written), registered

    Examples:
        rivermark new stream cafe/refunds --from refunds.csv
        rivermark new stream cafe/suppliers --from suppliers.parquet --print
    """
    check_name("stream", name, like="cafe/orders")
    declared_in = None if only_print else topology_entry().module
    root, module = Path.cwd(), module_of(declared_in or "assets.topology", name)
    data = read_sample(sample, name, rows)
    guess = guess_contract(data)
    domain = domain_in(root, module)
    text = module_text(name, Path(sample).name, data, guess, domain)
    file, added = None, False
    if declared_in is not None:
        listing = file_of(root, declared_in)
        if not listing.is_file():
            raise WrongUse(f"{listing} is not there: type this in the project's own folder")
        file = write_module(root, module, text)
        changed = registered(listing.read_text(), module, constant_of(name))
        if added := changed is not None:
            listing.write_text(changed or "")
    if as_json:
        fields = [
            {"name": f.name, "type": f.type, "required": f.required, "note": f.note}
            for f in guess.fields
        ]
        print_json(
            {
                "stream": name,
                "rows": guess.rows,
                "event_time": guess.event_time or None,
                "keys": guess.keys,
                "fields": fields,
                "module": text,
                "file": file,
                "registered": added,
            }
        )
    elif file is None:
        out().print(plain(text), soft_wrap=True, end="")
    else:
        out().print(plain(f"{file.relative_to(root)}: look at its comments, and correct it"))
        if not added:
            out().print(
                plain(
                    f"add to {declared_in}: from {module} import {constant_of(name)}, and "
                    f"{constant_of(name)} to its streams"
                )
            )
        out().print(plain("then: rivermark check"))


add_command(new, new_project, "project")
add_command(new, new_stream, "stream")
