"""`rivermark status`: the state of every stream, without a JVM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rivermark.cli.arguments import Groups, Home, Json, Streams
from rivermark.cli.console import ago, coloured, err, grid, moment, number, out, plain, print_json
from rivermark.cli.deployment import selected, settings_for, topology
from rivermark.lake.filesystem import is_local
from rivermark.lake.snapshot import snapshot
from rivermark.model.printable import printable
from rivermark.model.stream import AnyStream, Stream
from rivermark.monitor.status import StreamStatus, desired_states, status_of
from rivermark.monitor.time_span import span
from rivermark.monitor.watermarks import ProducerProgress
from rivermark.runtime.restart.outbox import Outbox

NUMERIC: Final = ("rows in", "out", "late", "quarantined")
"""As few and as narrow as fits 110 columns beside a name of 28 letters."""


def status(
    streams: Streams = None, group: Groups = None, as_json: Json = False, home: Home = None
) -> None:
    """Show each stream: rows in, out, late, quarantined, watermark, last batch, state.

    Without names, all streams are shown. The rows out of an ingest are those that it admitted.
    Below a group are the counters of its process functions, the unread messages of topics by
    partition, and the progress of producers that have their own watermarks.

    JSON:
        lake, groups (group, state, by, at, reason, problem),
        streams (stream, group, state, alive, rows_in, admitted, late, quarantined, rows, rows_day,
        rows_per_second, restarts, watermark, last_batch_at, error, metrics,
        lag (records, oldest, parts (name, records, newest, oldest), problem),
        producers (name, newest, heard, ahead_seconds), set_aside),
        sinks (table, sink), unsent (cause, tries, error)

    Examples:
        rivermark status
        rivermark status --group taxi_events --json
    """
    settings = settings_for(home)
    chosen = selected(topology(), streams or [], group or [])
    now = datetime.now(UTC)
    with err().status("Reading tables"), snapshot(settings.lake()):
        statuses = status_of(settings, chosen, now)
    unsent = [notice for notice in Outbox(settings.state).notices() if notice.error]
    groups = desired_states(settings, dict.fromkeys(s.group for s in statuses))
    if as_json:
        document = {
            "lake": settings.lake_root,
            "groups": [{"group": name, **asdict(desired)} for name, desired in groups.items()],
            # `set_aside` is the name of `quarantined` in earlier versions.
            "streams": [{**asdict(each), "set_aside": each.quarantined} for each in statuses],
            "unsent": [
                {"cause": each.cause, "tries": each.tries, "error": each.error} for each in unsent
            ],
            "sinks": [{"table": table, "sink": sink} for table, sink in sinks_of(chosen)],
        }
        print_json(document)
        return
    out().print(plain(f"lake {settings.lake_root}"))
    if is_local(settings.lake_root) and not Path(settings.lake_root).exists():
        err().print(
            plain(
                "there is no lake there yet: nothing has run with this home; it is counted from "
                "the working folder, unless RIVERMARK_HOME or --home says which"
            )
        )
    for name, desired in groups.items():
        by = f"{desired.by}{', ' + moment(desired.at) if desired.at else ''}"
        title = f"{name}: desired {desired.state}; {desired.reason} ({by})"
        print_statuses([s for s in statuses if s.group == name], title, now)
        for table, sink in sinks_of(stream for stream in chosen if stream.group == name):
            out().print(plain(f" {table} goes to {sink}"))
    for notice in unsent:
        text = f"a notice could not be sent ({notice.tries} tries, {notice.error}): {notice.text}"
        out().print(plain(text, "red"))


def print_statuses(statuses: Sequence[StreamStatus], title: str, now: datetime) -> None:
    """A table of streams; watermarks are UTC."""
    columns = ("stream", *NUMERIC, "watermark", "last batch", "state")
    table = grid(title, columns, right=NUMERIC)
    for each in statuses:
        table.add_row(
            each.stream,
            number(each.rows_in),
            number(each.rows if each.admitted is None else each.admitted),
            number(each.late),
            number(each.quarantined),
            moment(each.watermark)[:-3],
            ago(each.last_batch_at, now),
            coloured(each.state),
        )
    out().print(table)
    for each in statuses:
        if each.error:
            out().print(plain(f" {each.stream} {each.state}: {each.error}"))
        if each.metrics:
            metrics = ", ".join(f"{name} {n:,}" for name, n in sorted(each.metrics.items()))
            out().print(plain(f" {each.stream} counts {metrics}"))
        if each.lag:
            out().print(plain(f" {each.stream}: {each.lag.sentence(now)}"))
        for producer in each.producers:
            out().print(plain(f" {each.stream}: {producer_line(producer)}"))


def producer_line(producer: ProducerProgress) -> str:
    """The progress of a producer, in words."""
    if producer.newest is None:
        return f"{printable(producer.name)} brought no row yet"
    ahead = producer.ahead_seconds
    state = "idle" if ahead is None else f"{span(1000 * ahead)} ahead" if ahead else "the slowest"
    return f"{printable(producer.name)} has come to {moment(producer.newest)}: {state}"


def sinks_of(streams: Iterable[AnyStream]) -> Iterator[tuple[str, str]]:
    """Tables, and where their rows go besides a table that they are appended to."""
    for stream in streams:
        for output in stream.outputs if isinstance(stream, Stream) else ():
            for sink in output.sinks:
                yield output.table.name, sink.described()
