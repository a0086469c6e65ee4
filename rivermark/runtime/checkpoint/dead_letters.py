"""Events that a process function could not handle: which there are, and handling them again."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final

from deltalake import write_deltalake

from rivermark.lake.commit_metadata import commit_properties
from rivermark.lake.delta import dataset_of, delta_table, read_rows
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import rows_of
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import AnyStream, Stream
from rivermark.model.table import Table
from rivermark.process.spark import ProcessBuild
from rivermark.process.spark.replaying import replays_of
from rivermark.process.spark.writing import DEAD, timer_json
from rivermark.runtime.checkpoint.generation import read_generation
from rivermark.runtime.checkpoint.process_schema import read_record

EVENT: Final = ("input", "key_json", "event_time", "event_json")
"""What makes two dead letters the same event."""


@dataclass(frozen=True, kw_only=True)
class Letter:
    """An event that failed, with each of its errors.

    `failures` is how often it failed: more than once where it came again, or failed again when it
    was replayed. `replays` is how often it was given to the process again. `input` and `event` are
    None for a timer; `timer` is then its kind of time, where it was written down.
    """

    id: str
    input: str | None
    key: str
    event_time: datetime | None
    event: str | None
    failures: int
    replays: int
    errors: tuple[tuple[str, str, str], ...]
    timer: str | None = None

    @property
    def waiting(self) -> int:
        """Number of failures that were not replayed."""
        return max(0, self.failures - self.replays)


def dead_table(stream: AnyStream) -> Table | None:
    """The table of a stream's dead letters, where it has one."""
    if not isinstance(stream, Stream) or not isinstance(stream.build, ProcessBuild):
        return None
    return stream.build.tables(stream).get(DEAD)


def replayed_into(stream: AnyStream) -> Table | None:
    """The table by which a stream is given its dead letters again, where it keeps any."""
    return replays_of(stream.name) if dead_table(stream) is not None else None


def letters_of(lake: Lake, stream: AnyStream) -> list[Letter]:
    """The dead letters of a stream by event time; RivermarkError for a stream that keeps none."""
    table = dead_table(stream)
    if table is None:
        raise RivermarkError(
            f"stream '{stream.name}' keeps no dead letters: its process needs dead_letter = True, "
            "and a table with Output(table, dead_letters)"
        )
    failures = _rows(lake, table)
    generation = read_generation(lake, stream)
    number = generation.number if generation else None
    replays: dict[tuple[Any, ...], int] = {}
    for row in _rows(lake, replays_of(stream.name)):
        if row["generation"] == number:
            replays[_event(row)] = replays.get(_event(row), 0) + 1
    by_event: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in failures:
        by_event.setdefault(_event(row), []).append(row)
    letters = [_letter(event, rows, replays.get(event, 0)) for event, rows in by_event.items()]
    return sorted(letters, key=lambda each: (str(each.event_time), each.id))


def replay(
    lake: Lake, stream: AnyStream, ids: Collection[str] | None, *, dry_run: bool = False
) -> list[Letter]:
    """Give dead letters to the stream again: it handles them once, by its present code and state.

    `ids` choose letters; None takes all that wait. Those that were replayed before are passed over.
    A running stream handles them at once, a stopped one with its next run. Returns those taken, or
    in a dry run those that would be.
    Raises RivermarkError for an unknown id, and for what cannot be replayed.
    """
    letters = letters_of(lake, stream)
    known = {each.id for each in letters}
    for wanted in ids or ():
        if wanted not in known:
            raise RivermarkError(f"stream '{stream.name}' has no dead letter {wanted!r}")
    generation = read_generation(lake, stream)
    record = None
    if generation is not None:
        record = read_record(lake.checkpoint(stream.name, generation.number), stream.name)
    if generation is None or record is None or not record.replays:
        raise RivermarkError(
            f"the checkpoint of stream '{stream.name}' was begun without dead letters, so it takes "
            f"none back: compute their days again, or start it over (rivermark reset {stream.name})"
        )
    if dry_run:
        return _to_replay(stream, letters, ids)
    table = replays_of(stream.name)
    create_table(lake, table)
    path = lake.path(table)
    with commit_lock(path):
        # Again, under the lock: another replay may have taken them meanwhile.
        chosen = _to_replay(stream, letters_of(lake, stream), ids)
        now = datetime.now(UTC)
        rows = [_row(each, generation.number, now) for each in chosen for _ in range(each.waiting)]
        if rows:
            write_deltalake(
                delta_table(path),
                rows_of(table, rows),
                mode="append",
                commit_properties=commit_properties({"replayed": len(rows)}),
            )
    return chosen


def _to_replay(
    stream: AnyStream, letters: Sequence[Letter], ids: Collection[str] | None
) -> list[Letter]:
    """The letters that wait, of those ids or all; RivermarkError for what cannot be replayed."""
    chosen = [
        each
        for each in letters
        if each.waiting and (each.id in ids if ids is not None else replayable(stream, each))
    ]
    for each in chosen:
        _check(stream, each)
    return chosen


def replayable(stream: AnyStream, letter: Letter) -> bool:
    """Returns True if the process can be given it again: an event of a key, or a timer.

    An event for all keys is handled by each bucket by itself, and may have failed in some of them.
    """
    assert isinstance(stream, Stream)  # noqa: S101  # has letters
    assert isinstance(stream.build, ProcessBuild)  # noqa: S101
    keyed = {each.name for each in stream.build.declared.inputs if not each.broadcast}
    if letter.input is None:
        return letter.timer is not None and letter.event_time is not None
    return letter.event is not None and letter.input in keyed


def _check(stream: AnyStream, letter: Letter) -> None:
    if not replayable(stream, letter):
        what = (
            "a timer of which only the key is known"
            if letter.input is None
            else f"an event of input '{letter.input}' and has no key"
        )
        raise RivermarkError(
            f"dead letter {letter.id} of stream '{stream.name}' is {what}, so it cannot be "
            "replayed. Compute the day again instead"
        )


def _rows(lake: Lake, table: Table) -> list[dict[str, Any]]:
    if not lake.exists(table):
        return []
    rows: list[dict[str, Any]] = read_rows(dataset_of(delta_table(lake.path(table)))).to_pylist()
    return rows


def _event(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in EVENT)


def _letter(event: tuple[Any, ...], rows: Sequence[dict[str, Any]], replays: int) -> Letter:
    source, key, at, text = event
    timer = json.loads(text).get("timer") if source is None and text is not None else None
    errors = dict.fromkeys((row["error"], row["message"], row["line"]) for row in rows)
    return Letter(
        id=blake2b(repr((source, key, str(at), text)).encode(), digest_size=5).hexdigest(),
        input=source,
        key=key,
        event_time=at.astimezone(UTC) if at else None,
        event=None if source is None else text,
        timer=timer,
        failures=len(rows),
        replays=replays,
        errors=tuple(errors),
    )


def _row(letter: Letter, generation: int, now: datetime) -> dict[str, Any]:
    return {
        "generation": generation,
        "replayed_at": now,
        "input": letter.input,
        "key_json": letter.key,
        "event_time": letter.event_time,
        "event_json": timer_json(letter.timer) if letter.timer else letter.event,
    }
