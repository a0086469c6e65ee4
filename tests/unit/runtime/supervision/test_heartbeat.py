import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rivermark.model.errors import UnknownStream
from rivermark.runtime.supervision.heartbeat import Heartbeat, HeartbeatStore, host_alive
from rivermark.runtime.supervision.state_file import UnreadableState

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
RIDES = Heartbeat(
    stream="taxi/rides",
    group="taxi",
    run_id="run-1",
    pid=os.getpid(),
    at=NOON,
    state="running",
    batch_id=7,
    last_progress_at=NOON,
    watermark=NOON - timedelta(minutes=1),
    numbers={"rows_in": 100, "rows_per_second": 12.5},
)


def test_the_last_heartbeat_is_read_as_it_was_written(tmp_path: Path) -> None:
    store = HeartbeatStore(tmp_path)

    store.beat(replace(RIDES, batch_id=6))
    store.beat(RIDES)

    assert store.get("taxi/rides") == RIDES
    assert store.latest() == {"taxi/rides": RIDES}
    assert store.unreadable == {}


def test_a_stream_that_never_beat_has_no_heartbeat(tmp_path: Path) -> None:
    assert HeartbeatStore(tmp_path).get("taxi/rides") is None
    assert HeartbeatStore(tmp_path).latest() == {}


@pytest.mark.parametrize(
    "damage", [b"", b'{"stream": "web/cli', b"\xff\xfe", b"[]", b'{"pid": "x"}']
)
def test_b070_a_damaged_heartbeat_is_reported_and_hides_no_other(
    tmp_path: Path, damage: bytes
) -> None:
    store = HeartbeatStore(tmp_path)
    store.beat(RIDES)
    (tmp_path / "heartbeats" / "web.clicks.json").write_bytes(damage)

    assert list(store.latest()) == ["taxi/rides"]
    assert list(store.unreadable) == ["web/clicks"]
    assert "web.clicks.json" in store.unreadable["web/clicks"]
    with pytest.raises(UnreadableState, match=r"web\.clicks\.json"):
        store.get("web/clicks")


def test_an_unreadable_folder_in_place_of_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "heartbeats" / "web.clicks.json").mkdir(parents=True)

    assert list(HeartbeatStore(tmp_path).unreadable) == ["web/clicks"]


def test_a_number_that_json_does_not_know_is_left_out(tmp_path: Path) -> None:
    store = HeartbeatStore(tmp_path)
    store.beat(replace(RIDES, numbers={"rows_in": 1, "rows_per_second": float("nan")}))

    found = store.get("taxi/rides")
    assert found is not None
    assert found.numbers == {"rows_in": 1}


def test_readers_never_meet_half_a_heartbeat(tmp_path: Path) -> None:
    store = HeartbeatStore(tmp_path)
    store.beat(RIDES)

    def write_many() -> None:
        for batch in range(200):
            store.beat(replace(RIDES, batch_id=batch, error="x" * (batch * 50)))

    with ThreadPoolExecutor(2) as pool:
        writer = pool.submit(write_many)
        looks = 0
        while not writer.done() or looks == 0:
            assert store.read().unreadable == {}
            assert "taxi/rides" in store.latest()
            looks += 1
        writer.result()
    assert [p.name for p in (tmp_path / "heartbeats").iterdir()] == ["taxi.rides.json"]


@pytest.mark.parametrize(
    "name", ["../rides", "taxi/../../x", "/etc/passwd", "", "taxi\x00", "Taxi"]
)
def test_a_name_that_would_leave_the_state_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnknownStream):
        HeartbeatStore(tmp_path).get(name)


def test_this_process_is_alive() -> None:
    assert host_alive(replace(RIDES, at=datetime.now(UTC))) is True


def test_an_ended_process_is_not_alive() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()

    assert host_alive(replace(RIDES, pid=ended.pid, at=datetime.now(UTC))) is False


def test_a_process_that_ended_and_was_not_waited_for_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert host_alive(replace(RIDES, pid=child.pid, at=datetime.now(UTC))) is False
    child.wait()


def test_a_later_process_of_the_same_number_is_not_the_one_that_beat() -> None:
    before_this_process = datetime(2020, 1, 1, tzinfo=UTC)

    assert host_alive(replace(RIDES, at=before_this_process)) is False


def test_of_a_process_elsewhere_nothing_is_known() -> None:
    assert host_alive(replace(RIDES, host="another-machine")) is None
