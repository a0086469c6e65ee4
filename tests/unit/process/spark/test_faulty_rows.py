"""Rows of which no event, key or time can be made: told with the row, or set aside one by one."""

from __future__ import annotations

import itertools
import json
import math
from datetime import date
from decimal import Decimal
from typing import Any, ClassVar

import msgspec
import pyarrow as pa
import pytest

from rivermark.process import Context, KeyedProcess, ProcessError, ValueState
from rivermark.process.api.inputs import Arrivals
from rivermark.process.engine.engine import Engine
from rivermark.process.spark.core import Core
from rivermark.process.spark.reading import InputReader
from rivermark.process.spark.replaying import _ByPython, again, set_again
from rivermark.process.spark.writing import dead_letter_values
from tests.unit.process.spark.test_packets import (
    LABELS,
    NOON,
    T0,
    Color,
    Copies,
    Copy,
    Event,
    batch,
    core,
    packets,
    reader,
    row,
)


def group_of(event: Event) -> str:
    return event.tags[0]


def time_of(event: Event) -> int:
    return int(event.at * (event.share or 1) / (event.share or 0))


class ByGroup(Copies):
    key = staticmethod(group_of)  # type: ignore[assignment]


class TimedByShare(Copies):
    time = staticmethod(time_of)  # type: ignore[assignment]


def handled(process: type[KeyedProcess[Any, Any]], *rows: tuple[Any, ...]) -> tuple[list[Any], Any]:
    """The shares of the rows that came through, and the dead letters of all buckets."""
    taken = reader(process)
    shares, dead = [], []
    for label, mine in packets(batch(list(rows), taken), taken=taken).items():
        whole = core(process)
        arrivals, aside = whole.taken(label, mine)
        ran = whole.engine.run(None, arrivals, 0, 0)
        shares += [each.share for each in ran.outputs.main]
        dead += [*aside, *ran.outputs.dead]
    return shares, dead


def test_a_value_that_its_field_cannot_hold_sets_only_its_row_aside() -> None:
    shares, (dead,) = handled(Copies, row(1, share=0.25), row(1, color="mauve"), row(2, share=0.75))

    assert sorted(shares) == [0.25, 0.75]
    assert (dead.key, dead.at, dead.input) == (1, T0, "events")
    assert "field 'color' cannot be read" in dead.message
    assert json.loads(dead.payload())["color"] == "mauve"

    class Strict(Copies):
        dead_letter = False

    with pytest.raises(
        ProcessError, match=r"on key 1, event .*mauve.*field 'color' cannot be read"
    ):
        handled(Strict, row(1, color="mauve"))


def test_a_key_function_that_raises_sets_only_its_event_aside() -> None:
    shares, (dead,) = handled(ByGroup, row(1), row(2, tags=[]), row(3))

    assert shares == [0.5, 0.5]
    assert (dead.error, dead.key) == ("IndexError", None)
    assert dead.line.endswith("return event.tags[0]")

    class Strict(ByGroup):
        dead_letter = False

    with pytest.raises(ProcessError, match=r"process 'Strict' failed .*tags=\[\].*IndexError"):
        handled(Strict, row(2, tags=[]))


@pytest.mark.parametrize("share", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_lacks_is_the_same_when_a_dead_letter_is_replayed(share: float) -> None:
    _, (dead,) = handled(ByGroup, row(1, share=share, tags=[]))
    payload = dead.payload()
    assert json.loads(payload)["share"] == {math.inf: "Infinity", -math.inf: "-Infinity"}.get(
        share, "NaN"
    )
    assert payload in dead_letter_values(dead)

    _, (repeated,) = again(reader(ByGroup), [payload.encode()])
    assert (repeated.error, repr(repeated.event)) == ("IndexError", repr(dead.event))


def test_a_time_function_that_raises_sets_only_its_event_aside() -> None:
    shares, (dead,) = handled(TimedByShare, row(1), row(1, share=0.0), row(2))

    assert shares == [0.5, 0.5]
    assert (dead.error, dead.key) == ("ZeroDivisionError", 1)


class Checked(msgspec.Struct, frozen=True, array_like=True):
    """Refuses a negative share."""

    key: int
    share: float | None = None

    def __post_init__(self) -> None:
        if self.share is not None and self.share < 0:
            raise ValueError("a share is not negative")


class Shares(KeyedProcess[Checked, Copy]):
    key = "key"
    dead_letter = True

    def on_event(self, event: Checked, ctx: Context[Copy]) -> None:
        ctx.count("handled")


def test_an_event_that_its_class_refuses_is_set_aside_in_the_form_that_is_replayed() -> None:
    taken = reader(Shares)
    shares = [(1, 0.5, 0), (1, -0.5, 1), (1, 0.25, 2)]
    rows = pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(zip(*shares, strict=True), taken.schema, strict=True)],
        schema=taken.schema,
    )
    arrivals, (dead,) = taken.arrivals([rows.serialize().to_pybytes()])

    assert [each.share for each in arrivals.rows] == [0.5, 0.25]
    assert "a share is not negative" in dead.message
    assert dead.payload() == "[1,-0.5]"
    # Replayed as it is, it is refused again; with another class it would be taken.
    assert again(taken, [dead.payload().encode()])[1][0].message.startswith("it is no event")


