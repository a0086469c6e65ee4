import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from rivermark.model.errors import LeaseLost, RivermarkError, StreamAlreadyRunning
from rivermark.runtime.supervision import state_file
from rivermark.runtime.supervision.heartbeat import Heartbeat, HeartbeatStore, host_alive
from rivermark.runtime.supervision.lease import Lease
from rivermark.runtime.supervision.live_process import Owner, live_process, start_of

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


DAMAGES: tuple[Callable[[Path], object], ...] = (
    lambda path: path.write_bytes(path.read_bytes()[:20]),
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(b"\xff\x00{"),
    lambda path: path.write_text('["no owner"]'),
    Path.unlink,
)


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_owner_that_lives_keeps_its_lease_whatever_becomes_of_the_file_with_its_name(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    with Lease(tmp_path, RIDES).acquire("run-1") as held:
        damage(tmp_path / "leases" / "taxi.rides.json")
        with pytest.raises(StreamAlreadyRunning, match="already run by a process"):
            Lease(tmp_path, RIDES).acquire("run-2")
        held.check()


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_owner_whose_name_is_lost_is_succeeded_by_its_heartbeat_and_fenced(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    """It may be on another machine, where the kernel's lock does not reach."""
    write_owner(tmp_path, host="another-machine")
    damage(tmp_path / "leases" / "taxi.rides.json")
    now = datetime.now(UTC)
    beat = Heartbeat(stream=RIDES, group="taxi", run_id="run-1", pid=1, host="another-machine")
    HeartbeatStore(tmp_path).beat(beat)
    with pytest.raises(StreamAlreadyRunning, match=r"run run-1 .* on another-machine"):
        Lease(tmp_path, RIDES).acquire("run-2")

    HeartbeatStore(tmp_path).beat(replace(beat, at=now - timedelta(minutes=3)))
    with Lease(tmp_path, RIDES).acquire("run-2") as successor:
        assert successor.fences
        assert successor.token > 1


def test_an_owner_whose_claim_was_deleted_commits_no_more_and_says_why(tmp_path: Path) -> None:
    with Lease(tmp_path, RIDES).acquire("run-1") as held:
        claim = tmp_path / "leases" / "taxi.rides.tokens" / str(held.token)
        claim.unlink()
        with pytest.raises(LeaseLost, match=r"claim of this run is gone from .*\.tokens"):
            held.check()


def test_r22_tokens_do_not_start_again_where_their_folder_was_removed(tmp_path: Path) -> None:
    """A paused owner wakes beside its successor."""
    paused = Lease(tmp_path, RIDES).acquire("run-1")
    shutil.rmtree(tmp_path / "leases")

    with Lease(tmp_path, RIDES).acquire("run-2") as successor:
        assert successor.token > paused.token
        assert successor.fences, "it may have been in the middle of a commit"
        with pytest.raises(LeaseLost):
            paused.check()
        paused.release()
        successor.check()


def test_r22_an_owner_that_lives_is_not_succeeded_where_its_lease_was_removed(
    tmp_path: Path,
) -> None:
    owner = subprocess.Popen(["sleep", "600"])
    beat = Heartbeat(
        stream=RIDES, group="taxi", run_id="run-1", pid=owner.pid, start=start_of(owner.pid)
    )
    HeartbeatStore(tmp_path).beat(beat)

    with pytest.raises(StreamAlreadyRunning, match=r"run run-1 .*Its lease is gone from .*leases"):
        Lease(tmp_path, RIDES).acquire("run-2")

    owner.kill()
    owner.wait()
    with Lease(tmp_path, RIDES).acquire("run-2") as successor:
        assert successor.fences


def test_names_that_are_no_numbers_in_the_folder_of_claims_are_passed_over(tmp_path: Path) -> None:
    Lease(tmp_path, RIDES).acquire("run-1").release()
    for name in ("\u00b2", ".nfs0001", "7.bak"):
        (tmp_path / "leases" / "taxi.rides.tokens" / name).touch()
    with Lease(tmp_path, RIDES).acquire("run-2") as held:
        held.check()


def test_a_step_of_the_clock_makes_no_other_process_of_an_owner_or_its_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """psutil adds the moment of the boot to a process's start, which moves with the clock."""
    with another_run(tmp_path) as (run, engine):
        beat = Heartbeat(
            stream=RIDES, group="taxi", run_id="run-1", pid=run.pid, start=start_of(run.pid)
        )
        boot = psutil.boot_time()
        monkeypatch.setattr(psutil._psplatform, "boot_time", lambda: boot + 3600)
        assert host_alive(beat)
        with pytest.raises(StreamAlreadyRunning, match=f"pid {run.pid}"):
            Lease(tmp_path, RIDES).acquire("run-2")

        run.send_signal(signal.SIGKILL)
        run.wait()
        assert not host_alive(beat)
        with Lease(tmp_path, RIDES).acquire("run-2"):
            assert not is_running(engine)


def test_a_process_that_got_the_number_of_another_one_is_not_that_one() -> None:
    began = psutil.Process().create_time()
    boot, _, ticks = str(start_of(os.getpid())).partition("/")
    assert live_process(os.getpid(), 0.0, f"{boot}/{ticks}") is not None
    assert live_process(os.getpid(), began) is not None
    assert live_process(os.getpid(), began - 60) is None
    for other in (f"{boot}/{int(ticks) + 1}", f"before/{ticks}"):
        assert live_process(os.getpid(), began, other) is None
        beat = Heartbeat(stream=RIDES, group="taxi", run_id="r", pid=os.getpid(), start=other)
        assert host_alive(beat) is False


def test_a_sign_of_life_from_the_future_is_told(tmp_path: Path) -> None:
    write_owner(tmp_path, host="another-machine")
    beat = Heartbeat(stream=RIDES, group="taxi", run_id="run-1", pid=1, host="another-machine")
    HeartbeatStore(tmp_path).beat(replace(beat, at=beat.at + timedelta(hours=1)))

    with pytest.raises(StreamAlreadyRunning, match=r"\d{4} s in the future .* one time server"):
        Lease(tmp_path, RIDES).acquire("run-2")


def test_a_paused_owner_on_this_machine_is_not_succeeded_and_goes_on(tmp_path: Path) -> None:
    with another_run(tmp_path) as (run, engine):
        run.send_signal(signal.SIGSTOP)
        with pytest.raises(StreamAlreadyRunning, match=f"pid {run.pid}"):
            Lease(tmp_path, RIDES).acquire("run-2")
        run.send_signal(signal.SIGCONT)
        assert is_running(engine)


@pytest.mark.parametrize("error", [errno.EROFS, errno.EACCES, errno.EIO])
def test_a_folder_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def refused(path: Path, *_: object) -> int:
        raise OSError(error, os.strerror(error), str(path))

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(RivermarkError, match=r"taxi\.rides\.lock: ") as told:
        Lease(tmp_path, RIDES).acquire("run-1")
    assert os.strerror(error) in str(told.value)


def test_a_lease_that_found_its_disk_full_is_free_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as disk:
        disk.setattr(state_file, "write", full)
        with pytest.raises(OSError, match="No space left"):
            Lease(tmp_path, RIDES).acquire("run-1")
    with Lease(tmp_path, RIDES).acquire("run-2") as held:
        assert held.current


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
            pid_start=None,
            host=host or left.host,
            jvm_pid=jvm_pid,
            jvm_began=jvm_began,
            jvm_start=None,
            released=False,
        ),
    )
