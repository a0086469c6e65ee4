"""P21: words that a control stream names are blocked from then on."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
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


@pytest.mark.parametrize(
    ("batches", "passed"),
    [
        ([{"control": CONTROL}, {"words": WORDS}], ["Apache", "Flink"]),
        (
            [{"words": WORDS}, {"control": CONTROL}, {"words": WORDS}],
            [*texts(WORDS), "Apache", "Flink"],
        ),
        ([{"words": WORDS, "control": CONTROL}], ["Apache", "Flink"]),
    ],
    ids=["control first", "a word that came before has passed", "in one batch control wins"],
)
def test_words_are_blocked_from_their_control_on(
    batches: list[dict[str, list[Word]]], passed: list[str]
) -> None:
    harness = ProcessHarness(ControlWords())
    for batch in batches:
        harness.feed_together(batch)

    assert texts(harness.outputs()) == passed


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
