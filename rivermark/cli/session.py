"""The Spark session of a command, and the signals that end it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from rivermark.model.errors import RivermarkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rivermark.runtime.spark.jvm import Kind
    from rivermark.settings import Settings


class JavaMissing(RivermarkError):
    """No Java can be started on this machine."""


@contextmanager
def engine(settings: Settings, kind: Kind) -> Iterator[SparkSession]:
    """A Spark session for a short command or for long-lived streams, stopped at the end.

    Raises JavaMissing and JarsMissing before anything is started.
    """
    # Here, because commands without Spark must not wait for its modules.
    from rivermark.runtime.spark.jvm import driver_options
    from rivermark.runtime.spark.session import open_session

    check_java()
    driver_options(kind, heap=settings.driver_memory)
    with logs_to(settings.home / "logs" / "spark.log") as console, console.status("Starting Spark"):
        spark = open_session(settings, kind)
    try:
        yield spark
    finally:
        # A session that is gone cannot be stopped, and must not hide why the command ended.
        with suppress(Exception):
            spark.stop()


@contextmanager
def logs_to(log: Path) -> Iterator[Console]:
    """Within, child processes write to a file instead of the console.

    Java and Spark print from their first line on, before any setting reaches them. Yields a console
    that still is one.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    with log.open("ab") as file, os.fdopen(os.dup(2), "w") as screen:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
        try:
            yield Console(file=screen, highlight=False)
        finally:
            for descriptor, saved in zip((1, 2), kept, strict=True):
                os.dup2(saved, descriptor)
                os.close(saved)


def check_java() -> None:
    """Raise JavaMissing where Spark would find no Java: JAVA_HOME first, then the PATH."""
    home = os.environ.get("JAVA_HOME")
    present = Path(home, "bin", "java").is_file() if home else shutil.which("java") is not None
    if not present:
        where = f"in JAVA_HOME ({home})" if home else "on the PATH"
        raise JavaMissing(f"no Java {where}: Spark needs 17 or later; `make setup` says how")
