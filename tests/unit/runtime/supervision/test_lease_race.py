"""Case B066: two hosts race for a stream, and the one that was paused never commits again.

Both hosts are views of one folder, with locks that are local to each, as on some file systems that
machines share. A host is paused at a random point of a batch, the other takes over and goes on, and
then the first one wakes.
"""

from __future__ import annotations

import fcntl
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rivermark.lake import batch_writer, fence
from rivermark.lake.append import table_files
from rivermark.lake.append.data_file import write_data_file
from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.model.errors import LeaseLost, StreamAlreadyRunning
from rivermark.model.sink import Origin
from rivermark.runtime.supervision import lease as leases
from rivermark.runtime.supervision import state_file
from rivermark.runtime.supervision.heartbeat import Heartbeat, HeartbeatStore
from rivermark.runtime.supervision.lease import Lease
from rivermark.runtime.supervision.live_process import Owner
from tests.unit.model.declared import table

RIDES = table("taxi/rides")
COLUMNS = arrow_schema(RIDES.schema)
BEGAN = datetime(2026, 3, 2, tzinfo=UTC)
POINTS = ("before the check", "after the check", "while it writes", "at the commit", "after it")


@dataclass
class World:
    """A lake and the state of two hosts; `host` is the one that acts."""

    root: Path
    monkeypatch: pytest.MonkeyPatch
    host: str = "a"
    taken: int = 0
    pauses: dict[str, Callable[[], None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lake = Lake(str(self.root / "lake"))
        create_table(self.lake, RIDES)
        self.monkeypatch.setattr(leases, "gethostname", lambda: self.host)
        self.monkeypatch.setattr(fcntl, "flock", lambda *_: None)
        for module in (batch_writer, fence):
            self.monkeypatch.setattr(module, "commit_lock", lambda *_, **__: nullcontext())
        write, link = write_data_file, os.link

        def written(*args: Any, **options: Any) -> Any:
            self.pause("while it writes")
            return write(*args, **options)

        def linked(*args: Any, **options: Any) -> None:
            self.pause("at the commit")
            link(*args, **options)

        self.monkeypatch.setattr(table_files, "write_data_file", written)
        self.monkeypatch.setattr(os, "link", linked)

    def pause(self, point: str) -> None:
        """Let happen what a test has planned for this point, once."""
        self.pauses.pop(point, lambda: None)()

    @contextmanager
    def on(self, host: str) -> Iterator[None]:
        """Act on a host; the one before is paused meanwhile."""
        before, self.host = self.host, host
        try:
            yield
        finally:
            self.host = before

    def run(self, name: str) -> Lease:
        return Lease(self.root, RIDES.name).acquire(name)

    def writer(self, lease: Lease) -> TableWriter:
        """As a run opens it: first the fence, then a look at which batches the table holds."""

        def check() -> None:
            lease.check()
            self.pause("after the check")

        if lease.fences:
            self.taken += 1
            fence.fence(self.lake, RIDES, RIDES.name, lease.token)
        return TableWriter(self.lake, RIDES, Origin(RIDES.name, 0, BEGAN, "run", check))

    def silent(self, run: str, host: str) -> None:
        """The last heartbeat of a host that was paused three minutes ago."""
        at = datetime.now(UTC) - timedelta(minutes=3)
        beat = Heartbeat(stream=RIDES.name, group="taxi", run_id=run, pid=1, host=host, at=at)
        HeartbeatStore(self.root).beat(beat)

    def owner(self) -> Owner:
        owner = state_file.read(state_file.path_for(self.root / "leases", RIDES.name), Owner)
        assert owner is not None
        return owner


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def batch(number: int) -> pa.Table:
    """Two rows that only this batch has."""
    rows = [{"id": 2 * number + n, "at": BEGAN} for n in range(2)]
    return pa.Table.from_pylist(rows, COLUMNS)


def second_run(
    world: World, runs: list[Lease], number: int, paused: str, host: str, *, nameless: bool
) -> None:
    """Take the stream over from a paused host, and write the batch that it was at.

    `nameless`: the file that names the owner is cut.
    """
    with world.on(host):
        world.silent(f"first-{number}", paused)
        if nameless:
            named = state_file.path_for(world.root / "leases", RIDES.name)
            named.write_bytes(named.read_bytes()[:-1])
        runs.append(world.run(f"second-{number}"))
        world.writer(runs[-1]).append_once(batch(number), number)


def ids(world: World) -> list[int]:
    return sorted(DeltaTable(world.lake.path(RIDES)).to_pyarrow_table()["id"].to_pylist())


@pytest.mark.parametrize("rounds", [20, pytest.param(100, marks=pytest.mark.long)])
def test_b066_a_seeded_race_of_two_hosts_commits_each_batch_once(world: World, rounds: int) -> None:
    chance = random.Random(66)
    refusals: list[tuple[str, str]] = []
    for number in range(rounds):
        first, second = chance.sample(["a", "b"], 2)
        point = chance.choice(POINTS)
        with world.on(first):
            paused = world.run(f"first-{number}")
            writer = world.writer(paused)
            if chance.random() < 0.3:
                writer._appender._able = False  # As where delta-rs has to commit.

            successors: list[Lease] = []
            nameless = chance.random() < 0.25
            take_over = partial(
                second_run, world, successors, number, first, second, nameless=nameless
            )
            world.pauses = {point: take_over}
            world.pause("before the check")
            try:
                writer.append_once(batch(number), number)
            except LeaseLost as lost:
                refusals.append((str(lost), f"run second-{number} on {second}"))
            world.pause("after it")
            if not successors:
                take_over()  # Its way to the commit did not pass that point.
            paused.release()
        # What the successor holds is untouched by the way out of the one that lost.
        [successor] = successors
        assert (world.owner().run_id, world.owner().released) == (f"second-{number}", False)
        assert successor.current
        with world.on(second):
            successor.release()
        if number % 10 == 9:
            assert ids(world) == list(range(2 * number + 2)), f"until round {number}"
    assert world.taken == rounds + 1, "and the first owner, who cannot know that it is one"
    assert len(refusals) > rounds / 5
    assert all(successor in reason for reason, successor in refusals)


def test_b066_of_two_hosts_that_take_over_at_once_one_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world.on("a"):
        world.run("silent")
        world.silent("silent", "a")
    judge = Lease._succeed
    winners: list[Lease] = []

    def overtaken(lease: Lease, owner: Owner | None) -> None:
        judge(lease, owner)
        monkeypatch.setattr(Lease, "_succeed", judge)
        with world.on("c"):
            winners.append(world.run("faster"))

    monkeypatch.setattr(Lease, "_succeed", overtaken)
    with world.on("b"), pytest.raises(StreamAlreadyRunning, match="run faster"):
        world.run("slower")
    assert winners[0].current


def test_b066_an_owner_that_has_not_beaten_yet_is_alive(world: World) -> None:
    with world.on("a"):
        world.run("silent")
        world.silent("silent", "a")
    with world.on("b"):
        successor = world.run("successor")
    # The newest heartbeat is still that of the owner before.
    with world.on("c"), pytest.raises(StreamAlreadyRunning, match="run successor"):
        world.run("third")
    assert successor.current


def test_b066_who_lost_the_lease_neither_names_its_jvm_nor_frees_it(world: World) -> None:
    with world.on("a"):
        paused = world.run("silent")
        world.silent("silent", "a")
    with world.on("b"):
        world.run("successor")
    with world.on("a"):
        with pytest.raises(LeaseLost, match="has lost its lease to run successor on b"):
            paused.update(jvm_pid=os.getpid())
        paused.release()
    assert (world.owner().run_id, world.owner().released) == ("successor", False)


def test_tokens_grow_over_all_owners_and_one_file_is_left(tmp_path: Path) -> None:
    tokens = []
    for number in range(3):
        with Lease(tmp_path, RIDES.name).acquire(f"run-{number}") as lease:
            tokens.append(lease.token)
    first = tokens[0]
    assert tokens == [first, first + 1, first + 2]
    names = {p.name for p in (tmp_path / "leases" / "taxi.rides.tokens").iterdir()}
    assert names == {"base", str(tokens[-1])}
