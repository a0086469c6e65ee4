"""`rivermark reprocess`: closed days of a stream, computed again, compared, replaced or undone."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from rivermark.cli import instants as moments
from rivermark.cli.console import err, plain
from rivermark.cli.deployment import Home, settings_for, topology
from rivermark.cli.reprocessing_output import print_register, print_report
from rivermark.cli.run import new_run_id
from rivermark.cli.session import engine
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import Ingest, Stream
from rivermark.model.topology import Topology
from rivermark.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rivermark.backfill.result import Reprocessing

A_DAY: Final = timedelta(days=1)


def reprocess(
    stream: Annotated[
        str | None, typer.Argument(metavar="[STREAM]", help="A derived stream.")
    ] = None,
    first: Annotated[
        str | None, typer.Option("--from", metavar="DAY", help="First day, like 2020-01-01.")
    ] = None,
    last: Annotated[
        str | None, typer.Option("--to", metavar="DAY", help="Last day; default: the first one.")
    ] = None,
    as_of: Annotated[
        list[str] | None,
        typer.Option(
            "--as-of",
            metavar="V|TIME|TABLE=V",
            help="Read the inputs as they were: a version, a moment (UTC), or one for each table.",
        ),
    ] = None,
    rehearse: Annotated[
        bool, typer.Option("--rehearse", help="Only compare; nothing published is touched.")
    ] = False,
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            "--what-if",
            metavar="NAME=VALUE",
            help="Only compare, with another parameter, or with build=MODULE:FUNCTION.",
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow-ups/--only", help="Also what lies downstream of the days, in its order."
        ),
    ] = False,
    undo: Annotated[
        str | None,
        typer.Option("--undo", metavar="ID", help="Bring back the days before a reprocessing."),
    ] = None,
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Wait (up to a day) until the stream has closed the days."),
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="What was reprocessed, the newest first; no engine.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    home: Home = None,
) -> None:
    """Compute closed days of a stream again, compare them with what is published, replace them.

    The versions of the inputs are pinned and recorded in ops/reprocessings; the same pins give the
    same rows again. Streams may run meanwhile. Days that the stream has not finished are refused.

    Examples:
        rivermark reprocess taxi/driver_tips --from 2020-01-01 --rehearse
        rivermark reprocess taxi/driver_tips --from 2020-01-01 --follow-ups
        rivermark reprocess taxi/zone_hours --from 2024-01-01 --to 2024-01-31 --as-of 3
        rivermark reprocess taxi/driver_tips --undo 20260702-141500-3f2a
        rivermark reprocess taxi/long_rides --from 2020-01-01 --what-if limit=90min
        rivermark reprocess --list
    """
    settings = settings_for(home)
    if listed:
        print_register(settings.lake(), stream, as_json=as_json)
        return
    declared = topology()
    found = _reprocessable(declared, stream)
    if undo is not None:
        _refuse_beside("--undo", {"--from": first, "--as-of": as_of, "--what-if": what_if})
        done = _undo(settings, declared, found, undo, follow=follow)
    elif first is None:
        raise RivermarkError(
            "which days? give --from DAY (and --to DAY), --undo ID to bring days back, or --list"
        )
    else:
        days = moments.day(first), moments.day(last or first)
        if what_if and (rehearse or follow):
            raise RivermarkError("a --what-if replaces nothing: leave out --rehearse, --follow-ups")
        if rehearse and follow:
            raise RivermarkError("a rehearsal replaces nothing that others could follow")
        done = _compute(
            settings,
            declared,
            found,
            days,
            as_of=as_of or [],
            rehearse=rehearse,
            changes=pairs(what_if or []),
            follow=follow,
            wait=wait,
        )
    if as_json:
        sys.stdout.write(json.dumps([each.as_json() for each in done], indent=2) + "\n")
        return
    for each in done:
        print_report(each)
    if not follow and done[0].kind in ("replaced", "undone"):
        _tell_follow_ups(declared, done[0])


def _reprocessable(declared: Topology, name: str | None) -> Stream:
    """The stream that was asked for."""
    if name is None:
        raise RivermarkError("which stream? `rivermark status` lists them; or give --list")
    found = declared.named(name)
    if isinstance(found, Ingest):
        raise RivermarkError(
            f"'{name}' brings files in and has no inputs to compute it from; "
            f"to read its files again: rivermark reset {name} --with-tables"
        )
    return found


def _undo(
    settings: Settings, declared: Topology, stream: Stream, name: str, *, follow: bool
) -> list[Reprocessing]:
    """Bring days back; an engine is started for follow-ups only."""
    # Here, because Spark's modules are slow to import and `--help` needs none of them.
    from rivermark.backfill.undo import undo

    done = undo(settings, stream, name, run_id=new_run_id())
    if not follow:
        return [done]
    with engine(settings, "short") as spark, steps() as step:
        return [done, *_follow(spark, settings, declared, done, step)]


def _compute(
    settings: Settings,
    declared: Topology,
    stream: Stream,
    days: tuple[date, date],
    *,
    as_of: list[str],
    rehearse: bool,
    changes: dict[str, str],
    follow: bool,
    wait: bool,
) -> list[Reprocessing]:
    """What was asked for, and what follows from it."""
    from rivermark.backfill import recompute as ways
    from rivermark.backfill.downstream_runs import promised
    from rivermark.backfill.wait_until_closed import wait_until_closed
    from rivermark.backfill.what_if import altered, what_if
    from rivermark.runtime.query.recompute import check_closed

    pinned = moments.as_of(as_of)
    with steps() as step:
        order = ways.Order(
            stream=stream,
            first=days[0],
            last=days[1],
            as_of=pinned,
            run_id=new_run_id(),
            on_step=step,
        )
        altered(stream, changes)
        # Both before the engine starts: what is refused is refused at once.
        if wait:
            wait_until_closed(settings.lake(), stream, days[1], at_most=A_DAY, on_step=step)
        elif stream.kind == "append":
            check_closed(settings.lake(), stream, days[1])
    with engine(settings, "short") as spark, steps() as step:
        if changes:
            return [what_if(spark, settings, order, changes)]
        if rehearse:
            return [ways.rehearse(spark, settings, order)]
        if not follow:
            return [ways.replace(spark, settings, order)]
        with promised(settings.lake(), declared, stream, order.days, order.run_id):
            done = ways.replace(spark, settings, order)
            return [done, *_follow(spark, settings, declared, done, step)]


def _follow(
    spark: SparkSession,
    settings: Settings,
    declared: Topology,
    cause: Reprocessing,
    step: Callable[[str], None],
) -> list[Reprocessing]:
    from rivermark.backfill.downstream_runs import follow_up

    followed = follow_up(spark, settings, declared, cause, run_id=cause.run_id, on_step=step)
    for name, reason in followed.left.items():
        err().print(plain(f"not followed up: {name}: {reason}", "yellow"), soft_wrap=True)
    return followed.done


def _tell_follow_ups(declared: Topology, done: Reprocessing) -> None:
    from rivermark.backfill.downstream_runs import named_follow_ups

    names = named_follow_ups(declared, done)
    if names:
        told = ", ".join(names)
        err().print(
            plain(f"downstream, and not computed again: {told} (--follow-ups does it)"),
            soft_wrap=True,
        )


def pairs(texts: list[str]) -> dict[str, str]:
    """`NAME=VALUE` texts by name."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise RivermarkError(f"--what-if {text!r}: expected NAME=VALUE, such as limit=90min")
        found[name] = value
    return found


def _refuse_beside(option: str, others: dict[str, object]) -> None:
    for name, value in others.items():
        if value:
            raise RivermarkError(f"{option} and {name} do not go together: {option} knows its days")


@contextmanager
def steps() -> Iterator[Callable[[str], None]]:
    """What is done now, on the side where progress goes, with the seconds since the begin."""
    began = time.monotonic()
    console = err()
    with console.status("Reprocessing") as status:

        def step(text: str) -> None:
            status.update(plain(text))
            console.print(plain(f"{time.monotonic() - began:6.1f} s  {text}"), soft_wrap=True)

        yield step
