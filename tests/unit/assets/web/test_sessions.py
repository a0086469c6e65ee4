"""Sessions per visitor, with a gap that depends on the device."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from assets.web.sessions import CorrectedSessions, Session, UserSessions, Visit
from rivermark.testing import ProcessHarness, split_invariant
from simulator.web.world import PageView, WebWorld
from tests.oracles import web as oracle

MINUTE = 60_000
NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)


def visit(minute: float, device: str = "desktop", action: str = "view", number: int = 0) -> Visit:
    at = round(minute * MINUTE)
    return Visit("ada", number or 1 + at, at, action, device)


def told(rows: list[Session]) -> list[tuple[float, float, int]]:
    return [(e.session_start / MINUTE, e.session_end / MINUTE, e.events) for e in rows]


def plain(story: list[Visit]) -> list[oracle.Seen]:
    return [(e.user_id, e.number, e.event_time, e.action, e.device) for e in story]


def test_a_session_ends_a_gap_after_its_last_event() -> None:
    harness = ProcessHarness(UserSessions())
    harness.feed([visit(minute) for minute in (0, 10, 35, 70)])

    assert told(harness.end_of_input()) == [(0, 65, 3), (70, 100, 1)]
    assert harness.is_empty()


def test_a_late_event_joins_two_sessions_and_takes_the_place_of_their_rows() -> None:
    harness = ProcessHarness(CorrectedSessions())
    harness.feed([visit(minute) for minute in (0, 10, 35, 70)])
    assert told(harness.advance_watermark(100 * MINUTE)) == [(0, 65, 3), (70, 100, 1)]

    assert told(harness.feed(visit(60))) == [(0, 100, 5)]
    assert told(harness.side("replaced_sessions")) == [(0, 65, 0), (70, 100, 0)]
    harness.end_of_input()
    assert harness.is_empty()


def test_events_exactly_a_gap_apart_are_one_session() -> None:
    harness = ProcessHarness(UserSessions())
    harness.feed([visit(0), visit(30), visit(60 + 1 / 60)])

    assert told(harness.end_of_input()) == [(0, 60, 2), (60 + 1 / 60, 90 + 1 / 60, 1)]


def test_on_a_phone_a_session_ends_sooner() -> None:
    harness = ProcessHarness(UserSessions())
    harness.feed([visit(0, "phone"), visit(11, "phone"), visit(12), visit(41, "phone")])

    assert told(harness.end_of_input()) == [(0, 10, 1), (11, 51, 3)]


def test_purchases_are_counted_and_repeats_are_not() -> None:
    harness = ProcessHarness(UserSessions())
    bought = visit(1, action="purchase")
    harness.feed([visit(0), bought, bought])

    [session] = harness.end_of_input()
    assert (session.events, session.purchases) == (2, 1)


visits = st.lists(
    st.builds(
        visit,
        st.integers(0, 40).map(lambda n: 5 * n),
        st.sampled_from(["phone", "desktop"]),
        st.sampled_from(["view", "purchase"]),
    ),
    min_size=1,
    max_size=9,
    unique_by=lambda each: each.number,
)


@given(visits)
def test_sessions_are_those_of_the_whole_story_however_arrivals_are_cut(story: list[Visit]) -> None:
    ran = split_invariant(UserSessions, story, delay=timedelta(hours=4))

    found = [
        (e.user_id, e.session_start, e.session_end, e.events, e.purchases) for e in ran.outputs.main
    ]
    assert sorted(found) == oracle.sessions(plain(story))
    assert ran.state is None


def test_corrected_sessions_end_as_those_of_all_events_that_came_in_time() -> None:
    views = list(WebWorld(users=20).page_views(NOON, timedelta(hours=3)))
    story = [as_visit(each) for each in views]
    came = story[1::2] + story[::2]  # every other event comes much later
    harness = ProcessHarness(CorrectedSessions())
    harness.feed(came[: len(story) // 2])
    harness.advance_watermark(max(each.event_time for each in came) - 50 * MINUTE)
    harness.feed(came[len(story) // 2 :])
    harness.end_of_input()

    assert harness.side("replaced_sessions")
    late = {(each.user_id, each.number) for each in harness.side("late_visits")}
    latest = {(e.user_id, e.session_start, e.session_end): e for e in harness.outputs()}
    for gone in harness.side("replaced_sessions"):
        latest.pop((gone.user_id, gone.session_start, gone.session_end), None)
    rows = [(*key, e.events, e.purchases) for key, e in latest.items()]
    kept = [each for each in story if (each.user_id, each.number) not in late]
    assert sorted(rows) == oracle.sessions(plain(kept))


def as_visit(view: PageView) -> Visit:
    at = round(view.event_time.timestamp() * 1_000)
    return Visit(view.user_id, view.number, at, view.action, view.device)


def test_the_world_has_sessions_of_both_kinds_and_is_the_same_each_time() -> None:
    views = list(WebWorld(users=20).page_views(NOON, timedelta(hours=3)))

    assert views == list(WebWorld(users=20).page_views(NOON, timedelta(hours=3)))
    assert views != list(WebWorld(users=20, seed=1).page_views(NOON, timedelta(hours=3)))
    assert views == sorted(views, key=lambda each: each.event_time)
    sessions = oracle.sessions(plain([as_visit(each) for each in views]))
    assert any(purchases for *_, purchases in sessions)
    assert len({visitor for visitor, *_ in sessions}) < len(sessions) < len(views)


def test_m031_an_event_costs_the_same_however_many_its_session_has() -> None:
    process = UserSessions()
    seen = process.update(None, Visit("bot", 0, 0, "click", "desktop"))
    for number in range(1, 1000):
        # In place: a copy for each event would cost the square of them.
        assert process.update(seen, Visit("bot", number % 500, number, "purchase", "d")) is seen
    assert (len(seen.numbers), len(seen.purchases)) == (500, 500)
    other = process.update(None, Visit("bot", 7, 0, "click", "desktop"))
    assert process.combine(other, seen) is seen
