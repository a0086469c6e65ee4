"""`rivermark dead-letters`: events that a process function could not handle, and their replay."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from rivermark.cli.console import grid, moment, number, out, plain
from rivermark.cli.deployment import Home, settings_for, topology
from rivermark.cli.group import add_command
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import AnyStream, inputs_of

if TYPE_CHECKING:
    from rivermark.runtime.checkpoint.dead_letters import Letter

HIDDEN: Final = "…"

dead_letters: Final = typer.Typer(no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="STREAM", help="A stream that keeps dead letters.")]
Personal = Annotated[
    bool, typer.Option("--personal", help="Show keys, events and messages of personal data.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dead_letters.callback()
def about() -> None:
    """Events that process functions could not handle: list, show and replay them."""


def list_letters(
    stream: Annotated[
        str | None, typer.Argument(metavar="STREAM", help="Default: all that keep any.")
    ] = None,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """List dead letters by stream and error: how many there are, and how many wait for a replay.

    Starts no Spark.

    Examples:
        rivermark dead-letters list
        rivermark dead-letters list shop/totals --json
    """
    from rivermark.runtime.checkpoint.dead_letters import dead_table, letters_of

    lake, declared = settings_for(home).lake(), topology()
    chosen = [declared.named(stream)] if stream else [s for s in declared.streams if dead_table(s)]
    letters = {each.name: letters_of(lake, each) for each in chosen}
    if as_json:
        for name, kept in letters.items():
            sums = {"failures": _sum(kept, "failures"), "waiting": _sum(kept, "waiting")}
            typer.echo(json.dumps({"stream": name, "letters": len(kept), **sums}))
        return
    table = grid(
        "Dead letters",
        ("stream", "input", "error", "letters", "waiting"),
        right=("letters", "waiting"),
    )
    for name, kept in letters.items():
        kinds = dict.fromkeys((each.input, each.errors[-1][0]) for each in kept)
        for source, error in kinds:
            those = [e for e in kept if (e.input, e.errors[-1][0]) == (source, error)]
            waiting = sum(each.waiting for each in those)
            table.add_row(name, source or "timer", error, number(len(those)), number(waiting))
    if any(letters.values()):
        out().print(table)
    else:
        out().print(plain("no dead letters" if chosen else "no stream keeps dead letters"))


def show_letters(
    stream: Name,
    letter: Annotated[
        str | None, typer.Argument(metavar="ID", help="One letter, with its event.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Letters to show.")] = 20,
    personal: Personal = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Show dead letters with their errors, those that wait first; one with its event.

    Starts no Spark. Times are UTC.

    Examples:
        rivermark dead-letters show shop/totals
        rivermark dead-letters show shop/totals 5f0c9a1be2
    """
    from rivermark.runtime.checkpoint.dead_letters import letters_of

    declared = topology().named(stream)
    letters = letters_of(settings_for(home).lake(), declared)
    if letter is not None:
        letters = [each for each in letters if each.id == letter]
        if not letters:
            raise RivermarkError(f"stream '{stream}' has no dead letter {letter!r}")
    letters.sort(key=lambda each: not each.waiting)
    hide = is_personal(declared) and not personal
    shown = [as_plain(each, hide=hide) for each in letters[:limit]]
    if as_json:
        for each in shown:
            typer.echo(json.dumps(each, default=str))
        return
    for each in shown:
        said = f"{each['waiting']} of {each['failures']} failures wait"
        state = said if each["waiting"] else "replayed"
        when = moment(each["event_time"])
        out().print(
            plain(f"{each['id']}  {each['input'] or 'timer'} {each['key']} {when}: {state}")
        )
        for error in each["errors"]:
            out().print(plain(f"  {error['error']}: {error['message']} ({error['line']})"))
        if letter is not None and each["event"] is not None:
            out().print(plain(f"  {each['event']}"))
    out().print(plain(f"{number(len(shown))} of {number(len(letters))} dead letters"))
    if hide:
        out().print(plain("keys, events and messages are hidden as personal (--personal)"))


def replay_letters(
    stream: Name,
    letters: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="The letters to replay.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All that wait.")] = False,
    home: Home = None,
) -> None:
    """Replay events through the process, once, with its present code and state.

    A running stream handles them at once, a stopped one with its next run. An event that fails
    again is a dead letter again.

    Examples:
        rivermark dead-letters replay shop/totals --all
        rivermark dead-letters replay shop/totals 5f0c9a1be2 && rivermark run shop/totals
    """
    from rivermark.runtime.checkpoint.dead_letters import replay

    if bool(letters) == every:
        raise RivermarkError("say which dead letters to replay: their ids, or --all")
    declared = topology().named(stream)
    taken = replay(settings_for(home).lake(), declared, None if every else letters)
    events = sum(each.waiting for each in taken)
    if not taken:
        out().print(plain("nothing waits: all of these were replayed before"))
        return
    out().print(
        plain(f"{number(events)} events of {number(len(taken))} dead letters go to {stream}")
    )
    out().print(plain(f"if it is not running: rivermark run {stream}"))


def is_personal(stream: AnyStream) -> bool:
    """Whether what the stream reads has columns that are marked as personal."""
    return any(table.personal for table in inputs_of(stream))


def as_plain(letter: Letter, *, hide: bool) -> dict[str, Any]:
    """A letter in values that JSON knows; with `hide` without what its event says."""
    values = asdict(letter) | {"waiting": letter.waiting}
    values["errors"] = [
        {"error": error, "message": HIDDEN if hide else message, "line": line}
        for error, message, line in letter.errors
    ]
    if hide:
        values |= {"key": HIDDEN, "event": None if letter.event is None else HIDDEN}
    return values


def _sum(letters: list[Letter], name: str) -> int:
    return sum(getattr(each, name) for each in letters)


add_command(dead_letters, list_letters, "list")
add_command(dead_letters, show_letters, "show")
add_command(dead_letters, replay_letters, "replay")
