import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from rivermark.model.errors import StreamAlreadyRunning
from rivermark.runtime.supervision import state_file
from rivermark.runtime.supervision.heartbeat import Heartbeat, HeartbeatStore
from rivermark.runtime.supervision.lease import Lease, Owner

RIDES = "taxi/rides"

# A run: takes the lease, starts an "engine" that outlives it, and says that engine's number.
OWNER = """
import subprocess, sys
from rivermark.runtime.supervision.lease import Lease
lease = Lease(sys.argv[1], "taxi/rides").acquire("run-1")
engine = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL)
lease.update(jvm_pid=engine.pid)
print(engine.pid, flush=True)
sys.stdin.read()
"""


@contextmanager
def another_run(state_root: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    run = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(state_root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])},
    )
    assert run.stdout is not None
    engine = int(run.stdout.readline())
    try:
        yield run, engine
    finally:
        run.kill()
        run.communicate()
        if psutil.pid_exists(engine):
            os.kill(engine, signal.SIGKILL)


def is_running(pid: int) -> bool:
    """Whether the process works on; one that ended and waits for its parent's look does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def holder(state_root: Path, stream: str) -> Owner | None:
    """Who holds the lease, by the file beside it."""
    owner = state_file.read(state_file.path_for(state_root / "leases", stream), Owner)
    return None if owner is None or owner.released else owner


def test_a_free_lease_is_taken_held_and_given_back(tmp_path: Path) -> None:
    assert holder(tmp_path, RIDES) is None

    with Lease(tmp_path, RIDES).acquire("run-1"):
        owner = holder(tmp_path, RIDES)
        assert owner is not None
        assert (owner.run_id, owner.pid) == ("run-1", os.getpid())

    assert holder(tmp_path, RIDES) is None


def test_b019_the_second_of_two_runs_is_refused_and_told_who_holds_the_stream(
    tmp_path: Path,
) -> None:
    with another_run(tmp_path) as (run, _):
        with pytest.raises(StreamAlreadyRunning, match=rf"run run-1 \(pid {run.pid} on"):
            Lease(tmp_path, RIDES).acquire("run-2")

        owner = holder(tmp_path, RIDES)
        assert owner is not None
        assert owner.run_id == "run-1"


def test_leases_of_other_streams_are_free(tmp_path: Path) -> None:
    with Lease(tmp_path, RIDES).acquire("run-1"), Lease(tmp_path, "taxi/fares").acquire("run-2"):
        pass


def test_of_many_that_try_at_once_exactly_one_gets_it(tmp_path: Path) -> None:
    def race(nth: int) -> Lease | None:
        try:
            return Lease(tmp_path, RIDES).acquire(f"run-{nth}")
        except StreamAlreadyRunning:
            return None

    with ThreadPoolExecutor(8) as pool:
        winners = [lease for lease in pool.map(race, range(8)) if lease is not None]

    assert len(winners) == 1
    winners[0].release()


def test_the_death_of_the_owner_frees_the_lease_and_ends_its_engine(tmp_path: Path) -> None:
    with another_run(tmp_path) as (run, engine):
        run.send_signal(signal.SIGKILL)
        run.wait()
        assert is_running(engine), "the engine outlives its parent: that is what must be met"

        began = time.monotonic()
        with Lease(tmp_path, RIDES).acquire("run-2"):
            assert not is_running(engine)
        assert time.monotonic() - began < 20


def test_a_later_process_of_the_engines_number_is_left_alone(tmp_path: Path) -> None:
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        write_owner(
            tmp_path,
            pid=99_999_999,
            jvm_pid=bystander.pid,
            jvm_began=psutil.Process(bystander.pid).create_time() - 3600,
        )
        with Lease(tmp_path, RIDES).acquire("run-2"):
            assert is_running(bystander.pid)
    finally:
        bystander.kill()
        bystander.wait()


def test_an_engine_shared_with_a_stream_that_was_given_back_is_left_alone(tmp_path: Path) -> None:
    engine = subprocess.Popen(["sleep", "60"])
    try:
        Lease(tmp_path, RIDES).acquire("run-1", jvm_pid=engine.pid).release()
        with Lease(tmp_path, RIDES).acquire("run-2"):
            assert is_running(engine.pid)
    finally:
        engine.kill()
        engine.wait()


@pytest.mark.parametrize(("age", "refused"), [(30, True), (300, False)])
def test_an_owner_on_another_machine_holds_it_while_its_heart_beats(
    tmp_path: Path, age: int, refused: bool
) -> None:
    """On a shared file system the kernel's lock may not reach the other machine."""
    write_owner(tmp_path, host="another-machine")
    HeartbeatStore(tmp_path).beat(
        Heartbeat(
            stream=RIDES,
            group="taxi",
            run_id="run-1",
            pid=1,
            host="another-machine",
            at=datetime.now(UTC) - timedelta(seconds=age),
        )
    )

    if refused:
        with pytest.raises(StreamAlreadyRunning, match="on another-machine"):
            Lease(tmp_path, RIDES).acquire("run-2")
    else:
        Lease(tmp_path, RIDES).acquire("run-2").release()


def test_a_damaged_owner_file_does_not_block_a_free_lease(tmp_path: Path) -> None:
    Lease(tmp_path, RIDES).acquire("run-1").release()
    (tmp_path / "leases" / "taxi.rides.json").write_text('{"run_id": "ru')

    with Lease(tmp_path, RIDES).acquire("run-2"):
        owner = holder(tmp_path, RIDES)
        assert owner is not None
        assert owner.run_id == "run-2"


def test_a_lease_that_could_not_be_had_is_not_left_half_taken(tmp_path: Path) -> None:
    write_owner(tmp_path, host="another-machine")
    beat = Heartbeat(stream=RIDES, group="taxi", run_id="run-1", pid=1, host="another-machine")
    HeartbeatStore(tmp_path).beat(beat)
    with pytest.raises(StreamAlreadyRunning):
        Lease(tmp_path, RIDES).acquire("run-2")

    HeartbeatStore(tmp_path).beat(replace(beat, at=datetime.now(UTC) - timedelta(hours=1)))
    with Lease(tmp_path, RIDES).acquire("run-3"):
        pass


def write_owner(
    state_root: Path,
    *,
    host: str | None = None,
    pid: int = 1,
    jvm_pid: int | None = None,
    jvm_began: float | None = None,
) -> None:
    """What a run that died on the way leaves behind."""
    Lease(state_root, RIDES).acquire("run-1").release()
    path = state_root / "leases" / "taxi.rides.json"
    left = state_file.read(path, Owner)
    assert left is not None
    state_file.write(
        path,
        replace(
            left,
            pid=pid,
            pid_began=0.0,
            host=host or left.host,
            jvm_pid=jvm_pid,
            jvm_began=jvm_began,
            released=False,
        ),
    )
