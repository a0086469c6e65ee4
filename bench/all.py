"""Every measurement in turn, and their figures beside what they were and what they should be.

python -m bench all                      measure, then write docs/performance/*.json and the pages
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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.figures import DETAILS, ROOT, load
from bench.peers.cost import line
from bench.peers.measured import Run
from bench.peers.report import put
from bench.peers.sections import SECTIONS
from bench.peers.workloads import USUAL, WORKLOADS

PAGE: Final = ROOT / "docs" / "performance.md"
KEPT: Final = DETAILS / "measures.json"
COMMANDS: Final[Mapping[str, Sequence[str]]] = {
    "operators": ("peers", "--fresh"),
    "lines": ("peers", "--section", "lines", "--fresh", "--repeats", "1"),
    "live_keys": ("process_spark", "--live", "1000000"),
    "many_live_keys": ("process_spark", "--live", "10000000"),
}
"""What follows `python -m bench` where a measurement's name is not all of it."""
TOPIC_RATES: Final = (1_000, 5_000, 20_000)
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


def margin(workload: str) -> Callable[[Figures], str]:
    """CPU seconds a million lines beyond the start, by engine; of all runs of each."""

    def read(figures: Figures) -> str:
        runs = [Run(**run) for run in figures["runs"] if run["workload"] == workload]
        costs = {
            engine: line(run for run in runs if run.engine == engine)
            for engine in ("rivermark", "pathway", "flink", "spark-two")
        }
        known = [f"{name} {cost.per_million:.1f}" for name, cost in costs.items() if cost]
        if not known:
            raise KeyError(f"three sizes of {workload}")
        return ", ".join(known)

    return read


def latency(**scenarios: str) -> Callable[[Figures], str]:
    """The median and the 99th percentile of each scenario (title=name)."""

    def read(figures: Figures) -> str:
        return ", ".join(
            f"{title} {figures[f'{name}_latency_p50_s']:.2f} / "
            f"{figures[f'{name}_latency_p99_s']:.2f} s"
            for title, name in scenarios.items()
        )

    return read


def by_rate(figure: str) -> Callable[[Figures], str]:
    """A figure at each rate of `bench.topics`, of each system that was measured."""

    def read(figures: Figures) -> str:
        return ", ".join(
            f"{title} "
            + " / ".join(f"{figures[f'{name}_{rate}_{figure}']:.2f}" for rate in TOPIC_RATES)
            for title, name in of_topics(figures).items()
        )

    return read


def sustained(figures: Figures) -> str:
    """Events a second of those sent at once, to rows and to windows."""
    return ", ".join(
        f"{title} {figures[f'{name}_sustained_rows_per_s']:,.0f}"
        f" / {figures[f'{name}_sustained_windows_per_s']:,.0f}"
        for title, name in of_topics(figures).items()
    )


def of_topics(figures: Figures) -> dict[str, str]:
    """The systems of `bench.topics` that were measured, by title."""
    systems = {"ours": "ours", "Flink": "flink"}
    return {title: name for title, name in systems.items() if f"{name}_start_s" in figures}


