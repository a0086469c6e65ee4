"""Which sequences of events match, told by letters: each event is one letter, one second apart."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar

import msgspec
import pytest

from rivermark.model.errors import DeclarationError
from rivermark.process import Context, ProcessError, SideOutput
from rivermark.process.patterns import Match, Pattern, PatternProcess
from rivermark.testing import ProcessHarness

SECOND = 1_000
A_MINUTE = timedelta(minutes=1)


class Letter(msgspec.Struct, frozen=True):
    key: str
    at: int
    letter: str


class Word(msgspec.Struct, frozen=True):
    text: str


class Finds(PatternProcess[Letter, Word]):
    key = "key"
    time = "at"
    overdue = SideOutput("overdue", Word)

    def on_match(self, match: Match[Letter], ctx: Context[Word]) -> None:
        ctx.emit(Word("".join(each.letter for each in match.events())))

    def on_timeout(self, match: Match[Letter], ctx: Context[Word]) -> None:
        ctx.output(self.overdue, Word("".join(each.letter for each in match.events())))


def is_(letter: str) -> Callable[[Letter, Match[Letter]], bool]:
    return lambda event, earlier: event.letter.startswith(letter)


def letters(text: str) -> list[Letter]:
    return [Letter("k", at * SECOND, each) for at, each in enumerate(text.split())]


def finding(pattern: Pattern, text: str, after_match: Any = "keep") -> ProcessHarness[Letter, Word]:
    made = type("Made", (Finds,), {"pattern": pattern, "after_match": after_match})
    harness: ProcessHarness[Letter, Word] = ProcessHarness(made())
    harness.feed(letters(text))
    harness.end_of_input()
    assert harness.is_empty()
    return harness


def words(pattern: Pattern, text: str, after_match: Any = "keep") -> list[str]:
    return [each.text for each in finding(pattern, text, after_match).outputs()]


A_THEN_B = Pattern.begin("a", is_("a")).followed_by("b", is_("b")).within(A_MINUTE)
A_NEXT_B = Pattern.begin("a", is_("a")).next("b", is_("b"))
A_ANY_B = Pattern.begin("a", is_("a")).followed_by_any("b", is_("b")).within(A_MINUTE)
A_NOT_C_B = (
    Pattern.begin("a", is_("a"))
    .not_followed_by(is_("c"))
    .followed_by("b", is_("b"))
    .within(A_MINUTE)
)
A_NOT_NEXT_C_B = (
    Pattern.begin("a", is_("a")).not_next(is_("c")).followed_by("b", is_("b")).within(A_MINUTE)
)
TWO_AS_B = Pattern.begin("a", is_("a")).times(2).followed_by("b", is_("b")).within(A_MINUTE)
TWO_AS_IN_A_ROW = (
    Pattern.begin("a", is_("a")).times(2).consecutive().followed_by("b", is_("b")).within(A_MINUTE)
)
SOME_AS_B = Pattern.begin("a", is_("a")).one_or_more().followed_by("b", is_("b")).within(A_MINUTE)
A_MAYBE_C_B = (
    Pattern.begin("a", is_("a"))
    .followed_by("c", is_("c"))
    .optional()
    .followed_by("b", is_("b"))
    .within(A_MINUTE)
)
A_MAYBE_C_NEXT_B = (
    Pattern.begin("a", is_("a")).next("c", is_("c")).optional().next("b", is_("b")).within(A_MINUTE)
)
AS_TO_THE_END = (
    Pattern.begin("x", is_("x")).followed_by("a", is_("a")).one_or_more().within(A_MINUTE)
)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (A_THEN_B, "a b", ["ab"]),
        (A_THEN_B, "b a", []),
        (A_THEN_B, "a x x b b", ["ab"]),
        (A_THEN_B, "a1 a2 b", ["a1b", "a2b"]),
        (A_NEXT_B, "a b", ["ab"]),
        (A_NEXT_B, "a x b", []),
        (A_NEXT_B, "a1 a2 b", ["a2b"]),
        (A_ANY_B, "a b1 x b2", ["ab1", "ab2"]),
        (A_NOT_C_B, "a x b", ["ab"]),
        (A_NOT_C_B, "a c b", []),
        (A_NOT_C_B, "a1 c a2 b", ["a2b"]),
        (A_NOT_NEXT_C_B, "a x c b", ["ab"]),
        (A_NOT_NEXT_C_B, "a c b", []),
        (TWO_AS_B, "a1 x a2 b", ["a1a2b"]),
        (TWO_AS_B, "a1 a2 a3 b", ["a1a2b", "a2a3b"]),
        (TWO_AS_B, "a b", []),
        (TWO_AS_IN_A_ROW, "a1 x a2 b", []),
        (TWO_AS_IN_A_ROW, "a1 a2 x b", ["a1a2b"]),
        (SOME_AS_B, "a1 a2 a3 b", ["a1a2a3b", "a2a3b", "a3b"]),
        (SOME_AS_B, "a1 x a2 b", ["a1a2b", "a2b"]),
        (A_MAYBE_C_B, "a c b", ["acb"]),
        (A_MAYBE_C_B, "a x b", ["ab"]),
        (A_MAYBE_C_NEXT_B, "a c b", ["acb"]),
        (A_MAYBE_C_NEXT_B, "a b", ["ab"]),
        (A_MAYBE_C_NEXT_B, "a x b", []),
        (AS_TO_THE_END, "x a1 a2", ["xa1", "xa1a2"]),
    ],
)
def test_a_pattern_finds_its_words(pattern: Pattern, text: str, found: list[str]) -> None:
    assert words(pattern, text) == found


def test_a_word_need_not_come_in_order_of_arrival() -> None:
    class Late(Finds):
        pattern = A_NEXT_B

    late = ProcessHarness(Late())
    for each in reversed(letters("a b x")):
        late.feed(each)
    late.end_of_input()

    assert late.outputs() == [Word("ab")]


def test_keys_have_words_of_their_own() -> None:
    class Keyed(Finds):
        pattern = A_NEXT_B

    keyed = ProcessHarness(Keyed())
    keyed.feed(
        [Letter("k", 1, "a1"), Letter("l", 2, "a2"), Letter("k", 3, "b1"), Letter("l", 4, "b2")]
    )
    keyed.end_of_input()

    assert keyed.outputs() == [Word("a1b1"), Word("a2b2")]


def test_exactly_the_time_of_the_pattern_still_counts_and_a_millisecond_more_does_not() -> None:
    for extra, found in ((0, [Word("ab")]), (1, [])):

        class Timed(Finds):
            pattern = A_THEN_B

        timed = ProcessHarness(Timed())
        timed.feed([Letter("k", 0, "a"), Letter("k", 60 * SECOND + extra, "b")])
        timed.end_of_input()
        assert timed.outputs() == found


def test_a_beginning_whose_time_is_over_goes_to_the_time_outs() -> None:
    harness = finding(A_THEN_B, "a1 a2 b a3")

    assert harness.side("overdue") == [Word("a3")]


def test_the_absence_of_an_event_is_a_match_when_the_time_is_over() -> None:
    alone = Pattern.begin("a", is_("a")).not_followed_by(is_("b")).within(timedelta(seconds=2))

    assert words(alone, "a1 x b a2 x x b") == ["a2"]


def test_a_condition_may_look_at_what_was_matched_before() -> None:
    def double(event: Letter, earlier: Match[Letter]) -> bool:
        return event.letter == earlier.one("a").letter * 2

    pattern = Pattern.begin("a", is_("a")).followed_by("twice", double).within(A_MINUTE)

    assert words(pattern, "a1 a2 a1a1") == ["a1a1a1"]


@pytest.mark.parametrize(
    ("after_match", "found"),
    [
        ("keep", ["a1b1", "a2b1", "a1b2", "a2b2"]),
        ("skip_to_next", ["a1b1", "a2b1"]),
        ("skip_past_last", ["a1b1"]),
    ],
)
def test_after_a_match_the_other_beginnings_are_kept_or_dropped(
    after_match: str, found: list[str]
) -> None:
    assert words(A_ANY_B, "a1 a2 b1 b2", after_match) == found


def test_a_match_knows_its_times_and_steps() -> None:
    seen: list[Match[Letter]] = []

    class Looks(Finds):
        pattern = A_MAYBE_C_B

        def on_match(self, match: Match[Letter], ctx: Context[Word]) -> None:
            seen.append(match)

    looks = ProcessHarness(Looks())
    looks.feed(letters("x a b"))
    looks.end_of_input()

    (match,) = seen
    assert (match.start, match.end) == (SECOND, 2 * SECOND)
    assert dict(match) == {"a": letters("x a")[1:], "c": [], "b": letters("x a b")[2:]}
    with pytest.raises(LookupError, match="step 'c' has no event"):
        match.one("c")
    with pytest.raises(KeyError, match="no step 'd'; its steps: a, c, b"):
        match["d"]


def test_too_many_beginnings_are_an_error_with_the_key() -> None:
    class Many(Finds):
        pattern = A_ANY_B
        most_beginnings: ClassVar[int] = 3

    many = ProcessHarness(Many())
    many.feed(letters("a a a a"))
    with pytest.raises(ProcessError, match=r"key 'k'.*4 beginnings of matches are waiting"):
        many.end_of_input()


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (Pattern.begin("a", is_("a")).followed_by("b", is_("b")), "kept without limit"),
        (Pattern.begin("a", is_("a")).one_or_more(), "kept without limit"),
        (Pattern.begin("a", is_("a")).not_followed_by(is_("b")), r"only with within\(...\)"),
        (A_NEXT_B.not_next(is_("c")).within(A_MINUTE), "not_next needs a step after it"),
        (Pattern.begin("a", is_("a")).next("a", is_("b")), "have one name"),
    ],
)
def test_a_pattern_that_cannot_work_is_refused(wrong: Pattern, reason: str) -> None:
    with pytest.raises(DeclarationError, match=reason):
        type("Wrong", (Finds,), {"pattern": wrong})


def test_a_pattern_refuses_counts_that_make_no_sense() -> None:
    with pytest.raises(DeclarationError, match="occurs at least once"):
        Pattern.begin("a", is_("a")).times(0)
    with pytest.raises(DeclarationError, match="first step of a pattern cannot be optional"):
        Pattern.begin("a", is_("a")).optional()
    with pytest.raises(DeclarationError, match="not of an absence"):
        Pattern.begin("a", is_("a")).not_next(is_("b")).times(2)
