"""Ours and the peers in turn on the same files, CPU seconds first.

    python -m bench peers --setup                       what the peers need, once
    python -m bench peers                               100,000, 1 M and 5 M events, three repeats
    python -m bench peers --only join --sizes 1000000,5000000,20000000 --engines rivermark,flink
    python -m bench peers --short                       20,000 events, once, outputs compared
    python -m bench peers --report                      write the page from the runs kept so far
    python -m bench peers --section lines               from JSON lines: admission, hourly winners
    python -m bench peers --section process             process functions: ours, Spark's, PyFlink's
    python -m bench peers --section process --sizes 5000000 --repeats 1 --engines flink
    python -m bench peers --section process --report    write their page

Every run is a process of its own, engines take turns (ABAB), and each output is compared with
DuckDB's, row for row, before its time counts. Runs are kept in a file line by line, so a
measurement can be taken in parts; each section has a file of its own. Exit code 1 when an output
differs, never because of a time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from pathlib import Path

from bench.figures import commit
from bench.peers import environment, report
from bench.peers.compare import difference
from bench.peers.engines import ENGINES, REFERENCE, takes
from bench.peers.events import generation, prepare
from bench.peers.feed import prepare_lines
from bench.peers.keyed_events import KEY_OF, keyed_generation, prepare_keyed
from bench.peers.measured import Run, keep, kept, measure
from bench.peers.sections import SECTIONS, Section
from bench.peers.workloads import ADMITTING, WORKLOADS

SHORT_SIZE = 20_000
BESIDE = ("flink", "pathway")
"""Peers whose outputs are compared also where no time is taken."""


@dataclass(frozen=True)
class Turn:
    """One run that is to be done."""

    size: int
    workload: str
    engine: str
    repeat: int


def turns(options: argparse.Namespace) -> list[Turn]:
    """All runs in their order: engines alternate within a workload, workloads within a repeat."""
    return [
        Turn(size, workload, engine, repeat)
        for size in options.sizes
        for repeat in range(options.repeats)
        for workload in options.only
        for engine in in_turn(options.engines, repeat)
        if takes(ENGINES[engine], workload, size)
    ]


def in_turn(engines: list[str], repeat: int) -> Iterator[str]:
    """The engines, beginning with another one each time."""
    first = repeat % len(engines)
    yield from engines[first:] + engines[:first]


class Bench:
    """Runs the turns one by one, compares, keeps, and says how long it will go on."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Take the options of the command line."""
        self.options = options
        self.variables = environment.variables()
        # A folder of its own: two benches at a time must not remove each other's outputs.
        self.work = environment.FOLDER / "work" / str(os.getpid())
        self.rows: dict[Path, dict[str, int]] = {}
        self.wrong = 0

    def data(self, size: int, workload: str) -> Path:
        """The files of a size, made where they are not there."""
        keyed = set(WORKLOADS[workload].inputs) <= set(KEY_OF)
        name = f"{size}-keyed-{keyed_generation()}" if keyed else f"{size}-{generation()}"
        folder = environment.FOLDER / "data" / name
        if folder not in self.rows:
            self.rows[folder] = prepare_keyed(folder, size) if keyed else prepare(folder, size)
        if workload in ADMITTING:
            for stream in WORKLOADS[workload].inputs:
                self.rows[folder] |= prepare_lines(folder, stream, size)
        return folder

    def reference(self, turn: Turn) -> Path:
        """DuckDB's output for a turn, made in each call of the bench."""
        out = self.work / str(turn.size) / "reference" / turn.workload
        if not (out / "made").exists():
            data = self.data(turn.size, turn.workload)
            *_, wrong = measure(ENGINES[REFERENCE], turn.workload, data, out, self.variables)
            if wrong:
                raise SystemExit(f"the reference of {turn.workload}: {wrong}; see {out}.log")
            (out / "made").touch()
        return out

    def take(self, turn: Turn) -> Run:
        """Do one run."""
        data, expected = self.data(turn.size, turn.workload), self.reference(turn)
        out = self.work / str(turn.size) / turn.engine / turn.workload
        load = os.getloadavg()[0]
        engine = ENGINES[turn.engine]
        wall, cpu, peak, wrong = measure(engine, turn.workload, data, out, self.variables)
        wrong = wrong or difference(turn.workload, turn.size, out, expected)
        if not wrong:
            for place in out.parent.glob(f"{out.name}*"):
                shutil.rmtree(place, ignore_errors=True)
        return Run(
            engine=turn.engine,
            workload=turn.workload,
            size=turn.size,
            events=sum(self.rows[data][name] for name in WORKLOADS[turn.workload].inputs),
            repeat=turn.repeat,
            wall=round(wall, 2),
            cpu=round(cpu, 2),
            peak_mb=peak,
            load=round(load, 2),
            commit=commit(),
            wrong=wrong,
        )

    def run(self) -> None:
        """Do all turns."""
        todo = turns(self.options)
        spent: dict[tuple[str, str, int], list[float]] = {}
        began = time.monotonic()
        for number, turn in enumerate(todo):
            run = self.take(turn)
            keep(self.options.runs, run)
            self.wrong += bool(run.wrong)
            spent.setdefault(run.cell, []).append(run.wall)
            left = expected_seconds(todo[number + 1 :], spent)
            gone = timedelta(seconds=round(time.monotonic() - began))
            print(
                f"[{number + 1}/{len(todo)} {gone}, about {timedelta(seconds=round(left))} left] "
                f"{turn.workload:10} {turn.size:>10,} {turn.engine:14} "
                + (run.wrong.upper() or f"{run.cpu:7.2f} CPU-s {run.wall:7.2f} s {run.peak_mb} MB")
                + f" load {run.load}",
                flush=True,
            )

    def report_wrong(self) -> None:
        """End with an error when an output was not DuckDB's."""
        if self.wrong:
            sys.exit(
                f"{self.wrong} runs gave another output than DuckDB, or none; what they left is in "
                f"{self.work}"
            )
        shutil.rmtree(self.work, ignore_errors=True)

    def run_beside(self) -> None:
        """Compare the peers that are installed, in what begins with JSON lines, once."""
        size = self.options.sizes[0]
        for workload, engine in product(ADMITTING, BESIDE):
            if not ENGINES[engine].installed:
                print(f"{workload:10} {engine} is not installed (bench peers --setup)", flush=True)
                continue
            run = self.take(Turn(size, workload, engine, 0))
            self.wrong += bool(run.wrong)
            print(f"{workload:10} {engine} {run.wrong or 'equal'}", flush=True)

    def run_together(self) -> None:
        """All workloads of ours in one session, once, each compared with DuckDB's."""
        size = self.options.sizes[0]
        out = self.work / str(size) / "together"
        names = "+".join(self.options.only)
        # One folder: none of them is keyed.
        (data,) = {self.data(size, workload) for workload in self.options.only}
        wall, cpu, peak, wrong = measure(ENGINES["rivermark"], names, data, out, self.variables)
        print(f"{names}: {cpu:.1f} CPU-s, {wall:.1f} s, {peak} MB {wrong}", flush=True)
        if wrong:
            raise SystemExit(f"{out.with_suffix('.log').read_text()}\nours {wrong}")
        for workload in self.options.only:
            turn = Turn(size, workload, "rivermark", 0)
            wrong = difference(workload, size, out, self.reference(turn))
            self.wrong += bool(wrong)
            print(f"{workload:10} {wrong or 'equal'}", flush=True)


