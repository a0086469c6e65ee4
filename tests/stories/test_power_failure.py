"""The power fails: a file system of its own is shut down without a last word, and mounted again.

Needs root and loop devices; tests/unit/lake/test_durable.py does the same on a model of a disk.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from rivermark.lake.delta import dataset_of, delta_table
from rivermark.lake.log import CommitLog
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, MINUTE, READINGS, TEN, reading
from tests.stories.deployment import ROOT, pause
from tests.stories.powered import EACH, ROWS, WINDOWS

SHUT_DOWN: Final = 0x8004587D
"""The request of ext4 and xfs by which their own tests fail the power (EXT4_IOC_SHUTDOWN)."""
WITHOUT_LOG: Final = 2
SEED: Final = 20261129


class Device:
    """A file system in a file, mounted at `folder`."""

    def __init__(self, image: Path, folder: Path) -> None:
        self.image, self.folder = image, folder
        self.home = folder / "home"
        self.log = image.with_name("log")

    def mount(self) -> None:
        """Mount it; the file system replays its journal."""
        self.folder.mkdir(exist_ok=True)
        command("mount", "-o", "loop", str(self.image), str(self.folder))

    def fail(self) -> None:
        """Lose whatever has not reached the device, at this moment."""
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, SHUT_DOWN, struct.pack("I", WITHOUT_LOG))
        finally:
            os.close(handle)

    def unmount(self) -> None:
        """Let go of it, once its last user is gone."""
        words = ["umount", str(self.folder)]
        wait_until(
            lambda: subprocess.run(words, capture_output=True, check=False).returncode == 0,
            30,
            reason=f"{self.folder} is not in use",
        )


def command(*words: str) -> None:
    """Run a command of the system."""
    subprocess.run(words, check=True, capture_output=True)


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Device]:
    """An empty file system of its own."""
    made = Device(tmp_path / "image", tmp_path / "device")
    try:
        with made.image.open("wb") as file:
            file.truncate(512 * 2**20)
        command("mkfs.ext4", "-q", "-F", str(made.image))
        made.mount()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs root and loop devices: {error}")
    try:
        yield made
    finally:
        with contextlib.suppress(Exception):
            made.unmount()


def start(what: str, device: Device, *, durable: bool = True, **more: str) -> subprocess.Popen[str]:
    """One of the programs, as the first of a group of processes; its words go to `log`."""
    with device.log.open("a") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.stories.powered", what, str(device.home)],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT), "RIVERMARK_DURABLE": str(durable), **more},
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )


def end(process: subprocess.Popen[str]) -> list[str]:
    """Kill the group; returns what its first process had printed."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    printed, _ = process.communicate()
    return printed.splitlines()


def failures(device: Device, *, rounds: int, durable: bool) -> tuple[int, int, list[str]]:
    """Let the power fail while a process appends; batches acknowledged, lost, and refusals."""
    dice = random.Random(SEED)
    lost, acknowledged = 0, -1
    refused: list[str] = []
    for _ in range(rounds):
        process = start("write", device, durable=durable)
        assert process.stdout is not None
        for _ in range(dice.randrange(10, 80)):
            acknowledged = max(acknowledged, int(process.stdout.readline()))
        pause(dice, 0, 0.05)
        device.fail()
        acknowledged = max([acknowledged, *(int(line) for line in end(process))])
        device.unmount()
        device.mount()
        path = Settings(home=device.home).lake().path(ROWS)
        try:
            ids = sorted(dataset_of(delta_table(path)).to_table()["id"].to_pylist())
        except Exception as error:
            refused.append(f"{type(error).__name__}: {error}")
            break
        assert len(ids) == len(set(ids)), "a row is there twice"
        lost += acknowledged + 1 - len([i for i in ids if i < EACH * (acknowledged + 1)]) // EACH
        assert len(ids) <= EACH * (acknowledged + 2)
        if lost:
            break
    return acknowledged + 1, lost, refused


