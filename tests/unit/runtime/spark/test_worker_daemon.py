import subprocess
import sys
import threading

import pytest

from rivermark.runtime.spark import worker_daemon

TWICE = """
from rivermark.runtime.spark import worker_daemon
print(worker_daemon.prepare(), worker_daemon.threads())
"""


def test_what_workers_import_leaves_one_thread_so_that_the_process_can_be_forked() -> None:
    done = subprocess.run(
        [sys.executable, "-c", TWICE], capture_output=True, text=True, check=True, timeout=120
    )

    assert done.stdout.split() == ["True", "1"]


def test_with_a_thread_of_a_library_spark_gets_the_daemon_that_forks_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replaced: list[list[str]] = []
    monkeypatch.setattr(worker_daemon, "NEEDED", ())
    monkeypatch.setattr("os.execv", lambda _, command: replaced.append(command))
    monkeypatch.setattr("pyspark.daemon.manager", lambda: None)
    monkeypatch.setattr("gc.freeze", lambda: None)
    monkeypatch.setattr(sys, "argv", ["worker_daemon", worker_daemon.WORKER])
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    try:
        worker_daemon.main()
    finally:
        ended.set()
        thread.join()

    assert replaced == [[sys.executable, "-m", "pyspark.daemon", "pyspark.worker"]]


def test_workers_of_data_sources_are_left_to_import_what_they_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_daemon, "prepare", lambda: pytest.fail("nothing is imported"))
    monkeypatch.setattr("pyspark.daemon.manager", lambda: None)
    monkeypatch.setattr(sys, "argv", ["worker_daemon", "pyspark.sql.worker.plan_data_source_read"])

    worker_daemon.main()
