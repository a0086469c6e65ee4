"""What can be measured here: `python -m bench [MEASUREMENT] [options]`; `--help` names them.

Without a name the baseline is taken: start, bounded run, idle cost, latency.
"""

from __future__ import annotations

import runpy
import sys

MEASUREMENTS = {
    "baseline": "cold start, a bounded run to hourly winners, idle cost, event-to-table latency",
    "cold_start": "imports, a short bounded run, the demo, a day computed again",
    "growth": "a month in minutes: what grows while the load stays the same, upkeep included",
    "warm_batch": "CPU of one warm micro-batch by stream and rows, beside Spark's own Delta sink",
    "process_core": "process functions without Spark: events per CPU second, bytes per key",
    "process_spark": "process functions on Spark: long rides over a Delta table, 1 M live keys",
}


def main() -> None:
    """Run the named measurement with the arguments that follow its name."""
    name, rest = "baseline", sys.argv[1:]
    if rest and rest[0] in MEASUREMENTS:
        name, rest = rest[0], rest[1:]
    elif rest and rest[0] in ("-h", "--help"):
        lines = [f"  {name:14} {what}" for name, what in MEASUREMENTS.items()]
        sys.stdout.write("\n".join([__doc__ or "", *lines, ""]))
        return
    sys.argv = [f"bench {name}", *rest]
    runpy.run_module(f"bench.{name}", run_name="__main__")


if __name__ == "__main__":
    main()
