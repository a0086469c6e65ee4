"""Streams with a sink in real time in a process of their own, until they are killed.

Their session has Spark's connector for Kafka, which that of the other tests has not.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rivermark import Topology
from rivermark.cli.session import engine
from rivermark.runtime.supervision.hosting import Hosting
from rivermark.runtime.supervision.report import Report
from rivermark.settings import Settings
from setup.local_server import ROOT


def tell(report: Report) -> None:
    """Print a report, for the test that started this."""
    told = {"stream": report.stream, "error": report.error, **report.numbers}
    sys.stdout.write(f"{json.dumps(told)}\n")
    sys.stdout.flush()


def host(deployed: Topology, home: str, mode: str) -> None:
    """Run the streams, live or until they are drained."""
    settings = Settings(home=Path(home), trigger_seconds=0.1)
    hosting = Hosting(
        settings=settings,
        topology=deployed,
        streams=deployed.streams,
        run_id=mode,
        continuous=mode == "live",
    )
    with engine(settings, "long", hosting.real_time_slots()) as spark:
        hosting.run(
            spark,
            threading.Event(),
            on_report=tell,
            report_every=timedelta(seconds=5),
            paused_since=datetime.now(UTC),
        )


@contextmanager
def running(module: str, home: Path, brokers: str, mode: str) -> Iterator[subprocess.Popen[bytes]]:
    """The streams that a module hosts, in a process that is killed with its JVM at the end."""
    with (home.parent / f"{mode}.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module, str(home), brokers, mode],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield process
        except AssertionError as error:
            raise AssertionError(f"{error}\n{Path(log.name).read_text()[-3000:]}") from error
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
