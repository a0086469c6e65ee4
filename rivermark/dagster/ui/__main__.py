"""`python -m rivermark.dagster.ui`: the page and all behind it, until a signal ends it."""

from __future__ import annotations

import argparse
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Final

from rivermark.cli.deployment import settings_for
from rivermark.cli.group import sentence_of
from rivermark.dagster.ui.record import Record, RecordFile
from rivermark.dagster.ui.services import DOCUMENTS, PAGE, code_location, is_free
from rivermark.dagster.ui.supervisor import ServiceSupervisor
from rivermark.model.errors import RivermarkError
from rivermark.monitor.dashboard.page_links import make_token
from rivermark.monitor.local_server import LOOPBACK
from rivermark.runtime.restart.notification import Receivers
from rivermark.runtime.supervision.heartbeat import ENDED, HeartbeatStore, host_alive
from rivermark.runtime.supervision.live_process import on_interrupt
from rivermark.settings import Settings

TAKE_SECONDS: Final = 5.0


def main() -> int:
    """Supervise the services until a signal ends this process; returns its exit code.

    A setting that cannot be, or a home that cannot be written, ends it with a sentence.
    """
    try:
        return supervise()
    except (RivermarkError, OSError) as error:
        sentence = sentence_of(error)
        if sentence is None:
            raise
        print(f"rivermark: {sentence}")  # noqa: T201
        return 1


def supervise() -> int:
    """Supervise the services until a signal; returns the exit code."""
    parser = argparse.ArgumentParser(description="The platform in the browser.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=3000)
    of_project = "module of the definitions (default: that of pyproject.toml or workspace.yaml)"
    parser.add_argument("-m", "--module-name", default="", metavar="MODULE", help=of_project)
    options = parser.parse_args()
    code = code_location(Path.cwd(), options.module_name)
    ending = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        ending.set()

    on_interrupt(end)
    settings = settings_for(None)
    record = RecordFile(settings.state)
    if not record.take(TAKE_SECONDS):
        other = record.read()
        print(_already(other) if other else "rivermark: another process is starting the page")  # noqa: T201
        return 1
    before = record.read()
    running = {n for n, each in before.services.items() if each.runs()} if before else set()
    if PAGE in running and before and (before.host, before.port) != _of(options):
        print(  # noqa: T201
            "rivermark: the page of a supervisor that was killed is at "
            f"{before.host}:{before.port}; it is supervised there again"
        )
        options.host, options.port = before.host, before.port
    wanted = {
        PAGE: (options.host, options.port, "make ui UI_PORT=..."),
        DOCUMENTS: (LOOPBACK, settings.pages_port, "RIVERMARK_PAGES_PORT=... make ui"),
    }
    for name, (host, port, otherwise) in wanted.items():
        if name not in running and not is_free(host, port):
            print(  # noqa: T201
                f"rivermark: port {port} of {host} is taken by another program; end it, or choose "
                f"another port: {otherwise}"
            )
            return 1
    make_token(settings)
    words = ("--host", options.host, "--port", str(options.port), "--module-name", code.module)
    supervisor = ServiceSupervisor(
        options.host,
        options.port,
        record,
        code,
        receivers=Receivers(settings.notify_command, settings.notify_to),
        standby_arguments=words,
    )
    supervisor.run(ending)
    report_running_streams(settings)
    return 0


def report_running_streams(settings: Settings) -> None:
    """Print which streams outlive the page: their runs are processes of their own."""
    beats = HeartbeatStore(settings.state).latest().values()
    living = sorted({b.group for b in beats if b.state not in ENDED and host_alive(b)})
    if living:
        names = " ".join(living)
        print(  # noqa: T201
            f"rivermark: streams run on without the page: {names}; "
            f"`rivermark pause GROUP` pauses one",
            flush=True,
        )


def _already(other: Record) -> str:
    pid = other.supervisor.pid
    return (
        f"rivermark: the page runs already, at http://{other.host}:{other.port}, supervised by "
        f"process {pid}; end it with: kill {pid}"
    )


def _of(options: argparse.Namespace) -> tuple[str, int]:
    return options.host, options.port


if __name__ == "__main__":
    sys.exit(main())
