"""A standalone cluster of Spark on this machine: a master and workers of one core each."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pyspark

HOME = Path(pyspark.__file__).parent
STARTUP = 90.0
"""Seconds: two JVMs on a busy machine."""


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """Yields the master's URL; its processes, executors among them, end with the block."""
    port = _free_port()
    master = f"spark://127.0.0.1:{port}"
    started: list[subprocess.Popen[bytes]] = []
    try:
        started.append(_start(folder, "master.Master", "--host", "127.0.0.1", "--port", str(port)))
        _wait_for(folder / "master.Master0.log", "I have been elected leader")
        for number in range(workers):
            arguments = ("--host", "127.0.0.1", "--cores", "1", "--memory", "2g")
            work = str(folder / f"work{number}")
            started.append(
                _start(
                    folder, "worker.Worker", *arguments, "--work-dir", work, master, number=number
                )
            )
        for number in range(workers):
            _wait_for(folder / f"worker.Worker{number}.log", "Successfully registered with master")
        yield master
    finally:
        for process in reversed(started):
            _end(process)


def executors() -> list[psutil.Process]:
    """The executors of this process's clusters."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            words = process.cmdline()
        except psutil.Error:  # It has ended meanwhile.
            continue
        if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in words:
            found.append(process)
    return found


def _start(folder: Path, name: str, *arguments: str, number: int = 0) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "SPARK_HOME": str(HOME),
        # By it alone a worker finds the JARs of a pip package.
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    environment.pop("PYSPARK_PYTHON", None)
    command = ["java", "-Xmx512m", "-cp", f"{HOME}/jars/*", f"org.apache.spark.deploy.{name}"]
    command += [*arguments, "--webui-port", "0"] if name.startswith("master") else []
    if not name.startswith("master"):
        command += ["--webui-port", "0", *arguments]
    with (folder / f"{name}{number}.log").open("wb") as log:
        return subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )


def _wait_for(log: Path, text: str) -> None:
    deadline = time.monotonic() + STARTUP
    while time.monotonic() < deadline:
        if text in log.read_text(errors="replace"):
            return
        time.sleep(0.2)
    raise TimeoutError(
        f"{log.name} does not say {text!r}: {log.read_text(errors='replace')[-2000:]}"
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        family = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        family = []
    process.kill()
    process.wait()
    for child in family:
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