def touched(figures: Figures) -> str:
    """The median and the slowest batch that touches one in a hundred of the live keys."""
    (state,) = (value for name, value in figures.items() if name.startswith("live_"))
    batches = [ms / 1000 for ms in state["batch_ms_1_percent"]]
    return (
        f"{statistics.median(batches):.2f} / {max(batches):.2f} s, "
        f"{state['peak_rss_mb'] / 1000:.1f} GB"
    )


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
        "JSON lines to a typed table (W0), CPU-s a million at the margin",
        "52",
        "5, below Flink SQL and Pathway",
        "lines",
        margin("door"),
    ),
    Row(
        "JSON lines, late and broken ones too, to hourly winners (W9), the same",
        "not measured",
        "below Flink SQL and Pathway",
        "lines",
        margin("winners"),
    ),
    Row(
        "CSV / Parquet to typed taxi records, CPU-s a million at the margin",
        "not measured",
        "6",
        "admission",
        lambda f: " / ".join(
            f"{f[f'{form}_cpu_seconds_a_million']:.1f}" for form in ("csv", "parquet")
        ),
    ),
    Row(
        "1,000 / 20,000 JSON lines admitted in one batch, warm, all tables written: CPU",
        "14-20 / 690 ms without the tables",
        "20 / 120 ms",
        "admission",
        lambda f: f"{f['warm_1000_cpu_ms']:.0f} / {f['warm_20000_cpu_ms']:.0f} ms",
    ),
    Row(
        "event to admitted table at 1,000 events/s, all streams live, p50 / p99",
        "17.6 / 23.1 s",
        "0.5 / 1.2 s",
        "latency",
        seconds("all_latency_p50_s", "all_latency_p99_s"),
    ),
    Row(
        "the same, the ingest alone, beside Flink SQL",
        "not measured",
        "-",
        "latency",
        latency(ours="one", Flink="flink"),
    ),
    Row(
        "the same at 10,000 events/s",
        "not measured",
        "p99 2 s",
        "latency",
        latency(ours="one_fast", Flink="flink_fast"),
    ),
    Row(
        "streams live at 1,000 events/s in all, and the cores they take",
        "about 8 saturate two",
        "20 with 1.4",
        "latency",
        lambda f: f"{f['all_streams']} with {f['all_loaded_cores']:.2f}",
    ),
    Row(
        "idle, all streams live",
        "not measured alone",
        "0.15 core",
        "latency",
        lambda f: f"{f['all_idle_cores']:.2f} core",
    ),
    Row(
        "event in a topic to its admitted row at 1,000 / 5,000 / 20,000 events/s, p99 in s",
        "not measured",
        "3 at 5,000",
        "topics",
        by_rate("rows_p99_s"),
    ),
    Row(
        "event in a topic to the published window that it closes, p99 in s",
        "not measured",
        "-",
        "topics",
        by_rate("windows_p99_s"),
    ),
    Row(
        "cores for rows and windows at these rates",
        "not measured",
        "at or below Flink's",
        "topics",
        by_rate("cores"),
    ),
    Row(
        "a million events sent to a topic at once, events/s to rows / to windows",
        "not measured",
        "-",
        "topics",
        sustained,
    ),
    Row(
        "1 M live keys, a batch that touches 1 % of them, median / slowest; peak memory",
        "3.4-7.4 s",
        "0.8 s",
        "live_keys",
        touched,
    ),
    Row(
        "10 M live keys, the same",
        "not measured",
        "4 s, 6 GB",
        "many_live_keys",
        touched,
    ),
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
        "100,000 events, bounded run of one stream (W2), cold: wall / CPU",
        "29 / 44 s",
        "12 / 15 s",
        "operators",
        cold_window,
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
        "operators",
        lambda figures: against(figures, "flink", 5_000_000),
    ),
    Row(
        "20 M events: the same",
        "not measured",
        "1 x, joins 1.3 x",
        "operators",
        lambda figures: against(figures, "flink", 20_000_000),
    ),
    Row(
        "1 M events: CPU of plain Spark with defaults against ours",
        "2.2 x",
        "4 x",
        "operators",
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
    """Run one measurement in a process of its own.

    Peers fail where an output differs, which is no reason to lose what the others came to.
    """
    out = ROOT / ".cache" / "bench" / f"{module}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.unlink(missing_ok=True)
    began, before = time.monotonic(), load()
    name, *options = COMMANDS.get(module, (module,))
    command = [sys.executable, "-m", f"bench.{name}", *options, "--out", str(out)]
    print(f"{module}: starts at a load of {before:.1f}", flush=True)
    code = subprocess.run(command, check=False).returncode
    print(f"{module}: ended with {code} after {time.monotonic() - began:.0f} s", flush=True)
    if not out.exists():
        raise SystemExit(f"bench.{module} failed")
    return {"load_before": before, **json.loads(out.read_text())}


def section(kept: Mapping[str, Any]) -> dict[str, Any]:
    """A section of the peers; the load and the commits are those of its runs."""
    runs = kept["figures"]["runs"]
    median = statistics.median(run["load"] for run in runs)
    commits = ", ".join(sorted({run["commit"] for run in runs}))
    return {
        **kept,
        "machine": {**kept["machine"], "commit": commits},
        "load_before": round(median, 2),
    }


def table(kept: Mapping[str, Any]) -> str:
    """The rows as they stand, each with the commit and the machine that it is of."""
    processors = sorted({measured["machine"]["processor"] for measured in kept.values()})
    lines = ["| measure | before | aim | now | commit |", "| --- | --- | --- | --- | --- |"]
    for row in ROWS:
        measured = kept.get(row.module)
        now, of = "not measured", ""
        if measured is not None:
            machine = measured["machine"]
            try:
                now = row.read(measured["figures"])
                of = f"{machine['commit']} ({processors.index(machine['processor']) + 1})"
            except KeyError as missing:
                print(f"{row.module} has no {missing}: {row.title}", flush=True)
        lines.append(f"| {row.title} | {row.before} | {row.aim} | {now} | {of} |")
    machines = [f"({number}) {name}" for number, name in enumerate(processors, 1)]
    return "\n".join([*lines, "", f"Machines, two cores each: {', '.join(machines)}."])


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
        if module in SECTIONS:
            report = ["--section", module, "--report"]
            subprocess.run([sys.executable, "-m", "bench.peers", *report], check=True)
        else:
            kept[module] = measured
            KEPT.write_text(json.dumps(kept, indent=2) + "\n")
    for name, each in SECTIONS.items():
        if each.medians.exists():
            kept[name] = section(json.loads(each.medians.read_text()))
    put(PAGE, BEGIN, END, table(kept))


if __name__ == "__main__":
    main()