@pytest.mark.story
def test_every_acknowledged_batch_is_there_after_a_power_failure(device: Device) -> None:
    batches, lost, refused = failures(device, rounds=5, durable=True)

    print(f"{batches} batches acknowledged, {lost} lost, refused: {refused}")  # noqa: T201
    assert batches > 50
    assert lost == 0
    # A commit of delta-rs that was not acknowledged may be there by half: then all stands still.
    assert all("TableDamaged" in each and "rivermark fsck" in each for each in refused)


@pytest.mark.story
def test_without_syncing_the_power_takes_acknowledged_batches(device: Device) -> None:
    batches, lost, refused = failures(device, rounds=3, durable=False)

    print(f"{batches} batches acknowledged, {lost} lost, refused: {refused}")  # noqa: T201
    assert lost > 0 or refused


@contextlib.contextmanager
def landing_files(landing: Landing, first: int) -> Iterator[list[int]]:
    """Land a file of a minute's readings after the other; yields the minutes that have landed."""
    minutes = [*range(first)]
    stop = threading.Event()

    def land() -> None:
        while not stop.wait(0.2):
            minute = len(minutes)
            landing.put(f"{FOLDER}/{minute:06}.json", *(reading(minute, s) for s in SENSORS))
            minutes.append(minute)

    thread = threading.Thread(target=land, daemon=True)
    thread.start()
    try:
        yield minutes
    finally:
        stop.set()
        thread.join()


SENSORS: Final = ("s1", "s2", "s3")


@pytest.mark.story
@pytest.mark.slow
def test_a_live_stream_loses_and_doubles_nothing(device: Device, tmp_path: Path) -> None:
    dice = random.Random(SEED)
    landing = Landing(tmp_path / "landing")
    settings = Settings(home=device.home, landing_root=str(landing.root))
    tables = (READINGS.raw, READINGS.admitted, WINDOWS.tables[0])
    logs = [CommitLog(settings.lake().path(table)) for table in tables]
    minutes: list[int] = []
    for _ in range(3):
        process = start("live", device, RIVERMARK_LANDING_ROOT=str(landing.root))
        with landing_files(landing, len(minutes)) as minutes:
            goal = max(logs[2].versions(), default=0) + dice.randrange(2, 5)
            wait_until(
                lambda: max(logs[2].versions(), default=0) >= goal or process.poll() is not None,  # noqa: B023
                240,
                reason="windows are written",
            )
            assert process.poll() is None
            # All but the newest commit of each were acknowledged: another followed.
            seen = [log.versions()[:-1] for log in logs]
            device.fail()
        end(process)
        device.unmount()
        device.mount()
        assert [v for v, log in zip(seen, logs, strict=True) if not {*v} <= {*log.versions()}] == []
    last = len(minutes) + 1_000
    landing.put(f"{FOLDER}/{last:06}.json", *(reading(last, sensor) for sensor in SENSORS))

    drain = start("drain", device, RIVERMARK_LANDING_ROOT=str(landing.root))
    drain.communicate(timeout=300)
    torn = device.log.read_text().count("as after a power failure")
    print(f"{len(minutes)} files, 3 power failures, {torn} torn checkpoints")  # noqa: T201
    assert drain.returncode == 0

    lake = settings.lake()
    raw, admitted, windows = (
        dataset_of(delta_table(lake.path(table))).to_table().to_pylist() for table in tables
    )
    lines = sorted((f"{m:06}.json", n) for m in [*minutes, last] for n in range(1, 4))
    assert sorted((Path(r["_file"]).name, r["_row"]) for r in raw) == lines
    assert len(admitted) == len(lines)
    found = sorted((w["window_start"], w["sensor"], w["readings"]) for w in windows)
    assert found == sorted(
        (TEN + start * MINUTE, sensor, min(5, len(minutes) - start))
        for start in range(0, len(minutes), 5)
        for sensor in SENSORS
    )
