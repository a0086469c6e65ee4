"""Keys and times of events, taken from them by what the process declares.

A field is read; a function is user code, which may raise on one event of a million. That event is
then reported like one whose handler raises: an error with the event and the line, or a dead letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rivermark.process.api.declaration import InputSpec
from rivermark.process.api.inputs import Arrivals
from rivermark.process.errors import DeadLetter, ProcessError
from rivermark.process.instants import Millis


def arrivals_of(
    process: str,
    spec: InputSpec,
    events: list[Any],
    *,
    dead_letter: bool,
    keys: list[Any] | None = None,
    times: list[Millis] | None = None,
) -> tuple[Arrivals, list[DeadLetter]]:
    """Events of an input with their keys and times, and those for which a function fails.

    `keys` and `times` are given where they are known already. Raises ProcessError for an event that
    fails, unless `dead_letter` makes such events dead letters.
    """
    try:
        return spec.arrivals(events, keys, times), []
    except Exception:  # user code; reported below with the event
        return _one_by_one(process, spec, events, keys, times, dead_letter=dead_letter)


def _one_by_one(
    process: str,
    spec: InputSpec,
    events: list[Any],
    keys: list[Any] | None,
    times: list[Millis] | None,
    *,
    dead_letter: bool,
) -> tuple[Arrivals, list[DeadLetter]]:
    good: list[Any] = []
    dead = []
    columns: tuple[list[Any], list[Millis]] = ([], [])
    for place, event in enumerate(events):
        key = None if keys is None else keys[place]
        try:
            one = spec.arrivals([event], _only(keys, place), _only(times, place))
        except Exception as error:
            failure = ProcessError(process, key, event, 0, error)
            if not dead_letter:
                raise failure from error
            dead.append(DeadLetter.of(failure, error, spec.name))
            continue
        good.append(event)
        for column, values in zip(columns, (one.keys, one.times), strict=True):
            column.extend(values or ())
    return (
        Arrivals(
            spec.name,
            good,
            None if spec.key is None else columns[0],
            None if spec.time is None else columns[1],
        ),
        dead,
    )


def _only(column: Sequence[Any] | None, place: int) -> list[Any] | None:
    return None if column is None else [column[place]]
