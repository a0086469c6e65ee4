"""The top of the console: commands that are imported when they run, and errors in a sentence."""

from __future__ import annotations

import ast
import errno
import gc
import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from traceback import walk_tb
from typing import Any, ClassVar, Final

import typer
from typer.core import TyperCommand, TyperGroup

from rivermark.cli.exit_codes import ExitCode
from rivermark.model.errors import RivermarkError, WrongUse
from rivermark.model.printable import printable

COMMANDS: Final = "rivermark.commands"
"""Entry points of this group are commands: the name is the command, the object its function."""

UNWRITABLE: Final = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)
UNWRITABLE_ADVICE: Final = (
    "Choose a home that this user can write (RIVERMARK_HOME, --home), or change who owns it"
)
STORE_ADVICE: Final = (
    "Look at its address (RIVERMARK_LAKE_ROOT, RIVERMARK_LANDING_ROOT), its credentials, and "
    "whether this machine reaches it"
)

OBJECTS_BETWEEN_COLLECTIONS: Final = 50_000

DOMAIN_PANEL: Final = "Commands of the domains"


@dataclass(frozen=True)
class Declared:
    """A command by name: where its function, or the group of its own commands, is declared."""

    name: str
    target: str
    panel: str


class LazyCommand(TyperCommand):
    """A command that is imported when it runs; its help is read from the source."""

    def __init__(self, declared: Declared, load: Callable[[], Any]) -> None:
        super().__init__(declared.name, rich_help_panel=declared.panel)
        self.declared = declared
        self._load = load

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **more: Any) -> Any:
        """The context of the command itself."""
        return self.loaded().make_context(info_name, args, *rest, **more)

    def loaded(self) -> Any:
        """The command itself."""
        return _as_command(self._load(), self.declared.name, self.declared.panel)

    def explain(self) -> None:
        """Read the first paragraph of the help, which lists of commands show."""
        if self.help is None:
            text = _docstring(self.declared.target)
            if text is None:
                with suppress(Exception):  # What is wrong with it is said when it is run.
                    text = self._load().__doc__
            self.help = " ".join((text or "").partition("\n\n")[0].split())


