"""The engines that are measured, and what each is asked to do."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.peers.environment import python_of, ready
from bench.peers.workloads import ADMITTING, PROCESS, USUAL, WORKLOADS

NATIVE: Final = tuple(name for name in WORKLOADS if name != "jumps")
"""Plain Spark has no operator that compares an event with its key's last one."""


@dataclass(frozen=True)
class Engine:
    """An engine; `largest` is the size (events) beyond which it would take an hour or its heap.

    `peer` names the environment that it runs in, where it is not the platform's.
    """

    title: str
    module: str
    workloads: tuple[str, ...] = tuple(WORKLOADS)
    largest: int = 1_000_000_000
    peer: str = ""
    options: tuple[str, ...] = ()

    def command(self, workload: str, data: Path, out: Path) -> list[str]:
        """The command line of one run."""
        module = f"bench.peers.jobs.{self.module}"
        python = str(python_of(self.peer)) if self.peer else sys.executable
        return [python, "-m", module, workload, str(data), str(out), *self.options]

    @property
    def installed(self) -> bool:
        """Whether what it needs is there."""
        return not self.peer or ready(self.peer)


REFERENCE: Final = "duckdb"

ENGINES: Final = {
    "rivermark": Engine("rivermark", "ours", (*ADMITTING, *USUAL)),
    "rivermark-long": Engine(
        "rivermark, JVM for long runs", "ours", (*ADMITTING, *USUAL), options=("long",)
    ),
    "rivermark-process": Engine(
        "rivermark process function", "ours", ("join", *PROCESS), options=("process",)
    ),
    "flink": Engine("Flink SQL", "flink_sql", peer="flink"),
    "pyflink": Engine(
        "PyFlink process function", "flink_process", ("long_rides",), 100_000, "flink"
    ),
    "pathway": Engine("Pathway", "pathway_rows", ADMITTING, peer="pathway"),
    "spark": Engine("Spark, defaults", "plain_spark", NATIVE, 1_000_000),
    "spark-two": Engine("Spark, 2 partitions", "plain_spark", NATIVE, 1_000_000, options=("2",)),
    "spark-tws-row": Engine(
        "Spark, transformWithState", "spark_state", ("long_rides",), 100_000, options=("rows",)
    ),
    "spark-tws-pandas": Engine(
        "Spark, transformWithStateInPandas",
        "spark_state",
        ("long_rides",),
        100_000,
        options=("pandas",),
    ),
    "duckdb": Engine("DuckDB", "duck"),
    "polars": Engine("Polars", "polar", ("door", *USUAL)),
}
LARGEST_JSON: Final = 5_000_000
"""JSON lines of more events than this are not written: admission is linear in them."""


def takes(engine: Engine, workload: str, size: int) -> bool:
    """Whether an engine is asked this at that size."""
    if workload in ADMITTING and size > LARGEST_JSON:
        return False
    return workload in engine.workloads and size <= engine.largest
