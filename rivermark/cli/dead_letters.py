"""`rivermark dead-letters`: events that a process function could not handle, and their replay."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from rivermark.cli.arguments import DryRun, Groups, Home, Json, Personal, Stream, Streams
from rivermark.cli.console import coloured, err, grid, moment, number, out, plain, print_json
from rivermark.cli.deployment import selected, settings_for, suited, topology
from rivermark.cli.group import add_command
from rivermark.cli.session import new_run_id
from rivermark.model.errors import RivermarkError, WrongUse
from rivermark.model.printable import printable
from rivermark.model.stream import AnyStream, inputs_of

if TYPE_CHECKING:
    from rivermark.runtime.checkpoint.dead_letters import Letter

HIDDEN: Final = "…"

dead_letters: Final = typer.Typer(no_args_is_help=True)


@dead_letters.callback()
def about() -> None:
    """Events that process functions could not handle: list, show and replay them."""


def list_letters(
    streams: Streams = None,
    group: Groups = None,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """List dead letters by stream and error: how many there are, and how many wait for a replay.

    Starts no Spark. Without names, all streams that keep dead letters are listed.

    JSON:
        streams (stream, letters, failures, waiting)

    Examples:
        rivermark dead-letters list
        rivermark dead-letters list shop/totals --json
    """
    from rivermark.runtime.checkpoint.dead_letters import dead_table, letters_of

    lake, declared = settings_for(home).lake(), topology()
    named = set(streams or ())
    meant = selected(declared, streams or (), group or ())
    chosen = [stream for stream in meant if stream.name in named or dead_table(stream)]
    with err().status("Reading dead letters"):
        letters = {each.name: letters_of(lake, each) for each in chosen}
    if as_json:
        sums = [
            {
                "stream": name,
                "letters": len(kept),
                "failures": _sum(kept, "failures"),
                "waiting": _sum(kept, "waiting"),
            }
            for name, kept in letters.items()
        ]
        print_json({"streams": sums})
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
    stream: Stream = None,
    letter: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="One letter, with its event.")
    ] = None,
    group: Groups = None,
    limit: Annotated[int, typer.Option(min=1, help="Letters of each stream to show.")] = 20,
    personal: Personal = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Show dead letters with their errors, those that wait first; one with its event.

    Starts no Spark. Times are UTC.

    JSON:
        streams (stream, total, hidden, letters (id, input, key, event_time, event, timer,
        failures, replays, waiting, errors (error, message, line)))

    Examples:
        rivermark dead-letters show shop/totals
        rivermark dead-letters show shop/totals 5f0c9a1be2
    """
    from rivermark.runtime.checkpoint.dead_letters import letters_of

    lake = settings_for(home).lake()
    documents = []
    for declared in keepers(stream, group):
        letters = letters_of(lake, declared)
        if letter is not None:
            letters = [each for each in letters if each.id == letter]
            if not letters:
                raise RivermarkError(f"stream '{stream}' has no dead letter {letter!r}")
        letters.sort(key=lambda each: not each.waiting)
        hide = is_personal(declared) and not personal
        shown = [as_plain(each, hide=hide) for each in letters[:limit]]
        about = {"stream": declared.name, "total": len(letters), "hidden": hide}
        documents.append({**about, "letters": shown})
        if not as_json:
            print_letters(shown, len(letters), hide=hide, with_event=letter is not None)
    if as_json:
        print_json({"streams": documents})


def print_letters(shown: list[dict[str, Any]], total: int, *, hide: bool, with_event: bool) -> None:
    """Dead letters of a stream, each with its errors."""
    for each in shown:
        waits = f"{each['waiting']} of {each['failures']} failures wait"
        when = moment(each["event_time"])
        out().print(
            plain(f"{each['id']}  {each['input'] or 'timer'} {printable(each['key'])} {when}: "),
            coloured("waiting: " + waits) if each["waiting"] else plain("replayed"),
            sep="",
        )
        for error in each["errors"]:
            message = printable(error["message"])
            out().print(plain(f"  {error['error']}: {message} ({error['line']})"))
        if with_event and each["event"] is not None:
            out().print(plain(f"  {printable(each['event'])}"))
    out().print(plain(f"{number(len(shown))} of {number(total)} dead letters"))
    if hide:
        out().print(plain("keys, events and messages are hidden as personal (--personal)"))