class CommandGroup(TyperGroup):
    """The console's own commands (`declared`), and those that the domains' packages declare.

    A RivermarkError is printed as one sentence, without a traceback.
    """

    declared: ClassVar[Sequence[Declared]] = ()

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for each in self.declared:
            self.commands[each.name] = LazyCommand(each, _loading(each))

    def list_commands(self, ctx: Any) -> list[str]:
        """Own commands in their order, then the domains'."""
        own = super().list_commands(ctx)
        return [*own, *sorted(set(_domain_commands(ctx)) - set(own))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """An own command, or the domain's of that name."""
        command = super().get_command(ctx, cmd_name) or _domain_commands(ctx).get(cmd_name)
        if isinstance(command, LazyCommand):
            command.explain()
        return command

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the console.

        Modules and declarations stay: to look for garbage among them at every few hundred objects
        costs a fifth of a start.
        """
        gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
        return super().main(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            sentence = sentence_of(error)
            if sentence is not None:
                wrong_use = isinstance(error, WrongUse)
                code = ExitCode.WRONG_USE if wrong_use else ExitCode.FAULT
                raise _exit(sentence, code) from error
            # Printed by Python (a fault of the program) or by Typer (wrong use): as safe as ours.
            if isinstance(getattr(error, "message", None), str):
                vars(error)["message"] = printable(vars(error)["message"], lines=True)
            error.args = tuple(
                printable(each, lines=True) if isinstance(each, str) else each
                for each in error.args
            )
            raise


def sentence_of(error: Exception) -> str | None:
    """The sentence for a person about an error; None of one that is a fault of the program."""
    if isinstance(error, RivermarkError):
        return str(error)
    if isinstance(error, FileNotFoundError) and _made_no_folder(error):
        return f"the folder {error.filename} cannot be made. {UNWRITABLE_ADVICE}"
    if isinstance(error, OSError) and error.errno is None:
        # Arrow's and delta-rs's, of a store: Python's own have a number.
        said = " ".join(str(error).split())
        return f"the store cannot be used: {said[:300]}. {STORE_ADVICE}"
    if isinstance(error, OSError) and error.errno in UNWRITABLE:
        # Arrow's errors have no name beside their text.
        file = f"{error.filename}: " if error.filename else ""
        return f"{file}{error.strerror}. {UNWRITABLE_ADVICE}"
    return None


def _made_no_folder(error: FileNotFoundError) -> bool:
    """True if a folder could not be made, as below /proc, and not a file that is missing."""
    frames = [frame.f_code.co_name for frame, _ in walk_tb(error.__traceback__)]
    return bool(frames) and frames[-1] in ("mkdir", "makedirs")


def _exit(sentence: str, code: ExitCode) -> typer.Exit:
    """Print why a command ends; returns what ends it."""
    from rivermark.cli.console import err, plain

    err().print(plain(f"rivermark: {sentence}", "red"), soft_wrap=True)
    return typer.Exit(code)


def add_command(
    app: typer.Typer, function: Callable[..., None], name: str, *, panel: str | None = None
) -> None:
    """Add a function as a command: its docstring is the help, with `JSON:` and `Examples:` below.

    What stands under `JSON:` are the fields of the document that `--json` prints.
    """
    text = inspect.cleandoc(function.__doc__ or "")
    described, _, examples = text.partition("\n\nExamples:\n")
    described, _, fields = described.partition("\n\nJSON:\n")
    # Lines end where the terminal does, not where the source does.
    help_text = "\n\n".join(" ".join(part.split()) for part in described.split("\n\n"))
    below = [("JSON:", fields), ("Examples:", examples)]
    parts = [
        "\n\n".join([title, *(line.strip() for line in part.splitlines() if line.strip())])
        for title, part in below
        if part
    ]
    epilog = "\n\n".join(parts) or None
    app.command(name=name, help=help_text, epilog=epilog, rich_help_panel=panel)(function)


def _as_command(target: Any, name: str, panel: str) -> Any:
    """A group of commands as it is declared, or a function as a command."""
    if isinstance(target, typer.Typer):
        app = target
    else:
        app = typer.Typer(add_completion=False)
        add_command(app, target, name, panel=panel)
    return typer.main.get_command(app)


def _loading(declared: Declared) -> Callable[[], Any]:
    def load() -> Any:
        module, _, name = declared.target.partition(":")
        return getattr(import_module(module), name)

    return load


def _domain_commands(ctx: Any) -> dict[str, LazyCommand]:
    """The commands of the domains by name, looked up once a run of the console."""
    known: dict[str, LazyCommand] | None = ctx.find_root().meta.get(COMMANDS)
    if known is None:
        known = ctx.find_root().meta[COMMANDS] = {
            entry.name: LazyCommand(
                Declared(entry.name, entry.value, DOMAIN_PANEL), _loading_entry(entry)
            )
            for entry in entry_points(group=COMMANDS)
        }
    return known


def _loading_entry(entry: Any) -> Callable[[], Any]:
    """Imports a domain's command; RivermarkError with the package that cannot be imported."""

    def load() -> Any:
        try:
            return entry.load()
        except Exception as error:
            raise RivermarkError(
                f"command '{entry.name}' cannot be imported from {entry.value}: {error}"
            ) from error

    return load


def _docstring(target: str) -> str | None:
    """The docstring of a function, or of what introduces a group of commands, without its import.

    Spark's modules are slow to import, and a list of commands needs none of them. None where the
    source does not show it.
    """
    module, _, name = target.partition(":")
    try:
        spec = find_spec(module)
        tree = ast.parse(Path(str(spec and spec.origin)).read_text())
    except (ImportError, OSError, SyntaxError):
        return None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            introduces = any(
                ast.unparse(each) == f"{name}.callback()" for each in node.decorator_list
            )
            if node.name == name or introduces:
                return ast.get_docstring(node)
    return None
