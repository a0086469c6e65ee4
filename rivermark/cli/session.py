"""The Spark session of a command, and the name of its run."""

from __future__ import annotations

import logging
import os
import re
import shutil
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rivermark.cli.console import err
from rivermark.model.errors import RivermarkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rivermark.runtime.spark.jvm import Kind
    from rivermark.settings import Settings


JAVA: Final = 17


class JavaMissing(RivermarkError):
    """No Java can be started on this machine."""


@contextmanager
def engine(settings: Settings, kind: Kind, slots: int = 0) -> Iterator[SparkSession]:
    """A Spark session for a short command or for long-lived streams, stopped at the end.

    `slots` are those that queries in real time occupy.

    Raises JavaMissing and JarsMissing before anything is started.
    """
    launch = launcher(settings, kind, slots)
    silence_bridge()
    from rivermark.runtime.spark.session import open_session

    with err().status("Starting Spark"):
        launch()
        spark = open_session(settings, kind, slots)
    try:
        yield spark
    finally:
        # A session that is gone cannot be stopped, and must not hide why the command ended.
        with suppress(Exception):
            spark.stop()


def silence_bridge() -> None:
    """Have the bridge to the JVM print nothing.

    What an interrupt or the end of the JVM breaks off is said by the command that waited for it;
    Py4J prints its stack beside that, partly by the root logger.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_the_bridge)


def _is_not_of_the_bridge(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def launch_ahead(settings: Settings) -> None:
    """Start the JVM of a short `engine` that is entered soon, while this process does other work.

    Raises JavaMissing and JarsMissing before anything is started.
    """
    launch = launcher(settings, "short")

    def try_launch() -> None:
        # Who enters the engine tries again, and is told why it failed.
        with suppress(Exception):
            launch()

    threading.Thread(target=try_launch, name="launch", daemon=True).start()


def launcher(settings: Settings, kind: Kind, slots: int = 0) -> Callable[[], None]:
    """Returns the launcher of the JVM; raises where it could not be started."""
    # Here, because commands without Spark must not wait for its modules.
    from rivermark.runtime.spark.session import launch_jvm, spark_conf

    check_java()
    spark_conf(settings, kind, slots)
    return partial(launch_jvm, settings, kind, settings.home / "logs" / "spark.log", slots)


def check_java() -> None:
    """Raise JavaMissing where Spark would find no Java: JAVA_HOME first, then the PATH."""
    home = os.environ.get("JAVA_HOME")
    present = Path(home, "bin", "java").is_file() if home else shutil.which("java") is not None
    if not present:
        where = f"in JAVA_HOME ({home})" if home else "on the PATH"
        raise JavaMissing(
            f"no Java was found {where}: Spark needs {JAVA} or later; install OpenJDK 17"
        )
    version = java_version(Path(home, "bin", "java") if home else Path(shutil.which("java") or ""))
    if version is not None and version < JAVA:
        where = f"in JAVA_HOME ({home})" if home else "first on the PATH"
        raise JavaMissing(
            f"the Java {where} is {version}: Spark needs {JAVA} or later; install OpenJDK 17"
        )


def java_version(java: Path) -> int | None:
    """The major version of a Java, by the file that lies in its home; None where it has none.

    To start it and ask takes a tenth of a second.
    """
    try:
        text = (java.resolve().parents[1] / "release").read_text(errors="replace")
    except (OSError, IndexError):
        return None
    # 1.8.0 before Java 9, and 17.0.15 since.
    named = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.MULTILINE)
    return int(named[1]) if named else None


def new_run_id() -> str:
    """A name for a run started from a console."""
    return f"console-{uuid.uuid4().hex[:12]}"