def expected_seconds(todo: list[Turn], spent: dict[tuple[str, str, int], list[float]]) -> float:
    """Wall seconds that the turns will take, by the nearest runs that were done."""
    total = 0.0
    every = [wall for walls in spent.values() for wall in walls]
    for turn in todo:
        same = spent.get((turn.workload, turn.engine, turn.size))
        kin = [w for (_, engine, _), walls in spent.items() if engine == turn.engine for w in walls]
        near = same or kin or every
        total += sum(near) / len(near)
    return total


def names(known: Iterable[str]) -> Callable[[str], list[str]]:
    """A list of names, by commas, each of which must be known."""

    def parse(text: str) -> list[str]:
        chosen = text.split(",")
        if strange := [name for name in chosen if name not in known]:
            raise argparse.ArgumentTypeError(f"{', '.join(strange)}: not among {', '.join(known)}")
        return chosen

    return parse


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="bench peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--setup", action="store_true", help="fetch what the peers need, and end")
    made.add_argument(
        "--short", action="store_true", help="ours in one session against DuckDB, small, once"
    )
    made.add_argument("--report", action="store_true", help="only write the page from kept runs")
    made.add_argument("--section", choices=list(SECTIONS), default="operators")
    made.add_argument("--only", type=names(WORKLOADS), help="workloads, by commas")
    made.add_argument("--engines", type=names(ENGINES), help="by commas")
    made.add_argument(
        "--sizes",
        type=lambda text: [int(each) for each in text.split(",")],
        default=[100_000, 1_000_000, 5_000_000],
    )
    made.add_argument("--repeats", type=int, default=3)
    made.add_argument("--runs", type=Path, help="file of the kept runs, one a line")
    made.add_argument("--fresh", action="store_true", help="forget the runs kept before")
    made.add_argument("--out", type=Path, help="also write medians and machine as JSON there")
    return made


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options; what was not given is the section's."""
    made = parser()
    options = made.parse_args(arguments)
    if options.short and options.section != "operators":
        made.error("--short is of no section; try --sizes 20000 --repeats 1 --runs FILE")
    section: Section = SECTIONS[options.section]
    workloads = (*section.workloads, *ADMITTING) if options.short else section.workloads
    options.only = options.only or list(workloads)
    options.engines = options.engines or list(section.engines)
    options.runs = options.runs or section.runs
    return options


def main() -> None:
    """Set up, measure, or write the page."""
    options = parsed()
    if options.setup:
        environment.set_up()
        return
    if options.short:
        bench = Bench(options)
        options.sizes = [SHORT_SIZE]
        bench.run_together()
        bench.run_beside()
        bench.report_wrong()
        return
    if options.fresh:
        options.runs.unlink(missing_ok=True)
    if not options.report:
        if needs := [name for name in options.engines if not ENGINES[name].installed]:
            sys.exit(f"{', '.join(needs)}: run `python -m bench peers --setup` first")
        if others := {run.commit for run in kept(options.runs)} - {commit()}:
            sys.exit(
                f"{options.runs} holds runs of commit {', '.join(sorted(others))}: start again "
                "with --fresh, or keep these apart with --runs FILE"
            )
        bench = Bench(options)
        bench.run()
        if options.out:
            report.write_medians(options.out, kept(options.runs))
        bench.report_wrong()
    if options.report:
        report.write_page(kept(options.runs), SECTIONS[options.section])


if __name__ == "__main__":
    main()
