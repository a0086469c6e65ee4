"""`rivermark state show`: what a process function has stored for its keys."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from rivermark.cli.console import grid, moment, number, out, plain
from rivermark.cli.deployment import Home, settings_for, topology
from rivermark.cli.group import add_command
from rivermark.cli.session import engine

if TYPE_CHECKING:
    from rivermark.runtime.checkpoint.state_reader import KeyView, StateView

state: Final = typer.Typer(no_args_is_help=True)


@state.callback()
def about() -> None:
    """Inspect the state of process functions."""


def show_state(
    stream: Annotated[str, typer.Argument(metavar="STREAM", help="Such as taxi/long_rides.")],
    key: Annotated[
        str | None, typer.Option(metavar="K", help="One key; parts of a longer one by commas.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Keys to show.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    home: Home = None,
) -> None:
    """Show state and timers of a stream's keys, as its last finished batch left them.

    The stream may be running. Times are UTC.

    Examples:
        rivermark state show taxi/long_rides
        rivermark state show taxi/long_rides --key 1539 --json
    """
    settings = settings_for(home)
    declared = topology().named(stream)
    with engine(settings, "short") as spark:
        from rivermark.runtime.checkpoint.state_reader import state_of_stream

        view = state_of_stream(spark, settings.lake(), declared, key, limit)
    if as_json:
        typer.echo(json.dumps(as_plain(view), default=str))
    else:
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
                "states": _jsonable(each.states),
                "timers": _jsonable(each.timers),
                "waiting": _jsonable(each.waiting),
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
        drawn.add_row(*map(plain, (str(each.key), _states(each), _timers(each), _waiting(each))))
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
    return json.dumps(_jsonable(value), default=str)


def _jsonable(value: Any) -> Any:
    """Dicts with text as keys, moments as text."""
    if isinstance(value, dict):
        return {str(name): _jsonable(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(each) for each in value]
    return value.isoformat() if isinstance(value, datetime) else value


add_command(state, show_state, "show")
