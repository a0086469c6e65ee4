"""Dead letters given to the process again: by its present code and state, and once."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest
from pyspark.sql import SparkSession

from rivermark.process import Context
from rivermark.runtime.dead_letters import letters_of, replay
from rivermark.settings import Settings
from tests.spark.engine.sensors import FOLDER, READINGS, TEN, reading, rows, run
from tests.spark.landing import Landing
from tests.spark.process.rules import JUMPS, WATCHED, Jump, Reading, Watched, watched
from tests.spark.process.test_modes import DAY

pytestmark = pytest.mark.spark


class Mended(Watched):
    """The rule after its author saw the poisoned reading."""

    def on_event(self, event: Reading, ctx: Context[Jump]) -> None:
        super().on_event(msgspec.structs.replace(event, note=None), ctx)


@pytest.mark.long
def test_a_dead_letter_is_replayed_once_and_waits_again_where_it_fails_again(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    lake, mended = settings.lake(), watched(Mended)
    landing.put(f"{FOLDER}/1.json", reading(60, "s9", 90, note="poison"))
    landing.put(f"{FOLDER}/2.json", reading(2 * DAY - 5, "s9", 20), reading(2 * DAY + 1, "end"))
    run(spark, settings, READINGS, WATCHED)
    (letter,) = letters_of(lake, WATCHED)
    assert (letter.input, letter.key, letter.failures, letter.waiting) == ("events", '"s9"', 1, 1)
    assert letter.errors[0][:2] == ("ValueError", "met a poisoned reading")

    assert [each.id for each in replay(lake, WATCHED, [letter.id])] == [letter.id]
    assert replay(lake, WATCHED, None) == []
    run(spark, settings, WATCHED)
    (failed,) = letters_of(lake, WATCHED)
    assert (failed.id, failed.failures, failed.waiting) == (letter.id, 2, 1)

    replay(lake, mended, None)
    done = run(spark, settings, mended)["test/watched"]

    assert [each.waiting for each in letters_of(lake, mended)] == [0]
    assert replay(lake, mended, None) == []
    # The jump, and the silence that followed it: its end is past already.
    assert done.rows_out == 2
    # It met the state that its key has now.
    assert [tuple(r) for r in rows(spark, settings, JUMPS, "sensor", "by")] == [("s9", Decimal(70))]
    assert letter.event_time is not None
    assert (letter.event_time - TEN).total_seconds() == 3600
