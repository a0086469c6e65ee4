"""Streams whose batches executors write, run by a process of its own on the master it is given."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from rivermark.lake.append import by_executors
from rivermark.runtime.spark import computed, input_size, session
from rivermark.runtime.spark.session import open_session
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, READINGS, reading, run, windows
from tests.spark.helpers.stateful_streams import ECHOES, land_feeds
from tests.spark.runtime.query.test_commits_of_many_files import kept, split

MANY: Final = 20_000


def main(home: str, master: str, mode: str = "files") -> None:
    """Run streams that executors write: because batches are large, or because results are."""
    settings = Settings(home=Path(home), master=master, trigger_seconds=0.1)
    (collecting if mode == "collecting" else in_files)(settings)


def collecting(settings: Settings) -> None:
    """Write a batch of small input whose rows are more than Spark collects."""
    conf = session.spark_conf
    session.spark_conf = lambda *args: {**conf(*args), "spark.driver.maxResultSize": "1m"}
    lines = [reading(n / 1000, note=f"{n:040}") for n in range(MANY)]
    Landing(Path(settings.landing_root)).put(f"{FOLDER}/many.json", *lines)
    spark = open_session(settings)
    run(spark, settings, READINGS, kept())
    spark.stop()


def in_files(settings: Settings) -> None:
    """Admit two feeds, and write what follows from them with every batch too large."""
    land_feeds(Landing(Path(settings.landing_root)), seed=5, files=6)
    spark = open_session(settings)
    run(spark, settings, READINGS, ECHOES)
    input_size.DRIVER_BYTES = 0  # type: ignore[misc]
    computed.DRIVER_ROWS = 0  # type: ignore[misc]
    by_executors.FILE_ROWS = 6  # type: ignore[misc]
    run(spark, settings, kept(), windows(kept()), split())
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
