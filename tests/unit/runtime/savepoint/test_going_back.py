"""Savepoints without an engine: tables by delta-rs, checkpoints as Spark writes them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from rivermark.backfill.maintenance import upkeep
from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.model.errors import CheckpointIncompatible, RivermarkError, StreamAlreadyRunning
from rivermark.model.stream import Output, Stream
from rivermark.model.topology import Topology
from rivermark.monitor.savepoints import verify
from rivermark.runtime.checkpoint.closed_days import ClosedDays
from rivermark.runtime.checkpoint.generation import read_generation
from rivermark.runtime.savepoint.fork import drop, fork, forked, forks, promote, stands_on
from rivermark.runtime.savepoint.manifest import Manifest
from rivermark.runtime.savepoint.resume import Order, resume
from rivermark.runtime.savepoint.store import delete, savepoint, savepoints, stop_and_take, take
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.runtime.supervision.lease import Lease
from rivermark.settings import Settings
from rivermark.sinks import FileSink
from tests.kills import Killed
from tests.unit.cli.conftest import BUSIEST, HOURLY, NOON, ORDERS, SHOP
from tests.unit.runtime.checkpoints import read
from tests.unit.runtime.savepoint.test_manifest import put


def order(settings: Settings, topology: Topology = SHOP, **more: Any) -> Order:
    return Order(settings=settings, topology=topology, run_id="r", **more)


def batch(settings: Settings, stream: Stream, number: int, *, done: bool = True) -> None:
    """A batch of the stream: a row of its number, read from a new row of its input."""
    lake = settings.lake()
    source = ORDERS.admitted if stream is not BUSIEST else HOURLY.tables[0]
    if stream is not BUSIEST:
        put(settings, source, {"order_id": number, "at": NOON})
    row = {"window_end": NOON + timedelta(hours=number), "orders": number}
    put(settings, stream.tables[0], row, stream=stream.name, generation=0, batch=number)
    version = DeltaTable(lake.path(source)).version() + 1
    read(lake, stream, number, version, done=done)
    Path(lake.checkpoint(stream.name, 0), "metadata").write_text(
        '{"id": "00000000-0000-0000-0000-000000000000"}'
    )


def numbers(settings: Settings, table: str = "shop/hourly") -> list[int]:
    rows = DeltaTable(settings.lake().path(table)).to_pyarrow_table(columns=["orders"])
    return sorted(rows["orders"].to_pylist())


def ran(settings: Settings, *batches: int) -> None:
    for number in batches:
        batch(settings, HOURLY, number)


def at_each_step(act: Callable[[Callable[[str], None]], object]) -> list[str]:
    """Let an action be killed before each of its steps in turn, then finish it; its steps."""
    seen: list[str] = []
    while True:

        def on_step(step: str) -> None:
            if step not in seen:
                seen.append(step)
                raise Killed

        try:
            act(on_step)
        except Killed:
            continue
        return seen


def test_a_savepoint_is_taken_behind_the_last_finished_batch_whatever_is_killed(
    settings: Settings,
) -> None:
    ran(settings, 0, 1)
    batch(settings, HOURLY, 2, done=False)

    steps = at_each_step(lambda step: take(settings, HOURLY, on_step=step))

    (made,) = savepoints(settings.lake(), HOURLY.name)
    inner = Lake(f"{settings.lake().root}/savepoints/{HOURLY.name}/{made.id}")
    kept = DeltaTable(inner.path("shop/hourly")).to_pyarrow_table(columns=["orders"])
    assert sorted(kept["orders"].to_pylist()) == [0, 1]
    assert made.batch == 1
    assert len(steps) == 5
    assert verify(settings, HOURLY, made.id) == []


def test_going_back_is_finished_from_wherever_it_was_killed(settings: Settings) -> None:
    ran(settings, 0, 1)
    made = take(settings, HOURLY)
    ran(settings, 2, 3)

    steps = at_each_step(lambda step: resume(order(settings, on_step=step), HOURLY, made.id))

    assert numbers(settings) == [0, 1]
    commits = Path(settings.lake().checkpoint(HOURLY.name, 0), "commits")
    assert sorted(path.name for path in commits.iterdir()) == ["0", "1"]
    assert len(steps) > 6
    ran(settings, 2)
    assert numbers(settings) == [0, 1, 2]


def test_by_half_it_neither_starts_nor_goes_back_elsewhere(settings: Settings) -> None:
    ran(settings, 0)
    first = take(settings, HOURLY)
    ran(settings, 1)
    second = take(settings, HOURLY)

    def kill(step: str) -> None:
        if step.startswith("moving"):
            raise Killed

    with pytest.raises(Killed):
        resume(order(settings, on_step=kill), HOURLY, first.id)
    with pytest.raises(CheckpointIncompatible, match=f"resume shop/hourly {first.id}"):
        read_generation(settings.lake(), HOURLY)
    with pytest.raises(RivermarkError, match="another one; finish"):
        resume(order(settings), HOURLY, second.id)
    resume(order(settings), HOURLY, first.id)
    assert numbers(settings) == [0]


def test_an_earlier_savepoint_and_then_a_later_one_of_the_life_that_was_left(
    settings: Settings,
) -> None:
    ran(settings, 0)
    first = take(settings, HOURLY)
    ran(settings, 1, 2)
    later = take(settings, HOURLY)
    resume(order(settings), HOURLY, first.id)
    ran(settings, 1)

    resume(order(settings), HOURLY, later.id)

    assert numbers(settings) == [0, 1, 2]


def test_a_reader_that_has_read_further_is_refused_also_where_versions_have_grown_again(
    settings: Settings,
) -> None:
    ran(settings, 0)
    first = take(settings, HOURLY)
    ran(settings, 1)
    batch(settings, BUSIEST, 0)
    with pytest.raises(RivermarkError, match="'shop/busiest' has read rows"):
        resume(order(settings), HOURLY, first.id)
    other = take(settings, HOURLY)
    of_reader = take(settings, BUSIEST)

    resume(order(settings, reset_readers=True), HOURLY, first.id)
    ran(settings, 1)

    assert not settings.lake().exists("shop/busiest")
    with pytest.raises(RivermarkError, match="its input 'shop/hourly' went back"):
        resume(order(settings), BUSIEST, of_reader.id)
    batch(settings, BUSIEST, 0)
    with pytest.raises(RivermarkError, match="'shop/busiest' has read rows"):
        resume(order(settings), HOURLY, other.id)


def test_a_reader_that_has_read_no_further_goes_on(settings: Settings) -> None:
    ran(settings, 0)
    batch(settings, BUSIEST, 0)
    made = take(settings, HOURLY)
    ran(settings, 1)

    resume(order(settings), HOURLY, made.id)

    assert numbers(settings, "shop/busiest") == [0]


def test_nothing_goes_back_while_it_or_a_reader_runs(settings: Settings) -> None:
    ran(settings, 0)
    made = take(settings, HOURLY)
    for name in (HOURLY.name, BUSIEST.name):
        with Lease(settings.state, name).acquire("other"), pytest.raises(StreamAlreadyRunning):
            resume(order(settings), HOURLY, made.id)


def test_rows_of_another_writer_are_not_lost_in_silence(settings: Settings) -> None:
    ran(settings, 0)
    made = take(settings, HOURLY)
    row = {"window_end": NOON, "orders": 9}
    put(settings, HOURLY.tables[0], row, reprocessing="20260101-000000-aaaa", run="x")

    with pytest.raises(RivermarkError, match="rows of another writer"):
        resume(order(settings), HOURLY, made.id)
    assert numbers(settings) == [0, 9]


def test_what_left_the_lake_cannot_go_back(settings: Settings, tmp_path: Path) -> None:
    sink = FileSink(folder=str(tmp_path / "out"))
    sends = replace(HOURLY, writes=(Output(HOURLY.tables[0], sinks=(sink,)),))
    ran(settings, 0)
    made = take(settings, sends)
    topology = Topology([ORDERS, sends, BUSIEST])
    resume(order(settings, topology=topology), sends, made.id)
    ran(settings, 1)

    with pytest.raises(RivermarkError, match="cannot be taken back"):
        resume(order(settings, topology=topology), sends, made.id)
    fork(order(settings, topology=topology), sends, "twin", made.id)
    with pytest.raises(RivermarkError, match="compared and dropped only"):
        promote(order(settings, topology=topology), "twin")


def test_an_input_that_was_made_again_is_named(settings: Settings) -> None:
    ran(settings, 0)
    made = take(settings, HOURLY)
    shutil.rmtree(filesystem(settings.lake().path(ORDERS.admitted))[1])
    create_table(settings.lake(), ORDERS.admitted)

    assert any("was made again" in fault for fault in verify(settings, HOURLY, made.id))


def test_a_copied_home_goes_on_from_its_savepoint(settings: Settings, tmp_path: Path) -> None:
    ran(settings, 0, 1)
    made = take(settings, HOURLY)
    ran(settings, 2)
    other = Settings(home=tmp_path / "elsewhere")
    shutil.copytree(settings.home, other.home)

    resume(order(other), HOURLY, made.id)

    assert (numbers(other), numbers(settings)) == ([0, 1], [0, 1, 2])


def test_a_lake_without_the_stream_gets_it_from_the_savepoint(
    settings: Settings, tmp_path: Path
) -> None:
    ran(settings, 0, 1)
    made = take(settings, HOURLY)
    other = Settings(home=tmp_path / "elsewhere")
    for part in ("tables/shop/orders", f"savepoints/{HOURLY.name}/{made.id}"):
        shutil.copytree(f"{settings.lake().root}/{part}", f"{other.lake().root}/{part}")

    resume(order(other), HOURLY, made.id)

    assert numbers(other) == [0, 1]


def test_stopping_pauses_the_group_and_a_failure_lets_it_run_again(settings: Settings) -> None:
    ran(settings, 0)
    desired = DesiredStore(settings.state)
    desired.set(HOURLY.group, "run", by="me", reason="")

    def fail(step: str) -> None:
        if step.startswith("keeping"):
            raise RivermarkError("no space")

    with pytest.raises(RivermarkError, match="no space"):
        stop_and_take(settings, HOURLY, run_id="r", by="me", on_step=fail)
    assert desired.get(HOURLY.group).state == "run"
    stop_and_take(settings, HOURLY, run_id="r", by="me")
    assert desired.get(HOURLY.group).state == "paused"


def test_a_fork_begins_with_the_rows_of_the_savepoint_and_takes_the_place_of_its_stream(
    settings: Settings,
) -> None:
    ran(settings, 0, 1)
    made = take(settings, HOURLY)
    ran(settings, 2)
    at_each_step(lambda step: fork(order(settings, on_step=step), HOURLY, "twin", made.id))
    twin = forked(HOURLY, "twin")
    batch(settings, replace(twin, reads=(ORDERS,)), 7)

    at_each_step(lambda step: promote(order(settings, on_step=step), "twin"))

    assert numbers(settings) == [0, 1, 7]
    assert not forks(settings.lake())
    assert not settings.lake().exists(twin.tables[0])


def test_a_fork_is_dropped_also_where_it_was_made_by_half(settings: Settings) -> None:
    ran(settings, 0)
    made = take(settings, HOURLY)

    def kill(step: str) -> None:
        if step == "writing it down":
            raise Killed

    with pytest.raises(Killed):
        fork(order(settings, on_step=kill), HOURLY, "twin", made.id)
    drop(order(settings), "twin")
    assert not settings.lake().exists("forks/twin/shop/hourly")
    with pytest.raises(RivermarkError, match="no fork is named 'twin'"):
        drop(order(settings), "twin")


def test_an_ingest_is_not_forked(settings: Settings) -> None:
    with pytest.raises(RivermarkError, match="replay-ingest shop/orders"):
        fork(order(settings), ORDERS, "twin", "latest")


def test_the_newest_and_those_in_use_stay(settings: Settings) -> None:
    ran(settings, 0)
    lake = settings.lake()
    first, second, third = (take(settings, HOURLY) for _ in range(3))
    fork(order(settings), HOURLY, "twin", first.id)

    with pytest.raises(RivermarkError, match="newest restore point"):
        delete(lake, HOURLY.name, third.id, stands_on(lake))
    with pytest.raises(RivermarkError, match="fork 'twin' stands on"):
        delete(lake, HOURLY.name, first.id, stands_on(lake))
    delete(lake, HOURLY.name, second.id, stands_on(lake))
    assert savepoint(lake, HOURLY.name, "latest").id == third.id
    old = datetime.now(UTC) + timedelta(days=30)
    upkeep(settings, SHOP, run_id="r", now=old)
    assert [each.id for each in savepoints(lake, HOURLY.name)] == [first.id]


def test_maintenance_takes_nothing_that_a_savepoint_needs(settings: Settings) -> None:
    soon = settings.model_copy(update={"promise_days": 1 / 86_400})
    ran(soon, 0, 1)
    made: Manifest = take(soon, HOURLY)
    ran(soon, 2, 3)

    later = datetime.now(UTC) + timedelta(days=2)
    for _ in range(2):
        upkeep(soon, SHOP, run_id="r", now=later)
    assert verify(soon, HOURLY, made.id) == []
    resume(order(soon), HOURLY, made.id)
    assert numbers(soon) == [0, 1]


def test_days_are_reported_again_from_those_of_the_savepoint_on(settings: Settings) -> None:
    ran(settings, 0)
    closed = ClosedDays(settings.lake(), settings.state)
    closed.go_back(HOURLY.name, NOON.date())
    made = take(settings, HOURLY)
    closed.go_back(HOURLY.name, NOON.date() + timedelta(days=3))

    resume(order(settings), HOURLY, made.id)

    assert closed.through(HOURLY.name) == NOON.date()


def test_an_input_is_joined_and_keeps_what_a_savepoint_has_not_read(settings: Settings) -> None:
    soon = settings.model_copy(update={"promise_days": 1 / 86_400})
    ran(soon, 0)
    made = take(soon, HOURLY)
    ran(soon, *range(1, 12))

    upkeep(soon, SHOP, run_id="r")
    kept = {k.table: k for k in upkeep(soon, SHOP, run_id="r", now=_in_days(2))}

    orders = DeltaTable(soon.lake().path(ORDERS.admitted))
    assert len(orders.file_uris()) < 3
    assert any(made.id in note for note in kept["shop/orders"].notes)
    folder = Path(filesystem(soon.lake().path(ORDERS.admitted))[1])
    assert len([*folder.glob("*.parquet")]) > 11
    assert not [*upkeep(soon, SHOP, run_id="r", now=_in_days(20))[0].failed]
    assert not savepoints(soon.lake(), HOURLY.name)


def _in_days(days: int) -> datetime:
    return datetime.now(UTC) + timedelta(days=days)
