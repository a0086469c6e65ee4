"""The plan for streams downstream, and which of their days are closed."""

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from rivermark.backfill import plan as module
from rivermark.backfill.affected_days import Changed, DaysByStream
from rivermark.backfill.plan import StartedStream, Step, closed_through, plan
from rivermark.settings import Settings
from tests.unit.backfill.conftest import DAY, NEXT_DAY, TIPS
from tests.unit.backfill.test_follow_ups import HOURLY, LOCAL, SOURCE, reading

BARE = replace(HOURLY, name="test/bare", writes=replace(TIPS, name="test/bare", days=None))
REFRESHED = reading("test/refreshed", SOURCE, kind="refresh")
STARTED = [StartedStream(s, DAY) for s in (HOURLY, BARE, REFRESHED, LOCAL)]
CHANGED = {"test/source": Changed.whole_days(SOURCE.tables[0], [DAY, NEXT_DAY])}
BOTH, FIRST, SECOND = frozenset({DAY, NEXT_DAY}), frozenset({DAY}), frozenset({NEXT_DAY})


@pytest.mark.parametrize(
    ("changed", "pending", "refresh", "steps"),
    [
        ({}, {}, False, []),
        (
            CHANGED,
            {},
            False,
            [
                Step(HOURLY, "recompute", FIRST, SECOND),
                Step(BARE, "keeps its rows"),
                Step(REFRESHED, "refreshes itself"),
            ],
        ),
        (
            CHANGED,
            {},
            True,
            [
                Step(HOURLY, "recompute", FIRST, SECOND),
                Step(BARE, "keeps its rows"),
                Step(REFRESHED, "recompute", FIRST, SECOND),
            ],
        ),
        ({}, {"test/local": {DAY}}, False, [Step(LOCAL, "recompute", FIRST)]),
        ({}, {"test/refreshed": {DAY}}, False, [Step(REFRESHED, "recompute", FIRST)]),
        ({}, {"test/removed": {DAY}}, False, []),
    ],
)
def test_a_plan_names_streams_that_read_changed_tables_or_have_pending_days(
    changed: dict[str, Changed], pending: DaysByStream, refresh: bool, steps: list[Step]
) -> None:
    assert plan(STARTED, changed, pending, refresh=refresh) == steps


def test_only_days_that_the_watermark_has_passed_are_closed(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    evening = datetime(2024, 3, 2, 18, tzinfo=UTC)
    monkeypatch.setattr(module, "last_reached", lambda *_: evening)
    last = closed_through(settings.lake(), HOURLY)

    assert StartedStream(HOURLY, last).closed(BOTH) == FIRST
    assert closed_through(settings.lake(), REFRESHED) == date.max
    monkeypatch.setattr(module, "last_reached", lambda *_: None)
    last = closed_through(settings.lake(), HOURLY)
    assert StartedStream(HOURLY, last).closed(BOTH) == frozenset()
