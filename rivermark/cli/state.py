"""`rivermark state show`: what a process function has stored for its keys."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from rivermark.cli.arguments import Groups, Home, Json, Streams
from rivermark.cli.console import as_json as plain_json
from rivermark.cli.console import cell, err, grid, moment, number, out, plain, print_json
from rivermark.cli.deployment import attempted, settings_for, suited, topology
from rivermark.cli.group import add_command
from rivermark.cli.session import engine

if TYPE_CHECKING:
    from rivermark.runtime.checkpoint.state_reader import KeyView, StateView

state: Final = typer.Typer(no_args_is_help=True)


@state.callback()
def about() -> None:
    """Inspect the state of process functions."""


def show_state(
    streams: Streams = None,
    group: Groups = None,
    key: Annotated[
        str | None, typer.Option(metavar="K", help="One key; parts of a longer one by commas.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Keys to show.")] = 20,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Show state and timers of a stream's keys, as its last finished batch left them.

    The stream may be running. Times are UTC.

    JSON:
        stream, batch, buckets, keys, bytes, timers, waiting, shown (key, states, timers, waiting);
        of several streams a list of these

    Examples:
        rivermark state show taxi/long_rides
        rivermark state show taxi/long_rides --key 1539 --json
    """
    settings = settings_for(home)
    from rivermark.runtime.checkpoint.state_reader import a_process, state_of_stream

    chosen = suited(topology(), streams, group, a_process)
    with engine(settings, "short") as spark, err().status("Reading state"):
        lake = settings.lake()
        views, without = attempted(
            chosen, lambda stream: state_of_stream(spark, lake, stream, key, limit)
        )
    for error in without:
        err().print(plain(f"left out: {error}"))
    if as_json:
        several = [as_plain(view) for view in views]
        print_json(several if len(several) > 1 or group else several[0])
        return
    for view in views:
        print_state(view, key)


def as_plain(view: StateView) -> dict[str, Any]:
    """The view in values that JSON knows; moments in ISO form."""
    return {
        "stream": view.stream,
        "batch": view.batch,
        "buckets": len(view.buckets),
        "keys": sum(each.keys for each in view.buckets),
        "bytes": sum(each.bytes for each in view.buckets),
        "timers": sum(each.timers for each in view.buckets),
        "waiting": sum(each.waiting for each in view.buckets),
        "shown": [
            {
                "key": each.key,
                "states": each.states,
                "timers": each.timers,
                "waiting": each.waiting,
            }
            for each in view.keys
        ],
    }


def print_state(view: StateView, key: str | None) -> None:
    """The view as tables on the console."""
    sums = as_plain(view)
    counts = ", ".join(
        f"{number(sums[name])} {name}" for name in ("keys", "timers", "waiting", "bytes")
    )
    out().print(
        plain(f"{view.stream} after batch {view.batch}: {counts} in {sums['buckets']} parts")
    )
    if not view.keys:
        out().print(plain("no state" if key is None else f"no state for key {key}"))
        return
    drawn = grid(None, ["key", "state", "timers", "waiting"], right=set())
    for each in view.keys:
        drawn.add_row(cell(each.key), _states(each), _timers(each), _waiting(each))
    out().print(drawn)
    if len(view.keys) < sums["keys"] and key is None:
        out().print(plain(f"{number(len(view.keys))} of {number(sums['keys'])} keys (--limit)"))


def _states(view: KeyView) -> str:
    values = (f"{name}={_short(value)}" for name, value in view.states.items() if value is not None)
    return "\n".join(values)


def _timers(view: KeyView) -> str:
    return "\n".join(f"{kind} {moment(at)}" for kind, due in view.timers.items() for at in due)


def _waiting(view: KeyView) -> str:
    return "\n".join(f"{each['input']} {moment(each['at'])}" for each in view.waiting)


def _short(value: Any) -> str:
    return json.dumps(plain_json(value), ensure_ascii=False)


add_command(state, show_state, "show")
