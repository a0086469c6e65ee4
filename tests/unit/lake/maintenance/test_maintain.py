"""Streams, a backfill and upkeep at once: nobody fails, and no row is lost or doubled."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from deltalake import DeltaTable

from rivermark.lake.lake import Lake
from rivermark.lake.locks import days_lock
from rivermark.lake.maintenance.maintain import BUSY, maintain
from rivermark.lake.replace import replace_days
from tests.unit.lake.conftest import NOON, RIDES, ids, rides
from tests.unit.lake.maintenance.conftest import writer

BATCHES = 40


def test_two_streams_append_while_upkeep_runs_again_and_again(lake: Lake) -> None:
    hasty = Lake(lake.root, retention=timedelta(seconds=1))

    def append(stream: int) -> None:
        ours = writer(lake, f"test/stream_{'ab'[stream]}")
        for batch in range(BATCHES):
            assert ours.append_once(rides(stream * BATCHES + batch), batch)

    def keep(until: list[Future[None]]) -> int:
        joined = 0
        while not all(f.done() for f in until):
            joined += maintain(hasty, RIDES, now=datetime.now(UTC), run_id="u").joined_files
        return joined

    with ThreadPoolExecutor(3) as threads:
        streams = [threads.submit(append, n) for n in range(2)]
        upkeep = threads.submit(keep, streams)
        assert upkeep.result() >= 8
        for stream in streams:
            stream.result()

    assert ids(lake) == list(range(2 * BATCHES))
    for n in "ab":
        assert writer(lake, f"test/stream_{n}").has(BATCHES - 1)


def test_a_backfill_and_upkeep_take_turns(lake: Lake) -> None:
    ours = writer(lake)
    ours.append_once(rides(*range(10)), 0)
    notes: list[str] = []

    def backfill() -> None:
        for _ in range(10):
            with days_lock(lake.path(RIDES)):
                replace_days(lake, RIDES, rides(*range(10)), [NOON.date()], {"recompute": True})

    def keep(until: Future[None]) -> None:
        while not until.done():
            done = maintain(lake, RIDES, now=datetime.now(UTC), run_id="u")
            notes.extend(done.notes)

    with ThreadPoolExecutor(2) as threads:
        filling = threads.submit(backfill)
        threads.submit(keep, filling).result()
        filling.result()

    assert set(notes) <= {BUSY}
    assert ids(lake) == list(range(10))
    assert DeltaTable(lake.path(RIDES)).version() >= 11
