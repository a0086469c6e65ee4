"""What tests have started ends with them, also where they end without a word."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from rivermark.testing import wait_until

ROOT = Path(__file__).parents[2]
STARTS = """
import subprocess, sys, time
from tests.leftovers import end_leftovers

end_leftovers(grace=0)
sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
print(subprocess.Popen(sleeper, start_new_session=True).pid, flush=True)
time.sleep(600)
"""


def test_a_process_in_a_session_of_its_own_ends_after_the_kill_of_what_started_it() -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with subprocess.Popen(
        [sys.executable, "-c", STARTS], stdout=subprocess.PIPE, env=environment, text=True
    ) as tests:
        assert tests.stdout is not None
        left = psutil.Process(int(tests.stdout.readline()))
        assert left.is_running()
        tests.send_signal(signal.SIGKILL)

        wait_until(lambda: not runs(left), reason="what was left has ended")

    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def runs(process: psutil.Process) -> bool:
    """Whether it runs: where no init reaps it, it stays as a zombie."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
