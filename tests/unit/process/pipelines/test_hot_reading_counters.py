"""P9: hot readings counted per sensor and per shard of sensors."""

from __future__ import annotations

import zlib
from collections import Counter
from datetime import timedelta

import msgspec
from hypothesis import given

from rivermark.process import Context, KeyedProcess, MapState, ValueState
from rivermark.testing import ProcessHarness, split_invariant
from tests.unit.process.pipelines.sensors import Reading, reading, readings

SHARDS = 4
HOT = 80.0


class HotCount(msgspec.Struct, frozen=True):
    id: str
    of_sensor: int
    of_shard: int


def shard_of(event: Reading) -> int:
    """The same shard for a sensor on every machine and in every run."""
    return zlib.crc32(event.id.encode()) % SHARDS


class HotReadingCounters(KeyedProcess[Reading, HotCount]):
    """Keeps a count per sensor in its shard, and the shard's own. Both stay: sensors are few."""

    key = staticmethod(shard_of)
    time = "timestamp"

    sensors: MapState[str, int]
    shard: ValueState[int]

    def on_event(self, event: Reading, ctx: Context[HotCount]) -> None:
        if event.temperature <= HOT:
            return
        self.sensors[event.id] = self.sensors.get(event.id, 0) + 1
        self.shard.value = self.shard.get(0) + 1
        ctx.emit(HotCount(event.id, self.sensors[event.id], self.shard.get(0)))


def test_each_hot_reading_gives_both_counts() -> None:
    counters = ProcessHarness(HotReadingCounters())
    sensors = [f"sensor_{n}" for n in range(8)]
    counters.feed([reading(n, 81 if n % 3 else 80, sensors[n % 8]) for n in range(30)])

    per_sensor = Counter(sensors[n % 8] for n in range(30) if n % 3)
    assert {each.id: each.of_sensor for each in counters.outputs()} == per_sensor
    of_shards = [counters.state_of(shard)["shard"] or 0 for shard in range(SHARDS)]
    assert sum(of_shards) == len(counters.outputs()) == 20


@given(readings(coldest=75, hottest=85))
def test_counts_do_not_depend_on_how_arrivals_are_cut(story: list[Reading]) -> None:
    ran = split_invariant(HotReadingCounters, story, delay=timedelta(hours=1), in_order=True)

    hot = Counter(each.id for each in story if each.temperature > HOT)
    latest = {each.id: each.of_sensor for each in ran.outputs.main}
    assert latest == hot
    for place, row in enumerate(ran.outputs.main):
        shard = shard_of(reading(0, id=row.id))
        same = [e for e in ran.outputs.main[: place + 1] if shard_of(reading(0, id=e.id)) == shard]
        assert row.of_shard == len(same)
