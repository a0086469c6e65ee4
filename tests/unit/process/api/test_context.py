"""Timers: one per key, kind and instant; past ones fire; all of them in order of time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rivermark.process import Context, KeyedProcess, ProcessError, SideOutput, ValueState
from rivermark.testing import ProcessHarness
from tests.unit.process.readings import MINUTE, NOON, Note, Reading, reading


class Wakes(KeyedProcess[Reading, Note]):
    """Sets a timer `value` milliseconds after noon; says what fires and when."""

    key = "sensor"
    time = "at"
    hold = False

    def on_event(self, event: Reading, ctx: Context[Note]) -> None:
        ctx.timers.event.register(NOON + event.value)

    def on_timer(self, at: int, ctx: Context[Note]) -> None:
        ctx.emit(Note(f"{ctx.key} {ctx.timer} {at - NOON}"))


@pytest.fixture
def wakes() -> ProcessHarness[Reading, Note]:
    return ProcessHarness(Wakes())


def test_timers_fire_in_order_of_time_up_to_the_watermark(
    wakes: ProcessHarness[Reading, Note],
) -> None:
    wakes.feed([reading("a", NOON, value) for value in (300, 100, 200)])

    assert wakes.advance_watermark(NOON + 200) == [Note("a event 100"), Note("a event 200")]
    assert wakes.timers_of("a").event == (NOON + 300,)


def test_a_timer_registered_twice_fires_once(wakes: ProcessHarness[Reading, Note]) -> None:
    wakes.feed([reading("a", NOON, 100)] * 2)
    wakes.feed(reading("a", NOON, 100))

    assert wakes.advance_watermark(NOON + 100) == [Note("a event 100")]


def test_keys_that_share_an_instant_have_timers_of_their_own(
    wakes: ProcessHarness[Reading, Note],
) -> None:
    keys = [f"key {n:02}" for n in range(30)]
    wakes.feed([reading(key, NOON, 100) for key in keys])

    assert wakes.advance_watermark(NOON + 100) == [Note(f"{key} event 100") for key in keys]
    assert wakes.is_empty()


def test_a_past_timer_fires_in_the_batch_that_registers_it(
    wakes: ProcessHarness[Reading, Note],
) -> None:
    wakes.advance_watermark(NOON + 150)

    assert wakes.feed(reading("a", NOON + 200, 100)) == [Note("a event 100")]


def test_timers_that_the_watermark_has_reached_fire_before_the_batchs_events() -> None:
    class Order(Wakes):
        def on_event(self, event: Reading, ctx: Context[Note]) -> None:
            super().on_event(event, ctx)
            ctx.emit(Note(f"event at {event.at - NOON}"))

    order = ProcessHarness(Order())
    order.feed(reading("a", NOON, 100))

    assert order.feed(reading("a", NOON + 200, 500), watermark=NOON + 150) == [
        Note("a event 100"),
        Note("event at 200"),
    ]


def test_an_aware_datetime_is_an_instant_too() -> None:
    class AtSix(Wakes):
        def on_event(self, event: Reading, ctx: Context[Note]) -> None:
            ctx.timers.event.register(datetime(2020, 1, 1, 18, tzinfo=UTC))

    six = ProcessHarness(AtSix())
    six.feed(reading("a"))

    assert six.timers_of("a").event == (NOON + 6 * 60 * MINUTE,)


class Deletes(Wakes):
    """A negative value deletes the timer of the positive one; says whether there was one."""

    def on_event(self, event: Reading, ctx: Context[Note]) -> None:
        if event.value > 0:
            super().on_event(event, ctx)
        else:
            ctx.emit(Note(str(ctx.timers.event.delete(NOON - event.value))))


def test_a_deleted_timer_does_not_fire_and_another_keys_does() -> None:
    deletes = ProcessHarness(Deletes())
    deletes.feed([reading("a", NOON, 100), reading("b", NOON, 100)])
    deletes.feed([reading("a", NOON, -100), reading("a", NOON, -100), reading("c", NOON, -100)])
    deletes.advance_watermark(NOON + 100)

    assert deletes.outputs() == [Note("True"), Note("False"), Note("False"), Note("b event 100")]
    assert deletes.is_empty()


def test_a_key_can_list_its_own_timers() -> None:
    class Lists(Wakes):
        def on_event(self, event: Reading, ctx: Context[Note]) -> None:
            super().on_event(event, ctx)
            ctx.emit(Note(str([each - NOON for each in ctx.timers.event.list()])))

    lists = ProcessHarness(Lists())
    lists.feed([reading("a", NOON, 200), reading("b", NOON, 5), reading("a", NOON, 100)])

    assert lists.outputs() == [Note("[200]"), Note("[5]"), Note("[100, 200]")]


class Both(KeyedProcess[Reading, Note]):
    """One function with timers of both kinds of time."""

    key = "sensor"
    time = "at"
    hold = False
    alive: ValueState[bool]

    def on_event(self, event: Reading, ctx: Context[Note]) -> None:
        self.alive.value = True
        ctx.timers.event.register(event.at + 100)
        ctx.timers.processing.register(ctx.processing_time + 100)

    def on_timer(self, at: int, ctx: Context[Note]) -> None:
        ctx.emit(Note(f"{ctx.timer} {at - NOON}"))
        if ctx.timer == "processing":
            self.alive.clear()


def test_one_function_has_timers_of_both_kinds_and_tells_them_apart() -> None:
    both = ProcessHarness(Both(), processing_time=NOON + 1_000)
    both.feed(reading("a", NOON))
    assert both.timers_of("a").event == (NOON + 100,)
    assert both.timers_of("a").processing == (NOON + 1_100,)

    assert both.advance_watermark(NOON + 100) == [Note("event 100")]
    assert both.advance_processing_time(NOON + 1_099) == []
    assert both.advance_processing_time(NOON + 1_200) == [Note("processing 1100")]
    assert both.is_empty()


def test_a_past_processing_timer_fires_at_once() -> None:
    class Past(Both):
        def on_event(self, event: Reading, ctx: Context[Note]) -> None:
            ctx.timers.processing.register(ctx.processing_time - 1)

    past = ProcessHarness(Past(), processing_time=NOON)

    assert past.feed(reading("a")) == [Note("processing -1")]


def test_the_end_of_input_fires_timers_of_both_kinds() -> None:
    both = ProcessHarness(Both(), processing_time=NOON)
    both.feed(reading("a", NOON))

    assert both.end_of_input() == [Note("processing 100"), Note("event 100")]
    assert both.is_empty()


class Ticks(KeyedProcess[Reading, Note]):
    """Ticks each minute for ever, or until the input ends."""

    key = "sensor"
    time = "at"
    hold = False
    endless: ValueState[bool]

    def on_event(self, event: Reading, ctx: Context[Note]) -> None:
        self.endless.value = event.value == 1
        ctx.timers.event.register(event.at + MINUTE)

    def on_timer(self, at: int, ctx: Context[Note]) -> None:
        if self.endless.value or not ctx.ending:
            ctx.timers.event.register(at + MINUTE)
        else:
            ctx.emit(Note(f"stopped {at - NOON}"))
            self.endless.clear()


def test_a_timer_may_register_the_next_and_stop_when_the_input_ends() -> None:
    ticks = ProcessHarness(Ticks())
    ticks.feed(reading("a", NOON, 0))
    ticks.advance_watermark(NOON + 10 * MINUTE)

    assert ticks.end_of_input() == [Note(f"stopped {11 * MINUTE}")]
    assert ticks.is_empty()


def test_a_timer_that_never_stops_at_the_end_of_input_is_an_error_and_no_hang() -> None:
    ticks = ProcessHarness(Ticks())
    ticks.feed(reading("a", NOON, 1))

    with pytest.raises(ProcessError, match="timers register timers without end"):
        ticks.end_of_input()


def test_a_process_without_on_timer_cannot_register_timers() -> None:
    class Forgot(KeyedProcess[Reading, Note]):
        key = "sensor"
        time = "at"
        hold = False

        def on_event(self, event: Reading, ctx: Context[Note]) -> None:
            ctx.timers.event.register(event.at)

    with pytest.raises(ProcessError, match="has no method on_timer") as failure:
        ProcessHarness(Forgot()).feed(reading("a"))

    assert "register(event.at)" in failure.value.line


@pytest.mark.parametrize("at", [1.5, "noon", datetime(2020, 1, 1), True])  # noqa: DTZ001
def test_an_instant_that_is_none_is_refused(at: object) -> None:
    class Odd(Wakes):
        def on_event(self, event: Reading, ctx: Context[Note]) -> None:
            ctx.timers.event.register(at)  # type: ignore[arg-type]

    with pytest.raises(ProcessError, match="TypeError"):
        ProcessHarness(Odd()).feed(reading("a"))


class Strays(KeyedProcess[Reading, Note]):
    """Writes to an output that it does not declare."""

    key = "sensor"
    time = "at"
    late = SideOutput("late", Reading)

    def __init__(self, tag: SideOutput[Reading] | str) -> None:
        self.tag = tag

    def on_event(self, event: Reading, ctx: Context[Note]) -> None:
        ctx.output(self.late, event)
        ctx.output(self.tag, event)


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("tardy", "'tardy' is not a side output of the process; declared are: late"),
        (SideOutput("late", Note), r"SideOutput\('late', Note\) is not a side output"),
        (SideOutput("tardy", Reading), r"SideOutput\('tardy', Reading\) is not a side output"),
    ],
    ids=["a tag", "a declaration of another class with the same tag", "an undeclared one"],
)
def test_a_side_output_that_the_class_does_not_declare_is_refused_with_the_line(
    tag: SideOutput[Reading] | str, text: str
) -> None:
    harness = ProcessHarness(Strays(tag))
    with pytest.raises(ProcessError, match=text) as failure:
        harness.feed(reading("a"))

    assert "ctx.output(self.tag, event)" in failure.value.line
    assert harness.side("late") == []
