"""P20: the first event of each key passes; its duplicates do not, within a horizon."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import msgspec
import pyarrow as pa
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StringType, StructField, StructType

from rivermark import Table
from rivermark.lake.schema import create_table
from rivermark.monitor.checks.row_checks import rows_unique
from rivermark.process import TTL, Context, KeyedProcess, SideOutput, ValueState
from rivermark.settings import Settings
from rivermark.testing import ProcessHarness, split_invariant
from tests.unit.process.pipelines.times import HOUR, MINUTE, NOON, SECOND, accepted


class Event(msgspec.Struct, frozen=True):
    key: str
    at: int
    number: int = 0


class FirstOfEachKey(KeyedProcess[Event, Event]):
    """Keeps a mark per key for an hour after its first event.

    'First' is first to arrive, so a duplicate is a duplicate though its time differs; within a
    batch it is the one with the smallest time.
    """

    key = "key"
    time = "at"
    order = "event_time"
    duplicates = SideOutput("duplicates", Event)

    seen: ValueState[bool] = ValueState(ttl=TTL(timedelta(hours=1)))

    def on_event(self, event: Event, ctx: Context[Event]) -> None:
        if self.seen.value:
            ctx.output(self.duplicates, event)
            ctx.count("duplicates")
            return
        self.seen.value = True
        ctx.emit(event)


class EarliestOfEachKey(FirstOfEachKey):
    """First in event time, whatever the batches; the hour begins with each event that passes."""

    hold = True


def story(keys: str) -> list[Event]:
    return [Event(key, NOON + n * SECOND, n) for n, key in enumerate(keys.split())]


def test_the_first_event_of_each_key_passes() -> None:
    harness = ProcessHarness(FirstOfEachKey())
    for each in story("a b a c b"):
        harness.feed(each)

    assert [each.key for each in harness.outputs()] == ["a", "b", "c"]
    assert [each.number for each in harness.side("duplicates")] == [2, 4]
    assert harness.counters() == {"duplicates": 2}


def test_within_a_batch_the_smallest_time_is_first() -> None:
    harness = ProcessHarness(FirstOfEachKey())
    harness.feed([Event("a", NOON + 2, 1), Event("a", NOON + 1, 2), Event("a", NOON + 1, 3)])

    assert [each.number for each in harness.outputs()] == [2]


events = st.lists(
    st.builds(
        Event,
        st.sampled_from("abc"),
        st.integers(0, 36).map(lambda n: NOON + n * 5 * MINUTE),
        st.integers(0, 99),
    ),
    min_size=1,
    max_size=9,
)


@given(events)
def test_in_event_time_what_passes_does_not_depend_on_how_arrivals_are_cut(
    arrived: list[Event],
) -> None:
    ran = split_invariant(EarliestOfEachKey, arrived, delay=timedelta(hours=1))

    passed = ran.outputs.main
    assert len(passed) + len(ran.outputs.sides["duplicates"]) + len(ran.late) == len(arrived)
    assert passed == first_of_each(accepted(arrived, ran.late))
    assert ran.state is None


def first_of_each(story: list[Event]) -> list[Event]:
    """Each event with no passed one of its key less than an hour before it, in order of time."""
    passed: list[Event] = []
    for each in sorted(story, key=lambda each: each.at):
        if not any(one.key == each.key and each.at - one.at < HOUR for one in passed):
            passed.append(each)
    return passed


def test_a_duplicate_that_comes_after_the_horizon_passes_and_the_check_of_the_table_counts_it(
    tmp_path: Path,
) -> None:
    harness = ProcessHarness(FirstOfEachKey())
    for number, at in enumerate((NOON, NOON + 30 * MINUTE, NOON + 3 * HOUR, NOON + 3 * HOUR + 1)):
        harness.feed(Event("a", at, number), watermark=at - MINUTE)
    harness.feed(Event("b", NOON + 3 * HOUR))
    passed = harness.outputs()
    assert [(each.key, each.number) for each in passed] == [("a", 0), ("a", 2), ("b", 0)]

    deployed = Settings(home=tmp_path)
    lake = deployed.lake()
    create_table(lake, FIRST)
    rows = pa.table({"key": [e.key for e in passed], "number": [e.number for e in passed]})
    write_deltalake(lake.path(FIRST), rows, mode="append")
    answer = rows_unique(deployed, FIRST)

    assert not answer.passed
    assert answer.numbers == {"rows": 3, "rows_surplus": 1}
    assert answer.observed == "1 keys of (key) more than once among 3 rows"


FIRST = Table(
    name="test/first",
    schema=StructType([StructField("key", StringType()), StructField("number", LongType())]),
    description="The first event of each key; one that comes after the horizon is told by `keys`.",
    keys=("key",),
)
