"""Every measurement in turn, and their figures beside what they were and what they should be.

python -m bench all                      measure, then write docs/measures.json and the page
python -m bench all --only warm_batch    one of them; the others keep their figures
python -m bench all --report             only write the page

"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bench.figures import ROOT, load
from bench.peers.report import put
from bench.peers.workloads import USUAL, WORKLOADS

PAGE: Final = ROOT / "docs" / "performance.md"
KEPT: Final = ROOT / "docs" / "measures.json"
PEERS: Final = ROOT / "docs" / "peers.json"
"""Written with the peers' own part of the page; they are measured in parts too."""
BEGIN: Final = "<!-- begin: python -m bench all --report -->"
END: Final = "<!-- end: python -m bench all --report -->"

Figures = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """A measure: how it stood before, its aim, and how its figures read."""

    title: str
    before: str
    aim: str
    module: str
    read: Callable[[Figures], str]


def seconds(*names: str) -> Callable[[Figures], str]:
    """Figures in seconds, side by side."""
    return lambda figures: " / ".join(f"{figures[name]:.3g} s" for name in names)


def warm_batches(figures: Figures) -> str:
    """CPU of a batch of 1,000 rows (or the size next to it) of ours."""
    costs = []
    for kind in ("stateless", "windowed"):
        ours = [b for b in figures["batches"] if (b["stream"], b["sink"]) == (kind, "ours")]
        if not ours:
            raise KeyError(f"batches of {kind} streams")
        batch = min(ours, key=lambda b: abs(b["rows"] - 1000))
        costs.append(f"{batch['cpu_seconds']:.2f} s")
    return " / ".join(costs)


def against(figures: Figures, peer: str, size: int, *, inverted: bool = False) -> str:
    """CPU seconds of ours, by operators or as a process function, over a peer's; or inverted."""
    ratios = []
    for name in USUAL:
        if name == "door":
            continue  # No like for like: ours also keeps each line as it came, and checks it.
        ours = [
            figures.get(f"{name}_{engine}_{size}_cpu_seconds")
            for engine in ("rivermark", "rivermark-process")
        ]
        known = [seconds for seconds in ours if seconds]
        theirs = figures.get(f"{name}_{peer}_{size}_cpu_seconds")
        if known and theirs:
            ratio = theirs / min(known) if inverted else min(known) / theirs
            ratios.append(f"{WORKLOADS[name].title.split()[0]} {ratio:.2g}")
    if not ratios:
        raise KeyError(f"no runs of {peer} at {size:,} events")
    return ", ".join(ratios)


def commits(figures: Figures) -> str:
    """CPU of a commit of ours and of delta-rs, at each number of files."""
    by_writer: dict[str, list[str]] = {}
    for each in figures["commits"]:
        by_writer.setdefault(each["writer"], []).append(f"{each['cpu_ms']:.1f}")
    return ", ".join(f"{writer} {' / '.join(ms)} ms" for writer, ms in by_writer.items())


def cold_window(figures: Figures) -> str:
    """Wall and CPU seconds, medians, of the same job as before: W2 of 100,000 events."""
    runs = [
        run
        for run in figures["runs"]
        if (run["workload"], run["engine"], run["size"]) == ("tips_max", "rivermark", 100_000)
    ]
    if not runs:
        raise KeyError("no runs of W2 at 100,000 events")
    wall, cpu = (statistics.median(run[name] for run in runs) for name in ("wall", "cpu"))
    return f"{wall:.3g} / {cpu:.3g} s"


GROWTH: Final = (
    "stream_cpu_ms_per_batch",
    "heap_mb",
    "state_bytes",
    "live_files",
    "event_log_bytes",
)

