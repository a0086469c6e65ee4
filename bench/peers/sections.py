"""What is measured and told together: native operators, and process functions.

Each section has its own runs, so that each can be of its own commit, and its own place on the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bench.peers.workloads import PROCESS, USUAL


@dataclass(frozen=True)
class Section:
    """Workloads and engines that are measured unless others are asked for; `name` names files."""

    name: str
    workloads: tuple[str, ...]
    engines: tuple[str, ...]
    runs: str
    report: str

    @property
    def begin(self) -> str:
        """The marker on the page behind which the tables begin."""
        return f"<!-- begin: {self.report} -->"

    @property
    def end(self) -> str:
        """The marker on the page before which they end."""
        return f"<!-- end: {self.report} -->"


SECTIONS: Final = {
    "peers": Section(
        "peers",
        USUAL,
        ("rivermark", "rivermark-process", "flink", "pyflink", "spark", "duckdb", "polars"),
        "runs.jsonl",
        "python -m bench peers --report",
    ),
    "process": Section(
        "process",
        PROCESS,
        (
            "rivermark-process",
            "flink",
            "pyflink",
            "spark-two",
            "spark-tws-row",
            "spark-tws-pandas",
            "duckdb",
        ),
        "process_runs.jsonl",
        "python -m bench peers --section process --report",
    ),
}
