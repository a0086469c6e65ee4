"""`rivermark fork`: a stream from a savepoint, beside the living one."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from rivermark.cli.arguments import DryRun, First, Home, Json, Last, Yes
from rivermark.cli.console import grid, number, out, plain, print_json
from rivermark.cli.deployment import settings_for, topology
from rivermark.cli.group import add_command
from rivermark.cli.savepoint import OneStream, ResetReaders, Savepoint, order_of, say, steps

Fork = Annotated[str, typer.Argument(metavar="FORK", help="The name of a fork.")]
KINDS: Final = ("added", "removed", "changed", "unchanged")


class Verbs(TyperGroup):
    """Verbs, and the name of a stream in the place of one, which makes a fork of it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read `fork STREAM ...` as `fork make STREAM ...`."""
        make = ["make"] if args and "/" in args[0] else []
        return super().parse_args(ctx, [*make, *args])


fork: Final = typer.Typer(cls=Verbs, no_args_is_help=True)


@fork.callback()
def about() -> None:
    """Run a stream, or a changed one, from a savepoint beside the living one: fork STREAM ..."""


def make_fork(
    stream: OneStream,
    name: Savepoint,
    called: Annotated[str, typer.Option("--as", metavar="NAME", help="The name of the fork.")],
    accept: Annotated[
        bool, typer.Option("--accept", help="Take the state as made by what is declared now.")
    ] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Make a fork: the stream as it is declared now, with the state and tables of a savepoint.

    It writes tables of its own, `forks/NAME/TABLE`, and nothing outside the lake. Starts no Spark.

    JSON:
        name, stream, savepoint, at, promoting, promoted

    Examples:
        rivermark fork taxi/driver_tips latest --as faster
        rivermark fork run faster && rivermark fork compare faster
    """
    # Here, because `--help` needs nothing of the runtime.
    from rivermark.runtime.savepoint.fork import fork as make

    with steps("Making the fork") as on_step:
        order = order_of(home, on_step, dry_run=dry_run)
        made = make(order, order.topology.named(stream), called, name, accept=accept)
    would = "would be made" if dry_run else f"is made: rivermark fork run {called}"
    say(f"fork '{called}' of {stream} at {made.savepoint} {would}", made, as_json=as_json)


def list_forks(as_json: Json = False, home: Home = None) -> None:
    """List forks. Starts no Spark.

    JSON:
        forks (name, stream, savepoint, at, promoting, promoted)

    Examples:
        rivermark fork list
    """
    from rivermark.runtime.savepoint.fork import forks

    made = forks(settings_for(home).lake())
    lines = [f"{m.name}: of {m.stream}, from savepoint {m.savepoint}" for m in made]
    say("\n".join(lines) or "there are no forks", {"forks": made}, as_json=as_json)


def run_fork(
    name: Fork,
    continuous: Annotated[
        bool, typer.Option("--continuous", help="Go on until it is stopped.")
    ] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Run a fork until its inputs are drained. The stream may run meanwhile.

    JSON:
        as rivermark run

    Examples:
        rivermark fork run faster
    """
    from rivermark.cli.run import host, would_run
    from rivermark.runtime.savepoint.fork import fork_named, forked, with_forks

    settings, declared = settings_for(home), topology()
    lake = settings.lake()
    twin = forked(fork_named(lake, declared, name)[1], name)
    if dry_run:
        would_run(settings, [twin], as_json=as_json)
        return
    deployed = with_forks(lake, declared)
    host(settings, deployed, [twin], continuous=continuous, as_json=as_json)


def compare_fork(
    name: Fork, first: First = None, last: Last = None, as_json: Json = False, home: Home = None
) -> None:
    """Compare the days of a fork with those of its stream; default: those that both have finished.

    JSON:
        tables (by name: added, removed, changed, unchanged, columns, days, hours, sums, samples)

    Examples:
        rivermark fork compare faster --from 2020-01-01 --to 2020-01-02
    """
    from rivermark.backfill.as_of import parse_day
    from rivermark.backfill.fork_comparison import compare_fork as compare

    begin, end = (parse_day(text) if text else None for text in (first, last))
    with steps("Comparing"):
        differences = compare(settings_for(home), topology(), name, begin, end)
    if as_json:
        print_json({"tables": differences})
        return
    table = grid(None, ("table", "day", *KINDS, "columns"), right=KINDS)
    for of, each in differences.items():
        columns = ", ".join(f"{column} {n:,}" for column, n in each.columns.items())
        for day, counts in each.days.items():
            table.add_row(of, day.isoformat(), *(number(counts[k]) for k in KINDS), columns)
    out().print(table if any(d.days for d in differences.values()) else plain("no rows"))


def promote_fork(
    name: Fork,
    reset_readers: ResetReaders = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Put the tables and state of a fork in the place of its stream's, and drop the fork.

    Both must be stopped, and the streams that read the tables. The stream goes on where the fork
    was. Broken off, it is finished by the same command.

    JSON:
        stream

    Examples:
        rivermark fork promote faster --yes
    """
    from rivermark.runtime.savepoint.fork import promote

    if not (yes or dry_run):
        typer.confirm(f"Put fork '{name}' in the place of its stream?", abort=True, err=as_json)
    with steps("Promoting") as on_step:
        order = order_of(home, on_step, reset_readers=reset_readers, dry_run=dry_run)
        stream = promote(order, name)
    would = "would be" if dry_run else "is"
    say(f"{stream} {would} what '{name}' was", {"stream": stream}, as_json=as_json)


def drop_fork(
    name: Fork,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Remove a fork with its tables, checkpoint and savepoints.

    JSON:
        dry_run, fork

    Examples:
        rivermark fork drop faster --yes
    """
    from rivermark.runtime.savepoint.fork import drop

    if not (yes or dry_run):
        typer.confirm(f"Remove fork '{name}' with its tables?", abort=True, err=as_json)
    drop(order_of(home, dry_run=dry_run), name)
    gone = "would be gone" if dry_run else "is gone"
    say(f"fork '{name}' {gone}", {"dry_run": dry_run, "fork": name}, as_json=as_json)


add_command(fork, make_fork, "make")
add_command(fork, list_forks, "list")
add_command(fork, run_fork, "run")
add_command(fork, compare_fork, "compare")
add_command(fork, promote_fork, "promote")
add_command(fork, drop_fork, "drop")
