"""Dead letters given to the process again: by its present code and state, and once."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest
from pyspark.sql import SparkSession

from rivermark.process import Context
from rivermark.runtime.checkpoint.dead_letters import letters_of, replay
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, READINGS, TEN, reading, rows, run
from tests.spark.process.rules import JUMPS, SILENCES, Jump, Reading, Watched, watched
from tests.spark.process.test_modes import DAY

pytestmark = pytest.mark.spark


class Sleepy(Watched):
    """The rule with a fault in its timer."""

    def on_timer(self, at: int, ctx: Context[Jump]) -> None:
        if ctx.key == "s8":
            raise LookupError("s8 sleeps")
        super().on_timer(at, ctx)


class Mended(Watched):
    """The rule after its author saw the poisoned reading, and mended the timer."""

    def on_event(self, event: Reading, ctx: Context[Jump]) -> None:
        super().on_event(msgspec.structs.replace(event, note=None), ctx)


@pytest.mark.long
def test_dead_letters_are_replayed_once_and_wait_again_where_they_fail_again(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    lake, sleepy, mended = settings.lake(), watched(Sleepy), watched(Mended)
    landing.put(f"{FOLDER}/1.json", reading(60, "s9", 90, note="poison"), reading(60, "s8", 5))
    landing.put(f"{FOLDER}/2.json", reading(2 * DAY - 5, "s9", 20), reading(2 * DAY + 1, "end"))
    run(spark, settings, READINGS, sleepy)
    letter, timer = letters_of(lake, sleepy)
    assert (letter.input, letter.key, letter.failures, letter.waiting) == ("events", '"s9"', 1, 1)
    assert letter.errors[0][:2] == ("ValueError", "met a poisoned reading")
    assert (timer.input, timer.key, timer.timer, timer.waiting) == (None, '"s8"', "event", 1)

    assert {each.id for each in replay(lake, sleepy, None)} == {letter.id, timer.id}
    assert replay(lake, sleepy, None) == []
    run(spark, settings, sleepy)
    failed, again = letters_of(lake, sleepy)
    assert (failed.id, failed.failures, failed.waiting) == (letter.id, 2, 1)
    assert (again.id, again.failures, again.waiting) == (timer.id, 2, 1)

    replay(lake, mended, None)
    done = run(spark, settings, mended)["test/watched"]

    assert [each.waiting for each in letters_of(lake, mended)] == [0, 0]
    assert replay(lake, mended, None) == []
    # The jump, the silence that followed it (its end is past already), and that of the timer.
    assert done.rows_out == 3
    # It met the state that its key has now.
    assert [tuple(r) for r in rows(spark, settings, JUMPS, "sensor", "by")] == [("s9", Decimal(70))]
    silent = {tuple(r) for r in rows(spark, settings, SILENCES, "sensor", "last")}
    assert ("s8", Decimal(5)) in silent
    assert letter.event_time is not None
    assert (letter.event_time - TEN).total_seconds() == 3600
