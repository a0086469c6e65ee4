"""CPU of one commit from the driver, by the number of files that the table has already.

    python -m bench commit_cost [--files 100,10000,100000] [--commits 120] [--out FILE]

Each commit appends a thousand rows to a table of which only the log knows the files, checkpoints of
the table included: by the platform's writer, and by delta-rs under the same writer. After each
series the table must hold the files and rows of all commits, by delta-rs's own count.
"""

from __future__ import annotations

import tempfile
import time
from datetime import UTC, datetime
from unittest import mock

import pyarrow as pa
from deltalake import DeltaTable

from bench.figures import options_of, report
from bench.warm_batch import EVENT, Script, age, table
from rivermark.lake.append.delta_commit import DeltaCommitter
from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.lake import Lake
from rivermark.lake.snapshot import row_count
from rivermark.model.sink import Origin

ROWS = 1000


def series(files: int, commits: int) -> dict[str, float | int]:
    """Milliseconds of a commit in one series, this process alone."""
    target = table("appended", EVENT)
    rows = Script([ROWS]).rows(0).select(target.schema.fieldNames())
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(folder)
        age(lake, target, files)
        writer = TableWriter(lake, target, Origin("bench/appended", 0, datetime.now(UTC), "bench"))
        writer.append_once(rows, 0)
        cpu, wall = time.process_time(), time.monotonic()
        for batch in range(1, commits + 1):
            writer.append_once(rows, batch)
        cpu, wall = time.process_time() - cpu, time.monotonic() - wall
        made = pa.table(DeltaTable(lake.path(target)).get_add_actions()).num_rows
        if (made, row_count(lake, target)) != (files + commits + 1, ROWS * (commits + 1)):
            raise SystemExit(f"{files} files: the table does not hold what was committed")
    return {
        "files": files,
        "cpu_ms": round(cpu / commits * 1000, 2),
        "wall_ms": round(wall / commits * 1000, 2),
    }


def by_delta_rs(files: int, commits: int) -> dict[str, float | int]:
    """The same with the log entry left to delta-rs."""
    with mock.patch.object(DeltaCommitter, "append", return_value=False):
        return series(files, commits)


WRITERS = {"ours": series, "delta-rs": by_delta_rs}


def main() -> None:
    """Measure and report."""
    parser = options_of(__doc__)
    parser.add_argument("--files", default="100,10000,100000")
    parser.add_argument("--commits", type=int, default=120)
    options = parser.parse_args()
    commits = [
        {"writer": writer, **measure(files, options.commits)}
        for files in map(int, options.files.split(","))
        for writer, measure in WRITERS.items()
    ]
    report("commit_cost", {"commits": commits}, options.out)


if __name__ == "__main__":
    main()
