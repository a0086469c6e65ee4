"""Batch invariance: a process gives the same however its arrivals are cut into batches."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any

import msgspec

from rivermark.process.api.inputs import Arrivals
from rivermark.process.api.side_outputs import Outputs
from rivermark.process.engine.engine import Engine
from rivermark.process.instants import BEGINNING, END_OF_TIME, Millis, span_or_zero
from rivermark.process.keyed import KeyedProcess

Cut = tuple[int, ...]
"""Where batches begin: ascending places of arrivals, the first of them left out."""


class SplitDifference(AssertionError):
    """Two ways of cutting the same arrivals into batches gave different results."""


@dataclass(frozen=True)
class InputEvent:
    """One event and the input on which it arrives."""

    event: Any
    input: str | None = None


@dataclass(frozen=True)
class Invariant:
    """The results of every cut: the outputs of the whole story, its last state, late arrivals.

    The late ones never reached the process, as behind an ingest's admission.
    """

    outputs: Outputs
    state: bytes | None
    late: list[InputEvent]


def split_invariant(
    process: Callable[[], KeyedProcess[Any, Any]],
    arrivals: Iterable[Any],
    *,
    delay: timedelta,
    cuts: Iterable[Cut] | None = None,
    in_order: bool = False,
) -> Invariant:
    """Run the arrivals in every one of `cuts`, to the end of input, and compare all with the first.

    Arrivals are events, or `InputEvent`s where there are several inputs. The watermark of a batch
    is the largest event time before it less `delay`; arrivals at or before the watermark of the
    finest cut are late and left out. `process` makes a new process for each run. With `in_order`
    outputs must come in the same order; otherwise as the same rows.

    Raises:
        SplitDifference: With the two cuts and what differs.
        ValueError: There is no cut.
    """
    declared = process().declaration
    arrived = [each if isinstance(each, InputEvent) else InputEvent(each) for each in arrivals]
    times = [
        (declared.input(each.input).arrivals([each.event]).times or [BEGINNING])[0]
        for each in arrived
    ]
    accepted, late = _admitted(arrived, times, span_or_zero(delay, "a delay"))
    chosen = list(all_cuts(len(accepted)) if cuts is None else cuts)
    first: tuple[Cut, Outputs, bytes | None] | None = None
    for cut in chosen:
        outputs, state = _run(process(), accepted, span_or_zero(delay, "a delay"), cut)
        if first is None:
            first = cut, outputs, state
        else:
            _compare(first, (cut, outputs, state), in_order=in_order)
    if first is None:
        raise ValueError("no cut was given, so nothing was compared")
    return Invariant(first[1], first[2], late)


def all_cuts(count: int, most: int = 24, seed: int = 1) -> Iterator[Cut]:
    """Ways to cut `count` arrivals: all of them if they are at most `most`, else a sample.

    The sample has the coarsest and the finest cut and others drawn by `seed`.
    """
    inner = range(1, count)
    if 2 ** len(inner) <= most:
        for bits in range(2 ** len(inner)):
            yield tuple(place for place in inner if bits >> (place - 1) & 1)
        return
    yield ()
    yield tuple(inner)
    draw = random.Random(seed)  # noqa: S311  # no secret: a sample that is the same each time
    for _ in range(most - 2):
        share = draw.choice((0.1, 0.3, 0.6))
        yield tuple(place for place in inner if draw.random() < share)


def _admitted(
    arrived: Sequence[InputEvent], times: Sequence[Millis], delay: Millis
) -> tuple[list[tuple[InputEvent, Millis]], list[InputEvent]]:
    accepted = []
    late = []
    newest: Millis | None = None
    for arrival, at in zip(arrived, times, strict=True):
        if newest is not None and at <= newest - delay and at != BEGINNING:
            late.append(arrival)
            continue
        accepted.append((arrival, at))
        newest = at if newest is None else max(newest, at)
    return accepted, late


def _run(
    process: KeyedProcess[Any, Any],
    accepted: Sequence[tuple[InputEvent, Millis]],
    delay: Millis,
    cut: Cut,
) -> tuple[Outputs, bytes | None]:
    engine = Engine(process)
    engine.start()
    outputs = Outputs(tuple(process.declaration.sides))
    state: bytes | None = None
    watermark = BEGINNING
    for start, end in pairwise([0, *cut, len(accepted)]):
        batch = accepted[start:end]
        ran = engine.run(state, _columns(process, batch), watermark, 0)
        state = ran.state
        outputs.extend(ran.outputs)
        newest = max((at for _, at in batch), default=BEGINNING)
        if newest != BEGINNING:
            watermark = max(watermark, newest - delay)
    ran = engine.run(state, [], END_OF_TIME, 0)
    outputs.extend(ran.outputs)
    return outputs, ran.state


def _columns(
    process: KeyedProcess[Any, Any], batch: Sequence[tuple[InputEvent, Millis]]
) -> list[Arrivals]:
    return [
        spec.arrivals([each.event for each, _ in batch if each.input in (spec.name, None)])
        for spec in process.declaration.inputs
    ]


def _compare(
    one: tuple[Cut, Outputs, bytes | None],
    other: tuple[Cut, Outputs, bytes | None],
    *,
    in_order: bool,
) -> None:
    where = f"cut at {list(one[0])} and cut at {list(other[0])}"
    for name, rows in _written(one[1]).items():
        others = _written(other[1])[name]
        if rows == others or (not in_order and _counted(rows) == _counted(others)):
            continue
        raise SplitDifference(f"{where}: output '{name}' differs:\n  {rows}\n  {others}")
    if _settled(one[2]) != _settled(other[2]):
        raise SplitDifference(f"{where}: the state left over differs")


def _written(outputs: Outputs) -> dict[str, list[Any]]:
    return {"main": outputs.main, **outputs.sides, "dead letters": outputs.dead}


def _counted(rows: list[Any]) -> Counter[bytes]:
    return Counter(map(msgspec.msgpack.encode, rows))


def _settled(state: bytes | None) -> Any:
    """Stored state in a form in which the order of keys does not count."""
    if state is None:
        return None
    _, schema, body = msgspec.msgpack.decode(state)
    _, _, records, calendars, held, broadcasts = body
    due = [{at: sorted(map(repr, keys)) for at, keys in each[1].items()} for each in calendars]
    return schema, records, due, [(at, key, event) for at, _, _, key, event in held], broadcasts
