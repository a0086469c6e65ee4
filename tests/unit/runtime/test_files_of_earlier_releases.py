"""State and checkpoint files of commit a55bf76 are read, and are written in the same form.

The folder was written by that commit's own code, so that both releases can share a state folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from rivermark.lake.lake import Lake
from rivermark.model.errors import CheckpointIncompatible
from rivermark.model.stream import AnyStream
from rivermark.runtime.checkpoint.closed_days import ClosedDays
from rivermark.runtime.checkpoint.generation import (
    Generation,
    read_generation,
    write_generation,
)
from rivermark.runtime.checkpoint.process_schema import read_record, write_record
from rivermark.runtime.restart.history import RestartHistory
from rivermark.runtime.supervision import state_file
from rivermark.runtime.supervision.desired_state import Desired, DesiredStore
from rivermark.runtime.supervision.heartbeat import WAITING, HeartbeatStore
from rivermark.runtime.supervision.live_process import Owner

BEFORE = Path(__file__).parent / "written_by_a55bf76"
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
LAKE = Lake(str(BEFORE / "lake"), timedelta(days=7))


class Named:
    """As much of a stream as names its checkpoint."""

    def __init__(self, name: str) -> None:
        self.name = name


RIDES, FARES = (cast(AnyStream, Named(f"taxi/{name}")) for name in ("rides", "fares"))


def test_heartbeats() -> None:
    beats = HeartbeatStore(BEFORE / "state").read()

    assert beats.unreadable == {}
    rides, fares = beats.latest["taxi/rides"], beats.latest["taxi/fares"]
    assert (rides.run_id, rides.pid, rides.host, rides.jvm_pid) == ("run-1", 4711, "host-1", 4712)
    assert (rides.at, rides.state, rides.batch_id) == (NOON, "running", 7)
    assert rides.watermark == NOON - timedelta(minutes=1)
    assert rides.numbers[WAITING] == 3
    assert (fares.state, fares.error, fares.restartable) == ("failed", "input is gone", False)


def test_the_desired_state() -> None:
    desired = DesiredStore(BEFORE / "state").get("taxi")

    assert desired == Desired(state="paused", by="ada", at=NOON, reason="maintenance")


def test_the_owner_of_a_lease() -> None:
    owner = state_file.read(BEFORE / "state/leases/taxi.rides.json", Owner)

    assert owner is not None
    assert (owner.run_id, owner.pid, owner.jvm_pid, owner.released) == ("run-1", 4711, 4712, False)


def test_closed_days() -> None:
    assert ClosedDays(LAKE, BEFORE / "state").through("taxi/rides") == date(2026, 3, 1)


def test_generations() -> None:
    assert read_generation(LAKE, RIDES) == Generation(2, NOON, 4)
    with pytest.raises(CheckpointIncompatible, match="a reset was broken off"):
        read_generation(LAKE, FARES)


def test_the_memory_of_restarts() -> None:
    history = RestartHistory.from_cursor((BEFORE / "cursor.json").read_text())

    assert (history.of("taxi").number, history.of("taxi").starts) == (3, (NOON,))


def rewritten_state(folder: str, kind: type[Any]) -> Callable[[Path, Path], None]:
    def rewrite(before: Path, after: Path) -> None:
        state_file.write(after / folder, state_file.read(before / folder, kind))

    return rewrite


def rewritten_heartbeat(before: Path, after: Path) -> None:
    HeartbeatStore(after / "state").beat(HeartbeatStore(before / "state").latest()["taxi/rides"])


def rewritten_cursor(before: Path, after: Path) -> None:
    history = RestartHistory.from_cursor((before / "cursor.json").read_text())
    (after / "cursor.json").write_text(history.to_cursor())


def rewritten_generation(before: Path, after: Path) -> None:
    generation = read_generation(LAKE, RIDES)
    assert generation is not None
    write_generation(Lake(str(after / "lake"), timedelta(days=7)), RIDES, generation)


def rewritten_record(before: Path, after: Path) -> None:
    record = read_record(str(before / "lake/checkpoints/taxi/rides/2"), RIDES.name)
    assert record is not None
    write_record(str(after / "lake/checkpoints/taxi/rides/2"), record)


@pytest.mark.parametrize(
    ("file", "rewrite"),
    [
        ("state/heartbeats/taxi.rides.json", rewritten_heartbeat),
        ("state/desired/taxi.json", rewritten_state("state/desired/taxi.json", Desired)),
        ("state/leases/taxi.rides.json", rewritten_state("state/leases/taxi.rides.json", Owner)),
        ("lake/checkpoints/taxi/rides/generation.json", rewritten_generation),
        ("lake/checkpoints/taxi/rides/2/process.json", rewritten_record),
        ("cursor.json", rewritten_cursor),
    ],
)
def test_the_earlier_release_can_read_what_is_written_now(
    tmp_path: Path, file: str, rewrite: Callable[[Path, Path], None]
) -> None:
    rewrite(BEFORE, tmp_path)

    written = json.loads((tmp_path / file).read_text())
    since = ["check", "given_up", "start", "pid_start", "jvm_start", "cause", "waiting_since"]
    for added in (*since, "code", "labelled_for"):
        written.pop(added, None)  # The earlier release reads what it knows by name.
    assert written == json.loads((BEFORE / file).read_text())
