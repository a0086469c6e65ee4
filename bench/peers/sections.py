"""What is measured and told together: admission, native operators, and process functions.

Each section has its own runs, so that each can be of its own commit, and its own page.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.figures import DETAILS
from bench.peers.environment import FOLDER
from bench.peers.workloads import ADMITTING, PROCESS, USUAL


@dataclass(frozen=True)
class Section:
    """Workloads and engines that are measured unless others are asked for; `name` names files."""

    name: str
    workloads: tuple[str, ...]
    engines: tuple[str, ...]

    @property
    def runs(self) -> Path:
        """The runs kept so far, one a line."""
        return FOLDER / f"{self.name}_runs.jsonl"

    @property
    def page(self) -> Path:
        """The page that its tables stand on."""
        return DETAILS / f"{self.name}.md"

    @property
    def medians(self) -> Path:
        """Medians and every run, as they stand on the page."""
        return DETAILS / f"{self.name}.json"

    @property
    def report(self) -> str:
        """The command that writes its tables."""
        return f"python -m bench peers --section {self.name} --report"

    @property
    def begin(self) -> str:
        """The marker on the page behind which the tables begin."""
        return f"<!-- begin: {self.report} -->"

    @property
    def end(self) -> str:
        """The marker on the page before which they end."""
        return f"<!-- end: {self.report} -->"


SECTIONS: Final = {
    section.name: section
    for section in (
        Section(
            "operators",
            USUAL,
            ("rivermark", "rivermark-process", "flink", "pyflink", "spark", "duckdb", "polars"),
        ),
        Section(
            "lines",
            ADMITTING,
            ("rivermark", "flink", "pathway", "spark-two", "duckdb", "polars"),
        ),
        Section(
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
        ),
    )
}
