"""Saying that the stored state of a stream means what its changed declaration means by it."""

from __future__ import annotations

import typer

from rivermark.cli.arguments import DryRun, Groups, Home, Json, Streams, Yes
from rivermark.cli.console import out, plain, print_json
from rivermark.cli.deployment import settings_for, suited, topology
from rivermark.cli.session import new_run_id
from rivermark.model.stream import AnyStream


def accept(
    streams: Streams = None,
    group: Groups = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Let a stream continue with its stored state after its declaration has changed.

    Use this after a change that leaves the meaning of the state as it was, such as rewritten code.
    The next start records what is declared then, and later ones compare with that. If the meaning
    has changed, start over: rivermark reset.

    JSON:
        streams (stream, accepted: null in a dry run, false where nothing was recorded)

    Examples:
        rivermark accept taxi/long_rides
    """
    # Here, because `--help` needs nothing of the runtime.
    from rivermark.runtime.supervision.reset import accept_state

    settings = settings_for(home)
    chosen: list[AnyStream] = suited(topology(), streams, group, lambda stream: stream)
    names = ", ".join(stream.name for stream in chosen)
    if not (yes or dry_run):
        question = f"Does the state of {names} mean what is declared now?"
        typer.confirm(question, abort=True, err=as_json)
    accepted = {
        stream.name: None if dry_run else accept_state(settings, stream, run_id=new_run_id())
        for stream in chosen
    }
    if as_json:
        print_json({"streams": [{"stream": n, "accepted": done} for n, done in accepted.items()]})
        return
    sentences = {
        None: "its next start would take the state as that of what it runs",
        True: "its next start takes the state as that of what it runs",
        False: "there is no record of what made its state",
    }
    for name, done in accepted.items():
        out().print(plain(f"{name}: {sentences[done]}"))
