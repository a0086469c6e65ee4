"""The disk of a live stream fills up and is freed: the stream says so, and goes on by itself."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rivermark.runtime.supervision.heartbeat import Heartbeat, HeartbeatStore
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.small_disk import small_disk

RIVERMARK = str(Path(sys.executable).with_name("rivermark"))
STREAM = "web/page_views"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path, "64m") as folder:
        yield folder


@pytest.mark.story
def test_a_live_stream_outlasts_a_full_disk_and_its_heartbeat_says_so(
    disk: Path, tmp_path: Path
) -> None:
    settings = Settings(home=disk / "home", landing_root=str(tmp_path / "landing"))
    environment = os.environ | {
        "RIVERMARK_HOME": str(settings.home),
        "RIVERMARK_LANDING_ROOT": settings.landing_root,
        "RIVERMARK_TRIGGER_SECONDS": "1",
    }

    def lines() -> int:
        files = Path(settings.landing_root).rglob("*.json")
        return sum(len(each.read_text().splitlines()) for each in files)

    def land() -> int:
        before = lines()
        while lines() == before:  # A feed on a busy machine may end before it lands anything.
            subprocess.run(
                [RIVERMARK, "visitors", "--users", "2000", "--for", "9"],
                env=environment,
                check=True,
            )
        return lines()

    def rows() -> int:
        path = settings.lake().path(f"{STREAM}_raw")
        return int(DeltaTable(path).count()) if DeltaTable.is_deltatable(path) else 0

    def beat() -> Heartbeat:
        beats = HeartbeatStore(settings.state).read()
        assert beats.unreadable == {}
        return beats.latest[STREAM]

    landed = land()
    with (tmp_path / "run.log").open("w") as log:
        run = subprocess.Popen(
            [RIVERMARK, "run", STREAM, "--continuous"], env=environment, stdout=log, stderr=log
        )
        try:
            alive = lambda: run.poll() is None  # noqa: E731
            wait_until(lambda: rows() == landed, 300, reason="the first rows", alive=alive)
            fill(disk / "filler")
            landed = land()
            wait_until(
                lambda: "is full; what was not committed is repeated" in (beat().error or ""),
                300,
                reason="the heartbeat says that the disk is full",
                alive=alive,
            )
            said = beat().error or ""
            (disk / "filler").unlink()
            wait_until(lambda: rows() == landed, 300, reason="all rows, once", alive=alive)
            run.send_signal(signal.SIGINT)
            assert run.wait(120) == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                run.kill()
            run.wait(30)

    assert said.startswith(f"the disk of {disk}")
    assert beat().state == "stopped"
    assert "Traceback" not in (tmp_path / "run.log").read_text()
    assert [each for each in settings.home.rglob(".*.tmp") if "spark" not in str(each)] == []


def fill(filler: Path) -> None:
    """Take all the space there is."""
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
