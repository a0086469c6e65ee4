"""P21: words that a control stream names are blocked from then on."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from rivermark.process import Context, Input, KeyedProcess, ValueState
from rivermark.testing import InputEvent, ProcessHarness, assert_rows_equal, split_invariant


class Word(msgspec.Struct, frozen=True):
    text: str
    at: int = 0


class ControlWords(KeyedProcess[Word, Word]):
    """Keeps, per blocked word, that it is blocked: for good. Control comes first within a batch."""

    control = Input(Word, key="text", time="at", control=True)
    words = Input(Word, key="text", time="at")

    blocked: ValueState[bool]

    def on_control(self, event: Word, ctx: Context[Word]) -> None:
        self.blocked.value = True

    def on_words(self, event: Word, ctx: Context[Word]) -> None:
        if not self.blocked.value:
            ctx.emit(event)


class ControlWordsByTime(ControlWords):
    """Control counts from its own time on."""

    order = "event_time"
    hold = True


CONTROL = [Word("DROP"), Word("IGNORE")]
WORDS = [Word("Apache"), Word("DROP"), Word("Flink"), Word("IGNORE")]


def texts(rows: list[Word]) -> list[str]:
    return [each.text for each in rows]


def test_words_are_blocked_when_control_came_first() -> None:
    harness = ProcessHarness(ControlWords())
    harness.feed(CONTROL, "control")
    harness.feed(WORDS, "words")

    assert texts(harness.outputs()) == ["Apache", "Flink"]


def test_a_word_that_came_before_its_control_has_passed() -> None:
    harness = ProcessHarness(ControlWords())
    harness.feed(WORDS, "words")
    harness.feed(CONTROL, "control")
    harness.feed(WORDS, "words")

    assert texts(harness.outputs()) == [*texts(WORDS), "Apache", "Flink"]


def test_in_one_batch_control_wins() -> None:
    harness = ProcessHarness(ControlWords())
    harness.feed_together({"words": WORDS, "control": CONTROL})

    assert texts(harness.outputs()) == ["Apache", "Flink"]


def test_at_one_time_control_wins() -> None:
    harness = ProcessHarness(ControlWordsByTime())
    harness.feed_together({"words": [Word("x", 4), Word("x", 5)], "control": [Word("x", 5)]})
    harness.end_of_input()

    assert harness.outputs() == [Word("x", 4)]


arrivals = st.lists(
    st.builds(
        InputEvent,
        st.builds(Word, st.sampled_from(["DROP", "Flink"]), st.integers(0, 20)),
        st.sampled_from(["control", "words"]),
    ),
    min_size=1,
    max_size=9,
)


@given(arrivals)
@settings(max_examples=60)
def test_by_time_what_passes_does_not_depend_on_how_arrivals_are_cut(
    story: list[InputEvent],
) -> None:
    ran = split_invariant(ControlWordsByTime, story, delay=timedelta(milliseconds=30))

    blocked_at: dict[str, int] = {}
    for each in story:
        if each.input == "control":
            known = blocked_at.get(each.event.text, each.event.at)
            blocked_at[each.event.text] = min(known, each.event.at)
    expected = [
        each.event
        for each in story
        if each.input == "words" and each.event.at < blocked_at.get(each.event.text, 99)
    ]
    assert_rows_equal(ran.outputs.main, expected)