ROWS: Final = (
    Row(
        "CPU of a warm batch: stateless / windowed to Delta",
        "0.9-1.0 / 1.5-1.6 s",
        "0.25 / 0.5 s",
        "warm_batch",
        warm_batches,
    ),
    Row(
        "CPU of a commit at 100 / 10,000 / 100,000 files in the table, checkpoints included",
        "delta-rs 15 / 21 / 86 ms",
        "flat, 200 ms",
        "commit_cost",
        commits,
    ),
    Row(
        "streams live at 1,000 events/s in all, 10 s trigger, and the cores they take",
        "about 8 saturate two",
        "20 with 1.4",
        "latency",
        lambda f: f"{f['streams']} with {f['slow_loaded_cores']:.2f}",
    ),
    Row(
        "event to admitted table at 1,000 events/s, all streams live, p50 / p99",
        "17.6 / 23.1 s",
        "1 / 3 s",
        "latency",
        seconds("latency_p50_s", "latency_p99_s"),
    ),
    Row(
        "idle, all streams live",
        "not measured alone",
        "0.15 core",
        "latency",
        lambda f: f"{f['idle_cores']:.2f} core",
    ),
    Row(
        "100,000 events, bounded run of one stream (W2), cold: wall / CPU",
        "29 / 44 s",
        "12 / 15 s",
        "peers",
        cold_window,
    ),
    Row(
        "100,000 events from JSON files through admission to hourly winners, 6 streams, cold",
        "not measured",
        "-",
        "cold_start",
        seconds("bounded_wall_seconds", "bounded_cpu_seconds"),
    ),
    Row(
        "`make demo` after set-up, wall",
        "33.2 and 34.6 s for 44 checks (941c2cc, the same hour)",
        "half of what it was",
        "cold_start",
        seconds("demo_wall_seconds"),
    ),
    Row(
        "a day of 1 M events reprocessed, against streaming it in 96 batches / drained at once",
        "- / 1.7x cheaper",
        "4x",
        "backfill",
        lambda f: (
            f"{f['reprocess_times_cheaper_than_streamed']:.1f}x / "
            f"{f['reprocess_times_cheaper_than_drained']:.1f}x"
        ),
    ),
    Row(
        "5 M events: CPU of ours, by operators or a process function, against Flink SQL's",
        "1.2-1.4 x, joins 1.7-2.1 x",
        "1 x, joins 1.3 x",
        "peers",
        lambda figures: against(figures, "flink", 5_000_000),
    ),
    Row(
        "20 M events: the same",
        "not measured",
        "1 x, joins 1.3 x",
        "peers",
        lambda figures: against(figures, "flink", 20_000_000),
    ),
    Row(
        "1 M events: CPU of plain Spark with defaults against ours",
        "2.2 x",
        "4 x",
        "peers",
        lambda figures: against(figures, "spark", 1_000_000, inverted=True),
    ),
    Row(
        "a month at constant load, slope a day: CPU a batch / heap / state / files / event log",
        "not measured",
        "1 %",
        "growth",
        lambda f: " / ".join(f"{f[f'{name}_slope_percent_a_day']:.2f} %" for name in GROWTH),
    ),
)


def modules() -> list[str]:
    """The measurements that the rows are of, each once."""
    return list(dict.fromkeys(row.module for row in ROWS))


def take(module: str) -> dict[str, Any]:
    """Run one measurement in a process of its own."""
    out = ROOT / ".cache" / "bench" / f"{module}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.unlink(missing_ok=True)
    began, before = time.monotonic(), load()
    command = [sys.executable, "-m", f"bench.{module}", "--out", str(out)]
    if module == "peers":
        command += ["--fresh"]
    print(f"{module}: starts at a load of {before:.1f}", flush=True)
    code = subprocess.run(command, check=False).returncode
    print(f"{module}: ended with {code} after {time.monotonic() - began:.0f} s", flush=True)
    if code or not out.exists():
        raise SystemExit(f"bench.{module} failed")
    return {"load_before": before, **json.loads(out.read_text())}


def peers(kept: Mapping[str, Any]) -> dict[str, Any]:
    """The peers' report; the load and the commits are those of its runs."""
    runs = kept["figures"]["runs"]
    median = statistics.median(run["load"] for run in runs)
    commits = ", ".join(sorted({run["commit"] for run in runs}))
    return {
        **kept,
        "machine": {**kept["machine"], "commit": commits},
        "load_before": round(median, 2),
    }


def table(kept: Mapping[str, Any]) -> str:
    """The rows as they stand."""
    lines = ["| measure | before | aim | now | load |", "| --- | --- | --- | --- | --- |"]
    for row in ROWS:
        measured = kept.get(row.module)
        now, before = "not measured", ""
        if measured is not None:
            try:
                now, before = row.read(measured["figures"]), str(measured.get("load_before", ""))
            except KeyError as missing:
                now = f"its measurement has no {missing}"
        lines.append(f"| {row.title} | {row.before} | {row.aim} | {now} | {before} |")
    commits = sorted({measured["machine"]["commit"] for measured in kept.values()})
    return "\n".join([*lines, "", f"Measured at commit {', '.join(commits) or 'none yet'}."])


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=modules(), action="append", help="measure these alone")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    parser.add_argument("--short", action="store_true", help="compare outputs only, in a minute")
    options = parser.parse_args()
    if options.short:
        # What differs fails; no time is kept.
        command = [sys.executable, "-m", "bench.peers", "--short"]
        sys.exit(subprocess.run(command, check=False).returncode)
    kept: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for module in [] if options.report else options.only or modules():
        measured = take(module)
        if module == "peers":
            subprocess.run([sys.executable, "-m", "bench.peers", "--report"], check=True)
        else:
            kept[module] = measured
            KEPT.write_text(json.dumps(kept, indent=2) + "\n")
    if PEERS.exists():
        kept["peers"] = peers(json.loads(PEERS.read_text()))
    put(PAGE, BEGIN, END, table(kept))


if __name__ == "__main__":
    main()
