"""This platform: declared streams, drained by its real hosts, each batch committed exactly once.

python -m bench.peers.jobs.ours WORKLOAD[+WORKLOAD...] DATA OUT [short | long | large | process]

Its inputs are the Delta tables laid beside the peers' Parquet files; of what admits records, JSON
lines in a landing folder. Several workloads run side by side in one session. The JVM
is that of a bounded run with so much to read (rivermark.runtime.query.backlog), unless the option
says for which kind of run; with `process` the workloads are process functions.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, get_args

from bench.peers.jobs.streams import INPUTS, streams_of
from bench.peers.workloads import ADMITTING, WORKLOADS, arguments
from rivermark.model.topology import Topology
from rivermark.runtime.query.backlog import kind_of_run
from rivermark.runtime.spark.jvm import Kind
from rivermark.runtime.spark.session import open_session
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings

KINDS: Final[dict[str, Kind]] = {kind: kind for kind in get_args(Kind)}


def settings_for(data: Path, out: Path, names: list[str]) -> Settings:
    """A home whose lake holds the inputs by links, and will hold the outputs."""
    tables = out / "lake" / "tables"
    (tables / "bench").mkdir(parents=True)
    of_tables = [name for name in names if name not in ADMITTING]
    for each in {i for name in of_tables for i in WORKLOADS[name].inputs}:
        table = INPUTS[each].name
        (tables / table).symlink_to(data / "lake" / "tables" / table, target_is_directory=True)
    return Settings(
        home=out,
        lake_root=str(out / "lake"),
        landing_root=str(data / "json"),
        driver_memory="4g",
    )


def main() -> None:
    """Run the workloads."""
    workloads, data, out = arguments()
    names = workloads.split("+")
    word = sys.argv[4] if len(sys.argv) > 4 else ""
    settings = settings_for(Path(data).resolve(), Path(out).resolve(), names)
    process = word == "process"
    streams = [stream for name in names for stream in streams_of(name, process=process)]
    spark = open_session(settings, KINDS.get(word) or kind_of_run(settings, streams))
    run_bounded(spark, settings, Topology(streams), streams, run_id="bench")
    spark.stop()


if __name__ == "__main__":
    main()
