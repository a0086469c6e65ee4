"""A process function that is killed, or changed, goes on from the state that it had, or says no."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import msgspec
import pytest
from pyspark.sql import SparkSession

from rivermark.cli.state import as_plain
from rivermark.model.errors import CheckpointIncompatible, StreamFailed
from rivermark.process import Context, KeyedProcess, SideOutput, ValueState
from rivermark.runtime.checkpoint.state_reader import state_of_stream
from rivermark.settings import Settings
from tests.spark.helpers.crashes import crash_once, forget_last_commit
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.random_files import files_at_random
from tests.spark.helpers.sensors import FOLDER, READINGS, TEN, admit, reading, run
from tests.spark.process.rules import (
    JUMPS,
    MILLIS,
    SILENCE,
    SILENCES,
    WATCHED,
    Jump,
    Reading,
    Silent,
    Watched,
    watched,
)
from tests.spark.process.test_modes import DAY, by_hand, land, written

pytestmark = pytest.mark.spark


class Steps(msgspec.Struct, frozen=True):
    """A state that came later."""

    count: int = 0


class WatchedWithCount(Watched):
    """The rule with another state beside the old one."""

    steps: ValueState[Steps]

    def on_event(self, event: Reading, ctx: Context[Jump]) -> None:
        before = self.steps.value or Steps()
        self.steps.value = Steps(before.count + 1)
        super().on_event(event, ctx)


class Forgetful(KeyedProcess[Reading, Jump]):
    """The rule with its state under another name and of another type: what was stored is lost."""

    key = "sensor"
    time = "at"
    order = "event_time"
    hold = True
    dead_letter = True
    silent = SideOutput("silent", Silent)
    newest: ValueState[Decimal]

    def on_event(self, event: Reading, ctx: Context[Jump]) -> None:
        self.newest.value = event.temperature


@pytest.mark.long
def test_a_kill_within_a_batch_and_between_two_leaves_rows_and_state_exact(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in files_at_random(13, 6)[:4]:
        file.land(landing)
    run(spark, settings, READINGS)
    with monkeypatch.context() as patch:
        crash_once(patch, JUMPS.name)
        with pytest.raises(StreamFailed, match="crashed at test/jumps"):
            run(spark, settings, WATCHED)
    run(spark, settings, WATCHED)
    forget_last_commit(settings, WATCHED)
    land(landing, seed=13)
    run(spark, settings, READINGS, WATCHED)

    jumps, silences = by_hand(spark, settings)
    found = written(spark, settings)
    assert jumps
    assert found[JUMPS.name] == jumps
    assert found[SILENCES.name] == silences

    view = state_of_stream(spark, settings.lake(), WATCHED, "end", 10)
    end = TEN + timedelta(minutes=2 * DAY)
    (only,) = view.keys
    assert only.states["last"]["at"] == int(end.timestamp() * 1000)
    assert only.timers == {"event": [end + SILENCE], "processing": []}
    assert [each["at"] for each in only.waiting] == [end + timedelta(minutes=1)]
    told = as_plain(view)
    assert (told["keys"], told["timers"], told["waiting"]) == (1, 1, 1)
    assert state_of_stream(spark, settings.lake(), WATCHED, "s1", 10).keys == []


@pytest.mark.long
def test_state_is_taken_over_where_it_fits_and_refused_at_the_start_where_not(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    landing.put(f"{FOLDER}/1.json", reading(0, "a", 10), reading(3, "a", 10), reading(6, "b", 5))
    run(spark, settings, READINGS, WATCHED)

    with pytest.raises(StreamFailed, match=r"state 'last'.* is no longer declared") as refused:
        run(spark, settings, watched(Forgetful))
    assert isinstance(refused.value.__cause__, CheckpointIncompatible)

    landing.put(f"{FOLDER}/2.json", reading(7, "a", 90), reading(30, "c", 1))
    run(spark, settings, READINGS, watched(WatchedWithCount))

    found = written(spark, settings)
    assert [(row[0], row[2]) for row in found[JUMPS.name]] == [("a", Decimal("80.000"))]
    assert [row[0] for row in found[SILENCES.name]] == ["a", "b"]
    assert SILENCE // timedelta(milliseconds=1) == MILLIS

    with pytest.raises(StreamFailed, match=r"state 'steps'.* is no longer declared"):
        run(spark, settings, WATCHED)


class Failing(Watched):
    """The rule without dead letters."""

    dead_letter = False


def test_an_error_in_user_code_names_stream_process_key_event_and_line(
    spark: SparkSession, settings: Settings
) -> None:
    admit(settings, reading(0, "s7", note="poison"), reading(9, "s7"))
    failing = watched(Failing, writes=WATCHED.outputs[:2])

    with pytest.raises(StreamFailed) as failed:
        run(spark, settings, failing)

    told = str(failed.value)
    assert "stream 'test/watched'" in told
    assert "process 'Failing' failed on key 's7'" in told
    assert "met a poisoned reading" in told
    assert "rules.py" in told
