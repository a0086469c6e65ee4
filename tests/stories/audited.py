"""A bounded run of readings to windows as a process of its own; asked to, it stops in its audit.

    python -m tests.stories.audited HOME [MARK]

With MARK it writes that file once the rows were asked for their rules, and goes no further.
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


def stop_in_the_audit(mark: Path) -> None:
    """Let the audit find what it finds, and never end."""
    asked = audit.broken_rules

    def broken_rules(*given: Any, **more: Any) -> Any:
        asked(*given, **more)
        mark.touch()
        time.sleep(3600)

    audit.broken_rules = broken_rules


def main() -> None:
    """Run once."""
    home, *mark = sys.argv[1:]
    if mark:
        stop_in_the_audit(Path(mark[0]))
    settings = Settings(home=Path(home))
    spark = open_session(settings, "short")
    streams: list[AnyStream] = [READINGS, WINDOWS]
    run_bounded(spark, settings, Topology(streams), streams, run_id="killed" if mark else "after")


if __name__ == "__main__":
    main()
