"""`rivermark savepoint`: a stream kept at one batch, and going on from there."""

from __future__ import annotations

import getpass
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from rivermark.cli.arguments import DryRun, Groups, Home, Json, Streams, Yes
from rivermark.cli.console import as_json as as_plain
from rivermark.cli.console import err, grid, moment, number, out, plain, print_json
from rivermark.cli.deployment import attempted, selected, settings_for, suited, topology
from rivermark.cli.group import add_command
from rivermark.cli.session import new_run_id
from rivermark.model.errors import RivermarkError

if TYPE_CHECKING:
    from rivermark.runtime.savepoint.manifest import Manifest
    from rivermark.runtime.savepoint.resume import Order

OneStream = Annotated[str, typer.Argument(metavar="STREAM", help="A stream.")]
Savepoint = Annotated[
    str, typer.Argument(metavar="SAVEPOINT", help="The id of a savepoint, or `latest`.")
]
ResetReaders = Annotated[
    bool,
    typer.Option(
        "--reset-readers",
        help="Start streams over that have read rows which go; their tables are filled again.",
    ),
]

LONGEST: Final = 200
"""Characters of a manifest's value on the screen."""

savepoint: Final = typer.Typer(no_args_is_help=True)


@savepoint.callback()
def about() -> None:
    """Keep a stream as it is at one batch, and let it go on from there, here or elsewhere."""


@contextmanager
def steps(title: str) -> Iterator[Callable[[str], None]]:
    """A line with a spinner that says which step is under way."""
    with err().status(title) as status:
        yield lambda step: status.update(plain(step))


def order_of(home: Home, on_step: Callable[[str], None] = lambda _: None, **more: bool) -> Order:
    """An order from this console."""
    from rivermark.runtime.savepoint.fork import with_forks
    from rivermark.runtime.savepoint.resume import Order

    settings = settings_for(home)
    return Order(
        settings=settings,
        topology=with_forks(settings.lake(), topology()),
        run_id=new_run_id(),
        on_step=on_step,
        **more,
    )


def say(sentence: str, document: object, *, as_json: bool) -> None:
    """Print the sentence, or the document for programs."""
    if as_json:
        print_json(document)
    else:
        out().print(plain(sentence))


