"""What can be measured here: `python -m bench [MEASUREMENT] [options]`; `--help` names them.

Without a name everything is measured; `short` only compares outputs, in a minute.
"""

from __future__ import annotations

import runpy
import sys

MEASUREMENTS = {
    "admission": "taxi records as CSV and Parquet: CPU seconds a million rows",
    "all": "every measurement in turn, beside what it was and what it should be",
    "backfill": "a closed day of 1 M events computed again, against streaming it and DuckDB",
    "commit_cost": "CPU of a commit by the files that the table has, beside delta-rs",
    "cold_start": "imports, the demo",
    "dashboard": "the page of a year of days: every check and day evaluated",
    "growth": "a month in minutes: what grows while the load stays the same, upkeep included",
    "large_day": "a day of many narrow rows computed again and replaced: time, CPU, memory",
    "large_file": "one large file of each format beside the same rows in files of 5 MB, by cores",
    "latency": "event to admitted table at a fixed rate, beside Flink SQL; and the idle cost",
    "peers": "ours, Flink, Pathway, Spark and others in turn on the same files, outputs compared",
    "process_core": "process functions without Spark: events per CPU second, bytes per key",
    "process_spark": "process functions on Spark: state over a week, 1 M live keys",
    "real_time": "event in a topic to alert in a topic, in Spark's real-time mode",
    "topics": "event in a topic to admitted row and to published window, beside Flink SQL",
    "warm_batch": "CPU of one warm micro-batch by stream and rows, beside Spark's own Delta sink",
}


def main() -> None:
    """Run the named measurement with the arguments that follow its name."""
    name, options = "all", sys.argv[1:]
    if options == ["short"]:
        options = ["--short"]
    if options and options[0] in MEASUREMENTS:
        name, options = options[0], options[1:]
    elif options and options[0] in ("-h", "--help"):
        lines = [f"  {name:14} {what}" for name, what in MEASUREMENTS.items()]
        sys.stdout.write("\n".join([__doc__ or "", *lines, ""]))
        return
    sys.argv = [f"bench {name}", *options]
    runpy.run_module(f"bench.{name}", run_name="__main__")


if __name__ == "__main__":
    main()