def test_what_has_no_key_when_it_is_replayed_is_set_aside_again() -> None:
    taken = reader(ByGroup)
    event = Event(1, T0, None, None, None, "red", [])  # type: ignore[arg-type]
    payload = json.dumps(
        {**msgspec.to_builtins(event), "seen": "2024-03-01T12:00:00Z", "price": "1",
         "day": "2024-03-01"}
    )  # fmt: skip
    assert _ByPython(taken, len(LABELS))(payload) == 0
    arrivals, (dead,) = again(taken, [payload.encode()])
    assert (arrivals.rows, dead.error) == ([], "IndexError")


CALLS = itertools.count()


def any_number(event: Event) -> int:
    return next(CALLS)


class AnyKey(Copies):
    key = staticmethod(any_number)  # type: ignore[assignment]


class OtherWorker(Copies):
    key = staticmethod(group_of)  # type: ignore[assignment]


def test_a_key_that_changes_from_one_call_to_the_next_is_an_error_with_its_event() -> None:
    with pytest.raises(ProcessError, match=r"is not deterministic.*not on the clock") as failure:
        handled(AnyKey, *[row(n) for n in range(20)])
    assert failure.value.event is not None
    assert isinstance(failure.value.key, int)


def test_a_key_that_another_process_computes_otherwise_is_an_error() -> None:
    """As `hash` of a text does: the same in each call, another one in each process."""
    taken: InputReader = reader(OtherWorker)
    ((label, mine),) = packets(batch([row(1, tags=["a"])], taken), taken=taken).items()
    elsewhere = next(each for each in LABELS if each != label)
    whole: Core = core(OtherWorker)

    assert whole.taken(label, mine)[0][0].keys == ["a"]
    with pytest.raises(ProcessError, match=r"on key 'a'.*is not deterministic"):
        whole.taken(elsewhere, mine)


def no_key_at_all(event: Event) -> str:
    wrong: Any = {object()}
    return event.color.value if event.key else wrong


class NoKeyAtAll(Copies):
    key = staticmethod(no_key_at_all)  # type: ignore[assignment]


def test_a_key_that_nothing_can_hold_is_set_aside_as_its_text() -> None:
    shares, (dead,) = handled(NoKeyAtAll, row(1), row(0))
    assert shares == [0.5]
    assert dead.message == "unhashable type: 'set'"

    whole = core(NoKeyAtAll)
    outputs = whole.engine.run(None, [], 0, 0).outputs
    outputs.dead.append(dead)
    (wire,) = whole.writer.rows(outputs)
    told = dict(zip(whole.writer.schema.names, wire, strict=True))
    assert told["key_json"].startswith('"{<object object')
    assert json.loads(told["event_json"])["key"] == 0


class Closes(KeyedProcess[Event, Copy]):
    """Counts the events of a key until its timer, whose handler fails as long as it is told to."""

    key = "key"
    time = "at"
    hold = False
    dead_letter = True
    fails: ClassVar[bool] = True
    count: ValueState[int]

    def on_event(self, event: Event, ctx: Context[Copy]) -> None:
        self.count.value = self.count.get(0) + 1
        ctx.timers.event.register(event.at + 10)

    def on_timer(self, at: int, ctx: Context[Copy]) -> None:
        if self.fails:
            raise RuntimeError("not yet")
        ctx.count("closed", self.count.get(0))
        self.count.clear()


def test_a_timer_that_failed_is_set_again_and_finds_its_keys_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = Engine(Closes())
    engine.start()
    events = [Event(5, T0, NOON, Decimal(1), date(2024, 3, 1), Color.RED, [])]
    ran = engine.run(None, [Arrivals("events", events, [5], [T0])], 0, 0)
    ran = engine.run(ran.state, [], T0 + 10, 0)
    (dead,) = ran.outputs.dead
    assert (dead.input, dead.event, dead.timer, dead.at, dead.key) == (
        None,
        None,
        "event",
        T0 + 10,
        5,
    )
    assert (ran.rows, ran.wake_at) == (1, None)

    payload = msgspec.json.encode({"key_json": "5", "at": dead.at, "kind": dead.timer})
    timers, unread = set_again(Closes.declaration, [payload])
    assert (timers, unread) == ([(5, T0 + 10, "event")], [])
    ran = engine.run(ran.state, [], T0 + 20, 0, timers)
    assert [each.at for each in ran.outputs.dead] == [T0 + 10]

    monkeypatch.setattr(Closes, "fails", False)
    ran = engine.run(ran.state, [], T0 + 30, 0, timers)
    assert ran.outputs.counters == {"closed": 1}
    assert (ran.outputs.dead, ran.state) == ([], None)


def test_a_timer_whose_key_is_none_any_more_is_a_dead_letter_again() -> None:
    payload = msgspec.json.encode({"key_json": '"five"', "at": 7, "kind": "processing"})
    timers, (dead,) = set_again(Closes.declaration, [payload])

    assert timers == []
    assert (dead.input, dead.timer, dead.at) == (None, "processing", 7)
    assert dead.message.startswith('"five" is no key of the process')
