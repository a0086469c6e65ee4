"""P10 (c): counts per ten seconds, corrected for five seconds more, the rest set aside."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given

from assets.readings.alerts.corrected import CorrectedCount, CorrectedCounts
from assets.readings.alerts.reading import Reading
from rivermark.testing import ProcessHarness, split_invariant
from tests.oracles import alerts as oracle
from tests.unit.assets.readings.alerts.stories import SECOND, plain, reading, readings

DELAY = 5 * SECOND
GOLDEN = [1, 4, 12, 16, 3, 21, 5, 26]


def run(story: list[Reading], batch: int) -> ProcessHarness[Reading, CorrectedCount]:
    """So many readings a batch; the watermark after each at the largest time less the delay."""
    harness = ProcessHarness(CorrectedCounts())
    for start in range(0, len(story), batch):
        harness.feed(story[start : start + batch])
        newest = max(each.event_time for each in story[: start + batch])
        harness.advance_watermark(newest - DELAY)
    harness.end_of_input()
    assert harness.is_empty()
    return harness


def test_a_late_reading_corrects_its_count_and_a_later_one_goes_aside() -> None:
    harness = run([reading(second) for second in GOLDEN], batch=1)

    found = [(e.window_end // SECOND, e.readings, e.mark, e.revision) for e in harness.outputs()]
    assert found == [
        (10, 2, "first", 1),
        (10, 3, "update", 2),
        (20, 2, "first", 1),
        (30, 2, "first", 1),
    ]
    assert [each.event_time // SECOND for each in harness.side("readings_too_late")] == [5]


@given(readings(last_second=40))
def test_last_revisions_and_late_readings_are_all_readings_in_any_batches(
    story: list[Reading],
) -> None:
    for size in (1, 3, len(story)):
        harness = run(story, size)
        too_late = harness.side("readings_too_late")
        latest = {(each.sensor_id, each.window_end): each for each in harness.outputs()}
        # Of readings that look alike the last to come was late: of repeats the first one counts.
        backwards = plain(story)[::-1]
        for each in too_late:
            backwards.remove(plain([each])[0])
        kept = backwards[::-1]

        rows = sorted((*key, row.readings, row.total) for key, row in latest.items())
        assert rows == list(oracle.counts(kept, 10 * SECOND))
        for key, row in latest.items():
            revisions = [e for e in harness.outputs() if (e.sensor_id, e.window_end) == key]
            assert [each.revision for each in revisions] == list(range(1, row.revision + 1))
            assert [each.mark for each in revisions[1:]] == ["update"] * (row.revision - 1)
            assert revisions[0].mark == "first"


@given(readings(last_second=60))
def test_without_late_readings_any_cut_gives_the_counts_of_the_whole_story(
    story: list[Reading],
) -> None:
    ran = split_invariant(CorrectedCounts, story, delay=timedelta(seconds=61))

    rows = [(e.sensor_id, e.window_end, e.readings, e.total) for e in ran.outputs.main]
    assert sorted(rows) == list(oracle.counts(plain(story), 10 * SECOND))
    assert {each.mark for each in ran.outputs.main} == {"first"}
    assert ran.state is None