def take_savepoint(
    streams: Streams = None,
    group: Groups = None,
    stop: Annotated[
        bool, typer.Option("--stop", help="Pause the group first; it stays paused.")
    ] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Take a savepoint: state, positions in the inputs, and tables, after the last finished batch.

    A running stream goes on meanwhile. With --stop its group stops between two batches, and nothing
    is written behind the savepoint. Starts no Spark, and copies no rows: files get a second name.

    JSON:
        savepoints (id, stream, batch, and the rest of the manifest, as describe)

    Examples:
        rivermark savepoint take taxi/driver_tips
        rivermark savepoint take --group taxi_events --stop
    """
    # Here, because `--help` needs nothing of the runtime.
    from rivermark.runtime.savepoint.manifest import manifest_of
    from rivermark.runtime.savepoint.store import stop_and_take, take, written_by

    settings, run, by = settings_for(home), new_run_id(), getpass.getuser()
    chosen = suited(topology(), streams, group, lambda stream: stream)
    with steps("Taking savepoints") as on_step:

        def kept(stream: Any) -> Manifest:
            if dry_run:
                return manifest_of(settings, stream, written_by(stream))
            if stop:
                return stop_and_take(settings, stream, run_id=run, by=by, on_step=on_step)
            return take(settings, stream, on_step=on_step)

        made, errors = attempted(chosen, kept)
    lines = [
        f"{m.stream}: {f'savepoint {m.id}' if m.id else 'would be kept'}, batch {m.batch}, "
        f"{sum(table.files for table in m.tables.values()):,} data files"
        for m in made
    ]
    say("\n".join(lines), {"savepoints": made}, as_json=as_json)
    if errors:
        raise RivermarkError("; ".join(map(str, errors)))


def list_savepoints(
    streams: Streams = None, group: Groups = None, as_json: Json = False, home: Home = None
) -> None:
    """List savepoints, the newest first, with who stands on them. Starts no Spark.

    JSON:
        savepoints (id, stream, batch, at, watermark, bytes, used_by)

    Examples:
        rivermark savepoint list taxi/driver_tips
    """
    from rivermark.runtime.savepoint.fork import stands_on
    from rivermark.runtime.savepoint.store import savepoints

    lake = settings_for(home).lake()
    meant, user = selected(topology(), streams or (), group or ()), stands_on(lake)
    columns = ("id", "stream", "batch", "at", "watermark", "bytes", "used_by")
    rows: list[tuple[Any, ...]] = [
        (m.id, m.stream, m.batch, m.at, m.watermark, m.bytes, user(m) or None)
        for stream in meant
        for m in savepoints(lake, stream.name)
    ]
    if as_json:
        print_json({"savepoints": [dict(zip(columns, row, strict=True)) for row in rows]})
        return
    table = grid(None, columns, right=("batch", "bytes"))
    for key, name, batch, at, watermark, size, used in rows:
        when = (moment(at), moment(watermark))
        table.add_row(key, name, number(batch), *when, number(size), used or "")
    out().print(table if rows else plain("there are none: rivermark savepoint take STREAM"))


def describe_savepoint(
    stream: OneStream, name: Savepoint, as_json: Json = False, home: Home = None
) -> None:
    """Show the manifest of a savepoint: code, settings, positions, versions. Starts no Spark.

    Long values, such as plans and schemas, are cut; `--json` has them whole.

    JSON:
        id, stream, generation, since, batch, at, release, code, identity, process, inputs, tables,
        settings, watermark, closed_through, checkpoint

    Examples:
        rivermark savepoint describe taxi/driver_tips latest
    """
    from rivermark.runtime.savepoint.store import savepoint as named

    made = as_plain(named(settings_for(home).lake(), stream, name))
    if as_json:
        print_json(made)
        return
    made["checkpoint"] = f"{len(made['checkpoint']):,} files"
    for title, value in made.items():
        for key, each in value.items() if isinstance(value, dict) else [("", value)]:
            text = each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)
            if len(text) > LONGEST:
                text = f"{text[:LONGEST]} ... (whole with --json)"
            out().print(plain(f"{title} {key}".strip() + f": {text}"))


def verify_savepoint(
    stream: OneStream,
    name: Savepoint,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out the content of data files and of state.")
    ] = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Check that every file of a savepoint is whole, and that its inputs can be read on.

    The exit code is 1 if a fault is found. Starts no Spark.

    JSON:
        faults

    Examples:
        rivermark savepoint verify taxi/driver_tips latest
    """
    from rivermark.monitor.savepoints import verify

    with steps("Reading every file"):
        faults = verify(settings_for(home), topology().named(stream), name, quick=quick)
    whole = "every file is there and whole, and the inputs can be read on"
    say("\n".join(faults) or whole, {"faults": faults}, as_json=as_json)
    if faults:
        raise typer.Exit(1)


def delete_savepoint(
    stream: OneStream,
    name: Savepoint,
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Delete a savepoint, but not the newest of its stream, nor one that a fork stands on.

    JSON:
        dry_run, stream, savepoint

    Examples:
        rivermark savepoint delete taxi/driver_tips 20260702-141500-3f2a
    """
    from rivermark.runtime.savepoint.fork import stands_on
    from rivermark.runtime.savepoint.store import delete

    lake = settings_for(home).lake()
    delete(lake, stream, name, stands_on(lake), dry_run=dry_run)
    document = {"dry_run": dry_run, "stream": stream, "savepoint": name}
    say(f"{'would be' if dry_run else 'is'} deleted: {name}", document, as_json=as_json)


def resume_savepoint(
    stream: OneStream,
    name: Savepoint,
    reset_readers: ResetReaders = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Put a stream back to a savepoint; its next run goes on from there, each row once.

    Its tables lose what was written since, and are moved to `removed/` in the lake as they are. The
    stream and those that read its tables must be stopped. Broken off, it is finished by the same
    command.

    JSON:
        the manifest, as describe

    Examples:
        rivermark savepoint resume taxi/driver_tips latest --yes
    """
    from rivermark.runtime.savepoint.resume import resume

    if not (yes or dry_run):
        typer.confirm(f"Put {stream} back to {name}?", abort=True, err=as_json)
    with steps("Going back") as on_step:
        order = order_of(home, on_step, reset_readers=reset_readers, dry_run=dry_run)
        made = resume(order, order.topology.named(stream), name)
    would = "would be" if dry_run else "is"
    then = "" if dry_run else f": rivermark run {stream}"
    say(f"{stream} {would} at batch {made.batch} again{then}", made, as_json=as_json)


add_command(savepoint, take_savepoint, "take")
add_command(savepoint, list_savepoints, "list")
add_command(savepoint, describe_savepoint, "describe")
add_command(savepoint, verify_savepoint, "verify")
add_command(savepoint, delete_savepoint, "delete")
add_command(savepoint, resume_savepoint, "resume")