def replay_letters(
    stream: Stream = None,
    letters: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="The letters to replay.")
    ] = None,
    group: Groups = None,
    every: Annotated[bool, typer.Option("--all", help="All that wait.")] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Replay events through the process, once, with its present code and state.

    A running stream handles them at once, a stopped one with its next run. An event that fails
    again is a dead letter again.

    JSON:
        dry_run, streams (stream, letters: their ids, events)

    Examples:
        rivermark dead-letters replay shop/totals --all
        rivermark dead-letters replay shop/totals 5f0c9a1be2 && rivermark run shop/totals
    """
    from rivermark.runtime.checkpoint.dead_letters import replay

    if bool(letters) == every:
        raise WrongUse("say which dead letters to replay: their ids, or --all")
    lake, ids = settings_for(home).lake(), None if every else letters
    meant = keepers(stream, group)
    taken = {each.name: replay(lake, each, ids, dry_run=dry_run) for each in meant}
    if as_json:
        replayed = [
            {"stream": name, "letters": [e.id for e in those], "events": _sum(those, "waiting")}
            for name, those in taken.items()
        ]
        print_json({"dry_run": dry_run, "streams": replayed})
        return
    for name, those in taken.items():
        if not those:
            out().print(plain("nothing waits: all of these were replayed before"))
            continue
        go = "would go" if dry_run else "go"
        events = number(_sum(those, "waiting"))
        out().print(plain(f"{events} events of {number(len(those))} dead letters {go} to {name}"))
        if not dry_run:
            out().print(plain(f"if it is not running: rivermark run {name}"))


def send_rows(
    streams: Streams = None,
    group: Groups = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Resend rows that a web service or a database did not accept, in their order.

    They are in the tables `_undelivered`, and are removed as they are delivered. Starts no Spark.
    Without names, the rows of all streams are sent.

    JSON:
        dry_run, targets (stream, table, target, waiting, delivered, reason)

    Examples:
        rivermark dead-letters send shop/alerts
        rivermark dead-letters send --group shop --dry-run
    """
    from rivermark.runtime.checkpoint.undelivered import send_again

    lake, run = settings_for(home).lake(), new_run_id()
    with err().status("Sending"):
        sent = [
            {"stream": stream.name, **each._asdict()}
            for stream in selected(topology(), streams or (), group or ())
            for each in send_again(lake, stream, run, dry_run=dry_run)
        ]
    if as_json:
        print_json({"dry_run": dry_run, "targets": sent})
        return
    for each in sent:
        done = "all would be sent" if dry_run else f"{number(each['delivered'])} were delivered"
        why = f"; {printable(each['reason'])}" if each["reason"] else ""
        waiting = number(each["waiting"])
        out().print(plain(f"{each['table']} to {each['target']}: of {waiting} rows {done}{why}"))
    if not sent:
        out().print(plain("no row waits to be delivered"))


def keepers(name: str | None, groups: list[str] | None) -> list[AnyStream]:
    """The stream of that name, or those of the groups that keep dead letters."""
    from rivermark.runtime.checkpoint.dead_letters import dead_table

    def keeps(stream: AnyStream) -> AnyStream:
        if stream.name == name or dead_table(stream):
            return stream
        raise RivermarkError(f"no stream of {', '.join(groups or ())} keeps dead letters")

    return suited(topology(), [name] if name else None, groups, keeps)


def is_personal(stream: AnyStream) -> bool:
    """Returns True if what the stream reads has columns that are marked as personal."""
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
add_command(dead_letters, send_rows, "send")
