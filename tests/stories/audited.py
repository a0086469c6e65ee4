"""A bounded run of readings to windows as a process of its own, which may stop in its audit.

    python -m tests.stories.audited HOME [SIGNAL_FILE]

With SIGNAL_FILE it writes that file once the rows were evaluated, and goes no further.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, Final

from rivermark import AnyStream, Topology
from rivermark.model import expectations as expect
from rivermark.model.suite import Suite
from rivermark.quality import publish_gate as audit
from rivermark.runtime.spark.session import open_session
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from tests.spark.helpers.sensors import READINGS, windows

WINDOWS: Final = windows(suite=Suite("test/windows", (expect.between("readings", 1, 9),)))


def stop_in_the_audit(signal_file: Path) -> None:
    """Let the audit evaluate the rows, and never end."""
    evaluate = audit.broken_rules

    def broken_rules(*arguments: Any, **options: Any) -> Any:
        evaluate(*arguments, **options)
        signal_file.touch()
        time.sleep(3600)

    audit.broken_rules = broken_rules


def main() -> None:
    """Run once."""
    home, *signal_file = sys.argv[1:]
    if signal_file:
        stop_in_the_audit(Path(signal_file[0]))
    settings = Settings(home=Path(home))
    spark = open_session(settings, "short")
    streams: list[AnyStream] = [READINGS, WINDOWS]
    run_id = "killed" if signal_file else "after"
    run_bounded(spark, settings, Topology(streams), streams, run_id=run_id)


if __name__ == "__main__":
    main()
